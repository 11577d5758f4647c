"""Accuracy of a receiver's queueing delay estimate, and sharing of a link by flows that Nuwa limits.

    python -m studies.receiver delay | fairness | cubic [seeds=N]

* delay: the estimate at the end of every 5 ms against the time that the last packet that had arrived by then waited in the
  queue, as the link counted it: the median of the absolute difference. Clocks 50 ms apart, drifting by 50 ppm either way, time
  stamps of a microsecond and of a millisecond; links of a constant rate and links that change every 0.1 s; a route that becomes
  30 ms longer or shorter; windows set by Nuwa's rule, windows that an agent draws anew every 0.1 s, and fixed ones.
* fairness: flows that join every 10 s; Jain's index of the deliveries of each in the last two of the ten seconds.
* cubic: two flows that Nuwa limits, then two of CUBIC, one every 10 s; the shares of the last 20 s.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import netbuf_gym as nb
from netbuf_gym import _core
from netbuf_gym.scenarios import Flow, Scenario, route_change
from netbuf_gym.scenarios.native import build_world_config
from netbuf_gym.traces import RateTrace
from netbuf_gym.utils.arguments import check_integer
from netbuf_gym.utils.overrides import read_overrides
from studies.common import kept, replay

TICK_NS = 5_000_000
SETTLE_S, DELAY_S = 5, 60
CHANGE_S, AGAIN_S = 30, 15
CHECKOUT = Path(__file__).resolve().parents[2]
Row = dict[str, Any]
RTT_MS, MSS, WIRE_BYTES = 40, 1448, 1500
LINKS = (("1 Mbit/s", 1), ("10 Mbit/s", 10), ("50 Mbit/s", 50), ("4 to 20 Mbit/s, new every 0.1 s", None))
WINDOWS = ("Nuwa", "an agent's, at random", "fixed")
UNITS = {1: "1 us", 1000: "1 ms"}
CHANGES = {0: "fixed route", 30: "15 s after +30 ms", -30: "15 s after -30 ms"}
CHANGES_MS, DRIFTS_PPM = tuple(CHANGES), (-50, 50)
BUFFERS, TARGETS_MS, SEEDS = (100, 500), (25, 75, 150), 3
SHARES = ("nuwa_0_mbps", "nuwa_1_mbps", "cubic_0_mbps", "cubic_1_mbps")
STAGE_S, SHARE_S = 10, 2


def generate_rates(seed: int) -> RateTrace:
    """Return the rate of a link that changes every 0.1 s, uniform between 4 and 20 Mbit/s."""
    rng = np.random.default_rng(seed)
    times = np.arange(0, DELAY_S, 0.1)
    return RateTrace(times, rng.uniform(4, 20, len(times)), period_s=float(DELAY_S))


def make_delay_scenario(link: float | None, change_ms: float, unit: int, ppm: float, seed: int) -> Scenario:
    """Return the scenario of one estimate.

    Args:
        link: Rate in Mbit/s; None: varying, see `generate_rates`.
        change_ms: Change of the route's delay; 0: none.
        unit: Resolution of time stamps in microseconds.
        ppm: Drift of the clock.
        seed: Seed of the varying rate.
    """
    trace = None if link else generate_rates(seed)
    scenario = nb.scenarios.dumbbell(
        rate_mbps=link,
        trace=trace,
        rtt_ms=RTT_MS + 2 * 30,
        buffer_packets=1000,
        duration_s=DELAY_S,
        senders=["receiver_driven"],
        delays=route_change(delay_ms=RTT_MS / 2 + 30, change_ms=change_ms, at_s=CHANGE_S) if change_ms else None,
    )
    flow = replace(
        scenario.flows[0],
        receiver="agent",
        clock_offset_ms=50,
        clock_drift_ppm=ppm,
        timestamp_resolution_us=unit,
    )
    return replace(scenario, flows=(flow,))


def measure_delay_errors(cases: list[tuple], windows: str, seed: int) -> list[np.ndarray]:
    """Return |estimate - truth| in ms for each case, one value for each tick, NaN where nothing had arrived."""
    batch = _core.Batch(len(cases), 1, 1, kind="receiver")
    rng = np.random.default_rng(seed)
    for index, (link, change_ms, unit, ppm) in enumerate(cases):
        batch.reset(index, build_world_config(make_delay_scenario(link, change_ms, unit, ppm, seed)), seed)
    column = {name: batch.fields.index(name) for name in ("queue_delay_s", "true_queue_delay_mean_s", "packets_received")}
    control = {name: batch.controls.index(name) for name in ("k", "window_bytes")}
    product = np.array([(case[0] or 12) * 1e6 / 8 * (RTT_MS + 60) * 1e-3 for case in cases]) + 10 * MSS
    ticks = DELAY_S * 10**9 // TICK_NS
    seen = {name: np.empty((ticks, len(cases))) for name in column}
    for tick in range(ticks):
        batch.control[:] = np.nan
        if windows != "Nuwa" and tick * TICK_NS >= 2 * 10**9 and tick % 20 == 0:
            batch.control[:, 0, control["k"]] = 0
            share = rng.uniform(0.3, 1.6, len(cases)) if windows != "fixed" else 1.3
            batch.control[:, 0, control["window_bytes"]] = product * share
        batch.advance(TICK_NS)
        for name, at in column.items():
            seen[name][tick] = batch.telemetry[:, 0, at]
    ends = np.arange(1, ticks + 1) * TICK_NS * 1e-9
    errors = []
    for index, (link, change_ms, _, _) in enumerate(cases):
        truth, last = seen["true_queue_delay_mean_s"][:, index].copy(), np.nan
        for tick, value in enumerate(truth):
            truth[tick] = last = last if np.isnan(value) else value
        one_way = (RTT_MS / 2 + 30 + np.where(ends > CHANGE_S + 0.1, change_ms, 0)) * 1e-3
        left = np.floor((ends - one_way - WIRE_BYTES * 8e-6 / (link or 12)) / (TICK_NS * 1e-9)).astype(int)
        error = 1e3 * np.abs(seen["queue_delay_s"][:, index] - truth[np.clip(left, 0, None)])
        errors.append(np.where(seen["packets_received"][:, index] > 0, error, np.nan))
    return errors


def measure_delay(seeds: int) -> list[Row]:
    """Return medians of the errors by link, window, change of the route, unit of time stamps, and drift."""
    del seeds  # one seed suffices: medians of ten thousand packets
    ends = np.arange(1, DELAY_S * 10**9 // TICK_NS + 1) * TICK_NS * 1e-9
    cases = list(itertools.product([rate for _, rate in LINKS], CHANGES_MS, UNITS, DRIFTS_PPM))
    names = {rate: name for name, rate in LINKS}
    rows = []
    for windows in WINDOWS:
        for (rate, change, unit, ppm), error in zip(cases, measure_delay_errors(cases, windows, 1), strict=True):
            median = float(np.nanmedian(error[ends > (CHANGE_S + AGAIN_S if change else SETTLE_S)]))
            where = {"window": windows, "link": names[rate], "change_ms": change, "unit_us": unit, "ppm": ppm}
            rows.append({**where, "error_ms": median})
    return rows


def format_delay_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table of errors, the worse of the two drifts."""
    worst: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    for row in rows:
        own = worst.setdefault((row["link"], row["window"]), {})
        key = int(row["change_ms"]), int(row["unit_us"])
        own[key] = max(own.get(key, 0.0), float(row["error_ms"]))
    order = list(itertools.product(CHANGES_MS, UNITS))
    head = " | ".join(f"{CHANGES[change]}, {UNITS[unit]}" for change, unit in order)
    lines = [f"| Link | Window | {head} |", "|---|---|" + "---:|" * len(order)]
    for (link, window), own in worst.items():
        lines.append(f"| {link} | {window} | " + " | ".join(f"{own[key]:.2f}" for key in order) + " |")
    return "\n".join(["Median of the error, ms, the worse of the two drifts:", "", *lines])


def make_nuwa_flow(target_ms: float, start_s: float, **more: Any) -> Flow:
    """Return a flow that Nuwa limits, from `start_s` on."""
    return Flow(
        cc="receiver_driven",
        receiver={"name": "nuwa", "target_ms": target_ms, **more},
        start_s=start_s,
        path=["bottleneck"],
        return_path=["return"],
    )


def measure_delivered_bytes(
    flows: list[Flow], rtt_ms: float, buffer_packets: int, moments_s: list[float], seed: int
) -> np.ndarray:
    """Return the bytes that each flow had delivered at each moment, `(moments, flows)`."""
    scenario = nb.scenarios.dumbbell(rtt_ms=rtt_ms, buffer_packets=buffer_packets, duration_s=moments_s[-1])
    world = _core.World(build_world_config(replace(scenario, flows=tuple(flows))), seed)
    rows = []
    for moment in moments_s:
        world.run(round(moment * 1e9))
        rows.append([flow["delivered_bytes"] for flow in world.flow_stats()])
    return np.array(rows, float)


def draw_start_times(seed: int, flows: int) -> list[float]:
    """Return the flows' start times: every 10 s, plus up to half a second drawn by the seed."""
    return [STAGE_S * i + offset for i, offset in enumerate(np.random.default_rng(seed).uniform(0, 0.5, flows))]


def compute_jain_index(shares: np.ndarray) -> float:
    """Return Jain's index of the shares."""
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))


def measure_fairness(seeds: int) -> list[Row]:
    """Return Jain's index for each number of flows, and the total delivered rate, by world and seed."""
    rows = []
    for rtt_ms, buffer_packets, target_ms, seed in itertools.product((20, 40, 80), BUFFERS, TARGETS_MS, range(seeds)):
        began = draw_start_times(seed, 4)
        moments = [t for n in (1, 2, 3) for t in (began[n] + STAGE_S - SHARE_S, began[n] + STAGE_S)]
        moments[1], moments[3] = min(moments[1], began[2]), min(moments[3], began[3])
        got = measure_delivered_bytes([make_nuwa_flow(target_ms, t) for t in began], rtt_ms, buffer_packets, moments, seed)
        indices = {f"jain_{i + 2}": compute_jain_index(got[2 * i + 1, : i + 2] - got[2 * i, : i + 2]) for i in range(3)}
        rate = float((got[-1] - got[0]).sum() * 8e-6 / (moments[-1] - moments[0]))
        where = {"rtt_ms": rtt_ms, "buffer_packets": buffer_packets, "target_ms": target_ms, "seed": seed}
        rows.append({**where, **indices, "rate_mbps": rate})
    return rows


def format_fairness_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table of the least index over the seeds, and the number of stages that reach 0.95."""
    lines = ["| RTT ms | Buffer | Target ms | 2 flows | 3 flows | 4 flows | Mbit/s |", "|---:|---:|---:|---:|---:|---:|---:|"]
    stages = np.array([[float(row[f"jain_{number}"]) for number in (2, 3, 4)] for row in rows])
    worlds = group_by_world(rows, ("rtt_ms", "buffer_packets", "target_ms"))
    for where, own in worlds.items():
        least = " | ".join(f"{min(float(row[f'jain_{number}']) for row in own):.3f}" for number in (2, 3, 4))
        rate = np.mean([float(row["rate_mbps"]) for row in own])
        lines.append(f"| {' | '.join(where)} | {least} | {rate:.2f} |")
    seeds = len(rows) // len(worlds)
    head = f"Jain's index, the least of {seeds} seeds; {(stages >= 0.95).sum()} of {stages.size} stages reach 0.95:"
    return "\n".join([head, "", *lines])


def measure_cubic_shares(seeds: int) -> list[Row]:
    """Return the rates of two flows under Nuwa and two of CUBIC, Mbit/s, by world and seed."""
    rows = []
    for buffer_packets, target_ms, seed in itertools.product(BUFFERS, TARGETS_MS, range(seeds)):
        began = draw_start_times(seed, 4)
        flows = [make_nuwa_flow(target_ms, t) for t in began[:2]]
        flows += [Flow(cc="cubic", start_s=t, path=["bottleneck"], return_path=["return"]) for t in began[2:]]
        got = measure_delivered_bytes(flows, RTT_MS, buffer_packets, [40.0, 60.0], seed)
        shares = dict(zip(SHARES, ((got[1] - got[0]) * 8e-6 / 20).tolist(), strict=True))
        rows.append({"buffer_packets": buffer_packets, "target_ms": target_ms, "seed": seed, **shares})
    return rows


def format_cubic_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table of means over the seeds."""
    lines = ["| Buffer | Target ms | Nuwa | CUBIC | Jain |", "|---:|---:|---:|---:|---:|"]
    worlds = group_by_world(rows, ("buffer_packets", "target_ms"))
    for where, own in worlds.items():
        shares = np.array([[float(row[name]) for name in SHARES] for row in own])
        mean, index = shares.mean(axis=0), np.mean([compute_jain_index(share) for share in shares])
        had = f"{mean[0]:.2f}, {mean[1]:.2f} | {mean[2]:.2f}, {mean[3]:.2f}"
        lines.append(f"| {' | '.join(where)} | {had} | {index:.2f} |")
    seeds = len(rows) // len(worlds)
    return "\n".join([f"Mbit/s of each from 40 to 60 s, means of {seeds} seeds, {RTT_MS} ms:", "", *lines])


def group_by_world(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> dict[tuple[str, ...], list[Mapping[str, str]]]:
    """Return the seeds' rows of each world, identified by the given columns."""
    found: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in columns), []).append(row)
    return found


MEASUREMENTS: dict[str, tuple[Callable[[int], list[Row]], Callable[[Sequence[Mapping[str, str]]], str]]] = {
    "delay": (measure_delay, format_delay_table),
    "fairness": (measure_fairness, format_fairness_table),
    "cubic": (measure_cubic_shares, format_cubic_table),
}
"""By section the function that measures its rows and the function that formats them."""


def keep_section(section: str, seeds: int, root: Path) -> Path:
    """Measure a section, keep its rows and return their file."""
    rows = MEASUREMENTS[section][0](seeds)
    words = f" seeds={seeds}" if seeds != SEEDS else ""
    header = {"command": f"python -m studies.receiver {section}{words}"}
    return kept.write_rows(root, "receiver", section, header, kept.format_rows(list(rows[0]), rows))


def find_stale_reason(found: kept.KeptRows) -> str:
    """Return why a section's rows are stale: the measurement comes out differently now; "": it does not."""
    first, measures = found.records[0], found.records[0].keys()
    seeds = 1 + max((int(row["seed"]) for row in found.records), default=0) if "seed" in first else 1
    rows = MEASUREMENTS[found.section][0](seeds)
    differing: dict[str, tuple[float, str]] = {}
    for number, (was, now) in enumerate(zip(found.records, rows, strict=True), 1):
        numbers = [name for name in measures if not isinstance(now[name], str)]
        if difference := replay.find_largest_difference(was, now, numbers):
            differing[f"row {number}"] = difference
    return replay.describe_differences(differing, len(rows))


def main(argv: Sequence[str]) -> int:
    """Measure a section, keep its rows, print its table and return 0.

    Args:
        argv: Name of the section, then optionally `seeds=N` for the sections of shares.
    """
    given = read_overrides(argv[1:], ("seeds",))
    path = keep_section(argv[0], check_integer("seeds", given.get("seeds", SEEDS), 1, 1000), CHECKOUT)
    found = kept.read_rows(CHECKOUT, "receiver", argv[0])
    assert found is not None
    print(f"{MEASUREMENTS[argv[0]][1](found.records)}\nwritten to {path}")
    return 0
