"""What happens during training beside learning: limits, checkpoints, progress, episode statistics."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from netbuf_gym.progress import ProgressBar, duration, say


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
    """Progress on standard error, and once, on standard output, how long it will take.

    The estimate goes by whole rounds of collecting and learning, of which it wants `estimate_seconds`; what comes before
    learning starts (a replay buffer being filled) is faster and does not count.

    Args:
        total_timesteps: of the whole job.
        stop: the time limit, if there is one: the bar then shows whichever is nearer to its end.
        name: episode statistic shown beside the reward, where there is one.
    """

    def __init__(
        self, total_timesteps: int, stop: Stop, name: str, line_seconds: float = 15.0, estimate_seconds: float = 3.0
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
            if values:
                text += f", {label} {np.mean(values):.3f}"
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
            say(self._estimate((steps - self._measured_from[1]) / (now - self._measured_from[0])))

    def _estimate(self, rate: float) -> str:
        """What is left at this many steps a second, and whether steps or time end it."""
        left = (self.total_timesteps - self.model.num_timesteps) / rate
        text = f"{rate:,.0f} steps/s: "
        if self.stop.max_seconds is not None and self.stop.max_seconds - self.stop.seconds < left:
            seconds = max(0.0, self.stop.max_seconds - self.stop.seconds)
            steps = self.model.num_timesteps + rate * seconds
            return f"{text}about {duration(seconds)} left, by max_minutes, which comes to about {steps:,.0f} steps"
        return f"{text}about {duration(left)} left, for {self.total_timesteps:,} steps"

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
        """Leaves the terminal to others, however training ended."""
        self._bar.__exit__(None, None, None)
