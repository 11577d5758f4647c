"""Configuration files of the user's own: bounded in what they stand for, and with whole numbers where whole ones are due."""

from __future__ import annotations

import io
import re
from functools import reduce
from pathlib import Path

from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from omegaconf import DictConfig, OmegaConf

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import config_reference
from netbuf_gym.utils.yaml_text import MAX_ALIASED_VALUES, read_yaml_text

WORD = re.compile(r"[\w.\[\]-]+")
"""Words of an interpolation, keys among them."""
CHARACTERS_PER_VALUE = 16
"""Characters that count as a value."""


class UserFileSource(ConfigSource):
    """Folder of files beside `conf/`, `own://FOLDER` in Hydra's search path."""

    @staticmethod
    def scheme() -> str:
        """See `ConfigSource.scheme`."""
        return "own"

    def load_config(self, config_path: str) -> ConfigResult:
        """Read a file.

        Raises:
            ConfigError: It is too large, or its aliases stand for too much.
        """
        path = Path(self.path, self._normalize_file_name(config_path))
        if not path.is_file():
            raise ConfigLoadError(f"Config not found : {path}")
        try:
            text = read_yaml_text(path)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None
        header = self._get_header_dict(text[:512])
        config = OmegaConf.load(io.StringIO(text))
        group, slash, _ = config_path.partition("/")
        package = header.get("package") or (group if slash else "_global_")
        values = OmegaConf.to_container(config, resolve=False)
        if isinstance(values, dict):
            config_reference.make_whole(values, "" if package == "_global_" else f"{package}.")
            config = OmegaConf.create(values)
        return ConfigResult(config=config, path=self.full_path(), provider=self.provider, header=header)

    def available(self) -> bool:
        """Return whether the folder exists."""
        return self.is_group("")

    def is_group(self, config_path: str) -> bool:
        """See `ConfigSource.is_group`."""
        return Path(self.path, config_path).is_dir()

    def is_config(self, config_path: str) -> bool:
        """See `ConfigSource.is_config`."""
        return Path(self.path, self._normalize_file_name(config_path)).is_file()

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """See `ConfigSource.list`."""
        found: list[str] = []
        for file in Path(self.path, config_path).iterdir():
            self._list_add_result(found, str(Path(config_path, file.name)), file.name, results_filter)
        return sorted(set(found))


def check_interpolations(config: DictConfig) -> None:
    """Raise ConfigError if the interpolations (`${key}`) of a configuration stand for too much, those within others included.

    As many values as aliases may stand for, where `CHARACTERS_PER_VALUE` characters are one.
    """
    values = OmegaConf.to_container(config, resolve=False)
    sizes: dict[tuple[str, ...], int] = {}

    def measure_key(path: tuple[str, ...]) -> int:
        if path not in sizes:
            sizes[path] = 0  # what holds itself is refused when it is resolved
            sizes[path] = measure(_select(values, path), path)
        return sizes[path]

    def measure(value: object, path: tuple[str, ...]) -> int:
        if isinstance(value, dict):
            return 1 + sum(measure(one, (*path, str(key))) for key, one in value.items())
        if isinstance(value, list):
            return 1 + sum(measure(one, (*path, str(at))) for at, one in enumerate(value))
        if not isinstance(value, str) or "${" not in value:
            return 1 + len(value) // CHARACTERS_PER_VALUE if isinstance(value, str) else 1
        return 1 + sum(measure_key(_resolve_path(word, path)) for word in WORD.findall(value.partition("${")[2]))

    written = len(str(values))
    if measure(values, ()) > written + MAX_ALIASED_VALUES:
        raise ConfigError(
            f"the configuration stands for more than {MAX_ALIASED_VALUES:,} values by its interpolations, "
            "${...}; valid: up to as many"
        )


def _resolve_path(word: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of an interpolation's key; with leading dots it is relative to the path of the value."""
    key = word.lstrip(".")
    above = len(word) - len(key)
    return (*(path[: len(path) - above] if above else ()), *key.replace("[", ".").replace("]", "").split("."))


def _select(values: object, path: tuple[str, ...]) -> object:
    """Return the value at a path of nested mappings and lists; None if there is none."""

    def step(value: object, key: str) -> object:
        if isinstance(value, list):
            return value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        return value.get(key) if isinstance(value, dict) else None

    return reduce(step, path, values)
