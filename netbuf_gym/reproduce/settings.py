"""What a campaign runs: schemes, congestion controls, sizes, loads, seeds; from the command line, checked."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from netbuf_gym import overrides
from netbuf_gym.arguments import choice, real, whole
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.nearest import did_you_mean
from netbuf_gym.scenarios import AGENT, SCHEMES, Scenario, congestion_controls, get
from netbuf_gym.tasks.queue_threshold import QUEUE_PACKETS, QueueThreshold
from netbuf_gym.zoo import library
from netbuf_gym.zoo.schema import FIRST_EVALUATION_SEED

COMMAND = "netbuf-gym reproduce rlbm"
TRAFFIC = {"thesis-code": "rlbm/thesis-code", "thesis-text": "rlbm/thesis-text", "default": "rlbm/default"}
"""The traffic recipes, each with its scenario and with the environment's recipe of the same name."""

WITHOUT_LEARNING = ("naive", "sophisticated", "dt", "abm")
RANDOM, RANDOM_NO_BETA, LEARNED = "random", "random_no_beta", "rlbm"
CONTROLLED = (RANDOM, RANDOM_NO_BETA, LEARNED)
"""Schemes that decide interval by interval."""
NAMES = (*WITHOUT_LEARNING, *CONTROLLED, *(name for name in SCHEMES if name not in (*WITHOUT_LEARNING, AGENT)))
DEFAULT_SCHEMES = (*WITHOUT_LEARNING, RANDOM)

LOADS = tuple(k / 10 for k in range(1, 9))
INTERVALS_S = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
SWEPT_SIZES = (100, 500, 1000)
"""The thesis' interval sweep: CUBIC and these sizes only."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        traffic: One of `TRAFFIC`.
        schemes, ccs, sizes, loads: The grid; sizes are packets a queue, half of the shared buffer.
        seeds, first_seed: How many runs a cell has, and the first one's seed.
        duration_s: Of a run.
        interval_s: Between decisions of the schemes that make some.
        intervals: The same for the interval sweep; empty: none.
        agent: File of the learned agent, or its run directory; "" without one.
    """

    traffic: str = "thesis-code"
    schemes: tuple[str, ...] = DEFAULT_SCHEMES
    ccs: tuple[str, ...] = ("cubic", "newreno")
    sizes: tuple[int, ...] = QUEUE_PACKETS
    loads: tuple[float, ...] = LOADS
    seeds: int = 10
    first_seed: int = FIRST_EVALUATION_SEED
    duration_s: float = 60.0
    interval_s: float = 0.1
    intervals: tuple[float, ...] = INTERVALS_S
    agent: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        choice("traffic", self.traffic, TRAFFIC)
        put(self, "schemes", _unique("schemes", [choice("schemes", name, NAMES) for name in self.schemes]))
        valid = sorted(set(congestion_controls("linux")) - {AGENT})
        put(self, "ccs", _unique("ccs", [choice("ccs", name, valid) for name in self.ccs]))
        put(self, "sizes", _unique("sizes", [whole("sizes", size, 1, 1_000_000) for size in self.sizes]))
        put(self, "loads", _unique("loads", [real("loads", load, 0, 10, low_open=True) for load in self.loads]))
        put(self, "seeds", whole("seeds", self.seeds, 1, 100_000))
        put(self, "first_seed", whole("first_seed", self.first_seed, 0, 2**62))
        put(self, "duration_s", real("duration_s", self.duration_s, 0.1, 3600))
        put(self, "interval_s", real("interval_s", self.interval_s, 0.01, 10))
        put(self, "intervals", tuple(real("intervals", value, 0.01, 10) for value in self.intervals))
        _unique("intervals", self.intervals, least=0)
        if LEARNED in self.schemes and not self.agent:
            raise ConfigError(f"schemes holds {LEARNED!r}, but there is no agent; valid: agent=FILE, a model or run directory")
        if self.agent and LEARNED not in self.schemes:
            raise ConfigError(f"agent = {self.agent!r}, but schemes has no {LEARNED!r}; valid: both or neither")

    def scenario(self, cc: str, size: int, load: float) -> Scenario:
        """The world of a cell, under the naive scheme."""
        return get(TRAFFIC[self.traffic], cc=cc, queue_packets=size, load=load, duration_s=self.duration_s)

    def seed_list(self) -> list[int]:
        """The seeds of every cell."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; equal for campaigns that give equal results, but for the version."""
        return json.loads(json.dumps(asdict(self)))

    def digest(self) -> str:
        """Eight characters that tell campaigns apart."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:8]

    def command(self) -> str:
        """The shortest command line that means this."""
        normal, words = _defaults(self), [COMMAND]
        for key, value in self.to_dict().items():
            if value != normal[key]:
                text = f"[{','.join(map(_shortest, value))}]" if isinstance(value, list) else _shortest(value)
                words.append(shlex.quote(f"{key}={text}") if not text.startswith("[") else f"{key}={text}")
        return " ".join(words)


@dataclass(frozen=True, kw_only=True)
class Order:
    """The settings, and what does not change the results.

    Attributes:
        settings: What to run.
        output: The campaign's folder.
        jobs: Threads.
        figures: Whether to draw.
    """

    settings: Settings
    output: Path
    jobs: int
    figures: bool


LISTS = {"schemes": str, "ccs": str, "sizes": int, "loads": float, "intervals": float}
VALUES = {"traffic": str, "seeds": int, "first_seed": int, "duration_s": float, "interval_s": float, "agent": str}
OWN = {"output": str, "jobs": int, "figures": bool}
KEYS = (*LISTS, *VALUES, *OWN)


def parse(arguments: Sequence[str]) -> Order:
    """The order that `key=value` arguments give, in Hydra's grammar (`netbuf_gym.overrides`).

    Raises:
        ConfigError: An unknown key, a key given twice, a value that is no such thing or out of range.
        CheckpointError: An agent that is neither a file nor a name.
    """
    given: dict[str, Any] = {}
    for argument in arguments:
        key = argument.partition("=")[0].strip()
        if "=" not in argument or key not in KEYS:
            valid = [f"{one}=" for one in KEYS]
            hint = did_you_mean(f"{key}=", valid)
            raise ConfigError(f"argument {shown(argument)} is unknown; {hint}valid: {', '.join(valid)}")
        if key in given:
            raise ConfigError(f"{key} is given twice; valid: once")
        value = overrides.read(argument)[1]
        if isinstance(value, str) and "\0" in value:
            raise ConfigError(f"{key} = {shown(value)} holds a null character; valid: text without one")
        given[key] = _list(key, value) if key in LISTS else _value(VALUES.get(key, OWN.get(key)), value)
    own = {key: given.pop(key) for key in OWN if key in given}
    agent = given.get("agent")
    if given.get("schemes") == ("all",):
        given["schemes"] = NAMES if agent or bundled_agent() else tuple(name for name in NAMES if name != LEARNED)
    elif agent and "schemes" not in given:
        given["schemes"] = (*DEFAULT_SCHEMES, LEARNED)
    if LEARNED in given.get("schemes", ()) and not agent and (found := bundled_agent()):
        given["agent"] = found
    if given.get("agent") and (found := library.path_of(given["agent"], "agent")) != Path(given["agent"]):
        given["agent"] = _from_here(found)
    settings = Settings(**given)
    output = own.get("output") or f"runs/reproduce/rlbm-{settings.traffic}-{settings.digest()}"
    jobs = whole("jobs", own["jobs"], 1, 1024) if own.get("jobs") is not None else len(os.sched_getaffinity(0))
    figures = own.get("figures", True)
    if not isinstance(figures, bool):
        raise ConfigError(f"figures = {shown(figures)} is not a truth value; valid: true, false")
    return Order(settings=settings, output=Path(output), jobs=jobs, figures=figures)


def bundled_agent() -> str:
    """The trained agent that comes with the package; "" where there is none."""
    name = f"{QueueThreshold.name}/ppo"
    return _from_here(library.path_of(name)) if name in library.names() else ""


def _from_here(path: Path) -> str:
    """A path as it is written in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _list(key: str, value: Any) -> tuple:
    """A list's values; one alone counts as a list of it."""
    items = value if isinstance(value, list) else [value]
    if "" in items or None in items:
        raise ConfigError(f"{key} = {shown(value)} holds an empty value; valid: e.g. {key}=[a,b]")
    return tuple(_value(LISTS[key], item) for item in items)


def _value(wanted: type, value: Any) -> Any:
    """A whole number as a real one where that is wanted, a number as the text that a path may be; else the value, which the
    checks refuse by name."""
    if wanted is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if wanted is str:
        return "" if value is None else value if isinstance(value, str) else _shortest(value)
    return value


def _unique(key: str, values: Sequence, least: int = 1) -> tuple:
    values = tuple(values)
    if len(values) < least:
        raise ConfigError(f"{key} is empty; valid: at least one")
    for value in values:
        if values.count(value) > 1:
            raise ConfigError(f"{key} holds {shown(value)} twice; valid: each once")
    return values


def _defaults(settings: Settings) -> dict[str, Any]:
    schemes = (*DEFAULT_SCHEMES, LEARNED) if settings.agent else DEFAULT_SCHEMES
    return Settings(schemes=schemes, agent=settings.agent).to_dict() | {"agent": ""}


def _shortest(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
