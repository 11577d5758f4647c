"""Rows that studies keep in `results/studies/STUDY/SECTION.csv.gz`, and from which sections of their pages are made.

The first line of a file is `# {JSON}`: the study, the section, the version and the command that made it, the agents' hashes,
the duration and the machine. One row for each run follows, measured values with six significant digits.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.version import __version__
from studies.common.results import Runs

FOLDER, FIGURES = Path("results", "studies"), Path("docs", "figures")
DRAWN = Path("runs", "studies")
MADE_OF = "rows.json"
DIGITS = 6
MEANS = "means"
"""Value of `rows` in the header of a file that holds means over seeds instead of runs: no section is made from it."""

STALE = "stale"
"""Header key for the reason, in words, why rows are not current."""


@dataclass(frozen=True)
class KeptRows:
    """Kept rows of a section.

    Attributes:
        root: Root of the checkout.
        study, section: Names of the study and the section.
        header: Header from the file's first line.
        records: Rows, by column, as text.
    """

    root: Path
    study: str
    section: str
    header: Mapping[str, Any]
    records: Sequence[Mapping[str, str]]

    @property
    def path(self) -> Path:
        """File that holds the rows."""
        return build_path(self.root, self.study, self.section)

    def runs(self, keys: tuple[str, ...], texts: tuple[str, ...], measures: Iterable[str]) -> Runs:
        """Return the rows as a campaign's runs; measures that the file does not have are NaN."""
        comment = f"netbuf-gym {self.header['version']}: {self.header['command']}"
        return Runs.from_records(comment, self.records, keys, texts, tuple(measures))

    @property
    def figures(self) -> Path:
        """Folder of the study's figures beside the pages."""
        return self.root / FIGURES / self.study

    @property
    def drawn_folder(self) -> Path | None:
        """Folder in which a campaign run here has drawn figures of these very rows; None: there is none."""
        folder = find_drawn_folder(self.root, self.study, self.section)
        try:
            made_of = json.loads((folder / MADE_OF).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return folder if made_of == {name: value for name, value in self.header.items() if name != STALE} else None


def build_path(root: Path, study: str, section: str) -> Path:
    """Return the path of a section's rows."""
    return root / FOLDER / study / f"{section.replace(' ', '_')}.csv.gz"


def find_drawn_folder(root: Path, study: str, section: str) -> Path:
    """Return the folder in which a campaign leaves its figures, until they are copied beside the pages."""
    return root / DRAWN / study / section.replace(" ", "_") / "figures"


def mark_drawn(root: Path, study: str, section: str) -> None:
    """Record that the drawn figures are those of the rows kept now; see `KeptRows.drawn_folder`."""
    found = read_rows(root, study, section)
    assert found is not None
    write_json(find_drawn_folder(root, study, section) / MADE_OF, found.header)


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file of rows.

    Raises:
        ReferenceDataError: The file is damaged; names it.
    """
    return _unpack(path)[0]


def read_rows(root: Path, study: str, section: str) -> KeptRows | None:
    """Return the rows of a section; None if there are none, or only means.

    Raises:
        ReferenceDataError: The file is damaged; names it.
    """
    path = build_path(root, study, section)
    if not path.is_file():
        return None
    header, rest = _unpack(path)
    if (header["study"], header["section"]) != (study, section):
        raise ReferenceDataError(f"holds {header['study']} {header['section']}; valid here: {study} {section}", path, 1)
    if header.get("rows") == MEANS:
        return None
    lines = csv.reader(io.StringIO(rest))
    columns = next(lines, [])
    records = []
    for number, values in enumerate(lines, 3):
        if len(values) != len(columns):
            raise ReferenceDataError(f"holds {len(values)} values; valid: {len(columns)}, as the header has", path, number)
        records.append(dict(zip(columns, values, strict=True)))
    if not records:
        raise ReferenceDataError("holds no rows", path, 2)
    return KeptRows(root, study, section, header, records)


def _unpack(path: Path) -> tuple[dict[str, Any], str]:
    """Return header and table text of a file of rows."""
    try:
        first, _, rest = gzip.decompress(path.read_bytes()).decode().partition("\n")
        header = json.loads(first.removeprefix("# "))
        for key in ("study", "section", "version", "command"):
            header[key]
        return header, rest
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ReferenceDataError(f"is no table of a study ({error}); valid: a packed one with a header", path) from None


def write_rows(root: Path, study: str, section: str, header: Mapping[str, Any], text: str) -> Path:
    """Write rows, given as CSV text with a line of columns, under a header; equal rows give equal bytes.

    Args:
        root: Root of the checkout.
        study, section: Names of the study and the section.
        header: `command`, and further metadata; study, section and version are put first.
        text: The table.
    """
    path = build_path(root, study, section)
    path.parent.mkdir(parents=True, exist_ok=True)
    first = json.dumps(make_header(study, section, header))
    write_atomic(path, gzip.compress(f"# {first}\n{text}".encode(), 9, mtime=0))
    return path


def mark_stale(root: Path, study: str, section: str, reason: str) -> None:
    """Mark rows as stale, or remove the mark if the reason is ""."""
    path = build_path(root, study, section)
    header, rest = _unpack(path)
    if header.get(STALE, "") != reason:
        header = {name: value for name, value in header.items() if name != STALE} | ({STALE: reason} if reason else {})
        write_atomic(path, gzip.compress(f"# {json.dumps(header)}\n{rest}".encode(), 9, mtime=0))


def make_header(study: str, section: str, header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the complete header of rows that are written now."""
    return {"study": study, "section": section, "version": __version__, **header}


def format_rows(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the CSV text of rows: integers and text unchanged, floats with six significant digits, missing values as ""."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_format_cell(row.get(name)) for name in columns])
    return out.getvalue()


def _format_cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if value != value else f"{value:.{DIGITS}g}"
    return "" if value is None else value
