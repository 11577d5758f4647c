"""`netbuf-gym demo`: train an agent for two minutes, evaluate it on unseen seeds, plot the result; see its `--help`."""

from __future__ import annotations

import time
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.training import curves
from netbuf_gym.training.config import merge_configs
from netbuf_gym.training.evaluate import evaluate
from netbuf_gym.training.jobs import Job, load_job
from netbuf_gym.training.train import format_next_step, run
from netbuf_gym.utils.overrides import quote_text
from netbuf_gym.utils.progress import print_line

SEEDS = 20


def main(job: Job) -> int:
    """Run the demonstration and return its exit status, 0, or 130 when interrupted. Raises as training does."""
    config = job.config
    run_dir = Path(config.run_dir or Path("runs", "demo", f"{time.strftime('%Y%m%d-%H%M%S')}-seed{config.seed}"))
    result = run(merge_configs(config, {"run_dir": str(run_dir)}), print_line)
    share = "" if result.env_share != result.env_share else f", {result.env_share:.0%} of the time in the environment"
    print(f"{result.timesteps:,} steps in {result.seconds:.0f} s ({result.steps_per_second:,.0f} steps/s{share})")
    print(curves.draw_curve(run_dir, str(result.algo), str(run_dir), result.window), flush=True)
    if result.interrupted:
        print(format_next_step(result))
        return 130
    for scenario in tasks.get(config.env.name).benchmark:
        out = run_dir / "evaluation" / scenario.replace("/", "-")
        words = [f"model={quote_text(str(result.model_path))}", f"scenario={scenario}", f"seeds={SEEDS}"]
        words += [f"run_dir={quote_text(str(out))}", f"progress={config.progress}", "lines=null"]
        evaluate(load_job("evaluate", words).config)
        print(f"\n{(out / 'table.md').read_text()}", end="", flush=True)
    print(f"\nmodel, tables, result.json and plots: {run_dir}\n{format_next_step(result)}")
    return 0
