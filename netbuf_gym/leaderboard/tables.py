"""Tables of the package's agents: training facts from their metrics.json, and standings from kept results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites import scoring
from netbuf_gym.leaderboard import standings
from netbuf_gym.utils.tables import markdown_table
from netbuf_gym.zoo import library

TRAINING = ("algorithm", "recipe", "trained on", "seeds", "steps", "minutes")
"""Columns of `format_training_facts`."""
HEADER = ("agent", *TRAINING, "score", "over best rule", "over best constant")


def format_agents_table(task: str, standing: Sequence[scoring.Standing], page: Path) -> str:
    """Format a Markdown table of the package's agents of a task, the best first.

    Args:
        task: Name of the task.
        standing: Standings of the task, the best first.
        page: Folder that links to the agents' cards start from, below the root of the checkout.

    Raises:
        ConfigError: metrics.json of an agent cannot be read.
    """
    made = []
    for one in standing:
        if one.name in library.names():
            card = library.FOLDER / one.name / "card.md"
            link = os.path.relpath(card, library.FOLDER.parents[1] / page)
            agent = f"[{one.name.removeprefix(f'{task}/')}]({link})"
            agent += f" {standings.STALE}" if standings.is_stale(one) else ""
            over = (standings.format_difference(one.over_heuristic), standings.format_difference(one.over_constant))
            made.append([agent, *format_training_facts(library.read_metrics(card.parent)), str(one.middle), *over])
    return markdown_table(HEADER, made) if made else "No agent yet."


def format_training_facts(metrics: dict[str, Any]) -> list[str]:
    """Return the cells of columns `TRAINING`; steps and minutes are means per seed, including the agents it began with."""
    trained_on = metrics["training_scenario"]
    before = [one or {} for one in metrics.get("begun_with", [])]
    steps, seconds = (
        np.mean(metrics[f"training_{key}"]) + np.mean([one.get(key, 0.0) for one in before] or [0.0])
        for key in ("timesteps", "seconds")
    )
    return [
        metrics["algo"],
        metrics["recipe"],
        trained_on["name"] if isinstance(trained_on, dict) else trained_on,
        str(len(metrics["training_seeds"])),
        f"{steps / 1e6:.1f} M",
        f"{seconds / 60:.1f}",
    ]
