"""`netbuf-gym evaluate`, killed: table, plots and result.json are whole, and result.json is there when all of them are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import netbuf_gym
from tools.kills.killing import Damage, Job, list_artefacts, require_whole

PLOTS = {"throughput_delay.png", "time_series.png"}


def prepare() -> None:
    """Import what the command does."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401

    from netbuf_gym.training import evaluate  # noqa: F401


def argv(folder: Path) -> list[str]:
    """An agent beside two baselines, with plots."""
    model = Path(netbuf_gym.__file__).parents[1] / "zoo" / "agents" / "congestion_window" / "ppo" / "model.zip"
    scenario = ["scenario=ppcc/2", "scenario.kwargs.duration_s=5"]
    return ["evaluate", f"model={model}", *scenario, "seeds=2", "baselines=[cubic,random]", f"run_dir={folder}"]


def whole(folder: Path) -> None:
    """Read every file that is there to its end."""
    found = list_artefacts(folder)
    for path in found:
        require_whole(path)
    names = {path.name for path in found}
    if "result.json" in names and not names >= {"table.md", *PLOTS}:
        raise Damage(f"result.json is there, and of the others only {sorted(names)}")


def figures(folder: Path) -> dict[str, Any]:
    """The result without the name of its folder, the table, and the pictures."""
    result = json.loads((folder / "result.json").read_text())
    result["config"].pop("run_dir", None)
    others = {path.name: path.read_bytes() for path in list_artefacts(folder) if path.name != "result.json"}
    return {"result.json": result, **others}


JOBS = [Job("evaluate", prepare, argv, whole, figures)]
