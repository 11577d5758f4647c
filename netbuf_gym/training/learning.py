"""Learning loop: that of each learner's own `learn`, but resumable between any two updates.

Between an update and the next rollout the learner's state is a `Moment`, from which training resumes bit for bit; checkpoints
hold such moments. An interruption waits for the next moment if that is near; if rollouts and updates are long, the last
moment is kept, and the learner is reset to it.
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
from netbuf_gym.training.callbacks import ProgressCsv, StopCondition
from netbuf_gym.training.checkpoints import learner_state as moments
from netbuf_gym.training.checkpoints.learner_state import Moment
from netbuf_gym.training.checkpoints.replay import EpisodeRecorder
from netbuf_gym.training.models import get_worlds

LONG_SECONDS = 1.0
"""Duration of an update and its rollout above which an interruption does not wait for their end."""
MIN_LOG_ROWS = 100
"""Minimum number of rows in a run's log, where it has as many rollouts."""
MAX_STEPS_PER_ROW = 50_000
"""Maximum number of steps per row, unless one rollout is longer."""


class HaltedError(Exception):
    """Training is to end, in the middle of an update."""


class MomentKeeper(BaseCallback):
    """Takes the learner's moments: writes one every `interval_seconds`, and keeps the last one where rollouts are long.

    Attributes:
        kept: Moment that an interruption returns to; None: the interruption waits for the next moment.
        timesteps: Timesteps at the last moment.
        iterations: Rollouts so far, earlier sessions included.
    """

    def __init__(
        self,
        stop: StopCondition,
        recorder: EpisodeRecorder,
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
        self._long = True  # assumed of the first one

    def take_moment(self, networks: bool = False) -> Moment:
        """Take the learner's current moment."""
        moment = moments.take_moment(self.model, self.recorder, networks)
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
        moment = self.take_moment(keep) if due or keep else None
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
    boundaries: MomentKeeper,
    callbacks: Sequence[BaseCallback],
    fresh: bool,
) -> Moment | None:
    """Train to `total_timesteps` of the whole job, or until `boundaries.stop` ends it.

    Args:
        model: Learner.
        total_timesteps: Timesteps of the whole job.
        boundaries: Callback that takes the moments.
        callbacks: Further callbacks.
        fresh: Whether nothing was learned before.

    Returns:
        The moment to resume from, if training was interrupted: the model is then as it was there.

    Raises:
        DivergedError: Parameters are no longer finite.
    """
    stop = boundaries.stop
    # statistics last, so that a model written at a boundary has the statistics of its weights
    parts = CallbackList([stop, *callbacks, boundaries, UpdateStatistics()])
    if not fresh:
        total_timesteps -= model.num_timesteps
    total_timesteps, callback = model._setup_learn(total_timesteps, parts, fresh, "run", False)
    _make_schedules_follow_time(model, stop)
    callback.on_training_start(locals(), globals())
    hook = model.policy.optimizer.register_step_pre_hook(lambda *_: _raise_if_halted(stop))
    between = True
    try:
        if isinstance(model, OnPolicyAlgorithm):
            between = _learn_on_policy(model, total_timesteps, callback, boundaries)
        else:
            between = _learn_off_policy(cast(OffPolicyAlgorithm, model), total_timesteps, callback, boundaries)
    except HaltedError:
        between = False
    finally:
        hook.remove()
        del model._update_current_progress_remaining
    callback.on_training_end()
    if stop.interrupted and not stop.timed_out and model.num_timesteps < total_timesteps:
        if between:
            return boundaries.take_moment()
        kept = cast(Moment, boundaries.kept)  # set whenever an update or rollout is cut short
        moments.restore_learner(kept, model)
        return kept
    if not all(th.isfinite(one).all() for one in model.policy.parameters()):
        raise DivergedError("training diverged: a smaller learning rate may help")
    return None


def _learn_on_policy(model: OnPolicyAlgorithm, total: int, callback: BaseCallback, boundaries: MomentKeeper) -> bool:
    """Run the loop of `OnPolicyAlgorithm.learn`; return whether it ended between an update and a rollout."""
    interval = choose_log_interval(model, total)
    while model.num_timesteps < total and not boundaries.stop.should_stop():
        if not model.collect_rollouts(get_worlds(model), callback, model.rollout_buffer, n_rollout_steps=model.n_steps):
            if boundaries.stop.timed_out:
                model.num_timesteps = boundaries.timesteps  # the rest was not learned from
            return False
        boundaries.iterations += 1
        model._update_current_progress_remaining(model.num_timesteps, total)
        if boundaries.iterations % interval == 0:
            model.dump_logs(boundaries.iterations)
        model.train()
    return True


def _learn_off_policy(model: OffPolicyAlgorithm, total: int, callback: BaseCallback, boundaries: MomentKeeper) -> bool:
    """Run the loop of `OffPolicyAlgorithm.learn`; return whether it ended between an update and a rollout."""
    interval = _read_default_log_interval(model)
    while model.num_timesteps < total and not boundaries.stop.should_stop():
        rollout = model.collect_rollouts(
            get_worlds(model),
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


def choose_log_interval(model: OnPolicyAlgorithm, total: int) -> int:
    """Return the number of rollouts per row of the log: the learner's default, or fewer for at least `MIN_LOG_ROWS` rows.

    Defaults are meant for few worlds: with 256 of them A2C's hundred rollouts are 200,000 steps. A row covers at most
    `MAX_STEPS_PER_ROW`, so that runs which end by time have some rows, too.
    """
    steps = model.n_steps * model.n_envs
    return max(1, min(_read_default_log_interval(model), total // steps // MIN_LOG_ROWS, MAX_STEPS_PER_ROW // steps))


def _read_default_log_interval(model: BaseAlgorithm) -> int:
    return inspect.signature(type(model).learn).parameters["log_interval"].default


def _raise_if_halted(stop: StopCondition) -> None:
    if not stop.may_continue():
        raise HaltedError


def _make_schedules_follow_time(model: BaseAlgorithm, stop: StopCondition) -> None:
    """Make schedules follow a time limit where it is ahead of the steps."""
    by_steps = type(model)._update_current_progress_remaining

    def update(num_timesteps: int, total_timesteps: int) -> None:
        by_steps(model, num_timesteps, total_timesteps)
        left = 1.0 - stop.time_used()
        model._current_progress_remaining = max(0.0, min(model._current_progress_remaining, left))

    vars(model)["_update_current_progress_remaining"] = update
