"""Lines of studies' pages: how a campaign was run, the location of its rows, and its figures with fewer colours."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from netbuf_gym.errors import require_extra
from netbuf_gym.utils.files import write_atomic
from studies.common.kept import KeptRows

COLOURS = 256


def remove_local_paths(command: str) -> str:
    """Return a command without machine-specific paths: the package's agents by name, traces in DIR."""
    command = re.sub(r"=(?:[\w./-]*/)?zoo/agents/([\w-]+/[\w-]+)/model\.zip", r"=\1", command)
    return re.sub(r"\btraces=\S+", "traces=DIR", command)


def describe_run(header: Mapping[str, Any]) -> str:
    """Return a line with the command, its duration and the machine."""
    return (
        f"`{header['command']}` (netbuf-gym {header['version']}): {header['runs']:,} runs in "
        f"{header['seconds'] / 60:.1f} minutes with {header['jobs']} threads on {header['machine']}."
    )


def describe_rows_file(kept: KeptRows) -> str:
    """Return a line with the location of a section's rows."""
    path = kept.path.relative_to(kept.root)
    return f"Every run, with all that was measured, to reckon with: `{path}`; what follows is of these."


def show_figures(kept: KeptRows, names: Iterable[str], prefix: str = "", suffix: str = "") -> list[str]:
    """Return the lines that show figures; those drawn here are first copied beside the page, missing ones left out.

    Args:
        kept: Rows of the section.
        names: Names of the figures as drawn, without extension.
        prefix: Prefix of the file names beside the page.
        suffix: Suffix of the descriptions.
    """
    lines: list[str] = []
    drawn = kept.drawn_folder
    for name in names:
        shown = kept.figures / f"{prefix}{name}.png"
        if drawn is not None and (drawn / f"{name}.png").is_file():
            shown.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(shown, shrink_image(drawn / f"{name}.png"))
        if shown.is_file():
            lines += [f"![{name.replace('_', ' ')}{suffix}](../figures/{kept.study}/{shown.name})", ""]
    return lines


def find_figure_names(kept: KeptRows, pattern: str, prefix: str = "") -> list[str]:
    """Return the sorted names, without prefix and extension, of the figures drawn here, or else of those beside the page."""
    if kept.drawn_folder is not None:
        return sorted(path.stem for path in kept.drawn_folder.glob(pattern))
    return sorted(path.stem.removeprefix(prefix) for path in kept.figures.glob(f"{prefix}{pattern}"))


def shrink_image(path: Path) -> bytes:
    """Return a figure as a PNG with few colours, a fraction of the size."""
    with require_extra("a page's pictures", "train"):
        from PIL import Image
    out = io.BytesIO()
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(out, format="PNG", optimize=True)
    return out.getvalue()
