"""What pages about experiments show alike: how a campaign ran, its means, its pictures with fewer colours."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, needing
from netbuf_gym.files import write_atomic
from studies.common.campaign import DESCRIPTION, RUNS
from studies.common.experiment import Experiment
from studies.common.results import Runs

COLOURS = 256


def described(source: Path) -> dict[str, Any]:
    """The description of a finished campaign; raises ConfigError for a folder without one."""
    if not (source / RUNS).is_file():
        raise ConfigError(f"{source}: holds no finished campaign; valid: a folder with {RUNS}")
    return json.loads((source / DESCRIPTION).read_text(encoding="utf-8"))


def of_any_machine(command: str) -> str:
    """A command without where one machine keeps its files: agents of the package by their names, traces in DIR."""
    command = re.sub(r"=(?:[\w./-]*/)?zoo/agents/([\w-]+/[\w-]+)/model\.zip", r"=\1", command)
    return re.sub(r"\btraces=\S+", "traces=DIR", command)


def ran(description: dict[str, Any]) -> str:
    """The command, and how long it took where."""
    return (
        f"`{of_any_machine(description['command'])}` (netbuf-gym {description['netbuf_gym']}): {description['runs']:,} runs in "
        f"{description['seconds'] / 60:.1f} minutes with {description['jobs']} threads on {description['machine']}."
    )


def write_means(runs: Runs, path: Path) -> None:
    """Writes the means over seeds of every cell, packed; equal runs give equal bytes."""
    write_atomic(path, gzip.compress(runs.means_csv().encode(), mtime=0))


def write_rows(runs: Runs, texts: tuple[str, ...], path: Path) -> Runs:
    """Writes every run, packed, and gives the runs as they stand there, so that what is said of them follows from the file.

    Args:
        texts: Keys that are no numbers.
    """
    text = runs.rows_csv()
    write_atomic(path, gzip.compress(text.encode(), mtime=0))
    return Runs.of_rows(text, runs.keys, texts, runs.measures)


def kept(folder: Path, *names: str) -> str:
    """Where a page's folder of figures has every run."""
    files = " and ".join(f"[{name}](figures/{folder.name}/{name})" for name in names)
    return f"Every run, with all that was measured, to reckon with: {files}; what follows is of these."


def read_rows(path: Path, like: Experiment[Any]) -> Runs:
    """What `write_rows` wrote of an experiment's campaign."""
    return Runs.of_rows(gzip.decompress(path.read_bytes()).decode(), like.keys, like.texts, tuple(like.measures))


def pictures(drawn: Iterable[Path], folder: Path, prefix: str = "", suffix: str = "") -> list[str]:
    """Copies pictures, made smaller, into a page's folder, and gives the lines that show them there."""
    lines = []
    for path in drawn:
        name = f"{prefix}{path.name}"
        write_atomic(folder / name, smaller(path))
        lines += [f"![{path.stem.replace('_', ' ')}{suffix}](figures/{folder.name}/{name})", ""]
    return lines


def smaller(path: Path) -> bytes:
    """A picture with few colours, a fraction of the size."""
    with needing("a page's pictures", "train"):
        from PIL import Image
    out = io.BytesIO()
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(out, format="PNG", optimize=True)
    return out.getvalue()
