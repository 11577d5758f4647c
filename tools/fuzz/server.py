"""Cases in child processes: a parent that has imported everything forks them, watches them, and outlives them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.fuzz.case import Case, Finding, shorten_text

LOOK_S = 0.1
PATIENCE = 8
"""So much longer may a case take by the clock than by its processor: on a busy machine it waits."""
QUICK = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)
"""Where folders are made and removed in no time; None: where temporary ones are."""
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Kind:
    """Something to fuzz.

    Attributes:
        name: as in the report.
        run: runs a case and says what became of it (`case.REFUSED`, `case.ACCEPTED`); what it raises is a finding.
        prepare: is called once, in the parent, with a folder of its own that lasts.
        share: of the time, beside the others'.
        limit_s: a case that takes longer, of the processor's time, hangs; so does one that takes `PATIENCE` times as long by
            the clock.
        memory_bytes: a child that grows by more is a finding.
        interrupt_s: after so long a case is interrupted, as by Ctrl-C, and has `limit_s` from there; None: never.
    """

    name: str
    run: Callable[[Case], str]
    prepare: Callable[[Path], None] = lambda folder: None
    share: float = 1.0
    limit_s: float = 20.0
    memory_bytes: int = 2 << 30
    interrupt_s: float | None = None


@dataclass
class Outcome:
    """The outcome of one case. `finding` is empty where nothing was found."""

    number: int
    seconds: float
    result: str = ""
    finding: str = ""
    inputs: str = ""


@dataclass
class _Running:
    """A case under way. `since` and `used_s`: the clock's and its process' seconds when it began, or was interrupted."""

    number: int
    began: float
    since: float
    used_s: float
    inputs: str = ""
    interrupted: bool = False


@dataclass
class Batch:
    """Cases of one kind, one after the other in a child, from `first` on, until `seconds` are over or one is found.

    Attributes:
        count: most cases.
    """

    kind: Kind
    seed: int
    first: int
    seconds: float
    count: int = 500
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self) -> list[Outcome]:
        """Run the cases and return what became of them."""
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory(prefix="netbuf-fuzz-", dir=QUICK) as folder:
            reading, writing = os.pipe()
            sys.stdout.flush()
            sys.stderr.flush()
            child = os.fork()
            if child == 0:
                os.close(reading)
                self._in_child(writing, errors.fileno(), Path(folder))
            os.close(writing)
            try:
                self._watch(child, reading, errors)
            finally:
                os.close(reading)
        return self.outcomes

    # ---- the parent

    def _watch(self, child: int, reading: int, errors: Any) -> None:
        running: _Running | None = None
        end, grown, rest = "", _measure_memory(child), b""
        while True:
            ready, _, _ = select.select([reading], [], [], LOOK_S)
            if ready:
                found = os.read(reading, 1 << 16)
                if not found:
                    break
                *lines, rest = (rest + found).split(b"\n")
                for line in lines:
                    running = self._hear(json.loads(line), running, child)
            end = end or self._judge(child, running, grown)
            if end:
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if running is not None:
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            why = end or f"the process died: {_describe_status(status)}"
            self.outcomes.append(_describe_death(running, f"{why}\n{_excerpt_report(said)}".rstrip()))

    def _hear(self, message: dict[str, Any], running: _Running | None, child: int) -> _Running | None:
        if "start" in message:
            return _Running(message["start"], time.monotonic(), time.monotonic(), _measure_used_s(child))
        assert running is not None
        if "inputs" in message:
            running.inputs = message["inputs"]
            return running
        seconds = time.monotonic() - running.began
        outcome = Outcome(running.number, seconds, message["result"], message["finding"], running.inputs)
        self.outcomes.append(outcome)
        return None

    def _judge(self, child: int, running: _Running | None, before: int) -> str:
        """Say why the child must end; empty: it need not."""
        if running is None:
            return ""
        seconds, used_s = time.monotonic() - running.since, _measure_used_s(child) - running.used_s
        if self.kind.interrupt_s is not None and not running.interrupted:
            if seconds > self.kind.interrupt_s:
                running.interrupted, running.since, running.used_s = True, time.monotonic(), _measure_used_s(child)
                os.kill(child, signal.SIGINT)
        elif used_s > self.kind.limit_s or seconds > self.kind.limit_s * PATIENCE:
            told = f"{used_s:.1f} s of the processor's, {seconds:.1f} s by the clock"
            return f"hangs: {told}{' since it was interrupted' if running.interrupted else ''}"
        grown = _measure_memory(child) - before
        return f"memory: grew by {grown / 2**20:.0f} MiB" if grown > self.kind.memory_bytes else ""

    # ---- the child

    def _in_child(self, pipe: int, errors: int, folder: Path) -> None:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(errors, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            for _ in self._cases(pipe, folder):
                pass
            status = 0
        finally:
            os._exit(status)

    def _cases(self, pipe: int, folder: Path) -> Iterator[None]:
        def say(**message: Any) -> None:
            line = json.dumps(message).encode() + b"\n"
            while line:
                line = line[os.write(pipe, line) :]

        until = time.monotonic() + self.seconds
        for number in range(self.first, self.first + self.count):
            say(start=number)
            result, finding = run_case(
                self.kind, self.seed, number, lambda inputs: say(inputs=shorten_text(inputs, 60_000)), folder
            )
            say(result=result, finding=finding)
            yield
            if finding or time.monotonic() > until:  # after a finding nothing is sure
                return


def run_case(kind: Kind, seed: int, number: int, tell: Callable[[Any], None], within: Path) -> tuple[str, str]:
    """Run a case in this process, in a new folder within another; return what became of it, and what was found."""
    folder = Path(tempfile.mkdtemp(prefix="case-", dir=within))
    before = os.getcwd()
    try:
        os.chdir(folder)
        return kind.run(Case(seed, kind.name, number, folder, tell)), ""
    except Finding as found:
        return "found", str(found)
    except BaseException:
        return "found", traceback.format_exc()
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def _describe_death(running: _Running, why: str) -> Outcome:
    return Outcome(running.number, time.monotonic() - running.began, "found", why, running.inputs)


def _describe_status(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit status {os.WEXITSTATUS(status)}"


def _excerpt_report(said: str, lines: int = 60) -> str:
    """A sanitizer's report from its beginning, or the end of what was said."""
    listed = said.splitlines()
    for i, line in enumerate(listed):
        if "runtime error:" in line or "Sanitizer" in line:
            return "\n".join(listed[i : i + lines])
    return "\n".join(listed[-lines:])


def _measure_memory(process: int) -> int:
    """Bytes of memory that a process holds; 0 of one that has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _measure_used_s(process: int) -> float:
    """Seconds that a process has used processors for, its ended children's too; 0 of one that has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS_A_SECOND
