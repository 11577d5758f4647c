"""Bounds of YAML that users hand in, checked before anything expands it."""

from __future__ import annotations

import os
from pathlib import Path

from netbuf_gym.errors import ConfigError

MAX_YAML_BYTES = 1 << 24
"""Maximum size of a file."""
MAX_ALIASED_VALUES = 10_000
"""Maximum number of values that the aliases of a text stand for, those of aliases within aliases included."""


def read_yaml_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a YAML file.

    Raises:
        OSError: The file cannot be read.
        ConfigError: It is too large, or its aliases stand for too much.
        UnicodeDecodeError: It is no UTF-8.
    """
    with Path(path).open("rb") as file:
        raw = file.read(MAX_YAML_BYTES + 1)
    if len(raw) > MAX_YAML_BYTES:
        raise ConfigError(f"it has more than {MAX_YAML_BYTES:,} bytes; valid: up to as many")
    text = raw.decode()
    check_aliases(text)
    return text


def check_aliases(text: str, name: str = "it") -> None:
    """Raise ConfigError, with this name of the text, if the aliases of a YAML text stand for more than
    `MAX_ALIASED_VALUES` values, or for what holds them.

    A text of a few lines, each an alias of the line before ten times over, stands for billions of values. Text that is no YAML
    passes, since whatever reads it says so.
    """
    if "&" not in text or "*" not in text:
        return
    import yaml

    sizes: dict[str, int] = {}
    open_collections: list[tuple[str | None, int]] = []
    written = total = 0
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                if any(anchor == event.anchor for anchor, _ in open_collections):
                    raise ConfigError(f"{name} holds itself, by its alias *{event.anchor}; valid: values that have an end")
                total += sizes.get(event.anchor, 0)
                if total - written > MAX_ALIASED_VALUES:
                    most = f"more than {MAX_ALIASED_VALUES:,} values"
                    raise ConfigError(f"{name} stands for {most} by its aliases; valid: up to as many, or no aliases")
            elif isinstance(event, yaml.NodeEvent):
                written, total = written + 1, total + 1
                if isinstance(event, yaml.CollectionStartEvent):
                    open_collections.append((event.anchor, total - 1))
                elif event.anchor is not None:
                    sizes[event.anchor] = 1
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before = open_collections.pop()
                if anchor is not None:
                    sizes[anchor] = total - before
    except yaml.YAMLError:
        return
