"""`netbuf-gym reproduce`, killed: parts, table, description and figures are whole, and the same command goes on."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from killing_cases import Damage, Job

CLOCKS = ("seconds", "machine")
PICTURES = (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82")


def prepare() -> None:
    """Imports what the command does."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401

    from netbuf_gym.reproduce import figures  # noqa: F401
    from netbuf_gym.zoo import saved  # noqa: F401


def argv(folder: Path) -> list[str]:
    """Small, with a trained agent, a sweep and figures."""
    cells = ["ccs=[cubic]", "sizes=[20,50]", "loads=[0.4,0.8]", "seeds=2", "duration_s=3", "intervals=[0.05]"]
    return ["reproduce", "rlbm", "schemes=[naive,dt,rlbm]", *cells, "jobs=1", f"output={folder}"]


def whole(folder: Path) -> None:
    """Every file that is there, read to its end."""
    for path in folder.rglob("*"):
        if path.is_dir() or path.name.startswith("."):
            continue  # of a write that was under way
        data = path.read_bytes()
        if path.suffix == ".png":
            if not (data.startswith(PICTURES[0]) and data.endswith(PICTURES[1])):
                raise Damage(f"{path.name} is cut")
        elif path.suffix == ".json":
            json.loads(data)
        elif path.suffix == ".csv":
            rows = list(csv.reader(line for line in data.decode().splitlines() if not line.startswith("#")))
            if not data.endswith(b"\n") or len({len(row) for row in rows}) != 1:
                raise Damage(f"{path.name} is cut")
        else:
            raise Damage(f"{path.name} is no artefact")


def figures(folder: Path) -> dict[str, Any]:
    """All of it without clocks."""
    description = json.loads((folder / "campaign.json").read_text())
    for key in CLOCKS:
        description.pop(key, None)
    if (folder / "parts").exists():
        raise Damage("parts are left")
    pictures = {path.name: path.read_bytes() for path in (folder / "figures").glob("*.png")}
    return {"campaign": description, "runs": (folder / "runs.csv").read_text(), "pictures": pictures}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """To the last digit, and the last byte."""
    for key, value in one.items():
        if value != other[key]:
            raise Damage(f"{key} is not that of an undisturbed run")


JOB = Job("reproduce", prepare, argv, whole, figures, same)
