"""`netbuf-gym demo`: train an agent for two minutes, judge it on unseen seeds, draw a world, say what was seen."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.evaluation import comparison
from netbuf_gym.evaluation.rollout import draw_worlds
from netbuf_gym.evaluation.summary import format_flows
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.metrics import Column, Measures
from netbuf_gym.training import curves
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import build_scenario_spec, merge_configs
from netbuf_gym.training.evaluate import evaluate
from netbuf_gym.training.jobs import Job, load_job
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.training.train import format_next_step, run
from netbuf_gym.utils import plots, statistics
from netbuf_gym.utils.overrides import quote_text
from netbuf_gym.utils.progress import print_line

SEEDS = 20
PATHS = ("rate_mbps=[2,40]", "rtt_ms=[20,120]", "buffer_bdp=[0.5,8]", "duration_s=30")


@dataclass(frozen=True)
class JudgedWorlds:
    """Worlds that the agent is judged in.

    Attributes:
        says: What they are, behind "on".
        scenario: Scenario that the seeds draw them from.
        kwargs: Its arguments, `key=value` each.
    """

    says: str
    scenario: str
    kwargs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demonstration:
    """What is shown of a task's agent.

    Attributes:
        worlds: Kinds of worlds that it is judged in.
        drawn: Number of the kind of which the first world is drawn.
        beside: Controllers that are drawn and named beside it.
        series: Series that are drawn; empty: all of the task's.
    """

    worlds: tuple[JudgedWorlds, ...]
    drawn: int
    beside: tuple[str, ...]
    series: tuple[str, ...] = ()


DEMONSTRATIONS = {
    "congestion_window": Demonstration(
        (
            JudgedWorlds("links that never change", "paths/fixed", PATHS),
            JudgedWorlds("links whose rate changes", "paths/steps", PATHS),
            JudgedWorlds("cellular links", "paths/cellular", (*PATHS, "networks=['4g','5g']")),
            JudgedWorlds("links with a rival", "paths/rivals", (*PATHS, "competitors=[cubic,bbr,newreno]")),
        ),
        drawn=2,
        beside=("cubic", "bbr"),
        series=("throughput_mbps", "queue_packets"),
    )
}
"""Demonstrations of tasks; those of other tasks have the scenarios that their agents are compared on (`get_demonstration`)."""


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
    task = config.env.name
    shown = get_demonstration(task)
    found = {}
    for worlds in shown.worlds:
        out = run_dir / "evaluation" / worlds.scenario.replace("/", "-")
        words = [f"model={quote_text(str(result.model_path))}", f"scenario={worlds.scenario}", f"seeds={SEEDS}"]
        words += [f"scenario.kwargs.{one}" for one in worlds.kwargs]
        words += [f"run_dir={quote_text(str(out))}", f"progress={config.progress}", "lines=null"]
        evaluate(load_job("evaluate", words).config)
        print(f"\n{worlds.says}: {(out / 'table.md').read_text()}", end="", flush=True)
        found[worlds.says] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    picture = run_dir / "demo.png"
    drawn = draw_world(result.model_path, task, shown, picture)
    measures = tasks.get(task).measures
    print(f"\nmodel, tables, result.json and plots: {run_dir}")
    if drawn:
        print(f"one world of {shown.worlds[shown.drawn].says}, the agent beside {' and '.join(shown.beside)}: {picture}")
    said = summarise_results(found, shown.worlds[shown.drawn].says, shown.beside, measures)
    print(f"{format_next_step(result)}\n\n" + "\n".join(said))
    return 0


def get_demonstration(task: str) -> Demonstration:
    """Return what is shown of a task's agent."""
    if task in DEMONSTRATIONS:
        return DEMONSTRATIONS[task]
    record = tasks.get(task)
    beside = tuple(one for one in (*record.measures.shown, *record.measures.baselines) if one != "random")
    worlds = tuple(JudgedWorlds(scenario, scenario) for scenario in record.benchmark)
    return Demonstration(worlds, 0, tuple(dict.fromkeys(beside))[:2])


def draw_world(model: Path, task: str, shown: Demonstration, path: Path) -> bool:
    """Draw the agent beside others over time, in the first world of the kind that is drawn; return False without series."""
    measures = tasks.get(task).measures
    rows = [(key, label) for key, label in measures.series if not shown.series or key in shown.series]
    if not rows:
        return False
    worlds = shown.worlds[shown.drawn]
    words = [f"scenario={worlds.scenario}", *(f"scenario.kwargs.{one}" for one in worlds.kwargs)]
    scenario = build_scenario_spec(load_job("evaluate", words).config.scenario, tasks.get(task).rules.default_scenario)
    agent = SavedAgent(checkpoint.read_model(model))
    one = draw_worlds(task, scenario, [FIRST_EVALUATION_SEED])
    runs = [comparison.run(agent, one, task=task, scenario=scenario, name="agent", **agent.env)]
    runs += comparison.run_baselines(task, shown.beside, one, scenario=scenario, env=agent.env)
    world = one[0].scenario
    limits = {limit.key: (limit.label, limit.of(world)) for limit in measures.series_limits if isinstance(world, Scenario)}
    title = f"{worlds.scenario}, seed {FIRST_EVALUATION_SEED}"
    plots.plot_time_series({each.name: each.series for each in runs}, path, rows, title, None, limits)
    return True


def summarise_results(
    found: Mapping[str, Mapping[str, Any]], drawn: str, beside: Sequence[str], measures: Measures
) -> tuple[str, str, str]:
    """Return three sentences on an agent's results: where it is ahead, what it does in the worlds drawn, where it is behind.

    One controller is ahead of another where the interval of their difference, paired by seed, excludes 0.

    Args:
        found: Contents of `result.json` by what the worlds are; the agent is the first controller of each.
        drawn: The worlds of which one is drawn.
        beside: Controllers that are named beside the agent.
        measures: The task's measures.
    """
    score, kinds = measures.score, len(found)
    better = "lower" if measures.lower_is_better else "higher"
    ahead = {name: [where for where, one in found.items() if compare_scores(one, name, measures) > 0] for name in beside}
    wins = ", ".join(f"of {name} on {_list_places(where, kinds)}" for name, where in ahead.items())
    leaders = {where: _find_leaders(one, measures) for where, one in found.items()}
    unbeaten = [where for where in found if not leaders[where]]
    rest = f"nothing is ahead of it on {_list_places(unbeaten, kinds)}" if unbeaten else "something is ahead of it everywhere"
    what = f"By {score} ({better} is better), where the 95 % interval of a difference excludes 0,"
    first = f"{what} the agent is ahead {wins}; {rest}."
    one, count = found[drawn], len(found[drawn]["controllers"][found[drawn]["first"]]["seeds"])
    metrics = [metric for metric, _ in reversed(measures.scatter or ())] or [score]
    agent = " and ".join(format_mean(one, one["first"], metric, measures, named=True) for metric in metrics)
    others = [f"{name} {' and '.join(format_mean(one, name, metric, measures) for metric in metrics)}" for name in beside]
    second = f"On {drawn} the agent has {', '.join([agent, *others])}, means of {count} worlds."
    behind = [
        (abs(found[where]["controllers"][found[where]["first"]]["intervals"][score][0] - value), where, name)
        for where, names in leaders.items()
        for name in names
        if _is_number(value := found[where]["controllers"][name]["intervals"][score][0])
    ]
    if not behind:
        return first, second, f"Nothing is ahead of it that {count} seeds can tell from chance."
    _, where, name = max(behind)
    its, theirs = (format_mean(found[where], who, score, measures) for who in (found[where]["first"], name))
    return first, second, f"It is furthest behind on {where}: {name} has a {score} of {theirs} there, and it {its}."


def compare_scores(result: Mapping[str, Any], name: str, measures: Measures) -> int:
    """Return 1 where the agent's score is better than a controller's in an evaluation, -1 where it is worse, else 0."""
    ours, theirs = (result["controllers"][who]["episodes"][measures.score] for who in (result["first"], name))
    sign = -1 if measures.lower_is_better else 1
    pairs = [sign * (a - b) for a, b in zip(ours, theirs, strict=True) if _is_number(a) and _is_number(b)]
    if len(pairs) < 2:
        return 0
    interval = statistics.mean_interval(np.array(pairs))
    return 1 if interval.low > 0 else -1 if interval.high < 0 else 0


def _find_leaders(result: Mapping[str, Any], measures: Measures) -> list[str]:
    """Return the controllers that are ahead of the agent."""
    return [name for name in result["controllers"] if name != result["first"] and compare_scores(result, name, measures) < 0]


def format_mean(result: Mapping[str, Any], name: str, metric: str, measures: Measures, named: bool = False) -> str:
    """Return the mean of a metric with unit and number of flows, as tables show it, and with its name if `named`."""
    columns = (column for column in measures.columns if isinstance(column, Column) and column.metric == metric)
    column = next(columns, Column(metric, metric, 3))
    label, _, unit = column.label.removesuffix(")").partition(" (")
    value = result["controllers"][name]["intervals"][metric][0]
    text = f"{column.factor * value:.{column.digits}f}" if _is_number(value) else "no value"
    flows = result["controllers"][name].get("flows", {}).get(metric)
    of = "" if flows is None else f"({format_flows(flows)})"
    return " ".join(part for part in (label if named else "", text, unit, of) if part)


def _list_places(some: Sequence[str], kinds: int) -> str:
    if not some or len(some) == kinds:
        return f"{'all' if some else 'none'} of {kinds} kinds of worlds" if kinds > 1 else f"{'all' if some else 'no'} worlds"
    return f"{len(some)} of {kinds} kinds of worlds ({', '.join(some)})"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
