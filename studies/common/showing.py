"""Lines of studies' pages: how a campaign ran, where its rows are, its pictures with fewer colours."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from netbuf_gym.errors import needing
from netbuf_gym.utils.files import write_atomic
from studies.common.kept import Kept

COLOURS = 256


def of_any_machine(command: str) -> str:
    """A command without where one machine keeps its files: agents of the package by their names, traces in DIR."""
    command = re.sub(r"=(?:[\w./-]*/)?zoo/agents/([\w-]+/[\w-]+)/model\.zip", r"=\1", command)
    return re.sub(r"\btraces=\S+", "traces=DIR", command)


def ran(header: Mapping[str, Any]) -> str:
    """The command, and how long it took where."""
    return (
        f"`{header['command']}` (netbuf-gym {header['version']}): {header['runs']:,} runs in "
        f"{header['seconds'] / 60:.1f} minutes with {header['jobs']} threads on {header['machine']}."
    )


def where_rows_are(kept: Kept) -> str:
    """A line that says where a section's rows are."""
    path = kept.path.relative_to(kept.root)
    return f"Every run, with all that was measured, to reckon with: `{path}`; what follows is of these."


def pictures(kept: Kept, names: Iterable[str], prefix: str = "", suffix: str = "") -> list[str]:
    """The lines that show pictures; those that were drawn here are put beside the page before, those that are nowhere left out.

    Args:
        names: As they are drawn, without their ending.
        prefix: Of their names beside the page.
        suffix: Of their descriptions.
    """
    lines: list[str] = []
    drawn = kept.drawn
    for name in names:
        shown = kept.figures / f"{prefix}{name}.png"
        if drawn is not None and (drawn / f"{name}.png").is_file():
            shown.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(shown, smaller(drawn / f"{name}.png"))
        if shown.is_file():
            lines += [f"![{name.replace('_', ' ')}{suffix}](../figures/{kept.study}/{shown.name})", ""]
    return lines


def names_drawn(kept: Kept, pattern: str, prefix: str = "") -> list[str]:
    """The names of the pictures that were drawn here, else of those beside the page, without prefix and ending, in order."""
    if kept.drawn is not None:
        return sorted(path.stem for path in kept.drawn.glob(pattern))
    return sorted(path.stem.removeprefix(prefix) for path in kept.figures.glob(f"{prefix}{pattern}"))


def smaller(path: Path) -> bytes:
    """A picture with few colours, a fraction of the size."""
    with needing("a page's pictures", "train"):
        from PIL import Image
    out = io.BytesIO()
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(out, format="PNG", optimize=True)
    return out.getvalue()
