"""The command `netbuf-gym`.

Exit status: 0 done, 1 a verdict (validate: out of tolerance), 2 bad input, 3 a fault of the simulator, 130 interrupted.
Bad input is answered with one line on standard error.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from netbuf_gym.commands import listing, reproduce, simulate, trace, validate
from netbuf_gym.errors import MissingExtraError, NetbufError, SimulatorFault
from netbuf_gym.version import __version__

PROGRAM = "netbuf-gym"
COMMANDS = {"simulate": simulate, "validate": validate, "reproduce": reproduce, "trace": trace, "list": listing}
JOBS = {
    "train": "train an agent (arguments are Hydra overrides, e.g. env=congestion_window algo=ppo seed=3)",
    "evaluate": "evaluate agents beside baselines (Hydra overrides)",
    "demo": "train for two minutes, evaluate, draw",
}

WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What goes wrong in writing; files are named by who writes them."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = Parser(prog=PROGRAM, description="Reinforcement learning for network buffers and congestion windows.")
    top.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        module.add(commands.add_parser(name, help=module.HELP, description=module.HELP))
    for name, text in JOBS.items():
        commands.add_parser(name, help=text, add_help=False)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(argv)
        if sys.stdout is not None:  # it is None where it was closed
            sys.stdout.flush()
        return status
    except SystemExit as end:  # argparse: --help, --version, or a mistake that it has reported
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except SimulatorFault as error:
        return _complain(f"fault of the simulator: {error}", 3)
    except NetbufError as error:
        return _complain(str(error), 2)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        unnamed = "a file of the run" if argv and argv[0] in JOBS else "standard output"
        name = error.filename or (unnamed if error.errno in WRITING else None)
        return _complain(f"{name}: {error.strerror}" if name else str(error), 2)
    except MemoryError:
        return _complain("this does not fit into memory; valid: fewer flows, samples or worlds at a time", 2)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)


def _run(argv: list[str]) -> int:
    if argv and argv[0] in JOBS:
        return job(argv[0])(argv[1:])
    arguments = parser().parse_args(argv)
    return COMMANDS[arguments.command].run(arguments)


def job(name: str) -> Callable[[list[str]], int]:
    """The `main` of a job in `netbuf_gym.zoo`, imported when it is asked for.

    Raises:
        MissingExtraError: What it needs is not installed.
    """
    try:
        return importlib.import_module(f"netbuf_gym.zoo.{name}").main
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == "netbuf_gym":
            raise
        raise MissingExtraError(f"{PROGRAM} {name}", "train", error.name) from None


def _complain(message: str, status: int) -> int:
    line = " ".join(message.split())
    print(f"{PROGRAM}: error: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
