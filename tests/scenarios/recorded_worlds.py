"""What named scenarios are, field by field: the papers' tables and our defaults change on purpose only.

    python -m tests.scenarios.recorded_worlds            compares with tests/data/worlds.json
    python -m tests.scenarios.recorded_worlds --write    records them anew (say in CHANGELOG.md what changed, and why)

Names that are not recorded are no difference: a new scenario needs no entry here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.scenarios import Scenario
from tests.helpers.processors import start_pinned

RECORDED = Path(__file__).resolve().parents[1] / "data" / "worlds.json"
DRAWS = 4
JSON = (str, int, float, bool, list, tuple, type(None))
VARIANTS: dict[str, dict[str, Any]] = {
    "dumbbell": {"stack": "ns3", "n": 3},
    "ppcc/random": {"change_probability": 1.0, "n": 2},
    "ppcc/fluctuating": {"n": 3, "stagger_s": 0.5},
    "rlbm/default": {"stack": "ns3", "per_queue_cap": True, "scheduler": "drr", "hosts": 3},
    "rlbm/incast": {"scheduler": "strict_priority", "random": True, "per_queue_cap": True},
    "rlbm/random": {"incast_probability": 1.0, "per_queue_cap": True},
    "rlbm/thesis-text": {"load": 0.1, "per_queue_cap": True, "incast": {"interval_s": 1, "fan_in": 2, "size_bytes": 1000}},
    "rlbm/thesis-code": {"load": 0.9, "per_queue_cap": True},
}
SCHEMES = (
    "naive", "sophisticated", "dt", "abm", "agent", "static_bdp", "static_bdp_sqrt_n", "droptail", "red", "codel", "fq_codel",
    "pie", {"name": "dt", "alphas": [1, 2]}, {"name": "abm", "alphas": [4]}, {"name": "static_bdp_sqrt_n", "n": 16},
    {"name": "codel", "target_ms": 1.0},
)  # fmt: skip


def worlds() -> Iterator[tuple[str, Any]]:
    """Every scenario by its name, with other arguments where there are some, and some draws of every distribution."""
    for name in (*scenarios.names(), "rlbm/newreno-300-0.4"):
        for arguments in ({}, *([VARIANTS[name]] if name in VARIANTS else [])):
            label = f"{name} {json.dumps(arguments)}" if arguments else name
            world = scenarios.get(name, **arguments)
            if isinstance(world, Scenario):
                yield label, world.to_dict()
                continue
            for seed in range(DRAWS):
                yield f"{label} drawn {seed}", world.sample(np.random.default_rng(seed)).to_dict()
    for scheme in SCHEMES:
        for name in ("rlbm/default", "rlbm/thesis-code"):
            yield f"{name} as {json.dumps(scheme)}", scenarios.get(name).with_scheme(scheme).to_dict()


def short(value: Any) -> Any:
    """Long lists as their length and digest; the rest as JSON has it."""
    if isinstance(value, dict):
        return {key: short(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        if len(value) > 12:
            return f"{len(value)} values, {hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]}"
        return [short(one) for one in value]
    return value


def defaults() -> Iterator[tuple[str, Any]]:
    """What fields are when nothing is said of them: worlds in JSON leave that out."""
    tasks_own = {kind.__name__: kind for kind in scenarios.Distribution.__subclasses__()}
    offered = {name: getattr(scenarios, name) for name in scenarios.__all__}
    for name, kind in sorted((tasks_own | offered).items()):
        if isinstance(kind, type) and is_dataclass(kind):
            said = {one.name: one.default for one in fields(kind) if one.init and one.default is not MISSING}
            yield f"defaults of {name}", {key: value if isinstance(value, JSON) else repr(value) for key, value in said.items()}


def made() -> dict[str, Any]:
    return json.loads(json.dumps({label: short(world) for label, world in (*worlds(), *defaults())}))


def differing(now: Any, then: Any) -> bool:
    """Whether a recorded world or set of defaults is another one now; fields that are new are no difference."""
    if isinstance(then, dict) and isinstance(now, dict):
        return any(key not in now or differing(now[key], value) for key, value in then.items())
    return now != then


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="record anew")
    if parser.parse_args().write:
        entries = (f"{json.dumps(label)}: {json.dumps(world, sort_keys=True)}" for label, world in made().items())
        RECORDED.write_text("{\n" + ",\n".join(entries) + "\n}\n")
        return 0
    now, then = made(), json.loads(RECORDED.read_text())
    wrong = [label for label in then if differing(now.get(label), then[label])]
    print("\n".join(wrong) or "every world as recorded")
    return bool(wrong)


if __name__ == "__main__":
    start_pinned()
    sys.exit(main())
