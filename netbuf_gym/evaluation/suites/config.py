"""Arguments of `netbuf-gym suite`, in the grammar of `netbuf-gym train`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites.suite import Suite
from netbuf_gym.utils import overrides
from netbuf_gym.utils.arguments import check_boolean, check_integer, check_real, check_text, check_texts
from netbuf_gym.utils.executors import LOCAL, Executor, get_executor

KEYS = {
    "controller": "one or a list: names (netbuf-gym list controllers), best (of the task, by kept results), constant:ACTION, "
    "models, agents, or your own code: mine.cc, mine.py:NAME, package.module:NAME",
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
    given = overrides.read_overrides(arguments, KEYS)
    if "cc" in given and "controller" in given:
        raise ConfigError("cc and controller are given; valid: one of them")
    if "cc" in given:
        given["controller"] = given.pop("cc")
    if "controller" not in given:
        raise ConfigError("missing: controller=..., e.g. controller=cubic, or controller=[PATH/model.zip,bbr]")
    against, beside = given.get("against"), given.get("beside")
    engine = get_executor(given.get("executor", LOCAL.name))
    cores = min(len(os.sched_getaffinity(0)), MAX_THREADS)
    return RunConfig(
        suite=suite.name,
        controllers=check_texts("controller", given["controller"]),
        families=check_texts("families", given["families"]) if "families" in given else (),
        output=Path(check_text("output", given.get("output", f"runs/suite/{suite.name}"))),
        executor=engine,
        jobs=check_integer("jobs", given.get("jobs", cores), 1, 1024),
        threads=check_integer("threads", given.get("threads", cores if engine.here else 1), 1, MAX_THREADS),
        figures=check_boolean("figures", given.get("figures", True)),
        against=None if against is None else Path(check_text("against", against)),
        beside=None if beside is None else tuple(map(Path, check_texts("beside", beside))) if beside != [] else (),
        tolerance=check_real("tolerance", given.get("tolerance", 0.02), 0, 1e6),
    )


def _quote_values(values: Sequence[str]) -> str:
    words = [overrides.quote_text(one) if set(one) & set(",[]{}:= '\"") else one for one in values]
    return words[0] if len(words) == 1 else f"[{','.join(words)}]"
