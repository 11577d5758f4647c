"""`netbuf-gym evaluate`: a trained agent beside classic congestion controls, over worlds that it was not trained on.

    netbuf-gym evaluate model=runs/congestion_window/ppo/20260101-120000-seed3 scenario=ppcc/4
    netbuf-gym evaluate model=model.zip scenario=ppcc/random seeds=100 baselines=[cubic,bbr]
    netbuf-gym evaluate model=model.zip scenario=ppcc/2 scenario.kwargs.rate_mbps=20 senders=2 run_dir=runs/twenty

The agent acts greedily. Seeds start at 1000000, where training seeds end; every controller meets the same worlds (under a
distribution of scenarios, each seed draws its own), is run from its start to its end, and is measured alike. Prints a
table of means with 95 % t intervals over the seeds and writes it, result.json and plots into the run directory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch as th
from omegaconf import DictConfig

from netbuf_gym import plots
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.files import write_atomic, write_json
from netbuf_gym.scenarios import AGENT, congestion_controls
from netbuf_gym.scenarios.types import STACKS
from netbuf_gym.version import __version__
from netbuf_gym.zoo import checkpoint, evaluation
from netbuf_gym.zoo.config import evaluation_seeds, load, plain, scenario_spec


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit status, 0. Raises as `evaluate` does."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    config = load("evaluate", argv)
    run_dir = evaluate(config)
    print((run_dir / "table.md").read_text(), end="")
    print(f"written to {run_dir}")
    return 0


def evaluate(config: DictConfig) -> Path:
    """Evaluates by a configuration and returns the run directory.

    Raises:
        CheckpointError: the model cannot be read, or does not fit.
        ConfigError, ScenarioError: the configuration cannot be used.
        OSError: the run directory cannot be written.
    """
    seeds = evaluation_seeds(config.seeds)
    _check(config)
    saved = checkpoint.read(config.model)
    if config.env_id is not None and saved.env.get("id") != config.env_id:
        raise CheckpointError(f"{saved.path}: was trained on {saved.env.get('id')!r}, not on {config.env_id!r}")
    th.set_num_threads(config.torch_threads)
    scenario = scenario_spec(config.scenario)
    name = str(saved.config.algo.name)
    agent, worlds = evaluation.run_agent(saved, scenario, seeds, config.threads, name, config.senders)
    runs = [agent, *(evaluation.run_baseline(control, worlds, seeds) for control in config.baselines)]
    run_dir = Path(config.run_dir or Path("runs", "evaluate", time.strftime("%Y%m%d-%H%M%S")))
    run_dir.mkdir(parents=True, exist_ok=True)
    title = f"{config.scenario.name}, {len(seeds)} seeds"
    write_atomic(run_dir / "table.md", f"{title}\n\n{evaluation.table(runs, config.confidence)}\n")
    result = {
        "schema": "netbuf-gym/evaluation/1",
        "netbuf_gym": __version__,
        "model": str(saved.path),
        "env": saved.env,
        "training": saved.progress,
        "training_seed": saved.config.seed,
        "scenario": scenario,
        "config": plain(config),
        **evaluation.to_dict(runs, config.confidence),
    }
    write_json(run_dir / "result.json", result)
    if config.plots:
        _draw(runs, worlds, run_dir, title)
    return run_dir


def _check(config: DictConfig) -> None:
    if not 0 < config.confidence < 1:
        raise ConfigError(f"confidence = {config.confidence!r} is out of range; valid: between 0 and 1")
    for key in ("torch_threads", "threads", "senders"):
        if not 1 <= config[key] <= 1024:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: 1 to 1024")
    known = sorted({control for stack in STACKS for control in congestion_controls(stack)} - {AGENT})
    for control in config.baselines:
        if control not in known:
            raise ConfigError(f"baselines holds {control!r}; valid: {', '.join(known)}")


def _draw(runs: list[evaluation.Runs], worlds: list, run_dir: Path, title: str) -> None:
    points = {one.name: (one.metrics["queue_delay_mean_ms"], one.metrics["goodput_mbps"]) for one in runs}
    capacities = {world.capacity_mbps for world in worlds}
    capacity = capacities.pop() if len(capacities) == 1 else None
    plots.throughput_delay(points, run_dir / "throughput_delay.png", title, capacity)
    seed = runs[0].seeds[0]
    series = {one.name: one.series for one in runs}
    plots.time_series(series, run_dir / "time_series.png", f"{title.partition(',')[0]}, seed {seed}")
    start = {n: {key: values[: _samples_until(s, 10.0)] for key, values in s.items()} for n, s in series.items()}
    plots.time_series(start, run_dir / "start.png", f"{title.partition(',')[0]}, seed {seed}, the first 10 s")


def _samples_until(series: dict, seconds: float) -> int:
    return int((series["time_s"] <= seconds + 1e-9).sum())
