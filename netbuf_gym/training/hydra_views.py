"""Hydra's views of a configuration (`--cfg`, `--info`, `--hydra-help`), and the expansion of a sweep into jobs."""

from __future__ import annotations

import argparse
import io
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from hydra import compose
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, QuotedString, Transformer
from omegaconf import DictConfig, OmegaConf, open_dict

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import config_errors, config_reference
from netbuf_gym.training.config import Source, compose_config, normalise_overrides, open_hydra
from netbuf_gym.utils.overrides import quote_text

SWEEP_DIR, SWEEP_SUBDIR, MODE = "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.mode"


@dataclass(frozen=True)
class SweepJob:
    """One job of a sweep.

    Attributes:
        overrides: All overrides of the job, including its folder.
        chosen: Overrides that differ between the jobs.
        folder: Output folder; None: as the overrides say.
    """

    overrides: list[str]
    chosen: list[str]
    folder: Path | None


def render_config(job: str, overrides: Sequence[str], source: Source, kind: str, package: str | None, resolve: bool) -> str:
    """Return the composed configuration as YAML, as Hydra's `--cfg` prints it.

    Raises:
        ConfigError: As `load` does; or there is no such package.
    """
    with _open_checked_hydra(job, overrides, source) as (hydra, words):
        try:
            return _capture_stdout(lambda: hydra.show_cfg(source.config_name or job, words, kind, package, resolve))
        except SystemExit:  # Hydra exits for a null package, too
            if _is_null(compose(source.config_name or job, overrides=words, return_hydra_config=True), package or ""):
                return "null\n"
            raise ConfigError(f"--package {package}: there is none of this name in the configuration") from None


def render_info(job: str, overrides: Sequence[str], source: Source, what: str) -> str:
    """Return the output of Hydra's `--info`: defaults, search path, plugins."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    with _open_checked_hydra(job, overrides, source) as (hydra, words):
        try:
            return _capture_stdout(lambda: hydra.show_info(what, source.config_name or job, words))
        finally:
            root.handlers[:], root.level = handlers, level


def render_hydra_help(job: str, source: Source) -> str:
    """Return Hydra's own help text."""
    with _open_checked_hydra(job, [], source) as (hydra, words):
        return _capture_stdout(lambda: hydra.hydra_help(job, get_args_parser(), argparse.Namespace(overrides=words)))


def expand_jobs(job: str, overrides: Sequence[str], source: Source) -> tuple[Path | None, list[SweepJob]]:
    """Return a sweep's folder (None: set by each job) and its jobs, in the order of Hydra's basic sweeper: last key fastest.

    Each job has a folder of its own below one: `run_dir=DIR`, else Hydra's `hydra.sweep.dir=DIR`, else a new one.

    Raises:
        ConfigError: An override that cannot be parsed, or a sweep without end.
    """
    hydras = [one for one in overrides if one.startswith((SWEEP_DIR, SWEEP_SUBDIR))]
    own = [one for one in overrides if one not in hydras and not one.startswith(f"{MODE}=")]
    run_dir = next((one for one in own if one.startswith("run_dir=") and not config_errors.is_sweep(one[8:])), None)
    if run_dir is not None:
        own.remove(run_dir)
        hydras = [*(one for one in hydras if not one.startswith(SWEEP_DIR)), f"{SWEEP_DIR}={run_dir[8:]}"]
    placed = any(one.startswith(("run_dir=", "resume=")) for one in own)
    made: list[SweepJob] = []
    try:
        with open_hydra(job, source) as hydra:
            parser = OverridesParser.create(config_loader=hydra.config_loader)
            several = [_expand_sweep(override, parser, source) for override in own]
            folder = _find_sweep_folder(job, hydras, source)
            for number, words in enumerate(itertools.product(*several)):
                chosen = [word for word, others in zip(words, several, strict=True) if len(others) > 1]
                for word in words:
                    config_errors.check_override(word, job, source.folders)
                if placed:
                    made.append(SweepJob(list(words), chosen, None))
                    continue
                own_folder = folder / _format_subfolder(job, normalise_overrides(words, job, source), hydras, source, number)
                made.append(SweepJob([*words, f"run_dir={quote_text(str(own_folder))}"], chosen, own_folder))
    except Exception as error:  # any error of Hydra's parts
        raise config_errors.explain_error(error, own, job) from None
    if not made:
        raise ConfigError(f"{' '.join(own)}: comes to no job; valid: at least one value of each")
    return (None if placed else folder), made


def _expand_sweep(override: str, parser: OverridesParser, source: Source) -> list[str]:
    """Expand an override with several values into one override for each."""
    if not config_errors.is_sweep(override.partition("=")[2]):
        return [override]
    (parsed,) = parser.parse_overrides([override])
    if not parsed.is_sweep_override():
        return [override]
    if isinstance(glob := parsed.value(), Glob):
        return _expand_glob(override, parsed.key_or_group, glob, source)
    if parsed.key_or_group == "scenario":  # Hydra would escape the name
        values = parsed.sweep_iterator(transformer=Transformer.identity)
        return [f"scenario={value.text if isinstance(value, QuotedString) else value}" for value in values]
    return [word for (word,) in BasicSweeper.split_arguments([parsed], None)[0]]


def _expand_glob(override: str, key: str, glob: Glob, source: Source) -> list[str]:
    found = glob.filter(list(config_reference.read_choices(key, *source.folders)))
    if not found:
        raise ConfigError(f"{override}: matches no choice of {key}")
    return [f"{key}={choice}" for choice in found]


def _find_sweep_folder(job: str, hydras: Sequence[str], source: Source) -> Path:
    """Return the folder of a sweep; a new one unless the overrides set it."""
    settings = [one for one in hydras if one.startswith(SWEEP_DIR)]
    config = compose(source.config_name or job, overrides=settings, return_hydra_config=True)
    folder = Path(str(config.hydra.sweep.dir))
    others = (folder.with_name(f"{folder.name}-{k}") for k in itertools.count(1))
    return folder if settings or not folder.exists() else next(other for other in others if not other.exists())


def _format_subfolder(job: str, words: Sequence[str], hydras: Sequence[str], source: Source, number: int) -> str:
    settings = [one for one in hydras if one.startswith(SWEEP_SUBDIR)]
    if not settings:
        return str(number)
    config = compose(source.config_name or job, overrides=[*words, *settings], return_hydra_config=True)
    with open_dict(config):
        config.hydra.job.num, config.hydra.job.id = number, str(number)
    before = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(config)
    try:
        return str(config.hydra.sweep.subdir)
    finally:
        HydraConfig.instance().cfg = before


@contextmanager
def _open_checked_hydra(job: str, overrides: Sequence[str], source: Source) -> Iterator[tuple[Hydra, list[str]]]:
    """Yield Hydra and the overrides in its grammar, checked first; settings of Hydra's own are passed through."""
    own = [one for one in overrides if not one.startswith(("hydra.", "hydra/", "+hydra", "~hydra"))]
    compose_config(job, own, source)
    try:
        with open_hydra(job, source) as hydra:
            yield hydra, [*normalise_overrides(own, job, source), *(one for one in overrides if one not in own)]
    except ConfigError:
        raise
    except Exception as error:
        raise config_errors.explain_error(error, list(overrides), job) from None


def _is_null(config: DictConfig, name: str) -> bool:
    above, _, last = name.rpartition(".")
    part = OmegaConf.select(config, above) if above else config
    return OmegaConf.is_dict(part) and last in part and part[last] is None


def _capture_stdout(show: Callable[[], object]) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):  # errors are raised here
        show()
    return out.getvalue()
