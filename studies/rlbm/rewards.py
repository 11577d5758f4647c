"""What rewards make of the metric: the same short training of a switch's agent by each, judged by what operators look at.

    python -m studies.rlbm.rewards [rewards=A,B] [seeds=2] [steps=300000] [worlds=200] [runs=runs/rewards]
        [output=FILE]

Every reward is a file of conf/reward; all else is as in `experiment=queue_threshold`, which begins as the rule `brief_pulse`
and goes on by PPO, so many environment steps. Trainings lie in `runs`, a
folder each; none is done twice. The agents and the rule then play the same worlds of `rlbm/random`, on seeds of validation,
with drops at the tail and at the head.

A figure is the geometric mean over training seeds and worlds of the 99th percentile of the slowdown of priority 0; its ratio to
the rule's has a 95 % interval over worlds, each one's seeds together.

Writes a table (FILE, by default studies/rlbm/rewards.csv) and prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, stats
from netbuf_gym.arguments import choice, whole
from netbuf_gym.contenders import Contender
from netbuf_gym.errors import needing
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tables import csv_table
from netbuf_gym.tasks.pages import markdown_table
from netbuf_gym.tasks.queue_threshold import BriefPulse, QueueThreshold
from netbuf_gym.version import __version__

REWARDS = ("switch_relative", "switch_excess", "switch_tail", "switch_utility")
TABLE = Path(__file__).resolve().parent / "rewards.csv"
COLUMNS = ("drop", "reward", "slowdown_p99_p0", "over_rule", "over_rule_low", "over_rule_high", "goodput_over_rule")
RULE = "none, the rule"


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0, or 130 where a training was interrupted.

    Raises:
        ConfigError: an argument that is unknown or out of range; a folder with a run of another kind.
        CheckpointError: a training's file cannot be read.
        OSError: a file cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"rewards": ",".join(REWARDS), "seeds": "2", "steps": "300000", "worlds": "200", "runs": "runs/rewards"}
    known |= {"output": str(TABLE)}
    given = scripts.given(argv, known)
    numbers = {name: scripts.number(given[name]) for name in ("seeds", "steps", "worlds")}
    seeds, steps = whole("seeds", numbers["seeds"], 1, 100), whole("steps", numbers["steps"], 1, 10**9)
    worlds = whole("worlds", numbers["worlds"], 2, 100_000)
    rewards = [choice("rewards", name, REWARDS) for name in given["rewards"].split(",")]
    asked = "" if tuple(rewards) == REWARDS else f"rewards={','.join(rewards)} "
    command = f"python -m studies.rlbm.rewards {asked}seeds={seeds} steps={steps} worlds={worlds}"

    rows: list[dict[str, Any]] = []
    output, comment = scripts.to_write("output", given["output"]), f"netbuf-gym {__version__}: {command}"
    by_rule = {drop: [_measure(BriefPulse(), drop, worlds)] for drop in DROPS}
    for reward in (RULE, *rewards):
        agents = [] if reward == RULE else [_trained(reward, seed, steps, Path(given["runs"])) for seed in range(seeds)]
        if None in agents:
            print("rewards: interrupted; run the same command again to go on", file=sys.stderr)
            return 130
        for drop in DROPS:
            played = [_measure(one, drop, worlds) for one in agents if one is not None] or by_rule[drop]
            rows.append({"drop": drop, "reward": reward, **_row(played, by_rule[drop][0])})
    rows.sort(key=lambda row: DROPS.index(row["drop"]))
    write_atomic(output, csv_table(COLUMNS, rows, comment))
    print(markdown_table(("drop", "reward", "slowdown", "over the rule", "goodput"), [_line(row) for row in rows]))
    return 0


def _trained(reward: str, seed: int, steps: int, runs: Path) -> Contender | None:
    """The agent of one training, which is done or gone on with where it must be; None: interrupted."""
    with needing("training", "train"):
        from netbuf_gym.zoo import checkpoint
        from netbuf_gym.zoo.saved import SavedAgent
        from netbuf_gym.zoo.train import train
    run_dir = runs / f"{reward}-{steps}-seed{seed}"
    if (run_dir / "checkpoint.zip").exists():
        result = train([f"resume={run_dir}"])
    elif not (run_dir / "model.zip").exists():
        kept = [f"seed={seed}", f"total_timesteps={steps}", "snapshots=0", f"run_dir='{run_dir}'", "tensorboard=false"]
        result = train(["experiment=queue_threshold", f"reward={reward}", *kept], tell=say)
    else:
        return SavedAgent(checkpoint.read(run_dir / "model.zip"))
    return None if result.interrupted else SavedAgent(checkpoint.read(result.model_path))


def _measure(contender: Contender, drop: str, worlds: int) -> tuple[np.ndarray, float]:
    """Logarithms of slowdowns, NaN in worlds where no flow of priority 0 completed, and the mean goodput."""
    from netbuf_gym.zoo.schema import FIRST_VALIDATION_SEED as first

    spec = {"name": "rlbm/random", "drop": drop}
    reports = evaluate(contender, QueueThreshold.name, spec, range(first, first + worlds), interval_s=0.1)
    return np.log([one["slowdown_p99_p0"] for one in reports]), float(np.mean([one["goodput_mbps"] for one in reports]))


def _row(played: Sequence[tuple[np.ndarray, float]], rule: tuple[np.ndarray, float]) -> dict[str, float]:
    own, over = np.mean([one[0] for one in played], axis=0), rule[0]
    there = np.isfinite(own) & np.isfinite(over)
    ratio = np.exp(stats.mean_interval((own - over)[there]))
    goodput = float(np.mean([one[1] for one in played])) / rule[1]
    return dict(zip(COLUMNS[2:], (float(np.exp(own[there].mean())), *map(float, ratio), goodput), strict=True))


def _line(row: dict[str, Any]) -> list[str]:
    ratio = f"{row['over_rule']:.3f} [{row['over_rule_low']:.3f}, {row['over_rule_high']:.3f}]"
    goodput = f"{100 * (row['goodput_over_rule'] - 1):+.2f} %"
    return [row["drop"], row["reward"].removeprefix("switch_"), f"{row['slowdown_p99_p0']:.3f}", ratio, goodput]


if __name__ == "__main__":
    scripts.run("rewards", main)
