"""Catalogue of the native core: congestion controls, receiver controls, queue disciplines and media, with their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.python_control import COMPILED, OwnControl, is_own_control
from netbuf_gym.utils import checks
from netbuf_gym.utils.parameters import TunableParameter
from netbuf_gym.utils.suggestions import suggest_valid

Value = bool | int | float | str


@dataclass(frozen=True)
class ParameterKind:
    """Values of one kind of parameter.

    Attributes:
        type: Python type of a value.
        range: Text of the valid range, a format string with `low`, `high` and `names`.
        check: (field, value, parameter) -> the value in its type; raises ScenarioError if invalid.
    """

    type: type
    range: str
    check: Callable[[str, object, Parameter], Value]


_NUMBERS = "{low:.10g} to {high:.10g}"
KINDS = {
    "real": ParameterKind(float, _NUMBERS, lambda field, value, p: checks.number(field, value, p.low, p.high)),
    "whole": ParameterKind(int, _NUMBERS, lambda field, value, p: checks.integer(field, value, int(p.low), int(p.high))),
    "truth": ParameterKind(bool, "true or false", lambda field, value, p: checks.boolean(field, value)),
    "named": ParameterKind(str, "{names}", lambda field, value, p: checks.choice(field, value, p.names)),
}
"""Kinds of parameters by the core's names."""


@dataclass(frozen=True)
class Parameter:
    """Parameter of a catalogue entry: a number, a truth value or one of several words.

    Attributes:
        name, meaning: Name, and meaning with the unit.
        kind: Kind of the values, a key of `KINDS`.
        default: Default value; None: derived from other parameters or from the world.
        low, high: Range, inclusive.
        stacks: Stacks that have the parameter.
        segments: Least value in full segments of the world, for a parameter in bytes; 0: no such minimum.
        names: Words that are valid, of a parameter of that kind; the core knows them by their index.
    """

    name: str
    meaning: str
    kind: str
    default: Value | None
    low: float
    high: float
    stacks: tuple[str, ...]
    segments: int
    names: tuple[str, ...]

    @staticmethod
    def from_core(data: dict[str, Any]) -> Parameter:
        """Build a parameter from the core's description."""
        names = tuple(data["names"].split(",")) if data["names"] else ()
        default = data["default"]
        if default is not None:
            default = names[int(default)] if names else KINDS[data["kind"]].type(default)
        return Parameter(**data | {"default": default, "stacks": tuple(data["stacks"]), "names": names})

    @property
    def range(self) -> str:
        """Valid range as readable text."""
        return KINDS[self.kind].range.format(low=self.low, high=self.high, names=", ".join(self.names))

    def encode(self, value: Value) -> float:
        """Return a valid value as the core has it: a number."""
        return float(self.names.index(value) if isinstance(value, str) else value)

    def to_tunable(self, values: Mapping[str, Any]) -> TunableParameter:
        """Return the parameter as controllers have it, with the value of its name, or else its default."""
        own: dict[str, Any] = {"kind": self.kind, "low": self.low, "high": self.high, "words": self.names}
        return TunableParameter(
            name=self.name, default=values.get(self.name, self.default), optional=self.default is None, **own
        )

    def check(self, field: str, value: object) -> Value:
        """Return a valid value converted to the parameter's type.

        Raises:
            ScenarioError: A value out of range, or of another type.
        """
        return KINDS[self.kind].check(field, value, self)


@dataclass(frozen=True)
class CatalogueEntry:
    """Catalogue entry: a congestion control, receiver control, queue discipline or medium.

    Attributes:
        name, meaning: Name, and meaning in one line.
        stacks: Stacks that have the entry.
        parameters: Parameters of the entry.
        agent: Whether the entry is a congestion or receiver control that an agent steers.
    """

    name: str
    meaning: str
    stacks: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    agent: bool = False

    def list_tunable(self, values: Mapping[str, Any] | None = None) -> tuple[TunableParameter, ...]:
        """Return the parameters of Linux's stack, or else of the entry's first one, with values other than the defaults."""
        stack = "linux" if "linux" in self.stacks else self.stacks[0]
        return tuple(one.to_tunable(values or {}) for one in self.parameters if stack in one.stacks)

    @staticmethod
    def from_core(data: dict[str, Any]) -> CatalogueEntry:
        """Build an entry from the core's description."""
        parameters = tuple(Parameter.from_core(parameter) for parameter in data["parameters"])
        return CatalogueEntry(**data | {"stacks": tuple(data["stacks"]), "parameters": parameters})


CONGESTION_CONTROLS: dict[str, CatalogueEntry] = {
    data["name"]: CatalogueEntry.from_core(data) for data in _core.congestion_controls()
}
"""Congestion controls by name."""
WITHOUT_AGENT = tuple(name for name, record in CONGESTION_CONTROLS.items() if not record.agent)
"""Names of the congestion controls of all stacks that need no agent."""
RECEIVER_CONTROLS: dict[str, CatalogueEntry] = {
    data["name"]: CatalogueEntry.from_core(data) for data in _core.receiver_controls()
}
"""Receiver controls by name."""
TARGET_DELAYS_MS = {"interactive": 25.0, "video": 75.0, "bulk": 150.0}
"""Target one-way queueing delays in ms by class of application; a class is valid as a receiver control's `target_ms`."""
QUEUE_DISCIPLINES: dict[str, CatalogueEntry] = {
    data["name"]: CatalogueEntry.from_core(data) for data in _core.queue_disciplines()
}
"""Queue disciplines by name."""
MEDIUM_RECORDS: dict[str, CatalogueEntry] = {data["name"]: CatalogueEntry.from_core(data) for data in _core.media()}
"""Media that links share, by name."""


@lru_cache
def congestion_controls(stack: str) -> tuple[str, ...]:
    """Return the valid names of `Flow.cc` in a stack: those without an agent first, then those that an agent steers."""
    agents = (record.name for record in CONGESTION_CONTROLS.values() if record.agent and stack in record.stacks)
    return (*sender_controls(stack), *agents)


@lru_cache
def sender_controls(stack: str) -> tuple[str, ...]:
    """Return the valid names of `Sender.cc` in a stack: those that need no agent."""
    return tuple(record.name for record in CONGESTION_CONTROLS.values() if not record.agent and stack in record.stacks)


HYSTART_PLUS_PLUS = "rfc9406"
"""Value of `Scenario.hystart` for HyStart++, which congestion controls with a parameter `hystart_plus_plus` have."""


def find_stacks(parameter: str) -> set[str]:
    """Return the stacks in which some congestion control has a parameter of this name."""
    records = CONGESTION_CONTROLS.values()
    return {stack for record in records for one in record.parameters if one.name == parameter for stack in one.stacks}


def split_name_and_parameters(field: str, value: object, kinds: str) -> tuple[str, dict[str, Any]]:
    """Split a name, or a dict of `name` and parameters, into the name and the parameters.

    Args:
        field: Field name for error messages.
        value: Name, or dict of `name` and parameters.
        kinds: Description of the valid values for error messages.

    Raises:
        ScenarioTypeError: Neither a name nor such a dict.
    """
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise ScenarioTypeError(f"{field} = {quote(value)}; valid: a name, or a dict of name and parameters, of {kinds}")
    return value["name"], {key: item for key, item in value.items() if key != "name"}


@dataclass(frozen=True)
class _ParameterisedControl:
    """Name of a catalogue entry, with values of its parameters.

    Args:
        name: Name as in `netbuf-gym list`, which also lists the parameters.
        parameters: Pairs of name and value, sorted by name.
    """

    name: str
    parameters: tuple[tuple[str, bool | int | float], ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value:g}' for name, value in self.parameters)})"

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of `name` and parameters."""
        return {"name": self.name, **dict(self.parameters)}


class CongestionControl(_ParameterisedControl):
    """Congestion control with parameters: `Flow.cc` and `Sender.cc` convert a dict like `{"name": "cubic", "beta": 0.8}` to
    this type. A congestion control without parameters stays a plain name."""


class ReceiverControl(_ParameterisedControl):
    """Receiver control with parameters: `Flow.receiver` converts a dict like `{"name": "nuwa", "k": 7}` to this type."""


Controls = str | Mapping[str, Any] | CongestionControl | OwnControl | Callable[..., Any]
"""Congestion control: a name, a dict of `name` and parameters, or the user's code."""


def parse_congestion_control(
    field: str, value: object, names: Iterable[str], stack: str | None = None
) -> str | CongestionControl | OwnControl:
    """Check and normalise a value of `Flow.cc` or `Sender.cc`.

    Args:
        field: Field name for error messages.
        value: Name, dict of `name` and parameters, class or function of the user's (`python_control`), or a former result of
            this function; `{"name": "compiled", "agent": FILE}` is a trained sender (`compiled_agent`).
        names: Valid names.
        stack: Stack whose parameters are valid; None: those of any stack (`Scenario` checks them against its own).

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    if isinstance(value, CongestionControl):
        value = value.to_dict()
    elif is_own_control(value):
        return value if isinstance(value, OwnControl) else OwnControl(value)
    name, given = split_name_and_parameters(field, value, "a congestion control")
    if name == COMPILED:
        from netbuf_gym.scenarios.compiled_agent import parse_compiled_agent

        return parse_compiled_agent(field, given)
    name = checks.choice(field, name, names)
    if not given:
        return name
    return CongestionControl(name, _check_parameters(field, CONGESTION_CONTROLS[name], given, stack))


def parse_receiver_control(field: str, value: object) -> str | ReceiverControl:
    """Check and normalise a value of `Flow.receiver` other than None.

    Args:
        field: Field name for error messages.
        value: Name, or dict of `name` and parameters, of which `target_ms` may be a key of `TARGET_DELAYS_MS`.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    if isinstance(value, ReceiverControl):
        value = value.to_dict()
    name, given = split_name_and_parameters(field, value, "a receiver control")
    name = checks.choice(field, name, RECEIVER_CONTROLS)
    if "target_ms" in given:
        given["target_ms"] = resolve_target_ms(f"{field}.target_ms", given["target_ms"])
    return ReceiverControl(name, _check_parameters(field, RECEIVER_CONTROLS[name], given, None)) if given else name


def resolve_target_ms(field: str, value: Any) -> Any:
    """Return the target delay in ms of a class of `TARGET_DELAYS_MS`; return any other value unchanged.

    Raises:
        ScenarioError: An unknown class.
    """
    return TARGET_DELAYS_MS[checks.choice(field, value, TARGET_DELAYS_MS)] if isinstance(value, str) else value


def check_segments(field: str, receiver: object, mss_bytes: int) -> None:
    """Raise ScenarioError if a receiver control's parameter is below its minimum of full segments."""
    if not isinstance(receiver, ReceiverControl):
        return
    for parameter in RECEIVER_CONTROLS[receiver.name].parameters:
        least = parameter.segments * mss_bytes
        value = dict(receiver.parameters).get(parameter.name)
        if least and value is not None and value < least:
            name = f"{field}.{parameter.name}"
            raise ScenarioError(f"{name} = {value:g} is less than a full segment; valid: {least} to {parameter.high:.10g}")


def _check_parameters(
    field: str, record: CatalogueEntry, given: Mapping[str, object], stack: str | None
) -> tuple[tuple[str, bool | int | float], ...]:
    """Check the given parameters of a catalogue entry and return them as pairs, sorted by name."""
    known = [p for p in record.parameters if stack is None or stack in p.stacks]
    values: dict[str, Any] = {}
    for key, item in given.items():
        of_name = [parameter for parameter in known if parameter.name == key]
        if not of_name:
            where = "" if stack is None else f" in the {stack} stack"
            valid = dict.fromkeys(parameter.name for parameter in known)
            raise ScenarioError(f"{field}: {record.name} has no parameter {key!r}{where}; {suggest_valid(key, valid)}")
        for parameter in of_name:  # one for each stack, if the stacks' ranges differ
            try:
                values[key] = parameter.check(f"{field}.{key}", item)
                break
            except ScenarioError:
                if parameter is of_name[-1]:
                    raise
    return tuple(sorted(values.items()))


def get_control_name(cc: Any) -> str:
    """Return the plain name of a congestion control (a name, `CongestionControl` or `OwnControl`) or of a receiver control."""
    return cc if isinstance(cc, str) else cc.name


def parse_sender_list(senders: object, field: str = "senders") -> tuple[Any, ...] | None:
    """Return a list of congestion controls as a tuple; None for a single congestion control."""
    if isinstance(senders, (str, Mapping, CongestionControl)) or is_own_control(senders):
        return None
    return tuple(
        parse_congestion_control(field, one, CONGESTION_CONTROLS) if isinstance(one, Mapping) else one
        for one in checks.sequence(field, senders, "senders")
    )


def parse_senders(senders: object, field: str = "senders") -> tuple:
    """Return the senders' congestion controls as a tuple; a single congestion control stands for one sender."""
    listed = parse_sender_list(senders, field)
    return (parse_sender_list([senders], field) or ()) if listed is None else listed
