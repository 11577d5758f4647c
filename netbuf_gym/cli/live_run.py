"""`netbuf-gym live run`: runs controllers on a live topology of this kernel, and plots their series."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.cli.common import (
    check_outputs,
    check_plot,
    collect_assignments,
    make_whole_parser,
    parse_assignment,
    parse_names,
    parse_real,
)
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation import rollout
from netbuf_gym.plants.linux.relayed import PROXIES
from netbuf_gym.utils import plots
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.files import write_json
from netbuf_gym.utils.tables import format_number, text_table

WORDS = ("model", "controller", "task", "scenario")
HOST_TASK, HOST_INTERVAL_S = "host_buffers", 5.0
"""Task of host buffers, and its interval between decisions where an agent has none of its own."""


def add(verbs: argparse._SubParsersAction) -> None:
    """Add the verb's parser."""
    verb = verbs.add_parser("run", help="run an agent or controllers on a live topology of this kernel, and draw what happened")
    verb.add_argument(
        "words",
        nargs="*",
        type=parse_assignment,
        metavar="KEY=VALUE",
        help="model=FILE of a trained agent (a name of the zoo's, or a run directory), controller=A,B,... one after the other "
        "in the same world, task=NAME (default: the model's), scenario=NAME (default: the task's)",
    )
    verb.add_argument(
        "--set",
        action="append",
        type=parse_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the scenario; may be repeated",
    )
    verb.add_argument("--seed", type=make_whole_parser(0, 2**63 - 1), default=0, metavar="N", help="(default: 0)")
    verb.add_argument("--interval", type=parse_real, metavar="S", help="between decisions (default: the model's; of hosts 5)")
    verb.add_argument("--proxy", choices=PROXIES, help="what a host's traffic goes through (default: plain sockets)")
    verb.add_argument("--plot", metavar="FILE", help="draw what happened (.png, .pdf or .svg)")
    verb.add_argument("--json", metavar="FILE", help="write reports and series as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    check_outputs(arguments.plot, arguments.json)
    check_plot(arguments.plot)
    words = collect_assignments(arguments.words)
    for name, value in words.items():
        check_choice("setting", name, WORDS)
        if not isinstance(value, str):
            raise ConfigError(f"{name} = {shown(value)}; valid: a name")
    task, controllers = _resolve_controllers(words)
    scenario: Any = words.get("scenario", tasks.get(task).rules.default_scenario)
    own = collect_assignments(arguments.set)
    scenario = {"name": scenario, **own} if own else scenario
    plant: dict[str, Any] = {"name": "linux"} | ({"proxy": arguments.proxy} if arguments.proxy else {})
    found: dict[str, dict[str, Any]] = {}
    reports: dict[str, dict[str, Any]] = {}
    interrupted = ""
    try:
        for controller in controllers:
            env = controller.merge_arguments({"plant": plant})
            if arguments.interval is not None:
                env["interval_s"] = arguments.interval
            elif task == HOST_TASK:
                env.setdefault("interval_s", HOST_INTERVAL_S)
            series = found.setdefault(controller.name, {})
            reports[controller.name] = _play_episode(controller, task, scenario, arguments.seed, env, series)
    except KeyboardInterrupt:
        interrupted = controller.name
    found = {name: series for name, series in found.items() if series}
    if reports:
        print(format_reports(reports))
    measures = tasks.get(task).measures
    written = []
    if arguments.json and found:
        content = {"task": task, "scenario": scenario, "reports": reports, "series": found}
        write_json(arguments.json, {**content, "interrupted": interrupted} if interrupted else content)
        written.append(arguments.json)
    if arguments.plot and found:
        rows = [(key, label) for key, label in measures.series if all(key in series for series in found.values())]
        world = scenario if isinstance(scenario, str) else scenario["name"]
        plots.plot_time_series(found, arguments.plot, rows, f"{task} on this kernel: {world}, seed {arguments.seed}")
        written.append(arguments.plot)
    if interrupted:
        measured = len(found.get(interrupted, {}).get("time_s", ()))
        where = f", written to {' and '.join(written)}" if written else ""
        told = f"{interrupted} has no report, {measured} intervals of it were measured{where}"
        print(f"netbuf-gym: interrupted: {told}", file=sys.stderr)
        return 130
    failed = {name: report["failure"] for name, report in reports.items() if "failure" in report}
    for name, why in failed.items():
        print(f"netbuf-gym: the world of {name} has failed: {why}", file=sys.stderr)
    return 3 if failed else 0


def _resolve_controllers(words: Mapping[str, Any]) -> tuple[str, list[Controller]]:
    """Return the task and the controllers that the command line names.

    Raises:
        ConfigError: No controller, a repeated one, or a missing or wrong task.
        CheckpointError: A model that cannot be loaded.
    """
    if "model" not in words and "controller" not in words:
        raise ConfigError("nobody decides; valid: model=FILE, controller=NAME, or both")
    controllers: list[Controller] = []
    task = None
    if "model" in words:
        from netbuf_gym import zoo

        agent = zoo.load(words["model"])
        task = tasks.find_task(agent.env_id)
        controllers.append(agent.controller)
    if "task" in words and task not in (None, words["task"]):
        raise ConfigError(f"task = {shown(words['task'])}; valid with this model: {task!r}")
    if task is None:
        if "task" not in words:
            raise ConfigError("task is missing; valid: task=NAME, or a model, which knows its own")
        task = tasks.get(words["task"]).name
    if "controller" in words:
        controllers += [rollout.get_controller(name, task) for name in parse_names(words["controller"])]
    repeated = len({one.name for one in controllers}) < len(controllers)
    if repeated:
        raise ConfigError("a controller is named twice; valid: each once")
    return task, controllers


def _play_episode(
    controller: Controller,
    task: str,
    scenario: Any,
    seed: int,
    env: Mapping[str, Any],
    series: dict[str, list[float]],
) -> dict[str, Any]:
    """Play one episode and return its report; measurements are appended to `series` on the way."""
    worlds = rollout.draw(task, scenario, [seed], **env)
    report: list[dict[str, Any]] = []

    def look(view: rollout.View) -> None:
        state = view.show()
        for key, value in state.items():
            series.setdefault(key, []).append(float(value))
        told = "   ".join(f"{key} {format_number(float(value))}" for key, value in state.items() if key != "time_s")
        print(f"{controller.name:>12}  {state['time_s']:8.1f} s   {told}", flush=True)

    def keep(view: rollout.View) -> None:
        report.extend(view.report())

    rollout.play(controller, worlds, keep, task=task, scenario=scenario, watch={0: look}, **env)
    return report[0]


def format_reports(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Format reports as a table: one column per controller, one row per quantity."""
    first = next(iter(reports.values()))
    keys = [key for key, value in first.items() if isinstance(value, (int, float, np.number))]
    rows = [[key, *(format_number(_convert_to_float(report.get(key))) for report in reports.values())] for key in keys]
    return text_table(["", *reports], rows)


def _convert_to_float(value: Any) -> float:
    return math.nan if value is None else float(value)
