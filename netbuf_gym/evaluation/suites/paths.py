"""Suites of senders' paths: the gate, the larger set for agents' cards, and the set that models are chosen on.

All three have ten families of `netbuf_gym.tasks.congestion_window.families`, TCP-PPCC's four scenarios and mixed worlds, drawn
from separate random streams; rates, round trips and buffers are spread evenly over their ranges (a Latin hypercube per family).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.evaluation.suites.suite import Cell, Metric, Suite
from netbuf_gym.scenarios.types import AGENT, MSS_BYTES, Scenario
from netbuf_gym.tasks.congestion_window.families import FAMILIES, SenderPaths, default_rivals
from netbuf_gym.tasks.congestion_window.paths import Path, PathWorld
from netbuf_gym.tasks.congestion_window.scenarios import PPCC
from netbuf_gym.utils.statistics import jain_index

TASK = "congestion_window"
MIXED = "mixed"
GATE = {
    "fixed": 28,
    "steps": 16,
    "jitter": 22,
    "cellular": 34,
    "outages": 16,
    "loss": 16,
    "delays": 14,
    "reverse": 12,
    "rivals": 16,
    "agents": 14,
    MIXED: 8,
}
"""Worlds of each family, besides the four of TCP-PPCC."""
DRAWN = [family for family in GATE if family != MIXED]
"""Families from which the worlds are drawn."""
OURS = {
    "ppcc": "TCP-PPCC's four scenarios: 10 Mbit/s, 48 ms, 100 s",
    **{family: FAMILIES[family] for family in DRAWN},
    MIXED: "two families in one world",
}
"""All families of these suites."""
AGENTS = (2, 4, 8)
"""Numbers of senders that share a bottleneck, in turn."""
COMMON_RIVALS = ("cubic", "bbr", "newreno")
DURATION_S, MOST_MBIT = 60.0, 16_000.0


@dataclass(frozen=True)
class Plan:
    """Parameters of the drawing of a set of worlds.

    Attributes:
        stream: Number of the set's own random stream.
        times: Number of worlds of each family, as a multiple of the gate's.
    """

    stream: int
    times: int


PLANS = {"gate": Plan(11, 1), "cards": Plan(12, 3), "validation": Plan(13, 1)}


def draw_worlds(name: str, version: int) -> list[dict[str, Any]]:
    """Return the worlds of a version of a suite, as they are written to its file."""
    plan, made = PLANS[name], []
    for number, (buffer, loss) in PPCC.items():
        path = Path(rate_mbps=10.0, rtt_ms=48.0, buffer_packets=buffer, loss=loss)
        made.append((f"ppcc-{number}", PathWorld(family="ppcc", duration_s=100.0, paths=(path,))))
    for at, (family, count) in enumerate(GATE.items()):
        count *= plan.times
        rng = np.random.default_rng((plan.stream, version, at))
        places = (np.stack([rng.permutation(count) for _ in range(3)], axis=1) + rng.random((count, 3))) / count
        digits = len(str(count))
        for k in range(count):
            world = _draw_world(family, k, rng, places[k])
            made.append((f"{family}-{k + 1:0{digits}}", replace(world, family=family)))
    seeds = np.random.default_rng((plan.stream, version, 1000)).integers(2**53, size=len(made)).tolist()
    worlds = []
    for (name, world), seed in zip(made, seeds, strict=True):
        written = frozen.round_floats(world.to_dict())
        means = compute_capacities(PathWorld.from_dict(written))
        worlds.append({"name": name, "seed": seed, "world": written, **({"capacities_mbps": means} if means else {})})
    return worlds


def _draw_world(family: str, number: int, rng: np.random.Generator, place: np.ndarray) -> PathWorld:
    of = DRAWN[number % len(DRAWN)] if family == MIXED else family
    shared = AGENTS[number % len(AGENTS)] if of == "agents" else 1
    common = COMMON_RIVALS[number // 2 % len(COMMON_RIVALS)]
    distribution = SenderPaths(
        family=of,
        senders=("cubic",) * shared,
        competitors=(common,) if number % 2 == 0 else default_rivals(),
        leave_probability=0.0,
        mixed_probability=float(family == MIXED),
        duration_s=DURATION_S,
        most_mbit=MOST_MBIT,
    )
    while True:
        world = distribution.draw(rng, place.tolist())
        if len(world.paths) == 1:  # several senders share one path
            return world


def compute_capacities(world: PathWorld) -> list[float]:
    """Return the mean rates of a world's generated traces over its duration, Mbit/s, to six digits."""
    made = [path.generated.trace() for path in world.paths if path.generated is not None]
    return [frozen.round_floats(trace.mean_mbps(world.duration_s)) for trace in made]


def place_world(one: Mapping[str, Any]) -> tuple[str, Scenario, Sequence[tuple[str, float]]]:
    """Return the family, scenario and generated traces of a world; see `netbuf_gym.evaluation.suites.frozen.WorldPlacer`."""
    world = PathWorld.from_dict(one["world"])
    scenario = world.scenario((AGENT,) * world.senders, one["name"])
    links = zip(world.paths, scenario.links[: 2 * len(world.paths) : 2], strict=True)
    means = [(path.generated.kind, link.mean_mbps(world.duration_s)) for path, link in links if path.generated is not None]
    return world.family, scenario, means


def measure(cell: Cell, view: View) -> dict[str, float]:
    """Return the metrics of a world, mean over its senders; see `METRICS`.

    Raises:
        PlantFault: If the world has failed.
    """
    scenario, reports = cell.scenario, view.whole_report()
    shares = np.array([one["goodput_mbps"] / scenario.fair_share_mbps(i) for i, one in enumerate(reports)])
    rows: dict[str, Any] = {
        "utility": [_compute_utility(cell, i, one) for i, one in enumerate(reports)],
        "share": shares,
        "queueing_ms": [one["mean_rtt_ms"] - one["base_rtt_ms"] for one in reports],
        "inflation": [one["mean_rtt_ms"] / one["base_rtt_ms"] for one in reports],
        "loss": [one["loss_rate"] for one in reports],
    }
    jain = jain_index(shares, of_nothing=0.0) if len(reports) > 1 else math.nan
    return {key: float(np.mean(values)) for key, values in rows.items()} | {"jain": jain}


def _compute_utility(cell: Cell, flow: int, report: dict[str, Any]) -> float:
    """Return a sender's utility; without an ACK, and so without an RTT, as if its one segment had taken the whole life."""
    if math.isfinite(report["utility"]):
        return float(report["utility"])
    lasts_s = report["duration_s"]
    goodput_mbps = max(report["goodput_mbps"], MSS_BYTES * 8e-6 / lasts_s)
    share = goodput_mbps / cell.scenario.fair_share_mbps(flow)
    return 0.5 * math.log(share) - 0.5 * math.log(max(lasts_s * 1e3 / report["base_rtt_ms"], 1.0))


METRICS = (
    Metric(
        "utility",
        "utility",
        3,
        "0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT) of the whole life of a sender, start-up included; higher "
        "is better, at most about 0",
    ),
    Metric("share", "share (%)", 1, "goodput over the bottleneck's mean rate, shared by all that cross it", 100),
    Metric("queueing_ms", "queueing (ms)", 1, "mean round-trip time less the least possible one"),
    Metric("inflation", "RTT / base", 2, "mean round-trip time over the least possible one"),
    Metric("loss", "loss (%)", 2, "packets dropped by queues or lost at random, of those sent", 100),
    Metric("jain", "Jain", 3, "Jain's index of the shares of senders that share a bottleneck, each over its own life"),
)


_COUNTS = {name: len(PPCC) + plan.times * sum(GATE.values()) for name, plan in PLANS.items()}
_SUMMARIES = {
    "gate": f"{_COUNTS['gate']} paths of all families in a minute: what a sender is held to",
    "cards": f"{_COUNTS['cards']} paths of the same families, of other seeds: what the cards of agents show",
    "validation": f"{_COUNTS['validation']} further paths, that models and settings are chosen on",
}
SUITES = tuple(
    Suite(
        name=name,
        summary=summary,
        task=TASK,
        load=frozen.Loader(name, place_world, OURS),
        measure=measure,
        metrics=METRICS,
        scatter=("inflation", "share"),
        families=OURS,
    )
    for name, summary in _SUMMARIES.items()
)
