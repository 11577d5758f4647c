"""The code in the documentation's pages as a reader meets it: fenced blocks in their order, and the commands in them.

    python tests/docs/code_blocks.py STEPS

takes the steps of a page from a JSON file, one after the other, in the folder that it is started in: files that the page has
its reader write, Python blocks in one namespace, where a warning is an error, and commands as their programs would run them.
Its status is 1 where one of them failed.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
import time
import traceback
import types
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

SHELL = ("sh", "bash", "console")
OURS = ("netbuf-gym ", "python -m netbuf_gym")
"""What a command of the package's begins with."""


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: its path from the checkout.
        line: of the page, its first one.
        file: that it is the text of, as the line before it says; "": of none.
        language: as marked.
        text: with its last line break.
    """

    page: str
    line: int
    file: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its commands, without comments: of a shell's all, of other text those of the package."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        elif self.language not in SHELL:
            lines = [line for line in lines if line.strip().startswith(OURS)]
        return [bare for line in lines if (bare := uncommented(line))]


def uncommented(line: str) -> str:
    """A line of a shell's without what it says after `#`."""
    parts = re.compile(r"'[^']*'|\"[^\"]*\"|(?<!\S)#.*")
    return parts.sub(lambda part: "" if part[0].startswith("#") else part[0], line).strip()


def blocks(page: str, text: str) -> Iterator[Block]:
    """The blocks of a page in their order."""
    from studies.pages import blocks as page_blocks  # not where a page's blocks run, which are to import what they need

    for block in page_blocks.parse_blocks(text):
        yield Block(page, block.line, block.file, block.language, block.text)


def with_words(command: list[str], words: list[str]) -> list[str]:
    """A command with further words, in place of its own of the same KEY= or the same option and its value."""
    keys = {word.partition("=")[0] for word in words if "=" in word}
    kept = [word for word in command if "=" not in word or word.partition("=")[0] not in keys]
    for option in (word for word in words if word.startswith("--") and word in kept):
        at = kept.index(option)
        del kept[at : at + 2]
    return kept + words


class Checked(BaseException):
    """A command has looked at all that it was told, and would begin its work."""


BEGINNINGS = {
    "simulate": "netbuf_gym.cli.simulate.run",
    "validate": "netbuf_gym.cli.validate.run",
    "trace": "netbuf_gym.cli.trace.run",
    "live": "netbuf_gym.cli.live.run",
    "reproduce": "studies.command.Campaign",
    "suite": "netbuf_gym.leaderboard.play.SuiteRunner.play",
    "leaderboard": "netbuf_gym.leaderboard.submission.prepare_submission",
    "netbuf_gym.training.campaign": "netbuf_gym.training.campaign.train_models",
}
"""Where commands begin their work, once they have refused what they cannot do; of jobs see `needed`."""


def needed(name: str, module: str) -> types.ModuleType:
    """What a job asks for, that of its work doing nothing."""
    from netbuf_gym.cli import jobs

    if module not in jobs.JOBS:
        return importlib.import_module(f"netbuf_gym.training.{module}")
    idle = types.ModuleType(module)
    idle.main = lambda job: 0  # type: ignore[attr-defined]
    return idle


def status_of(words: list[str]) -> int:
    """The exit status of a command of the package's, which is run in this process."""
    from netbuf_gym.cli import program
    from netbuf_gym.errors import NetbufError

    if words[0] == "netbuf-gym":
        return program.main(words[1:])
    try:
        return importlib.import_module(words[2]).main(words[3:])
    except NetbufError as error:
        print(error, file=sys.stderr)
        return 2


def checked(words: list[str]) -> int:
    """The exit status of a command that ends where its work begins: 0, or that with which it refuses what it was told."""
    name = words[1] if words[0] == "netbuf-gym" else words[2]
    with ExitStack() as patches:
        if name in BEGINNINGS:
            patches.enter_context(mock.patch(BEGINNINGS[name], side_effect=Checked))
        else:  # a job
            patches.enter_context(mock.patch("netbuf_gym.cli.jobs.import_training_module", needed))
            patches.enter_context(mock.patch("netbuf_gym.training.sweep.launch_jobs", launched))
        try:
            return status_of(words)
        except Checked:
            return 0


def launched(run: object, number: int, *more: object) -> list[tuple[int, str, float]]:
    """Outcomes of jobs that did nothing."""
    return [(0, "", 0.0)] * number


def take(step: dict) -> None:
    """Takes a step; raises what a Python block raises, or ValueError where a command has another exit status."""
    if "file" in step:
        Path(step["file"]).parent.mkdir(parents=True, exist_ok=True)
        Path(step["file"]).write_text(step["text"], encoding="utf-8")
    elif "python" in step:
        code = compile("\n" * (step["line"] - 1) + step["python"], step["page"], "exec")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(code, sys.modules["__main__"].__dict__)  # the page's own, see main
    else:
        status = (checked if step["checked"] else status_of)(step["command"])
        if status not in step["status"]:
            raise ValueError(f"{shlex.join(step['command'])}: exit status {status}")


def say(text: str) -> None:
    """A line of standard error, at once."""
    print(f"== {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Takes the steps of a file; returns the exit status."""
    from netbuf_gym.utils import checkout

    checkout.import_studies(checkout.require_checkout())  # pages are run in another folder
    steps, failed = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), []
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.path[0] = ""  # a script's own folder, which is the page's
    for step in steps:
        began, place = time.monotonic(), f"{step['page']}:{step['line']}"
        say(f"{place} {shlex.join(step.get('command', []))}")
        try:
            take(step)
        except (Exception, SystemExit):
            traceback.print_exc()
            failed.append(place)
        say(f"{time.monotonic() - began:.1f} s; since the start {time.process_time():.1f} s of the processor")
    say(f"failed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
