"""Custom rewards, telemetry in and terms out, in the form that the engine calls."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.rewards.telemetry import MadeUpTelemetry, MissingTelemetry, Telemetry

SIGNATURE = "(telemetry) -> {term: (rows,)} or (rows,)"


class OwnReward:
    """Custom reward rule, telemetry in and terms out, in the form that the engine calls.

    Args:
        rule: `(telemetry) -> terms`; see `netbuf_gym.rewards`. It is copied.
        telemetry: Telemetry passed to the rule.

    Attributes:
        rule: The copy, whose state belongs to this environment.
        name: Name of the reward.
        terms: Names of its terms, in the order of `out`.

    Raises:
        ConfigError: The rule is not of this form, or needs what `telemetry` does not have. A call raises it for terms of other
            names or shapes, or that are not finite where something was measured.
    """

    def __init__(self, rule: Any, telemetry: Telemetry):
        self.name = get_reward_name(rule)
        get_parameters(rule, self.name)
        self.terms = get_declared_names(rule, "terms", self.name)
        telemetry._asked_by = self.name
        requires = get_declared_names(rule, "requires", self.name)
        telemetry.require(requires, self.name)
        if not (self.terms and requires):
            self._try_rule(rule, telemetry)
        self.rule = copy_rule(rule, self.name)
        self._telemetry = telemetry

    def __repr__(self) -> str:
        return f"OwnReward({self.name!r}, terms={self.terms})"

    def __call__(self, tracker: Any, out: np.ndarray) -> None:
        """Write the terms into `out`, `(number of terms, rows)`; `tracker` is that of the telemetry."""
        self._write(self.rule(self._telemetry), out)
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(np.add.reduce(out, axis=0))
        if not finite.all():
            self._require_finite(tracker, out)

    def _try_rule(self, rule: Any, telemetry: Telemetry) -> None:
        """Call a copy once with made-up telemetry to find missing telemetry and the names of the terms."""
        made_up, given = MadeUpTelemetry(telemetry, strict=False), None
        try:
            given = self._call_copy(rule, made_up)
        except Exception:
            if not made_up.missing:
                raise
        if made_up.missing:  # refused only if the rule cannot do without
            try:
                given = self._call_copy(rule, MadeUpTelemetry(telemetry, strict=True))
            except MissingTelemetry:
                telemetry.require(dict.fromkeys(made_up.missing), self.name)
                raise
        if not self.terms:
            self.terms = tuple(given) if isinstance(given, Mapping) else (self.name,)
            check_names("term", self.terms, self.name)
        self._write(given, np.empty((len(self.terms), telemetry.rows), np.float32))

    def _call_copy(self, rule: Any, telemetry: Telemetry) -> Any:
        try:
            with np.errstate(all="ignore"):
                return copy_rule(rule, self.name)(telemetry)
        except ConfigError:
            raise
        except Exception as error:
            what = f"reward {self.name!r} cannot be called with made-up telemetry (1 everywhere, {telemetry.rows} rows)"
            raise ConfigError(f"{what}: {type(error).__name__}: {error}; valid: {SIGNATURE}") from error

    def _write(self, given: Any, out: np.ndarray) -> None:
        """Write terms of either form, a dict or an array, into `out`."""
        if not isinstance(given, Mapping):
            if len(self.terms) != 1:
                raise ConfigError(f"reward {self.name!r} gave {quote(given)}; valid: a dict of terms {', '.join(self.terms)}")
            return self._put_term(given, out[0], self.name)
        if len(given) != len(self.terms) or any(term not in given for term in self.terms):
            odd = ", ".join(map(str, given)) or "none"
            raise ConfigError(f"reward {self.name!r} gave terms {odd}; valid: {', '.join(self.terms)}, each time")
        for term, row in zip(self.terms, out, strict=True):
            self._put_term(given[term], row, term)

    def _put_term(self, value: Any, row: np.ndarray, term: str) -> None:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, tensors that require grad
            raise ConfigError(f"{self._describe_term(term)} is {quote(value)}; valid: finite numbers") from error
        if array.dtype.kind not in "fiubO" or (array.dtype.kind == "O" and not array.ndim):
            valid = f"finite numbers {row.shape}, one for each agent, or a dict of such"
            raise ConfigError(f"{self._describe_term(term)} is {quote(value)}; valid: {valid}")
        if array.shape != row.shape:
            raise ConfigError(
                f"{self._describe_term(term)} has shape {array.shape}; valid: {row.shape}, a number for each agent"
            )
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                row[...] = array
        except (TypeError, ValueError):
            raise ConfigError(f"{self._describe_term(term)} is {quote(value)}; valid: finite numbers") from None

    def _require_finite(self, tracker: Any, out: np.ndarray) -> None:
        """Raise ConfigError for values that are not finite; agents of which nothing was measured count as 0 instead."""
        unmeasured = np.isnan(tracker.now).all(axis=0)
        for term, row in zip(self.terms, out, strict=True):
            wrong = ~np.isfinite(row) & ~unmeasured
            if wrong.any():
                at = int(np.argmax(wrong))
                hint = " (telemetry.now is NaN where an interval measured nothing)" if np.isnan(row[at]) else ""
                raise ConfigError(f"{self._describe_term(term)} is {row[at]} of row {at}; valid: finite numbers{hint}")
        out[:, unmeasured] = 0
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(np.add.reduce(out, axis=0))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ConfigError(f"reward {self.name!r} is more than float32 holds, of row {at}: its terms are {out[:, at]}")

    def _describe_term(self, term: str) -> str:
        return f"reward {self.name!r}" if term == self.name else f"term {term!r} of reward {self.name!r}"


def bind_reward(reward: Any, telemetry: Telemetry) -> Any:
    """Return a reward as the engine calls it, `(tracker, out)` with `name` and `terms`: the engine's own copy.

    Raises:
        ConfigError: The reward is not of a valid form, or needs what the task does not have; the message lists all that is
            missing.
    """
    if not writes_in_place(reward):
        return OwnReward(reward, telemetry)
    name = get_reward_name(reward)
    if not get_declared_names(reward, "terms", name):
        raise ConfigError(f"reward {name!r} has no terms; valid: their names, as it writes them into `out`")
    requires = get_declared_names(reward, "requires", name)
    telemetry.require(requires, name)
    own = copy_rule(reward, name)
    if not requires:
        try:
            with np.errstate(all="ignore"):
                copy_rule(reward, name)(telemetry._tracker, np.zeros((len(reward.terms), telemetry.rows), np.float32))
        except (KeyError, AttributeError) as error:
            lacks = getattr(error, "name", None) or error.args[0]
            raise MissingTelemetry(telemetry._missing_message(name, [lacks])) from error
    return own


def writes_in_place(reward: Any) -> bool:
    """Return whether a reward has the form `(tracker, out)` of the tasks' own rewards, which write their terms in place."""
    try:
        parameters = list(inspect.signature(reward).parameters)
    except (TypeError, ValueError):
        return False
    return len(parameters) == 2 and parameters[1] == "out"


def get_reward_name(rule: Any) -> str:
    """Return a reward's own `name`, or that of its function or class; raise ConfigError unless it is a non-empty string."""
    name = getattr(rule, "name", None)
    if name is None:
        inner = unwrap_partial(rule)
        name = "reward" if is_lambda(rule) else getattr(inner, "__name__", type(inner).__name__)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"name of reward {quote(rule)} = {quote(name)}; valid: a string, not empty")
    return name


def unwrap_partial(rule: Any) -> Any:
    """Return the function inside nested `functools.partial` objects."""
    while isinstance(rule, functools.partial):
        rule = rule.func
    return rule


def is_lambda(rule: Any) -> bool:
    """Return whether a rule is a lambda."""
    return getattr(unwrap_partial(rule), "__name__", "") == "<lambda>"


def get_declared_names(rule: Any, what: str, name: str) -> tuple[str, ...]:
    """Return the names that a rule declares in its attribute `what`, () without a declaration."""
    names = getattr(rule, what, None)
    if names is None or names == ():
        return ()
    if isinstance(names, str) or not isinstance(names, (tuple, list)):
        raise ConfigError(f"{what} of reward {name!r} = {quote(names)}; valid: a tuple of names")
    check_names(what.removesuffix("s"), names, name)
    return tuple(names)


def check_names(what: str, names: Any, reward: str) -> None:
    """Raise ConfigError unless there is at least one name and all are distinct, non-empty strings."""
    if not len(names):
        raise ConfigError(f"reward {reward!r} gave no terms; valid: at least one")
    for one in names:
        if not isinstance(one, str) or not one:
            raise ConfigError(f"a {what} of reward {reward!r} is {quote(one)}; valid: a string, not empty")
    if len(set(names)) != len(names):
        raise ConfigError(f"{what}s of reward {reward!r} = {quote(list(names))}; valid: no two alike")


def get_parameters(rule: Any, name: str, before: int = 1) -> list[inspect.Parameter]:
    """Return the parameters of a rule, or of a class of rules, after the first `before`, which is the telemetry.

    Raises:
        ConfigError: The rule takes no telemetry, or a parameter has no default.
    """
    try:
        parameters = list(inspect.signature(rule).parameters.values())
    except (TypeError, ValueError):  # built-ins without a signature
        return []
    if before and (not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)):
        raise ConfigError(f"reward {name!r} has no first parameter for the telemetry; valid: {SIGNATURE}")
    for one in parameters[before:]:
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            valid = f"{one.name}=..., or functools.partial(reward, {one.name}=...)"
            raise ConfigError(f"reward {name!r}: parameter {one.name!r} has no default; valid: {valid}")
    return parameters[before:]


def copy_rule(rule: Any, name: str) -> Any:
    """Return a deep copy that shares nothing with another environment's; functions are not copied."""
    try:
        return copy.deepcopy(rule)
    except Exception as error:
        what = f"reward {name!r} cannot be copied ({type(error).__name__}: {error}), and no two environments share one"
        raise ConfigError(f"{what}; valid: an object that copy.deepcopy takes, or a function") from error
