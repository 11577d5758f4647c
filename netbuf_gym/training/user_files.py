"""Configuration files of the user's own, as Hydra reads them: bounded, and with whole numbers where whole ones are due."""

from __future__ import annotations

import io
from pathlib import Path

from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from omegaconf import OmegaConf

from netbuf_gym.errors import ConfigError
from netbuf_gym.training import config_reference
from netbuf_gym.utils.yaml_text import read_yaml_text


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
