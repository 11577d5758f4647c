"""`netbuf-gym demo`: trains an agent for two minutes, evaluates it on unseen seeds, draws the result; see its `--help`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.training import curves
from netbuf_gym.training.config import Source, load, of_demo
from netbuf_gym.training.evaluate import evaluate
from netbuf_gym.training.train import next_step, train
from netbuf_gym.utils.overrides import quoted
from netbuf_gym.utils.progress import say

SEEDS = 20


def main(argv: Sequence[str], source: Source | None = None) -> int:
    """Runs the demonstration; returns its exit status, 0 or 130 when interrupted. Raises as training does."""
    overrides = of_demo(argv)
    config = load("train", overrides, source)
    if config.run_dir is None:
        run_dir = Path("runs", "demo", f"{time.strftime('%Y%m%d-%H%M%S')}-seed{config.seed}")
        overrides.append(f"run_dir={quoted(str(run_dir))}")
    else:
        run_dir = Path(config.run_dir)
    result = train(overrides, source, say)
    share = "" if result.env_share != result.env_share else f", {result.env_share:.0%} of the time in the environment"
    print(f"{result.timesteps:,} steps in {result.seconds:.0f} s ({result.steps_per_second:,.0f} steps/s{share})")
    print(curves.draw(run_dir, str(result.algo), str(run_dir), result.window), flush=True)
    if result.interrupted:
        print(next_step(result))
        return 130
    for scenario in tasks.get(config.env.name).benchmark:
        out = run_dir / "evaluation" / scenario.replace("/", "-")
        words = [f"model={quoted(str(result.model_path))}", f"scenario={scenario}", f"seeds={SEEDS}"]
        evaluate(load("evaluate", [*words, f"run_dir={quoted(str(out))}", f"progress={config.progress}", "lines=null"]))
        print(f"\n{(out / 'table.md').read_text()}", end="", flush=True)
    print(f"\nmodel, tables, result.json and plots: {run_dir}\n{next_step(result)}")
    return 0
