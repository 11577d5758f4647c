"""The rows that studies keep in `results/studies/STUDY/SECTION.csv.gz`, and from which their sections of pages are made.

The first line of a file is `# {JSON}`: the study, the section, the version and the command that made it, the agents' hashes,
how long it took where. A row a run follows, measured values of six significant digits.
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
"""What `rows` of a header says where a file holds means over seeds instead of runs: no section follows from it."""

STALE = "stale"
"""Key of a header that says why rows are not current, in words."""


@dataclass(frozen=True)
class Kept:
    """A section's rows.

    Attributes:
        root: The checkout.
        study, section: Whose they are.
        header: The first line's.
        records: The rows, by column, as text.
    """

    root: Path
    study: str
    section: str
    header: Mapping[str, Any]
    records: Sequence[Mapping[str, str]]

    @property
    def path(self) -> Path:
        """The file."""
        return path_of(self.root, self.study, self.section)

    def runs(self, keys: tuple[str, ...], texts: tuple[str, ...], measures: Iterable[str]) -> Runs:
        """The rows as a campaign's; measures that the file does not have are NaN."""
        comment = f"netbuf-gym {self.header['version']}: {self.header['command']}"
        return Runs.of_records(comment, self.records, keys, texts, tuple(measures))

    @property
    def figures(self) -> Path:
        """Where the study's pictures stand."""
        return self.root / FIGURES / self.study

    @property
    def drawn(self) -> Path | None:
        """Where a campaign that was run here has drawn its pictures of these very rows; None: it was not run here."""
        folder = drawn_folder(self.root, self.study, self.section)
        try:
            made_of = json.loads((folder / MADE_OF).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return folder if made_of == {name: value for name, value in self.header.items() if name != STALE} else None


def path_of(root: Path, study: str, section: str) -> Path:
    """Where a section's rows stand."""
    return root / FOLDER / study / f"{section.replace(' ', '_')}.csv.gz"


def drawn_folder(root: Path, study: str, section: str) -> Path:
    """Where a campaign leaves its pictures, until they are put beside the pages."""
    return root / DRAWN / study / section.replace(" ", "_") / "figures"


def mark_drawn(root: Path, study: str, section: str) -> None:
    """Says that the pictures there are of the rows that are kept now; see `Kept.drawn`."""
    found = read(root, study, section)
    assert found is not None
    write_json(drawn_folder(root, study, section) / MADE_OF, found.header)


def read_header(path: Path) -> dict[str, Any]:
    """The first line of a file of rows.

    Raises:
        ReferenceDataError: The file is damaged; names it.
    """
    return _unpack(path)[0]


def read(root: Path, study: str, section: str) -> Kept | None:
    """The rows of a section; None where there are none, or means alone.

    Raises:
        ReferenceDataError: The file is damaged; names it.
    """
    path = path_of(root, study, section)
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
    return Kept(root, study, section, header, records)


def _unpack(path: Path) -> tuple[dict[str, Any], str]:
    """Header and table of a file of rows."""
    try:
        first, _, rest = gzip.decompress(path.read_bytes()).decode().partition("\n")
        header = json.loads(first.removeprefix("# "))
        for key in ("study", "section", "version", "command"):
            header[key]
        return header, rest
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ReferenceDataError(f"is no table of a study ({error}); valid: a packed one with a header", path) from None


def write(root: Path, study: str, section: str, header: Mapping[str, Any], text: str) -> Path:
    """Writes rows, a table's text with its line of columns, under a header; equal rows give equal bytes.

    Args:
        header: `command`, and what else is to be known; study, section and version are put before it.
    """
    path = path_of(root, study, section)
    path.parent.mkdir(parents=True, exist_ok=True)
    first = json.dumps(header_of(study, section, header))
    write_atomic(path, gzip.compress(f"# {first}\n{text}".encode(), 9, mtime=0))
    return path


def mark(root: Path, study: str, section: str, reason: str) -> None:
    """Marks rows as stale, or takes their mark away where the reason is ""."""
    path = path_of(root, study, section)
    header, rest = _unpack(path)
    if header.get(STALE, "") != reason:
        header = {name: value for name, value in header.items() if name != STALE} | ({STALE: reason} if reason else {})
        write_atomic(path, gzip.compress(f"# {json.dumps(header)}\n{rest}".encode(), 9, mtime=0))


def header_of(study: str, section: str, header: Mapping[str, Any]) -> dict[str, Any]:
    """The whole header of rows that are written now."""
    return {"study": study, "section": section, "version": __version__, **header}


def text_of(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table's text: whole numbers and words as they are, others of six significant digits, nothing where nothing is."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if value != value else f"{value:.{DIGITS}g}"
    return "" if value is None else value
