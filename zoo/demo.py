"""`netbuf-gym demo`: trains an agent for two minutes, evaluates it on unseen seeds, draws the result.

    netbuf-gym demo
    netbuf-gym demo max_minutes=5 seed=7 scenario=ppcc/4

Takes the overrides of `netbuf-gym train`; what they leave open is in conf/experiment/demo.yaml, and evaluated on are the
scenarios that the task's agents are compared on. Everything lands under runs/demo/<time>-seed<seed>: the model, its training
log, and per scenario a table, result.json and plots.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.zoo.config import load
from netbuf_gym.zoo.evaluate import evaluate
from netbuf_gym.zoo.train import train

SEEDS = 20


def main(argv: Sequence[str]) -> int:
    """Runs the demonstration; returns its exit status, 0 or 130 when interrupted. Raises as training does."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    cores = min(2, len(os.sched_getaffinity(0)))  # a second thread for torch gains little, and costs much on a busy machine
    overrides = ["experiment=demo", f"env.threads={cores}", *argv]
    config = load("train", overrides)
    if config.run_dir is None:
        run_dir = Path("runs", "demo", f"{time.strftime('%Y%m%d-%H%M%S')}-seed{config.seed}")
        overrides.append(f"run_dir='{run_dir}'")
    else:
        run_dir = Path(config.run_dir)
    limit = "" if config.max_minutes is None else f" for {config.max_minutes:g} minutes"
    print(f"training {config.algo.name} on {config.scenario.name}{limit}", flush=True)
    result = train(overrides)
    share = "" if result.env_share != result.env_share else f", {result.env_share:.0%} of the time in the environment"
    print(f"{result.timesteps:,} steps in {result.seconds:.0f} s ({result.steps_per_second:,.0f} steps/s{share})")
    if result.interrupted:
        print(f"interrupted; continue with: netbuf-gym train resume={run_dir}")
        return 130
    for scenario in tasks.get(config.env.name).benchmark:
        out = run_dir / "evaluation" / scenario.replace("/", "-")
        model = f"model='{result.model_path}'"
        evaluate(load("evaluate", [model, f"scenario={scenario}", f"seeds={SEEDS}", f"run_dir='{out}'", "lines=null"]))
        print(f"\n{(out / 'table.md').read_text()}", end="", flush=True)
    print(f"\nmodel, tables, result.json and plots: {run_dir}")
    return 0
