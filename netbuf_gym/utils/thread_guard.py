"""Guards of environments, plants and simulated worlds against concurrent use and copying."""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Callable
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

import gymnasium as gym

from netbuf_gym import _core
from netbuf_gym.errors import CopyError

P = ParamSpec("P")
R = TypeVar("R")


class _HasEngine(Protocol):
    engine: Any


S = TypeVar("S", bound=_HasEngine)


def exclusive_method(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Wrap a method of an environment to raise `BusyError` while another thread is in a wrapped method."""

    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.engine.turn:
            return method(self, *args, **kwargs)

    functools.update_wrapper(guarded, method)
    return guarded


Turn = _core.Turn
"""Lock taken by `with turn:`, which raises `BusyError` if another thread holds it; `settle()` waits until none does."""


class Uncopyable:
    """Holder of a running world, which cannot be copied: `copy.copy`, `copy.deepcopy` and `pickle` raise `CopyError`."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise CopyError(
            f"a {type(self).__name__} holds running worlds, of which there are no copies; valid: make another, "
            "as gym.make(env.spec) does, or pass on the function that makes it (AsyncVectorEnv, SubprocVecEnv)"
        )


def forbid_wrapper_copies() -> None:
    """Make all wrapper classes defined so far refuse to be copied around a `Uncopyable` object, which copies would share.

    Copies of wrappers around anything else work as before.
    """
    wrappers: list[type] = [gym.Wrapper, gym.vector.VectorWrapper]
    for wrapper in wrappers:
        copyreg.dispatch_table.setdefault(wrapper, _reduce_wrapper)
        wrappers += wrapper.__subclasses__()


def _reduce_wrapper(wrapper: Any) -> Any:
    inner = vars(wrapper).get("env")
    if inner is not None and isinstance(inner.unwrapped, Uncopyable):
        inner.unwrapped.__reduce_ex__(4)
    return wrapper.__reduce_ex__(4)
