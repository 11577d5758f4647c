"""Lists of worlds in a file, for evaluations over a user's own worlds."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import yaml

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.files import read_text


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Loader of plain values; aliases, by which a small file can stand for a huge one, are refused."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias")
        return super().compose_node(parent, index)


_Loader.add_implicit_resolver(  # numbers of YAML 1.2, such as 1e-3
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


def read_worlds(path: str | os.PathLike[str]) -> list[str | dict[str, Any]]:
    """Read a list of worlds from a YAML or JSON file.

    Returns:
        Each a scenario's name, a mapping of `name` and its arguments, or what `Scenario.to_dict` gave.

    Raises:
        ConfigError: No such file, a file that is neither, no list, an empty one, or an entry of another kind.
    """
    valid = "valid: a YAML or JSON list of names, mappings with a name, or Scenario.to_dict()"
    try:
        text = read_text(path)
    except OSError as error:
        raise ConfigError(f"worlds = {quote(str(path))} cannot be read: {error.strerror or error}; {valid}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"worlds = {quote(str(path))} is not text; {valid}") from None
    try:
        worlds = json.loads(text) if text.lstrip()[:1] == "[" else yaml.load(text, _Loader)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        said = " ".join(str(error).split()) or "nested too deeply"
        raise ConfigError(f"worlds = {quote(str(path))} cannot be parsed: {said[:200]}; {valid}") from None
    if not isinstance(worlds, list) or not worlds:
        raise ConfigError(f"worlds = {quote(str(path))} holds {quote(worlds)}; {valid}")
    for k, one in enumerate(worlds):
        if not isinstance(one, (str, dict)):
            raise ConfigError(f"worlds = {quote(str(path))}: worlds[{k}] = {quote(one)}; {valid}")
    return worlds
