"""Writes the benchmark table of zoo/README.md and of the project's README.md from the metrics of all committed agents.

    python -m netbuf_gym.zoo.tables

Reads zoo/agents/*/*/metrics.json, as `netbuf_gym.zoo.campaign` wrote them, and replaces what stands between the two
marker lines of either page. With `--check` nothing is written, and the exit status is 1 where the file would change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import stats
from netbuf_gym.errors import ConfigError, NetbufError
from netbuf_gym.files import write_atomic

ZOO = Path(__file__).resolve().parent
BEGIN, END = "<!-- agents: begin (python -m netbuf_gym.zoo.tables) -->", "<!-- agents: end -->"


def main(argv: Sequence[str], folder: Path = ZOO) -> int:
    """Runs the command on a zoo's folder; returns 0, or 1 when `--check` finds a difference.

    Raises:
        ConfigError: an unknown argument, no markers in a README.md, or metrics that cannot be read.
    """
    if any(argument not in ("--check",) for argument in argv):
        raise ConfigError(f"arguments {list(argv)} are unknown; valid: --check")
    pages = {folder / "README.md": ""}
    if (folder.parent / "README.md").exists():  # in a checkout, not where the package is installed
        pages[folder.parent / "README.md"] = f"{folder.name}/"
    changed = {}
    for page, prefix in pages.items():
        text = page.read_text(encoding="utf-8")
        if text.count(BEGIN) != 1 or text.count(END) != 1:
            raise ConfigError(f"{page}: must hold each of the lines {BEGIN!r} and {END!r} once")
        head, _, rest = text.partition(BEGIN)
        new = f"{head}{BEGIN}\n\n{tables(folder, prefix)}\n{END}{rest.partition(END)[2]}"
        if new != text:
            changed[page] = new
    if "--check" in argv:
        return int(bool(changed))
    for page, new in changed.items():
        write_atomic(page, new)
    return 0


def tables(folder: Path, prefix: str = "") -> str:
    """The tables of all agents under a zoo's folder, one for each set of evaluation scenarios, in Markdown.

    `prefix` stands before the links, for a page that lies elsewhere.
    """
    agents = [(path.parent.relative_to(folder), _read(path)) for path in sorted(folder.glob("agents/*/*/metrics.json"))]
    groups: dict[tuple[str, ...], list[tuple[Path, dict[str, Any]]]] = {}
    for where, metrics in agents:
        groups.setdefault(tuple(metrics["scenarios"]), []).append((where, metrics))
    return "\n\n".join(_table(scenarios, members, prefix) for scenarios, members in groups.items()) + "\n"


def _table(scenarios: tuple[str, ...], members: list[tuple[Path, dict[str, Any]]], prefix: str) -> str:
    lines = [
        f"| agent | recipe | trained on | steps | minutes | {' | '.join(scenarios)} |",
        f"|:--|:--|:--|--:|--:|{'--:|' * len(scenarios)}",
    ]
    for where, metrics in members:
        trained_on = metrics["training_scenario"]
        name = trained_on["name"] if isinstance(trained_on, dict) else trained_on
        steps, seconds = np.mean(metrics["training_timesteps"]), np.mean(metrics["training_seconds"])
        cells = [_spread(metrics["scenarios"][one]["agent"][metrics.get("score", "utility")]) for one in scenarios]
        lines.append(
            f"| [{where.name}]({prefix}{where}/card.md) | {metrics['recipe']} | {name} "
            f"| {steps / 1e6:.1f} M | {seconds / 60:.1f} | {' | '.join(cells)} |"
        )
    first = members[0][1]
    for control in first["scenarios"][scenarios[0]]["baselines"]:
        values = [first["scenarios"][one]["baselines"][control][first.get("score", "utility")] for one in scenarios]
        lines.append(f"| {control} | | | | | {' | '.join(f'{value:.3f}' for value in values)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    mean, low, high = stats.mean_interval(values)
    return f"{mean:.3f} ± {(high - low) / 2:.3f}" if np.isfinite(high) else f"{mean:.3f}"


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path}: is not JSON: {error}") from None


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (NetbufError, OSError) as error:
        print(f"tables: error: {error}", file=sys.stderr)
        sys.exit(2)
