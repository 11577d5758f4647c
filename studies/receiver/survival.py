"""Paths that break, as met by receivers and congestion controls: worlds, and the measurement in each.

* outage: 10 s without any service, the queue held or dropped. `value` is how long after its end (queue held) or after the first
  delivery after its end (dropped) a second begins in which 80 % of the link or more arrive; it passes at 2 s or less, if the
  five seconds from 2 s on carry 80 % in the mean, too.
* delay step: the base RTT becomes 50 ms longer, or shorter. `value` is the goodput of 15 s from 15 s after it, over that of
  10 s before it; it passes from 0.9 on.
* way back: a CUBIC flow on the way back, over a link of the same rate, or a third of it, with a buffer like the bottleneck's.
  `value` is the goodput from 10 s on over that without the flow; it passes from 0.8 on.
* fairness: flows of the controller, another one every 20 s. `value` is the least of Jain's indices of the bytes that flows
  received in the 10 s that begin 10 s after each arrival; it passes from 0.95 on.
* beside: one other flow of CUBIC or BBR all the time. `value` is the controller's share of the bytes that both received; there
  is no bound.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TASK = "receiver_window"
SURVIVAL_CONTROLLERS = ("agent", "nuwa_k2", "cubic", "bbr", "vegas", "copa")
"""Controllers that are run, if available."""
OUTAGE_S, BACK_S = 20.0, 30.0
STEP_MS, STEP_AT_S = 50.0, 25.0
STAGGER_S = 20.0
BUFFERS = {"1 BDP": 1.0, "4 BDP": 4.0, "250 packets": None}
SIZES: dict[str, dict[str, Sequence[Any]]] = {
    "full": {"rate_mbps": (2, 12, 50), "rtt_ms": (20, 40, 100), "buffer": tuple(BUFFERS), "agents": (2, 4)},
    "quick": {"rate_mbps": (12,), "rtt_ms": (40,), "buffer": ("1 BDP", "4 BDP"), "agents": (2,)},
}


@dataclass
class Trial:
    """A world, its test, and the recording of its run.

    Attributes:
        test, variant: Test and its variant.
        rate_mbps, rtt_ms, buffer: Rate, base RTT and buffer of the bottleneck.
        scenario: Scenario; the controller's flows come first.
        agents: Number of the controller's flows.
        reference: Trial with `test` "" to compare with.
        record: One row for each 100 ms: time in s, then bytes that arrived of each flow, then bytes delivered in order of each,
            then seconds and packets at the bottleneck.
    """

    test: str
    variant: str
    rate_mbps: float
    rtt_ms: float
    buffer: str
    scenario: Any
    agents: int = 1
    reference: Trial | None = None
    record: list[list[float]] = field(default_factory=list)

    def record_state(self, view: Any) -> None:
        """Append a row to the record."""
        world = view.simulated
        link = world.link_stats()[0]
        delivered = [flow["delivered_bytes"] for flow in world.flow_stats()]
        waited = [link["sojourn_sum_s"], link["sojourn_count"]]
        self.record.append([world.now_ns * 1e-9, *world.flow_arrivals()[: len(delivered)], *delivered, *waited])

    def rate(self, begin_s: float, end_s: float, flow: int = 0, delivered: bool = False) -> float:
        """Return the rate in Mbit/s at which a flow's bytes arrived within an interval, or were delivered in order."""
        table = np.array(self.record)
        column = 1 + flow + (len(self.scenario.flows) if delivered else 0)
        low, high = np.interp([begin_s, end_s], table[:, 0], table[:, column])
        return float(high - low) * 8e-6 / (end_s - begin_s)

    def queueing_ms(self, begin_s: float, end_s: float) -> float:
        """Return the mean time of a packet in the bottleneck's queue, in ms; NaN without packets."""
        table = np.array(self.record)
        waited, packets = (np.diff(np.interp([begin_s, end_s], table[:, 0], table[:, k]))[0] for k in (-2, -1))
        return float(1e3 * waited / packets) if packets > 0 else math.nan

    def first_arrival_s(self, after_s: float) -> float:
        """Return the start of the first 100 ms after a time in which anything arrived; infinity if nothing did."""
        table = np.array(self.record)
        grown = np.flatnonzero((np.diff(table[:, 1]) > 0) & (table[:-1, 0] >= after_s - 1e-9))
        return float(table[grown[0], 0]) if len(grown) else math.inf


def make_trials(size: str) -> list[Trial]:
    """Return all trials of a size, including references, each before the trials compared with it."""
    grid = SIZES[size]
    made: list[Trial] = []
    for rate, rtt, buffer in itertools.product(grid["rate_mbps"], grid["rtt_ms"], grid["buffer"]):
        own: dict[str, Any] = {"rate_mbps": float(rate), "rtt_ms": float(rtt), "buffer": buffer}
        for queue in ("hold", "drop"):
            made.append(Trial("outage", f"queue {queue}", **own, scenario=_make_outage_world(rate, rtt, buffer, queue)))
        for step_ms in (STEP_MS, -STEP_MS):
            variant = f"{step_ms:+.0f} ms"
            made.append(Trial("delay step", variant, **own, scenario=_make_delay_step_world(rate, rtt, buffer, step_ms)))
        plain = Trial("", "", **own, scenario=_make_world(rate, rtt, buffer, 40.0))
        made.append(plain)
        for share in (1.0, 1 / 3):
            variant = "same rate" if share == 1 else "a third"
            world = _make_world(rate, rtt, buffer, 40.0, back_mbps=share * rate)
            made.append(Trial("way back", variant, **own, scenario=world, reference=plain))
        if rtt == 40:
            for n in grid["agents"]:
                made.append(
                    Trial("fairness", f"{n} flows", **own, agents=n, scenario=_make_fairness_world(rate, rtt, buffer, n))
                )
            for other in ("cubic", "bbr"):
                world = _make_world(rate, rtt, buffer, 60.0, others=(other,))
                made.append(Trial("beside", other, **own, scenario=world))
    return made


def _compute_buffer_packets(rate_mbps: float, rtt_ms: float, buffer: str) -> int:
    products = BUFFERS[buffer]
    return 250 if products is None else max(10, round(products * rate_mbps * rtt_ms * 1e3 / 8 / 1500))


def _make_world(
    rate_mbps: float,
    rtt_ms: float,
    buffer: str,
    duration_s: float,
    *,
    others: Sequence[str] = (),
    back_mbps: float | None = None,
    own: int = 1,
    **more: Any,
) -> Any:
    from netbuf_gym.scenarios.senders import Sender
    from netbuf_gym.scenarios.traffic import FlowList, Traffic
    from netbuf_gym.tasks.receiver_window.random_paths import RECEIVER_DRIVEN, receiver_world

    traffic = None
    if back_mbps is not None:
        size = int(2 * back_mbps * duration_s * 1e6 / 8)
        flows = FlowList(start_s=[1.0], sender=[0], size_bytes=[size], priority=[0])
        traffic = Traffic(senders=[Sender(cc="cubic", path=(1,), return_path=(0,))], arrivals=[flows])
    capacity: dict[str, Any] = {} if "trace" in more else {"rate_mbps": float(rate_mbps)}
    return receiver_world(
        rtt_ms=rtt_ms,
        buffer_packets=_compute_buffer_packets(rate_mbps, rtt_ms, buffer),
        senders=(*[RECEIVER_DRIVEN] * own, *others),
        receivers=(*["agent"] * own, *[None] * len(others)),
        duration_s=duration_s,
        traffic=traffic,
        return_mbps=back_mbps,
        return_packets=None if back_mbps is None else _compute_buffer_packets(back_mbps, rtt_ms, buffer),
        name="survival",
        **capacity,
        **more,
    )


def _make_outage_world(rate_mbps: float, rtt_ms: float, buffer: str, queue: str) -> Any:
    from netbuf_gym.traces import RateTrace

    trace = RateTrace([0.0, OUTAGE_S, BACK_S], [rate_mbps, 0.0, rate_mbps])
    return _make_world(rate_mbps, rtt_ms, buffer, 60.0, trace=trace, on_outage=queue)


def _make_delay_step_world(rate_mbps: float, rtt_ms: float, buffer: str, step_ms: float) -> Any:
    from netbuf_gym.scenarios.impairments import DelaySchedule

    before, after = rtt_ms / 2 + max(-step_ms, 0), rtt_ms / 2 + max(step_ms, 0)
    delay = DelaySchedule([0.0, STEP_AT_S], [before, after])
    return _make_world(rate_mbps, rtt_ms, buffer, 60.0, delay=delay)


def _make_fairness_world(rate_mbps: float, rtt_ms: float, buffer: str, count: int) -> Any:
    return _make_world(rate_mbps, rtt_ms, buffer, STAGGER_S * count, own=count, stagger_s=STAGGER_S)


def measure_trial(trial: Trial) -> dict[str, Any]:
    """Return `value`, whether it passes (None: no bound), and the share of the link and the queueing delay at that time."""
    value, passes, during = _MEASURES[trial.test](trial)
    share = sum(trial.rate(*during, flow=i) for i in range(trial.agents)) / trial.rate_mbps
    return {"value": value, "passes": passes, "share": share, "queueing_ms": trial.queueing_ms(*during)}


Measured = tuple[float, bool | None, tuple[float, float]]


def _measure_outage(trial: Trial) -> Measured:
    begin_s = BACK_S if trial.variant == "queue hold" else trial.first_arrival_s(BACK_S)
    if not math.isfinite(begin_s) or begin_s > trial.scenario.duration_s - 8:
        return math.inf, False, (BACK_S + 2, BACK_S + 7)
    good = (k / 10 for k in range(50) if trial.rate(begin_s + k / 10, begin_s + k / 10 + 1) >= 0.8 * trial.rate_mbps)
    after_s = next(good, math.inf)
    lasts = trial.rate(begin_s + 2, begin_s + 7) >= 0.8 * trial.rate_mbps
    return after_s, bool(after_s <= 2 and lasts), (begin_s + 2, begin_s + 7)


def _measure_delay_step(trial: Trial) -> Measured:
    before = trial.rate(STEP_AT_S - 10, STEP_AT_S, delivered=True)
    kept = trial.rate(STEP_AT_S + 15, STEP_AT_S + 30, delivered=True) / max(before, 1e-9)
    return kept, kept >= 0.9, (STEP_AT_S + 15, STEP_AT_S + 30)


def _measure_way_back(trial: Trial) -> Measured:
    assert trial.reference is not None
    kept = trial.rate(10, 40, delivered=True) / max(trial.reference.rate(10, 40, delivered=True), 1e-9)
    return kept, kept >= 0.8, (10, 40)


def _measure_fairness(trial: Trial) -> Measured:
    from netbuf_gym.utils.statistics import jain_index

    found = []
    for n in range(2, trial.agents + 1):
        begin_s = STAGGER_S * (n - 1) + 10
        found.append(jain_index([trial.rate(begin_s, begin_s + 10, flow=i) for i in range(n)]))
    return min(found), min(found) >= 0.95, (STAGGER_S, STAGGER_S * trial.agents)


def _measure_share(trial: Trial) -> Measured:
    ours, theirs = (trial.rate(10, 60, flow=i) for i in (0, 1))
    return ours / max(ours + theirs, 1e-9), None, (10, 60)


_MEASURES: dict[str, Callable[[Trial], Measured]] = {
    "outage": _measure_outage,
    "delay step": _measure_delay_step,
    "way back": _measure_way_back,
    "fairness": _measure_fairness,
    "beside": _measure_share,
}


def make_env_arguments(controller: Any, name: str, env: dict[str, Any], agents: int = 1) -> dict[str, Any]:
    """Return the arguments of the environment for a controller that plays beside the agent, whose own arguments are `env`."""
    own = dict(env) if name == "agent" else controller.match_arguments(env)
    return {key: value for key, value in own.items() if key not in ("agents", "id")} | {"agents": agents}


def play_trials(players: dict[str, Any], env: dict[str, Any], size: str = "full") -> list[dict[str, Any]]:
    """Return one row for each world and each controller of `SURVIVAL_CONTROLLERS` that is available."""
    from netbuf_gym import tasks
    from netbuf_gym.evaluation import rollout
    from netbuf_gym.evaluation.rollout import World

    rows = []
    for name, controller in ((name, players[name]) for name in SURVIVAL_CONTROLLERS if name in players):
        began, made = time.perf_counter(), make_trials(size)
        for agents in sorted({trial.agents for trial in made}):
            those = [trial for trial in made if trial.agents == agents]
            for duration_s in sorted({trial.scenario.duration_s for trial in those}):
                alike = [trial for trial in those if trial.scenario.duration_s == duration_s]
                rules = tasks.get(TASK).rules(agents=agents)
                worlds = [World(rules.control(trial.scenario), 1, 1) for trial in alike]
                watch = {i: trial.record_state for i, trial in enumerate(alike)}
                own = make_env_arguments(controller, name, env, agents)
                rollout.play(controller, worlds, lambda view: None, task=TASK, watch=watch, **own)
        for trial in made:
            if trial.test:
                where = {key: getattr(trial, key) for key in ("test", "variant", "rate_mbps", "rtt_ms", "buffer")}
                rows.append({**where, "controller": name, **measure_trial(trial)})
        print(f"survival: {name}, {len(made)} worlds, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return rows
