"""Puts the tables and figures of finished campaigns into the page about them.

    python -m netbuf_gym.reproduce.page docs/rlbm.md thesis-code=DIR default=DIR [compare=DIR]

DIR are the folders that `netbuf-gym reproduce rlbm` and `python -m netbuf_gym.reproduce.compare` wrote. What stands between
the page's marks for each of them is replaced; figures, with fewer colours, go to figures/rlbm/ beside the page, and so do the
means over seeds of every cell (means-TRAFFIC.csv.gz) and the comparison's files.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, NetbufError, ReferenceDataError, needing
from netbuf_gym.files import csv_fields, csv_records, read_text, write_atomic
from netbuf_gym.reproduce.campaign import DESCRIPTION, RUNS
from netbuf_gym.reproduce.claims import claims_table, means_table, sweep_claim, sweep_table
from netbuf_gym.reproduce.figures import three
from netbuf_gym.reproduce.results import Runs, means_csv
from netbuf_gym.reproduce.settings import TRAFFIC

FIGURES = "figures/rlbm"
COMPARE = "compare"
COLOURS = 256


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: A page without marks, a folder without a finished campaign.
        OSError: A file cannot be read or written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    if not argv or "=" in argv[0]:
        raise ConfigError("no page is given; valid: PAGE, then traffic=DIR")
    page, sources = Path(argv[0]), {}
    for argument in argv[1:]:
        key, equals, value = argument.partition("=")
        if not equals or key not in (*TRAFFIC, COMPARE) or key in sources:
            raise ConfigError(f"argument {argument!r} is unknown, or given twice; valid: {'=, '.join((*TRAFFIC, COMPARE))}=")
        sources[key] = Path(value)
    text = page.read_text(encoding="utf-8")
    for key in sources:
        replaced(text, key, "", page)  # refuses a page without marks before anything is written
    folder = page.parent / FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    for key, source in sources.items():
        new = comparison(source, folder) if key == COMPARE else campaign(key, source, folder)
        text = replaced(text, key, new, page)
    write_atomic(page, text)
    return 0


def campaign(traffic: str, source: Path, folder: Path) -> str:
    """The Markdown of one campaign; copies its figures and its means."""
    if not (source / RUNS).is_file():
        raise ConfigError(f"{source}: holds no finished campaign; valid: a folder with {RUNS}")
    description: dict[str, Any] = json.loads((source / DESCRIPTION).read_text(encoding="utf-8"))
    settings, runs = description["settings"], Runs.read(source / RUNS)
    if settings["traffic"] != traffic:
        raise ConfigError(f"{source}: has traffic {settings['traffic']}, not {traffic}")
    main_runs = runs.at_interval(settings["interval_s"])
    write_atomic(folder / f"means-{traffic}.csv.gz", gzip.compress(means_csv(runs).encode(), mtime=0))
    intro = (
        f"`{description['command']}` (netbuf-gym {description['netbuf_gym']}): {description['runs']:,} runs in "
        f"{description['seconds'] / 60:.1f} minutes with {description['jobs']} threads on {description['machine']}."
    )
    lines = [intro, "", "### Claims", "", claims_table(main_runs), ""]
    if settings["intervals"]:
        cc = "cubic" if "cubic" in settings["ccs"] else settings["ccs"][0]
        table = sweep_table(runs, cc)
        lines += ["### Decision intervals", "", "Throughput in Mbit/s; 99th percentile of FCT - ideal in s.", "", table, ""]
        lines += [sweep_claim(runs, cc), ""]
    lines += ["### Means", "", means_table(main_runs, three(settings["sizes"])), "", "### Figures", ""]
    for path in sorted((source / "figures").glob("*.png")):
        if path.stem.startswith("all_sizes"):
            continue  # too large for a page
        name = f"{traffic}-{path.name}"
        write_atomic(folder / name, smaller(path))
        lines += [f"![{path.stem.replace('_', ' ')}, traffic {traffic}]({FIGURES}/{name})", ""]
    return "\n".join(lines)


def comparison(source: Path, folder: Path) -> str:
    """The Markdown of a comparison; copies its files."""
    for name in ("comparison.csv", "cells.csv"):
        text = read_text(source / name)
        records = csv_records(text)
        width = len(csv_fields(records[1][1])) if len(records) > 1 else 0
        for line, record in records[2:]:
            if len(csv_fields(record)) != width:
                raise ReferenceDataError(f"holds another number of values than the header's {width}", source / name, line)
        if len(records) < 3 or not text.endswith("\n"):
            raise ReferenceDataError("is cut; valid: the whole table", source / name, len(records))
        write_atomic(folder / name, text)
    return (source / "table.md").read_text(encoding="utf-8")


def replaced(text: str, key: str, new: str, page: Path) -> str:
    """The page with what stands between the marks of `key` replaced.

    Raises:
        ConfigError: The page does not hold both marks, once each and in order.
    """
    begin, end = f"<!-- {key}: written by python -m netbuf_gym.reproduce.page -->", f"<!-- end of {key} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ConfigError(f"{page}: must hold the lines {begin!r} and {end!r} once each, in this order")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n\n{new.strip()}\n\n{end}{rest.partition(end)[2]}"


def smaller(path: Path) -> bytes:
    """A picture with few colours, a fraction of the size."""
    with needing("a page's pictures", "train"):
        from PIL import Image
    out = io.BytesIO()
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(out, format="PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (NetbufError, OSError) as error:
        print(f"page: error: {error}", file=sys.stderr)
        sys.exit(2)
