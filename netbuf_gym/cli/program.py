"""Program `netbuf-gym`.

Exit status: 0 done, 1 a verdict (validate: out of tolerance), 2 bad input, 3 a fault of the simulator, 130 interrupted.
Bad input is reported in one line on standard error.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any, NoReturn

from netbuf_gym.errors import NetbufError, SimulatorFault, escape_surrogates, one_line, quote
from netbuf_gym.utils import extensions
from netbuf_gym.utils.interrupts import ExitOnInterrupt
from netbuf_gym.utils.suggestions import did_you_mean

PROGRAM = "netbuf-gym"
JOBS = {
    "train": "train an agent",
    "tune": "search the hyperparameters of a learning algorithm, or the parameters of a controller",
    "evaluate": "evaluate agents and baselines",
    "demo": "train for two minutes, evaluate and plot",
}
"""Commands of `netbuf_gym.cli.jobs`, with their help."""
COMMANDS = {
    "simulate": "run a scenario without an agent",
    "validate": "compare the simulator with reference measurements, or with the Linux kernel",
    "reproduce": "repeat a study of the checkout, e.g. the experiments of a paper, and plot its figures",
    "suite": "evaluate controllers on a fixed set of worlds: tables, ranks, plots, results",
    "leaderboard": "submit agents, show the ranking of all tasks, check it",
    "results": "check the kept results by replay, update stale ones, write the pages that show them",
    "compile": "turn a trained sender into integers, which the simulator and the kernel run, and say how far they are from it",
    "install": "install a trained sender as a congestion control of this machine's kernel, for any program to use",
    "uninstall": "remove a congestion control that was installed",
    "status": "show installed congestion controls: their sockets, decisions, windows, and the time that a decision takes",
    "top": "show the same again and again, until Ctrl-C",
    "export": "export an agent as a folder for a model hub, as ONNX, or for RL Zoo",
    "record": "record episodes of a controller as a Minari dataset",
    "trace": "generate, show, plot and convert capacity traces and flow lists",
    "live": "tune the buffers of this host, run agents on its kernel, check its requirements",
    "list": "list scenarios, controllers, agents, rewards and whatever else has a name",
    "completion": "print the completion script of a shell",
}
"""Commands with a module of their name, with their help."""

WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing. Where the error names no file, the message names standard output, or a file of the run."""


class Parser(argparse.ArgumentParser):
    """Argument parser with one-line errors.

    Attributes:
        make_epilog: Function that makes the epilog when help is shown; None: `epilog` is a text.
        find_meant: Function that returns what unrecognised words stand for, as it is to be written, or "".
        commands: Parsers of the commands, by name.
    """

    make_epilog: Callable[[], str] | None = None
    find_meant: Callable[[Sequence[str], argparse.Namespace], str] | None = None
    commands: Mapping[str, Parser] = {}

    def error(self, message: str) -> NoReturn:
        """Print the message in one line and exit with status 2."""
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")

    def format_help(self) -> str:
        """Return the help text."""
        if self.make_epilog is not None:
            self.epilog = self.make_epilog()
        return super().format_help()

    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """Parse arguments. `settings`, the KEY=VALUE words of a command that takes such, may stand among its options."""
        found, left = self.parse_known_args(args, namespace)
        if isinstance(getattr(found, "settings", None), list):
            found.settings += [word for word in left if not word.startswith("-")]
            left = [word for word in left if word.startswith("-")]
        if left:
            own = self.commands.get(getattr(found, "command", None) or "", self)
            own.error(f"unrecognized arguments: {' '.join(left)}{own._hint(left, found)}")
        return found

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a help, a version or an error; unlike argparse, raise OSError if it cannot be written."""
        file = sys.stderr if file is None else file
        if message and file is not None:  # None if it was closed
            try:
                file.write(message)
                file.flush()
            except OSError as error:
                raise OSError(error.errno, error.strerror, "standard output") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = did_you_mean(value, map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}; {hint}".rstrip("; ")) from None

    def _hint(self, words: Sequence[str], found: argparse.Namespace) -> str:
        """Return a hint at the probable meaning of unrecognised words; "" if there is none."""
        if self.find_meant is not None and (meant := self.find_meant(words, found)):
            return f"; did you mean {meant!r}?"
        options = [one for action in self._actions for one in action.option_strings]
        return f"; {did_you_mean(words[0].partition('=')[0], options)}".rstrip("; ")


class PrintVersion(argparse.Action):
    """Option that prints the version and exits; the package's metadata is read only then."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *given: Any) -> NoReturn:
        from netbuf_gym.version import __version__

        parser._print_message(f"{PROGRAM} {__version__}\n", sys.stdout)
        parser.exit()


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


def build_parser(commands: Collection[str] | None = None) -> Parser:
    """Build the parser of the program.

    Args:
        commands: Commands whose arguments are added, which imports their modules; None: all.
    """
    top = Parser(prog=PROGRAM, description="Reinforcement learning for network buffers and congestion windows.")
    top.add_argument(
        "--version",
        action=PrintVersion,
        nargs=0,
        dest=argparse.SUPPRESS,
        default=argparse.SUPPRESS,
        help="show program's version number and exit",
    )
    parsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    top.commands = {name: add_verb(parsers, name, text) for name, text in (JOBS | COMMANDS).items()}
    for name in top.commands if commands is None else top.commands.keys() & set(commands):
        own = (name,) if name in JOBS else ()
        import_command(name).add(top.commands[name], *own)
    return top


def add_verb(verbs: Any, name: str, text: str, **more: Any) -> Any:
    """Add and return a command's or verb's parser; `text` is its help and, as a sentence, its description."""
    return verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", **more)


def import_command(name: str) -> ModuleType:
    """Import the module of a command, and before it the extensions that may add to what it lists."""
    with ExitOnInterrupt():
        extensions.load()
        return importlib.import_module(f"netbuf_gym.cli.{'jobs' if name in JOBS else name}")


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
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # as standard error: text that it cannot encode ends no command
        try:
            status = _run_command(argv)
        except SystemExit as end:  # argparse: --help, --version, or an error that is already reported
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 2
        write_output()
        return status
    except SimulatorFault as error:
        return _print_error(f"fault of the simulator: {error}", 3)
    except NetbufError as error:
        return _print_error(str(error), 2)
    except BrokenPipeError:  # the reader of standard output has gone
        _drop_output()
        return 141
    except OSError as error:
        _drop_output()
        unnamed = "a file of the run" if argv and argv[0] in JOBS else "standard output"
        name = error.filename or (unnamed if error.errno in WRITING else None)
        return _print_error(f"{name}: {error.strerror}" if name else str(error), 2)
    except UnicodeEncodeError as error:
        text = quote(error.object[error.start : error.end])
        return _print_error(f"{text} cannot be written as {error.encoding}; valid: names without it", 2)
    except MemoryError:
        return _print_error("this does not fit into memory; valid: fewer flows, samples or worlds at a time", 2)
    except KeyboardInterrupt:
        return _print_error("interrupted", 130)


def write_output(text: str = "") -> None:
    """Write a text to standard output, and all that was printed before; an error names it."""
    try:
        if sys.stdout is not None:  # None if it was closed
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def _drop_output() -> None:
    """Flush standard output, or discard what cannot be written, which Python would complain of at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_command(argv: list[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:  # set by the script of `netbuf-gym completion`
        import_command("completion").print_completions()
    top = build_parser(argv[:1])
    name = argv[0] if argv else ""
    if name in JOBS:
        jobs = import_command(name)
        return jobs.run(name, jobs.parse(top.commands[name], argv[1:]))
    arguments = top.parse_args(argv)
    return import_command(arguments.command).run(arguments)


def _print_error(message: str, status: int) -> int:
    print(f"{PROGRAM}: error: {escape_surrogates(one_line(message))}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
