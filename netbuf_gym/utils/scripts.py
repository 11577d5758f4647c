"""Common parts of modules that are commands: arguments `key=value` after `python -m MODULE`, and the exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from netbuf_gym.errors import NetbufError


def split_arguments(argv: Sequence[str], known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return `known` updated by the arguments `key=value`, the last of several counting, and the other arguments."""
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
