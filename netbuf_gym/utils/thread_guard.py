"""What one thread at a time may use, and nobody may copy: environments, plants, simulated worlds."""

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


def one_at_a_time(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method of an environment that raises `BusyError` while another thread is in one of them."""

    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.engine.turn:
            return method(self, *args, **kwargs)

    functools.update_wrapper(guarded, method)
    return guarded


Turn = _core.Turn
"""`with turn:` takes it; `BusyError` where another thread has it. `settle()` waits until none has."""


class Unique:
    """Holds a world that runs, of which there is no copy: `copy.copy`, `copy.deepcopy` and `pickle` raise `CopyError`."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise CopyError(
            f"a {type(self).__name__} holds running worlds, of which there are no copies; valid: make another, "
            "as gym.make(env.spec) does, or pass on the function that makes it (AsyncVectorEnv, SubprocVecEnv)"
        )


def refuse_copies_of_wrapped() -> None:
    """Makes wrappers, of whatever class there is by now, refuse to be copied around what is `Unique`: they would share it.

    Around anything else they are copied as ever.
    """
    wrappers: list[type] = [gym.Wrapper, gym.vector.VectorWrapper]
    for wrapper in wrappers:
        copyreg.dispatch_table.setdefault(wrapper, _reduced)
        wrappers += wrapper.__subclasses__()


def _reduced(wrapper: Any) -> Any:
    inner = vars(wrapper).get("env")
    if inner is not None and isinstance(inner.unwrapped, Unique):
        inner.unwrapped.__reduce_ex__(4)
    return wrapper.__reduce_ex__(4)
