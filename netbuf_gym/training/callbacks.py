"""Training callbacks: limits, snapshots, logs, progress, episode statistics."""

from __future__ import annotations

import csv
import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, TensorBoardOutputFormat

from netbuf_gym.envs.engine import Engine
from netbuf_gym.training.constraints import Lagrangian, Violations
from netbuf_gym.utils.files import name_in_errors, write_atomic
from netbuf_gym.utils.progress import ProgressBar, format_duration, print_line


class Interrupt:
    """Context in which the first SIGINT or SIGTERM sets `received` and is said; a second one has its usual effect."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore()
        with suppress(OSError):  # closed, or a pipe whose reader the same signal ended
            os.write(2, b"\ninterrupted: ending once what is under way can be kept; again to end at once\n")

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def __exit__(self, *exception: object) -> None:
        self._restore()


class StopCondition(BaseCallback):
    """Ends training when interrupted, or after `max_seconds` (including `seconds_before` of an earlier session).

    The clock starts at construction.

    Attributes:
        seconds: Seconds of training, earlier sessions included.
        timed_out: Whether the time limit ended the training.
        at_once: Whether an interruption ends a rollout or an update under way, or waits for the moment after them.
    """

    def __init__(self, interrupt: Interrupt, max_seconds: float | None, seconds_before: float = 0.0):
        super().__init__()
        self.interrupt, self.max_seconds, self.seconds_before = interrupt, max_seconds, seconds_before
        self.timed_out = self.at_once = False
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self._started

    @property
    def interrupted(self) -> bool:
        """True once a signal was received."""
        return self.interrupt.received is not None

    def time_used(self) -> float:
        """Return the share of the time limit that is over, 0 to 1; 0 without a limit."""
        return 0.0 if self.max_seconds is None else min(1.0, self.seconds / self.max_seconds)

    def should_stop(self) -> bool:
        """Return whether to end; for points between an update and a rollout."""
        self.timed_out = self.timed_out or self.time_used() >= 1.0
        return self.timed_out or self.interrupted

    def may_continue(self) -> bool:
        """Return whether to continue; for points within a rollout or an update."""
        self.timed_out = self.timed_out or self.time_used() >= 1.0
        return not self.timed_out and not (self.at_once and self.interrupted)

    def _on_step(self) -> bool:
        return self.may_continue()


class Snapshots(BaseCallback):
    """Calls `write` between an update and a rollout, `times` times evenly over the training.

    Args:
        times: Number of snapshots.
        total_timesteps: Timesteps of the whole job.
        stop: Time limit, which counts where it is ahead of the steps.
        write: Writer of a snapshot.
    """

    def __init__(self, times: int, total_timesteps: int, stop: StopCondition, write: Callable[[], object]):
        super().__init__()
        self.times, self.total_timesteps, self.stop, self.write = times, total_timesteps, stop, write
        self._taken = 0

    def _due(self) -> int:
        share = max(self.model.num_timesteps / self.total_timesteps, self.stop.time_used())
        return int(share * (self.times + 1))  # plus the final model

    def _on_training_start(self) -> None:
        self._taken = self._due()

    def _on_rollout_start(self) -> None:
        due = self._due()
        if due > self._taken:
            self.write()
            self._taken = due

    def _on_step(self) -> bool:
        return True


class StageUpdates(BaseCallback):
    """Passes the share of the training that is over, 0 to 1, to `tell` between an update and a rollout; see `Snapshots`."""

    def __init__(self, total_timesteps: int, stop: StopCondition, tell: Callable[[float], None]):
        super().__init__()
        self.total_timesteps, self.stop, self.tell = total_timesteps, stop, tell

    def _on_rollout_start(self) -> None:
        self.tell(max(self.model.num_timesteps / self.total_timesteps, self.stop.time_used()))

    def _on_step(self) -> bool:
        return True


class ConstraintUpdates(BaseCallback):
    """Measures violations of constraints between an update and a rollout, first at the start and then evenly over the training.

    Each time the multipliers move, and with them the weights of the reward's terms; every row of the log has both.

    Args:
        lagrangian: Multipliers; of a resumed run as they were.
        times: Number of measurements.
        total_timesteps: Timesteps of the whole job.
        stop: Time limit, which counts where it is ahead of the steps.
        measure: Plays the present policy and returns its violations; it leaves random generators as they were.
        engine: Engine of the learner's worlds, whose families are their names.
    """

    def __init__(
        self,
        lagrangian: Lagrangian,
        times: int,
        total_timesteps: int,
        stop: StopCondition,
        measure: Callable[[], Violations],
        engine: Engine,
    ):
        super().__init__()
        self.lagrangian, self.times, self.total_timesteps = lagrangian, times, total_timesteps
        self.stop, self.measure, self.engine = stop, measure, engine

    def _on_training_start(self) -> None:
        self._weigh_terms()

    def _on_rollout_start(self) -> None:
        share = max(self.model.num_timesteps / self.total_timesteps, self.stop.time_used())
        if 1 + min(int(share * self.times), self.times - 1) > self.lagrangian.updates:
            self.lagrangian.update(self.measure())
            self._weigh_terms()

    def _on_rollout_end(self) -> None:
        for name, value in self.lagrangian.list_values().items():
            self.logger.record(name, value)

    def _weigh_terms(self) -> None:
        terms = self.engine.reward.terms
        self.engine.weigh_terms(lambda scenario: self.lagrangian.compute_factors(scenario.name, terms))

    def _on_step(self) -> bool:
        return True


class ProgressCsv(KVWriter):
    """Writes `progress.csv` row by row, after whole rows only; a new column is added to all rows.

    Args:
        path: Path of the file.
        keep: Number of rows of an earlier session to keep; None: all whole ones.

    Attributes:
        rows: Number of rows in the file.

    Raises:
        OSError: The file cannot be written; names the file.
    """

    def __init__(self, path: Path, keep: int | None = 0):
        self.path, self.columns = path, []
        kept: list[list[str]] = []
        if keep != 0 and path.is_file():
            whole = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]
            self.columns, *kept = [*csv.reader(whole.splitlines())] or [[]]
            kept = [row for row in kept if len(row) == len(self.columns)][:keep]
        self.rows = len(kept)
        self._rewrite(kept)

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Append a row."""
        values = {key: value for key, value in key_values.items() if "csv" not in (key_excluded.get(key) or ())}
        new = sorted(set(values) - set(self.columns))
        with name_in_errors(self.path):
            if new:
                self._file.close()
                with self.path.open(newline="", encoding="utf-8") as file:
                    rows = list(csv.reader(file))[1:]
                self.columns += new
                self._rewrite([[*row, *[""] * len(new)] for row in rows])
            self._file.write(_format_csv_line(_format_cell(values.get(key)) for key in self.columns))
            self._file.flush()
        self.rows += 1

    def _rewrite(self, rows: Iterable[Iterable[str]]) -> None:
        with name_in_errors(self.path):
            head = _format_csv_line(self.columns) if self.columns else ""
            write_atomic(self.path, head + "".join(map(_format_csv_line, rows)))
            self._file = self.path.open("a", newline="", encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        with name_in_errors(self.path):
            self._file.close()


class TensorBoardLog(TensorBoardOutputFormat):
    """TensorBoard's log in a folder; write errors name the folder.

    Args:
        folder: Folder of the log.
        resumed_at: Timesteps at which a resumed run continues: TensorBoard drops what was logged later.
    """

    def __init__(self, folder: Path, resumed_at: int | None = None):
        from torch.utils.tensorboard import SummaryWriter

        self.folder = folder
        silence_kept_exceptions()
        with name_in_errors(folder):
            self.writer = SummaryWriter(str(folder), purge_step=None if resumed_at is None else resumed_at + 1)
        self._is_closed = False

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Log the values."""
        with name_in_errors(self.folder):
            super().write(key_values, key_excluded, step)

    def close(self) -> None:
        """Flush and close the log."""
        with name_in_errors(self.folder):
            super().close()


def silence_kept_exceptions() -> None:
    """Have no trace back printed for a thread that keeps its exception as `exception`, which its owner raises.

    TensorBoard's writer is such a thread. Calling this again changes nothing.
    """
    before = threading.excepthook
    if getattr(before, "silences_kept", False):
        return

    def print_unless_kept(error: threading.ExceptHookArgs) -> None:
        if error.exc_value is None or getattr(error.thread, "exception", None) is not error.exc_value:
            before(error)

    print_unless_kept.silences_kept = True  # type: ignore[attr-defined]
    threading.excepthook = print_unless_kept


def _format_csv_line(fields: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue()


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    value = value.item() if hasattr(value, "item") else value
    return repr(value) if isinstance(value, float) else str(value)


class EpisodeLog(BaseCallback):
    """Logs the mean of each named statistic over the last finished episodes, as `rollout/<name>`."""

    def __init__(self, names: tuple[str, ...]):
        super().__init__()
        self.names = names

    def _on_rollout_end(self) -> None:
        for name in self.names:
            values = [episode[name] for episode in self.model.ep_info_buffer or () if name in episode]
            if values and np.isfinite(values).any():
                self.logger.record(f"rollout/{name}", float(np.nanmean(values)))

    def _on_step(self) -> bool:
        return True


class ProgressDisplay(BaseCallback):
    """Progress on standard error, and once, on standard output, an estimate of the remaining time.

    The estimate is based on whole rounds of collecting and learning, over at least `estimate_seconds`; steps before learning
    starts (a replay buffer being filled) are faster and do not count.

    Args:
        total_timesteps: Timesteps of the whole job.
        stop: Time limit, if any: the bar then shows whichever limit is nearer.
        name: Episode statistic shown beside the return, if present.
        line_seconds: Seconds between lines where standard error is no terminal.
        estimate_seconds: Minimum duration of the measurement for the estimate.
    """

    def __init__(
        self, total_timesteps: int, stop: StopCondition, name: str, line_seconds: float = 15.0, estimate_seconds: float = 3.0
    ):
        super().__init__()
        self.total_timesteps, self.stop, self.name = total_timesteps, stop, name
        self.estimate_seconds = estimate_seconds
        self._bar = ProgressBar("training", line_seconds)
        self._last = 0.0
        self._measured_from: tuple[float, int] | None = None
        self._estimated = False

    def _share(self) -> float:
        share = self.model.num_timesteps / self.total_timesteps
        if self.stop.max_seconds is not None:
            share = max(share, self.stop.seconds / self.stop.max_seconds)
        return min(1.0, share)

    def _text(self) -> str:
        steps = self.model.num_timesteps - self.model._num_timesteps_at_start
        rate = steps / max(self.stop.seconds - self.stop.seconds_before, 1e-9)
        done = self.model.num_timesteps
        text = f"{done:,} steps" if done < 1e6 else f"{done / 1e6:.2f} million steps"
        text += f", {rate:,.0f}/s"
        episodes = self.model.ep_info_buffer or ()
        for name, label in (("r", "return"), (self.name, self.name)):
            values = [episode[name] for episode in episodes if name in episode]
            if values and np.isfinite(values).any():  # NaN for a sender without an answer
                text += f", {label} {np.nanmean(values):.3f}"
        return text

    def _on_training_start(self) -> None:
        self._last = time.perf_counter()
        self._bar.__enter__()

    def _on_rollout_start(self) -> None:
        if self._estimated or self.model.num_timesteps < getattr(self.model, "learning_starts", 0):
            return
        now, steps = time.perf_counter(), self.model.num_timesteps
        if self._measured_from is None:
            self._measured_from = now, steps
        elif now - self._measured_from[0] >= self.estimate_seconds and steps > self._measured_from[1]:
            self._estimated = True
            print_line(self._estimate((steps - self._measured_from[1]) / (now - self._measured_from[0])))

    def _estimate(self, rate: float) -> str:
        """Format the remaining time at a rate in steps/s, and whether steps or time end the training."""
        left = (self.total_timesteps - self.model.num_timesteps) / rate
        text = f"{rate:,.0f} steps/s: "
        if self.stop.max_seconds is not None and self.stop.max_seconds - self.stop.seconds < left:
            seconds = max(0.0, self.stop.max_seconds - self.stop.seconds)
            steps = self.model.num_timesteps + rate * seconds
            return f"{text}about {format_duration(seconds)} left, by max_minutes, which comes to about {steps:,.0f} steps"
        return f"{text}about {format_duration(left)} left, for {self.total_timesteps:,} steps"

    def _on_step(self) -> bool:
        now = time.perf_counter()
        if now - self._last >= 0.5:
            self._last = now
            self._bar(self._share(), 1.0, self._text())
        return True

    def _on_training_end(self) -> None:
        self._bar(self._share(), 1.0, self._text(), last=True)
        self.close()

    def close(self) -> None:
        """Leave the progress bar, however training ended."""
        self._bar.__exit__(None, None, None)
