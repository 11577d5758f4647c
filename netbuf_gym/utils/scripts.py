"""Common parts of modules that are commands: arguments `key=value` after `python -m MODULE`, and the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from netbuf_gym.errors import ConfigError, NetbufError, shown


def read_key_values(argv: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Return `known` updated by the arguments `key=value`; the last of several with the same key counts.

    Raises:
        ConfigError: An argument of another form, or an unknown key.
    """
    found, others = split_arguments(argv, known)
    if others:
        raise ConfigError(f"argument {others[0]!r} is unknown; valid: {', '.join(f'{name}=' for name in known)}")
    return found


def split_arguments(argv: Sequence[str], known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return `known` updated as by `read_key_values`, and the other arguments, such as overrides of a configuration."""
    found, others = dict(known), []
    for argument in argv:
        key, equals, value = argument.partition("=")
        if equals and key in known:
            found[key] = value
        else:
            others.append(argument)
    return found, others


def parse_number(text: str) -> int | float | str:
    """Return the number in a text, or the text itself if there is none, for a check to refuse."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def check_output_path(key: str, path: str) -> Path:
    """Return the output file that an argument names, checked before the work whose results go there.

    Raises:
        ConfigError: The file's folder is not writable, or the path is a folder.
    """
    found = Path(path)
    if found.is_dir() or not os.access(found.parent, os.W_OK):
        what = "is a folder" if found.is_dir() else "its folder cannot be written"
        raise ConfigError(f"{key} = {shown(path)}: {what}; valid: a file in a folder that can be written")
    return found


def run(name: str, main: Callable[[Sequence[str]], int]) -> None:
    """Run a command with the process's arguments and exit with its return value.

    Errors of this package and of the system print one line and exit with status 2, an interruption with 130.
    """
    try:
        sys.exit(main(sys.argv[1:]))
    except (NetbufError, OSError) as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
