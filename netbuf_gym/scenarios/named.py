"""Registry of named scenarios: Pantheon's paths, trace files, scenario files, and scenarios that tasks register.

A name and its keyword arguments are JSON, so an environment described by them can be saved.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from netbuf_gym import traces
from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError, TraceError, quote
from netbuf_gym.scenarios.catalogue import parse_sender_list, parse_senders
from netbuf_gym.scenarios.distributions import ChangedDistribution, Distribution
from netbuf_gym.scenarios.factories import derive_factory, list_named
from netbuf_gym.scenarios.glossary import GLOSSARY, Entry
from netbuf_gym.scenarios.media import CELLULAR_GENERATIONS, WIFI_STANDARDS, cellular, wifi
from netbuf_gym.scenarios.tcp_settings import TcpSettings
from netbuf_gym.scenarios.topologies import dumbbell, parking_lot
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils import checks
from netbuf_gym.utils.docstrings import find_range, parse_arguments
from netbuf_gym.utils.files import read_text
from netbuf_gym.utils.startup import import_tasks
from netbuf_gym.utils.suggestions import did_you_mean

World = Scenario | Distribution
_REGISTRY: dict[str, Callable[..., World]] = {}
MAX_FLOWS = 10_000
SETTINGS = (
    *("mss_bytes", "min_rto_ms", "delayed_ack", "syn_retries", "data_retries", "start_jitter_ms"),
    *(one.name for one in fields(TcpSettings)),
    *("udp", "traffic"),
)
"""Fields of `Scenario` that `get` takes for every scenario of packets; `udp` and `traffic`, cross traffic, as records or as in
`Scenario.to_dict`, instead of what the scenario has of it."""


@dataclass(frozen=True)
class Pattern:
    """Pattern of scenario names.

    Attributes:
        form: The pattern as text, e.g. `"trace:PATH"`.
        description: Description in one line.
        maker: (name) -> function that makes the name's worlds, or None if the name does not match the pattern.
        example: Name of this form with typical arguments; None: names of this form have no arguments.
    """

    form: str
    description: str
    maker: Callable[[str], Callable[..., World] | None]
    example: str | None = None


PATTERNS: dict[str, Pattern] = {}
"""Patterns that `get` accepts besides registered names, by form."""

PANTHEON = {
    1: (0.57, True, 28, 14, 0.0477),
    2: (2.64, True, 88, 130, 0.0),
    3: (3.04, True, 130, 426, 0.0),
    4: (100.42, False, 27, 173, 0.0),
    5: (77.72, False, 51, 94, 0.0006),
    6: (114.68, False, 45, 450, 0.0),
}
"""Pantheon's calibrated paths: Mbit/s, whether deliveries are Poisson, one-way delay in ms, queue in packets, loss."""


def register(name: str, maker: Callable[..., Any]) -> None:
    """Register a scenario: `get(name, **kwargs)` calls `maker(**kwargs)`.

    The first line of the maker's docstring is the scenario's description. The maker returns a `Scenario`, a `Distribution`, or
    for a plant of another kind any immutable object with a `name` and a `duration_s`.

    Raises:
        ConfigError: The name is taken.
    """
    import_tasks()  # any of which may have it
    add(name, maker)


def register_pattern(pattern: Pattern) -> None:
    """Register a pattern of names for `get`.

    Raises:
        ConfigError: The pattern is taken.
    """
    import_tasks()
    add_pattern(pattern)


def add(name: str, maker: Callable[..., Any]) -> None:
    """Register a scenario of the package; see `register`."""
    if _REGISTRY.setdefault(name, maker) is not maker:
        raise ConfigError(f"scenario {name!r} is registered already")


def add_pattern(pattern: Pattern) -> None:
    """Register a pattern of names of the package; see `register_pattern`."""
    if PATTERNS.setdefault(pattern.form, pattern) is not pattern:
        raise ConfigError(f"scenario {pattern.form!r} is registered already")


def unregister(name: str) -> None:
    """Remove a name or a pattern from the registry, if registered."""
    _REGISTRY.pop(name, None)
    PATTERNS.pop(name, None)


def names() -> list[str]:
    """Return the registered names, sorted; `get` also accepts the forms of `PATTERNS`."""
    import_tasks()
    return sorted(_REGISTRY)


def describe(name: str) -> str:
    """Return the description of a registered scenario, one line.

    Raises:
        ScenarioError: An unknown name.
    """
    return (inspect.getdoc(_find_maker(name)) or "").split("\n")[0]


def parameters_of(name: str) -> list[str]:
    """Return the names of the keyword arguments of `get(name, ...)`."""
    return list(list_named(inspect.signature(_find_maker(name))))


def defaults_of(name: str) -> dict[str, Any]:
    """Return the keyword arguments of `get(name, ...)` with their defaults (`inspect.Parameter.empty`: no default)."""
    return {key: one.default for key, one in inspect.signature(_find_maker(name)).parameters.items()}


def glossary_of(name: str) -> dict[str, Entry]:
    """Return the meanings of a scenario's arguments, from its maker's docstring or else from `GLOSSARY`."""
    maker = _find_maker(name)
    documented = {key: Entry(find_range(text), text) for key, text in parse_arguments(maker).items()}
    return {key: documented.get(key) or GLOSSARY.get(key) or Entry("", "") for key in parameters_of(name)}


def takes_number(name: str, given: Iterable[str]) -> bool:
    """Return whether a named scenario has an argument `n` (number of flows) that the arguments `given` leave open."""
    return "n" in parameters_of(name) and not {"n", "senders"} & set(given)


def get(name: str | World, /, **kwargs: Any) -> World:
    """Return a scenario, or a distribution over scenarios, by name.

    Args:
        name: One of `names()`, or a name of a form in `PATTERNS`: `trace:PATH` for a dumbbell over a trace file (Mahimahi or
            CSV), `file:PATH` for a JSON file written from `Scenario.to_dict`. A `Scenario` or `Distribution` is returned
            unchanged.
        kwargs: Arguments of the scenario (see `parameters_of(name)`), and `SETTINGS`.

    Raises:
        ScenarioError: An unknown name or argument, or a value out of range.
        TraceError: The trace file cannot be read.
    """
    if isinstance(name, (Scenario, Distribution)):
        if kwargs:
            raise ScenarioError(f"a ready-made {type(name).__name__} takes no arguments, got {', '.join(kwargs)}")
        return name
    maker = _find_maker(name)
    signature = inspect.signature(maker)
    settings = {key: kwargs.pop(key) for key in SETTINGS if key in kwargs and key not in signature.parameters}
    check_arguments(name, signature, kwargs, SETTINGS)
    world = maker(**kwargs)
    world = world if world.name else replace(world, name=name)  # type: ignore[type-var]  # all worlds are dataclasses
    if not settings:
        return world
    from netbuf_gym.scenarios.codec import parse_parts

    settings = parse_parts(settings)
    if isinstance(world, Distribution):
        return ChangedDistribution(parent=world, changes=tuple(settings.items()), name=world.name)
    if not isinstance(world, Scenario):
        own = ", ".join(list_named(signature)) or "none"
        raise ScenarioError(f"{name} has no argument {next(iter(settings))!r}, being no world of packets; valid: {own}")
    return replace(world, **settings)


def check_arguments(
    name: str, signature: inspect.Signature, given: Mapping[str, object], settings: tuple[str, ...] = ()
) -> None:
    """Raise ScenarioError unless the arguments given by name match a function's signature.

    Args:
        name: Name for the message.
        signature: Signature of the function.
        given: The arguments.
        settings: Names of settings that are taken beside the function's arguments, for the message.

    Raises:
        ScenarioError: An unknown argument, or a required one that is missing; names the argument.
    """
    by_name = list_named(signature)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for argument in given:
        if argument not in by_name and not takes_all:
            hint = did_you_mean(argument, (*by_name, *settings))
            beside = f"; of every scenario: {', '.join(settings)}" if settings else ""
            raise ScenarioError(f"{name} has no argument {argument!r}; {hint}valid: {', '.join(by_name) or 'none'}{beside}")
    for argument, parameter in by_name.items():
        if parameter.default is parameter.empty and argument not in given:
            raise ScenarioError(f"{name} needs the argument {argument!r}; valid: {argument}=...")


def _find_maker(name: object) -> Callable[..., World]:
    if not isinstance(name, str):
        raise ScenarioTypeError(f"scenario = {quote(name)} is not a name; valid: {', '.join((*names(), *PATTERNS))}")
    if name not in _REGISTRY:
        import_tasks()
    for pattern in PATTERNS.values():
        maker = pattern.maker(name)
        if maker is not None:
            return maker
    if name not in _REGISTRY:
        valid = (*names(), *PATTERNS)
        raise ScenarioError(f"scenario = {quote(name)} is unknown; {did_you_mean(name, valid)}valid: {', '.join(valid)}")
    return _REGISTRY[name]


def resolve_senders(n: int | None, senders: str | dict | Iterable[str | dict] | None) -> tuple:
    """Return the congestion controls of senders given by number (all CUBIC), by congestion controls, or by both.

    Raises:
        ScenarioError: A number out of range, or one that differs from the number of congestion controls.
    """
    if senders is None:
        return ("cubic",) * checks.integer("n", 1 if n is None else n, 1, MAX_FLOWS)
    named = parse_senders(senders)
    if n is None:
        return named
    n = checks.integer("n", n, 1, MAX_FLOWS)
    if parse_sender_list(senders) is None:
        return named * n
    if n != len(named):
        raise ScenarioError(f"n = {n} with {len(named)} senders; valid: as many, or one of the two")
    return named


def _create_pantheon_factory(number: int) -> Callable[..., World]:
    rate, random, one_way_ms, queue, loss = PANTHEON[number]

    def make(*, trace_seed: int = 1, duration_s: float = 30.0, **world: Any) -> Scenario:
        trace = traces.generate("poisson", duration_s=duration_s, seed=trace_seed, rate_mbps=rate) if random else None
        return dumbbell(rate_mbps=None if random else rate, trace=trace, duration_s=duration_s, **world)

    kind = "Poisson deliveries" if random else "constant"
    summary = f"Pantheon's path: {rate:g} Mbit/s {kind}, {2 * one_way_ms} ms, {queue} packets, loss {loss:g}, 30 s."
    if random:
        summary += "\n\nArgs:\n    duration_s: length of the world, and of its random deliveries, 0.001 to 1e+05 s"
    path = {"rtt_ms": 2 * one_way_ms, "buffer_packets": queue, "loss": loss, "name": f"pantheon/{number}"}
    return derive_factory(make, summary, like=dumbbell, only=("stagger_s",), fixed=path, resolve=resolve_senders)


def _create_wifi_factory(standard: str) -> Callable[..., World]:
    def make(*, stations: int = 0, packet_error: float = 0.0, ampdu_packets: int | None = None, **world: Any) -> Scenario:
        changes = {} if ampdu_packets is None else {"ampdu_packets": ampdu_packets}
        return dumbbell(medium=wifi(standard, stations=stations, packet_error=packet_error, **changes), **world)

    summary = f"An access point's 802.11{standard} link to a station, which data and ACKs share; 20 ms, 300 packets, 30 s."
    return _derive_medium_factory(make, summary, f"wifi/{standard}")


def _create_cell_factory(generation: str) -> Callable[..., World]:
    def make(*, users: int = 3, snr_db: float = 15.0, fading_ms: float = 30.0, bler: float = 0.1, **world: Any) -> Scenario:
        return dumbbell(medium=cellular(generation, users=users, snr_db=snr_db, fading_ms=fading_ms, bler=bler), **world)

    summary = f"A user of a cell ({generation}) beside others, over a channel that fades; 20 ms, 300 packets, 30 s."
    return _derive_medium_factory(make, summary, f"cellular/{generation}")


def _derive_medium_factory(make: Callable[..., World], summary: str, name: str) -> Callable[..., World]:
    only = (
        "rtt_ms",
        "buffer_packets",
        "duration_s",
        "stagger_s",
        "stack",
        "hystart",
        "discipline",
        "ecn",
        "return_buffer_packets",
    )
    usual: dict[str, Any] = {"rtt_ms": 20.0, "buffer_packets": 300, "duration_s": 30.0}
    return derive_factory(make, summary, like=dumbbell, only=only, fixed={"name": name}, resolve=resolve_senders, **usual)


def _make_trace_dumbbell(
    *,
    path: str,
    loop: bool = True,
    column: str | int | None = None,
    unit: str | None = None,
    time_unit: str | None = None,
    start_s: float = 0.0,
    **world: Any,
) -> Scenario:
    loop = checks.boolean("loop", loop)
    try:
        trace = traces.read(path, loop=loop, column=column, unit=unit, time_unit=time_unit, start_s=start_s)
    except TraceError as error:
        valid = "trace:PATH, a trace file (netbuf-gym trace show --help)"
        raise TraceError(f"scenario = {quote(f'trace:{path}')}: {error}; valid: {valid}") from None
    return dumbbell(trace=trace, name=f"trace:{path}", **world)


def _read_scenario(path: str) -> Scenario:
    try:
        data = json.loads(read_text(path))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: is not JSON: {error}") from None
    try:
        return Scenario.from_dict(data)
    except ScenarioError as error:
        raise type(error)(f"{path}: {error}") from None


def _match_trace_name(name: str) -> Callable[..., World] | None:
    prefix, _, path = name.partition(":")
    if prefix != "trace" or not path:
        return None

    return derive_factory(
        _make_trace_dumbbell,
        "A dumbbell whose bottleneck follows a trace file.",
        like=dumbbell,
        only=("rtt_ms", "buffer_packets", "loss", "duration_s", "stagger_s", "stack"),
        fixed={"path": path},
        resolve=resolve_senders,
        rtt_ms=40.0,
        buffer_packets=300,
        duration_s=80.0,
    )


_TOPOLOGIES = {
    "parking_lot": (
        "A parking lot: long flows over all hops (3), 10 Mbit/s, 10 ms, 100 packets each, and a CUBIC flow across each.",
        {},
    ),
    "chain": ("A chain of hops (3), 10 Mbit/s, 10 ms, 100 packets each, that all flows cross.", {"cross": ()}),
}
"""Multi-hop topologies by name: description, fixed arguments of `parking_lot`."""
_HOP_ARGS = """

Args:
    rate_mbps: rate of each hop, or a list of one each, 1e-06 to 1e+06 Mbit/s; null: infinitely fast
    delay_ms: propagation over each hop, one way, or a list, 0 to 1e+05 ms
    buffer_packets: queue limit of each hop, or a list, 1 or more; null: no limit
    loss: probability that a data packet is lost after a hop, or a list, 0 to below 1
    access_delay_ms: delay of each access link, beside the hops', 0 to 1e+05 ms; null: the stack's"""


def _create_hops_factory(name: str, **fixed: Any) -> Callable[..., World]:
    summary, own = _TOPOLOGIES[name]
    full = "/".join((name, *(str(hops) for hops in fixed.values())))
    return derive_factory(
        parking_lot,
        summary + _HOP_ARGS,
        without=("app", "pacing"),
        fixed={"name": full, **own, **fixed},
        resolve=resolve_senders,
    )


def _match_hops_name(topology: str) -> Callable[[str], Callable[..., World] | None]:
    def match(name: str) -> Callable[..., World] | None:
        prefix, _, hops = name.partition("/")
        if prefix != topology or not hops.isdecimal():
            return None
        return _create_hops_factory(topology, hops=int(hops))

    return match


def _match_file_name(name: str) -> Callable[..., World] | None:
    prefix, _, path = name.partition(":")
    if prefix != "file" or not path:
        return None

    def from_file() -> Scenario:
        return _read_scenario(path)

    return from_file


add(
    "dumbbell",
    derive_factory(
        dumbbell,
        "A configurable dumbbell; by default 10 Mbit/s, 48 ms, a buffer of 150 packets, no loss, 100 s."
        "\n\nArgs:\n    rtt_ms: propagation there and back, or a list of it for each flow, 0 to 1e+05 ms"
        "\n    start_s: when each flow starts, a list, 0 to 1e+06 s; null: as stagger_s says",
        without=("trace", "return_trace", "gilbert_elliott", "app", "pacing", "delays", "jitter", "on_outage"),
        fixed={"name": "dumbbell"},
        resolve=resolve_senders,
    ),
)
for _topology, (_summary, _) in _TOPOLOGIES.items():
    add(_topology, _create_hops_factory(_topology))
    _pattern = f"{_topology}/HOPS"
    add_pattern(Pattern(_pattern, f"{_summary[:-1]}; as many hops.", _match_hops_name(_topology), f"{_topology}/3"))
for _number in PANTHEON:
    add(f"pantheon/{_number}", _create_pantheon_factory(_number))
for _standard in WIFI_STANDARDS:
    add(f"wifi/{_standard}", _create_wifi_factory(_standard))
for _generation in CELLULAR_GENERATIONS:
    add(f"cellular/{_generation}", _create_cell_factory(_generation))
add_pattern(Pattern("trace:PATH", "A dumbbell whose bottleneck follows a trace file.", _match_trace_name, "trace:PATH"))
add_pattern(Pattern("file:PATH", "A scenario file, written from Scenario.to_dict().", _match_file_name))
