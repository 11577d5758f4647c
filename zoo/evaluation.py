"""Agents and baselines run over the same worlds, and measured alike."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import baselines, stats, tasks
from netbuf_gym.engine import Engine
from netbuf_gym.results import Result
from netbuf_gym.scenarios import Scenario
from netbuf_gym.simulation import simulate
from netbuf_gym.tasks.congestion_window import episode_report
from netbuf_gym.vector import VectorEnv
from netbuf_gym.zoo import checkpoint, models
from netbuf_gym.zoo.measures import Column, Group, Margin, Measures, measures_of

SAMPLE_S = 0.1
"""Time between samples of baselines' series."""


@dataclass(frozen=True)
class Runs:
    """One controller over several seeds.

    Attributes:
        name: of the controller.
        seeds: of the episodes.
        metrics: (seeds,) of each metric: of whole episodes, start-up included; mean over the world's agents.
        series: of the first seed: time_s and what the task's measures name, (samples,), of the first agent.
    """

    name: str
    seeds: list[int]
    metrics: dict[str, np.ndarray]
    series: dict[str, np.ndarray]

    def interval(self, metric: str, confidence: float = 0.95) -> stats.Interval:
        """Mean over the seeds of the episodes in which the metric was measured, with its t interval."""
        values = self.metrics[metric][np.isfinite(self.metrics[metric])]
        return stats.mean_interval(values, confidence) if len(values) else stats.Interval(*[math.nan] * 3)


@dataclass(frozen=True)
class World:
    """What a controller met under one seed: the scenario, and the seed of its simulator."""

    scenario: Scenario
    seed: int


def env_of(saved: checkpoint.Saved) -> dict[str, Any]:
    """The arguments of a saved agent's environment that say what it sees and decides, and when."""
    return {k: v for k, v in saved.env["kwargs"].items() if k not in ("reward", "max_episode_steps", "scenario")}


def run_agent(
    saved: checkpoint.Saved,
    scenario: str | dict[str, Any],
    seeds: Sequence[int],
    threads: int = 1,
    name: str = "agent",
    senders: int = 1,
) -> tuple[Runs, list[World]]:
    """Runs a saved agent, greedily, over one world a seed; also says which worlds these were.

    With several `senders` the agent controls as many in each world, each by what that sender sees.

    Raises:
        CheckpointError: the model does not fit its environment as it is now.
        ConfigError: an unknown scenario or environment.
    """
    kwargs = env_of(saved) | {"scenario": scenario, "agents": senders}
    adapter = models.make_env(saved.env["id"], len(seeds) * senders, threads, kwargs)
    try:
        checkpoint.require_same_env(saved, checkpoint.describe(adapter, saved.env["id"], kwargs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about batch sizes, which only matter for training
            model = models.make_model(_for_prediction(saved.config.algo), adapter, seed=0)
        checkpoint.restore(saved, model, rng=False)
        return _play(adapter.env, model.predict, seeds, name)
    finally:
        adapter.close()


def run_controller(
    controller: baselines.Controller,
    scenario: str | dict[str, Any],
    seeds: Sequence[int],
    threads: int = 1,
    name: str = "controller",
    **kwargs: Any,
) -> tuple[Runs, list[World]]:
    """Runs a controller that decides as agents do; `kwargs` go to the environment."""
    kwargs = {"task": controller.task, "recipe": controller.recipe, **kwargs}
    rows = len(seeds) * kwargs.get("agents", 1)
    env = VectorEnv(rows, scenario=scenario, threads=threads, **kwargs)
    return _play(env, controller.fitted(env.engine.task).predict, seeds, name)


def _play(env: Any, predict: Callable[..., tuple[Any, Any]], seeds: Sequence[int], name: str) -> tuple[Runs, list[World]]:
    """One episode of every world, seeded one by one."""
    engine: Engine = env.unwrapped.engine
    measures = measures_of(engine.task.name)
    observations, _ = env.reset(seed=list(seeds))
    worlds = [World(scenario, int(seed)) for scenario, seed in zip(engine.scenarios, engine.seeds, strict=True)]
    found: list[dict[str, float] | None] = [None] * env.num_envs
    series: list[dict[str, float]] = []
    state, starts = None, np.ones(env.num_envs, bool)
    while any(report is None for report in found):
        actions, state = predict(observations, state=state, episode_start=starts, deterministic=True)
        observations, _, _, starts, info = env.step(actions)
        if found[0] is None and not starts[0]:
            series.append(engine.show(0))
        for row in np.flatnonzero(starts):
            if found[row] is None:
                report = info["final_info"]
                found[row] = {one: float(report[one][row]) for one in measures.metrics if one in report}
    metrics = _metrics(measures, found, len(seeds))
    drawn = {key: np.array([sample[key] for sample in series]) for key in ("time_s", *dict(measures.series))}
    return Runs(name, list(seeds), metrics, drawn), worlds


def _metrics(measures: Measures, reports: Sequence[dict[str, Any]], seeds: int) -> dict[str, np.ndarray]:
    """(seeds,) of each metric, mean over a world's agents; NaN where a report lacks it."""
    columns = {one: np.array([float(report.get(one, math.nan)) for report in reports]) for one in measures.metrics}
    return {one: values.reshape(seeds, -1).mean(axis=1) for one, values in columns.items()}


def draw_worlds(
    scenario: str | dict[str, Any], seeds: Sequence[int], task: str = "queue_threshold", senders: int = 1
) -> list[World]:
    """The worlds that an agent of the task would meet under these seeds."""
    return [World(*drawn) for drawn in baselines.draw_worlds(scenario, seeds, task, senders)]


def run_baselines(
    task: str,
    names: Sequence[str],
    scenario: str | dict[str, Any],
    worlds: Sequence[World],
    seeds: Sequence[int],
    threads: int = 1,
    env: dict[str, Any] | None = None,
) -> list[Runs]:
    """Runs the baselines of a task in the worlds that an agent met.

    Args:
        env: the agent's arguments for its environment: what baselines that decide as agents do play by. One that does
            not speak its recipe plays by its own; rows of another recipe than the default one say so.

    Raises:
        ConfigError: a baseline that the task does not have.
    """
    runs = []
    for name in names:
        kind = baselines.CONTROLLERS[task].get(name, (None,))[0]
        if kind is not None and issubclass(kind, baselines.Controller):
            runs.append(_run_named(name, task, scenario, seeds, threads, dict(env or {})))
        elif kind is baselines.BufferScheme:
            runs.append(run_scheme(baselines.make(name, task), worlds, seeds, threads))
        else:
            runs.append(run_baseline(name, [world.scenario for world in worlds], seeds))
    return runs


def _run_named(
    name: str, task: str, scenario: str | dict[str, Any], seeds: Sequence[int], threads: int, env: dict[str, Any]
) -> Runs:
    controller = baselines.make(name, task)
    recipe = env.get("recipe", controller.recipe)
    if recipe not in controller.recipes:
        env = {key: env[key] for key in ("interval_s", "agents") if key in env}
        recipe = controller.recipe
    label = name if recipe == tasks.get(task).rules.recipes[0] else f"{name} ({recipe})"
    return run_controller(controller, scenario, seeds, threads, label, **{**env, "recipe": recipe})[0]


def run_scheme(scheme: baselines.BufferScheme, worlds: Sequence[World], seeds: Sequence[int], threads: int = 1) -> Runs:
    """Runs a buffer scheme in the agent's place, in each world under its own seed."""
    measures = measures_of(scheme.task)
    with ThreadPoolExecutor(threads) as pool:
        reports = list(pool.map(lambda world: scheme.episode(world.scenario, world.seed), worlds))
    series = scheme.series(worlds[0].scenario, worlds[0].seed, SAMPLE_S)
    blank = np.full(len(series["time_s"]), math.nan)
    drawn = {key: series.get(key, blank) for key in ("time_s", *dict(measures.series))}
    return Runs(scheme.name, list(seeds), _metrics(measures, reports, len(seeds)), drawn)


def run_baseline(congestion_control: str, worlds: Sequence[Scenario], seeds: Sequence[int]) -> Runs:
    """Runs a congestion control in the agent's place, in each world under its seed.

    Raises:
        ConfigError: a congestion control that the simulator does not have.
    """
    measures = measures_of("congestion_window")
    reports, series = [], {}
    for world, seed in zip(worlds, seeds, strict=True):
        agents = [index for index, flow in enumerate(world.flows) if flow.cc == "agent"]
        senders = [congestion_control if flow.cc == "agent" else flow.cc for flow in world.flows]
        result = simulate(world.with_senders(senders), seed=seed, sample_interval_s=None if series else SAMPLE_S)
        if not series:
            columns = {"time_s": result.series["time_s"], "queue_packets": result.series["queue_packets"]}
            bottleneck = [link.name for link in result.links].index(result.bottleneck)
            columns["queue_packets"] = columns["queue_packets"][:, bottleneck]
            columns |= {key: result.series[key][:, agents[0]] for key in ("cwnd_packets", "rtt_ms")}
            series = columns
        reports += [_report(world, result, flow) for flow in agents]
    return Runs(congestion_control, list(seeds), _metrics(measures, reports, len(seeds)), series)


def table(runs: Sequence[Runs], measures: Measures, confidence: float = 0.95, first: str = "the agent") -> str:
    """Markdown table: a row a controller, means with the half-widths of their intervals, and margins to the first.

    A margin is the first controller's measure minus the row's, paired by seed. Where a seed gave no value, the row says
    from how many a mean is.

    Args:
        first: how the heads of margins call the first controller.
    """
    return _table(runs, measures.columns, confidence, first)


def details(runs: Sequence[Runs], measures: Measures, confidence: float = 0.95) -> str:
    """Markdown table of the task's further measures, a row a controller; empty where there are none."""
    return _table(runs, measures.details, confidence, "") if measures.details else ""


def _table(runs: Sequence[Runs], columns: Sequence[Column | Margin], confidence: float, first: str) -> str:
    heads = [f"{one.label} of {first}" if isinstance(one, Margin) else one.label for one in columns]
    lines = [f"| controller | {' | '.join(heads)} |", f"|:--|{'--:|' * len(heads)}"]
    for one in runs:
        cells = [_entry(column, runs[0], one, confidence) for column in columns]
        lines.append(f"| {one.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def notes(measures: Measures, first: str) -> str:
    """How the tables are to be read."""
    metrics = [one.metric for one in measures.columns if isinstance(one, Margin)]
    better = "below" if measures.lower_is_better else "above"
    others = "".join(f"; one in {metric} above 0 that it has more" for metric in metrics if metric != measures.score)
    return (
        f"A margin is the value of {first} minus the row's, paired by seed: one in {measures.score} {better} 0 says that "
        f"{first} is better{others}. Means are over the seeds that gave a value; (n of N) says how many where some gave none."
    )


def _entry(column: Column | Margin, first: Runs, one: Runs, confidence: float) -> str:
    if isinstance(column, Margin):
        return "" if one is first else margin_cell(margin(first, one, column.metric, confidence, column.relative))
    interval = stats.Interval(*(column.factor * x for x in one.interval(column.metric, confidence)))
    measured, seeds = int(np.isfinite(one.metrics[column.metric]).sum()), len(one.seeds)
    some = f" ({measured} of {seeds})" if 0 < measured < seeds else ""
    return _cell(interval, column.digits) + some


def margin(ours: Runs, theirs: Runs, metric: str, confidence: float = 0.95, relative: bool = False) -> stats.Interval:
    """Mean of our metric minus theirs, paired by seed, over the seeds where both have one; with its t interval.

    `relative`: in per cent of the mean of theirs.
    """
    difference = ours.metrics[metric] - theirs.metrics[metric]
    both = np.isfinite(difference)
    if not both.any():
        return stats.Interval(*[math.nan] * 3)
    factor = 100 / theirs.metrics[metric][both].mean() if relative else 1.0
    return stats.mean_interval(factor * difference[both], confidence)


def breakdown(runs: Sequence[Runs], worlds: Sequence[Scenario], measures: Measures) -> str:
    """Markdown tables of the mean score by properties of the worlds, empty if all are alike.

    The best of a row is bold, and its last cell names those that are ahead of the first controller by more than 0.5 %.
    """
    tables = [_by_group(runs, worlds, group, measures) for group in measures.groups]
    return "\n\n".join(one for one in tables if one)


def _by_group(runs: Sequence[Runs], worlds: Sequence[Scenario], group: Group, measures: Measures) -> str:
    parts = _parts([group.of(world) for world in worlds], group)
    if len(parts) < 2:
        return ""
    names = [one.name for one in runs]
    lines = [
        f"| {group.label} | seeds | {' | '.join(names)} | ahead of {names[0]} |",
        f"|:--|--:|{'--:|' * len(runs)}:--|",
    ]
    for label, chosen in parts.items():
        means = []
        for one in runs:
            values = one.metrics[measures.score][chosen]
            means.append(float(np.nanmean(values)) if np.isfinite(values).any() else math.nan)
        best = math.nan
        if np.isfinite(means).any():
            best = float((np.nanmin if measures.lower_is_better else np.nanmax)(means))
        cells = ["-" if mean != mean else f"**{mean:.2f}**" if mean == best else f"{mean:.2f}" for mean in means]
        gain = (means[0] - np.array(means)) * (1 if measures.lower_is_better else -1)
        ahead = [name for name, one in zip(names, gain > 0.005 * abs(means[0]), strict=True) if one]
        lines.append(f"| {label} | {int(chosen.sum())} | {' | '.join(cells)} | {', '.join(ahead)} |")
    return "\n".join(lines)


def _parts(values: Sequence[float | str], group: Group) -> dict[str, np.ndarray]:
    """Which worlds belong together: those of one value, or quarters where there are many values."""
    array = np.array(values)
    distinct = np.unique(array)
    if array.dtype.kind != "f":
        return {str(one): array == one for one in distinct}
    if len(distinct) <= 10:
        return {f"{one:.{group.digits}f}": array == one for one in distinct}
    edges = np.quantile(array, np.linspace(0, 1, 5))
    quarter = np.clip(np.searchsorted(edges, array, side="right") - 1, 0, 3)
    return {f"{edges[k]:.{group.digits}f} to {edges[k + 1]:.{group.digits}f}": quarter == k for k in range(4)}


def to_dict(runs: Sequence[Runs], measures: Measures, confidence: float = 0.95, whose: str = "the_agent") -> dict[str, Any]:
    """JSON-able form: every episode, means with intervals, the number of seeds that gave a value.

    Margins are the first controller's minus the row's, paired by seed; `first` names it. What has no value is None.
    """
    margins = [column for column in measures.columns if isinstance(column, Margin)]
    return {
        "confidence": confidence,
        "first": runs[0].name,
        "controllers": {
            one.name: {
                "seeds": one.seeds,
                "episodes": {metric: values.tolist() for metric, values in one.metrics.items()},
                "measured": {metric: int(np.isfinite(values).sum()) for metric, values in one.metrics.items()},
                "intervals": {metric: list(one.interval(metric, confidence)) for metric in measures.metrics},
                **{
                    f"{column.metric}_margin_of_{whose}{'_percent' if column.relative else ''}": None
                    if one is runs[0]
                    else list(margin(runs[0], one, column.metric, confidence, column.relative))
                    for column in margins
                },
            }
            for one in runs
        },
    }


def margin_cell(interval: stats.Interval) -> str:
    """A margin with its interval, the mean alone where one seed gives none, `-` where nothing was measured."""
    if not math.isfinite(interval.mean):
        return "-"
    if not math.isfinite(interval.low):
        return f"{interval.mean:.3f}"
    return str(interval)


def _cell(interval: stats.Interval, digits: int) -> str:
    half = (interval.high - interval.low) / 2
    if not math.isfinite(interval.mean):
        return "-"
    return f"{interval.mean:.{digits}f}" + (f" ± {half:.{digits}f}" if math.isfinite(half) else "")


def _report(world: Scenario, result: Result, flow: int) -> dict[str, float]:
    """The report that an agent in this flow's place would get: by the same function, from the same counters."""
    own, link = result.flows[flow], result.links[result.bottleneck]
    measured = math.isfinite(own.rtt_mean_ms)
    counters = {
        "now_s": world.duration_s,
        "delivered_bytes": own.delivered_bytes,
        "rtt_count": int(measured),
        "rtt_sum_s": own.rtt_mean_ms / 1e3,
        "rtt_min_s": own.rtt_min_ms / 1e3,
        "queue_drops": own.queue_drops,
        "random_losses": own.random_losses,
        "packets_sent": own.packets_sent,
        "timeouts": own.timeouts,
        "sojourn_sum_s": link.queue_delay_mean_ms / 1e3,
        "sojourn_count": int(math.isfinite(link.queue_delay_mean_ms)),
    }
    return episode_report(world, flow, counters)


def _for_prediction(algo: DictConfig) -> DictConfig:
    """The same networks without the memory that only training needs."""
    small = {"n_steps": 2, "batch_size": 2, "buffer_size": 1}
    return OmegaConf.merge(algo, {"kwargs": {key: value for key, value in small.items() if key in algo.kwargs}})
