"""`netbuf-gym live tune` and `netbuf-gym live restore`: this host's settings, changed and brought back."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any

from netbuf_gym import rollout
from netbuf_gym.arguments import choice, real
from netbuf_gym.commands.common import assignment, assignments, check_outputs, check_plot
from netbuf_gym.commands.common import real as number_of
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.live import session
from netbuf_gym.live.deciding import TASK, Contending, Decider, Fixed
from netbuf_gym.live.fence import Pace, Watchdog
from netbuf_gym.live.host import HostSettings, usable
from netbuf_gym.live.journal import Journal
from netbuf_gym.live.lock import alone
from netbuf_gym.live.settings import KINDS, KNOBS, Ring, Sysctl
from netbuf_gym.live.tuner import Ended, Step, Tuner, ending
from netbuf_gym.plants.linux.host_meter import HostMeter

USUAL = "bpftune"
CONTROLS = ("ring_packets", *KNOBS)
LEAST_S, MOST_S = 3.0, 10.0
"""Between decisions: less tells little of the network, more is slow."""
DEFAULT_SETTINGS = tuple(name for name in KINDS if not name.endswith("mem_default"))
"""TCP takes nothing from net.core.*mem_default."""


def add(verbs: argparse._SubParsersAction) -> None:
    """Describes the arguments."""
    verb = verbs.add_parser("tune", help="tune this host's buffers; says what it would set, and sets with --apply only")
    verb.add_argument(
        "words",
        nargs="*",
        type=assignment,
        metavar="KEY=VALUE",
        help=f"who decides: contender=NAME of task {TASK} (default: {USUAL}), model=FILE of a trained agent, recipe=NAME of "
        f"its environment; or numbers that are to be reached: {', '.join(CONTROLS)}",
    )
    verb.add_argument("--apply", action="store_true", help="set what is decided; the original values are back at the end")
    verb.add_argument("--interval", type=number_of, default=5.0, metavar="S", help="between decisions, 3 to 10 (default: 5)")
    verb.add_argument("--duration", type=number_of, metavar="S", help="seconds to tune for (default: until Ctrl-C)")
    verb.add_argument("--settings", type=lambda text: text.split(","), metavar="A,B,...", help=f"of {', '.join(KINDS)}; "
                      "each must be there (default: those that are, but for the defaults of net.core)")
    verb.add_argument("--ring", metavar="DEVICE", help="tune this network card's ring, too; each change interrupts traffic")
    verb.add_argument("--range", action="append", default=[], type=_range, metavar="CONTROL=LOW:HIGH",
                      help="what a control is kept in; may be repeated")
    verb.add_argument("--most-factor", type=number_of, default=2.0, metavar="X",
                      help="by which a setting changes at most within --per seconds (default: 2)")
    verb.add_argument("--per", type=number_of, default=10.0, metavar="S", help="(default: 10; 0: no limit)")
    verb.add_argument("--worse-factor", type=number_of, default=2.0, metavar="X",
                      help="throughput or latency is worse than usual by this factor ... (default: 2)")
    verb.add_argument("--worse-for", type=number_of, default=15.0, metavar="S",
                      help="... for so long: the last good settings are restored (default: 15)")
    verb.add_argument("--pause", type=number_of, default=60.0, metavar="S",
                      help="nothing is tuned for so long after that (default: 60)")
    verb.add_argument("--local", action="store_true", help="count connections over the loopback device as well")
    _journal(verb)
    verb.add_argument("--log", metavar="FILE", help="write a row of CSV after each interval")
    verb.add_argument("--plot", metavar="FILE", help="draw what happened, at the end (.png, .pdf or .svg)")
    verb = verbs.add_parser("restore", help="bring back what a tuner that was killed has left changed")
    _journal(verb)


def _journal(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--journal", metavar="FILE", help="where changes are written down before they are made "
                      "(default: in /var/lib/netbuf-gym, or the user's state folder)")


def _range(text: str) -> tuple[str, tuple[int, int]]:
    name, _, values = text.partition("=")
    low, _, high = values.partition(":")
    if name in CONTROLS and low.isdecimal() and high.isdecimal():
        return name, (int(low), int(high))
    raise argparse.ArgumentTypeError(f"{text!r} is not CONTROL=LOW:HIGH; controls: {', '.join(CONTROLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    path = session.journal_path(arguments.journal)
    if arguments.verb == "restore":
        return _restore(path)
    real("--interval", arguments.interval, LEAST_S, MOST_S)
    duration_s = math.inf if arguments.duration is None else real("--duration", arguments.duration, arguments.interval, 1e9)
    check_outputs(arguments.log, arguments.plot)
    check_plot(arguments.plot)
    pace = Pace(arguments.most_factor, arguments.per)
    watchdog = Watchdog(arguments.worse_factor, arguments.worse_for, arguments.pause)
    words = checked_words(assignments(arguments.words))
    with ending() as ended:
        if not arguments.apply:
            left = session.leftovers(path)
            if left:
                _say(f"left changed by a former run: {', '.join(left)} (netbuf-gym live restore)")
            draw = _tune(arguments, None, words, pace, watchdog, ended, duration_s)
        else:
            with session.changing(path, _say) as journal:
                draw = _tune(arguments, journal, words, pace, watchdog, ended, duration_s)
    draw()  # takes a while: when all is as it was
    return 128 + ended.number if ended.number else 0


def _restore(path: Any) -> int:
    with ending(), alone(path):
        found = session.restore_left(path)
    for one in found:
        _say(one.words)
    if not found:
        _say(f"nothing to restore: there is no journal {path}")
    return 2 if any(one.outcome == "failed" for one in found) else 0


def _tune(
    arguments: argparse.Namespace,
    journal: Journal | None,
    words: Mapping[str, Any],
    pace: Pace,
    watchdog: Watchdog,
    ended: Ended,
    duration_s: float,
) -> Callable[[], None]:
    """Tunes, and gives what draws it where a plot is asked for."""
    host = host_of(arguments, journal is not None)
    decider = decider_of(words, arguments.interval, host.telemetry(host.read()))
    meter = _meter(arguments.local)
    try:
        tuner = Tuner(host, decider, meter, journal, pace, watchdog, arguments.interval)
        mode = "sets" if journal is not None else "dry run: only says what it would set (--apply sets)"
        _say(f"{decider.name}, every {arguments.interval:g} s; {mode}; {', '.join(host.settings)}")
        log = session.Log(arguments.log)
        steps: list[Step] = []

        def each(step: Step) -> None:
            if arguments.plot:
                steps.append(step)
            log.add(step)
            for line in lines(step, journal is not None):
                _say(line)

        tuner.run(each, ended, duration_s)
    finally:
        meter.close()

    def draw() -> None:
        if steps:
            what = "tuned" if journal is not None else "observed, nothing set"
            session.plot(steps, host, arguments.plot, f"this host, {what} by {decider.name}")

    return draw


def _meter(local: bool) -> HostMeter:
    try:
        return HostMeter(local=local, own_memory=False)
    except OSError as error:
        why = f"the kernel does not tell of TCP connections: {error.strerror}"
        raise ConfigError(f"{why}; valid: Linux with INET_DIAG") from None


def host_of(arguments: argparse.Namespace, write: bool) -> HostSettings:
    """The settings that are to be tuned; raises ConfigError where there are none, or one that was asked for is not there."""
    asked = arguments.settings is not None
    settings: list[Any] = [Sysctl(name) for name in (arguments.settings if asked else DEFAULT_SETTINGS)]
    if arguments.ring:
        settings.append(Ring(arguments.ring))
    good, why = usable(settings, write)
    missing_ring = arguments.ring and settings[-1] not in good
    if why and (asked or missing_ring):
        raise ConfigError(why[-1] if missing_ring else why[0])
    host = HostSettings(good, dict(arguments.range))
    if not host.settings:
        none = f"no control turns {', '.join(arguments.settings or ())}" if asked else "there is nothing to tune"
        raise ConfigError(why[0] if why else f"{none}; valid: {', '.join(DEFAULT_SETTINGS)}")
    for line in why:
        _say(f"not tuned: {line}")
    return host


def checked_words(words: Mapping[str, Any]) -> dict[str, Any]:
    """Who decides, as the command line says it; raises ConfigError for what is not one of them."""
    for name, value in words.items():
        choice("setting", name, ("contender", "model", "recipe", *CONTROLS))
        if name in CONTROLS:
            real(name, value, 1, 2.0**32)
        elif not isinstance(value, str):
            raise ConfigError(f"{name} = {shown(value)}; valid: a name, or the path of a model")
    numbers = any(name in CONTROLS for name in words)
    if numbers + ("model" in words) + ("contender" in words) > 1:
        raise ConfigError("several decide; valid: one of contender=NAME, model=FILE and numbers to be reached")
    return dict(words)


def decider_of(words: Mapping[str, Any], interval_s: float, in_force: Mapping[str, float]) -> Decider:
    """Who decides, on a host with these settings; raises ConfigError."""
    numbers = {name: float(value) for name, value in words.items() if name in CONTROLS}
    if numbers:
        return Fixed(numbers)
    env = {"recipe": words["recipe"]} if "recipe" in words else {}
    if "model" in words:
        from netbuf_gym import zoo

        contender = zoo.load(words["model"]).contender
    else:
        contender = rollout.contender_of(words.get("contender", USUAL), TASK)
    return Contending(contender, interval_s, in_force, **env)


def lines(step: Step, applied: bool) -> list[str]:
    """What is said of a step."""
    told = step.telemetry
    latency = "-" if math.isnan(told["latency_s"]) else f"{told['latency_s'] * 1e3:.1f}"
    head = f"{step.time_s:8.1f} s  {told['total_throughput_bps'] * 1e-6:9.2f} Mbit/s  {latency:>7} ms"
    head += f"  {told['connections']:5.0f} connections  {told['memory_bytes'] * 1e-6:8.2f} MB"
    verb = "set" if applied else "would set"
    found = [f"           {verb} {change} ({change.why})" for change in step.changes]
    return [head, *found, *(f"           {note}" for note in step.notes)]


def _say(line: str) -> None:
    print(line, flush=True)
