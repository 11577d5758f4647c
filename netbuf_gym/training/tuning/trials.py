"""A training of a trial: as `netbuf-gym train` does it, but part by part, with the model judged between the parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from omegaconf import DictConfig
from stable_baselines3.common.logger import Logger

from netbuf_gym.training import callbacks, curriculum, learning
from netbuf_gym.training.callbacks import Interrupt, Stop
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints import learner_state as moments
from netbuf_gym.training.environment import env_kwargs, make_worlds
from netbuf_gym.training.train import begin, described, diverging


class InterruptedTrial(Exception):
    """A signal came."""


class _Part(Stop):
    """Ends a part of a training at so many steps, or when interrupted; `alive` is called now and then."""

    def __init__(self, interrupt: Interrupt, alive: Callable[[], None]):
        super().__init__(interrupt, None)
        self.alive, self.until = alive, 0

    @property
    def interrupted(self) -> bool:
        return False  # what was learned is given up, and no moment to go on from is wanted

    def now(self) -> bool:
        self.alive()
        return self.model.num_timesteps >= self.until or self.interrupt.received is not None

    def goes_on(self) -> bool:
        return True


class _Boundaries(learning.Boundaries):
    """Keeps no moments."""

    def __init__(self, stop: _Part):
        self._ours = stop
        super(learning.Boundaries, self).__init__()
        self.stop, self.iterations, self.timesteps, self.kept = stop, 0, 0, None

    def _on_training_start(self) -> None:
        pass

    def _on_rollout_start(self) -> None:
        self.timesteps = self.model.num_timesteps


class Training:
    """One seed of a trial.

    Several may take turns: each has its random generators to itself, and learns what `netbuf-gym train` would teach it.

    Args:
        config: of the training.
        interrupt: what ends it early.
        alive: is called now and then.

    Raises:
        ConfigError, ScenarioError: as `netbuf-gym train` does.
    """

    def __init__(self, config: DictConfig, interrupt: Interrupt, alive: Callable[[], None] = lambda: None):
        self.config, self.interrupt = config, interrupt
        kwargs = env_kwargs(config)
        self.worlds = make_worlds(config.env.id, config.env.num_envs, config.env.threads, kwargs)
        try:
            self.model, recorder = begin(config, self.worlds)
        except BaseException:
            self.worlds.close()
            raise
        self.model.set_logger(Logger(None, []))
        self._env = described(self.model, config, kwargs)
        self._part = _Part(interrupt, alive)
        self._boundaries = _Boundaries(self._part)
        follow = curriculum.follow(config, recorder.set_stage)
        self._stages = [callbacks.Stages(config.total_timesteps, self._part, follow)] if config.curriculum else []
        self._generators = moments.generators()

    def go_on(self, timesteps: int) -> None:
        """Learns until it has done so many steps, by the schedules of the whole training.

        Raises:
            DivergedError: its numbers became infinite or NaN.
            InterruptedTrial: a signal came.
        """
        moments.set_generators(self._generators)
        self._part.until = timesteps
        fresh = self.model.num_timesteps == 0
        with diverging():
            learning.learn(self.model, self.config.total_timesteps, self._boundaries, self._stages, fresh)
        self._generators = moments.generators()
        if self.interrupt.received is not None:
            raise InterruptedTrial

    @property
    def learned(self) -> bool:
        """Whether its networks have been changed at all."""
        return self.model._n_updates > 0

    def write(self, path: Path) -> None:
        """Writes the model as it is now."""
        progress = {"timesteps": self.model.num_timesteps, "seconds": 0.0, "updates": self.model._n_updates, "finished": False}
        checkpoint.save(path, self.model, self.config, self._env, progress)

    def close(self) -> None:
        """Ends its worlds."""
        self.worlds.close()
