"""Files of worlds: each world by the parameters that make it, with a version and a digest over all worlds.

A file holds how each world is made, not how it was drawn, so that it does not change when distributions do. Traces are stored
as the call that generates them, with their mean rate: another mean shows that a generator has changed. An entry's
`start_jitter_ms` is its scenario's; worlds of first versions have none, which is 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from netbuf_gym.envs.engine import MAX_SEED
from netbuf_gym.errors import ConfigError, ScenarioError, quote
from netbuf_gym.evaluation.suites.suite import Cell, Edition
from netbuf_gym.scenarios import Scenario
from netbuf_gym.utils.arguments import check_integer, check_real
from netbuf_gym.utils.files import write_atomic, write_json

SCHEMA = "netbuf-gym/worlds/1"
FOLDER = Path(__file__).parent
EDITIONS = "editions.json"
"""File beside those of worlds: the versions of each suite, with the digests of their worlds."""
WorldPlacer = Callable[[Mapping[str, Any]], tuple[str, Scenario, Sequence[tuple[str, float]]]]
"""Function from a world as stored in a file to its family, its scenario with agents in their places, and for each generated
trace the generator and the mean rate, Mbit/s. Raises ScenarioError if the world cannot be made."""
START_JITTER_MS = 100.0
"""Largest delay of flows' starts in worlds of later versions, without which worlds are the same under every seed."""
MEAN_TOLERANCE = 2e-3
"""Relative difference of a trace's mean rate that is tolerated: processors differ in how they round the last bits."""


def compute_digest(worlds: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest of worlds as stored in a file: 16 hexadecimal digits of a SHA-256."""
    text = json.dumps(list(worlds), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def get_file(suite: str) -> Path:
    """Return the path of the file that holds a suite's worlds."""
    return FOLDER / f"{suite.replace('/', '-')}.json"


def read_editions(folder: Path) -> dict[str, dict[int, str]]:
    """Return, by suite and version, the digests of the worlds that a folder's files have had.

    Raises:
        ConfigError: If the file of editions is damaged.
    """
    file = folder / EDITIONS
    try:
        kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return {suite: {int(version): str(digest) for version, digest in own.items()} for suite, own in kept.items()}
    except (ValueError, AttributeError) as error:
        raise ConfigError(f"{file}: is no list of editions ({error}); valid: {{SUITE: {{VERSION: DIGEST}}}}") from None


def write(path: Path, suite: str, version: int, worlds: Sequence[Mapping[str, Any]]) -> None:
    """Write a file of worlds, one per line, atomically, and add its version and digest to the folder's editions.

    Args:
        worlds: Worlds, each with `name`, `seed`, `world`, if traces are generated `capacities_mbps`, and if starts are drawn
            by the seed `start_jitter_ms`.

    Raises:
        ConfigError: If a world lacks one of these, or this version already has other worlds.
    """
    _require_worlds(worlds, suite)
    known, digest = read_editions(path.parent), compute_digest(worlds)
    own = known.setdefault(suite, {})
    if own.setdefault(version, digest) != digest:
        said = f"version {version} of {suite} has other worlds, digest {own[version]}"
        raise ConfigError(f"{path}: {said}; valid: --version {max(own) + 1}")
    write_json(path.with_name(EDITIONS), known)
    head = {"schema": SCHEMA, "suite": suite, "version": version, "digest": compute_digest(worlds)}
    lines = ",\n".join(json.dumps(world, separators=(",", ":")) for world in worlds)
    write_atomic(path, f'{json.dumps(head)[:-1]}, "worlds": [\n{lines}\n]}}\n')


def read(path: Path, suite: str, place: WorldPlacer, families: Collection[str]) -> Edition:
    """Return the worlds of a file, with agents in their places.

    Args:
        place: Function that makes the world of an entry.
        families: Valid families.

    Raises:
        ConfigError: If the file is missing, or does not hold this suite's worlds; its version is unknown or a world has changed
            since it was frozen; a world is of no family of the suite, or needs a trace that no generator produces any more.
    """
    version, digest, worlds = _read_worlds(path, suite)
    return Edition(version, digest, tuple(_make_cell(suite, version, one, place, families) for one in worlds))


@dataclass(frozen=True, eq=False)
class Loader:
    """Callable that returns the edition of a suite that is kept in a file of its own.

    Attributes:
        suite: Name of the suite.
        place, families: See `read`.
    """

    suite: str
    place: WorldPlacer
    families: Collection[str]

    def __call__(self) -> Edition:
        return read(get_file(self.suite), self.suite, self.place, self.families)

    def outline(self) -> Edition:
        """Return the edition with cells that have no scenario; raise ConfigError for another file than was frozen."""
        version, digest, worlds = _read_worlds(get_file(self.suite), self.suite)
        names = ((one["name"], one.get("family") or one["world"]["family"], one["seed"]) for one in worlds)
        return Edition(version, digest, tuple(Cell(name, family, cast(Scenario, None), seed) for name, family, seed in names))


def _read_worlds(path: Path, suite: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Return version, digest and worlds of a file, checked against the known editions."""
    again = f"valid: the file as it was frozen, or a new version (python -m netbuf_gym.evaluation.suites.freeze {suite})"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        schema, of, version, digest, worlds = (data[key] for key in ("schema", "suite", "version", "digest", "worlds"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except KeyError as error:
        raise ConfigError(f"{path}: is no file of worlds, {error} is missing; {again}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: is no file of worlds ({error}); {again}") from None
    if (schema, of) != (SCHEMA, suite):
        raise ConfigError(f"{path}: is {schema!r} of suite {of!r}; valid: {SCHEMA!r} of {suite!r}")
    known = read_editions(path.parent).get(suite, {})
    if isinstance(version, bool) or not isinstance(version, int) or version not in known:
        there = ", ".join(f"{own} (digest {digest})" for own, digest in known.items()) or "none"
        raise ConfigError(f"{path}: version = {quote(version)} of suite {suite} is unknown; valid: {there}")
    _require_worlds(worlds, str(path))
    found = compute_digest(worlds)
    if wrong := next((one for one in (found, digest) if one != known[version]), None):
        said = f"its worlds are not those of version {version}: digest {quote(wrong)}, not {known[version]}"
        raise ConfigError(f"{path}: {said}; {again}")
    return version, digest, worlds


def _require_worlds(worlds: Any, at: str) -> None:
    """Raise ConfigError unless this is a list of worlds; names the world and the field."""
    if not isinstance(worlds, list) or not worlds:
        raise ConfigError(f"{at}: worlds = {quote(worlds)}; valid: a list of at least one world")
    names: set[str] = set()
    for number, one in enumerate(worlds):
        where = f"{at}: worlds[{number}]"
        if not isinstance(one, dict):
            raise ConfigError(f"{where} = {quote(one)}; valid: a mapping of name, seed and world")
        name = one.get("name")
        if not isinstance(name, str) or not name or name in names:
            raise ConfigError(f"{where}.name = {quote(name)}; valid: a text that is not empty, and no other world's")
        names.add(name)
        check_integer(f"{where}.seed", one.get("seed"), 0, MAX_SEED - 1)
        if not isinstance(one.get("world"), dict):
            raise ConfigError(f"{where}.world = {quote(one.get('world'))}; valid: a mapping of what it is made of")
        check_real(f"{where}.start_jitter_ms", one.get("start_jitter_ms", 0.0), 0, 60_000)
        means = one.get("capacities_mbps", [])
        if not isinstance(means, list):
            raise ConfigError(f"{where}.capacities_mbps = {quote(means)}; valid: a list of numbers")
        for place, mean in enumerate(means):
            check_real(f"{where}.capacities_mbps[{place}]", mean, 0, 1e9, low_open=True)


def _make_cell(suite: str, version: int, one: Mapping[str, Any], place: WorldPlacer, families: Collection[str]) -> Cell:
    at = f"suite {suite}, version {version}, world {one['name']!r}"
    try:
        family, scenario, generated = place(one)
    except ScenarioError as error:
        raise ConfigError(f"{at}: cannot be made: {error}") from None
    if not isinstance(family, str) or family not in families:
        raise ConfigError(f"{at}: family = {quote(family)}; valid: {', '.join(families)}")
    held = one.get("capacities_mbps", ())
    if len(held) != len(generated):
        raise ConfigError(f"{at}: capacities_mbps has {len(held)} values for {len(generated)} generated traces; valid: as many")
    for (kind, mean), frozen in zip(generated, held, strict=True):
        if abs(mean - frozen) > MEAN_TOLERANCE * frozen:
            now = f"generator {kind!r} gives a trace of {mean:.4g} Mbit/s, not of {frozen:.4g}"
            raise ConfigError(f"{at}: {now}; valid: the netbuf-gym that froze it, or a new version of the suite")
    if jitter_ms := one.get("start_jitter_ms"):
        scenario = replace(scenario, start_jitter_ms=jitter_ms)
    return Cell(one["name"], family, scenario, one["seed"])


def round_floats(value: Any) -> Any:
    """Return a JSON value with its floats, in nested lists and mappings too, rounded to six significant digits; ints stay."""
    if isinstance(value, dict):
        return {key: round_floats(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [round_floats(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
