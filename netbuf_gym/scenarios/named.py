"""Scenarios by name: the papers' tables, Pantheon's paths, trace files and scenario files.

A name and keyword arguments are JSON, so an environment that is described by them can be saved.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from netbuf_gym import checks, traces
from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError, shown
from netbuf_gym.files import read_text
from netbuf_gym.scenarios.catalogue import names_of, several
from netbuf_gym.scenarios.codec import from_dict
from netbuf_gym.scenarios.distributions import Distribution, Mixture, RandomDumbbell
from netbuf_gym.scenarios.shared_buffer import (
    rlbm_default,
    rlbm_incast,
    rlbm_random,
    rlbm_thesis_code,
    rlbm_thesis_text,
)
from netbuf_gym.scenarios.topologies import dumbbell
from netbuf_gym.scenarios.types import Scenario

World = Scenario | Distribution
_REGISTRY: dict[str, Callable[..., World]] = {}
MAX_FLOWS = 10_000

PPCC = {1: (150_000, 0.0), 2: (150_000, 1e-4), 3: (150, 0.0), 4: (150, 1e-4)}
"""TCP-PPCC's Table II: queue limit in packets, random loss."""

PANTHEON = {
    1: (0.57, True, 28, 14, 0.0477),
    2: (2.64, True, 88, 130, 0.0),
    3: (3.04, True, 130, 426, 0.0),
    4: (100.42, False, 27, 173, 0.0),
    5: (77.72, False, 51, 94, 0.0006),
    6: (114.68, False, 45, 450, 0.0),
}
"""Pantheon's calibrated paths: Mbit/s, Poisson deliveries or constant rate, one-way ms, queue in packets, loss."""

PATTERNS = {
    "rlbm/CC-SIZE-LOAD": "RLBM's cells, e.g. rlbm/cubic-500-0.6: congestion control, packets a queue, offered load.",
    "trace:PATH": "A dumbbell whose bottleneck follows a trace file.",
    "file:PATH": "A scenario file, written from Scenario.to_dict().",
}
"""What `get` takes besides names."""
CELL = re.compile(r"rlbm/([a-z0-9]+)-(\d+)-(\d+(?:\.\d+)?)")


def register(name: str, maker: Callable[..., World]) -> None:
    """Makes `get(name, **kwargs)` call `maker(**kwargs)`. The first line of its docstring describes it.

    Raises:
        ConfigError: The name is taken.
    """
    if name in _REGISTRY:
        raise ConfigError(f"scenario {name!r} is registered already")
    _REGISTRY[name] = maker


def names() -> list[str]:
    """The registered names; `get` also takes what `PATTERNS` lists."""
    return sorted(_REGISTRY)


def describe(name: str) -> str:
    """One line about a registered scenario."""
    return (inspect.getdoc(_REGISTRY[name]) or "").split("\n")[0]


def parameters_of(name: str) -> list[str]:
    """The keyword arguments that `get(name, ...)` takes."""
    return list(inspect.signature(_maker(name)).parameters)


def get(name: str | World, **kwargs) -> World:
    """A scenario or a distribution over scenarios by name.

    Args:
        name: One of `names()`; `rlbm/CC-SIZE-LOAD` for a cell of the thesis' grid, e.g. rlbm/cubic-500-0.6; `trace:PATH`
            for a dumbbell over a trace file (Mahimahi or CSV); `file:PATH` for a JSON file written from
            `Scenario.to_dict`. A `Scenario` or `Distribution` is returned as it is.
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
    known = inspect.signature(maker).parameters
    for argument in kwargs:
        if argument not in known:
            raise ScenarioError(f"{name} has no argument {argument!r}; valid: {', '.join(known) or 'none'}")
    world = maker(**kwargs)
    return world if world.name else replace(world, name=name)


def _maker(name: object) -> Callable[..., World]:
    if not isinstance(name, str):
        raise ScenarioTypeError(f"scenario = {shown(name)} is not a name; valid: {', '.join((*names(), *PATTERNS))}")
    kind, colon, path = name.partition(":")
    if colon and path and kind == "trace":

        def from_trace(**kwargs):
            return _trace_world(path, **kwargs)

        from_trace.__signature__ = _without(_trace_world, "path")
        return from_trace
    if colon and path and kind == "file":

        def from_file():
            return _read_scenario(path)

        return from_file
    cell = CELL.fullmatch(name)
    if cell is not None:
        cc, queue_packets, load = cell[1], int(cell[2]), float(cell[3])

        def from_cell(**kwargs):
            world = rlbm_default(cc=cc, queue_packets=queue_packets, load=load, **kwargs)
            return replace(world, name=name)

        from_cell.__signature__ = _without(rlbm_default, "cc", "queue_packets", "load")
        return from_cell
    if name not in _REGISTRY:
        raise ScenarioError(f"scenario = {name!r} is unknown; valid: {', '.join((*names(), *PATTERNS))}")
    return _REGISTRY[name]


def _senders(n: int | None, senders: str | dict | Iterable[str | dict] | None) -> tuple:
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


def _ppcc(number: int) -> Callable[..., World]:
    buffer, loss = PPCC[number]

    def maker(*, n=None, senders=None, rate_mbps=10.0, rtt_ms=48.0, duration_s=100.0, stagger_s=0.1, stack="linux") -> Scenario:
        return dumbbell(
            rate_mbps=rate_mbps,
            rtt_ms=rtt_ms,
            buffer_packets=buffer,
            loss=loss,
            senders=_senders(n, senders),
            duration_s=duration_s,
            stagger_s=stagger_s,
            stack=stack,
            name=f"ppcc/{number}",
        )

    maker.__doc__ = f"TCP-PPCC's scenario {number}: 10 Mbit/s, 48 ms, {buffer} packets of buffer, random loss {loss:g}, 100 s."
    return maker


def plain_dumbbell(
    *,
    n=None,
    senders=None,
    rate_mbps=10.0,
    rtt_ms=48.0,
    buffer_packets=150,
    loss=0.0,
    duration_s=100.0,
    stagger_s=0.1,
    stack="linux",
    access_mbps=None,
    access_delay_ms=None,
    hystart=True,
) -> Scenario:
    """A dumbbell of your own: 10 Mbit/s, 48 ms, 150 packets of buffer, no loss, 100 s unless said otherwise."""
    return dumbbell(
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=_senders(n, senders),
        duration_s=duration_s,
        stagger_s=stagger_s,
        stack=stack,
        access_mbps=access_mbps,
        access_delay_ms=access_delay_ms,
        hystart=hystart,
        name="dumbbell",
    )


def ppcc_fluctuating(
    *,
    n=None,
    senders=None,
    low_mbps=10.0,
    high_mbps=20.0,
    half_period_s=10.0,
    rtt_ms=48.0,
    buffer_packets=150,
    loss=1e-4,
    duration_s=100.0,
    stagger_s=0.1,
    stack="linux",
) -> Scenario:
    """TCP-PPCC's fluctuating bottleneck, as ours: 10 and 20 Mbit/s in turn, 10 s each, scenario 4's buffer and loss."""
    half_period_s = checks.number("half_period_s", half_period_s, 0.001, 1e4)
    wave = traces.generate(
        "square", duration_s=2 * half_period_s, low_mbps=low_mbps, high_mbps=high_mbps, half_period_s=half_period_s
    )
    return dumbbell(
        trace=wave,
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=_senders(n, senders),
        duration_s=duration_s,
        stagger_s=stagger_s,
        stack=stack,
        name="ppcc/fluctuating",
    )


def ppcc_random(
    *,
    n=None,
    senders=None,
    rate_mbps=(1.0, 100.0),
    rtt_ms=(5.0, 200.0),
    buffer_bdp=(0.25, 8.0),
    loss_probability=0.5,
    loss=(1e-5, 1e-2),
    change_probability=0.0,
    change_interval_s=(2.0, 20.0),
    change_factor=4.0,
    duration_s=100.0,
    stagger_s=0.1,
    stack="linux",
) -> RandomDumbbell:
    """Random dumbbells: 1..100 Mbit/s, 5..200 ms, buffer 0.25..8 BDP; half lossless, the others lose 1e-5..1e-2."""
    return RandomDumbbell(
        rate_mbps=_pair(rate_mbps),
        rtt_ms=_pair(rtt_ms),
        buffer_bdp=_pair(buffer_bdp),
        loss_probability=loss_probability,
        loss=_pair(loss),
        change_probability=change_probability,
        change_interval_s=_pair(change_interval_s),
        change_factor=change_factor,
        senders=_senders(n, senders),
        duration_s=duration_s,
        stagger_s=stagger_s,
        stack=stack,
        name="ppcc/random",
    )


def ppcc_any(*, n=None, senders=None, rate_mbps=10.0, rtt_ms=48.0, duration_s=100.0, stagger_s=0.1, stack="linux") -> Mixture:
    """One of TCP-PPCC's four scenarios at random, each as likely."""
    parts = tuple(
        _ppcc(i)(
            n=n,
            senders=senders,
            rate_mbps=rate_mbps,
            rtt_ms=rtt_ms,
            duration_s=duration_s,
            stagger_s=stagger_s,
            stack=stack,
        )
        for i in PPCC
    )
    return Mixture(parts=parts, name="ppcc/any")


def _pantheon(number: int) -> Callable[..., World]:
    rate, random, one_way_ms, queue, loss = PANTHEON[number]

    def maker(*, n=None, senders=None, duration_s=30.0, stagger_s=0.1, trace_seed=1) -> Scenario:
        trace = traces.generate("poisson", duration_s=duration_s, seed=trace_seed, rate_mbps=rate) if random else None
        return dumbbell(
            rate_mbps=None if random else rate,
            trace=trace,
            rtt_ms=2 * one_way_ms,
            buffer_packets=queue,
            loss=loss,
            senders=_senders(n, senders),
            duration_s=duration_s,
            stagger_s=stagger_s,
            name=f"pantheon/{number}",
        )

    kind = "Poisson deliveries" if random else "constant"
    maker.__doc__ = f"Pantheon's path: {rate:g} Mbit/s {kind}, {2 * one_way_ms} ms, {queue} packets, loss {loss:g}, 30 s."
    return maker


def _trace_world(
    path,
    *,
    n=None,
    senders=None,
    rtt_ms=40.0,
    buffer_packets=300,
    loss=0.0,
    duration_s=80.0,
    stagger_s=0.1,
    stack="linux",
    loop=True,
) -> Scenario:
    """A dumbbell whose bottleneck follows a trace file."""
    return dumbbell(
        trace=traces.read(path, loop=checks.boolean("loop", loop)),
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=_senders(n, senders),
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
        return from_dict(data)
    except ScenarioError as error:
        raise type(error)(f"{path}: {error}") from None


def _pair(value: object) -> object:
    """A fixed number as the interval of that number; JSON lists as tuples."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value, value
    return tuple(value) if isinstance(value, list) else value


def _without(function: Callable, *names: str) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in names])


register("dumbbell", plain_dumbbell)
register("rlbm/default", rlbm_default)
register("rlbm/incast", rlbm_incast)
register("rlbm/random", rlbm_random)
register("rlbm/thesis-code", rlbm_thesis_code)
register("rlbm/thesis-text", rlbm_thesis_text)
for _number in PPCC:
    register(f"ppcc/{_number}", _ppcc(_number))
register("ppcc/fluctuating", ppcc_fluctuating)
register("ppcc/random", ppcc_random)
register("ppcc/any", ppcc_any)
for _number in PANTHEON:
    register(f"pantheon/{_number}", _pantheon(_number))
