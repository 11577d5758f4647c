"""`netbuf-gym live tune` and `netbuf-gym live restore`: tune this host's settings, and restore them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym import tasks
from netbuf_gym.cli.common import check_outputs, check_plot, collect_assignments, parse_assignment
from netbuf_gym.cli.common import parse_real as number_of
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation import rollout
from netbuf_gym.host import decider as deciders
from netbuf_gym.host import locks, session
from netbuf_gym.host import log as record
from netbuf_gym.host.decider import TASK, Decider, FixedControls
from netbuf_gym.host.journal import Journal
from netbuf_gym.host.rate_limits import ChangeRateLimit, Watchdog, check_factor, check_seconds
from netbuf_gym.host.settings import KNOBS, Ring, Sysctl
from netbuf_gym.host.targets import HostSettings, select_usable
from netbuf_gym.host.tuner import EndSignal, Step, Tuner, catch_end_signals
from netbuf_gym.plants.linux.host_meter import HostMeter
from netbuf_gym.plants.linux.sysctls import KINDS
from netbuf_gym.utils.arguments import check_choice, check_real

DEFAULT_CONTROLLER = "bpftune"
CONTROLS = ("ring_packets", *KNOBS)
USUAL_S, LEAST_S, MOST_S = 5.0, 3.0, 10.0
"""Default, least and largest interval between decisions: shorter ones say little about the network, longer ones are slow."""
DEFAULT_SETTINGS = tuple(name for name in KINDS if not name.endswith("mem_default"))
"""Settings that are tuned by default; TCP does not use net.core.*mem_default."""


def add(verbs: argparse._SubParsersAction) -> None:
    """Add the parsers of the verbs tune and restore."""
    verb = verbs.add_parser("tune", help="tune this host's buffers; says what it would set, and sets with --apply only")
    verb.add_argument(
        "words",
        nargs="*",
        type=parse_assignment,
        metavar="KEY=VALUE",
        help=f"who decides: controller=NAME of task {TASK} (default: {DEFAULT_CONTROLLER}), model=FILE of a trained agent, "
        f"recipe=NAME of its environment; or numbers that are to be reached: {', '.join(CONTROLS)}",
    )
    verb.add_argument("--apply", action="store_true", help="set what is decided; the original values are back at the end")
    verb.add_argument("--interval", type=number_of, metavar="S", help="between decisions, 3 to 10 (default: the model's, or 5)")
    verb.add_argument("--duration", type=number_of, metavar="S", help="seconds, an interval or more (default: until Ctrl-C)")
    verb.add_argument(
        "--settings",
        type=lambda text: text.split(","),
        metavar="A,B,...",
        help=f"of {', '.join(KINDS)}; each must be there (default: those that are, but for the defaults of net.core)",
    )
    verb.add_argument("--ring", metavar="DEVICE", help="tune this network card's ring, too; each change interrupts traffic")
    verb.add_argument(
        "--range",
        action="append",
        default=[],
        type=_parse_range,
        metavar="CONTROL=LOW:HIGH",
        help="what a control is kept in; may be repeated",
    )
    verb.add_argument(
        "--most-factor",
        type=number_of,
        default=2.0,
        metavar="X",
        help="by which a setting changes at most within --per seconds (default: 2)",
    )
    verb.add_argument("--per", type=number_of, default=10.0, metavar="S", help="(default: 10; 0: no limit)")
    verb.add_argument(
        "--worse-factor",
        type=number_of,
        default=2.0,
        metavar="X",
        help="throughput or latency is worse than usual by this factor ... (default: 2)",
    )
    verb.add_argument(
        "--worse-for",
        type=number_of,
        default=15.0,
        metavar="S",
        help="... for so long: the last good settings are restored (default: 15)",
    )
    verb.add_argument(
        "--pause", type=number_of, default=60.0, metavar="S", help="nothing is tuned for so long after that (default: 60)"
    )
    verb.add_argument("--local", action="store_true", help="count connections over the loopback device as well")
    _add_journal(verb)
    verb.add_argument("--log", metavar="FILE", help="write a row of CSV after each interval, after those that are there")
    verb.add_argument("--plot", metavar="FILE", help="draw what happened, at the end (.png, .pdf or .svg)")
    verb = verbs.add_parser("restore", help="bring back what a tuner that was killed has left changed")
    _add_journal(verb)


def _add_journal(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--journal",
        metavar="FILE",
        help="where changes are written down before they are made "
        "(default: in /var/lib/netbuf-gym, or the user's state folder)",
    )


def _parse_range(text: str) -> tuple[str, tuple[int, int]]:
    name, _, values = text.partition("=")
    low, _, high = values.partition(":")
    if name in CONTROLS and low.isdecimal() and high.isdecimal():
        return name, (int(low), int(high))
    raise argparse.ArgumentTypeError(f"{text!r} is not CONTROL=LOW:HIGH; controls: {', '.join(CONTROLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    path = session.resolve_journal_path(arguments.journal)
    if arguments.verb == "restore":
        return _restore(path)
    check_outputs(arguments.log, arguments.plot)
    for name in ("log", "plot"):
        given = getattr(arguments, name)
        if given is not None and Path(given).resolve() == path.resolve():
            raise ConfigError(f"--{name} {given} is the journal; valid: a file of its own")
    check_plot(arguments.plot)
    if arguments.interval is not None:
        check_real("--interval", arguments.interval, LEAST_S, MOST_S)
    pace = ChangeRateLimit(check_factor("--most-factor", arguments.most_factor), check_seconds("--per", arguments.per))
    watchdog = Watchdog(
        check_factor("--worse-factor", arguments.worse_factor),
        check_seconds("--worse-for", arguments.worse_for),
        check_seconds("--pause", arguments.pause),
    )
    words = check_words(collect_assignments(arguments.words))
    controller = resolve_controller(words)
    interval_s = resolve_interval_s(arguments.interval, controller)
    duration_s = math.inf if arguments.duration is None else check_real("--duration", arguments.duration, interval_s, 1e9)
    deciding_as = DeciderChoice(words, controller, interval_s)
    with catch_end_signals() as ended:
        if not arguments.apply:
            tuned = locks.describe_holder(path)
            left = [] if tuned else session.find_leftovers(path)
            if tuned:
                _print_line(f"{tuned} just now, which brings back what it sets")
            elif left:
                _print_line(f"left changed by a former run: {', '.join(left)} (netbuf-gym live restore)")
            draw = _tune(arguments, None, deciding_as, pace, watchdog, ended, duration_s)
        else:
            with session.open_journal(path, _print_line) as journal:
                draw = _tune(arguments, journal, deciding_as, pace, watchdog, ended, duration_s)
    draw()  # takes a while, therefore after settings are restored
    return 128 + ended.number if ended.number else 0


def _restore(path: Any) -> int:
    with catch_end_signals(), locks.lock_host_tuning(path, begins=False):
        found = session.restore_leftovers(path)
    for one in found:
        _print_line(one.words)
    if not found:
        _print_line(f"nothing to restore: there is no journal {path}")
    return 2 if any(one.outcome == "failed" for one in found) else 0


def _tune(
    arguments: argparse.Namespace,
    journal: Journal | None,
    who: DeciderChoice,
    pace: ChangeRateLimit,
    watchdog: Watchdog,
    ended: EndSignal,
    duration_s: float,
) -> Callable[[], None]:
    """Tune until the end, and return a function that draws the plot if one is asked for."""
    host = select_settings(arguments, journal is not None)
    decider = who.make_decider(host)
    meter = _open_meter(arguments.local)
    try:
        tuner = Tuner(host, decider, meter, journal, pace, watchdog, who.interval_s)
        mode = "sets" if journal is not None else "dry run: only says what it would set (--apply sets)"
        _print_line(f"{decider.name}, every {who.interval_s:g} s; {mode}; {', '.join(host.settings)}")
        log = record.Log(arguments.log)
        kept = record.ThinnedSteps()

        def each(step: Step) -> None:
            if arguments.plot:
                kept.add(step)
            log.add(step)
            for line in format_step(step, journal is not None):
                _print_line(line)

        tuner.run(each, ended, duration_s)
    finally:
        meter.close()

    def draw() -> None:
        if kept.steps:
            what = "tuned" if journal is not None else "observed, nothing set"
            record.plot_run(kept.steps, host, arguments.plot, f"this host, {what} by {decider.name}")

    return draw


def _open_meter(local: bool) -> HostMeter:
    try:
        return HostMeter(local=local, own_memory=False)
    except OSError as error:
        why = f"the kernel does not tell of TCP connections: {error.strerror}"
        raise ConfigError(f"{why}; valid: Linux with INET_DIAG") from None


def select_settings(arguments: argparse.Namespace, write: bool) -> HostSettings:
    """Return the settings to tune.

    Raises:
        ConfigError: Nothing to tune, or a setting that was asked for does not exist.
    """
    asked = arguments.settings is not None
    settings: list[Any] = [Sysctl(name) for name in (arguments.settings if asked else DEFAULT_SETTINGS)]
    if arguments.ring:
        settings.append(Ring(arguments.ring))
    good, why = select_usable(settings, write)
    missing_ring = arguments.ring and settings[-1] not in good
    if why and (asked or missing_ring):
        raise ConfigError(why[-1] if missing_ring else why[0])
    host = HostSettings(good, dict(arguments.range))
    if not host.settings:
        none = f"no control turns {', '.join(arguments.settings or ())}" if asked else "there is nothing to tune"
        raise ConfigError(why[0] if why else f"{none}; valid: {', '.join(DEFAULT_SETTINGS)}")
    for line in why:
        _print_line(f"not tuned: {line}")
    if not write:
        for line in select_usable([one for one in host.settings.values() if isinstance(one, Sysctl)], write=True)[1]:
            _print_line(f"with --apply not tuned: {line}")
    return host


def check_words(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words that name the decider, checked.

    Raises:
        ConfigError: An unknown word, a wrong value, or words that exclude each other.
    """
    for name, value in words.items():
        check_choice("setting", name, ("controller", "model", "recipe", *CONTROLS))
        if name in CONTROLS:
            check_real(name, value, 1, 2.0**32)
        elif not isinstance(value, str):
            raise ConfigError(f"{name} = {shown(value)}; valid: a name, or the path of a model")
    numbers = any(name in CONTROLS for name in words)
    if numbers + ("model" in words) + ("controller" in words) > 1:
        raise ConfigError("several decide; valid: one of controller=NAME, model=FILE and numbers to be reached")
    if numbers and "recipe" in words:
        raise ConfigError(f"recipe = {shown(words['recipe'])} does nothing beside numbers; valid: with controller= or model=")
    return dict(words)


def resolve_controller(words: Mapping[str, Any]) -> Controller | None:
    """Return the controller or trained agent that words name; None if words give numbers to reach.

    Raises:
        ConfigError: An unknown controller, or an agent of another task.
        CheckpointError: A model that cannot be loaded.
    """
    if any(name in CONTROLS for name in words):
        return None
    if "model" not in words:
        return rollout.get_controller(words.get("controller", DEFAULT_CONTROLLER), TASK)
    from netbuf_gym import zoo

    agent = zoo.load(words["model"])
    task = tasks.find_task(agent.env_id)
    if task != TASK:
        raise ConfigError(f"model = {shown(words['model'])} is an agent of task {task!r}; valid here: one of task {TASK!r}")
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
        raise ConfigError(f"the model decides every {own:g} s; valid here: {LEAST_S:g} to {MOST_S:g} s, as --interval says")
    return float(own)


@dataclass(frozen=True)
class DeciderChoice:
    """Choice of the decider.

    Attributes:
        words: Words of the command line.
        controller: Controller that the words name; None: they give numbers to reach.
        interval_s: Seconds between decisions.
    """

    words: Mapping[str, Any]
    controller: Controller | None
    interval_s: float

    def make_decider(self, host: HostSettings) -> Decider:
        """Return the decider for a host.

        Raises:
            ConfigError: The controller or the numbers do not fit the host.
        """
        if self.controller is not None:
            env = {"recipe": self.words["recipe"]} if "recipe" in self.words else {}
            return deciders.make_decider(self.controller, self.interval_s, host.telemetry(host.read()), **env)
        numbers = {name: float(value) for name, value in self.words.items() if name in CONTROLS}
        aims, notes = host.resolve_targets(numbers)
        for note in notes:
            _print_line(note)
        return FixedControls(aims)


def format_step(step: Step, applied: bool) -> list[str]:
    """Format a step as lines of text."""
    told = step.telemetry
    latency = "-" if math.isnan(told["latency_s"]) else f"{told['latency_s'] * 1e3:.1f}"
    head = f"{step.time_s:8.1f} s  {told['total_throughput_bps'] * 1e-6:9.2f} Mbit/s  {latency:>7} ms"
    head += f"  {told['connections']:5.0f} connections  {told['memory_bytes'] * 1e-6:8.2f} MB"
    verb = "set" if applied else "would set"
    found = [f"           {verb} {change} ({change.why})" for change in step.changes]
    return [head, *found, *(f"           {note}" for note in step.notes)]


def _print_line(line: str) -> None:
    print(line, flush=True)
