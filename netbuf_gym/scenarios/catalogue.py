"""What the native core has by name: congestion controls and queue disciplines, with the parameters that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.python_control import OwnControl, is_own_control
from netbuf_gym.utils import checks
from netbuf_gym.utils.suggestions import instead


@dataclass(frozen=True)
class Values:
    """What the parameters of one kind take: their type, its range in words (of `low` and `high`), and how one is checked."""

    type: type
    range: str
    checked: Callable[[str, object, float, float], bool | int | float]


_NUMBERS = "{low:.10g} to {high:.10g}"
KINDS = {
    "real": Values(float, _NUMBERS, checks.number),
    "whole": Values(int, _NUMBERS, lambda field, value, low, high: checks.integer(field, value, int(low), int(high))),
    "truth": Values(bool, "true or false", lambda field, value, low, high: checks.boolean(field, value)),
}
"""By the core's name of the kind."""


@dataclass(frozen=True)
class Parameter:
    """A number or truth value that something of a catalogue is made with.

    Attributes:
        name, meaning: As said, with the unit.
        kind: Of its values, one of `KINDS`.
        default: In its type; None: it follows from others or from the world.
        low, high: Its range, inclusive.
        stacks: Where it is.
        segments: It is bytes, and as many full segments of the world's at least.
    """

    name: str
    meaning: str
    kind: str
    default: bool | int | float | None
    low: float
    high: float
    stacks: tuple[str, ...]
    segments: int

    @staticmethod
    def of(data: dict[str, Any]) -> Parameter:
        """From what the core says."""
        default = None if data["default"] is None else KINDS[data["kind"]].type(data["default"])
        return Parameter(**data | {"default": default, "stacks": tuple(data["stacks"])})

    @property
    def range(self) -> str:
        """The values that it may have, for people."""
        return KINDS[self.kind].range.format(low=self.low, high=self.high)

    def checked(self, field: str, value: object) -> bool | int | float:
        """A value in its type.

        Raises:
            ScenarioError: It is out of range, or of another type.
        """
        return KINDS[self.kind].checked(field, value, self.low, self.high)


@dataclass(frozen=True)
class Record:
    """Something of a catalogue.

    Attributes:
        name, meaning: As said.
        stacks: Where it is.
        parameters: What may stand beside its name.
        agent: A congestion or receiver control that an agent steers.
    """

    name: str
    meaning: str
    stacks: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    agent: bool = False

    @staticmethod
    def of(data: dict[str, Any]) -> Record:
        """From what the core says."""
        parameters = tuple(Parameter.of(parameter) for parameter in data["parameters"])
        return Record(**data | {"stacks": tuple(data["stacks"]), "parameters": parameters})


CONGESTION_CONTROLS: dict[str, Record] = {data["name"]: Record.of(data) for data in _core.congestion_controls()}
"""Every congestion control by its name."""
WITHOUT_AGENT = tuple(name for name, record in CONGESTION_CONTROLS.items() if not record.agent)
"""The congestion controls of all stacks that need no agent."""
RECEIVER_CONTROLS: dict[str, Record] = {data["name"]: Record.of(data) for data in _core.receiver_controls()}
"""Every receiver control by its name."""
TARGET_DELAYS_MS = {"interactive": 25.0, "video": 75.0, "bulk": 150.0}
"""One-way queueing delay to keep, by class of application: a receiver control's `target_ms` may be one instead of a number."""
QUEUE_DISCIPLINES: dict[str, Record] = {data["name"]: Record.of(data) for data in _core.queue_disciplines()}
"""Every queue discipline by its name."""


@lru_cache
def congestion_controls(stack: str) -> tuple[str, ...]:
    """The names that `Flow.cc` may have in a stack."""
    agents = (record.name for record in CONGESTION_CONTROLS.values() if record.agent and stack in record.stacks)
    return (*sender_controls(stack), *agents)


@lru_cache
def sender_controls(stack: str) -> tuple[str, ...]:
    """The names that `Sender.cc` may have in a stack: those that need no agent."""
    return tuple(record.name for record in CONGESTION_CONTROLS.values() if not record.agent and stack in record.stacks)


def named(field: str, value: object, kinds: str) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of what is given by a name or by a dict of `name` and parameters.

    Raises:
        ScenarioTypeError: It is neither.
    """
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise ScenarioTypeError(f"{field} = {shown(value)}; valid: a name, or a dict of name and parameters, of {kinds}")
    return value["name"], {key: item for key, item in value.items() if key != "name"}


@dataclass(frozen=True)
class _WithParameters:
    """A name, and what stands beside it.

    Args:
        name: As in `netbuf-gym list`, where its parameters are too.
        parameters: Pairs of name and value, in the order of the names.
    """

    name: str
    parameters: tuple[tuple[str, bool | int | float], ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value:g}' for name, value in self.parameters)})"

    def to_dict(self) -> dict[str, Any]:
        """The dict that it was given as."""
        return {"name": self.name, **dict(self.parameters)}


class CongestionControl(_WithParameters):
    """A congestion control with parameters of its own: what `Flow.cc` and `Sender.cc` make of a dict like
    `{"name": "cubic", "beta": 0.8}`. Without parameters they keep the name alone."""


class ReceiverControl(_WithParameters):
    """A receiver control with parameters of its own, as `Flow.receiver` makes of a dict like `{"name": "nuwa", "k": 7}`."""


def congestion_control(
    field: str, value: object, names: Iterable[str], stack: str | None = None
) -> str | CongestionControl | OwnControl:
    """What `Flow.cc` and `Sender.cc` may be.

    Args:
        field: What it is called in messages.
        value: A name, a dict of `name` and parameters, a class or function of the user's (`own_control`), or what this
            function gave before.
        names: The valid names.
        stack: The one whose parameters are valid; None: those of any, for the world knows its stack.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    if isinstance(value, CongestionControl):
        value = value.to_dict()
    elif is_own_control(value):
        return value if isinstance(value, OwnControl) else OwnControl(value)
    name, given = named(field, value, "a congestion control")
    name = checks.choice(field, name, names)
    if not given:
        return name
    return CongestionControl(name, _values(field, CONGESTION_CONTROLS[name], given, stack))


def receiver_control(field: str, value: object) -> str | ReceiverControl:
    """What `Flow.receiver` may be beside None: a name, or a dict of `name` and parameters, among them `target_ms` as a class
    of `TARGET_DELAYS_MS`.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    if isinstance(value, ReceiverControl):
        value = value.to_dict()
    name, given = named(field, value, "a receiver control")
    name = checks.choice(field, name, RECEIVER_CONTROLS)
    if "target_ms" in given:
        given["target_ms"] = target_ms(f"{field}.target_ms", given["target_ms"])
    return ReceiverControl(name, _values(field, RECEIVER_CONTROLS[name], given, None)) if given else name


def target_ms(field: str, value: Any) -> Any:
    """A target delay, which may be given as a class of `TARGET_DELAYS_MS`; what is no string is left as it is.

    Raises:
        ScenarioError: An unknown class.
    """
    return TARGET_DELAYS_MS[checks.choice(field, value, TARGET_DELAYS_MS)] if isinstance(value, str) else value


def check_segments(field: str, receiver: str | ReceiverControl | None, mss_bytes: int) -> None:
    """ScenarioError, where a receiver control's parameter holds fewer full segments than it has to."""
    if not isinstance(receiver, ReceiverControl):
        return
    for parameter in RECEIVER_CONTROLS[receiver.name].parameters:
        least = parameter.segments * mss_bytes
        value = dict(receiver.parameters).get(parameter.name)
        if least and value is not None and value < least:
            name = f"{field}.{parameter.name}"
            raise ScenarioError(f"{name} = {value:g} is less than a full segment; valid: {least} to {parameter.high:.10g}")


def _values(
    field: str, record: Record, given: Mapping[str, object], stack: str | None
) -> tuple[tuple[str, bool | int | float], ...]:
    """Those given, checked, in the order of their names."""
    known = [p for p in record.parameters if stack is None or stack in p.stacks]
    values = {}
    for key, item in given.items():
        of_name = [parameter for parameter in known if parameter.name == key]
        if not of_name:
            where = "" if stack is None else f" in the {stack} stack"
            valid = dict.fromkeys(parameter.name for parameter in known)
            raise ScenarioError(f"{field}: {record.name} has no parameter {key!r}{where}; {instead(key, valid)}")
        for parameter in of_name:  # one for each stack, where they differ
            try:
                values[key] = parameter.checked(f"{field}.{key}", item)
                break
            except ScenarioError:
                if parameter is of_name[-1]:
                    raise
    return tuple(sorted(values.items()))


def cc_name(cc: Any) -> str:
    """The name alone of a congestion control, as flows have it (a name, a `CongestionControl` or an `OwnControl`), or of a
    receiver control."""
    return cc if isinstance(cc, str) else cc.name


def several(senders: object, field: str = "senders") -> tuple | None:
    """The congestion controls in a list of them; None for a single one, by its name or with its parameters."""
    if isinstance(senders, (str, Mapping, CongestionControl)) or is_own_control(senders):
        return None
    return tuple(
        congestion_control(field, one, CONGESTION_CONTROLS) if isinstance(one, Mapping) else one
        for one in checks.sequence(field, senders, "senders")
    )


def names_of(senders: object, field: str = "senders") -> tuple:
    """The senders' congestion controls as a tuple; a single one stands for one sender."""
    listed = several(senders, field)
    return (several([senders], field) or ()) if listed is None else listed
