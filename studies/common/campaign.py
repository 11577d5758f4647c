"""Execution of a campaign: parallel, resumable, into one tidy file.

A finished campaign can be run again with more schemes: existing rows are kept.

A folder holds `campaign.json` (the settings, the command, version, machine, duration), while it is under way `parts/` (a
CSV file for each part of the experiment whose runs are done), and in the end `runs.csv`, one row for each run. All of these
rows carry check values (`table`), which are verified whenever the rows are read.
"""

from __future__ import annotations

import json
import os
import pickle
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, ReferenceDataError
from netbuf_gym.leaderboard.rows import read_processor_name as processor
from netbuf_gym.utils.checkout import PickledWork
from netbuf_gym.utils.executors import LOCAL, Executor
from netbuf_gym.utils.files import exclusive_lock, make_folder, write_atomic, write_json
from netbuf_gym.version import __version__
from studies.common import kept, table
from studies.common.experiment import Chunk, Experiment, Part
from studies.common.results import Runs
from studies.common.settings import Settings
from studies.common.showing import remove_local_paths

SCHEMA = "netbuf-gym/reproduction/1"
CHECKOUT = Path(__file__).resolve().parents[2]
RUNS, DESCRIPTION, PARTS = "runs.csv", "campaign.json", "parts"


class OtherCampaignError(ConfigError):
    """Error for a folder that holds something else than the campaign: other settings, agents or another version."""


class Campaign:
    """A campaign in its folder.

    Args:
        experiment: Experiment of the campaign.
        settings: Settings of the campaign.
        output: Folder of the campaign; created if missing.
        jobs: Number of the executor's threads or processes.
        executor: Executor of the runs.

    Attributes:
        lost: Number of rows cut from the end of the table, to be made again.

    Raises:
        ConfigError: The folder holds another campaign, or something else.
        CheckpointError: The agent cannot be read, or does not fit.
        OSError: The folder cannot be made or written.
    """

    def __init__(self, experiment: Experiment[Any], settings: Settings, output: Path, jobs: int, executor: Executor = LOCAL):
        self.experiment, self.settings, self.output, self.jobs = experiment, settings, output, jobs
        self.executor = executor
        self.work = experiment.work(settings)
        self.parts = self.work.parts
        self.lost = 0
        self._stop = threading.Event()
        self._prepare_folder()

    @property
    def runs(self) -> int:
        """Total number of runs."""
        return sum(len(part.runs) for part in self.parts)

    @property
    def seconds(self) -> float:
        """Working time of all sessions together, in seconds, as recorded in the campaign's description."""
        seconds = _read_json(self.output / DESCRIPTION).get("seconds")
        return float(seconds) if isinstance(seconds, (int, float)) else 0.0

    def results(self) -> Runs:
        """Return the runs of a finished campaign; raises like `Runs.read`."""
        return self.experiment.read(self.output / RUNS)

    def draw(self, folder: Path) -> list[Path]:
        """Draw all figures of a finished campaign; see `Experiment.draw`."""
        folder.mkdir(parents=True, exist_ok=True)
        return self.experiment.draw(self.work, self.results(), folder)

    def run(self, progress: Callable[[int, int], None]) -> Path:
        """Run what is not done yet and return the path of the tidy file. A file whose end was cut is completed.

        Args:
            progress: Callback that receives the number of finished runs and their total.

        Raises:
            ConfigError: Another process runs this campaign, or has made another one of it.
            ReferenceDataError: The tidy file is damaged in another way; names the file and the line.
            SimulatorFault: The simulator found its own state inconsistent.
        """
        path = self.output / RUNS
        with exclusive_lock(self.output, "output"):
            begun = _read_json(self.output / DESCRIPTION)
            if self._has_more_schemes(begun):
                begun = self._adopt_description(begun)
            self._require_own(begun)  # another process may have added schemes
            found, grown_from = None, begun.get("grown_from")
            if grown_from and path.is_file() and table.read_comment(path) == grown_from:
                self._take_over(path)
            elif path.is_file():
                found = self._read_table(path, self.parts)
            if found is not None and found.cut is None:
                shutil.rmtree(self.output / PARTS, ignore_errors=True)
                progress(self.runs, self.runs)
                return path
            (self.output / PARTS).mkdir(exist_ok=True)
            if found is not None:
                self._keep_complete_parts(found.rows)
            started = time.monotonic()
            try:
                self._run_parts(progress, lambda: self._add_seconds(time.monotonic() - started))
            except BaseException:
                self._stop.set()
                self._add_seconds(time.monotonic() - started)
                raise
            self._merge()
            self._add_seconds(time.monotonic() - started)
            shutil.rmtree(self.output / PARTS)
        return path

    @property
    def _comment(self) -> str:
        return self._make_comment(self.settings.command(), self.work.identity)

    def _make_comment(self, command: str, identity: Mapping[str, Any]) -> str:
        """Return the table comment of a campaign of this experiment, from its command and the digests of its agents' files."""
        known = {name: str(identity.get(name) or "") for name in self.work.identity}
        words = "".join(f"; {name.replace('_', ' ')} {value[:16]}" for name, value in known.items() if value)
        return f"netbuf-gym {__version__}: {command}{words}"

    def _read_table(self, path: Path, parts: list[Part]) -> table.Table:
        """Read a table of the given parts, or as much of its beginning as there is.

        Raises:
            ReferenceDataError: The table is damaged, or another campaign's; names the file and the line.
        """
        found = table.read_table(path, self.experiment.columns, self.experiment.keys)
        keys = [tuple(map(table.format_value, run)) for part in parts for run in part.runs]
        if found.comment != self._comment and (found.comment or found.cut is None):
            raise ReferenceDataError(f"is the table of another campaign ({found.comment}); valid: {self._comment}", path, 1)
        if found.promised != len(keys) and found.comment:
            raise ReferenceDataError(f"promises {found.promised} rows; valid: {len(keys)}", path, 1)
        for row, key, line in zip(found.rows, keys, found.lines, strict=False):
            own = tuple(row[name] for name in self.experiment.keys)
            if own != key:
                raise ReferenceDataError(f"is the run {','.join(own)}; valid here: {','.join(key)}", path, line)
        return found

    def _keep_complete_parts(self, rows: list[dict[str, str]]) -> None:
        """Write the complete parts of a table whose end was cut; the rest is made again."""
        at, kept = 0, 0
        for part in self.parts:
            own = rows[at : at + len(part.runs)]
            at += len(part.runs)
            if len(own) == len(part.runs):
                self._write_rows(part, own)
                kept += len(own)
        self.lost = self.runs - kept

    def _run_parts(self, progress: Callable[[int, int], None], written: Callable[[], None]) -> None:
        todo = [part for part in self.parts if self._read_part(part) is None]
        done = self.runs - sum(len(part.runs) for part in todo)
        progress(done, self.runs)
        rows: dict[str, list[dict[str, Any]]] = {part.name: [] for part in todo}
        for chunk, found in self._iterate_outcomes(todo):
            own = rows[chunk.part.name]
            own += found
            if len(own) == len(chunk.part.runs):
                self._write_part(chunk.part, rows.pop(chunk.part.name))
                written()
            done += len(found)
            progress(done, self.runs)

    def _run_chunk(self, chunk: Chunk) -> list[dict[str, Any]]:
        return self.work.run(chunk, self.output, self._stop)

    def _iterate_outcomes(self, todo: list[Part]) -> Iterator[tuple[Chunk, list[dict[str, Any]]]]:
        """Yield chunks of the given parts with their rows, in the order in which they finish, on any executor."""
        chunks = self.work.chunks(todo)
        if self.executor.here:
            yield from self.executor.run(self._run_chunk, chunks, self.jobs, self._stop)
            return
        work = PickledWork(str(CHECKOUT), pickle.dumps(self._make_remote_chunks()))
        for task, rows in self.executor.run(work, map(pickle.dumps, chunks), self.jobs, self._stop):
            yield pickle.loads(task), rows

    def _make_remote_chunks(self) -> RemoteChunks:
        return RemoteChunks(self.experiment, self.settings, dict(self.work.identity), self.output.absolute(), Path.cwd())

    def _prepare_folder(self) -> None:
        """Find or create the folder of this campaign."""
        path = self.output / DESCRIPTION
        if os.path.lexists(self.output) and not self.output.is_dir():
            raise ConfigError(f"output = '{self.output}' is no folder; valid: a folder, new or empty, or this campaign's")
        if path.is_file():
            begun = _read_json(path)
            if self._has_more_schemes(begun):
                return
            self._require_own(begun)
            if begun.get("netbuf_gym") != __version__:
                raise OtherCampaignError(
                    f"output = '{self.output}' was begun by netbuf-gym {begun.get('netbuf_gym')}, this is {__version__};"
                    " valid: another folder"
                )
            for name, value in self.work.identity.items():
                if begun.get(name, "") != value:
                    what = f"another file as the {name.removesuffix('_sha256')}"
                    raise OtherCampaignError(f"output = '{self.output}' was begun with {what}; valid: another folder")
            return
        if self.output.is_dir() and any(path for path in self.output.iterdir() if not path.name.startswith(f".{DESCRIPTION}.")):
            raise OtherCampaignError(f"output = '{self.output}' holds files, but no campaign; valid: a new or an empty folder")
        make_folder(self.output, "output")
        write_json(path, self._make_description(time.strftime("%Y-%m-%d"), 0.0))
        self._before_s = 0.0

    def _require_own(self, begun: dict[str, Any]) -> None:
        """Raise ConfigError if the folder's description is that of other settings."""
        if begun.get("settings") != self.settings.to_dict():
            what = f"holds another campaign ({begun.get('command')})"
            raise OtherCampaignError(f"output = '{self.output}' {what}; valid: that command, or another folder")

    def _make_description(self, begun: str, seconds: float) -> dict[str, Any]:
        """Return the content of `campaign.json`.

        Args:
            begun: Day on which the campaign began.
            seconds: Working time so far.
        """
        return {
            "schema": SCHEMA,
            "command": self.settings.command(),
            "netbuf_gym": __version__,
            "machine": describe_machine(),
            "jobs": self.jobs,
            "executor": self.executor.name,
            "begun": begun,
            "seconds": seconds,
            "runs": self.runs,
            **self.work.identity,
            "settings": self.settings.to_dict(),
            "columns": {
                **self.experiment.explained,
                **self.experiment.measures,
                table.CHECK: "CRC-32 of the first line and of the row before this column",
            },
        }

    def _has_more_schemes(self, begun: dict[str, Any]) -> bool:
        """Return whether the folder holds a finished campaign that differs only in having fewer schemes, and no other agent."""
        found, own = begun.get("settings"), self.settings.to_dict()
        if not isinstance(found, dict) or begun.get("netbuf_gym") != __version__ or not (self.output / RUNS).is_file():
            return False
        if table.read_comment(self.output / RUNS) != self._make_comment(str(begun.get("command")), begun):
            return False
        absent = {key for key in self.settings.agents if not begun.get(f"{key}_sha256")}
        if any(begun.get(name, "") not in ("", value) for name, value in self.work.identity.items()):
            return False
        schemes = found.get("schemes") or []
        alike = all(found.get(key) == value for key, value in own.items() if key != "schemes" and key not in absent)
        return alike and found.keys() == own.keys() and set(schemes) < set(own["schemes"])

    def _adopt_description(self, begun: dict[str, Any]) -> dict[str, Any]:
        """Replace the description of a finished campaign of fewer schemes by this campaign's, and return it.

        The table is left as it is.

        Raises:
            ReferenceDataError: The table is damaged.
        """
        path = self.output / RUNS
        found = table.read_table(path, self.experiment.columns, self.experiment.keys).require_complete(path)
        own = self._make_description(str(begun.get("begun")), self.seconds) | {"grown_from": found.comment}
        before = str(begun.get("machine"))
        if not before.endswith(own["machine"]):
            own["machine"] = f"{before}; then {own['machine']}"
        write_json(self.output / DESCRIPTION, own)
        return own

    def _take_over(self, path: Path) -> None:
        """Write parts from the rows of the table that this campaign has grown from, unless they exist."""
        found = table.read_table(path, self.experiment.columns, self.experiment.keys).require_complete(path)
        rows = {tuple(row[name] for name in self.experiment.keys): row for row in found.rows}
        (self.output / PARTS).mkdir(exist_ok=True)
        for part in self.parts:
            keys = [tuple(map(table.format_value, run)) for run in part.runs]
            if all(key in rows for key in keys) and self._read_part(part) is None:
                self._write_rows(part, [rows[key] for key in keys])

    def _add_seconds(self, seconds: float) -> None:
        """Record the time of this session in addition to that of earlier ones."""
        path = self.output / DESCRIPTION
        description = _read_json(path)
        if not hasattr(self, "_before_s"):
            self._before_s = self.seconds
        write_json(path, description | {"seconds": round(self._before_s + seconds, 2)})

    def _write_part(self, part: Part, rows: list[dict[str, Any]]) -> None:
        order = {tuple(map(table.format_value, run)): i for i, run in enumerate(part.runs)}
        self._write_rows(
            part, sorted(rows, key=lambda row: order[tuple(table.format_value(row[name]) for name in self.experiment.keys)])
        )

    def _write_rows(self, part: Part, rows: list[dict[str, Any]]) -> None:
        write_atomic(self._build_part_path(part), table.format_table(self._comment, self.experiment.columns, rows))

    def _build_part_path(self, part: Part) -> Path:
        return self.output / PARTS / f"{part.name}.csv"

    def _read_part(self, part: Part) -> list[dict[str, str]] | None:
        """Return the rows of a finished part; None if the part is unfinished or damaged."""
        path = self._build_part_path(part)
        if not path.is_file():
            return None
        try:
            return self._read_table(path, [part]).require_complete(path).rows
        except ReferenceDataError:
            return None

    def _merge(self) -> None:
        rows: list[dict[str, str]] = []
        for part in self.parts:
            own = self._read_part(part)
            if own is None:
                path = self._build_part_path(part)
                raise ConfigError(f"{path}: was changed while the campaign ran; valid: the same command again")
            rows += own
        write_atomic(self.output / RUNS, table.format_table(self._comment, self.experiment.columns, rows))


def read_finished(folder: Path) -> dict[str, Any]:
    """Return the description of a finished campaign.

    Raises:
        ConfigError: The folder holds no finished campaign.
    """
    if not (folder / RUNS).is_file():
        raise ConfigError(f"{folder}: holds no finished campaign; valid: a folder with {RUNS}")
    return _read_json(folder / DESCRIPTION)


def keep_rows(experiment: Experiment[Any], section: str, source: Path, root: Path) -> Path:
    """Keep a finished campaign's rows as those of a section and return the file.

    Raises:
        ConfigError: The folder holds no finished campaign.
        ReferenceDataError: The campaign's table is damaged.
    """
    description = read_finished(source)
    runs = experiment.choose(experiment.read(source / RUNS))
    agents = {
        name.removesuffix("_sha256"): value[:16] for name, value in description.items() if name.endswith("_sha256") and value
    }
    settings = {key: value for key, value in description["settings"].items() if key not in experiment.settings.agents}
    if settings.get("traces"):
        settings["traces"] = "DIR"
    header = {
        "command": remove_local_paths(description["command"]),
        "agents": agents,
        **{key: description[key] for key in ("begun", "runs", "seconds", "jobs", "machine")},
        "settings": settings,
    }
    return kept.write_rows(root, experiment.name, section, header, runs.to_csv(kept.DIGITS, experiment.kept_measures))


@dataclass(frozen=True)
class RemoteChunks:
    """Callable that runs chunks of a campaign in another process, which builds the work once.

    Args:
        experiment, settings: Experiment and settings of the campaign.
        identity: Identity of the campaign's work; work with other files, as another machine may have, is refused.
        output: Folder of the campaign.
        here: Folder that paths in the settings are relative to.
    """

    experiment: Experiment[Any]
    settings: Settings
    identity: Mapping[str, str]
    output: Path
    here: Path

    def __call__(self, chunk: Chunk) -> list[dict[str, Any]]:
        os.chdir(self.here)
        made_of = (self.experiment.name, self.settings, *self.identity.items())
        if _REMOTE_WORK.get("of") != made_of:
            _REMOTE_WORK.update(of=made_of, work=self.experiment.work(self.settings))
        work = _REMOTE_WORK["work"]
        if dict(work.identity) != self.identity:
            raise ConfigError(f"agents are other files on {platform.node()} ({work.identity}); valid: {self.identity}")
        return work.run(chunk, self.output, threading.Event())


_REMOTE_WORK: dict[str, Any] = {}
"""Work built by this process for `RemoteChunks`, and the arguments of its construction."""


def describe_machine() -> str:
    """Return a one-line description of the machine: processor, cores, system, Python."""
    cores = len(os.sched_getaffinity(0))
    return f"{processor()}, {cores} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path}: is not a campaign's description: {error}") from None
    return data if isinstance(data, dict) else {}
