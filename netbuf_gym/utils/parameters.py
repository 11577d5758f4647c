"""Parameters that a controller takes by its name, `NAME:KEY=VALUE:KEY=VALUE`, with the values that are valid and searched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.arguments import check_boolean, check_choice, check_integer, check_real

Value = bool | int | float | str | None
FACTOR = 10.0
"""Factor either side of a positive default that a search tries, within the valid range, where no range is declared."""
KINDS = ("real", "whole", "truth", "named")
NONE = "none"
"""None in a controller's name."""


@dataclass(frozen=True, kw_only=True)
class TunableParameter:
    """Parameter of a controller, declared by the controller alone.

    Attributes:
        name: Name, which holds neither a colon nor an equals sign.
        kind: Kind of its values, one of `KINDS`: numbers, integers, truth values or words.
        low, high: Valid range of numbers, both ends included.
        words: Valid words.
        optional: Whether None is valid.
        default: Value in force.
        searched: Range that a search tries; None: as `search_range` says.
    """

    name: str
    kind: str = "real"
    low: float = 0.0
    high: float = 0.0
    words: tuple[str, ...] = ()
    optional: bool = False
    default: Value = None
    searched: tuple[float, float] | None = None

    def check(self, value: object) -> Any:
        """Return a valid value in its type; raise ConfigError for any other."""
        if value is None and self.optional:
            return None
        if self.kind == "truth":
            return check_boolean(self.name, value)
        if self.kind == "named":
            return check_choice(self.name, value, self.words)
        if self.whole:
            return check_integer(self.name, value, int(self.low), int(self.high))
        return check_real(self.name, value, self.low, self.high)

    def read(self, text: str) -> Any:
        """Return the value that a text stands for, unchecked; raise ValueError if it stands for none."""
        if text == NONE and self.optional:
            return None
        if self.kind == "truth":
            return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else float(text)
        if self.kind == "named":
            return text
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(text)
        return int(number) if self.whole and number.is_integer() else number

    @property
    def whole(self) -> bool:
        """Whether its values are integers."""
        return self.kind == "whole"

    @property
    def search_range(self) -> dict[str, Any] | None:
        """Values that a search tries: `low` and `high` (with `log`, `whole`), or `choices`; None if it leaves the parameter.

        Of a number without a range of its own: a factor of `FACTOR` either side of a positive default, within what is valid,
        on a log scale; else all that is valid. A parameter without a default, which other values or the world decide, is left.
        """
        if self.kind in ("truth", "named"):
            return None if self.default is None else {"choices": [True, False] if self.kind == "truth" else list(self.words)}
        if self.searched is None and self.default is None:
            return None
        low, high = self.searched or (self.low, self.high)
        if self.searched is None and isinstance(self.default, (int, float)) and self.default > 0 and low >= 0:
            low, high = max(low, self.default / FACTOR), min(high, self.default * FACTOR)
        if self.whole:
            low, high = math.ceil(low), math.floor(high)
        log = low > 0 and high / low >= FACTOR
        return {"low": low, "high": high} | ({"log": True} if log else {}) | ({"whole": True} if self.whole else {})


def read_settings(name: str, text: str, parameters: Sequence[TunableParameter]) -> dict[str, Any]:
    """Return the settings in a controller's name, `KEY=VALUE` separated by colons, checked.

    Args:
        name: Name of the controller.
        text: Settings behind the first colon.
        parameters: Parameters of the controller.

    Raises:
        ConfigError: A setting is unknown, given twice, of another kind or out of range.
    """
    known = {one.name: one for one in parameters}
    example = f"{name}:{parameters[0].name}={format_value(parameters[0].default)}"
    valid = f"{name}:SETTING=VALUE:..., with settings of {', '.join(known)}, e.g. {example}"
    given: dict[str, Any] = {}
    for setting in text.split(":"):
        key, _, value = setting.partition("=")
        wrong = "is unknown" if key not in known else "is there twice" if key in given else ""
        if not wrong:
            try:
                given[key] = known[key].read(value)
            except ValueError:
                wrong = "is no number" if known[key].kind != "truth" else "is neither true nor false"
        if wrong:
            raise ConfigError(f"controller = {quote(f'{name}:{text}')}: {quote(setting)} {wrong}; valid: {valid}")
    return {key: known[key].check(value) for key, value in given.items()}


def format_settings(name: str, settings: Mapping[str, Value]) -> str:
    """Return a controller's name with settings; numbers have at most ten digits."""
    return ":".join([name, *(f"{key}={format_value(value)}" for key, value in settings.items())])


def format_value(value: Value) -> str:
    """Return a value as a controller's name has it."""
    if value is None or isinstance(value, bool):
        return NONE if value is None else str(value).lower()
    return f"{value:.10g}" if isinstance(value, (int, float)) else value


class Tunable:
    """Mixin of a controller whose constructor takes its parameters by name, each kept in an attribute of that name.

    Attributes:
        tunable: The parameters; their defaults are the constructor's.
    """

    tunable: tuple[TunableParameter, ...] = ()

    def set_parameters(self, **values: Any) -> None:
        """Check parameters and keep them; for constructors.

        Raises:
            ConfigError: A value out of range.
        """
        known = {one.name: one for one in self.tunable}
        for name, value in values.items():
            setattr(self, name, known[name].check(value))

    def get_parameters(self) -> dict[str, Any]:
        """Return the values in force."""
        return {one.name: getattr(self, one.name) for one in self.tunable}
