"""Guards of environments, plants and simulated worlds against concurrent use and copying."""

from __future__ import annotations

import copy
import copyreg
import functools
from collections.abc import Callable
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

from netbuf_gym import _core
from netbuf_gym.errors import CopyError

P = ParamSpec("P")
R = TypeVar("R")


class _HasEngine(Protocol):
    engine: Any


S = TypeVar("S", bound=_HasEngine)


def exclusive_method(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Wrap a method of an environment to raise `BusyError` while another thread is in a wrapped method."""

    def call_exclusively(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.engine.turn:
            return method(self, *args, **kwargs)

    functools.update_wrapper(call_exclusively, method)
    return call_exclusively


Turn = _core.Turn
"""Lock taken by `with turn:`, which raises `BusyError` if another thread holds it; `settle()` waits until none does."""


class Uncopyable:
    """Holder of a running world, which cannot be copied: `copy.copy`, `copy.deepcopy` and `pickle` raise `CopyError`."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise CopyError(
            f"a {type(self).__name__} holds running worlds, of which there are no copies; valid: make another, "
            "as gym.make(env.spec) does, or pass on the function that makes it (AsyncVectorEnv, SubprocVecEnv)"
        )


class CopiedUntilStarted(Uncopyable):
    """Environment whose copies and pickles are another one, made with the same arguments, until its worlds run.

    A copy has the specification, the random generators, the reward and the source of worlds of the original.
    """

    engine: Any
    _arguments: dict[str, Any]
    """Arguments of the constructor."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.engine.started:
            super().__reduce_ex__(protocol)
        kept = ("_spec", "_np_random", "_np_random_seed", "_generator", "_generators")
        own = {name: value for name, value in vars(self).items() if name in kept}
        return _make_again, (type(self), self._arguments, own, self.engine.reward_argument, self.engine.source)


def _make_again(cls: type, arguments: dict[str, Any], own: dict[str, Any], reward: Any, source: Any) -> Any:
    made = cls(**arguments)
    vars(made).update(copy.deepcopy(own))
    made.engine.set_reward(reward)
    made.engine.source = source
    return made


def separate_wrapper_copies() -> None:
    """Make copies of all wrapper classes defined so far hold a copy of the environment that they wrap, never share it.

    They are refused where the environment refuses. Copies of wrappers around anything else work as before.
    """
    import gymnasium as gym  # whose import has tasks registered, which need this module

    wrappers: list[type] = [gym.Wrapper, gym.vector.VectorWrapper]
    for wrapper in wrappers:
        copyreg.dispatch_table.setdefault(wrapper, _reduce_wrapper)
        wrappers += wrapper.__subclasses__()


def _reduce_wrapper(wrapper: Any) -> Any:
    reduced = wrapper.__reduce_ex__(4)
    inner = vars(wrapper).get("env")
    if inner is None or not isinstance(inner.unwrapped, Uncopyable):
        return reduced
    make, arguments, state, *rest = reduced
    return make, arguments, {**state, "env": copy.copy(inner)}, *rest
