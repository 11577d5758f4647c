"""Arguments of `netbuf-gym suite`, in the grammar of `netbuf-gym train`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites.suite import Suite
from netbuf_gym.utils import overrides
from netbuf_gym.utils.arguments import check_boolean, check_integer, check_real
from netbuf_gym.utils.executors import LOCAL, Executor, executor
from netbuf_gym.utils.suggestions import did_you_mean

KEYS = {
    "controller": "one or a list: names (netbuf-gym list controllers), constant:ACTION, models, agents, or your own code: "
    "mine.cc, mine.py:NAME, package.module:NAME",
    "cc": "the same",
    "families": "a list of those to play in (--families lists them); default: all",
    "output": "folder of the results; default: runs/suite/NAME",
    "executor": "where worlds are played: local (this process), joblib, ray, slurm or submitit_local; default: local",
    "jobs": "groups of worlds at once, of an executor that is not local; default: one for each core",
    "threads": "that run the worlds of a group; default: one for each core, of other executors 1",
    "figures": "true or false, whether to draw; default: true",
    "against": "an earlier result.json of the same version: exit status 1 where the first controller is behind it",
    "beside": "suites of the field: a list of worlds.csv to be ranked among; default: the package's own; []: nobody",
    "tolerance": "by more than this in a family; default: 0.02",
}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Configuration of one run of a suite; fields as in `KEYS`."""

    suite: str
    controllers: tuple[str, ...]
    families: tuple[str, ...]
    output: Path
    executor: Executor
    jobs: int
    threads: int
    figures: bool
    against: Path | None
    beside: tuple[Path, ...] | None
    tolerance: float

    @property
    def command(self) -> str:
        """Command that reproduces the results."""
        words = [f"controller={_quote_values(self.controllers)}"]
        if self.families:
            words.append(f"families={_quote_values(self.families)}")
        if self.beside is not None:
            words.append(f"beside={_quote_values(tuple(map(str, self.beside)))}")
        return " ".join(["netbuf-gym suite", self.suite, *map(shlex.quote, words)])


def parse_arguments(suite: Suite, arguments: Sequence[str]) -> RunConfig:
    """Return the configuration that `KEY=VALUE` arguments describe.

    Raises:
        ConfigError: For an unknown key, one given twice, an invalid value, or no controller.
        MissingExtraError: If the executor's dependency is not installed.
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
        given[key] = overrides.read_override(argument)[1]
    if "cc" in given and "controller" in given:
        raise ConfigError("cc and controller are given; valid: one of them")
    if "cc" in given:
        given["controller"] = given.pop("cc")
    if "controller" not in given:
        raise ConfigError("missing: controller=..., e.g. controller=cubic, or controller=[PATH/model.zip,bbr]")
    against, beside = given.get("against"), given.get("beside")
    engine = executor(given.get("executor", LOCAL.name))
    cores = min(len(os.sched_getaffinity(0)), MAX_THREADS)
    return RunConfig(
        suite=suite.name,
        controllers=_parse_words("controller", given["controller"]),
        families=_parse_words("families", given["families"]) if "families" in given else (),
        output=Path(parse_word("output", given.get("output", f"runs/suite/{suite.name}"))),
        executor=engine,
        jobs=check_integer("jobs", given.get("jobs", cores), 1, 1024),
        threads=check_integer("threads", given.get("threads", cores if engine.here else 1), 1, MAX_THREADS),
        figures=check_boolean("figures", given.get("figures", True)),
        against=None if against is None else Path(parse_word("against", against)),
        beside=None if beside is None else tuple(map(Path, _parse_words("beside", beside))) if beside != [] else (),
        tolerance=check_real("tolerance", given.get("tolerance", 0.02), 0, 1e6),
    )


def _parse_words(key: str, value: Any) -> tuple[str, ...]:
    words = tuple(parse_word(key, one) for one in (value if isinstance(value, list) else [value]))
    if not words:
        raise ConfigError(f"{key} is empty; valid: at least one")
    for word in words:
        if words.count(word) > 1:
            raise ConfigError(f"{key} holds {shown(word)} twice; valid: each once")
    return words


def parse_word(key: str, value: Any) -> str:
    """Return a text, or a number as a text (a path may be one); raise ConfigError, naming the key, for anything else."""
    text = f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConfigError(f"{key} = {shown(value)}; valid: a text that is not empty")
    return text


def _quote_values(values: Sequence[str]) -> str:
    words = [overrides.quote_text(one) if set(one) & set(",[]{}:= '\"") else one for one in values]
    return words[0] if len(words) == 1 else f"[{','.join(words)}]"
