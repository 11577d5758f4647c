"""Cases from the appendix of draft-ietf-ccwg-bbr, as far as rate, window and data in flight show them from outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites.field.suite import (
    PACKET_BITS,
    FieldCell,
    FieldSuite,
    OmittedWorlds,
    Report,
    Results,
    Sign,
    Table,
    bdp_packets,
    compute_queue,
    derive_seed,
    make_loader,
    make_measure,
)
from netbuf_gym.evaluation.suites.recorder import Record
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.scenarios import DelaySchedule, Flow, Link, OnOff, Scenario
from netbuf_gym.scenarios.disciplines import Discipline
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.traces import DeliveryTrace, RateTrace

PATHS = ((1, 100), (10, 20), (100, 40), (500, 10))
"""Rates in Mbit/s and round trips in ms."""
DURATION_S, CHANGE_S, SAMPLE_S = 30.0, 10.0, 0.02
SETTLED = (5.0, DURATION_S)
"""Interval, s, in which start-up is long over."""
LEAST_PACKETS = 4
"""Least packets that BBR keeps in flight (MinPipeCwnd), and the least buffer."""
LOW, HIGH = 0.95, 1.03
"""Bounds, as a share of the link, of a pacing rate of 99 %: the model is to be within 2 %, plus a packet's size either way."""
LOST_BDPS = 2.5
"""Most BDPs lost in start-up, which keeps two in flight at most, so that a round loses one at most: one until the first loss is
reported, one in the round in recovery after which it ends; half of one to spare. A plateau takes three rounds."""


@dataclass(frozen=True)
class Case:
    """Case of the draft as far as it shows from outside, or one of ours.

    Attributes:
        says: Condition.
        value: Returns the measured value.
        low, high: Bounds of the value.
        world: Returns the scenario's fields that differ, from rate and round trip.
        q: Size of the buffer in multiples of what the path holds; at least `LEAST_PACKETS`.
        draft: Heading of the draft's case; empty for a case of ours.
    """

    says: str
    value: Callable[[Record], float]
    low: float
    high: float
    world: Callable[[float, float], dict[str, Any]] = lambda rate, rtt: {}
    q: float = 4.0
    draft: str = ""


def _get_link_mbps(record: Record) -> float:
    return record.scenario.links[0].mean_mbps(DURATION_S)


def _pacing_share(record: Record) -> float:
    """Return the median pacing rate from 5 s on, over the link's rate."""
    pace = record.state(0, "pacing_mbps")[record.time_s >= 5]
    pace = pace[np.isfinite(pace)]
    return float(np.median(pace)) / _get_link_mbps(record) if len(pace) else math.nan


def _startup_s(record: Record) -> float:
    """Return the last time at which pacing is at twice the link's rate."""
    fast = np.flatnonzero(np.nan_to_num(record.state(0, "pacing_mbps")) >= 2 * _get_link_mbps(record))
    return float(record.time_s[fast[-1]]) if len(fast) else 0.0


def _startup_rounds(record: Record) -> float:
    """Return the last time at which pacing is at twice the link's rate, in round trips."""
    return _startup_s(record) * 1e3 / record.scenario.propagation_rtt_ms()


def _path_packets(record: Record) -> float:
    """Return the packets that the path holds, at least `LEAST_PACKETS`."""
    return max(bdp_packets(_get_link_mbps(record), record.scenario.propagation_rtt_ms()), LEAST_PACKETS)


def _startup_lost(record: Record) -> float:
    """Return the packets dropped until start-up is over, over what the path holds."""
    return float(record.get_flow_increase(0, "queue_drops", (0.0, _startup_s(record) + SAMPLE_S))[0]) / _path_packets(record)


def _least_in_flight(record: Record) -> float:
    """Return the least data in flight in the two seconds after start-up, over what the path holds."""
    after = _startup_s(record)
    flying = record.state(0, "in_flight_packets")[(record.time_s > after) & (record.time_s <= after + 2)]
    return float(np.nanmin(flying)) / _path_packets(record) if len(flying) else math.nan


def _count_dips(record: Record) -> float:
    """Return how often, from 4 s on, at most 0.6 of what the path holds (or `LEAST_PACKETS`) is in flight for 0.18 s."""
    held = max(0.6 * bdp_packets(_get_link_mbps(record), record.scenario.propagation_rtt_ms()), LEAST_PACKETS)
    low = (record.state(0, "in_flight_packets") <= held) & (record.time_s >= 4)
    edges = np.diff(np.concatenate([[0], low.astype(int), [0]]))
    return float((np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0) >= 0.18 / SAMPLE_S).sum())


def _between_probes_s(record: Record) -> float:
    """Return the median time from one period of faster pacing to the next."""
    pace = record.state(0, "pacing_mbps")
    up = np.flatnonzero(np.diff(((pace > 1.15 * _get_link_mbps(record)) & (record.time_s >= 5)).astype(int)) > 0)
    return float(np.median(np.diff(record.time_s[up]))) if len(up) > 2 else math.nan


def _after_change(record: Record) -> np.ndarray:
    """Return starts of half-seconds by which a queue from before the change, however full, has drained."""
    full = record.scenario.links[0].queue_packets
    assert full is not None
    rate = float(record.capacity_mbps((CHANGE_S + 1, DURATION_S))[0])
    gone = full * PACKET_BITS * 1e-6 / rate + record.scenario.propagation_rtt_ms() * 1e-3
    return np.arange(CHANGE_S + math.ceil(gone * 10) / 10, DURATION_S - 0.5, 0.1)


def _recovery_s(record: Record) -> float:
    """Return the seconds after the change until 80 % of the link are used over half a second."""
    times = _after_change(record)
    share = [float(record.wire_mbps(0, (t, t + 0.5))[0] / record.capacity_mbps((t, t + 0.5))[0]) for t in times]
    reached = np.array(share) >= 0.8
    return float(times[np.argmax(reached)] - CHANGE_S) if reached.any() else DURATION_S - CHANGE_S


def _drain_s(record: Record) -> float:
    """Return the seconds after the change until the queue is under half a round trip, or `LEAST_PACKETS`, for half a second."""
    packet_ms = PACKET_BITS * 1e-3 / float(record.capacity_mbps((CHANGE_S + 1, DURATION_S))[0])
    bound = max(0.5 * record.scenario.propagation_rtt_ms(), LEAST_PACKETS * packet_ms)
    times = _after_change(record)
    low = np.array([np.nan_to_num(record.queue_ms((t, t + 0.5))[0], nan=np.inf) <= bound for t in times])
    return float(times[np.argmax(low)] - CHANGE_S) if low.any() else DURATION_S - CHANGE_S


def _link_use(record: Record) -> float:
    """Return the used share of the capacity from 5 s on: of the link, or of a policer's tokens."""
    policer = record.scenario.links[0].discipline
    tokens = policer.parameters() if isinstance(policer, Discipline) else {}
    return float(record.wire_mbps(0, SETTLED)[0] / tokens.get("rate_mbps", record.capacity_mbps(SETTLED)[0]))


def _drop_share(record: Record) -> float:
    """Return the share of sent packets that the queue drops, from 5 s on."""
    sent, drops = (float(record.get_flow_increase(0, key, SETTLED)[0]) for key in ("packets_sent", "queue_drops"))
    return drops / sent if sent else math.nan


def _make_policed_link(rate: float, rtt: float) -> dict[str, Any]:
    """Return a link of four times the rate with a policer that passes the rate, and bursts of what the path holds.

    The queue holds what has passed the policer and is never full.
    """
    burst = bdp_packets(rate, rtt) * PACKET_BITS / 8
    return {"rate": 4 * rate, "discipline": {"name": "policer", "rate_mbps": rate, "burst_bytes": burst}}


def _use_after_pause(record: Record) -> float:
    """Return the used share of the link in the first second after a pause, mean over pauses."""
    starts = [10.0, 20.0]
    late = record.scenario.propagation_rtt_ms() * 1e-3
    spans = [(t + late, t + late + 1.0) for t in starts]
    return float(np.mean([record.wire_mbps(0, s)[0] / record.capacity_mbps(s)[0] for s in spans]))


POLICERS = "Handling Token Bucket Policers"
CASES = {
    "startup-plateau": Case("start-up ends on a plateau: pacing over the link's rate", _pacing_share, LOW, HIGH,
                            draft="Exiting STARTUP on Bandwidth Plateau"),
    "startup-rounds": Case("start-up is over, round trips from the start", _startup_rounds, 0, 40),
    "startup-loss": Case("start-up ends on loss, buffer of 0.5 BDP: packets lost until it is over, in BDPs",
                         _startup_lost, 0.1, LOST_BDPS, q=0.5),
    "drain": Case("drain: least in flight after start-up over the BDP", _least_in_flight, 0, 1.1,
                  draft="Exiting DRAIN Based on Inflight"),
    "probe-rtt": Case("in flight at half the BDP for 0.2 s every 5 s: times from 4 to 30 s", _count_dips, 3, 6,
                      draft="Entering and Exiting PROBE_RTT"),
    "probe-bw": Case("time from one probe for bandwidth to the next (s)", _between_probes_s, 0.5, 6),
    "rate-up": Case("a rate ten times as high: seconds to 80 %", _recovery_s, 0, 8,
                    lambda rate, rtt: {"trace": RateTrace([0, CHANGE_S], [rate / 10, rate])},
                    draft="Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached"),
    "rate-down": Case("a rate of a tenth: seconds until the queue is small", _drain_s, 0, 8,
                      lambda rate, rtt: {"trace": RateTrace([0, CHANGE_S], [rate, rate / 10])},
                      draft="Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down"),
    "aggregation": Case("ACKs in bursts every 20 ms: use of the link", _link_use, 0.85, 1.05,
                        lambda rate, rtt: {"back": DeliveryTrace([20.0] * 200, period_ms=20.0)},
                        draft="Achieving Expected Cruise Bandwidth on a Link With Aggregation"),
    "tiny": Case("64 kbit/s, a BDP of a packet or less: use of the link", _link_use, 0.85, 1.05,
                 lambda rate, rtt: {"rate": 0.064}, draft="Correctly Managing Sub-Packet BDPs"),
    "loss": Case("1 % of random loss, under the threshold: use", _link_use, 0.85, 1.05, lambda rate, rtt: {"loss": 0.01}),
    "spurious": Case("a delay that grows by 0.4 s for 0.5 s: seconds to 80 % again", _recovery_s, 0, 4,
                     lambda rate, rtt: {"delay_ms": DelaySchedule([0, 10, 10.5], [rtt / 2, rtt / 2 + 400, rtt / 2])},
                     draft="Handling Spurious RTO Recovery"),
    "policer": Case("a policer with a burst of one BDP: use of its rate", _link_use, 0.85, 1.05, _make_policed_link,
                    draft=POLICERS),
    "policer-loss": Case("the same: share lost from 5 s on", _drop_share, 0, 0.05, _make_policed_link, draft=POLICERS),
    "app-limited": Case("rests of 5 s: use of the link in the second after each", _use_after_pause, 0.75, 1.05,
                        lambda rate, rtt: {"app": OnOff(on_s=5, off_s=5)},
                        draft="Skipping PROBE_RTT Due to Application-Limited Sending"),
}  # fmt: skip


def make_cells() -> Iterator[FieldCell]:
    """Yield every case on every path."""
    for key, case in CASES.items():
        for rate, rtt in PATHS:
            yield _make_cell(key, case, rate, rtt)


def _make_cell(key: str, case: Case, rate: float, rtt: float) -> FieldCell:
    own = {"rate": rate, "back": None, "app": None, **case.world(rate, rtt)}
    back, app, mbps = own.pop("back"), own.pop("app"), own.pop("rate")
    link = {"delay_ms": rtt / 2, "queue_packets": max(LEAST_PACKETS, compute_queue(mbps, rtt, case.q)), **own}
    links = [
        Link(name="bottleneck", rate_mbps=None if "trace" in link else mbps, **link),
        Link(name="return", delay_ms=rtt / 2, trace=back),
    ]
    flow = Flow(cc=AGENT, path=(0,), return_path=(1,), **({"app": app} if app else {}))
    name = f"{key}-{rate}mbps-{rtt}ms"
    scenario = Scenario(links=links, flows=[flow], duration_s=DURATION_S, name=name)

    def measure(record: Record) -> dict[str, float]:
        value = case.value(record)
        return {
            "passed": float(case.low <= value <= case.high),
            "value": value,
            "use": _link_use(record),
            "inflation": _inflation(record),
        }

    return FieldCell(
        name, key, scenario, derive_seed("bbr3", name), measure=measure, about={"case": key, "rate": rate, "rtt": rtt}
    )


def _inflation(record: Record) -> float:
    return float(record.rtt_ms(0, SETTLED)[0]) / record.scenario.base_rtt_ms()


REASONS = {
    "rate-down": "the highest bandwidth is forgotten after two probes, of which one that ProbeRTT cuts short is none; behind a "
    f"full buffer of {CASES['rate-down'].q:g} times the old path's product ProbeRTT cuts all of them short",
    "loss": "each lossy round of a cruise lowers the bandwidth that it may have to what was delivered in it, and of hundreds "
    "of packets a round every one is lossy",
}
"""Known reasons why `bbr3` fails cases."""
METRICS = (
    Metric("passed", "passed (%)", 0, "1 where the value lies where it must", 100),
    Metric("value", "value", 3, "what the case measures"),
    Metric("use", "use of the link (%)", 1, "carried over what the link, or its policer, lets pass, from 5 s on", 100),
    Metric("inflation", "RTT / base", 2, "mean round-trip time over the least possible one, from 5 s on"),
)


def judge(results: Results) -> Report:
    """Rank controllers by the number of cases that they pass, and list the value of each case."""
    passed = {name: float(results.values(name, "passed").sum()) for name in results.names}
    order = sorted(results.names, key=lambda name: -passed[name])
    rows = [[name, f"{passed[name]:.0f}", str(len(results.values(name, "passed")))] for name in order]
    each = []
    for cell in results.cells:
        case = CASES[cell.family]
        values = [float(results.get_values(name, "value", [cell])[0]) for name in order]
        fits = [f"{value:.2f}{'' if case.low <= value <= case.high else ' (out)'}" for value in values]
        each.append([cell.name, case.says, f"{case.low:g} to {case.high:g}", *fits])
    tables = [Table("Cases passed", ["controller", "passed", "of"], rows),
              Table("Values", ["world", "measure", "must be", *order], each)]  # fmt: skip
    first = f"bbr3 passes {passed['bbr3']:.0f} of {len(results.cells)}." if "bbr3" in passed else f"{order[0]} passes most."
    return Report([first], order, tables)


def check_signs(results: Results) -> list[Sign]:
    """Return the sign that BBR version 3 passes its own cases."""
    own = results.values("bbr3", "passed")
    failed = [cell.name for cell in results.cells if results.get_values("bbr3", "passed", [cell])[0] == 0]
    shown = f"{own.sum():.0f} of {len(own)}" + (f"; not {', '.join(failed)}" if failed else "")
    reason = "; ".join(f"{key}: {why}" for key, why in REASONS.items() if any(name.startswith(f"{key}-") for name in failed))
    says, source = "bbr3 passes every case that shows from outside", "draft-ietf-ccwg-bbr, appendix; bounds ours"
    return [Sign(says, source, bool(own.all()) if len(own) else None, shown, reason)]


OURS = [key for key, case in CASES.items() if not case.draft]
"""Cases that the draft does not have."""
UNSEEN = (
    "Exiting STARTUP on Loss When Application-Limited",
    "Exiting DRAIN Based on Time",
    "Exiting PROBE_UP on Bandwidth Plateau",
    "Exiting PROBE_UP on Loss When Application-Limited",
    "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss",
    "Exiting PROBE_DOWN on Inflight",
    "Exiting PROBE_DOWN After Max Time",
    "Achieving Expected STARTUP Bandwidth on a Link With Aggregation",
    "Entering and Exiting PROBE_RTT During STARTUP",
    "Handling Loss During PROBE_UP After inflight_longterm is Set",
    "Handling Application-Limited Sending During PROBE_REFILL",
)
REORDERED = "Handling Spurious Fast Recovery"
"""The draft's other cases, by their headings (`UNSEEN`, `REORDERED`)."""


def _format_span(column: int) -> str:
    """Return the least and the largest of the paths' rates (column 0) or round trips (1)."""
    values = [path[column] for path in PATHS]
    return f"{min(values)} to {max(values)}"


SUITE = FieldSuite(
    name="bbr3/conformance",
    summary="cases of BBR version 3's draft that show from outside, on four paths",
    load=make_loader(2, lambda: list(make_cells())),
    measure=make_measure(METRICS),
    sample_s=SAMPLE_S,
    metrics=METRICS,
    scatter=("inflation", "use"),
    families={key: case.says for key, case in CASES.items()},
    source="ietf-wg-ccwg/draft-ietf-ccwg-bbr (August 2026), example test cases",
    rules=(
        "A case is passed where its value lies within bounds; bounds are ours, the draft states behaviour.",
        f"{', '.join(OURS)} are cases of ours, the others the draft's as they show from outside.",
        f"Paths of {_format_span(0)} Mbit/s and {_format_span(1)} ms (`tiny`: 64 kbit/s), where the draft names under 1 ms to "
        "1 s and 64 kbit/s to 10 Gbit/s.",
    ),
    judge=judge,
    compares=False,
    signs=check_signs,
    not_run=(
        OmittedWorlds("; ".join(UNSEEN), "BBR's own state in counters"),
        OmittedWorlds(REORDERED, "nothing: paths that reorder are in `rfc9743`, and `spurious` is of time-outs"),
    ),
    reference=("bbr3",),
)
