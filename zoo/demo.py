"""`netbuf-gym demo`: trains an agent for two minutes, evaluates it on unseen seeds, draws the result; see its `--help`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.zoo.config import Source, load
from netbuf_gym.zoo.evaluate import evaluate
from netbuf_gym.zoo.train import train

SEEDS = 20


def main(argv: Sequence[str], source: Source | None = None) -> int:
    """Runs the demonstration; returns its exit status, 0 or 130 when interrupted. Raises as training does."""
    cores = min(2, len(os.sched_getaffinity(0)))  # a second thread for torch gains little, and costs much on a busy machine
    overrides = ["experiment=demo", f"env.threads={cores}", *argv]
    config = load("train", overrides, source)
    if config.run_dir is None:
        run_dir = Path("runs", "demo", f"{time.strftime('%Y%m%d-%H%M%S')}-seed{config.seed}")
        overrides.append(f"run_dir='{run_dir}'")
    else:
        run_dir = Path(config.run_dir)
    limit = "" if config.max_minutes is None else f" for {config.max_minutes:g} minutes"
    print(f"training {config.algo.name} on {config.scenario.name}{limit}", flush=True)
    result = train(overrides, source)
    share = "" if result.env_share != result.env_share else f", {result.env_share:.0%} of the time in the environment"
    print(f"{result.timesteps:,} steps in {result.seconds:.0f} s ({result.steps_per_second:,.0f} steps/s{share})")
    if result.interrupted:
        print(f"interrupted; continue with: netbuf-gym train resume={run_dir}")
        return 130
    for scenario in tasks.get(config.env.name).benchmark:
        out = run_dir / "evaluation" / scenario.replace("/", "-")
        model = f"model='{result.model_path}'"
        evaluate(load("evaluate", [model, f"scenario={scenario}", f"seeds={SEEDS}", f"run_dir='{out}'"]))
        print(f"\n{(out / 'table.md').read_text()}", end="", flush=True)
    print(f"\nmodel, tables, result.json and plots: {run_dir}")
    return 0
