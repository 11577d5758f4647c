"""Evaluation of a campaign's agents on suites: one suite to choose the kept agent, another for the card.

A task names both (`Measures.chosen_on`, `Measures.carded_on`). The first also determines the best constant action, beside
which the card shows the agents.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller
from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites import Suite, get_suite
from netbuf_gym.leaderboard import play
from netbuf_gym.leaderboard.reports import ALL
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.utils import statistics
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import markdown_table


def score_for_choice(measures: Measures, saved: Sequence[checkpoint.SavedModel], worst_weight: float = 0.0) -> dict[str, Any]:
    """Score each agent, and each constant action, on the worlds by which a task chooses, JSON-able.

    Args:
        measures: Measures of the task.
        saved: Models of the agents.
        worst_weight: Weight of the suite's family in which each does worst, beside the mean (`selection.compute_score`).

    Returns:
        suite, version, digest; scores: of the agents, in order; constants: by their names; best_constant: a name, or None if
        the actions are not a list.
    """
    own = get_suite(measures.chosen_on)
    actions = saved[0].env["schema"]["actions"]
    tried_one_by_one = range(len(actions) if isinstance(actions, list) else 0)
    constants = [rollout.get_controller(f"{rollout.CONSTANT}{action}", own.task) for action in tried_one_by_one]
    played = _play_suite(own, [*map(SavedAgent, saved), *constants])
    scores = [_compute_choice_score(one, own, worst_weight) for one in played]
    tried = {one.name: score for one, score in zip(constants, scores[len(saved) :], strict=True)}
    return {
        **_describe_edition(own),
        "scores": scores[: len(saved)],
        "constants": tried,
        "best_constant": max(tried, key=lambda name: tried[name]) if tried else None,
    }


def evaluate_for_card(
    measures: Measures, saved: Sequence[checkpoint.SavedModel], kept: int, chosen: dict[str, Any]
) -> dict[str, Any]:
    """Score the agents on the worlds of cards, beside the task's baselines and the best constant action, JSON-able.

    Returns:
        suite, version, digest; families: by family a number of worlds, the agents' scores by training seed, and those of the
        others by name; metrics: of the kept agent, by family; margins: over all worlds, of the kept agent's score over
        each of the others', paired by world: mean, low, high.
    """
    own = get_suite(measures.carded_on)
    others: list[Controller] = [rollout.get_controller(name, own.task) for name in measures.carded_beside]
    if chosen["best_constant"]:
        name = chosen["best_constant"]
        others.append(rollout.get_controller(name, own.task))
    played = _play_suite(own, [*map(SavedAgent, saved), *others])
    agents, beside = played[: len(saved)], played[len(saved) :]
    edition, key = own.load(), own.score.key
    families = {
        family: {
            "worlds": len(agents[0].list_values(key, _select_family(family))),
            "agents": [_compute_mean(one, key, family) for one in agents],
            "others": {one.name: _compute_mean(one, key, family) for one in beside},
        }
        for family in (*edition.families, ALL)
    }
    ours = np.array(agents[kept].list_values(key))
    return {
        **_describe_edition(own),
        "families": families,
        "metrics": {
            family: {metric.key: _compute_mean(agents[kept], metric.key, family) for metric in own.metrics}
            for family in families
        },
        "margins": {one.name: list(statistics.mean_interval(ours - np.array(one.list_values(key)))) for one in beside},
    }


def format_card(found: dict[str, Any], kept_seed: int) -> list[str]:
    """Format the result of `evaluate_for_card` as lines of a card."""
    own = get_suite(found["suite"])
    others = list(next(iter(found["families"].values()))["others"])
    rows = []
    for family, one in found["families"].items():
        over = statistics.mean_interval(np.array(one["agents"]))
        spread = f" ± {(over.high - over.low) / 2:.3f}" if np.isfinite(over.high) else ""
        cells = [f"{one['others'][name]:.3f}" for name in others]
        rows.append([family, str(one["worlds"]), f"{over.mean:.3f}{spread}", *cells])
    margins = ["over all, paired", "", "", *(_format_margin(found["margins"][name]) for name in others)]
    heads = [metric.label for metric in own.metrics]
    measured = [
        [
            family,
            *(
                "-" if value is None else f"{value * metric.factor:.{metric.digits}f}"
                for metric, value in ((metric, values[metric.key]) for metric in own.metrics)
            ),
        ]
        for family, values in found["metrics"].items()
    ]
    return [
        f"## Suite `{own.name}`, version {found['version']}",
        "",
        f"{own.score.label[0].upper()}{own.score.label[1:]} by family. Of the agents it is the mean over training seeds ± half "
        "the 95 % t interval; the last row is what the agent that is kept has more than the column's, with the 95 % t interval "
        "over worlds.",
        "",
        markdown_table(["family", "worlds", "agents", *others], [*rows, margins]),
        "",
        f"All measures of the agent that is kept, seed {kept_seed}",
        "",
        markdown_table(["family", *heads], measured),
        "",
        *(f"* {metric.label}: {metric.says}" for metric in own.metrics),
        "",
    ]


def _compute_choice_score(played: play.SuiteRun, own: Suite, worst_weight: float) -> float:
    """Return the mean over a suite's worlds, or its weighted mean with the worst family's; suites' scores rise with quality."""
    mean = float(np.nanmean(played.list_values(own.score.key)))
    if not worst_weight:
        return mean
    means = [_compute_mean(played, own.score.key, family) for family in own.load().families]
    return (mean + worst_weight * min((one for one in means if one is not None), default=np.nan)) / (1.0 + worst_weight)


def _play_suite(own: Suite, controllers: Sequence[Controller]) -> list[play.SuiteRun]:
    cells, threads = own.load().cells, min(len(os.sched_getaffinity(0)), MAX_THREADS)
    print(f"playing suite {own.name}", file=sys.stderr, flush=True)
    played: list[play.SuiteRun] = []
    with ProgressBar(own.name) as bar:
        for number, one in enumerate(controllers):
            bar(number * len(cells), len(controllers) * len(cells), one.name)
            played.append(play.run(own, cells, one, threads=threads))
        bar(len(controllers) * len(cells), len(controllers) * len(cells), "")
    return played


def _describe_edition(own: Suite) -> dict[str, Any]:
    edition = own.load()
    return {"suite": own.name, "version": edition.version, "digest": edition.digest}


def _select_family(family: str) -> str | None:
    return None if family == ALL else family


def _compute_mean(played: play.SuiteRun, key: str, family: str) -> float | None:
    values = np.array(played.list_values(key, _select_family(family)))
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def _format_margin(interval: Sequence[float]) -> str:
    mean, low, high = interval
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
