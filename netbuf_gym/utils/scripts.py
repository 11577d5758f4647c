"""Common parts of modules that are commands: arguments `key=value` after `python -m MODULE`, and the exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from netbuf_gym.errors import NetbufError
from netbuf_gym.utils.overrides import select_overrides, split_override, write_whole


def split_arguments(argv: Sequence[str], known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return `known` updated by the unread texts of `key=value`, the last of several counting, and the other arguments.

    Where the text in `known` is an integer, floats that are whole (1e1) are written as integers.
    """
    own, others = select_overrides(argv, known)
    given = {key: write_whole(text) if known[key].isdecimal() else text for key, text in map(split_override, own)}
    return {**known, **given}, others


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
