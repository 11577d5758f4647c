"""Hydra's views of a configuration (`--cfg`, `--info`, `--hydra-help`), printed by Hydra's own command line."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import hydra
from omegaconf import DictConfig, OmegaConf

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import config_errors
from netbuf_gym.training.config import HYDRA_VERSION, Source, compose_config, isolate_hydra, normalise_overrides, open_hydra
from netbuf_gym.training.schema import CONF

FULL_ERROR = "HYDRA_FULL_ERROR"
"""Environment variable by which Hydra raises errors in place of printing them."""


def format_view(job: str, overrides: Sequence[str], source: Source, options: Sequence[str], package: str | None = None) -> str:
    """Return the output of Hydra's command line with options of its own.

    Args:
        job: Name of the job.
        overrides: Overrides of the job, and of Hydra's own settings.
        source: Source of the configuration.
        options: Options that select a view, e.g. `--cfg job`.
        package: Part of the configuration that `--cfg` shows; None: all of it.

    Raises:
        ConfigError: As `load` does; or there is no such package.
    """
    own = [one for one in overrides if not one.startswith(("hydra.", "hydra/", "+hydra", "~hydra"))]
    _, whole = compose_config(job, own, source)
    if package is not None and _is_null(whole, package):
        return "null\n"  # which Hydra takes for missing
    with open_hydra(job, source):
        words = [*normalise_overrides(own, job, source), *(one for one in overrides if one not in own)]
    shown = [] if package is None else ["--package", package]
    out = io.StringIO()
    with config_errors.explain_errors(overrides, job), isolate_hydra(source), _isolate_process([*options, *shown, *words]):
        try:
            with redirect_stdout(out), redirect_stderr(io.StringIO()):  # errors are raised here
                hydra.main(str(CONF), source.config_name or job, HYDRA_VERSION)(lambda config: None)()
        except SystemExit as end:
            if end.code:
                raise ConfigError(f"--package {package}: there is none of this name in the configuration") from None
    return out.getvalue()


@contextmanager
def _isolate_process(words: Sequence[str]) -> Iterator[None]:
    """Give Hydra the words of its command line, have it raise its errors, and restore the process's logging afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    argv, sys.argv = sys.argv, ["netbuf-gym", *words]
    full_error = os.environ.get(FULL_ERROR)
    os.environ[FULL_ERROR] = "1"
    try:
        yield
    finally:
        root.handlers[:], root.level, sys.argv = handlers, level, argv
        os.environ.pop(FULL_ERROR)
        if full_error is not None:
            os.environ[FULL_ERROR] = full_error


def _is_null(config: DictConfig, name: str) -> bool:
    above, _, last = name.rpartition(".")
    part = OmegaConf.select(config, above) if above else config
    return OmegaConf.is_dict(part) and last in part and part[last] is None
