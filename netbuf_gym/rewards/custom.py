"""Rewards of one's own, telemetry in and terms out, as environments call them."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.rewards.telemetry import MadeUp, MissingTelemetry, Telemetry

SIGNATURE = "(telemetry) -> {term: (rows,)} or (rows,)"


class OwnReward:
    """A rule, telemetry in and terms out, as the engine calls its rewards.

    Args:
        rule: `(telemetry) -> terms`; see `netbuf_gym.rewards`. It is copied.
        telemetry: what it is given.

    Attributes:
        rule: the copy; whatever it remembers is this environment's.
        name: of the reward.
        terms: the names of its terms, in the order of `out`.

    Raises:
        ConfigError: it is no such rule, or needs what `telemetry` does not have. A call raises it for terms of other names or
            shapes, or that are not finite where something was measured.
    """

    def __init__(self, rule: Any, telemetry: Telemetry):
        self.name = name_of(rule)
        parameters_of(rule, self.name)
        self.terms = declared(rule, "terms", self.name)
        telemetry._asked_by = self.name
        requires = declared(rule, "requires", self.name)
        telemetry.require(requires, self.name)
        if not (self.terms and requires):
            self._try(rule, telemetry)
        self.rule = copied(rule, self.name)
        self._telemetry = telemetry

    def __repr__(self) -> str:
        return f"OwnReward({self.name!r}, terms={self.terms})"

    def __call__(self, tracker: Any, out: np.ndarray) -> None:
        """Writes the terms, `(number of terms, rows)`; the tracker is that of the telemetry."""
        self._write(self.rule(self._telemetry), out)
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(np.add.reduce(out, axis=0))
        if not finite.all():
            self._require_finite(tracker, out)

    def _try(self, rule: Any, telemetry: Telemetry) -> None:
        """Calls a copy once with made-up telemetry: what it lacks, and which terms it gives."""
        made_up, given = MadeUp(telemetry, strict=False), None
        try:
            given = self._called(rule, made_up)
        except Exception:
            if not made_up.lacking:
                raise
        if made_up.lacking:  # unless it does without
            try:
                given = self._called(rule, MadeUp(telemetry, strict=True))
            except MissingTelemetry:
                telemetry.require(dict.fromkeys(made_up.lacking), self.name)
                raise
        if not self.terms:
            self.terms = tuple(given) if isinstance(given, Mapping) else (self.name,)
            check_names("term", self.terms, self.name)
        self._write(given, np.empty((len(self.terms), telemetry.rows), np.float32))

    def _called(self, rule: Any, telemetry: Telemetry) -> Any:
        try:
            with np.errstate(all="ignore"):
                return copied(rule, self.name)(telemetry)
        except ConfigError:
            raise
        except Exception as error:
            what = f"reward {self.name!r} cannot be called with made-up telemetry (1 everywhere, {telemetry.rows} rows)"
            raise ConfigError(f"{what}: {type(error).__name__}: {error}; valid: {SIGNATURE}") from error

    def _write(self, given: Any, out: np.ndarray) -> None:
        """Terms into `out`, whatever form they have."""
        if not isinstance(given, Mapping):
            if len(self.terms) != 1:
                raise ConfigError(f"reward {self.name!r} gave {shown(given)}; valid: a dict of terms {', '.join(self.terms)}")
            return self._put(given, out[0], self.name)
        if len(given) != len(self.terms) or any(term not in given for term in self.terms):
            odd = ", ".join(map(str, given)) or "none"
            raise ConfigError(f"reward {self.name!r} gave terms {odd}; valid: {', '.join(self.terms)}, each time")
        for term, row in zip(self.terms, out, strict=True):
            self._put(given[term], row, term)

    def _put(self, value: Any, row: np.ndarray, term: str) -> None:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:  # lists of several lengths, tensors that do not let go
            raise ConfigError(f"{self._of(term)} is {shown(value)}; valid: finite numbers") from error
        if array.dtype.kind not in "fiubO" or (array.dtype.kind == "O" and not array.ndim):
            raise ConfigError(f"{self._of(term)} is {shown(value)}; valid: {self._wanted(row)}")
        if array.shape != row.shape:
            raise ConfigError(f"{self._of(term)} has shape {array.shape}; valid: {row.shape}, a number for each agent")
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                row[...] = array
        except (TypeError, ValueError):
            raise ConfigError(f"{self._of(term)} is {shown(value)}; valid: finite numbers") from None

    def _require_finite(self, tracker: Any, out: np.ndarray) -> None:
        """Raises ConfigError for what is not finite, but of agents of which nothing was measured, which counts as 0."""
        unmeasured = np.isnan(tracker.now).all(axis=0)
        for term, row in zip(self.terms, out, strict=True):
            wrong = ~np.isfinite(row) & ~unmeasured
            if wrong.any():
                at = int(np.argmax(wrong))
                hint = " (telemetry.now is NaN where an interval measured nothing)" if np.isnan(row[at]) else ""
                raise ConfigError(f"{self._of(term)} is {row[at]} of row {at}; valid: finite numbers{hint}")
        out[:, unmeasured] = 0
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(np.add.reduce(out, axis=0))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ConfigError(f"reward {self.name!r} is more than float32 holds, of row {at}: its terms are {out[:, at]}")

    def _wanted(self, row: np.ndarray) -> str:
        return f"finite numbers {row.shape}, one for each agent, or a dict of such"

    def _of(self, term: str) -> str:
        return f"reward {self.name!r}" if term == self.name else f"term {term!r} of reward {self.name!r}"


def fitted(reward: Any, telemetry: Telemetry) -> Any:
    """A reward as an engine calls it, `(tracker, out)` with `name` and `terms`: a copy that is this engine's own.

    Raises:
        ConfigError: it is no reward, or needs what the task does not have; the message names all that lacks.
    """
    if not writes(reward):
        return OwnReward(reward, telemetry)
    name = name_of(reward)
    if not declared(reward, "terms", name):
        raise ConfigError(f"reward {name!r} has no terms; valid: their names, as it writes them into `out`")
    requires = declared(reward, "requires", name)
    telemetry.require(requires, name)
    own = copied(reward, name)
    if not requires:
        try:
            with np.errstate(all="ignore"):
                copied(reward, name)(telemetry._tracker, np.zeros((len(reward.terms), telemetry.rows), np.float32))
        except (KeyError, AttributeError) as error:
            lacks = getattr(error, "name", None) or error.args[0]
            raise MissingTelemetry(telemetry._lacks(name, [lacks])) from error
    return own


def writes(reward: Any) -> bool:
    """Whether a reward is of the form `(tracker, out)`, in which tasks have theirs: it writes its terms in place."""
    try:
        parameters = list(inspect.signature(reward).parameters)
    except (TypeError, ValueError):
        return False
    return len(parameters) == 2 and parameters[1] == "out"


def name_of(rule: Any) -> str:
    """What a reward is called: its own `name`, or that of the function or class; ConfigError for one that is no string."""
    name = getattr(rule, "name", None)
    if name is None:
        inner = innermost(rule)
        name = "reward" if nameless(rule) else getattr(inner, "__name__", type(inner).__name__)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"name of reward {shown(rule)} = {shown(name)}; valid: a string, not empty")
    return name


def innermost(rule: Any) -> Any:
    """The function within partial ones."""
    while isinstance(rule, functools.partial):
        rule = rule.func
    return rule


def nameless(rule: Any) -> bool:
    """Whether it is a lambda."""
    return getattr(innermost(rule), "__name__", "") == "<lambda>"


def declared(rule: Any, what: str, name: str) -> tuple[str, ...]:
    """What a rule says of itself under the name `what`, a tuple of names, () where it says nothing."""
    names = getattr(rule, what, None)
    if names is None or names == ():
        return ()
    if isinstance(names, str) or not isinstance(names, (tuple, list)):
        raise ConfigError(f"{what} of reward {name!r} = {shown(names)}; valid: a tuple of names")
    check_names(what.removesuffix("s"), names, name)
    return tuple(names)


def check_names(what: str, names: Any, reward: str) -> None:
    """Raises ConfigError unless there are names, strings that are not empty, no two alike."""
    if not len(names):
        raise ConfigError(f"reward {reward!r} gave no terms; valid: at least one")
    for one in names:
        if not isinstance(one, str) or not one:
            raise ConfigError(f"a {what} of reward {reward!r} is {shown(one)}; valid: a string, not empty")
    if len(set(names)) != len(names):
        raise ConfigError(f"{what}s of reward {reward!r} = {shown(list(names))}; valid: no two alike")


def parameters_of(rule: Any, name: str, before: int = 1) -> list[inspect.Parameter]:
    """The parameters of a rule, or of the class of one, after the first `before`, which is the telemetry.

    Raises:
        ConfigError: it takes no telemetry, or one of them has no default.
    """
    try:
        parameters = list(inspect.signature(rule).parameters.values())
    except (TypeError, ValueError):  # built in, without a signature
        return []
    if before and (not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)):
        raise ConfigError(f"reward {name!r} has no first parameter for the telemetry; valid: {SIGNATURE}")
    for one in parameters[before:]:
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            valid = f"{one.name}=..., or functools.partial(reward, {one.name}=...)"
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} has no default; valid: {valid}")
    return parameters[before:]


def copied(rule: Any, name: str) -> Any:
    """A copy that shares nothing with another environment's; functions have no copies."""
    try:
        return copy.deepcopy(rule)
    except Exception as error:
        what = f"reward {name!r} cannot be copied ({type(error).__name__}: {error}), and no two environments share one"
        raise ConfigError(f"{what}; valid: an object that copy.deepcopy takes, or a function") from error
