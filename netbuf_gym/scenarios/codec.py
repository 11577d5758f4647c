"""Scenarios to and from plain dictionaries, for JSON files and saved configurations."""

from __future__ import annotations

from dataclasses import MISSING, fields

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.types import Bulk, Flow, GilbertElliott, Link, OnOff, Scenario, Sized
from netbuf_gym.traces.types import DeliveryTrace, RateTrace

SCHEMA = "netbuf-gym/scenario/1"
APPLICATIONS = {"bulk": Bulk, "sized": Sized, "on_off": OnOff}
TRACES = {"rates": RateTrace, "deliveries": DeliveryTrace}


def to_dict(scenario: Scenario) -> dict:
    """A JSON-able dictionary; fields at their default are left out."""
    return {
        "schema": SCHEMA,
        **_plain(scenario, skip=("links", "flows")),
        "links": [_link(link) for link in scenario.links],
        "flows": [_flow(flow) for flow in scenario.flows],
    }


def from_dict(data: object) -> Scenario:
    """The scenario that `to_dict` described.

    Raises:
        ScenarioError: Another schema; a field that is missing, unknown or out of range.
    """
    data = dict(_mapping("scenario", data))
    schema = data.pop("schema", None)
    if schema != SCHEMA:
        raise ScenarioError(f"schema = {shown(schema)}; valid: {SCHEMA!r}")
    for field in ("links", "flows"):
        if not isinstance(data.get(field), list):
            raise ScenarioTypeError(f"{field} = {shown(data.get(field))} is not a list")
    data["links"] = [_read_link(f"links[{i}]", link) for i, link in enumerate(data["links"])]
    data["flows"] = [_read_flow(f"flows[{i}]", flow) for i, flow in enumerate(data["flows"])]
    return _make("scenario", Scenario, data)


def _link(link: Link) -> dict:
    data = _plain(link, skip=("gilbert_elliott", "trace"))
    if link.gilbert_elliott is not None:
        data["gilbert_elliott"] = _plain(link.gilbert_elliott)
    if isinstance(link.trace, RateTrace):
        data["trace"] = {"kind": "rates", **_plain(link.trace)}
    elif link.trace is not None:
        data["trace"] = {"kind": "deliveries", **_plain(link.trace)}
    return data


def _flow(flow: Flow) -> dict:
    kind = next(name for name, cls in APPLICATIONS.items() if isinstance(flow.app, cls))
    return {**_plain(flow, skip=("app",)), "app": {"kind": kind, **_plain(flow.app)}}


def _read_link(field: str, data: object) -> Link:
    data = dict(_mapping(field, data))
    if data.get("gilbert_elliott") is not None:
        data["gilbert_elliott"] = _make(f"{field}.gilbert_elliott", GilbertElliott, data["gilbert_elliott"])
    if data.get("trace") is not None:
        data["trace"] = _variant(f"{field}.trace", data["trace"], TRACES)
    return _make(field, Link, data)


def _read_flow(field: str, data: object) -> Flow:
    data = dict(_mapping(field, data))
    if "app" in data:
        data["app"] = _variant(f"{field}.app", data["app"], APPLICATIONS)
    return _make(field, Flow, data)


def _variant(field: str, data: object, kinds: dict[str, type]) -> object:
    data = dict(_mapping(field, data))
    kind = data.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise ScenarioError(f"{field}.kind = {shown(kind)} is unknown; valid: {', '.join(kinds)}")
    return _make(field, kinds[kind], data)


def _plain(value: object, skip: tuple[str, ...] = ()) -> dict:
    result = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if field.name in skip or (field.default is not MISSING and type(item) is type(field.default) and item == field.default):
            continue
        result[field.name] = item.tolist() if hasattr(item, "tolist") else list(item) if isinstance(item, tuple) else item
    return result


def _make(field: str, cls: type, data: object) -> object:
    data = _mapping(field, data)
    known = {f.name: f for f in fields(cls)}
    for name in data:
        if name not in known:
            raise ScenarioError(f"{field} has no field {name!r}; valid: {', '.join(known)}")
    for name, f in known.items():
        if name not in data and f.default is MISSING:
            raise ScenarioError(f"{field}.{name} is missing")
    try:
        return cls(**data)
    except ScenarioError as error:
        if field == "scenario":
            raise
        raise type(error)(f"{field}: {error}") from None


def _mapping(field: str, data: object) -> dict:
    if not isinstance(data, dict):
        raise ScenarioTypeError(f"{field} = {shown(data)} is not a mapping of fields to values")
    return data
