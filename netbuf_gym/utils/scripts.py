"""What modules that are commands have in common: words `key=value` after `python -m MODULE`, and how such a command ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from netbuf_gym.errors import ConfigError, NetbufError, shown


def given(argv: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """What is known, with what words `key=value` say instead; of two words with one key the last one counts.

    Raises:
        ConfigError: a word of another form, or an unknown key.
    """
    found, others = divided(argv, known)
    if others:
        raise ConfigError(f"argument {others[0]!r} is unknown; valid: {', '.join(f'{name}=' for name in known)}")
    return found


def divided(argv: Sequence[str], known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """What is known, as `given`, and the other words, which are somebody else's: overrides of a configuration."""
    found, others = dict(known), []
    for argument in argv:
        key, equals, value = argument.partition("=")
        if equals and key in known:
            found[key] = value
        else:
            others.append(argument)
    return found, others


def number(text: str) -> int | float | str:
    """A number as it is given, or what is none as it stands, for a check to refuse."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def to_write(key: str, path: str) -> Path:
    """The file that an argument names, before the work whose results go there.

    Raises:
        ConfigError: its folder cannot be written, or it is a folder itself.
    """
    found = Path(path)
    if found.is_dir() or not os.access(found.parent, os.W_OK):
        what = "is a folder" if found.is_dir() else "its folder cannot be written"
        raise ConfigError(f"{key} = {shown(path)}: {what}; valid: a file in a folder that can be written")
    return found


def run(name: str, main: Callable[[Sequence[str]], int]) -> None:
    """Leaves the interpreter with what a command returns for the words that it was given.

    What it refuses or cannot do is a line and status 2, an interruption a line and 130.
    """
    try:
        sys.exit(main(sys.argv[1:]))
    except (NetbufError, OSError) as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
