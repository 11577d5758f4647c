"""Train an experiment over several seeds, evaluate every agent, and write its agent card.

    python -m netbuf_gym.training.campaign env.threads=2
    python -m netbuf_gym.training.campaign experiment=ppcc_recipe out=zoo/agents/congestion_window/ppo_kl-ppcc
    python -m netbuf_gym.training.campaign seeds=2 total_timesteps=1000000 out=/tmp/trial

The campaign's own arguments are `seeds` (5) training seeds from `first_seed` (0) on, `evaluation_seeds` (20), `scenarios`
(those that agents of the task are compared on), `out` (zoo/agents/<task>/<algo>) and `runs` (runs/campaign/<task>/<experiment
or algo>). `suites=false` leaves out the task's suites, and the choice by them. `executor=joblib|ray|slurm` trains `jobs` (1)
seeds at once there, while `local` trains one after another. All other arguments go to `netbuf-gym train`.
Trained seeds are not trained again, and an interrupted one is resumed: run the command again. A run of another configuration
in the same place is an error.

Of a run with `snapshots` the model with the best score in `validation_seeds` (48) worlds of the scenario `validation` (the
training scenario by default) is kept, as best.zip in the run's folder; of other runs the last model. With
`validation.worst_weight=1` the family of worlds in which a model does worst counts as much as the mean over all, here and where
the seed is chosen; families need some worlds each, so that `validation_seeds` should be larger then. `validation.score=NAME`
chooses by another score of the task, and `constraints=[...]` costs score where a bound is missed: then the seed is chosen in
validation worlds, too, also where the task has a suite to choose on.

Writes model.zip (the seed that does best on the suite that the task chooses on, or else in validation worlds), config.yaml,
metrics.json and card.md into `out`; `netbuf-gym results make` then plays its rows, and `results pages` writes them into cards.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from omegaconf import DictConfig, OmegaConf

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError, ConfigError, quote
from netbuf_gym.evaluation import comparison, summary
from netbuf_gym.evaluation.rollout import draw_worlds
from netbuf_gym.tasks.metrics import Column, Margin, Measures
from netbuf_gym.training import campaign_suites, selection
from netbuf_gym.training.checkpoints import checkpoint, packing, versions
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import find_differences, load
from netbuf_gym.training.constraints import to_plain_constraints
from netbuf_gym.training.criteria import Criterion, resolve_criterion
from netbuf_gym.training.jobs import CHANGEABLE_KEYS, load_job
from netbuf_gym.training.ranges import check_seeds, resolve_evaluation_seeds
from netbuf_gym.training.schema import FIRST_VALIDATION_SEED
from netbuf_gym.training.train import train
from netbuf_gym.utils import scripts, statistics
from netbuf_gym.utils.executors import LOCAL, get_executor
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.progress import ProgressBar, print_line
from netbuf_gym.version import __version__
from netbuf_gym.zoo import decisions, library

AGENT = "agent"
"""Name of the agents in metrics.json."""
FREE_KEYS = ("run_dir", "resume", "snapshots")
"""Keys of a run's configuration that do not affect how it was trained."""


@dataclass(frozen=True)
class CampaignPlan:
    """Arguments of the campaign, and the overrides for training."""

    seeds: range
    evaluation_seeds: int
    validation: str | dict[str, Any] | None
    validation_seeds: int
    scenarios: list[str]
    runs: Path
    out: Path
    overrides: list[str]
    command: str
    task: str
    suites: bool = True
    criterion: Criterion | None = None
    executor: str = LOCAL.name
    jobs: int = 1

    @property
    def measures(self) -> Measures:
        """Metrics by which the task's agents are evaluated."""
        return tasks.get(self.task).measures

    @property
    def resolved_criterion(self) -> Criterion:
        """Criterion by which snapshots and seeds are chosen."""
        return self.criterion or Criterion(self.measures.get_score())

    @property
    def chooses_by_suite(self) -> bool:
        """Whether the seed is chosen on the task's suite: where it has one, and no other score or constraints are asked for."""
        return self.suites and bool(self.measures.chosen_on) and self.resolved_criterion.is_usual(self.measures)


def main(argv: Sequence[str]) -> int:
    """Run the campaign and return 0, or 130 when interrupted. Raises as training and evaluation do."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    plan = parse_plan(argv)
    if (models := train_models(plan)) is None:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    trained, saved = ([checkpoint.read_model(path) for path in each] for each in models)
    metrics, kept = _compute_metrics(plan, trained, saved)
    if plan.chooses_by_suite and plan.measures.carded_on:
        metrics["cards"] = campaign_suites.evaluate_for_card(plan.measures, saved, kept, metrics["choice"])
    plan.out.mkdir(parents=True, exist_ok=True)
    config = packing.pack_model(saved[kept], plan.out / "model.zip")
    if (made := versions.read_versions_beside(trained[kept].path)) is not None:
        metrics[versions.KEY] = made
    write_atomic(plan.out / "config.yaml", OmegaConf.to_yaml(config))
    write_json(plan.out / "metrics.json", metrics)
    card = _format_card(plan, saved[kept], metrics)
    write_atomic(plan.out / "card.md", card)
    print(card)
    return 0


def train_models(plan: CampaignPlan) -> tuple[list[Path], list[Path]] | None:
    """Train the seeds that are not trained yet.

    Returns:
        The models of all seeds at the ends of their trainings, and the chosen models of the same runs; None when interrupted.

    Raises:
        ConfigError, ScenarioError, CheckpointError: As training and `selection.choose_model` do.
    """
    last: list[Path] = []
    for path in _train_seeds(plan):
        if path is None:
            return None
        last.append(path)
    th.set_num_threads(1)
    if plan.validation is None:
        return last, last
    how = plan.task, plan.validation, plan.validation_seeds, plan.resolved_criterion
    return last, [selection.choose_model(path.parent, *how) for path in last]


def parse_plan(argv: Sequence[str]) -> CampaignPlan:
    """Parse the command line; raise ConfigError for invalid arguments."""
    own = {"seeds": "5", "first_seed": "0", "evaluation_seeds": "20", "scenarios": "", "runs": "", "out": ""}
    own |= {"validation_seeds": "48", "suites": "true", "executor": LOCAL.name, "jobs": "1"}
    own, overrides = scripts.split_arguments(argv, own)
    for argument in overrides:
        if (key := argument.partition("=")[0]) in ("seed", "run_dir", "resume"):
            raise ConfigError(f"{argument!r}: the campaign chooses {key} itself; valid: seeds=, runs=")
    for key in ("seeds", "evaluation_seeds", "validation_seeds", "jobs"):
        if not own[key].isdecimal() or not 1 <= int(own[key]) <= 1000:
            raise ConfigError(f"{key} = {own[key]!r} is out of range; valid: 1 to 1000")
    highest = FIRST_VALIDATION_SEED - int(own["seeds"])
    if not own["first_seed"].isdecimal():
        raise ConfigError(f"first_seed = {own['first_seed']!r} is out of range; valid: 0 to {highest}")
    first = int(own["first_seed"])
    check_seeds("first_seed", first, first + int(own["seeds"]) - 1, 0, highest)
    if own["suites"] not in ("true", "false"):
        raise ConfigError(f"suites = {own['suites']!r}; valid: true or false")
    config = load_job("train", overrides).config
    record = tasks.get(config.env.name)
    if not record.measures.score:
        raise ConfigError(f"task {record.name!r} has no score that agents are ranked by; valid: a record with measures")
    scenarios = own["scenarios"].split(",") if own["scenarios"] else list(record.benchmark)
    for name in scenarios:
        draw_worlds(record.name, name, resolve_evaluation_seeds(1))  # raises for a scenario without the task's agents
    experiment = next((o.partition("=")[2] for o in overrides if o.startswith("experiment=")), config.algo.name)
    criterion = resolve_criterion(config)
    by_suite = own["suites"] == "true" and record.measures.chosen_on and criterion.is_usual(record.measures)
    return CampaignPlan(
        range(int(own["first_seed"]), int(own["first_seed"]) + int(own["seeds"])),
        int(own["evaluation_seeds"]),
        selection.resolve_validation_scenario(config) if config.snapshots or not by_suite else None,
        int(own["validation_seeds"]),
        scenarios,
        Path(own["runs"] or Path("runs", "campaign", config.env.name, experiment)),
        Path(own["out"] or Path("zoo", "agents", config.env.name, config.algo.name)),
        overrides,
        shlex.join(["python", "-m", "netbuf_gym.training.campaign", *filter(_is_machine_independent, argv)]),
        config.env.name,
        own["suites"] == "true",
        criterion,
        get_executor(own["executor"]).name,
        int(own["jobs"]),
    )


def _is_machine_independent(argument: str) -> bool:
    """Return whether an argument belongs to the recorded command: absolute paths and executors of this machine do not."""
    key, _, value = argument.partition("=")
    return key not in ("executor", "jobs") and not (key in ("runs", "out") and Path(value).is_absolute())


def _train_seeds(plan: CampaignPlan) -> Iterable[Path | None]:
    """Return the models of all seeds, in their order; None for an interrupted one."""
    engine, one = get_executor(plan.executor), partial(_train_seed_in, Path.cwd(), plan)
    if engine.here:
        return map(one, plan.seeds)
    found = dict(engine.run(one, plan.seeds, plan.jobs))
    return [found[seed] for seed in plan.seeds]


def _train_seed_in(folder: Path, plan: CampaignPlan, seed: int) -> Path | None:
    """Change to a folder, wherever the executor started the process, and train one seed."""
    os.chdir(folder)
    return _train_seed(plan, seed)


def _train_seed(plan: CampaignPlan, seed: int) -> Path | None:
    """Train one seed as far as it is still untrained, and return its model; None when interrupted."""
    run_dir = plan.runs / f"seed{seed}"
    if any((run_dir / name).exists() for name in ("model.zip", "checkpoint.zip")):
        _require_same_config(run_dir, load("train", [*plan.overrides, f"seed={seed}"]))
    if (run_dir / "model.zip").exists() and not (run_dir / "checkpoint.zip").exists():
        return run_dir / "model.zip"
    print(f"training seed {seed}: {run_dir}", file=sys.stderr, flush=True)
    if (run_dir / "checkpoint.zip").exists():
        changeable = [override for override in plan.overrides if override.partition("=")[0] in CHANGEABLE_KEYS]
        result = train([f"resume={run_dir}", *changeable])
    else:
        result = train([*plan.overrides, f"seed={seed}", f"run_dir='{run_dir}'"], tell=print_line)
    return None if result.interrupted else result.model_path


def _require_same_config(run_dir: Path, config: DictConfig) -> None:
    """Raise ConfigError unless the run in a folder has this configuration, except for keys that a resumed run may change."""
    free = (*FREE_KEYS, *CHANGEABLE_KEYS)
    for key, then, now in find_differences(checkpoint.read_model(run_dir).config, config):
        if key not in free and not key.startswith("validation."):
            raise ConfigError(f"{run_dir} holds a run with {key} = {quote(then)}, not {quote(now)}; valid: another runs=...")


def _compute_metrics(
    plan: CampaignPlan, trained: Sequence[checkpoint.SavedModel], saved: Sequence[checkpoint.SavedModel]
) -> tuple[dict[str, Any], int]:
    """Compute all values of card and table, JSON-able, and the index of the model that is kept.

    Args:
        plan: Campaign.
        trained: Models at the ends of their trainings.
        saved: Chosen models of the same runs; paired margins are those of the kept one.
    """
    seeds, measures = resolve_evaluation_seeds(plan.evaluation_seeds), plan.measures
    players = [SavedAgent(one) for one in saved]
    played = {}
    for name in plan.scenarios:
        print(f"evaluating on {name}", file=sys.stderr, flush=True)
        worlds = draw_worlds(plan.task, name, seeds)
        with ProgressBar("evaluating") as bar:
            each = comparison.WorldProgress(bar, len(worlds) * (len(players) + len(measures.baselines)))
            agents = [comparison.run(one, worlds, task=plan.task, scenario=name, name=AGENT, each=each) for one in players]
            baselines = comparison.run_baselines(
                plan.task, measures.baselines, worlds, scenario=name, env=players[0].env, each=each
            )
        played[name] = agents, baselines, [world.scenario for world in worlds]
    scores = np.array([[_compute_mean(runs.metrics[measures.score]) for runs in agents] for agents, _, _ in played.values()]).T
    criterion = plan.resolved_criterion
    weight = criterion.worst_weight
    choice = campaign_suites.score_for_choice(measures, saved, weight) if plan.chooses_by_suite else None
    validated = [] if plan.validation is None else [selection.read_validation_score(one.path.parent) for one in saved]
    best = np.argmin if choice is None and criterion.score.lower_is_better else np.argmax
    kept = int(best(validated if choice is None else choice["scores"]))
    scenarios: dict[str, Any] = {}
    for name, (agents, baselines, drawn) in played.items():
        scenarios[name] = {
            AGENT: {m: [_compute_mean(runs.metrics[m]) for runs in agents] for m in measures.metrics},
            "baselines": {runs.name: {m: _compute_mean(runs.metrics[m]) for m in measures.metrics} for runs in baselines},
        }
        for one in (column for column in measures.columns if isinstance(column, Margin)):
            named = "margins" if one.metric == measures.score else f"margins_{one.metric}"
            margins = {runs.name: _compute_margin(agents, agents[kept], runs, one.metric, one.relative) for runs in baselines}
            scenarios[name][named] = margins
        if measures.counts:
            every = [agents[kept], *baselines]
            scenarios[name]["flows"] = {runs.name: summary.collect_counts([runs], measures) for runs in every}
            scenarios[name]["warnings"] = summary.warn_of_few(every, measures)
        parts = summary.format_breakdown([agents[kept], *baselines], drawn, measures)
        if parts:
            scenarios[name]["breakdown"] = parts
    progress = [one.progress for one in trained]
    chosen: dict[str, Any] = {"scenario": plan.validation, "seeds": plan.validation_seeds}
    chosen |= {"timesteps": [one.progress["timesteps"] for one in saved], "scores": validated}
    if not criterion.is_usual(measures):
        chosen |= {"score": criterion.score.metric, "constraints": to_plain_constraints(criterion.constraints)}
    metrics = {
        "schema": "netbuf-gym/campaign/1",
        "netbuf_gym": __version__,
        "command": plan.command,
        "env": saved[0].env["id"],
        "task": plan.task,
        "score": measures.score,
        "algo": saved[0].config.algo.name,
        "recipe": saved[0].env["schema"]["recipe"],
        "training_scenario": saved[0].env["kwargs"]["scenario"],
        "training_seeds": [one.config.seed for one in saved],
        "kept_seed": plan.seeds[kept],
        "choice": choice,
        "training_timesteps": [p["timesteps"] for p in progress],
        "training_seconds": [round(p["seconds"], 1) for p in progress],
        "begun_with": [_read_prior_training(one) for one in trained],
        "validation": None if plan.validation is None else chosen,
        "evaluation_seeds": [seeds[0], seeds[-1]],
        **({"worst_weight": weight} if weight else {}),
        f"{measures.score}_interquartile_mean": list(statistics.bootstrap_interval(scores)) if len(saved) > 1 else None,
        "scenarios": scenarios,
    }
    return metrics, kept


def _read_prior_training(saved: checkpoint.SavedModel) -> dict[str, Any] | None:
    """Return the timesteps and seconds of the trainings that led to the starting agent; None without one or its file."""
    if saved.config.start_from is None:
        return None
    try:
        first = checkpoint.read_model(library.find_agent_path(saved.config.start_from))
    except CheckpointError:
        return None
    before = _read_prior_training(first) or {"timesteps": 0, "seconds": 0.0}
    seconds = round(before["seconds"] + first.progress["seconds"], 1)
    return {"timesteps": before["timesteps"] + first.progress["timesteps"], "seconds": seconds}


def _compute_mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _compute_margin(
    agents: Sequence[summary.Runs],
    kept: summary.Runs,
    baseline: summary.Runs,
    metric: str,
    relative: bool = False,
) -> dict[str, Any]:
    """Compute the agents' metric minus the baseline's (in per cent): mean over evaluation seeds, interval over training seeds.

    `paired` is the margin of the kept agent alone, with its interval over evaluation seeds, paired by seed.
    """
    differences = [summary.compute_margin(runs, baseline, metric, relative=relative).mean for runs in agents]
    paired = summary.compute_margin(kept, baseline, metric, relative=relative)
    known = [one for one in differences if np.isfinite(one)]
    mean, low, high = statistics.mean_interval(np.array(known)) if known else (math.nan,) * 3
    return {"mean": mean, "low": low, "high": high, "least": min(known, default=math.nan), "paired": list(paired)}


def _format_card(plan: CampaignPlan, saved: checkpoint.SavedModel, metrics: dict[str, Any]) -> str:
    seconds, steps = metrics["training_seconds"], metrics["training_timesteps"]
    lines = [
        f"# {metrics['algo']} on {metrics['env']} ({metrics['recipe']} recipe)",
        "",
        f"Made by `{metrics['command']}` (netbuf-gym {metrics['netbuf_gym']}).",
        "",
        f"* Trained on `{_format_scenario(metrics['training_scenario'])}`: {len(steps)} seeds, "
        f"{np.mean(steps):,.0f} steps each, "
        f"{np.mean(seconds) / 60:.1f} minutes on average ({max(seconds) / 60:.1f} at most), "
        f"{saved.config.torch_threads} thread(s) for the learner and {saved.config.env.threads} for the simulator.",
        *_format_prior_training(metrics, saved),
        *decisions.format_built_in(plan.task, metrics["recipe"]),
        f"* `model.zip` is seed {metrics['kept_seed']}, {_explain_choice(metrics)}; `config.yaml` its configuration; "
        "stable-baselines3 reads it, and `netbuf-gym evaluate model=...` runs it.",
        *_format_selection(metrics),
        f"* Evaluated greedily on {plan.evaluation_seeds} seeds from {metrics['evaluation_seeds'][0]} on, "
        "start-up included. Values are means over evaluation seeds; ± is half the 95 % t interval over training seeds.",
        "* A margin is the agent's value minus the row's, with its 95 % t interval over training seeds; after the semicolon "
        "that of `model.zip`, with its interval over evaluation seeds, paired by seed. "
        f"In {plan.measures.score}, {'below' if plan.measures.lower_is_better else 'above'} 0 is the agent's advantage.",
        "",
        plan.measures.score_says,
        "",
        *(f"* {line}" for line in plan.measures.describe_columns(plan.measures.columns)),
        "",
    ]
    begin = f"<!-- results: card {plan.task}/{plan.out.name} -->"
    lines += [f"## Suite `v1/{plan.task}`", "", begin, "Not played yet.", "<!-- end of results -->", ""]
    if "cards" in metrics:
        lines += campaign_suites.format_card(metrics["cards"], metrics["kept_seed"])
    for name, part in metrics["scenarios"].items():
        lines += [f"## {name}", "", *format_evaluation(part, metrics["algo"], plan.measures), ""]
    return "\n".join(lines)


def format_evaluation(part: Mapping[str, Any], algo: str, measures: Measures) -> list[str]:
    """Format the evaluation on a scenario as lines of a card: a row per controller, and the score by the worlds drawn.

    Args:
        part: Values of the scenario, as in metrics.json.
        algo: Name of the agents' row.
        measures: Measures of the task.
    """
    columns, flows = measures.columns, part.get("flows", {})

    def format_value(column: Column, text: str, who: str) -> str:
        of = flows.get(who, {}).get(column.metric)
        return text if of is None else f"{text}, {summary.format_flows(of)}"

    heads = [f"{one.label} of the agent [95 %]" if isinstance(one, Margin) else one.label for one in columns]
    lines = [f"| controller | {' | '.join(heads)} |", f"|:--|{'--:|' * len(heads)}"]
    cells = [
        ""
        if isinstance(one, Margin)
        else format_value(one, _format_spread(part[AGENT][one.metric], one.digits, one.factor), AGENT)
        for one in columns
    ]
    lines.append(f"| {algo} | {' | '.join(cells)} |")
    for control, values in part["baselines"].items():
        cells = []
        for one in columns:
            if isinstance(one, Margin):
                kept = "margins" if one.metric == measures.score else f"margins_{one.metric}"
                margin = part[kept][control]
                over = (
                    statistics.Interval(margin["mean"], margin["low"], margin["high"]),
                    statistics.Interval(*margin["paired"]),
                )
                cells.append("; ".join(_format_margin(interval) for interval in over))
            else:
                cells.append(format_value(one, _format_number(values[one.metric] * one.factor, one.digits), control))
        lines.append(f"| {control} | {' | '.join(cells)} |")
    if flows:
        lines += ["", f"Flows: the least and the largest number in a world that a percentile is of; {algo}: of `model.zip`."]
    lines += [f"Warning: {line}." for line in part.get("warnings", [])]
    if "breakdown" in part:
        lines += ["", f"{measures.score} by the worlds that the seeds drew, the best in bold", "", part["breakdown"]]
    return lines


def _format_prior_training(metrics: dict[str, Any], saved: checkpoint.SavedModel) -> list[str]:
    """Return the card's line about the agent that training started from."""
    began = packing.get_start_agent(saved)
    if began is None:
        return []
    known = [one for one in metrics["begun_with"] if one is not None]
    said = f"* That goes on with agents that were trained before, that of `model.zip` with `{began}`"
    if not known:
        return [f"{said}."]
    steps, minutes = (np.mean([one[key] for one in known]) for key in ("timesteps", "seconds"))
    return [f"{said}: {steps:,.0f} steps each, {minutes / 60:.1f} minutes on average."]


def _explain_choice(metrics: dict[str, Any]) -> str:
    """Explain the choice of the kept seed."""
    choice = metrics["choice"]
    scores = ", ".join(f"{score:.3f}" for score in (choice or metrics["validation"])["scores"])
    weight = metrics.get("worst_weight", 0.0)
    there = f"{f'with its worst family at weight {weight:g} beside the mean; ' if weight else ''}all of them there: {scores}"
    if choice is None:
        validation = metrics["validation"]
        by = f", by {validation['score']}" if "score" in validation else ""
        by += f" less the penalties of {len(found)} constraints" if (found := validation.get("constraints")) else ""
        return f"the best in validation worlds{by} ({there})"
    return f"the best on the suite `{choice['suite']}`, version {choice['version']} ({there})"


def _format_selection(metrics: dict[str, Any]) -> list[str]:
    """Return the card's line about the choice of each seed's model."""
    validation = metrics["validation"]
    if validation is None:
        return []
    worlds = f"{validation['seeds']} validation worlds of `{_format_scenario(validation['scenario'])}`"
    if validation["timesteps"] == metrics["training_timesteps"]:
        return [f"* Of each seed the model at the end of its training, in {worlds}."]
    after = ", ".join(f"{steps:,}" for steps in validation["timesteps"])
    return [f"* Of each seed the snapshot that did best in {worlds}: after {after} steps."]


def _format_scenario(scenario: str | dict[str, Any]) -> str:
    """Format a scenario as `name(key=value, ...)`."""
    if isinstance(scenario, str):
        return scenario
    arguments = ", ".join(f"{key}={value}" for key, value in scenario.items() if key != "name")
    return f"{scenario['name']}({arguments})"


def _format_spread(values: Sequence[float], digits: int, factor: float = 1.0) -> str:
    known = factor * np.asarray(values, float)
    known = known[np.isfinite(known)]
    if not len(known):
        return "-"
    mean, low, high = statistics.mean_interval(known)
    half = f" ± {(high - low) / 2:.{digits}f}" if np.isfinite(high) else ""
    return f"{mean:.{digits}f}{half}"


def _format_number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def _format_margin(interval: statistics.Interval) -> str:
    """Format a margin with its interval; without the interval if there is one value, as `-` if there is none."""
    if not np.isfinite(interval.mean):
        return "-"
    if not np.isfinite(interval.low):
        return f"{interval.mean:+.3f}"
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


if __name__ == "__main__":
    scripts.run("campaign", main)
