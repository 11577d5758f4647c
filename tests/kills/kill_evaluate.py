"""`netbuf-gym evaluate`, killed: table, plots and result.json are whole, and result.json is there when all of them are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from killing_cases import Damage, Job

import netbuf_gym

CLOCKS = ("run_dir",)
PICTURES = (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82")


def prepare() -> None:
    """Imports what the command does."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401

    from netbuf_gym.zoo import evaluate  # noqa: F401


def argv(folder: Path) -> list[str]:
    """An agent beside two baselines, with plots."""
    model = Path(netbuf_gym.__file__).parents[1] / "zoo" / "agents" / "congestion_window" / "ppo" / "model.zip"
    scenario = ["scenario=ppcc/2", "scenario.kwargs.duration_s=20"]
    return ["evaluate", f"model={model}", *scenario, "seeds=3", "baselines=[cubic,bbr,random]", f"run_dir={folder}"]


def whole(folder: Path) -> None:
    """Every file that is there, read to its end."""
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue  # of a write that was under way
        data = path.read_bytes()
        if path.suffix == ".png":
            if not (data.startswith(PICTURES[0]) and data.endswith(PICTURES[1])):
                raise Damage(f"{path.name} is cut")
        elif path.suffix == ".json":
            json.loads(data)
        elif not data.endswith(b"\n") or b"| " not in data:
            raise Damage(f"{path.name} is cut")
    if (folder / "result.json").is_file() and not (folder / "table.md").is_file():
        raise Damage("result.json is there, and the table is not")
    drawn = {path.name for path in folder.glob("*.png")}
    if (folder / "result.json").is_file() and drawn < {"throughput_delay.png", "time_series.png"}:
        raise Damage(f"result.json is there, and of the plots only {sorted(drawn)}")


def figures(folder: Path) -> dict[str, Any]:
    """The result without the name of its folder, the table, and which pictures there are."""
    result = json.loads((folder / "result.json").read_text())
    for key in CLOCKS:
        result["config"].pop(key, None)
    pictures = {path.name: path.read_bytes() for path in folder.glob("*.png")}
    return {"result": result, "table": (folder / "table.md").read_text(), "pictures": pictures}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """To the last digit, and the last byte."""
    for key, value in one.items():
        if value != other[key]:
            raise Damage(f"{key} is not that of an undisturbed run")


JOB = Job("evaluate", prepare, argv, whole, figures, same)
