"""Settings that a study searches, each a key with its range or choices: a learner's in `conf/search/<algo>.yaml`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.training.config import to_plain
from netbuf_gym.utils.arguments import check_boolean, check_integer, check_real
from netbuf_gym.utils.suggestions import suggest_valid

if TYPE_CHECKING:
    from optuna import Trial

DIGITS = 4
"""Significant digits of the numbers that are tried."""
FIELDS = ("key", "low", "high", "log", "whole", "choices")


@dataclass(frozen=True)
class SearchSetting:
    """One setting of a search.

    Attributes:
        name: Name in the study.
        key: Key of the configuration.
        low, high: Range of a number, both included.
        log: Whether the logarithm is searched evenly.
        whole: Whether the number is whole.
        choices: Valid values, in place of a range.
    """

    name: str
    key: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()

    def propose(self, trial: Trial) -> Any:
        """Return the trial's value."""
        if self.choices:
            kept = trial.suggest_categorical(self.name, [*map(encode_choice, self.choices)])
            return next(choice for choice in self.choices if encode_choice(choice) == kept)
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        return round_number(trial.suggest_float(self.name, self.low, self.high, log=self.log))

    def encode_nearest(self, value: Any) -> Any:
        """Return Optuna's encoding of the searched value nearest to `value`; for non-numbers of the first or lowest one."""
        number = not isinstance(value, bool) and isinstance(value, (int, float))
        if self.choices:
            if encode_choice(value) in map(encode_choice, self.choices):
                return encode_choice(value)
            numbers = [one for one in self.choices if not isinstance(one, bool) and isinstance(one, (int, float))]
            return encode_choice(min(numbers, key=lambda one: abs(one - value)) if number and numbers else self.choices[0])
        found = min(max(value, self.low), self.high) if number else self.low
        return int(found) if self.whole else float(found)

    def encode_checked(self, value: Any) -> Any:
        """Return Optuna's encoding of a value.

        Raises:
            ConfigError: The value is outside of the search.
        """
        if self.choices:
            if encode_choice(value) in map(encode_choice, self.choices):
                return encode_choice(value)
            raise ConfigError(f"{self.key} = {quote(value)} is not searched; valid: {', '.join(map(json.dumps, self.choices))}")
        if self.whole:
            return check_integer(self.key, value, int(self.low), int(self.high))
        return check_real(self.key, value, self.low, self.high)


def read_settings(search: Any, fixed: Sequence[str] = ()) -> list[SearchSetting]:
    """Return the settings of `search`, without those whose keys are fixed.

    Raises:
        ConfigError: An invalid setting; or none are left.
    """
    found = [parse_setting(str(name), to_plain(one)) for name, one in search.items() if one is not None]
    left = [one for one in found if not any(_is_within(one.key, key) or _is_within(key, one.key) for key in fixed)]
    if not left:
        raise ConfigError(f"search has {len(found)} settings, none of which is left to be searched; valid: at least one")
    return left


def encode_config_values(settings: Sequence[SearchSetting], config: DictConfig) -> dict[str, Any] | None:
    """Return Optuna's encoding of a configuration's own values; None if one of them is outside of the search."""
    try:
        return {one.name: one.encode_checked(to_plain(OmegaConf.select(config, one.key))) for one in settings}
    except ConfigError:
        return None


def encode_nearest_values(settings: Sequence[SearchSetting], config: DictConfig) -> dict[str, Any]:
    """Return Optuna's encoding of the searched values nearest to a configuration's own."""
    return {one.name: one.encode_nearest(to_plain(OmegaConf.select(config, one.key))) for one in settings}


def format_override(key: str, value: Any) -> str:
    """Format a setting as an override for `netbuf-gym train`."""
    return f"{key}={json.dumps(value) if not isinstance(value, str) else value}".replace(" ", "")


def encode_choice(choice: Any) -> Any:
    """Return Optuna's encoding of a choice: lists as text."""
    return json.dumps(choice) if isinstance(choice, list) else choice


def round_number(value: float) -> float:
    """Round to `DIGITS` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def parse_setting(name: str, said: Any) -> SearchSetting:
    """Return the setting that an entry of `search` describes; raise ConfigError for an invalid one."""
    field = f"search.{name}"
    if not isinstance(said, Mapping) or "key" not in said:
        raise ConfigError(f"{field} = {quote(said)}; valid: a mapping of key, and low and high or choices")
    for one in said:
        if one not in FIELDS:
            raise ConfigError(f"{field}.{one} is unknown; {suggest_valid(str(one), sorted(FIELDS))}")
    key, choices = said["key"], said.get("choices")
    if not isinstance(key, str) or not key.partition(".")[2]:
        raise ConfigError(f"{field}.key = {quote(key)}; valid: a key of the configuration, e.g. algo.learning_rate")
    if choices is not None:
        for one in ("low", "high", "log", "whole"):
            if one in said:
                valid = f"{field}.choices=null, or choices alone"
                raise ConfigError(f"{field}.{one} = {quote(said[one])} beside choices; valid: {valid}")
        if not isinstance(choices, list) or not choices:
            raise ConfigError(f"{field}.choices = {quote(choices)}; valid: a list of values")
        return SearchSetting(name, key, choices=tuple(choices))
    log = check_boolean(f"{field}.log", said.get("log", False))
    low = check_real(f"{field}.low", said.get("low"), 0.0 if log else -1e12, 1e12, low_open=log)
    high = check_real(f"{field}.high", said.get("high"), low, 1e12)
    return SearchSetting(name, key, low, high, log, check_boolean(f"{field}.whole", said.get("whole", False)))


def _is_within(key: str, other: str) -> bool:
    return key == other or key.startswith(f"{other}.")
