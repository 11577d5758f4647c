"""`netbuf-gym reproduce`, killed: parts, table, description and figures are whole, and the same command goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.kills.killing import Damage, Job, list_artefacts, require_whole

CLOCKS = ("seconds", "machine")


def prepare() -> None:
    """Import what the command does."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401

    from netbuf_gym.training.checkpoints import saved_agent  # noqa: F401
    from netbuf_gym.utils import checkout

    checkout.import_studies(checkout.require_checkout(), "rlbm.figures")


def argv(folder: Path) -> list[str]:
    """Small, with a trained agent, a sweep and figures."""
    cells = ["ccs=[cubic]", "sizes=[20]", "loads=[0.4,0.8]", "seeds=1", "duration_s=2", "intervals=[0.05]"]
    return ["reproduce", "rlbm", "schemes=[naive,rlbm]", *cells, "jobs=1", f"output={folder}"]


def whole(folder: Path) -> None:
    """Read every file that is there to its end."""
    for path in list_artefacts(folder):
        require_whole(path)


def figures(folder: Path) -> dict[str, Any]:
    """All of it without clocks."""
    if (folder / "parts").exists():
        raise Damage("parts are left")
    description = json.loads((folder / "campaign.json").read_text())
    for key in CLOCKS:
        description.pop(key, None)
    others = {
        str(path.relative_to(folder)): path.read_bytes() for path in list_artefacts(folder) if path.name != "campaign.json"
    }
    return {"campaign.json": description, **others}


JOBS = [Job("reproduce", prepare, argv, whole, figures)]
