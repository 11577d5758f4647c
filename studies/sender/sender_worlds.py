"""Worlds of the studies.

A study's worlds under one seed are the same for every scheme. The seed decides when an outage or a change of the path begins,
within a second; which of two senders begins first, and when the other does; the window of a trace; and random losses. Other
worlds without random loss are the same under all seeds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario, dumbbell, route_change
from netbuf_gym.scenarios.limits import compute_bdp_packets
from netbuf_gym.tasks.congestion_window import SCENARIOS
from netbuf_gym.traces.types import RateTrace, Trace
from studies.sender import trace_cells
from studies.sender.sender_schemes import TASK, label

STREAM = 0x73656E64
"""Random stream of this module, separate from other draws under the same seed."""
RTT_MS = 40.0
DRAWN_S = 1.0
"""Range from which a seed draws the start of an event."""

PPCC_CELLS = ("1", "2", "3", "4")
RATES_MBPS = (1, 5, 20, 100, 300, 1000)
RTTS_MS = (5, 20, 50, 100, 200, 400)
BUFFERS_BDP = (0.25, 1, 4)
LOSSES = (0, 0.001, 0.01)
GRID_CELLS = tuple(
    f"{rate}-{rtt}-{buffer}-{loss}" for rate in RATES_MBPS for rtt in RTTS_MS for buffer in BUFFERS_BDP for loss in LOSSES
)
GRID_S, GRID_MBIT, GRID_LEAST_S, GRID_LEAST_RTTS = 40.0, 4000.0, 5.0, 25
"""Grid: longest run, most Mbit that a link carries in a run, and the time and number of RTTs below which no run is halved."""
START_MBPS, START_RTT_MS = 1000.0, 50.0
START_CELLS = ("1", "4")
OUTAGE_CELLS = tuple(f"{rate}-{held}" for rate in (10, 50) for held in ("hold", "drop"))
OUTAGE_AT, OUTAGE_LASTS = 1 / 3, 1 / 6
"""Start and duration of an outage as shares of a run; of 60 s: from 20 s on, for 10 s."""
STEP_MS, STEP_AT = 50.0, 1 / 4
STEP_RTT_MS = {"up": 40.0, "down": 100.0}
"""Round trip before the change; a step down removes all of the bottleneck's half."""
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
"""Many senders over a slow link, where a fair share is a few packets per round trip."""
JOINERS = 4
"""Number of joining senders: the first at the start, each further one after another fifth of the run (10 s of 50 s)."""
LEAST_PACKETS = 4
"""Smallest buffer."""
SHORT, LONG, THIN, FAST, WIDE = "10-20", "50-100", "10-40", "100-20", "100-100"
"""Other paths: rate in Mbit/s and round-trip propagation in ms."""
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
"""Cells on other paths: a study, the study's own cell without the path, and the path."""


HELD = {"hold": "queue held", "drop": "dropped"}


def describe_cell(study: str, cell: str) -> str:
    """Return a cell of a study in words; the names of other studies' cells, such as the grid's, are returned unchanged."""
    first, _, second = cell.partition("-")
    if study == "elsewhere":
        own, inner, path = cell.split(":")
        rate, rtt = path.split("-")
        if own == "delay_step":
            said = f"{'+' if inner == 'up' else '-'}{STEP_MS:g} ms"
        elif own in ("outage", "reverse"):
            said = HELD.get(inner, f"way back, {inner} BDP")
        else:
            said = f"{'beside ' if own == 'rivals' else ''}{describe_cell(own, inner)}"
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
        kinds = {JOIN: f"{JOINERS} joining", SLOW: f"{SLOW_MANY} over {SLOW_MBPS:g} Mbit/s, {SLOW_RTT_MS:g} ms"}
        return f"{kinds.get(first, f'{first} senders')}, {second} BDP"
    return f"{cell} BDP" if study == "start" else cell


class StudyWorld(NamedTuple):
    """World of a study, with the times of its event.

    Attributes:
        scenario: Scenario of the world.
        agents: Number of agents' flows, which come first.
        at_s: Start of the event, an outage or a change of the path; NaN without an event.
        until_s: End of an outage; NaN without an outage.
    """

    scenario: Scenario
    agents: int = 1
    at_s: float = float("nan")
    until_s: float = float("nan")

    @property
    def starts_s(self) -> list[float]:
        """Start times of the agents' flows."""
        return [flow.start_s for flow in self.scenario.flows[: self.agents]]


def compute_buffer(rate_mbps: float, rtt_ms: float, products: float) -> int:
    """Convert bandwidth-delay products to packets, at least `LEAST_PACKETS`."""
    return max(LEAST_PACKETS, round(products * compute_bdp_packets(rate_mbps, rtt_ms)))


def compute_grid_duration(cell: str, longest_s: float = GRID_S) -> float:
    """Return the duration of a run of the grid in seconds."""
    rate, rtt, *_ = map(float, cell.split("-"))
    lasts_s, least_s = longest_s, max(GRID_LEAST_S, GRID_LEAST_RTTS * rtt * 1e-3)
    while lasts_s * rate > GRID_MBIT and lasts_s / 2 >= least_s:
        lasts_s /= 2
    return lasts_s


def make_ppcc(cell: str, seed: int, duration_s: float) -> StudyWorld:
    """Build one of TCP-PPCC's four scenarios."""
    made = SCENARIOS[f"ppcc/{cell}"](duration_s=duration_s)
    assert isinstance(made, Scenario)
    return StudyWorld(made)


def make_grid(cell: str, seed: int, duration_s: float) -> StudyWorld:
    """Build one link of the grid; `duration_s` is the duration of the longest run."""
    rate, rtt, buffer, loss = map(float, cell.split("-"))
    scenario = dumbbell(
        rate_mbps=rate,
        rtt_ms=rtt,
        loss=loss,
        duration_s=compute_grid_duration(cell, duration_s),
        name=cell,
        buffer_packets=compute_buffer(rate, rtt, buffer),
    )
    return StudyWorld(scenario)


def make_start(cell: str, seed: int, duration_s: float) -> StudyWorld:
    """Build the fast link that is to be filled."""
    buffer = compute_buffer(START_MBPS, START_RTT_MS, float(cell))
    return StudyWorld(
        dumbbell(rate_mbps=START_MBPS, rtt_ms=START_RTT_MS, buffer_packets=buffer, duration_s=duration_s, name="start")
    )


def make_trace(cell: str, window: Trace) -> StudyWorld:
    """Build a link that follows a window of a trace, for the window's duration."""
    *_, buffer = trace_cells.split_cell(cell)
    packets = int(buffer[:-1]) if buffer.endswith("p") else compute_buffer(window.mean_mbps(), RTT_MS, float(buffer))
    return StudyWorld(dumbbell(trace=window, rtt_ms=RTT_MS, buffer_packets=packets, duration_s=window.duration_s, name=cell))


def make_outage(cell: str, seed: int, duration_s: float, rtt_ms: float = RTT_MS) -> StudyWorld:
    """Build a link with an outage."""
    rate, held = cell.split("-")
    at_s = OUTAGE_AT * duration_s + _draw_delay(seed, duration_s)
    until_s = at_s + OUTAGE_LASTS * duration_s
    rates = RateTrace([0.0, at_s, until_s], [float(rate), 0.0, float(rate)])
    buffer = compute_buffer(float(rate), rtt_ms, 1)
    made = dumbbell(trace=rates, rtt_ms=rtt_ms, buffer_packets=buffer, duration_s=duration_s, on_outage=held, name=cell)
    return StudyWorld(made, at_s=at_s, until_s=until_s)


def make_delay_step(cell: str, seed: int, duration_s: float, rtt_ms: float | None = None) -> StudyWorld:
    """Build a path that becomes longer or shorter; the buffer is one BDP of the shorter."""
    way, rate = cell.split("-")
    at_s = STEP_AT * duration_s + _draw_delay(seed, duration_s)
    before_ms, change_ms = rtt_ms or STEP_RTT_MS[way], STEP_MS if way == "up" else -STEP_MS
    made = dumbbell(
        rate_mbps=float(rate),
        rtt_ms=before_ms,
        buffer_packets=compute_buffer(float(rate), min(before_ms, before_ms + change_ms), 1),
        delays=route_change(delay_ms=before_ms / 2, change_ms=change_ms, at_s=at_s),
        duration_s=duration_s,
        name=cell,
    )
    return StudyWorld(made, at_s=at_s)


def make_reverse(cell: str, seed: int, duration_s: float, rtt_ms: float = RTT_MS) -> StudyWorld:
    """Build a link with CUBIC on the way back, which has the bottleneck's rate and buffer."""
    rate, buffer = map(float, cell.split("-"))
    packets = compute_buffer(rate, rtt_ms, buffer)
    made = dumbbell(rate_mbps=rate, rtt_ms=rtt_ms, buffer_packets=packets, reverse=("cubic",), duration_s=duration_s, name=cell)
    return StudyWorld(_set_starts(made, [0.0, _draw_delay(seed, duration_s)]))


def make_rivals(cell: str, seed: int, duration_s: float, rate_mbps: float = RIVALS_MBPS, rtt_ms: float = RTT_MS) -> StudyWorld:
    """Build a link shared with one flow of another control; either begins, the other within a second."""
    rival, buffer = cell.split("-")
    packets = compute_buffer(rate_mbps, rtt_ms, float(buffer))
    made = dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=packets,
        senders=("cubic", rival),
        duration_s=duration_s,
        name=cell,
    )
    late_s = _draw_delay(seed, duration_s)
    return StudyWorld(_set_starts(made, [late_s, 0.0] if seed % 2 else [0.0, late_s]))


def make_agents(cell: str, seed: int, duration_s: float, path: tuple[float, float] | None = None) -> StudyWorld:
    """Build a link shared by several senders of a kind, which begin within a second or join one after the other."""
    first, buffer = cell.split("-")
    many = {JOIN: JOINERS, SLOW: SLOW_MANY}.get(first) or int(first)
    rate_mbps, rtt_ms = path or ((SLOW_MBPS, SLOW_RTT_MS) if first == SLOW else (AGENTS_MBPS, RTT_MS))
    rng = np.random.default_rng((seed, STREAM))
    starts_s = np.arange(many) * duration_s / (JOINERS + 1) if first == JOIN else np.zeros(many)
    starts_s[1:] += rng.random(many - 1) * min(DRAWN_S, duration_s / 20)
    made = dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=compute_buffer(rate_mbps, rtt_ms, float(buffer)),
        senders=("cubic",) * many,
        duration_s=duration_s,
        name=cell,
    )
    return StudyWorld(_set_starts(made, starts_s.tolist()), many)


def make_elsewhere(cell: str, seed: int, duration_s: float) -> StudyWorld:
    """Build a world of another study on another path."""
    study, inner, path = cell.split(":")
    rate, rtt = path.split("-")
    if study == "outage":
        return make_outage(f"{rate}-{inner}", seed, duration_s, float(rtt))
    if study == "delay_step":
        return make_delay_step(f"{inner}-{rate}", seed, duration_s, float(rtt))
    if study == "reverse":
        return make_reverse(f"{rate}-{inner}", seed, duration_s, float(rtt))
    if study == "rivals":
        return make_rivals(inner, seed, duration_s, float(rate), float(rtt))
    return make_agents(inner, seed, duration_s, (float(rate), float(rtt)))


def draw_world(made: StudyWorld, seed: int) -> rollout.World:
    """Return a world with agents in place, as an environment draws it."""
    return rollout.draw_worlds(TASK, made.scenario, [seed], agents=made.agents)[0]


def _set_starts(made: Scenario, starts_s: list[float]) -> Scenario:
    """Return the scenario with flows that begin at the given times."""
    return replace(made, flows=[replace(flow, start_s=at_s) for flow, at_s in zip(made.flows, starts_s, strict=True)])


def _draw_delay(seed: int, duration_s: float) -> float:
    """Draw the delay of an event's start in seconds."""
    return min(DRAWN_S, duration_s / 20) * float(np.random.default_rng((seed, STREAM)).random())
