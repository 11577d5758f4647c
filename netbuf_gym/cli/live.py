"""`netbuf-gym live`: check the kernel of this machine, tune its buffers, restore them, run controllers on its kernel."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.cli.common import (
    add_scenario_arguments,
    add_seed,
    check_outputs,
    check_plot,
    collect_assignments,
    one_line_warnings,
    parse_real,
)
from netbuf_gym.cli.program import add_verb
from netbuf_gym.controllers import Controller, InWorld
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation import rollout
from netbuf_gym.host import capabilities, locks, session
from netbuf_gym.host import decider as deciders
from netbuf_gym.host import log as record
from netbuf_gym.host.decider import TASK, Decider, FixedControls
from netbuf_gym.host.journal import Journal
from netbuf_gym.host.rate_limits import ChangeRateLimit, Watchdog, check_factor, check_seconds
from netbuf_gym.host.settings import KNOBS, Ring, Sysctl
from netbuf_gym.host.targets import HostSettings, select_usable
from netbuf_gym.host.tuner import EndSignal, Step, Tuner, catch_end_signals
from netbuf_gym.plants.linux.host_meter import HostMeter
from netbuf_gym.plants.linux.relayed import PROXIES
from netbuf_gym.plants.linux.setup import Agents, Setup
from netbuf_gym.plants.linux.sysctls import KINDS
from netbuf_gym.utils import plots
from netbuf_gym.utils.arguments import check_real, check_texts
from netbuf_gym.utils.files import write_json
from netbuf_gym.utils.overrides import read_overrides, read_whole
from netbuf_gym.utils.tables import format_number, text_table

EPILOG = """examples:
  netbuf-gym live check
  netbuf-gym live tune
  netbuf-gym live tune controller=bpftune --duration 600 --log tune.csv --plot tune.png
  netbuf-gym live tune model=runs/host/model.zip --apply --ring eth0
  netbuf-gym live tune tcp_wmem_max_bytes=16777216 --apply --range tcp_wmem_max_bytes=1048576:33554432
  netbuf-gym live restore
  netbuf-gym live run controller=autotuning,max task=host_buffers scenario=auter/local --set duration_s=60 --plot run.png
  netbuf-gym live run controller=tune-1 task=host_buffers scenario=auter/local --proxy shadowsocks --set traffic=mixed
"""
DEFAULT_CONTROLLER = "bpftune"
CONTROLS = ("ring_packets", *KNOBS)
USUAL_S, LEAST_S, MOST_S = 5.0, 3.0, 10.0
"""Default, least and largest interval between decisions: shorter ones say little about the network, longer ones react late."""
DEFAULT_SETTINGS = tuple(name for name in KINDS if not name.endswith("mem_default"))
"""Settings that are tuned by default; TCP does not use net.core.*mem_default."""


KEYS = {
    "tune": {
        "controller": f"controller of task {TASK} (default: {DEFAULT_CONTROLLER})",
        "model": "trained agent: name in the zoo, model file or run folder",
        "recipe": "recipe of the agent's environment (default: the model's)",
    }
    | dict.fromkeys(CONTROLS, "value to reach and to keep"),
    "run": {
        "model": "trained agent: name in the zoo, model file or run folder",
        "controller": "controllers, separated by commas; each runs in the same world, in turn",
        "task": "task (default: the model's)",
        "scenario": "scenario (default: the task's)",
    },
}
"""Settings of the verbs, with their meanings."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="check | tune | restore | run")
    verb = add_verb(verbs, "check", "check the requirements of live plants; exit status 1: no live plant")
    verb.add_argument("--json", action="store_true", help="print JSON: a list of objects")
    _add_tune(add_verb(verbs, "tune", "tune the buffers of this host; a dry run without --apply"))
    _add_journal(add_verb(verbs, "restore", "restore the settings that a killed tuner left changed"))
    _add_run(add_verb(verbs, "run", "run an agent or other controllers on a live topology of this kernel"))


def _add_tune(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "settings",
        nargs="*",
        metavar="KEY=VALUE",
        help=f"controller=NAME of task {TASK} (default: {DEFAULT_CONTROLLER}); model=FILE of a trained agent; recipe=NAME of "
        f"its environment; or values to reach: {', '.join(CONTROLS)}",
    )
    verb.add_argument("--apply", action="store_true", help="write the settings; the original values are restored at the end")
    verb.add_argument(
        "--interval", type=parse_real, metavar="S", help="decision interval, 3 to 10 seconds (default: model's, or 5)"
    )
    verb.add_argument("--duration", type=parse_real, metavar="S", help="seconds, at least one interval (default: until Ctrl-C)")
    verb.add_argument(
        "--settings",
        dest="names",
        type=lambda text: text.split(","),
        metavar="A,B,...",
        help=f"settings to tune, of {', '.join(KINDS)}; each must exist (default: existing ones but net.core.*mem_default)",
    )
    verb.add_argument("--ring", metavar="DEVICE", help="tune the ring of this network card too; each change interrupts traffic")
    verb.add_argument(
        "--range",
        action="append",
        default=[],
        type=_parse_range,
        metavar="CONTROL=LOW:HIGH",
        help="range of a control; repeatable",
    )
    for option, default, metavar, meaning in (
        ("--most-factor", 2.0, "X", "largest factor of change of a setting within --per seconds, above 1 (default: 2)"),
        ("--per", 10.0, "S", "seconds for --most-factor; 0: no limit (default: 10)"),
        ("--worse-factor", 2.0, "X", "factor by which throughput or latency counts as worse than usual, above 1 (default: 2)"),
        ("--worse-for", 15.0, "S", "restore the last good settings after this many bad seconds (default: 15)"),
        ("--pause", 60.0, "S", "seconds without tuning after that (default: 60)"),
    ):
        verb.add_argument(option, type=parse_real, default=default, metavar=metavar, help=meaning)
    verb.add_argument("--local", action="store_true", help="count connections of the loopback device too")
    _add_journal(verb)
    verb.add_argument("--log", metavar="FILE", help="append a CSV row after each interval")
    verb.add_argument("--plot", metavar="FILE", help="plot the run at its end (.png, .pdf or .svg)")


def _add_journal(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--journal",
        metavar="FILE",
        help="file that records changes before they are made (default: in /var/lib/netbuf-gym, or the user's state folder)",
    )


def _add_run(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "settings",
        nargs="*",
        metavar="KEY=VALUE",
        help="model=FILE of a trained agent (or its name in the zoo, or a run folder); controller=A,B,... in turn in the same "
        "world; task=NAME (default: the model's); scenario=NAME (default: the task's)",
    )
    add_scenario_arguments(verb)
    add_seed(verb, 0)
    verb.add_argument(
        "--interval", type=parse_real, metavar="S", help="decision interval in seconds (default: the model's; hosts: 5)"
    )
    verb.add_argument("--proxy", choices=PROXIES, help="proxy of a host's traffic (default: plain sockets)")
    verb.add_argument("--plot", metavar="FILE", help="plot the series (.png, .pdf or .svg)")
    verb.add_argument("--json", metavar="FILE", help="write reports and series as JSON")


def _parse_range(text: str) -> tuple[str, tuple[int, int]]:
    name, _, values = text.partition("=")
    try:
        low, high = map(read_whole, values.split(":"))
    except ValueError:
        low, high = -1, -1
    if name in CONTROLS and min(low, high) >= 0:
        return name, (low, high)
    raise argparse.ArgumentTypeError(f"{text!r} is not CONTROL=LOW:HIGH; controls: {', '.join(CONTROLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    return {"check": _check, "tune": _tune, "restore": _restore, "run": _run}[arguments.verb](arguments)


def _read_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the verb; `contender` is a former name of `controller`."""
    words = [re.sub("^contender=", "controller=", word) for word in arguments.settings]
    return read_overrides(words, KEYS[arguments.verb], lists=["controller"] if arguments.verb == "run" else ())


# ---- check


def _check(arguments: argparse.Namespace) -> int:
    found = capabilities.collect_findings()
    if arguments.json:
        print(json.dumps([one.to_dict() for one in found], indent=1))
    else:
        print(text_table(["requirement", "met", "found"], [[one.name, "yes" if one.ok else "NO", one.found] for one in found]))
        for one in found:
            if not one.ok:
                print(f"\n{one.name}: needed for {one.needed_for}" + (f"\n  {one.remedy}" if one.remedy else ""))
    return 1 if any(one.required and not one.ok for one in found) else 0


# ---- tune and restore


def _tune(arguments: argparse.Namespace) -> int:
    path = session.resolve_journal_path(arguments.journal)
    check_outputs(arguments.log, arguments.plot)
    for name in ("log", "plot"):
        given = getattr(arguments, name)
        if given is not None and Path(given).resolve() == path.resolve():
            raise ConfigError(f"--{name} {given} is the journal; valid: another file")
    check_plot(arguments.plot)
    if arguments.interval is not None:
        check_real("--interval", arguments.interval, LEAST_S, MOST_S)
    pace = ChangeRateLimit(check_factor("--most-factor", arguments.most_factor), check_seconds("--per", arguments.per))
    watchdog = Watchdog(
        check_factor("--worse-factor", arguments.worse_factor),
        check_seconds("--worse-for", arguments.worse_for),
        check_seconds("--pause", arguments.pause),
    )
    settings = check_tune_settings(_read_settings(arguments))
    controller = resolve_controller(settings)
    interval_s = resolve_interval_s(arguments.interval, controller)
    duration_s = math.inf if arguments.duration is None else check_real("--duration", arguments.duration, interval_s, 1e9)
    choice = DeciderChoice(settings, controller, interval_s)
    with catch_end_signals() as ended:
        if not arguments.apply:
            holder = locks.describe_holder(path)
            leftovers = [] if holder else session.find_leftovers(path)
            if holder:
                _print_line(f"{holder} just now, and restored when that ends")
            elif leftovers:
                _print_line(f"left changed by a former run: {', '.join(leftovers)} (netbuf-gym live restore)")
            draw = _tune_until_end(arguments, None, choice, pace, watchdog, ended, duration_s)
        else:
            with session.open_journal(path, _print_line) as journal:
                draw = _tune_until_end(arguments, journal, choice, pace, watchdog, ended, duration_s)
    draw()  # takes a while, therefore after settings are restored
    return 128 + ended.number if ended.number else 0


def _restore(arguments: argparse.Namespace) -> int:
    path = session.resolve_journal_path(arguments.journal)
    with catch_end_signals(), locks.lock_host_tuning(path, begins=False):
        found = session.restore_leftovers(path)
    for one in found:
        _print_line(one.words)
    if not found:
        _print_line(f"nothing to restore: there is no journal {path}")
    return 2 if any(one.outcome == "failed" for one in found) else 0


def _tune_until_end(
    arguments: argparse.Namespace,
    journal: Journal | None,
    choice: DeciderChoice,
    pace: ChangeRateLimit,
    watchdog: Watchdog,
    ended: EndSignal,
    duration_s: float,
) -> Callable[[], None]:
    """Tune until the end, and return a function that draws the plot if one is asked for."""
    host = select_settings(arguments, journal is not None)
    decider = choice.make_decider(host)
    meter = _open_meter(arguments.local)
    try:
        tuner = Tuner(host, decider, meter, journal, pace, watchdog, choice.interval_s)
        mode = "sets" if journal is not None else "dry run, sets nothing (--apply sets)"
        _print_line(f"{decider.name}, every {choice.interval_s:g} s; {mode}; {', '.join(host.settings)}")
        log = record.Log(arguments.log)
        kept = record.ThinnedSteps()

        def handle_step(step: Step) -> None:
            if arguments.plot:
                kept.add(step)
            log.add(step)
            for line in format_step(step, journal is not None):
                _print_line(line)

        tuner.run(handle_step, ended, duration_s)
    finally:
        meter.close()

    def draw() -> None:
        if kept.steps:
            mode = "tuned" if journal is not None else "observed, nothing set"
            record.plot_run(kept.steps, host, arguments.plot, f"this host, {mode} by {decider.name}")

    return draw


def _open_meter(local: bool) -> HostMeter:
    try:
        return HostMeter(local=local, own_memory=False)
    except OSError as error:
        reason = f"the kernel does not report TCP connections: {error.strerror}"
        raise ConfigError(f"{reason}; valid: Linux with INET_DIAG") from None


def select_settings(arguments: argparse.Namespace, write: bool) -> HostSettings:
    """Return the settings to tune.

    Raises:
        ConfigError: Nothing to tune, or a setting that was asked for does not exist.
    """
    asked = arguments.names is not None
    settings: list[Any] = [Sysctl(name) for name in (arguments.names if asked else DEFAULT_SETTINGS)]
    if arguments.ring:
        settings.append(Ring(arguments.ring))
    usable, reasons = select_usable(settings, write)
    missing_ring = arguments.ring and settings[-1] not in usable
    if reasons and (asked or missing_ring):
        raise ConfigError(reasons[-1] if missing_ring else reasons[0])
    host = HostSettings(usable, dict(arguments.range))
    if not host.settings:
        nothing = f"no control sets {', '.join(arguments.names or ())}" if asked else "there is nothing to tune"
        raise ConfigError(reasons[0] if reasons else f"{nothing}; valid: {', '.join(DEFAULT_SETTINGS)}")
    for reason in reasons:
        _print_line(f"not tuned: {reason}")
    if not write:
        for reason in select_usable([one for one in host.settings.values() if isinstance(one, Sysctl)], write=True)[1]:
            _print_line(f"with --apply not tuned: {reason}")
    return host


def check_tune_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings that name the decider, checked.

    Raises:
        ConfigError: A wrong value, or settings that exclude each other.
    """
    for name, value in settings.items():
        if name in CONTROLS:
            check_real(name, value, 1, 2.0**32)
        elif not isinstance(value, str):
            raise ConfigError(f"{name} = {quote(value)}; valid: a name, or the path of a model")
    numbers = any(name in CONTROLS for name in settings)
    if numbers + ("model" in settings) + ("controller" in settings) > 1:
        raise ConfigError("several decide; valid: one of controller=NAME, model=FILE and values to reach")
    if numbers and "recipe" in settings:
        raise ConfigError(f"recipe = {quote(settings['recipe'])} has no effect on values; valid: with controller= or model=")
    return settings


def resolve_controller(settings: Mapping[str, Any]) -> Controller | None:
    """Return the controller or trained agent that settings name; None if they give values to reach.

    Raises:
        ConfigError: An unknown controller, or an agent of another task.
        CheckpointError: A model that cannot be loaded.
    """
    if any(name in CONTROLS for name in settings):
        return None
    if "model" not in settings:
        return rollout.get_controller(settings.get("controller", DEFAULT_CONTROLLER), TASK)
    from netbuf_gym import zoo

    agent = zoo.load(settings["model"])
    task = tasks.find_task(agent.env_id)
    if task != TASK:
        raise ConfigError(f"model = {quote(settings['model'])} is an agent of task {task!r}; valid here: one of task {TASK!r}")
    return agent.controller


def resolve_interval_s(asked: float | None, controller: Controller | None) -> float:
    """Return the seconds between decisions: as asked for, else as a model was trained, else `USUAL_S`.

    Raises:
        ConfigError: A model's interval out of range.
    """
    own = None if controller is None else controller.env.get("interval_s")
    if asked is not None or own is None:
        return USUAL_S if asked is None else asked
    if not LEAST_S <= own <= MOST_S:
        raise ConfigError(f"the model decides every {own:g} s; valid here: {LEAST_S:g} to {MOST_S:g} s")
    return float(own)


@dataclass(frozen=True)
class DeciderChoice:
    """Choice of the decider.

    Attributes:
        settings: Settings of the command line.
        controller: Controller that they name; None: they give values to reach.
        interval_s: Seconds between decisions.
    """

    settings: Mapping[str, Any]
    controller: Controller | None
    interval_s: float

    def make_decider(self, host: HostSettings) -> Decider:
        """Return the decider for a host.

        Raises:
            ConfigError: The controller or the numbers do not fit the host.
        """
        if self.controller is not None:
            env = {"recipe": self.settings["recipe"]} if "recipe" in self.settings else {}
            return deciders.make_decider(self.controller, self.interval_s, host.telemetry(host.read()), **env)
        numbers = {name: float(value) for name, value in self.settings.items() if name in CONTROLS}
        targets, notes = host.resolve_targets(numbers)
        for note in notes:
            _print_line(note)
        return FixedControls(targets)


def format_step(step: Step, applied: bool) -> list[str]:
    """Format a step as lines of text."""
    telemetry = step.telemetry
    latency = "-" if math.isnan(telemetry["latency_s"]) else f"{telemetry['latency_s'] * 1e3:.1f}"
    head = f"{step.time_s:8.1f} s  {telemetry['total_throughput_bps'] * 1e-6:9.2f} Mbit/s  {latency:>7} ms"
    head += f"  {telemetry['connections']:5.0f} connections  {telemetry['memory_bytes'] * 1e-6:8.2f} MB"
    verb = "set" if applied else "would set"
    changes = [f"           {verb} {change} ({change.why})" for change in step.changes]
    return [head, *changes, *(f"           {note}" for note in step.notes)]


def _print_line(line: str) -> None:
    print(line, flush=True)


# ---- run


def _run(arguments: argparse.Namespace) -> int:
    check_outputs(arguments.plot, arguments.json)
    check_plot(arguments.plot)
    settings = _read_settings(arguments)
    for name, value in settings.items():
        if name != "controller" and not isinstance(value, str):
            raise ConfigError(f"{name} = {quote(value)}; valid: a name")
    task, controllers = _resolve_controllers(settings)
    scenario: Any = settings.get("scenario", tasks.get(task).rules.default_scenario)
    scenario_arguments = collect_assignments(arguments.set)
    scenario = {"name": scenario, **scenario_arguments} if scenario_arguments else scenario
    plant: dict[str, Any] = {"name": "linux"} | ({"proxy": arguments.proxy} if arguments.proxy else {})
    measured: dict[str, dict[str, list[float]]] = {}
    reports: dict[str, dict[str, Any]] = {}
    interrupted = ""
    envs = [_resolve_environment(controller, plant, arguments.interval, task) for controller in controllers]
    for controller, env in zip(controllers, envs, strict=True):
        _check_fit(controller, task, scenario, arguments.seed, env)  # all of them before the first is run
    for controller, env in zip(controllers, envs, strict=True):
        series = measured.setdefault(controller.name, {})
        try:
            with one_line_warnings():
                reports[controller.name] = _play_episode(controller, task, scenario, arguments.seed, env, series)
        except KeyboardInterrupt:
            interrupted = controller.name
            break
    measured = {name: series for name, series in measured.items() if series}
    if reports:
        print(format_reports(reports))
    written = []
    if arguments.json and measured:
        content = {"task": task, "scenario": scenario, "reports": reports, "series": measured}
        write_json(arguments.json, {**content, "interrupted": interrupted} if interrupted else content)
        written.append(arguments.json)
    if arguments.plot and measured:
        rows = [(key, label) for key, label in tasks.get(task).measures.series if all(key in one for one in measured.values())]
        world = scenario if isinstance(scenario, str) else scenario["name"]
        plots.plot_time_series(measured, arguments.plot, rows, f"{task} on this kernel: {world}, seed {arguments.seed}")
        written.append(arguments.plot)
    if interrupted:
        intervals = len(measured.get(interrupted, {}).get("time_s", ()))
        where = f", written to {' and '.join(written)}" if written else ""
        line = f"{interrupted} has no report, {intervals} intervals of it were measured{where}"
        print(f"netbuf-gym: interrupted: {line}", file=sys.stderr)
        return 130
    failures = {name: report["failure"] for name, report in reports.items() if "failure" in report}
    for name, failure in failures.items():
        print(f"netbuf-gym: the world of {name} has failed: {failure}", file=sys.stderr)
    return 3 if failures else 0


def _resolve_controllers(settings: Mapping[str, Any]) -> tuple[str, list[Controller]]:
    """Return the task and the controllers that the command line names.

    Raises:
        ConfigError: No controller, a repeated one, or a missing or wrong task.
        CheckpointError: A model that cannot be loaded.
    """
    if "model" not in settings and "controller" not in settings:
        raise ConfigError("a controller is missing; valid: model=FILE, controller=NAME, or both")
    controllers: list[Controller] = []
    task = None
    if "model" in settings:
        from netbuf_gym import zoo

        agent = zoo.load(settings["model"])
        task = tasks.find_task(agent.env_id)
        controllers.append(agent.controller)
    if "task" in settings and task not in (None, settings["task"]):
        raise ConfigError(f"task = {quote(settings['task'])}; valid with this model: {task!r}")
    if task is None:
        if "task" not in settings:
            raise ConfigError("task is missing; valid: task=NAME, or model=FILE of a trained agent")
        task = tasks.get(settings["task"]).name
    if "controller" in settings:
        controllers += [rollout.get_controller(name, task) for name in check_texts("controller", settings["controller"])]
    if len({one.name for one in controllers}) < len(controllers):
        raise ConfigError("a controller is named twice; valid: each once")
    return task, controllers


def _resolve_environment(
    controller: Controller, plant: Mapping[str, Any], interval_s: float | None, task: str
) -> dict[str, Any]:
    """Return the arguments of the environment that a controller is played in."""
    env = controller.merge_arguments({"plant": plant})
    if interval_s is not None:
        env["interval_s"] = interval_s
    elif task == TASK:
        env.setdefault("interval_s", USUAL_S)
    return env


def _check_fit(controller: Controller, task: str, scenario: Any, seed: int, env: Mapping[str, Any]) -> None:
    """Raise the errors of a controller that does not fit the world, or of a control that this kernel has not."""
    rollout.check_controller(controller, scenario, task=task, **env)
    if isinstance(controller, InWorld):
        (world,) = rollout.draw_worlds(task, scenario, [seed], **env)
        Setup(controller.place(world.scenario), Agents(), realtime=True)


def _play_episode(
    controller: Controller,
    task: str,
    scenario: Any,
    seed: int,
    env: Mapping[str, Any],
    series: dict[str, list[float]],
) -> dict[str, Any]:
    """Play one episode and return its report; `series` is filled with the measurements of each interval."""
    worlds = rollout.draw_worlds(task, scenario, [seed], **env)
    report: list[dict[str, Any]] = []

    def keep_interval(view: rollout.View) -> None:
        state = view.show()
        for key, value in state.items():
            series.setdefault(key, []).append(float(value))
        values = "   ".join(f"{key} {format_number(float(value))}" for key, value in state.items() if key != "time_s")
        print(f"{controller.name:>12}  {state['time_s']:8.1f} s   {values}", flush=True)

    def keep_report(view: rollout.View) -> None:
        report.extend(view.report())

    rollout.play(controller, worlds, keep_report, task=task, scenario=scenario, watch={0: keep_interval}, **env)
    return report[0]


def format_reports(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Format reports as a table with a column for each controller and a row for each quantity."""
    numbers = (int, float, np.number)
    keys = dict.fromkeys(key for report in reports.values() for key, value in report.items() if isinstance(value, numbers))
    rows = [[key, *(format_number(_convert_to_float(report.get(key))) for report in reports.values())] for key in keys]
    return text_table(["quantity", *reports], rows)


def _convert_to_float(value: Any) -> float:
    return math.nan if value is None else float(value)
