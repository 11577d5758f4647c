"""Genet's synthetic test worlds: drawn from its widest training range, as the stored 572 are not part of this package."""

from __future__ import annotations

import math

import numpy as np

from netbuf_gym.evaluation.suites.field.suite import (
    Column,
    FieldCell,
    FieldSuite,
    OmittedWorlds,
    Report,
    Results,
    Sign,
    derive_seed,
    make_loader,
    make_measure,
    make_path,
    rank_controllers,
)
from netbuf_gym.evaluation.suites.recorder import Record
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.traces import RateTrace

WORLDS, DURATION_S, LEAST_STEP_S = 572, 30.0, 0.1
BY_RATE = {"slow": (0.0, 2.0), "medium": (2.0, 10.0), "fast": (10.0, math.inf)}
FAMILIES = {
    "slow": "mean rates below 2 Mbit/s",
    "medium": "mean rates of 2 to 10 Mbit/s",
    "fast": "mean rates of 10 Mbit/s and more",
}


def make_cells() -> list[FieldCell]:
    """Return the worlds, each drawn by its own generator."""
    made = []
    for number in range(1, WORLDS + 1):
        name = f"genet-{number:03d}"
        rng = np.random.default_rng(derive_seed(name))
        high = 10 ** rng.uniform(-1, 2)
        low = 10 ** rng.uniform(-1, math.log10(high)) if high > 0.1 else high
        step = max(float(rng.uniform(0, 15)), LEAST_STEP_S)
        times = np.arange(0, DURATION_S, step)
        rates = rng.uniform(low, high, len(times))
        d = 10 ** rng.uniform(math.log10(2), math.log10(200))
        loss = 10 ** rng.uniform(-5, math.log10(0.05))
        queue = max(2, round(rng.uniform(0.2, 3) * high * 2 * d * 1e3 / 12_000))
        trace = RateTrace(times, rates)
        mean = trace.mean_mbps(DURATION_S)
        scenario = make_path(
            None, 2 * d, [(AGENT, 0.0, None)], DURATION_S, queue_packets=queue, loss=loss if loss >= 1e-4 else 0.0, trace=trace
        )
        family = next(key for key, (least, most) in BY_RATE.items() if least <= mean < most)
        about = {"mean": mean, "d": d, "loss": loss, "queue": queue, "step": step}
        made.append(FieldCell(name, family, scenario, derive_seed(name), measure=measure_world, about=about))
    return made


def measure_world(record: Record) -> dict[str, float]:
    """Return Genet's rewards, in Aurora's form and normalised by the mean capacity, and further metrics."""
    whole = (0.0, record.scenario.duration_s)
    mbps, capacity = float(record.wire_mbps(0, whole)[0]), float(record.capacity_mbps(whole)[0])
    rtt_ms = float(record.rtt_ms(0, whole)[0])
    rtt_s = rtt_ms * 1e-3 if math.isfinite(rtt_ms) else record.scenario.duration_s
    lost = float(np.nan_to_num(record.compute_loss_share(0, whole)[0]))
    return {
        "normalised": 500 * mbps / capacity - 1000 * rtt_s - 2000 * lost,
        "reward": 10 * mbps * 1e6 / 12_000 - 1000 * rtt_s - 2000 * lost,
        "share": mbps / capacity,
        "rtt_ms": rtt_s * 1e3,
        "lost": lost,
        "inflation": rtt_s * 1e3 / record.scenario.base_rtt_ms(),
    }


METRICS = (
    Metric("normalised", "normalised reward", 1, "500 throughput / mean capacity - 1000 RTT in s - 2000 loss"),
    Metric("reward", "reward", 1, "10 throughput in packets/s - 1000 RTT in s - 2000 loss"),
    Metric("share", "throughput / capacity (%)", 1, "on the wire, over the mean capacity", 100),
    Metric("rtt_ms", "RTT (ms)", 1, "mean round-trip time"),
    Metric("lost", "lost (%)", 2, "at the queue and at random, of those sent", 100),
    Metric("inflation", "RTT / base", 2, "mean round-trip time over the least possible one"),
)


def judge(results: Results) -> Report:
    """Rank controllers by the mean normalised reward: fast worlds dominate the mean of the plain one."""

    def mean(metric: Metric) -> Column:
        less = metric.key in ("rtt_ms", "lost", "inflation")
        return lambda name: metric.factor * results.mean(name, metric.key), metric.digits, less

    columns = {metric.label: mean(metric) for metric in METRICS}
    order, table = rank_controllers(results, columns, "Ranking by normalised reward", first_decides=True)
    return Report(
        [f"{order[0]} has the highest normalised reward: {results.mean(order[0], 'normalised'):.1f}."], order, [table]
    )


def check_signs(results: Results) -> list[Sign]:
    """Return the published order, which is of Genet's own agents, trained on ranges from narrow to wide; none is here."""
    says = "a curriculum is ahead of training on wide ranges (RL3), and that of narrow ones (RL1)"
    source = "GenetProject/Genet, fig_reproduce/fig9: Genet 76, RL2 68, RL3 53.5, RL1 53"
    return [Sign(says, source, None, "needs agents trained with each range and with a curriculum on these worlds")]


SUITE = FieldSuite(
    name="genet/synthetic",
    summary="572 worlds of Genet's widest range: rates that are drawn anew, loss, queues",
    load=make_loader(1, make_cells),
    measure=make_measure(METRICS),
    sample_s=1.0,
    metrics=METRICS,
    scatter=("inflation", "share"),
    families=FAMILIES,
    source="GenetProject/Genet: config/cc/udr3.json, src/common/utils.py",
    rules=(
        "Ranked by the mean normalised reward.",
        "The worlds are drawn here from the range of udr3.json; the 572 files of the repository are other draws of "
        "such ranges.",
    ),
    judge=judge,
    signs=check_signs,
    not_run=(
        OmittedWorlds("the 572 stored worlds, cellular and Ethernet traces", "nothing: they are not part of the package"),
        OmittedWorlds("Aurora's training range", "nothing: rates and queues of it lie within this one's"),
    ),
)
