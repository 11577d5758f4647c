"""Program `netbuf-gym`.

Exit status: 0 done, 1 a verdict (validate: out of tolerance), 2 bad input, 3 a fault of the simulator, 130 interrupted.
Bad input is reported in one line on standard error.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any, NoReturn

from netbuf_gym.cli import (
    completion,
    export,
    jobs,
    leaderboard,
    listing,
    live,
    record,
    reproduce,
    results,
    simulate,
    suite,
    trace,
    validate,
)
from netbuf_gym.cli.common import parse_assignment
from netbuf_gym.errors import NetbufError, SimulatorFault, one_line
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.version import __version__

PROGRAM = "netbuf-gym"
COMMANDS = {
    "simulate": simulate,
    "validate": validate,
    "reproduce": reproduce,
    "suite": suite,
    "leaderboard": leaderboard,
    "results": results,
    "export": export,
    "record": record,
    "trace": trace,
    "live": live,
    "list": listing,
    "completion": completion,
}
JOBS = jobs.JOBS
WHY_OPTIONS = """Options, not KEY=VALUE as train, tune, evaluate, reproduce, suite and the like have: those compose a
configuration of settings, this does one thing to the files and names that it is given."""

WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing; messages name standard output, or a file of the run, if the error names no file."""


class Parser(argparse.ArgumentParser):
    """Argument parser that reports errors in one line; an epilog may be a function, called when help is shown."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")

    def format_help(self) -> str:
        if callable(self.epilog):
            self.epilog = self.epilog()
        return super().format_help()

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        found, left = self.parse_known_args(args, namespace)
        if isinstance(getattr(found, "words", None), list):  # settings may stand among options
            words = [word for word in left if "=" in word and not word.startswith("-")]
            left = [word for word in left if word not in words]
            found.words = [*found.words, *map(self._parse_assignment, words)]
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}{self._hint(left[0], getattr(found, 'command', None))}")
        return found

    def _parse_assignment(self, word: str) -> tuple[str, object]:
        try:
            return parse_assignment(word)
        except argparse.ArgumentTypeError as error:
            self.error(str(error))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = did_you_mean(value, map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}; {hint}".rstrip("; ")) from None

    def _hint(self, word: str, command: str | None) -> str:
        """Return a hint at the probable meaning of an unrecognised word; "" if there is none."""
        if "=" in word and not word.startswith("-"):
            return f"; {command} takes options, e.g. --set {word}" if command in ("simulate", "trace") else ""
        own = self if command is None else _find_subparser(self, command)
        options = [one for action in own._actions for one in action.option_strings]
        return f"; {did_you_mean(word.partition('=')[0], options)}".rstrip("; ")


class InterruptGuard:
    """Context that records whether SIGINT was received, since modules that are being imported may replace a KeyboardInterrupt
    by errors of their own. Where Python must ignore the exception, as in a weak reference's callback, the signal is raised
    again after `AGAIN_S` seconds.
    """

    AGAIN_S = 0.02

    def __init__(self) -> None:
        self.received = False
        self._ours = False
        self._again: threading.Timer | None = None

    def __enter__(self) -> InterruptGuard:
        main_thread = threading.current_thread() is threading.main_thread()
        self._ours = main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._ours:
            self._unraisable, sys.unraisablehook = sys.unraisablehook, self._handle_unraisable
            signal.signal(signal.SIGINT, self._receive)
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = True
        raise KeyboardInterrupt

    def _handle_unraisable(self, error: sys.UnraisableHookArgs) -> None:
        if not issubclass(error.exc_type, KeyboardInterrupt):
            self._unraisable(error)
            return
        self._again = threading.Timer(self.AGAIN_S, signal.raise_signal, [signal.SIGINT])
        self._again.daemon = True
        self._again.start()

    def __exit__(self, *exception: object) -> None:
        if self._ours:
            if self._again is not None:
                self._again.cancel()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook = self._unraisable


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    top = Parser(prog=PROGRAM, description="Reinforcement learning for network buffers and congestion windows.")
    top.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        own = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add(own)
        if not getattr(module, "INTERMIXED", False) and not getattr(module, "WORDS", False):
            own.epilog = f"{own.epilog}\n{WHY_OPTIONS}" if own.epilog else WHY_OPTIONS
    for name, text in JOBS.items():
        jobs.add(commands.add_parser(name, help=text), name)
    return top


def _find_subparser(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    return next(action.choices[command] for action in parser._actions if isinstance(action.choices, dict))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    with InterruptGuard() as interruption:
        try:
            return _run_reporting_errors(argv)
        except Exception:
            if interruption.received:  # during an import, which turned the interrupt into an error of its own
                return _print_error("interrupted", 130)
            raise


def _run_reporting_errors(argv: list[str]) -> int:
    """Run a command line, report errors in one line, and return the exit status."""
    try:
        status = _run_command(argv)
        if sys.stdout is not None:  # None if it was closed
            sys.stdout.flush()
        return status
    except SystemExit as end:  # argparse: --help, --version, or an error that is already reported
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except SimulatorFault as error:
        return _print_error(f"fault of the simulator: {error}", 3)
    except NetbufError as error:
        return _print_error(str(error), 2)
    except BrokenPipeError:  # the reader of standard output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        unnamed = "a file of the run" if argv and argv[0] in JOBS else "standard output"
        name = error.filename or (unnamed if error.errno in WRITING else None)
        return _print_error(f"{name}: {error.strerror}" if name else str(error), 2)
    except MemoryError:
        return _print_error("this does not fit into memory; valid: fewer flows, samples or worlds at a time", 2)
    except KeyboardInterrupt:
        return _print_error("interrupted", 130)


def _run_command(argv: list[str]) -> int:
    top = build_parser()
    if argv and argv[0] in JOBS:
        return jobs.run(argv[0], jobs.parse(_find_subparser(top, argv[0]), argv[1:]))
    if argv and getattr(COMMANDS.get(argv[0]), "INTERMIXED", False):
        return COMMANDS[argv[0]].run(_find_subparser(top, argv[0]).parse_intermixed_args(argv[1:]))
    arguments = top.parse_args(argv)
    return COMMANDS[arguments.command].run(arguments)


def _print_error(message: str, status: int) -> int:
    line = one_line(message).encode(errors="backslashreplace").decode()  # escapes lone surrogates
    print(f"{PROGRAM}: error: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
