"""Parts of links that the native core describes by a catalogue entry: classes generated from their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, ClassVar, TypeVar

from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.catalogue import KINDS, CatalogueEntry, split_name_and_parameters
from netbuf_gym.utils.checks import choice
from netbuf_gym.utils.suggestions import suggest_valid


@dataclass(frozen=True, kw_only=True)
class ParameterRecord:
    """Base of the generated classes: fields with defaults and ranges: numbers, truth values and words.

    Attributes:
        kind: Name in JSON and in the core.
        record: The core's description.
    """

    kind: ClassVar[str] = ""
    record: ClassVar[CatalogueEntry]

    def __post_init__(self) -> None:
        for parameter in self.record.parameters:
            value = getattr(self, parameter.name)
            if value is not None or parameter.default is not None:
                value = parameter.check(f"{self.kind}.{parameter.name}", value)
            object.__setattr__(self, parameter.name, value)
        try:
            self.check_together(self.kind, self.parameters())
        except ValueError as error:
            raise ScenarioError(f"{self.kind}.{error}") from None

    @staticmethod
    def check_together(kind: str, parameters: dict[str, float]) -> None:
        """Raise ValueError, in the core's words, where parameters do not go together."""
        raise NotImplementedError

    def parameters(self) -> dict[str, float]:
        """Return the core's parameters, without those that are None (the core chooses their values)."""
        values = {parameter: getattr(self, parameter.name) for parameter in self.record.parameters}
        return {parameter.name: parameter.encode(value) for parameter, value in values.items() if value is not None}


Record = TypeVar("Record", bound=ParameterRecord)


def build_class(base: type[Record], record: CatalogueEntry, name: str, module: str) -> type[Record]:
    """Build a frozen dataclass `module.name` below `base` whose keyword-only fields are the record's parameters."""
    entries, lines = [], []
    for parameter in record.parameters:
        kind = KINDS[parameter.kind].type.__name__ + (" | None" if parameter.default is None else "")
        entries.append((parameter.name, kind, field(default=parameter.default)))
        meaning = parameter.meaning.replace("auto:", "None:")
        lines.append(f"    {parameter.name}: {meaning}; {parameter.range}.")
    text = f"{record.meaning[0].upper()}{record.meaning[1:]}.\n"
    if lines:
        text += "\nArgs:\n" + "\n".join(lines) + "\n"
    about = {"kind": record.name, "record": record, "__doc__": text, "__module__": module}
    return make_dataclass(name, entries, bases=(base,), namespace=about, frozen=True, kw_only=True)


def parse_record(label: str, value: Any, base: type[Record], classes: Mapping[str, type[Record]], what: str) -> Record:
    """Build a record from a record, a name, or a dict of `name` (or `kind`, as in JSON) and parameters.

    Args:
        label: Field for error messages.
        value: Value to convert.
        base: Base of the classes.
        classes: Classes by name.
        what: What is valid, for error messages.

    Raises:
        ScenarioError: An unknown name or parameter, or a value out of range.
    """
    if isinstance(value, base):
        return value
    if isinstance(value, Mapping) and "kind" in value and "name" not in value:  # as in JSON
        value = {"name" if key == "kind" else key: item for key, item in value.items()}
    name, given = split_name_and_parameters(label, value, what)
    cls = classes[choice(label, name, classes)]
    known = [entry.name for entry in fields(cls)]
    for key in given:
        if key not in known:
            raise ScenarioError(f"{label}: {name} has no parameter {key!r}; {suggest_valid(key, known)}")
    try:
        return cls(**given)
    except ScenarioError as error:
        raise type(error)(f"{label}: {error}") from None
