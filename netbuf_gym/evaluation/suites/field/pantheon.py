"""Pantheon's emulated paths, which are also mvfst-rl's training and test jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from netbuf_gym import scenarios, traces
from netbuf_gym.evaluation.suites.field.suite import (
    Column,
    FieldCell,
    FieldSuite,
    Report,
    Results,
    derive_seed,
    make_loader,
    make_measure,
    make_path,
    rank_controllers,
)
from netbuf_gym.evaluation.suites.recorder import Record
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.scenarios import Link, Scenario
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.traces import DeliveryTrace

DURATION_S, RUNS, MVFST_RUNS = 30.0, 5, 3
POLICED = {job: (rate, d) for job, (rate, d) in enumerate([(r, d) for d in (10, 50) for r in (12, 60, 108)], 7)}
SHALLOW_BYTES = dict(zip(range(15, 19), (9_000, 30_000, 45_000, 90_000), strict=True))
JOBS = {
    **{n: f"path {n}, calibrated to a real one" for n in range(1, 7)},
    **{n: f"{rate} Mbit/s, {d} ms, a buffer of one packet" for n, (rate, d) in POLICED.items()},
    13: "12 Mbit/s, ACKs one in 100 ms",
    14: "12 Mbit/s, ACKs ten at once every 200 ms",
    **{n: f"12 Mbit/s, 30 ms, a buffer of {size} bytes" for n, size in SHALLOW_BYTES.items()},
}


@lru_cache(maxsize=8)
def _make_poisson_trace(rate_mbps: float) -> DeliveryTrace:
    made = traces.generate("poisson", duration_s=DURATION_S, seed=derive_seed("pantheon", rate_mbps), rate_mbps=rate_mbps)
    assert isinstance(made, DeliveryTrace)
    return made


def make_job(number: int, flows: int) -> Scenario:
    """Return one of the 18 paths, with flows that start 10 s apart."""
    places = [(AGENT, 10.0 * k, None) for k in range(flows)]
    named: dict[str, Any] = {"more": {"name": f"pantheon-{number}"}}
    if number in scenarios.named.PANTHEON:
        rate, varies, d, buffer, loss = scenarios.named.PANTHEON[number]
        link: dict[str, Any] = {"trace": _make_poisson_trace(rate)} if varies else {}
        return make_path(None if varies else rate, 2 * d, places, DURATION_S, queue_packets=buffer, loss=loss, **link, **named)
    if number in POLICED:
        rate, d = POLICED[number]
        back = Link(name="return", rate_mbps=rate, delay_ms=d, queue_packets=1)
        return make_path(rate, 2 * d, places, DURATION_S, queue_packets=1, back=back, **named)
    if number in (13, 14):
        often = [100.0] if number == 13 else [200.0] * 10
        back = Link(name="return", trace=DeliveryTrace(often, period_ms=often[-1]), delay_ms=10)
        return make_path(12, 20, places, DURATION_S, back=back, **named)
    return make_path(12, 60, places, DURATION_S, queue_bytes=SHALLOW_BYTES[number], **named)


def make_cells(runs: int, flow_counts: tuple[int, ...]) -> Iterator[FieldCell]:
    """Yield every path with each of these numbers of flows, `runs` times."""
    for run in range(1, runs + 1):
        for number in JOBS:
            for n in flow_counts:
                name = f"job{number}-{n}flows-{run}"
                about = {"job": number, "flows": n, "run": run}
                scenario = make_job(number, n)
                yield FieldCell(name, f"job {number}", scenario, derive_seed(name), measure=measure_world, about=about)


def measure_world(record: Record) -> dict[str, float]:
    """Return mean throughput, 95th percentile of the one-way delay, loss; and mvfst-rl's reward, mean over steps of 0.1 s."""
    scenario = record.scenario
    whole = (0.0, scenario.duration_s)
    times = np.linspace(*whole, round(scenario.duration_s * 10) + 1)
    one_way = scenario.links[0].least_delay_ms
    flows = range(len(scenario.flows))
    throughput = sum(float(record.wire_mbps(i, (flow.start_s, whole[1]))[0]) for i, flow in enumerate(scenario.flows))
    p95 = record.queue_quantile_ms(0.95, times) + one_way
    lost, sent = (
        sum(float(record.get_flow_increase(i, key, whole)[0]) for i in flows for key in keys)
        for keys in (("queue_drops", "random_losses"), ("packets_sent",))
    )
    rtt = record.rtt_ms(0, times)
    least = float(np.nanmin(rtt)) if np.isfinite(rtt).any() else math.nan
    megabytes = record.goodput_mbps(0, times) / 8
    late = np.where(np.isfinite(rtt), rtt - least, 0.0)
    reward = np.log(1e-5 + megabytes) - 0.2 * np.log(1e-5 + late)
    used = throughput / float(record.capacity_mbps(whole)[0])
    return {
        "power": math.log2(throughput / p95) if throughput > 0 and p95 > 0 else math.nan,
        "throughput_mbps": throughput,
        "p95_ms": p95,
        "lost": lost / sent if sent else 0.0,
        "reward": float(np.mean(reward)),
        "share": used,
        "inflation": p95 / one_way,
    }


METRICS = (
    Metric("power", "log2(Mbit/s / p95 ms)", 3, "throughput of all flows over the 95th percentile of the one-way delay, log2"),
    Metric("throughput_mbps", "throughput (Mbit/s)", 2, "of all flows, each over its own life"),
    Metric("p95_ms", "p95 delay (ms)", 1, "one way, in intervals of 0.1 s weighted by packets"),
    Metric("lost", "lost (%)", 2, "at queues and at random, of those sent", 100),
    Metric("reward", "reward", 3, "ln(1e-5 + MB/s) - 0.2 ln(1e-5 + RTT less the least one, ms), mean over steps of 0.1 s"),
    Metric("share", "of the link (%)", 1, "throughput over what the link can carry; flows that join count from then on", 100),
    Metric("inflation", "p95 / propagation", 2, "95th percentile of the one-way delay over propagation"),
)
GROUPS = {
    "calibrated (1-6)": range(1, 7),
    "policers (7-12)": range(7, 13),
    "ACKs (13, 14)": (13, 14),
    "shallow (15-18)": range(15, 19),
}


def _compare_to_cubic(results: Results, name: str, jobs: Any) -> float:
    chosen = results.select_cells(job=list(jobs))
    own, cubic = (results.get_values(one, "power", chosen) for one in (name, "cubic"))
    known = np.isfinite(own) & np.isfinite(cubic)
    return float((own - cubic)[known].mean()) if known.any() else math.nan


def judge(results: Results) -> Report:
    """Rank controllers by log2(throughput / p95 delay) less CUBIC's, mean over jobs."""

    def over(jobs: Any) -> Column:
        return lambda name: _compare_to_cubic(results, name, jobs), 3, False

    columns = {"over CUBIC": over(JOBS), **{head: over(jobs) for head, jobs in GROUPS.items()}}
    title = "Ranking: log2(throughput / p95 delay) less CUBIC's, mean over jobs"
    order, table = rank_controllers(results, columns, title, first_decides=True)
    return Report([f"{order[0]} is first: {_compare_to_cubic(results, order[0], JOBS):+.3f} over CUBIC."], order, [table])


def judge_reward(results: Results) -> Report:
    """Rank controllers by mvfst-rl's reward."""

    def mean(jobs: Any) -> Column:
        return lambda name: results.mean(name, "reward", job=list(jobs)), 3, False

    columns = {"reward": mean(JOBS), **{head: mean(jobs) for head, jobs in GROUPS.items()}}
    order, table = rank_controllers(results, columns, "Ranking by reward", first_decides=True)
    return Report([f"{order[0]} has the highest reward: {results.mean(order[0], 'reward'):.3f}."], order, [table])


def _make_suite(name: str, summary: str, runs: int, counts: tuple[int, ...], judge: Any, score: str, source: str) -> FieldSuite:
    return FieldSuite(
        name=name,
        summary=summary,
        load=make_loader(1, lambda: list(make_cells(runs, counts))),
        measure=make_measure(METRICS),
        sample_s=0.1,
        metrics=tuple(sorted(METRICS, key=lambda one: one.key != score)),
        scatter=("inflation", "share"),
        families={f"job {number}": said for number, said in JOBS.items()},
        source=source,
        rules=(
            "Pantheon publishes no ranking; ours is log2(throughput / 95th percentile of the one-way delay) less CUBIC's, "
            "mean over jobs."
            if score == "power"
            else "mvfst-rl's own reward, of steps of 0.1 s; its delay is here the mean of a step, not the largest.",
            "Paths 1 to 3 draw Poisson deliveries at the nominal rate; the stored traces are 2 to 8 % slower.",
        ),
        judge=judge,
        reference=("cubic",),
    )


SUITES = (
    _make_suite("pantheon", "Pantheon's 18 emulated paths, one flow and three, five runs", RUNS, (1, 3), judge, "power",
           "StanfordSNR/observatory: src/scripts/experiments.yml; StanfordSNR/pantheon: src/analysis"),
    _make_suite("mvfst-rl", "mvfst-rl's 18 jobs, one flow, three runs, by its reward", MVFST_RUNS, (1,), judge_reward, "reward",
           "facebookresearch/mvfst-rl: train/experiments.yml, config/config.yaml"),
)  # fmt: skip
