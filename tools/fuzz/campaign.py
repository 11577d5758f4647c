"""A campaign of fuzzing: which kind is next, what was found, and the summary."""

from __future__ import annotations

import importlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from netbuf_gym.utils.files import write_json
from netbuf_gym.utils.tables import text_table
from netbuf_gym.version import __version__
from tools.fuzz.case import REFUSED, shorten_text
from tools.fuzz.server import Batch, Kind, Outcome, run_case

BATCH_S = 1.0


@dataclass
class Tally:
    """Counts of one kind. `slowest`: the case that took longest, and its seconds."""

    cases: int = 0
    seconds: float = 0.0
    refused: int = 0
    findings: int = 0
    slowest_s: float = 0.0
    slowest: str = ""


@dataclass
class Campaign:
    """Kinds, by name, fuzzed in turn.

    Attributes:
        checked: the sanitizers that the native module was built with.
        folder: for findings.
    """

    names: Sequence[str]
    seed: int
    checked: str
    folder: Path
    found: list[dict] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self):
        self.kinds: list[Kind] = [importlib.import_module(f"tools.fuzz.{name}").KIND for name in self.names]
        self.tallies = {kind.name: Tally() for kind in self.kinds}
        self._next = dict.fromkeys(self.tallies, 0)
        self._lasting = Path(tempfile.mkdtemp(prefix="netbuf-fuzz-kinds-"))
        tempfile.tempdir = os.environ["TMPDIR"] = str(self._lasting)  # where what is fuzzed may leave something
        for kind in self.kinds:
            own = self._lasting / kind.name
            own.mkdir()
            kind.prepare(own)

    def one(self, seed: int, kind: str, number: int) -> int:
        """Run a case in this process, say what was found, and return the exit status."""

        def print_inputs(inputs: object) -> None:
            print(f"inputs: {shorten_text(inputs, 20_000)}")

        try:
            result, finding = run_case(self.kinds[0], seed, number, print_inputs, self._lasting)
        finally:
            self._clean()
        print(finding or result)
        return 1 if finding else 0

    def run(self, seconds: float) -> None:
        """Fuzz for about so long, and whatever a busy machine had no time for a little longer."""
        started = time.monotonic()
        try:
            while (left := started + seconds - time.monotonic()) > 0:
                kind = min(self.kinds, key=lambda kind: self.tallies[kind.name].seconds / kind.share)
                self._batch(kind, min(BATCH_S, left))
            for kind in self.kinds:
                if not self.tallies[kind.name].cases:
                    self._batch(kind, 10 * BATCH_S)
        finally:
            self.seconds = time.monotonic() - started
            self._clean()

    def _batch(self, kind: Kind, seconds: float) -> None:
        outcomes = Batch(kind, self.seed, self._next[kind.name], seconds).run()
        tally = self.tallies[kind.name]
        for outcome in outcomes:
            tally.cases += 1
            tally.seconds += outcome.seconds
            tally.refused += outcome.result == REFUSED
            if outcome.seconds > tally.slowest_s:
                tally.slowest_s, tally.slowest = round(outcome.seconds, 2), f"{self.seed}:{kind.name}:{outcome.number}"
            if outcome.finding:
                self._finding(kind, outcome, tally)
        self._next[kind.name] += max(len(outcomes), 1)
        if not outcomes:
            tally.seconds += seconds  # a child that could not even start

    def _finding(self, kind: Kind, outcome: Outcome, tally: Tally) -> None:
        case = f"{self.seed}:{kind.name}:{outcome.number}"
        tally.findings += 1
        entry = {"case": case, "found": outcome.finding, "inputs": outcome.inputs}
        self.found.append(entry)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / f"{case.replace(':', '-')}.json", entry)
        print(f"FOUND {case}: {_choose_line(outcome.finding)}", file=sys.stderr, flush=True)

    def _clean(self) -> None:
        shutil.rmtree(self._lasting, ignore_errors=True)

    def table(self) -> str:
        """The summary, a row a kind, and the findings."""
        rows = [
            [name, *map(str, (t.cases, f"{t.seconds:.0f}", t.refused, t.findings, f"{t.slowest_s:.1f} s: {t.slowest}"))]
            for name, t in self.tallies.items()
        ]
        text = text_table(["kind", "cases", "seconds", "refused", "findings", "slowest"], rows)
        text += f"\n\n{self.seconds:.0f} s, seed {self.seed}, sanitizers of the native module: {self.checked}"
        for entry in self.found:
            text += f"\n\n{entry['case']} (again: --case {entry['case']})\n{_excerpt_finding(entry['found'])}"
        return text

    def write(self, path: Path) -> None:
        """Write the summary as JSON."""
        data = {
            "schema": "netbuf-gym/fuzz/1",
            "netbuf_gym": __version__,
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
            f"Python {platform.python_version()}",
            "sanitizers": self.checked,
            "seed": self.seed,
            "seconds": round(self.seconds),
            "kinds": {name: {**asdict(t), "seconds": round(t.seconds)} for name, t in self.tallies.items()},
            "findings": [{"case": entry["case"], "found": shorten_text(entry["found"], 2000)} for entry in self.found],
        }
        write_json(path, data)
        json.loads(path.read_text())


def _excerpt_finding(finding: str, lines: int = 12) -> str:
    """Cut a finding to what is worth seeing in the summary: of a trace back its end, of anything else its beginning."""
    listed = finding.strip().splitlines()
    chosen = listed[-lines:] if finding.startswith("Traceback") else listed[:lines]
    return "\n".join(shorten_text(line, 300) for line in chosen)


def _choose_line(finding: str) -> str:
    """Choose the line of a finding that says most: its first, or the last one of a trace back."""
    lines = [line for line in finding.splitlines() if line.strip()]
    return (lines[-1] if lines and lines[0].startswith("Traceback") else lines[0] if lines else "")[:200]
