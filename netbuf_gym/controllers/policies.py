"""Controllers independent of the task: random actions, a constant action, a function, a trained model."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from netbuf_gym.controllers.protocol import Decider, Policy, Rules
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.arguments import check_integer


class RandomAction(Decider):
    """Uniformly random actions, drawn anew each time: the least that any learned policy must beat.

    Each agent of a world has a generator of its own, seeded by the world's seed: worlds of other seeds have other actions, and
    those of a world do not depend on the worlds played beside it.

    Args:
        seed: Further seed of the generators, for other draws in the same worlds, 0 to 2**63 - 1.
    """

    name = "random"

    def __init__(self, seed: int = 0):
        self.seed = check_integer("seed", seed, 0, 2**63 - 1)

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        draw = _make_sampler(rules.action_space)
        streams = [np.random.default_rng((self.seed, seed, agent)) for seed in seeds for agent in range(rules.agents)]

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            return np.array([draw(stream) for stream in streams]), None

        return policy


def _make_sampler(space: gym.Space) -> Callable[[np.random.Generator], Any]:
    """Return the function by which a generator draws an action of a space."""
    if isinstance(space, gym.spaces.Discrete):
        return lambda stream: space.start + stream.integers(space.n)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return lambda stream: space.start + stream.integers(space.nvec)
    if isinstance(space, gym.spaces.MultiBinary):
        return lambda stream: stream.integers(2, size=space.shape, dtype=space.dtype)
    if isinstance(space, gym.spaces.Box) and space.dtype.kind == "f" and space.is_bounded():
        return lambda stream: stream.uniform(space.low, space.high).astype(space.dtype)
    valid = "Discrete, MultiDiscrete, MultiBinary and bounded Box of floats"
    raise ConfigError(f"action space {space} has no uniform distribution here; valid: {valid}")


class ConstantAction(Decider):
    """The same action at every decision.

    Args:
        action: An action of the space of the environment.
        name: Name in tables.
    """

    def __init__(self, action: Any, name: str = "constant"):
        self.action, self.name = action, name

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`.

        Raises:
            ConfigError: The space has no such action.
        """
        return constant_policy(self.action, rules, len(seeds))


def constant_policy(action: Any, rules: Rules, worlds: int) -> Policy:
    """Return a policy that always decides the same.

    Raises:
        ConfigError: The action is not in the rules' space.
    """
    space: Any = rules.action_space
    try:
        if np.asarray(action).dtype.kind == "b":
            raise TypeError
        value = np.asarray(action, space.dtype if np.asarray(action).dtype.kind != "f" or space.dtype.kind == "f" else None)
        fits = space.contains(value[()] if not space.shape else value)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ConfigError(f"action = {quote(action)} is not of the action space; valid: {space}")
    actions = np.repeat(value[None], worlds * rules.agents, axis=0)
    return lambda observations, state, starts: (actions, None)


class RulesWithKeepAction(Rules, Protocol):
    """Rules that say which action leaves things as they are."""

    @property
    def keep_action(self) -> Any: ...


class KeepAction(Decider[RulesWithKeepAction]):
    """The constant action that leaves everything as it is, or most nearly so."""

    name = "keep"

    def start(self, rules: RulesWithKeepAction, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`; raise ConfigError where no action keeps things as they are."""
        self._require_recipe(rules)
        return constant_policy(rules.keep_action, rules, len(seeds))


class Callback(Decider):
    """A function of the user's that decides.

    Args:
        function: Maps observations `(rows, ...)` to actions `(rows, ...)`. A stateful one is better written as a `Decider`.
        name: Name in tables.
        recipes: Recipes that the function supports; None: every recipe.
    """

    def __init__(self, function: Callable[[np.ndarray], Any], name: str = "callback", recipes: Sequence[str] | None = None):
        self.function, self.name = function, name
        self.recipes = None if recipes is None else tuple(recipes)

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        self._require_recipe(rules)
        return lambda observations, state, starts: (np.asarray(self.function(observations)), None)


class Model(Decider):
    """A trained model, used greedily.

    The model is any object with stable-baselines3's `predict(observations, state, episode_start, deterministic)`. The
    controller may be used in several threads: decisions are made one after the other.

    Args:
        model: The model; it must be trained by the same rules, which is not checked here
            (`netbuf_gym.training.checkpoints.saved_agent.SavedAgent` does).
        name: Name in tables.
        recipes: Recipes that the model supports; None: every recipe.
    """

    def __init__(self, model: Any, name: str = "model", recipes: Sequence[str] | None = None):
        self.model, self.name = model, name
        self.recipes = None if recipes is None else tuple(recipes)

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        self._require_recipe(rules)
        lock = lock_of(self.model)

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            with lock:
                actions, state = self.model.predict(observations, state=state, episode_start=starts, deterministic=True)
                return np.array(actions), copy.deepcopy(state)

        return policy


_LOCKS: weakref.WeakKeyDictionary[Any, threading.Lock] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def lock_of(model: Any) -> threading.Lock:
    """Return the lock of a model, shared by all of its users.

    Models keep the decision in progress in themselves (stable-baselines3's keep their distributions of actions), so that two
    threads in one model would get each other's decisions.
    """
    with _LOCK:
        try:
            return _LOCKS.setdefault(model, threading.Lock())
        except TypeError:  # neither hashable nor weakly referenced
            return _LOCK_OF_OTHERS


_LOCK_OF_OTHERS = threading.Lock()
