"""Factories of named scenarios, derived from a record or a function that documents and types their arguments once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, TypeVar

from netbuf_gym.errors import ConfigError

Made = TypeVar("Made")
Resolve = Callable[[Any, Any], tuple[Any, ...]]
"""(n, senders) -> congestion controls of the senders; each of the two may be None."""

_BY_NUMBER = ("n", "senders")


def derive_factory(
    make: Callable[..., Made],
    summary: str,
    *,
    like: Callable[..., Any] | None = None,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
    fixed: Mapping[str, Any] | None = None,
    resolve: Resolve | None = None,
    **defaults: Any,
) -> Callable[..., Made]:
    """Return a function that makes worlds from keyword arguments, with a signature of its own.

    Args:
        make: Class or function that makes the worlds; its named arguments are the factory's.
        summary: Docstring of the factory: its first line describes the scenario, entries under "Args:" describe arguments that
            mean something else than in `GLOSSARY`.
        like: Class or function that has the arguments which `make` takes as `**kwargs`; None: there are none.
        only: Names of the arguments of `like`, or without it of `make`, that the factory has; None: all.
        without: Names of arguments that the factory does not have.
        fixed: Values of arguments that the factory does not have either.
        resolve: Function for scenarios whose senders are given by number, by congestion controls, or by both: the factory has
            the arguments `n` and `senders`, and `make` gets `senders`. None: `senders` is an argument as any other.
        defaults: Defaults that differ from those of `make` and `like`.

    Raises:
        ConfigError: A name that is no argument of `make` or `like`.
    """
    own, fixed = _list_arguments(make), dict(fixed or {})
    others = {} if like is None else _list_arguments(like)
    others = {name: parameter for name, parameter in others.items() if name not in own}
    for name in (*defaults, *fixed, *(only or ()), *without):
        if name not in own and name not in others:
            raise ConfigError(f"{name!r} is no argument of {make}; valid: {', '.join((*own, *others))}")
    selected = own if like is None else others
    dropped = {name for name in selected if only is not None and name not in only} | {*without, *fixed}
    if resolve is not None:
        dropped |= set(_BY_NUMBER)
    offered = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name, known.default), annotation=known.annotation
        )
        for name, known in {**own, **others}.items()
        if name not in dropped
    ]
    if resolve is not None:
        offered = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in _BY_NUMBER] + offered
    signature = inspect.Signature(offered)

    def factory(**given: Any) -> Made:
        signature.bind(**given)  # raises TypeError for an unknown name
        chosen = {**defaults, **given}
        if resolve is not None:
            chosen["senders"] = resolve(chosen.pop("n", None), chosen.pop("senders", None))
        return make(**chosen, **fixed)

    factory.__doc__ = summary
    factory.__signature__ = signature  # type: ignore[attr-defined]
    return factory


@cache
def _list_arguments(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return list_named(inspect.signature(function))


def list_named(signature: inspect.Signature) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function that can be given by name."""
    named = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return {name: parameter for name, parameter in signature.parameters.items() if parameter.kind in named}
