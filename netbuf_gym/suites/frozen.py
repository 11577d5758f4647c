"""Sets of worlds that are kept in files: each world by what it is made of, with a version and a digest of them all.

A file says how each world is made, not how it was drawn, so that it stays what it is when distributions change. Traces are in
it by the call that generates them, and with the mean that they had: another one says that a generator gives something else now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.files import write_atomic
from netbuf_gym.scenarios import Scenario
from netbuf_gym.suites.suite import Cell, Edition

SCHEMA = "netbuf-gym/worlds/1"
FOLDER = Path(__file__).parent
Place = Callable[[Mapping[str, Any]], tuple[str, Scenario, Sequence[tuple[str, float]]]]
"""Of a world as it stands in a file: its family, its scenario with agents in their places, and of each trace that is generated
the generator and the mean rate, Mbit/s. Raises ScenarioError where there is none."""
SAME = 2e-3
"""Relative difference of a trace's mean rate up to which it is the same: other processors round the last bits otherwise."""


def digest_of(worlds: Sequence[Mapping[str, Any]]) -> str:
    """Of worlds as they stand in a file: 16 hexadecimal digits of a SHA-256."""
    text = json.dumps(list(worlds), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_of(suite: str) -> Path:
    """Where the worlds of a suite are kept."""
    return FOLDER / f"{suite.replace('/', '-')}.json"


def write(path: Path, suite: str, version: int, worlds: Sequence[Mapping[str, Any]]) -> None:
    """Writes a file of worlds, one in a line, atomically; each has `name`, `seed`, `world` and `capacities_mbps`."""
    head = {"schema": SCHEMA, "suite": suite, "version": version, "digest": digest_of(worlds)}
    lines = ",\n".join(json.dumps(world, separators=(",", ":")) for world in worlds)
    write_atomic(path, f'{json.dumps(head)[:-1]}, "worlds": [\n{lines}\n]}}\n')


def read(path: Path, suite: str, place: Place) -> Edition:
    """The worlds of a file, with agents in their places.

    Args:
        place: What a world in it stands for.

    Raises:
        ConfigError: The file is not there, or is no file of this suite's worlds; a world is not what it was when it was frozen,
            or needs a trace that nothing generates any more.
    """
    again = f"valid: the file as it was frozen, or a new version (python -m netbuf_gym.suites.freeze {suite})"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        schema, of, version, digest, worlds = (data[key] for key in ("schema", "suite", "version", "digest", "worlds"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: is no file of worlds ({error}); {again}") from None
    if (schema, of) != (SCHEMA, suite):
        raise ConfigError(f"{path}: is {schema!r} of suite {of!r}; valid: {SCHEMA!r} of {suite!r}")
    if (found := digest_of(worlds)) != digest:
        raise ConfigError(f"{path}: its worlds are not those of version {version}: digest {found}, not {digest}; {again}")
    try:
        return Edition(version, digest, tuple(_cell(suite, version, one, place) for one in worlds))
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{path}: has a world without name, seed or world ({error!r}); {again}") from None


def _cell(suite: str, version: int, one: Mapping[str, Any], place: Place) -> Cell:
    at = f"suite {suite}, version {version}, world {one['name']!r}"
    try:
        family, scenario, generated = place(one)
    except ScenarioError as error:
        raise ConfigError(f"{at}: cannot be made: {error}") from None
    held = one.get("capacities_mbps", ())
    if len(held) != len(generated):
        raise ConfigError(f"{at}: capacities_mbps has {len(held)} values for {len(generated)} generated traces; valid: as many")
    for (kind, mean), frozen in zip(generated, held, strict=True):
        if abs(mean - frozen) > SAME * frozen:
            now = f"generator {kind!r} gives a trace of {mean:.4g} Mbit/s, not of {frozen:.4g}"
            raise ConfigError(f"{at}: {now}; valid: the netbuf-gym that froze it, or a new version of the suite")
    return Cell(one["name"], family, scenario, one["seed"])


def rounded(value: Any) -> Any:
    """Numbers of JSON to six significant digits, in whatever holds them; what is whole stays as it is."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
