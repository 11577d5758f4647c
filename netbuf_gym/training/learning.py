"""The loop of learning: as each learner's own `learn`, but it can be left and gone on with between any two updates.

Between an update and the next rollout a learner is a `Moment`, from which it goes on bit for bit. Checkpoints are of such
moments. An interruption waits for the next one where that takes no time; where rollouts and updates are long, the last
one is kept, and the learner is put back to it.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from typing import cast

import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq

from netbuf_gym.integrations.normalizing import UpdateStatistics
from netbuf_gym.training.algorithms.ppo import DivergedError
from netbuf_gym.training.callbacks import ProgressCsv, Stop
from netbuf_gym.training.checkpoints import learner_state as moments
from netbuf_gym.training.checkpoints.learner_state import Moment
from netbuf_gym.training.checkpoints.replay import Recorder
from netbuf_gym.training.models import worlds_of

LONG_SECONDS = 1.0
"""An update and its rollout that take longer are not waited for when training is interrupted."""
ROWS = 100
"""What a run logs at least, where it has as many rollouts."""
ROW_STEPS = 50_000
"""The most that a row is for, unless one rollout is longer."""


class HaltedError(Exception):
    """Training is to end, in the middle of an update."""


class Boundaries(BaseCallback):
    """Takes the learner's moments: calls `write` with one every `interval_seconds`, and keeps the last one if need be.

    Attributes:
        kept: what an interruption goes back to; None: it waits for the next moment.
        timesteps: at the last moment.
        iterations: rollouts so far, earlier sessions included.
    """

    def __init__(
        self,
        stop: Stop,
        recorder: Recorder,
        log: ProgressCsv,
        write: Callable[[Moment], object],
        interval_seconds: float,
        iterations: int = 0,
    ):
        super().__init__()
        self.stop, self.recorder, self.log, self.write = stop, recorder, log, write
        self.interval_seconds, self.iterations = interval_seconds, iterations
        self.kept: Moment | None = None
        self.timesteps = 0
        self._written = self._began = time.perf_counter()
        self._long = True  # nothing is known of the first one

    def moment(self, networks: bool = False) -> Moment:
        """The learner's, now."""
        moment = moments.take(self.model, self.recorder, networks)
        moment.numbers |= {"iterations": self.iterations, "rows": self.log.rows}
        return moment

    def _on_training_start(self) -> None:
        self._written = self._began = time.perf_counter()

    def _on_rollout_start(self) -> None:
        now = time.perf_counter()
        if self.iterations and self.timesteps:
            self._long = now - self._began > LONG_SECONDS
        self._began, self.timesteps = now, self.model.num_timesteps
        due = now - self._written >= self.interval_seconds
        keep = self._long and isinstance(self.model, OnPolicyAlgorithm)
        moment = self.moment(keep) if due or keep else None
        self.kept = moment if keep else None
        self.stop.at_once = keep
        if due and moment is not None:
            self.write(moment)
            self._written = time.perf_counter()

    def _on_step(self) -> bool:
        return True


def learn(
    model: BaseAlgorithm,
    total_timesteps: int,
    boundaries: Boundaries,
    callbacks: Sequence[BaseCallback],
    fresh: bool,
) -> Moment | None:
    """Trains to `total_timesteps`, the whole job's, or until `boundaries.stop` says so.

    Args:
        fresh: nothing was learned before.

    Returns:
        The moment to go on from, if training was interrupted: the model is then as it was there.

    Raises:
        DivergedError: parameters are no longer finite.
    """
    stop = boundaries.stop
    # statistics go last, so that a model which is written at a boundary has those of its weights
    parts = CallbackList([stop, *callbacks, boundaries, UpdateStatistics()])
    if not fresh:
        total_timesteps -= model.num_timesteps
    total_timesteps, callback = model._setup_learn(total_timesteps, parts, fresh, "run", False)
    _follow_time(model, stop)
    callback.on_training_start(locals(), globals())
    hook = model.policy.optimizer.register_step_pre_hook(lambda *_: _halt(stop))
    between = True
    try:
        if isinstance(model, OnPolicyAlgorithm):
            between = _rollouts(model, total_timesteps, callback, boundaries)
        else:
            between = _memories(cast(OffPolicyAlgorithm, model), total_timesteps, callback, boundaries)
    except HaltedError:
        between = False
    finally:
        hook.remove()
        del model._update_current_progress_remaining
    callback.on_training_end()
    if stop.interrupted and not stop.timed_out and model.num_timesteps < total_timesteps:
        if between:
            return boundaries.moment()
        kept = cast(Moment, boundaries.kept)  # or nothing would have ended in the middle
        moments.put_back(kept, model)
        return kept
    if not all(th.isfinite(one).all() for one in model.policy.parameters()):
        raise DivergedError("training diverged: a smaller learning rate may help")
    return None


def _rollouts(model: OnPolicyAlgorithm, total: int, callback: BaseCallback, boundaries: Boundaries) -> bool:
    """As `OnPolicyAlgorithm.learn`; returns whether it ended between an update and a rollout."""
    interval = log_interval(model, total)
    while model.num_timesteps < total and not boundaries.stop.now():
        if not model.collect_rollouts(worlds_of(model), callback, model.rollout_buffer, n_rollout_steps=model.n_steps):
            if boundaries.stop.timed_out:
                model.num_timesteps = boundaries.timesteps  # nothing was learned from the rest
            return False
        boundaries.iterations += 1
        model._update_current_progress_remaining(model.num_timesteps, total)
        if boundaries.iterations % interval == 0:
            model.dump_logs(boundaries.iterations)
        model.train()
    return True


def _memories(model: OffPolicyAlgorithm, total: int, callback: BaseCallback, boundaries: Boundaries) -> bool:
    """As `OffPolicyAlgorithm.learn`; returns whether it ended between an update and a rollout."""
    interval = _usual_log_interval(model)
    while model.num_timesteps < total and not boundaries.stop.now():
        rollout = model.collect_rollouts(
            worlds_of(model),
            train_freq=cast(TrainFreq, model.train_freq),
            action_noise=model.action_noise,
            callback=callback,
            learning_starts=model.learning_starts,
            replay_buffer=cast(ReplayBuffer, model.replay_buffer),
            log_interval=interval,
        )
        if not rollout.continue_training:
            return False
        boundaries.iterations += 1
        if model.num_timesteps > model.learning_starts:
            steps = model.gradient_steps if model.gradient_steps >= 0 else rollout.episode_timesteps
            if steps > 0:
                model.train(batch_size=model.batch_size, gradient_steps=steps)
    return True


def log_interval(model: OnPolicyAlgorithm, total: int) -> int:
    """How many rollouts a row of the log is for: as many as is usual for the learner, unless a run had fewer than `ROWS` rows.

    What is usual is meant for few worlds: with 256 of them A2C's hundred rollouts are 200,000 steps. A row is for
    `ROW_STEPS` at most: a run that ends by time has some, too.
    """
    steps = model.n_steps * model.n_envs
    return max(1, min(_usual_log_interval(model), total // steps // ROWS, ROW_STEPS // steps))


def _usual_log_interval(model: BaseAlgorithm) -> int:
    return inspect.signature(type(model).learn).parameters["log_interval"].default


def _halt(stop: Stop) -> None:
    if not stop.goes_on():
        raise HaltedError


def _follow_time(model: BaseAlgorithm, stop: Stop) -> None:
    """Makes schedules follow a time limit where it is ahead of the steps."""
    by_steps = type(model)._update_current_progress_remaining

    def update(num_timesteps: int, total_timesteps: int) -> None:
        by_steps(model, num_timesteps, total_timesteps)
        left = 1.0 - stop.time_used()
        model._current_progress_remaining = max(0.0, min(model._current_progress_remaining, left))

    vars(model)["_update_current_progress_remaining"] = update
