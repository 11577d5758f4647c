"""What happens during training beside learning: limits, checkpoints, progress, episode statistics."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm


class Interrupt:
    """Context in which the first SIGINT or SIGTERM only sets `received`; a second one acts as it always does."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def __exit__(self, *exception: object) -> None:
        self._restore()


class Stop(BaseCallback):
    """Ends training when interrupted, or when `max_seconds` are over (counting `seconds_before` of an earlier session).

    The clock starts when this is made.

    Attributes:
        seconds: of training, earlier sessions included.
        timed_out: whether the time limit ended it.
    """

    def __init__(self, interrupt: Interrupt, max_seconds: float | None, seconds_before: float = 0.0):
        super().__init__()
        self.interrupt, self.max_seconds, self.seconds_before = interrupt, max_seconds, seconds_before
        self.timed_out = False
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self._started

    def _on_step(self) -> bool:
        if self.max_seconds is not None:
            self.model.time_used = min(1.0, self.seconds / self.max_seconds)
            self.timed_out = self.model.time_used >= 1.0
        return not self.timed_out and self.interrupt.received is None


class Checkpoints(BaseCallback):
    """Calls `write` every `interval_seconds`, between an update and the next rollout."""

    def __init__(self, write: Callable[[], None], interval_seconds: float):
        super().__init__()
        self.write, self.interval_seconds = write, interval_seconds
        self._last = time.perf_counter()

    def _on_training_start(self) -> None:
        self._last = time.perf_counter()

    def _on_rollout_start(self) -> None:
        if time.perf_counter() - self._last >= self.interval_seconds:
            self.write()
            self._last = time.perf_counter()

    def _on_step(self) -> bool:
        return True


class EpisodeLog(BaseCallback):
    """Logs the mean of each named statistic over the last finished episodes, as `rollout/<name>`."""

    def __init__(self, names: tuple[str, ...]):
        super().__init__()
        self.names = names

    def _on_rollout_end(self) -> None:
        for name in self.names:
            values = [episode[name] for episode in self.model.ep_info_buffer if name in episode]
            if values and np.isfinite(values).any():
                self.logger.record(f"rollout/{name}", float(np.nanmean(values)))

    def _on_step(self) -> bool:
        return True


class Progress(BaseCallback):
    """A progress bar on standard error; where that is no terminal, a line every `line_seconds` instead.

    Args:
        total_timesteps: of the whole job.
        stop: the time limit, if there is one: the bar then shows whichever is nearer to its end.
        name: episode statistic shown beside the reward, where there is one.
    """

    def __init__(self, total_timesteps: int, stop: Stop, name: str, line_seconds: float = 15.0):
        super().__init__()
        self.total_timesteps, self.stop, self.name, self.line_seconds = total_timesteps, stop, name, line_seconds
        self._bar: tqdm | None = None
        self._last = 0.0

    def _share(self) -> float:
        share = self.model.num_timesteps / self.total_timesteps
        if self.stop.max_seconds is not None:
            share = max(share, self.stop.seconds / self.stop.max_seconds)
        return min(1.0, share)

    def _text(self) -> str:
        steps = self.model.num_timesteps - self.model._num_timesteps_at_start
        rate = steps / max(self.stop.seconds - self.stop.seconds_before, 1e-9)
        text = f"{self.model.num_timesteps / 1e6:.2f} M steps, {rate:,.0f}/s"
        episodes = self.model.ep_info_buffer or ()
        for name, label in (("r", "return"), (self.name, self.name)):
            values = [episode[name] for episode in episodes if name in episode]
            if values:
                text += f", {label} {np.mean(values):.3f}"
        return text

    def _on_training_start(self) -> None:
        self._last = time.perf_counter()
        if sys.stderr.isatty():
            form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining} {postfix}"
            self._bar = tqdm(total=1.0, desc="training", bar_format=form)

    def _on_step(self) -> bool:
        now = time.perf_counter()
        if now - self._last >= (0.5 if self._bar is not None else self.line_seconds):
            self._last = now
            self._show()
        return True

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(self._text(), refresh=False)
            self._bar.update(self._share() - self._bar.n)
        else:
            print(f"training {self._share():4.0%}  {self._text()}", file=sys.stderr, flush=True)

    def _on_training_end(self) -> None:
        self._show()
        if self._bar is not None:
            self._bar.close()
