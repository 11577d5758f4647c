"""Search for the arguments of the rule `refill` on generated paths: random steps from the best so far.

    python -m studies.receiver search [--trials N] [--worlds N] [--seed S]

Worlds are generated paths: of 4G, of 5G, half of them even within seconds, and of a fast 5G, all of them even; round trips of
25 to 100 ms, buffers of 1 to 4 bandwidth-delay products, 30 s. No measured trace is played. A trial changes one to three
arguments of the best so far to other values of `GRID` and is kept if its score is higher: the sum over the networks of the
margin of utility over `keep`, less `PRICE` times what lacks of `LEAST_DATA`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.rollout import World
from netbuf_gym.tasks.receiver_window import ReceiverPaths, Refill
from netbuf_gym.utils.overrides import read_whole

COMMAND = "python -m studies.receiver search"
TASK = "receiver_window"
FIRST_SEED, DURATION_S = 6000, 30.0
PATHS: dict[str, dict[str, Any]] = {
    "4g": {"networks": ("4g",), "seconds_probability": 0.1},
    "5g": {"networks": ("5g",), "seconds_probability": 0.5},
    "fast": {"networks": ("5g",), "seconds_probability": 1.0, "arguments": {"mean_mbps": 150.0}},
}
"""Arguments of `ReceiverPaths` by network."""
LEAST_DATA = {"4g": 1.0, "5g": 1.02, "fast": 1.02}
"""Data over `keep`'s below which a network's score is reduced: what CUBIC carries of it on measured traces of validation."""
PRICE = 2.0
"""Utility that a share of data is worth below that."""
METRICS = ("utility", "share", "queue_delay_mean_ms")
GRID: dict[str, tuple[Any, ...]] = {
    "gain": (0.93, 0.95, 0.96, 0.97, 0.98, 0.99),
    "refill_gain": (1.03, 1.05, 1.08, 1.13, 1.2),
    "patience": (3, 4, 5, 6, 8, 10),
    "segments": (2.0, 2.5, 3.0, 3.5, 4.0),
    "least_share": (0.01, 0.02, 0.03),
    "mean_share": (0.02, 0.03, 0.04, 0.05),
    "packets": (0.5, 1.0, 2.0, 3.0),
}


def draw_worlds(network: str, count: int) -> list[World]:
    """Return the worlds of a network."""
    paths = ReceiverPaths(rtt_ms=(25.0, 100.0), duration_s=DURATION_S, **PATHS[network])
    rules = tasks.get(TASK).rules()
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    return [World(rules.control(paths.sample(np.random.default_rng(seed))), i, i) for i, seed in enumerate(seeds)]


def play(controller: Controller, worlds: Sequence[World]) -> dict[str, float]:
    """Return the means of the metrics over the worlds."""
    reports: dict[int, dict[str, Any]] = {}

    def keep(view: rollout.View) -> None:
        reports[view.index] = view.report()[0]

    rollout.play(controller, worlds, keep, task=TASK, **controller.match_arguments({}))
    return {metric: float(np.nanmean([report[metric] for report in reports.values()])) for metric in METRICS}


def score_rule(rule: Refill, worlds: dict[str, list[World]], of_keep: dict[str, dict[str, float]]) -> tuple[float, str]:
    """Return the score of a rule, and the margin and the data over `keep`'s of each network in words."""
    score, parts = 0.0, []
    for network, own in worlds.items():
        found, keep = play(rule, own), of_keep[network]
        margin, data = found["utility"] - keep["utility"], found["share"] / keep["share"]
        score += margin - PRICE * max(0.0, LEAST_DATA[network] - data)
        parts.append(f"{network}: utility {margin:+.4f}, data x {data:.3f}, queueing {found['queue_delay_mean_ms']:.1f} ms")
    return score, "; ".join(parts)


def main(argv: Sequence[str]) -> int:
    """Run the search, print each improvement, and return 0."""
    options = make_parser().parse_args(argv)
    rng = np.random.default_rng(options.seed)
    worlds = {network: draw_worlds(network, options.worlds) for network in PATHS}
    of_keep = {network: play(rollout.get_controller("keep", TASK), own) for network, own in worlds.items()}
    best: dict[str, Any] = {}
    best_score, said = score_rule(Refill(), worlds, of_keep)
    print(f"{best_score:+.4f}  as shipped  {said}", flush=True)
    for trial in range(options.trials):
        names = rng.choice(sorted(GRID), int(rng.integers(1, 4)), replace=False)
        tried = {**best, **{str(name): GRID[name][int(rng.integers(len(GRID[name])))] for name in names}}
        score, said = score_rule(Refill(**tried), worlds, of_keep)
        if score > best_score:
            best, best_score = tried, score
            print(f"{score:+.4f}  trial {trial}: {tried}  {said}", flush=True)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split("\n")[0])
    made.add_argument("--trials", type=read_whole, default=150, help="(%(default)s)")
    made.add_argument("--worlds", type=read_whole, default=12, help="of each network (%(default)s)")
    made.add_argument("--seed", type=read_whole, default=1, help="of the trials' changes (%(default)s)")
    return made
