"""Scenarios by name: Pantheon's paths, trace files, scenario files, and what tasks bring.

A name and keyword arguments are JSON, so an environment that is described by them can be saved.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from netbuf_gym import traces
from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError, TraceError, shown
from netbuf_gym.scenarios.catalogue import names_of, several
from netbuf_gym.scenarios.distributions import Distribution
from netbuf_gym.scenarios.glossary import GLOSSARY, Entry
from netbuf_gym.scenarios.topologies import dumbbell
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils import checks
from netbuf_gym.utils.docstrings import arguments_of, range_of
from netbuf_gym.utils.files import read_text
from netbuf_gym.utils.suggestions import did_you_mean

World = Scenario | Distribution
_REGISTRY: dict[str, Callable[..., World]] = {}
MAX_FLOWS = 10_000


@dataclass(frozen=True)
class Pattern:
    """Names that follow a pattern.

    Attributes:
        form: how it is written, e.g. `"trace:PATH"`.
        description: one line.
        maker: the function that makes the worlds of a name, or None where the name is not of this form.
        example: a name of this form whose arguments stand for all; None: there are none to speak of.
    """

    form: str
    description: str
    maker: Callable[[str], Callable[..., World] | None]
    example: str | None = None


PATTERNS: dict[str, Pattern] = {}
"""What `get` takes besides names."""

PANTHEON = {
    1: (0.57, True, 28, 14, 0.0477),
    2: (2.64, True, 88, 130, 0.0),
    3: (3.04, True, 130, 426, 0.0),
    4: (100.42, False, 27, 173, 0.0),
    5: (77.72, False, 51, 94, 0.0006),
    6: (114.68, False, 45, 450, 0.0),
}
"""Pantheon's calibrated paths: Mbit/s, Poisson deliveries or constant rate, one-way ms, queue in packets, loss."""

def register(name: str, maker: Callable[..., Any]) -> None:
    """Makes `get(name, **kwargs)` call `maker(**kwargs)`. The first line of its docstring describes it.

    What it makes is a `Scenario`, a `Distribution`, or for a plant of another kind any immutable object with a `name` and a
    `duration_s`.

    Raises:
        ConfigError: The name is taken.
    """
    if _REGISTRY.setdefault(name, maker) is not maker:
        raise ConfigError(f"scenario {name!r} is registered already")


def register_pattern(pattern: Pattern) -> None:
    """Makes `get` take names of a pattern.

    Raises:
        ConfigError: The pattern is taken.
    """
    if PATTERNS.setdefault(pattern.form, pattern) is not pattern:
        raise ConfigError(f"scenario {pattern.form!r} is registered already")


def unregister(name: str) -> None:
    """Forgets a name or a pattern, if it is known."""
    _REGISTRY.pop(name, None)
    PATTERNS.pop(name, None)


def names() -> list[str]:
    """The registered names; `get` also takes what `PATTERNS` lists."""
    return sorted(_REGISTRY)


def describe(name: str) -> str:
    """One line about a registered scenario.

    Raises:
        ScenarioError: An unknown name.
    """
    return (inspect.getdoc(_maker(name)) or "").split("\n")[0]


def parameters_of(name: str) -> list[str]:
    """The keyword arguments that `get(name, ...)` takes."""
    return list(_by_name(inspect.signature(_maker(name))))


def defaults_of(name: str) -> dict[str, Any]:
    """The keyword arguments that `get(name, ...)` takes, with their defaults; `inspect.Parameter.empty` where there is none."""
    return {key: one.default for key, one in inspect.signature(_maker(name)).parameters.items()}


def glossary_of(name: str) -> dict[str, Entry]:
    """What the arguments of a scenario mean, as its maker documents them, or else as most scenarios have them."""
    maker = _maker(name)
    documented = {key: Entry(range_of(text), text) for key, text in arguments_of(maker).items()}
    return {key: documented.get(key) or GLOSSARY.get(key) or Entry("", "") for key in parameters_of(name)}


def takes_number(name: str, given: Iterable[str]) -> bool:
    """Whether a named scenario takes the number `n` of its flows, and the arguments `given` leave that open."""
    return "n" in parameters_of(name) and not {"n", "senders"} & set(given)


def get(name: str | World, /, **kwargs: Any) -> World:
    """A scenario or a distribution over scenarios by name.

    Args:
        name: One of `names()`, or of a form that `PATTERNS` lists: `trace:PATH` for a dumbbell over a trace file (Mahimahi or
            CSV), `file:PATH` for a JSON file written from `Scenario.to_dict`. A `Scenario` or `Distribution` is returned as
            it is.
        kwargs: What the scenario lets vary; see `parameters_of(name)`.

    Raises:
        ScenarioError: An unknown name or argument, or a value out of range.
        TraceError: The trace file cannot be read.
    """
    if isinstance(name, (Scenario, Distribution)):
        if kwargs:
            raise ScenarioError(f"a ready-made {type(name).__name__} takes no arguments, got {', '.join(kwargs)}")
        return name
    maker = _maker(name)
    check_arguments(name, inspect.signature(maker), kwargs)
    world = maker(**kwargs)
    return world if world.name else replace(world, name=name)  # type: ignore[type-var]  # all of them are dataclasses


def check_arguments(name: str, signature: inspect.Signature, given: Mapping[str, object]) -> None:
    """Refuses arguments that a function of this signature does not take by name, and a lack of those that it needs.

    Raises:
        ScenarioError: As said; names the argument.
    """
    by_name = _by_name(signature)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for argument in given:
        if argument not in by_name and not takes_all:
            hint = did_you_mean(argument, by_name)
            raise ScenarioError(f"{name} has no argument {argument!r}; {hint}valid: {', '.join(by_name) or 'none'}")
    for argument, parameter in by_name.items():
        if parameter.default is parameter.empty and argument not in given:
            raise ScenarioError(f"{name} needs the argument {argument!r}; valid: {argument}=...")


def _by_name(signature: inspect.Signature) -> dict[str, inspect.Parameter]:
    kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return {name: parameter for name, parameter in signature.parameters.items() if parameter.kind in kinds}


def _maker(name: object) -> Callable[..., World]:
    if not isinstance(name, str):
        raise ScenarioTypeError(f"scenario = {shown(name)} is not a name; valid: {', '.join((*names(), *PATTERNS))}")
    for pattern in PATTERNS.values():
        maker = pattern.maker(name)
        if maker is not None:
            return maker
    if name not in _REGISTRY:
        valid = (*names(), *PATTERNS)
        raise ScenarioError(f"scenario = {shown(name)} is unknown; {did_you_mean(name, valid)}valid: {', '.join(valid)}")
    return _REGISTRY[name]


def senders_of(n: int | None, senders: str | dict | Iterable[str | dict] | None) -> tuple:
    """Senders from their number (all CUBIC), their congestion controls, or both when they agree."""
    if senders is None:
        return ("cubic",) * checks.integer("n", 1 if n is None else n, 1, MAX_FLOWS)
    named = names_of(senders)
    if n is None:
        return named
    n = checks.integer("n", n, 1, MAX_FLOWS)
    if several(senders) is None:
        return named * n
    if n != len(named):
        raise ScenarioError(f"n = {n} with {len(named)} senders; valid: as many, or one of the two")
    return named


def plain_dumbbell(
    *,
    n: Any = None,
    senders: Any = None,
    rate_mbps: Any = 10.0,
    rtt_ms: Any = 48.0,
    buffer_packets: Any = 150,
    loss: Any = 0.0,
    duration_s: Any = 100.0,
    stagger_s: Any = 0.1,
    stack: Any = "linux",
    access_mbps: Any = None,
    access_delay_ms: Any = None,
    hystart: Any = True,
    reverse: Any = (),
    return_rate_mbps: Any = None,
    return_buffer_packets: Any = None,
    discipline: Any = None,
    ecn: Any = False,
) -> Scenario:
    """A dumbbell of your own: 10 Mbit/s, 48 ms, 150 packets of buffer, no loss, 100 s unless said otherwise."""
    return dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=senders_of(n, senders),
        duration_s=duration_s,
        stagger_s=stagger_s,
        stack=stack,
        access_mbps=access_mbps,
        access_delay_ms=access_delay_ms,
        hystart=hystart,
        reverse=reverse,
        return_rate_mbps=return_rate_mbps,
        return_buffer_packets=return_buffer_packets,
        discipline=discipline,
        ecn=ecn,
        name="dumbbell",
    )


def _pantheon(number: int) -> Callable[..., World]:
    rate, random, one_way_ms, queue, loss = PANTHEON[number]

    def maker(
        *, n: Any = None, senders: Any = None, duration_s: Any = 30.0, stagger_s: Any = 0.1, trace_seed: Any = 1
    ) -> Scenario:
        trace = traces.generate("poisson", duration_s=duration_s, seed=trace_seed, rate_mbps=rate) if random else None
        return dumbbell(
            rate_mbps=None if random else rate,
            trace=trace,
            rtt_ms=2 * one_way_ms,
            buffer_packets=queue,
            loss=loss,
            senders=senders_of(n, senders),
            duration_s=duration_s,
            stagger_s=stagger_s,
            name=f"pantheon/{number}",
        )

    kind = "Poisson deliveries" if random else "constant"
    maker.__doc__ = f"Pantheon's path: {rate:g} Mbit/s {kind}, {2 * one_way_ms} ms, {queue} packets, loss {loss:g}, 30 s."
    if random:
        maker.__doc__ += "\n\nArgs:\n    duration_s: length of the world, and of its random deliveries, 0.001 to 1e+05 s"
    return maker


def _trace_world(
    path: str,
    *,
    n: Any = None,
    senders: Any = None,
    rtt_ms: Any = 40.0,
    buffer_packets: Any = 300,
    loss: Any = 0.0,
    duration_s: Any = 80.0,
    stagger_s: Any = 0.1,
    stack: Any = "linux",
    loop: Any = True,
) -> Scenario:
    """A dumbbell whose bottleneck follows a trace file."""
    return dumbbell(
        trace=traces.read(path, loop=checks.boolean("loop", loop)),
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=senders_of(n, senders),
        duration_s=duration_s,
        stagger_s=stagger_s,
        stack=stack,
        name=f"trace:{path}",
    )


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


def _traces(name: str) -> Callable[..., World] | None:
    prefix, _, path = name.partition(":")
    if prefix != "trace" or not path:
        return None

    def from_trace(**kwargs: Any) -> Scenario:
        try:
            return _trace_world(path, **kwargs)
        except TraceError as error:
            valid = "trace:PATH, a trace in Mahimahi's form or CSV"
            raise TraceError(f"scenario = {shown(name)}: {error}; valid: {valid}") from None

    from_trace.__signature__ = signature_without(_trace_world, "path")  # type: ignore[attr-defined]
    return from_trace


def _files(name: str) -> Callable[..., World] | None:
    prefix, _, path = name.partition(":")
    if prefix != "file" or not path:
        return None

    def from_file() -> Scenario:
        return _read_scenario(path)

    return from_file


def interval_of(value: object) -> object:
    """A fixed number as the interval of that number; JSON lists as tuples."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value, value
    return tuple(value) if isinstance(value, list) else value


def signature_without(function: Callable, *names: str) -> inspect.Signature:
    """The signature of a function without the parameters of these names."""
    signature = inspect.signature(function)
    return signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in names])


register("dumbbell", plain_dumbbell)
for _number in PANTHEON:
    register(f"pantheon/{_number}", _pantheon(_number))
register_pattern(Pattern("trace:PATH", "A dumbbell whose bottleneck follows a trace file.", _traces, "trace:PATH"))
register_pattern(Pattern("file:PATH", "A scenario file, written from Scenario.to_dict().", _files))
