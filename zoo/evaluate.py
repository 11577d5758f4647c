"""`netbuf-gym evaluate`: a trained agent beside baselines, over worlds that it was not trained on.

    netbuf-gym evaluate model=runs/congestion_window/ppo/20260101-120000-seed3 scenario=ppcc/4
    netbuf-gym evaluate model=model.zip scenario=ppcc/random seeds=100 baselines=[cubic,bbr]
    netbuf-gym evaluate model=model.zip scenario=ppcc/2 scenario.kwargs.rate_mbps=20 senders=2 run_dir=runs/twenty
    netbuf-gym evaluate model=null env=queue_threshold scenario=rlbm/cubic-500-0.6 baselines=[naive,dt,abm,random]

The agent acts greedily. Seeds start at 1000000, where training seeds end; every controller meets the same worlds (under a
distribution of scenarios, each seed draws its own), is run from its start to its end, and is measured alike. Prints a
table of means with 95 % t intervals over the seeds, and under a distribution what becomes of the score by properties of
the worlds, and writes them, result.json and plots into the run directory. Without a model the first baseline stands in
the agent's row.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch as th
from omegaconf import DictConfig

from netbuf_gym import plots
from netbuf_gym.baselines import CONTROLLERS
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.files import write_atomic, write_json
from netbuf_gym.scenarios import AGENT, congestion_controls
from netbuf_gym.scenarios.types import STACKS
from netbuf_gym.tasks import TASKS
from netbuf_gym.version import __version__
from netbuf_gym.zoo import checkpoint, evaluation
from netbuf_gym.zoo.config import evaluation_seeds, load, plain, scenario_spec
from netbuf_gym.zoo.measures import MEASURES, Measures, measures_of


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
    saved = None if config.model is None else checkpoint.read(config.model)
    if saved is not None and config.env_id is not None and saved.env.get("id") != config.env_id:
        raise CheckpointError(f"{saved.path}: was trained on {saved.env.get('id')!r}, not on {config.env_id!r}")
    task = _task(config, saved)
    measures = measures_of(task)
    controls = list(measures.baselines) if config.baselines is None else list(config.baselines)
    _check(config, task, controls)
    th.set_num_threads(config.torch_threads)
    scenario = scenario_spec(config.scenario, TASKS[task].default_scenario)
    runs, worlds = [], []
    if saved is not None:
        name = str(saved.config.algo.name)
        agent, worlds = evaluation.run_agent(saved, scenario, seeds, config.threads, name, config.senders)
        runs = [agent]
    elif task == "queue_threshold":
        worlds = evaluation.draw_worlds(scenario, seeds)
    else:
        raise ConfigError(f"model = null with env = {task}; valid: a model, or env=queue_threshold")
    interval_s = 0.1 if saved is None else saved.env["schema"]["interval_s"]
    runs += evaluation.run_baselines(task, controls, scenario, worlds, seeds, config.threads, interval_s)
    run_dir = Path(config.run_dir or Path("runs", "evaluate", time.strftime("%Y%m%d-%H%M%S")))
    run_dir.mkdir(parents=True, exist_ok=True)
    title = f"{scenario['name'] if isinstance(scenario, dict) else scenario}, {len(seeds)} seeds"
    first = "the agent" if saved is not None else runs[0].name
    text = f"{title}\n\n{evaluation.table(runs, measures, config.confidence, first)}\n"
    parts = evaluation.breakdown(runs, [world.scenario for world in worlds], measures)
    if parts:
        text += f"\n{measures.score} by the worlds that the seeds drew, the best in bold\n\n{parts}\n"
    write_atomic(run_dir / "table.md", text)
    result = {
        "schema": "netbuf-gym/evaluation/1",
        "netbuf_gym": __version__,
        "model": None if saved is None else str(saved.path),
        "task": task,
        "env": None if saved is None else saved.env,
        "training": None if saved is None else saved.progress,
        "training_seed": None if saved is None else saved.config.seed,
        "scenario": scenario,
        "config": plain(config),
        **evaluation.to_dict(runs, measures, config.confidence),
    }
    write_json(run_dir / "result.json", result)
    if config.plots:
        _draw(runs, [world.scenario.capacity_mbps for world in worlds], run_dir, title, measures)
    return run_dir


def _task(config: DictConfig, saved: checkpoint.Saved | None) -> str:
    """The task that is evaluated: the model's, or the one asked for."""
    if saved is None:
        if config.task is None:
            raise ConfigError("missing: model=..., or model=null env=... for baselines alone")
        return measures_of(config.task) and config.task
    schema = saved.env.get("schema")
    task = schema.get("task") if isinstance(schema, dict) else None
    if task not in MEASURES:
        raise CheckpointError(f"{saved.path}: is of task {task!r}; valid: {', '.join(MEASURES)}")
    if config.task not in (None, task):
        raise CheckpointError(f"{saved.path}: was trained on task {task!r}, not on {config.task!r}")
    return task


def _check(config: DictConfig, task: str, controls: Sequence[str]) -> None:
    if not 0 < config.confidence < 1:
        raise ConfigError(f"confidence = {config.confidence!r} is out of range; valid: between 0 and 1")
    for key in ("torch_threads", "threads", "senders"):
        if not 1 <= config[key] <= 1024:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: 1 to 1024")
    if task == "congestion_window":
        known = sorted({control for stack in STACKS for control in congestion_controls(stack)} - {AGENT})
    else:
        known = list(CONTROLLERS[task])
    for control in controls:
        if control not in known:
            raise ConfigError(f"baselines holds {control!r}; valid: {', '.join(known)}")
    if config.model is None and not controls:
        raise ConfigError("baselines is empty and model is null; valid: at least one of them")


def _draw(
    runs: list[evaluation.Runs], capacities_mbps: Sequence[float], run_dir: Path, title: str, measures: Measures
) -> None:
    (x, x_label), (y, y_label) = measures.scatter
    points = {one.name: (one.metrics[x], one.metrics[y]) for one in runs}
    capacity = capacities_mbps[0] if len(set(capacities_mbps)) == 1 else None
    plots.throughput_delay(points, run_dir / "throughput_delay.png", title, capacity, x_label, y_label)
    seed = runs[0].seeds[0]
    series = {one.name: one.series for one in runs}
    name = title.partition(",")[0]
    plots.time_series(series, run_dir / "time_series.png", f"{name}, seed {seed}", measures.series)
    start = {n: {key: values[: _samples_until(s, 10.0)] for key, values in s.items()} for n, s in series.items()}
    plots.time_series(start, run_dir / "start.png", f"{name}, seed {seed}, the first 10 s", measures.series)


def _samples_until(series: dict, seconds: float) -> int:
    return int((series["time_s"] <= seconds + 1e-9).sum())
