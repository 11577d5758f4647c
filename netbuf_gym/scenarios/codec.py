"""Conversion of scenarios to and from plain dictionaries, for JSON files and saved configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, NamedTuple

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.catalogue import CongestionControl, ReceiverControl
from netbuf_gym.scenarios.flows import APPLICATIONS, Flow, Route
from netbuf_gym.scenarios.parameter_records import ParameterRecord
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.utils.suggestions import suggest_valid

SCHEMA = "netbuf-gym/scenario/1"


@dataclass(frozen=True)
class Part:
    """Field of a record that holds another record, or a list of them.

    Attributes:
        kinds: Class of the records, or classes by their `kind` in JSON.
        many: Whether the field is a list.
        always: Whether JSON has the field even if it is at its default.
        required: Whether JSON must have the list.
        usual: Class of records whose data have no `kind`.
        plain: Whether the field may hold a plain value instead of a record.
    """

    kinds: type | Mapping[str, type]
    many: bool = False
    always: bool = False
    required: bool = False
    usual: type | None = None
    plain: bool = False


class Parts(NamedTuple):
    """Parts of records, which are all imported for them.

    Attributes:
        of_scenario: Parts of a `Scenario`.
        of_records: Parts of each other class of records, in the order in which JSON has them after the other fields.
        parsers: Parsers of records that a name may stand for, by their class.
    """

    of_scenario: dict[str, Part]
    of_records: dict[type, dict[str, Part]]
    parsers: dict[Any, Callable[[str, object], ParameterRecord]]


@cache
def list_parts() -> Parts:
    """Return the parts of all records."""
    from netbuf_gym.scenarios.disciplines import Discipline, parse_discipline
    from netbuf_gym.scenarios.hosts import Host
    from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule
    from netbuf_gym.scenarios.laws import LAWS, Mixed
    from netbuf_gym.scenarios.links import GilbertElliott, Link
    from netbuf_gym.scenarios.media import Medium, parse_medium
    from netbuf_gym.scenarios.senders import Relay, Sender
    from netbuf_gym.scenarios.sizes import SizeDistribution
    from netbuf_gym.scenarios.switches import ADMISSIONS, SCHEDULERS, FlowTable, Switch
    from netbuf_gym.scenarios.traffic import ARRIVALS, PoissonArrivals, Probe, RenewalArrivals, Traffic, WebSessions
    from netbuf_gym.scenarios.udp import DATAGRAM_SOURCES, UdpSource
    from netbuf_gym.traces.types import DeliveryTrace, RateTrace

    traces = {"rates": RateTrace, "deliveries": DeliveryTrace}
    of_scenario = {
        "links": Part(Link, many=True, always=True, required=True),
        "flows": Part(Flow, many=True, always=True, required=True),
        "switches": Part(Switch, many=True),
        "traffic": Part(Traffic),
        "probes": Part(Probe, many=True),
        "udp": Part(DATAGRAM_SOURCES, many=True, usual=UdpSource),
        "hosts": Part(Host, many=True),
    }
    sizes = Part(LAWS, usual=SizeDistribution)
    of_records: dict[type, dict[str, Part]] = {
        Link: {
            "delay_ms": Part(DelaySchedule, plain=True),
            "loss": Part(LossSchedule, plain=True),
            "jitter": Part(Jitter),
            "gilbert_elliott": Part(GilbertElliott),
            "trace": Part(traces),
            "discipline": Part(Discipline),
            "medium": Part(Medium),
        },
        Flow: {"routes": Part(Route, many=True), "app": Part(APPLICATIONS, always=True)},
        Switch: {
            "admission": Part(ADMISSIONS, always=True),
            "scheduler": Part(SCHEDULERS, always=True),
            "flow_table": Part(FlowTable),
        },
        Traffic: {
            "senders": Part(Sender, many=True, always=True, required=True),
            "arrivals": Part(ARRIVALS, many=True, always=True, required=True),
        },
        Sender: {"relay": Part(Relay)},
        PoissonArrivals: {"sizes": sizes},
        RenewalArrivals: {"gap_s": Part(LAWS), "sizes": sizes},
        WebSessions: dict.fromkeys(("main_bytes", "objects", "object_bytes", "reading_s", "parsing_s"), sizes),
        UdpSource: {"packet_bytes": Part(LAWS, plain=True), "on_s": Part(LAWS, plain=True), "off_s": Part(LAWS, plain=True)},
        Mixed: {"parts": Part(LAWS, many=True, always=True, required=True, usual=SizeDistribution)},
    }
    return Parts(of_scenario, of_records, {Discipline: parse_discipline, Medium: parse_medium})


def to_dict(scenario: Any) -> dict:
    """Return a JSON-serialisable dictionary of a `Scenario`, without fields at their default."""
    return {"schema": SCHEMA, **_encode_record(scenario, list_parts().of_scenario)}


def from_dict(kind: type, data: object) -> Any:
    """Build a scenario of the class `kind` from a dictionary that `to_dict` returned.

    Raises:
        ScenarioError: Another schema; a field that is missing, unknown or out of range.
    """
    data = dict(require_mapping("scenario", data))
    schema = data.pop("schema", None)
    if schema != SCHEMA:
        raise ScenarioError(f"schema = {quote(schema)}; valid: {SCHEMA!r}")
    return build_dataclass("scenario", kind, _read_parts("", data, list_parts().of_scenario))


def parse_application(field: str, data: object) -> Any:
    """Build an application from its kind, or from a mapping of kind and fields.

    Raises:
        ScenarioError: An unknown kind; a field that is missing, unknown or out of range.
    """
    return _read_record(field, Part(APPLICATIONS), {"kind": data} if isinstance(data, str) else data)


def parse_parts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Build records of a scenario's fields, such as `udp` and `traffic`, where these are mappings as in JSON.

    Raises:
        ScenarioError: An unknown kind; a field that is missing, unknown or out of range.
    """
    made = dict(settings)
    for name, value in settings.items():
        part = list_parts().of_scenario.get(name)
        if part is not None and isinstance(value, dict):
            made[name] = _read_record(name, part, value)
        elif part is not None and part.many and isinstance(value, (list, tuple)):
            items = (_read_record(f"{name}[{i}]", part, one) if isinstance(one, dict) else one for i, one in enumerate(value))
            made[name] = tuple(items)
    return made


def _read_parts(field: str, data: dict[str, Any], parts: Mapping[str, Part]) -> dict[str, Any]:
    """Return a record's data with the records that it holds in place of their data; `field`: the record's name and a dot."""
    for name, part in parts.items():
        at, value = f"{field}{name}", data.get(name)
        if part.many:
            if part.required or name in data:
                if not isinstance(value, list):
                    raise ScenarioTypeError(f"{at} = {quote(value)} is not a list")
                data[name] = [_read_record(f"{at}[{i}]", part, item) for i, item in enumerate(value)]
        elif isinstance(part.kinds, type) and part.kinds in list_parts().parsers:
            if value is not None:
                data[name] = list_parts().parsers[part.kinds](at, value)
        elif part.plain:
            if isinstance(value, dict):
                data[name] = _read_record(at, part, value)
        elif value is not None or (part.always and name in data):
            data[name] = _read_record(at, part, value)
    return data


def _read_record(field: str, part: Part, data: object) -> Any:
    """Build a record of a part's class, or of the class of the data's `kind`."""
    data = dict(require_mapping(field, data))
    kinds = part.kinds if part.usual is None or "kind" in data else part.usual
    if not isinstance(kinds, type):
        kind = data.pop("kind", None)
        if not isinstance(kind, str) or kind not in kinds:
            raise ScenarioError(f"{field}.kind = {quote(kind)} is unknown; {suggest_valid(kind, kinds)}")
        kinds = kinds[kind]
    return build_dataclass(field, kinds, _read_parts(f"{field}.", data, list_parts().of_records.get(kinds, {})))


def _encode_record(record: Any, parts: Mapping[str, Part]) -> dict[str, Any]:
    """Return a dictionary of a record's fields that are not at their default, parts last."""
    result: dict[str, Any] = {}
    usual = {}
    for field in fields(record):
        item = getattr(record, field.name)
        usual[field.name] = field.default is not MISSING and type(item) is type(field.default) and item == field.default
        if not field.init or field.name in parts or usual[field.name]:
            continue
        if isinstance(item, (CongestionControl, ReceiverControl)):
            item = item.to_dict()
        elif isinstance(item, OwnControl):
            item = item.to_dict(field.name)
        result[field.name] = item.tolist() if hasattr(item, "tolist") else list(item) if isinstance(item, tuple) else item
    for name, part in parts.items():
        if usual[name] and not part.always:
            continue
        value = getattr(record, name)
        result[name] = [_encode_part(item, part) for item in value] if part.many else _encode_part(value, part)
    return result


def _encode_part(value: Any, part: Part) -> Any:
    kinds = (part.kinds,) if isinstance(part.kinds, type) else tuple(part.kinds.values())
    if part.plain and not isinstance(value, kinds):
        return value
    data = _encode_record(value, list_parts().of_records.get(type(value), {}))
    if isinstance(value, ParameterRecord):
        return {"kind": value.kind, **data}
    if not isinstance(part.kinds, type) and type(value) is not part.usual:
        return {"kind": next(kind for kind, cls in part.kinds.items() if isinstance(value, cls)), **data}
    return data


def build_dataclass(field: str, cls: type, data: object) -> Any:
    """Build a dataclass from a mapping of its fields.

    Args:
        field: Field name for error messages.
        cls: Dataclass to build.
        data: Mapping of fields to values.

    Raises:
        ScenarioError: No mapping; a field that is missing, unknown or out of range.
    """
    data = require_mapping(field, data)
    known = {f.name: f for f in fields(cls) if f.init}
    for name in data:
        if name not in known:
            raise ScenarioError(f"{field} has no field {name!r}; valid: {', '.join(known)}")
    for name, f in known.items():
        if name not in data and f.default is MISSING and f.default_factory is MISSING:
            raise ScenarioError(f"{field}.{name} is missing")
    try:
        return cls(**data)
    except ScenarioError as error:
        if field == "scenario" or str(error).startswith(f"{field}."):
            raise
        raise type(error)(f"{field}: {error}") from None


def require_mapping(field: str, data: object) -> dict[str, Any]:
    """Return `data` if it is a dict; raise ScenarioTypeError otherwise."""
    if not isinstance(data, dict):
        raise ScenarioTypeError(f"{field} = {quote(data)} is not a mapping of fields to values")
    return data
