"""`netbuf-gym evaluate`: compare a trained agent with baselines, in worlds that it was not trained on; see its `--help`."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from omegaconf import DictConfig

from netbuf_gym import tasks
from netbuf_gym.envs.engine import MAX_THREADS, pop_agents
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.evaluation import comparison, summary
from netbuf_gym.evaluation.rollout import draw_worlds
from netbuf_gym.evaluation.worlds import read_worlds
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.metrics import Measures
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import build_scenario_spec, to_plain
from netbuf_gym.training.jobs import Job
from netbuf_gym.training.ranges import MAX_TORCH_THREADS, resolve_evaluation_seeds
from netbuf_gym.utils import plots
from netbuf_gym.utils.arguments import check_choice, check_integer
from netbuf_gym.utils.files import make_folder, write_atomic, write_json
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import format_number
from netbuf_gym.version import __version__
from netbuf_gym.zoo import library


def main(job: Job) -> int:
    """Run the command and return its exit status, 0. Raises as `evaluate` does."""
    run_dir = evaluate(job.config)
    print((run_dir / "table.md").read_text(), end="")
    print(f"written to {run_dir}")
    return 0


def describe_outcome(run_dir: Path) -> tuple[str, str]:
    """Return the label and value of an evaluation for a table of runs: the first controller's mean score."""
    result = json.loads((run_dir / "result.json").read_text(encoding="utf-8"))
    score = tasks.get(result["task"]).measures.score
    first = result["controllers"][result["first"]]
    score = score if score in first["intervals"] else next(iter(first["intervals"]))
    flows = first.get("flows", {}).get(score)
    of = "" if flows is None else f", {summary.format_flows(flows)}"
    return score, format_number(first["intervals"][score][0]) + of


def evaluate(config: DictConfig) -> Path:
    """Evaluate by a configuration as `load_job` returns it, and return the run directory.

    Raises:
        CheckpointError: The model cannot be read, or does not fit.
        ConfigError, ScenarioError: The configuration cannot be used.
        OSError: The run directory cannot be written.
    """
    seeds = resolve_evaluation_seeds(config.seeds)
    saved = None if config.model is None else checkpoint.read_model(library.find_agent_path(config.model))
    if saved is not None and config.env_id is not None and saved.env.get("id") != config.env_id:
        raise CheckpointError(f"{saved.path}: was trained on {saved.env.get('id')!r}, not on {config.env_id!r}")
    task = _resolve_task(config, saved)
    rules, measures = tasks.get(task).rules, tasks.get(task).measures
    names = list(measures.baselines) if config.baselines is None else list(config.baselines)
    _check_arguments(config, task, names)
    th.set_num_threads(config.torch_threads)
    listed = _read_worlds(config)
    scenario = build_scenario_spec(config.scenario, rules.default_scenario) if listed is None else listed[0]
    agent = None if saved is None else SavedAgent(saved, config.model if config.model in library.names() else None)
    env = {"recipe": config.recipe or rules.recipes[0]} if agent is None else agent.env
    where = {"agents": _resolve_agents(config, task)} | ({} if config.plant is None else {"plant": to_plain(config.plant)})
    env |= where
    worlds = draw_worlds(task, scenario if listed is None else listed, seeds, **where)
    if config.run_dir is not None:
        make_folder(Path(config.run_dir), "run_dir")
    runs = []
    total = len(worlds) * (len(names) + (agent is not None))
    with ProgressBar("evaluating", line_seconds=None, shown=config.progress) as bar:
        counted = comparison.WorldProgress(bar, total)
        if agent is not None:
            shared = {"scenario": scenario, "threads": config.threads, "each": counted, "flows": config.pooled}
            runs.append(comparison.run(agent, worlds, task=task, **shared, **env))
        shared = {"scenario": scenario, "threads": config.threads, "env": env, "each": counted, "flows": config.pooled}
        runs += comparison.run_baselines(task, names, worlds, **shared)
    run_dir = _make_timed_folder(Path("runs", "evaluate", task)) if config.run_dir is None else Path(config.run_dir)
    if listed is not None:
        title = f"{len(listed)} worlds of {Path(config.worlds).name}, {len(seeds)} seeds each"
    else:
        title = f"{scenario['name'] if isinstance(scenario, dict) else scenario}, {len(seeds)} seeds"
    first = "the agent" if saved is not None else runs[0].name
    measures = measures.fill_in(key for key in runs[0].metrics if key not in runs[0].timing)
    text = f"{title}\n\n{summary.format_table(runs, measures, config.confidence, first)}\n\n"
    text += f"{summary.format_notes(measures, first)}\n"
    valid = "valid: longer worlds, or pooled=true, which is over the flows of all seeds"
    doubts = [f"{line}; {valid}" for line in summary.warn_of_few(runs, measures)] + summary.warn_of_equal(runs, measures)
    text += "".join(f"\nWarning: {line}\n" for line in doubts)
    if config.pooled:
        text += "\nslowdown (FCT / ideal FCT) over the flows of all seeds together, percentiles by nearest rank\n\n"
        text += f"{summary.format_pooled(runs)}\n"
    more = summary.format_details(runs, measures, config.confidence)
    if more:
        text += f"\n{more}\n"
    if times := summary.format_timing(runs, config.confidence):
        text += f"\n{times}\n"
    parts = summary.format_breakdown(runs, [world.scenario for world in worlds], measures)
    if listed is not None and len(listed) > 1:
        own = [f"{k // len(seeds) + 1}. {world.scenario.name}".rstrip() for k, world in enumerate(worlds)]
        text += f"\n{measures.score} by world, the best in bold\n\n{summary.format_worlds(runs, own, measures)}\n"
    elif parts:
        text += f"\n{measures.score} by the worlds that the seeds drew, the best in bold\n\n{parts}\n"
    # result.json marks the folder as complete and of one evaluation: removed first, written last.
    (run_dir / "result.json").unlink(missing_ok=True)
    write_atomic(run_dir / "table.md", text)
    result = {
        "schema": "netbuf-gym/evaluation/1",
        "netbuf_gym": __version__,
        "model": None if saved is None else str(saved.path),
        "task": task,
        "env": None if saved is None else saved.env,
        "training": None if saved is None else saved.progress,
        "training_seed": None if saved is None else saved.config.seed,
        "scenario": scenario if listed is None else None,
        "worlds": listed,
        "config": to_plain(config),
        "warnings": doubts,
        **summary.to_dict(runs, measures, config.confidence, "the_agent" if saved is not None else "the_first"),
    }
    if config.plots:
        _draw_pictures(runs, [world.scenario for world in worlds], run_dir, title, measures, config.lines)
    write_json(run_dir / "result.json", result)
    return run_dir


def _make_timed_folder(parent: Path) -> Path:
    """Make a folder named by the time, with a suffix if that name is taken."""
    name = time.strftime("%Y%m%d-%H%M%S")
    for more in itertools.count():
        path = parent / (f"{name}-{more}" if more else name)
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            continue
    raise AssertionError


def _read_worlds(config: DictConfig) -> list[str | dict[str, Any]] | None:
    """Return the worlds of one's own that are evaluated in the scenario's place; None: the scenario's."""
    if config.worlds is None:
        return None
    if config.scenario.name is not None or config.scenario.kwargs:
        raise ConfigError(f"worlds = {config.worlds!r} and scenario = {config.scenario.name!r}; valid: one of them")
    return read_worlds(config.worlds)


def _resolve_task(config: DictConfig, saved: checkpoint.SavedModel | None) -> str:
    """Return the name of the task: the model's, or the configured one."""
    if saved is None:
        if config.task is None:
            raise ConfigError("missing: model=..., or model=null env=... for baselines alone")
        task = tasks.get(config.task).name
        if config.env_id is not None and tasks.find_task(config.env_id) != task:
            valid = tasks.get(task).ids[0]
            raise ConfigError(f"env_id = {config.env_id!r} is not of task {task!r}; valid: {valid}, or null")
        return task
    schema = saved.env.get("schema")
    own = schema.get("task") if isinstance(schema, dict) else None
    if own not in tasks.names():
        raise CheckpointError(f"{saved.path}: is of task {own!r}; valid: {', '.join(tasks.names())}")
    if config.recipe not in (None, saved.env["schema"].get("recipe")):
        recipe = saved.env["schema"].get("recipe")
        raise CheckpointError(f"{saved.path}: was trained with recipe {recipe!r}, not with {config.recipe!r}")
    if config.task not in (None, own):
        raise CheckpointError(f"{saved.path}: was trained on task {own!r}, not on {config.task!r}")
    return str(own)


def _resolve_agents(config: DictConfig, task: str) -> int:
    """Return the number of agents in a world, given by either of its names."""
    given = {key: config[key] for key in ("agents", "senders") if config[key] is not None}
    for key, value in given.items():
        if key not in ("agents", tasks.get(task).rules.agents_argument):
            raise ConfigError(f"{key} = {value!r} is no argument of task {task!r}; valid: agents=...")
    return pop_agents({"task": task, **given})[1]


def _check_arguments(config: DictConfig, task: str, names: Sequence[str]) -> None:
    for key, most in (("torch_threads", MAX_TORCH_THREADS), ("threads", MAX_THREADS)):
        check_integer(key, config[key], 1, most)
    known = tasks.get(task).controllers
    for name in names:
        if name not in known:
            raise ConfigError(f"baselines holds {name!r}; valid: {', '.join(known)}")
        if names.count(name) > 1:
            raise ConfigError(f"baselines holds {name!r} twice; valid: each once")
    if config.lines is not None:
        check_integer("lines", config.lines, 1, 1000)
    if config.recipe is not None:
        check_choice("recipe", config.recipe, tasks.get(task).rules.recipes)
    if config.model is None and not names:
        raise ConfigError("baselines is empty and model is null; valid: at least one of them")


def _draw_pictures(
    runs: list[summary.Runs],
    worlds: Sequence[Scenario],
    run_dir: Path,
    title: str,
    measures: Measures,
    most: int | None,
) -> None:
    limits = {one.key: (one.label, one.of(worlds[0])) for one in measures.series_limits}
    if measures.scatter is not None:
        (x, x_label), (y, y_label) = measures.scatter
        points = {one.name: (one.metrics[x], one.metrics[y]) for one in runs}
        values = {measures.limit(world) for world in worlds} if measures.limit is not None else set()
        limit = values.pop() if len(values) == 1 else None
        varies = any(len(steps[1]) > 1 for _, steps in limits.values())
        what = "mean capacity" if varies else "capacity"
        plots.plot_throughput_delay(points, run_dir / "throughput_delay.png", title, limit, x_label, y_label, what)
    if not measures.series:
        return
    seed = runs[0].seeds[0]
    numbers = {one.name: k for k, one in enumerate(runs)}  # the same colour in all pictures
    series = {one.name: one.series for one in (runs if most is None else choose_readable(runs, measures, most))}
    name = title.partition(",")[0]
    plots.plot_time_series(series, run_dir / "time_series.png", measures.series, f"{name}, seed {seed}", numbers, limits)
    start = {n: {key: values[: _count_samples_until(s, 10.0)] for key, values in s.items()} for n, s in series.items()}
    title = f"{name}, seed {seed}, the first 10 s"
    plots.plot_time_series(start, run_dir / "start.png", measures.series, title, numbers, limits)


def choose_readable(runs: Sequence[summary.Runs], measures: Measures, most: int) -> list[summary.Runs]:
    """Return as many controllers as lines in one panel can be told apart: the first, the best, and those that show the range.

    The task names the latter (`Measures.shown`); all are returned where there are at most `most`.
    """
    if len(runs) <= most:
        return list(runs)
    better = (-1 if measures.lower_is_better else 1) * np.array([one.compute_interval(measures.score).mean for one in runs])
    ranked = np.argsort(-better, kind="stable")  # NaN last
    shown = [k for k, one in enumerate(runs) if one.name.partition(" ")[0] in measures.shown]
    chosen = list(dict.fromkeys([0, *ranked[:2].tolist(), *shown, *ranked.tolist()]))[:most]
    return [runs[k] for k in sorted(chosen)]


def _count_samples_until(series: dict, seconds: float) -> int:
    return int((series["time_s"] <= seconds + 1e-9).sum())
