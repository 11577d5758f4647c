"""The settings that a study searches: `conf/search/<algo>.yaml`, each a key of the configuration with its range or choices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.training.config import plain
from netbuf_gym.utils.arguments import real, truth, whole
from netbuf_gym.utils.suggestions import instead

if TYPE_CHECKING:
    from optuna import Trial

DIGITS = 4
"""Significant ones of the numbers that are tried."""
FIELDS = ("key", "low", "high", "log", "whole", "choices")


@dataclass(frozen=True)
class Setting:
    """One setting of a search.

    Attributes:
        name: in the study.
        key: of the configuration.
        low, high: the range of a number, both included.
        log: tried evenly in its logarithm.
        whole: a whole number.
        choices: what it may be, in place of a range.
    """

    name: str
    key: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()

    def propose(self, trial: Trial) -> Any:
        """The trial's value."""
        if self.choices:
            kept = trial.suggest_categorical(self.name, [*map(encoded, self.choices)])
            return next(choice for choice in self.choices if encoded(choice) == kept)
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        return rounded(trial.suggest_float(self.name, self.low, self.high, log=self.log))

    def nearest(self, value: Any) -> Any:
        """What Optuna keeps of the searched value that is nearest to one; of what is no number the first or the lowest."""
        number = not isinstance(value, bool) and isinstance(value, (int, float))
        if self.choices:
            if encoded(value) in map(encoded, self.choices):
                return encoded(value)
            numbers = [one for one in self.choices if not isinstance(one, bool) and isinstance(one, (int, float))]
            return encoded(min(numbers, key=lambda one: abs(one - value)) if number and numbers else self.choices[0])
        found = min(max(value, self.low), self.high) if number else self.low
        return int(found) if self.whole else float(found)

    def checked(self, value: Any) -> Any:
        """What Optuna keeps of a value.

        Raises:
            ConfigError: it is not searched.
        """
        if self.choices:
            if encoded(value) in map(encoded, self.choices):
                return encoded(value)
            raise ConfigError(f"{self.key} = {shown(value)} is not searched; valid: {', '.join(map(json.dumps, self.choices))}")
        if self.whole:
            return whole(self.key, value, int(self.low), int(self.high))
        return real(self.key, value, self.low, self.high)


def read(search: Any, fixed: Sequence[str] = ()) -> list[Setting]:
    """The settings of `search`, without those whose keys are fixed.

    Raises:
        ConfigError: a setting that is none; or none are left.
    """
    found = [_setting(str(name), plain(one)) for name, one in search.items() if one is not None]
    left = [one for one in found if not any(_within(one.key, key) or _within(key, one.key) for key in fixed)]
    if not left:
        raise ConfigError(f"search has {len(found)} settings, none of which is left to be searched; valid: at least one")
    return left


def values_of(settings: Sequence[Setting], config: DictConfig) -> dict[str, Any] | None:
    """What Optuna keeps of a configuration's own values; None where one of them is not searched."""
    try:
        return {one.name: one.checked(plain(OmegaConf.select(config, one.key))) for one in settings}
    except ConfigError:
        return None


def nearest_to(settings: Sequence[Setting], config: DictConfig) -> dict[str, Any]:
    """What Optuna keeps of the searched values that are nearest to a configuration's own."""
    return {one.name: one.nearest(plain(OmegaConf.select(config, one.key))) for one in settings}


def override(key: str, value: Any) -> str:
    """A setting as `netbuf-gym train` takes it."""
    return f"{key}={json.dumps(value) if not isinstance(value, str) else value}".replace(" ", "")


def encoded(choice: Any) -> Any:
    """A choice as Optuna can keep it: lists as text."""
    return json.dumps(choice) if isinstance(choice, list) else choice


def rounded(value: float) -> float:
    """To as many digits as are tried."""
    return float(f"{value:.{DIGITS}g}")


def _setting(name: str, said: Any) -> Setting:
    field = f"search.{name}"
    if not isinstance(said, Mapping) or "key" not in said:
        raise ConfigError(f"{field} = {shown(said)}; valid: a mapping of key, and low and high or choices")
    for one in said:
        if one not in FIELDS:
            raise ConfigError(f"{field}.{one} is unknown; {instead(str(one), sorted(FIELDS))}")
    key, choices = said["key"], said.get("choices")
    if not isinstance(key, str) or not key.partition(".")[2]:
        raise ConfigError(f"{field}.key = {shown(key)}; valid: a key of the configuration, e.g. algo.learning_rate")
    if choices is not None:
        for one in ("low", "high", "log", "whole"):
            if one in said:
                valid = f"{field}.choices=null, or choices alone"
                raise ConfigError(f"{field}.{one} = {shown(said[one])} beside choices; valid: {valid}")
        if not isinstance(choices, list) or not choices:
            raise ConfigError(f"{field}.choices = {shown(choices)}; valid: a list of values")
        return Setting(name, key, choices=tuple(choices))
    log = truth(f"{field}.log", said.get("log", False))
    low = real(f"{field}.low", said.get("low"), 0.0 if log else -1e12, 1e12, low_open=log)
    high = real(f"{field}.high", said.get("high"), low, 1e12)
    return Setting(name, key, low, high, log, truth(f"{field}.whole", said.get("whole", False)))


def _within(key: str, other: str) -> bool:
    return key == other or key.startswith(f"{other}.")
