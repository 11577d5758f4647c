"""The worlds of the studies.

A study's worlds under one seed are the same for every scheme. What the seed draws: when an outage or a change of the path
begins, within a second; who of two begins first, and when; of traces the window; and what is lost at random. Of other worlds
without random loss all seeds are one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario, dumbbell, route_change
from netbuf_gym.scenarios.limits import bdp_packets
from netbuf_gym.tasks.congestion_window import SCENARIOS
from netbuf_gym.traces.types import RateTrace, Trace
from studies.sender import trace_cells
from studies.sender.schemes import TASK, label

STREAM = 0x73656E64
"""Keeps what is drawn from a seed here apart from what else is."""
RTT_MS = 40.0
DRAWN_S = 1.0
"""Within what time a seed draws when something begins."""

PPCC_CELLS = ("1", "2", "3", "4")
RATES_MBPS = (1, 5, 20, 100, 300, 1000)
RTTS_MS = (5, 20, 50, 100, 200, 400)
BUFFERS_BDP = (0.25, 1, 4)
LOSSES = (0, 0.001, 0.01)
GRID_CELLS = tuple(
    f"{rate}-{rtt}-{buffer}-{loss}" for rate in RATES_MBPS for rtt in RTTS_MS for buffer in BUFFERS_BDP for loss in LOSSES
)
GRID_S, GRID_MBIT, GRID_LEAST_S, GRID_LEAST_RTTS = 40.0, 4000.0, 5.0, 25
"""Of the grid: the longest run, what a link carries in a run, and below how much time and how many RTTs none is halved."""
START_MBPS, START_RTT_MS = 1000.0, 50.0
START_CELLS = ("1", "4")
OUTAGE_CELLS = tuple(f"{rate}-{held}" for rate in (10, 50) for held in ("hold", "drop"))
OUTAGE_AT, OUTAGE_LASTS = 1 / 3, 1 / 6
"""Shares of a run of 60 s: from 20 s on, for 10 s."""
STEP_MS, STEP_AT = 50.0, 1 / 4
STEP_RTT_MS = {"up": 40.0, "down": 100.0}
"""Before; a step down takes all of the bottleneck's half."""
STEP_CELLS = tuple(f"{way}-{rate}" for way in ("up", "down") for rate in (10, 50))
REVERSE_CELLS = tuple(f"{rate}-{buffer}" for rate in (10, 50) for buffer in (1, 4))
RIVALS = ("cubic", "bbr", "newreno")
RIVAL_BUFFERS = ("0.5", "1", "4")
RIVAL_CELLS = tuple(f"{rival}-{buffer}" for rival in RIVALS for buffer in RIVAL_BUFFERS)
RIVALS_MBPS = 20.0
AGENTS = (2, 4, 8)
JOIN, SLOW = "join", "slow"
AGENT_CELLS = (
    *(f"{many}-{buffer}" for many in AGENTS for buffer in (1, 4)),
    *(f"{cell}-{buffer}" for cell in (JOIN, SLOW) for buffer in (1, 4)),
)
AGENTS_MBPS = 40.0
SLOW_MANY, SLOW_MBPS, SLOW_RTT_MS = 8, 10.0, 80.0
"""Many over a slow link, whose fair share is some packets a round trip."""
JOINERS = 4
"""The first there from the start; each further one comes after another fifth of the run, of 50 s every 10 s."""
LEAST_PACKETS = 4
"""Of a buffer."""
SHORT, LONG, THIN, FAST, WIDE = "10-20", "50-100", "10-40", "100-20", "100-100"
"""Other paths: Mbit/s, and milliseconds there and back."""
OTHER_CELLS = (
    *(f"outage:{held}:{path}" for path in ("20-200", WIDE) for held in ("hold", "drop")),
    *(f"delay_step:up:{path}" for path in ("3-20", "100-150")),
    *(f"delay_step:down:{path}" for path in ("3-100", "100-150")),
    *(f"reverse:{buffer}:{path}" for path in ("5-20", FAST, "100-80") for buffer in (1, 4)),
    *(f"rivals:{cell}:{path}" for path in (SHORT, LONG) for cell in RIVAL_CELLS),
    *(f"agents:4-{buffer}:{path}" for path in (THIN, FAST, WIDE) for buffer in (1, 4)),
    *(f"agents:8-4:{path}" for path in (THIN, FAST)),
    *(f"agents:{JOIN}-{buffer}:{path}" for path in (THIN, WIDE) for buffer in (1, 4)),
)
"""A study, what its own cells say but for the path, and the path."""


HELD = {"hold": "queue held", "drop": "dropped"}


def cell_said(study: str, cell: str) -> str:
    """A cell of a study in words; those of the grid and of traces say it themselves."""
    first, _, second = cell.partition("-")
    if study == "elsewhere":
        own, inner, path = cell.split(":")
        rate, rtt = path.split("-")
        if own == "delay_step":
            said = f"{'+' if inner == 'up' else '-'}{STEP_MS:g} ms"
        elif own in ("outage", "reverse"):
            said = HELD.get(inner, f"way back, {inner} BDP")
        else:
            said = f"{'beside ' if own == 'rivals' else ''}{cell_said(own, inner)}"
        return f"{rate} Mbit/s, {rtt} ms, {said}"
    if study == "outage":
        return f"{first} Mbit/s, {HELD[second]}"
    if study == "delay_step":
        return f"{'+' if first == 'up' else '-'}{STEP_MS:g} ms, {second} Mbit/s"
    if study == "reverse":
        return f"{first} Mbit/s, {second} BDP"
    if study == "rivals":
        return f"{label(first)}, {second} BDP"
    if study == "agents":
        said = {JOIN: f"{JOINERS} joining", SLOW: f"{SLOW_MANY} over {SLOW_MBPS:g} Mbit/s, {SLOW_RTT_MS:g} ms"}
        return f"{said.get(first, f'{first} senders')}, {second} BDP"
    return f"{cell} BDP" if study == "start" else cell


class Made(NamedTuple):
    """A world, and what happens in it.

    Attributes:
        scenario: It.
        agents: How many of its first flows are agents'.
        at_s: When something happens: the outage, the change of the path; NaN where nothing does.
        until_s: When the outage ends.
    """

    scenario: Scenario
    agents: int = 1
    at_s: float = float("nan")
    until_s: float = float("nan")

    @property
    def starts_s(self) -> list[float]:
        """When each agent begins."""
        return [flow.start_s for flow in self.scenario.flows[: self.agents]]


def buffer_of(rate_mbps: float, rtt_ms: float, products: float) -> int:
    """Packets in so many bandwidth-delay products."""
    return max(LEAST_PACKETS, round(products * bdp_packets(rate_mbps, rtt_ms)))


def grid_s(cell: str, longest_s: float = GRID_S) -> float:
    """How long a run of the grid is."""
    rate, rtt, *_ = map(float, cell.split("-"))
    lasts_s, least_s = longest_s, max(GRID_LEAST_S, GRID_LEAST_RTTS * rtt * 1e-3)
    while lasts_s * rate > GRID_MBIT and lasts_s / 2 >= least_s:
        lasts_s /= 2
    return lasts_s


def ppcc(cell: str, seed: int, duration_s: float) -> Made:
    """One of TCP-PPCC's four."""
    made = SCENARIOS[f"ppcc/{cell}"](duration_s=duration_s)
    assert isinstance(made, Scenario)
    return Made(made)


def grid(cell: str, seed: int, duration_s: float) -> Made:
    """One link of the grid; duration_s: of the longest."""
    rate, rtt, buffer, loss = map(float, cell.split("-"))
    buffers = {"buffer_packets": buffer_of(rate, rtt, buffer)}
    return Made(dumbbell(rate_mbps=rate, rtt_ms=rtt, loss=loss, duration_s=grid_s(cell, duration_s), name=cell, **buffers))


def start(cell: str, seed: int, duration_s: float) -> Made:
    """The link that is to be filled."""
    buffer = buffer_of(START_MBPS, START_RTT_MS, float(cell))
    return Made(dumbbell(rate_mbps=START_MBPS, rtt_ms=START_RTT_MS, buffer_packets=buffer, duration_s=duration_s, name="start"))


def trace(cell: str, window: Trace) -> Made:
    """A window of a trace, as long as that is."""
    *_, buffer = trace_cells.parts_of(cell)
    packets = int(buffer[:-1]) if buffer.endswith("p") else buffer_of(window.mean_mbps(), RTT_MS, float(buffer))
    return Made(dumbbell(trace=window, rtt_ms=RTT_MS, buffer_packets=packets, duration_s=window.duration_s, name=cell))


def outage(cell: str, seed: int, duration_s: float, rtt_ms: float = RTT_MS) -> Made:
    """A link that is gone for a while."""
    rate, held = cell.split("-")
    at_s = OUTAGE_AT * duration_s + _drawn(seed, duration_s)
    until_s = at_s + OUTAGE_LASTS * duration_s
    rates = RateTrace([0.0, at_s, until_s], [float(rate), 0.0, float(rate)])
    buffer = buffer_of(float(rate), rtt_ms, 1)
    made = dumbbell(trace=rates, rtt_ms=rtt_ms, buffer_packets=buffer, duration_s=duration_s, on_outage=held, name=cell)
    return Made(made, at_s=at_s, until_s=until_s)


def delay_step(cell: str, seed: int, duration_s: float, rtt_ms: float | None = None) -> Made:
    """A path that becomes longer or shorter; its buffer is what the shorter holds."""
    way, rate = cell.split("-")
    at_s = STEP_AT * duration_s + _drawn(seed, duration_s)
    before_ms, change_ms = rtt_ms or STEP_RTT_MS[way], STEP_MS if way == "up" else -STEP_MS
    made = dumbbell(
        rate_mbps=float(rate),
        rtt_ms=before_ms,
        buffer_packets=buffer_of(float(rate), min(before_ms, before_ms + change_ms), 1),
        delays=route_change(delay_ms=before_ms / 2, change_ms=change_ms, at_s=at_s),
        duration_s=duration_s,
        name=cell,
    )
    return Made(made, at_s=at_s)


def reverse(cell: str, seed: int, duration_s: float, rtt_ms: float = RTT_MS) -> Made:
    """CUBIC on the way back, which has the bottleneck's rate and buffer."""
    rate, buffer = map(float, cell.split("-"))
    packets = buffer_of(rate, rtt_ms, buffer)
    made = dumbbell(rate_mbps=rate, rtt_ms=rtt_ms, buffer_packets=packets, reverse=("cubic",), duration_s=duration_s, name=cell)
    return Made(_begun(made, [0.0, _drawn(seed, duration_s)]))


def rivals(cell: str, seed: int, duration_s: float, rate_mbps: float = RIVALS_MBPS, rtt_ms: float = RTT_MS) -> Made:
    """One flow of another control beside; either begins, the other within a second."""
    rival, buffer = cell.split("-")
    packets = buffer_of(rate_mbps, rtt_ms, float(buffer))
    made = dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=packets,
        senders=("cubic", rival),
        duration_s=duration_s,
        name=cell,
    )
    late_s = _drawn(seed, duration_s)
    return Made(_begun(made, [late_s, 0.0] if seed % 2 else [0.0, late_s]))


def agents(cell: str, seed: int, duration_s: float, path: tuple[float, float] | None = None) -> Made:
    """Several of a kind, which begin within a second, or join one after the other."""
    first, buffer = cell.split("-")
    many = {JOIN: JOINERS, SLOW: SLOW_MANY}.get(first) or int(first)
    rate_mbps, rtt_ms = path or ((SLOW_MBPS, SLOW_RTT_MS) if first == SLOW else (AGENTS_MBPS, RTT_MS))
    rng = np.random.default_rng((seed, STREAM))
    starts_s = np.arange(many) * duration_s / (JOINERS + 1) if first == JOIN else np.zeros(many)
    starts_s[1:] += rng.random(many - 1) * min(DRAWN_S, duration_s / 20)
    made = dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=buffer_of(rate_mbps, rtt_ms, float(buffer)),
        senders=("cubic",) * many,
        duration_s=duration_s,
        name=cell,
    )
    return Made(_begun(made, starts_s.tolist()), many)


def elsewhere(cell: str, seed: int, duration_s: float) -> Made:
    """What other studies have, on another path."""
    study, inner, path = cell.split(":")
    rate, rtt = path.split("-")
    if study == "outage":
        return outage(f"{rate}-{inner}", seed, duration_s, float(rtt))
    if study == "delay_step":
        return delay_step(f"{inner}-{rate}", seed, duration_s, float(rtt))
    if study == "reverse":
        return reverse(f"{rate}-{inner}", seed, duration_s, float(rtt))
    if study == "rivals":
        return rivals(inner, seed, duration_s, float(rate), float(rtt))
    return agents(inner, seed, duration_s, (float(rate), float(rtt)))


def world(made: Made, seed: int) -> rollout.World:
    """A world with agents in their places, as an environment draws it."""
    return rollout.draw(TASK, made.scenario, [seed], agents=made.agents)[0]


def _begun(made: Scenario, starts_s: list[float]) -> Scenario:
    """The same with flows that begin at these times."""
    return replace(made, flows=[replace(flow, start_s=at_s) for flow, at_s in zip(made.flows, starts_s, strict=True)])


def _drawn(seed: int, duration_s: float) -> float:
    """When something begins, seconds after it might."""
    return min(DRAWN_S, duration_s / 20) * float(np.random.default_rng((seed, STREAM)).random())
