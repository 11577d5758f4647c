"""Conversion of scenarios to and from plain dictionaries, for JSON files and saved configurations."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.catalogue import CongestionControl, ReceiverControl
from netbuf_gym.scenarios.disciplines import parse_discipline
from netbuf_gym.scenarios.flows import Bulk, Flow, OnOff, Paused, Route, Sized
from netbuf_gym.scenarios.hosts import Host
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule
from netbuf_gym.scenarios.links import GilbertElliott, Link
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.scenarios.senders import Relay, Sender
from netbuf_gym.scenarios.switches import ADMISSIONS, SCHEDULERS, Switch
from netbuf_gym.scenarios.traffic import ARRIVALS, Arrivals, Probe, Traffic
from netbuf_gym.scenarios.udp import UdpSource
from netbuf_gym.scenarios.video import Video
from netbuf_gym.traces.types import DeliveryTrace, RateTrace
from netbuf_gym.utils.suggestions import suggest_valid

SCHEMA = "netbuf-gym/scenario/1"
APPLICATIONS = {"bulk": Bulk, "sized": Sized, "on_off": OnOff, "paused": Paused, "video": Video}
SCHEDULES = {"delay_ms": DelaySchedule, "loss": LossSchedule}
"""Schedule types of the link fields that are a number or a schedule."""
TRACES = {"rates": RateTrace, "deliveries": DeliveryTrace}


def to_dict(scenario: Any) -> dict:
    """Return a JSON-serialisable dictionary of a `Scenario`, without fields at their default."""
    data = {
        "schema": SCHEMA,
        **_encode_fields(scenario, skip=("links", "flows", "switches", "traffic", "probes", "udp", "hosts")),
        "links": [_encode_link(link) for link in scenario.links],
        "flows": [_encode_flow(flow) for flow in scenario.flows],
    }
    if scenario.switches:
        data["switches"] = [_encode_switch(switch) for switch in scenario.switches]
    if scenario.traffic is not None:
        data["traffic"] = _encode_traffic(scenario.traffic)
    if scenario.probes:
        data["probes"] = [_encode_fields(probe) for probe in scenario.probes]
    if scenario.udp:
        data["udp"] = [_encode_fields(source) for source in scenario.udp]
    if scenario.hosts:
        data["hosts"] = [_encode_fields(host) for host in scenario.hosts]
    return data


def from_dict(kind: type, data: object) -> Any:
    """Build a scenario of the class `kind` from a dictionary that `to_dict` returned.

    Raises:
        ScenarioError: Another schema; a field that is missing, unknown or out of range.
    """
    data = dict(require_mapping("scenario", data))
    schema = data.pop("schema", None)
    if schema != SCHEMA:
        raise ScenarioError(f"schema = {shown(schema)}; valid: {SCHEMA!r}")
    for field in ("links", "flows", *(name for name in ("switches", "probes", "udp", "hosts") if name in data)):
        if not isinstance(data.get(field), list):
            raise ScenarioTypeError(f"{field} = {shown(data.get(field))} is not a list")
    data["links"] = [_read_link(f"links[{i}]", link) for i, link in enumerate(data["links"])]
    data["flows"] = [_read_flow(f"flows[{i}]", flow) for i, flow in enumerate(data["flows"])]
    if "switches" in data:
        data["switches"] = [_read_switch(f"switches[{i}]", switch) for i, switch in enumerate(data["switches"])]
    if data.get("traffic") is not None:
        data["traffic"] = _read_traffic("traffic", data["traffic"])
    if "probes" in data:
        data["probes"] = [build_dataclass(f"probes[{i}]", Probe, probe) for i, probe in enumerate(data["probes"])]
    if "udp" in data:
        data["udp"] = [build_dataclass(f"udp[{i}]", UdpSource, source) for i, source in enumerate(data["udp"])]
    if "hosts" in data:
        data["hosts"] = [build_dataclass(f"hosts[{i}]", Host, host) for i, host in enumerate(data["hosts"])]
    return build_dataclass("scenario", kind, data)


def _encode_link(link: Link) -> dict:
    data = _encode_fields(link, skip=("gilbert_elliott", "trace", "discipline", *SCHEDULES, "jitter"))
    for name in SCHEDULES:
        value = getattr(link, name)
        if value != 0 or isinstance(value, tuple(SCHEDULES.values())):
            data[name] = _encode_fields(value) if is_dataclass(value) else value
    if link.jitter is not None:
        data["jitter"] = _encode_fields(link.jitter)
    if link.gilbert_elliott is not None:
        data["gilbert_elliott"] = _encode_fields(link.gilbert_elliott)
    if isinstance(link.trace, RateTrace):
        data["trace"] = {"kind": "rates", **_encode_fields(link.trace)}
    elif link.trace is not None:
        data["trace"] = {"kind": "deliveries", **_encode_fields(link.trace)}
    if link.discipline is not None:
        data["discipline"] = _encode_variant(link.discipline)
    return data


def _encode_flow(flow: Flow) -> dict:
    kind = next(name for name, cls in APPLICATIONS.items() if isinstance(flow.app, cls))
    routes = {"routes": [_encode_fields(route) for route in flow.routes]} if flow.routes else {}
    return {**_encode_fields(flow, skip=("app", "routes")), **routes, "app": {"kind": kind, **_encode_fields(flow.app)}}


def parse_application(field: str, data: object) -> Any:
    """Build an application from its kind, or from a mapping of kind and fields.

    Raises:
        ScenarioError: An unknown kind; a field that is missing, unknown or out of range.
    """
    return _build_variant(field, {"kind": data} if isinstance(data, str) else data, APPLICATIONS)


def _encode_switch(switch: Switch) -> dict:
    data = _encode_fields(switch, skip=("admission", "scheduler"))
    return {**data, "admission": _encode_variant(switch.admission), "scheduler": _encode_variant(switch.scheduler)}


def _encode_traffic(traffic: Traffic) -> dict:
    return {
        **_encode_fields(traffic, skip=("senders", "arrivals")),
        "senders": [_encode_sender(sender) for sender in traffic.senders],
        "arrivals": [_encode_arrivals(arrivals) for arrivals in traffic.arrivals],
    }


def _encode_sender(sender: Sender) -> dict:
    data = _encode_fields(sender, skip=("relay",))
    return data if sender.relay is None else {**data, "relay": _encode_fields(sender.relay)}


def _read_sender(field: str, data: object) -> Sender:
    data = dict(require_mapping(field, data))
    if data.get("relay") is not None:
        data["relay"] = build_dataclass(f"{field}.relay", Relay, data["relay"])
    return build_dataclass(field, Sender, data)


def _encode_arrivals(arrivals: Arrivals) -> dict:
    parts = arrivals.parts
    return {
        "kind": arrivals.kind,
        **_encode_fields(arrivals, skip=tuple(parts)),
        **{p: _encode_fields(getattr(arrivals, p)) for p in parts},
    }


def _read_link(field: str, data: object) -> Link:
    data = dict(require_mapping(field, data))
    if data.get("gilbert_elliott") is not None:
        data["gilbert_elliott"] = build_dataclass(f"{field}.gilbert_elliott", GilbertElliott, data["gilbert_elliott"])
    if data.get("trace") is not None:
        data["trace"] = _build_variant(f"{field}.trace", data["trace"], TRACES)
    for name, schedule in SCHEDULES.items():
        if isinstance(data.get(name), dict):
            data[name] = build_dataclass(f"{field}.{name}", schedule, data[name])
    if data.get("jitter") is not None:
        data["jitter"] = build_dataclass(f"{field}.jitter", Jitter, data["jitter"])
    if data.get("discipline") is not None:
        data["discipline"] = parse_discipline(f"{field}.discipline", data["discipline"])
    return build_dataclass(field, Link, data)


def _read_flow(field: str, data: object) -> Flow:
    data = dict(require_mapping(field, data))
    if "app" in data:
        data["app"] = _build_variant(f"{field}.app", data["app"], APPLICATIONS)
    if "routes" in data:
        if not isinstance(data["routes"], list):
            raise ScenarioTypeError(f"{field}.routes = {shown(data['routes'])} is not a list")
        data["routes"] = [build_dataclass(f"{field}.routes[{i}]", Route, route) for i, route in enumerate(data["routes"])]
    return build_dataclass(field, Flow, data)


def _read_switch(field: str, data: object) -> Switch:
    data = dict(require_mapping(field, data))
    for name, kinds in (("admission", ADMISSIONS), ("scheduler", SCHEDULERS)):
        if name in data:
            data[name] = _build_variant(f"{field}.{name}", data[name], kinds)
    return build_dataclass(field, Switch, data)


def _read_traffic(field: str, data: object) -> Traffic:
    data = dict(require_mapping(field, data))
    for name in ("senders", "arrivals"):
        if not isinstance(data.get(name), list):
            raise ScenarioTypeError(f"{field}.{name} = {shown(data.get(name))} is not a list")
    data["senders"] = [_read_sender(f"{field}.senders[{i}]", sender) for i, sender in enumerate(data["senders"])]
    data["arrivals"] = [_read_arrivals(f"{field}.arrivals[{i}]", a) for i, a in enumerate(data["arrivals"])]
    return build_dataclass(field, Traffic, data)


def _read_arrivals(field: str, data: object) -> Arrivals:
    data = dict(require_mapping(field, data))
    cls = ARRIVALS.get(data["kind"]) if isinstance(data.get("kind"), str) else None
    for name, part in cls.parts.items() if cls else ():
        if name in data:
            data[name] = build_dataclass(f"{field}.{name}", part, data[name])
    return _build_variant(field, data, ARRIVALS)


def _encode_variant(value: object) -> dict:
    return {"kind": value.kind, **_encode_fields(value)}


def _build_variant(field: str, data: object, kinds: dict[str, type]) -> object:
    data = dict(require_mapping(field, data))
    kind = data.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise ScenarioError(f"{field}.kind = {shown(kind)} is unknown; {suggest_valid(kind, kinds)}")
    return build_dataclass(field, kinds[kind], data)


def _encode_fields(value: object, skip: tuple[str, ...] = ()) -> dict:
    result = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if not field.init or field.name in skip:
            continue
        if field.default is not MISSING and type(item) is type(field.default) and item == field.default:
            continue
        if isinstance(item, (CongestionControl, ReceiverControl)):
            item = item.to_dict()
        elif isinstance(item, OwnControl):
            valid = "a congestion control by its name (netbuf-gym list congestion-controls)"
            raise ScenarioTypeError(f"{field.name} = {item.name} is the user's code, which no file holds; valid here: {valid}")
        result[field.name] = item.tolist() if hasattr(item, "tolist") else list(item) if isinstance(item, tuple) else item
    return result


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
        if field == "scenario":
            raise
        raise type(error)(f"{field}: {error}") from None


def require_mapping(field: str, data: object) -> dict:
    """Return `data` if it is a dict; raise ScenarioTypeError otherwise."""
    if not isinstance(data, dict):
        raise ScenarioTypeError(f"{field} = {shown(data)} is not a mapping of fields to values")
    return data
