"""Reference measurements from CSV files, whose kind is recognised by their columns, not by their names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from netbuf_gym.errors import ReferenceDataError, quote
from netbuf_gym.utils.checkout import describe_clone
from netbuf_gym.utils.files import CsvError, read_text, split_csv_fields, split_csv_rows
from netbuf_gym.validation import marks, mechanisms, shared_buffer
from netbuf_gym.validation.cells import (
    DROPS,
    GOODPUT,
    LOSS_RATE,
    QUEUE_DELAY,
    Cell,
    Numbers,
    Reference,
    Row,
    Setting,
    Skipped,
    make_dumbbell_setting,
)
from netbuf_gym.validation.dumbbells import LINUX_DUMBBELL, NS3_DUMBBELL, NS3_LAST_HOP
from netbuf_gym.validation.marks import NS3_MARKS
from netbuf_gym.validation.mechanisms import NS3_MECHANISMS
from netbuf_gym.validation.shared_buffer import NS3_SHARED_BUFFER


@dataclass(frozen=True)
class Number:
    """A column of finite numbers in [low, high], or (low, high] when `above`.

    Whole ones when `whole`; when `optional` also NaN, where nothing was measured.
    """

    low: float = 0.0
    high: float = 1e12
    above: bool = False
    whole: bool = False
    optional: bool = False

    @property
    def valid(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        nothing = ", or nan" if self.optional else ""
        return f"{kind} {'above' if self.above else 'from'} {self.low:g} to {self.high:g}{nothing}"

    def parse(self, text: str) -> float | None:
        """Return the number, or None when it is not a valid one."""
        try:
            value = float(text)
        except ValueError:
            return None
        if self.optional and math.isnan(value):
            return value
        if not math.isfinite(value) or value > self.high or value < self.low or (self.above and value == self.low):
            return None
        if self.whole:
            return int(value) if value == int(value) else None
        return value


COMMON = {
    "N": Number(1, 10_000, whole=True),
    "B_mbps": Number(0, 1e6, above=True),
    "rtt_prop_ms": Number(0, 1e5, above=True),
    "buffer_pkts": Number(1, 1e9, whole=True),
    "loss": Number(0, 0.999999),
    "T_s": Number(0, 1e5, above=True),
    "warm_s": Number(0, 1e5),
    "seed": Number(0, 2**53, whole=True),
    "goodput_w_mbps": Number(0, 1e6),
}
NS3 = {
    **COMMON,
    "access_mbps": Number(0, 1e6, above=True),
    "stagger_s": Number(0, 1e5),
    "sojourn_mean_w_ms": Number(0, 1e9),
    "queue_drops": Number(0, 1e12, whole=True),
}
NS3_OPTIONAL = {
    "mss": Number(1, 65535, whole=True),
    "delack": Number(1, 1000, whole=True),
    "min_rto_s": Number(0, 1e5, above=True),
    "hystart": Number(0, 1, whole=True),
}
SHARED_BUFFER = {
    "B_mbps": Number(0, 1e6, above=True),
    "access_mbps": Number(0, 1e6, above=True),
    "perq_pkts": Number(1, 1e9, whole=True),
    "load": Number(0, 1e3, above=True),
    "T_s": Number(0, 1e5, above=True),
    "seed": Number(0, 2**53, whole=True),
}
SHARED_BUFFER_RESULTS = {column: Number(0, 1e9, optional=True) for column in shared_buffer.COLUMNS.values()} | {
    "sink_goodput_mbps": Number(0, 1e6),
    "done_all": Number(0, 1e9, whole=True),
    "drops_q0": Number(0, 1e12, whole=True),
    "drops_q1": Number(0, 1e12, whole=True),
    "occ_p99_pct": Number(0, 100),
}
MECHANISMS = {
    **{name: number for name, number in COMMON.items() if name != "loss"},
    "N": Number(0, 10_000, whole=True),
    "N_back": Number(0, 10_000, whole=True),
    "access_mbps": Number(0, 1e6, above=True),
    "stagger_s": Number(0, 1e5),
    "B_back_mbps": Number(0, 1e6, above=True),
    "buffer_back_pkts": Number(0, 1e9, whole=True),
    "back_start_s": Number(0, 1e5),
    "jitter_ms": Number(0, 1e5),
    "reorder": Number(0, 1, whole=True),
    "udp_mbps": Number(0, 1e6),
    "udp_bytes": Number(1, 65535, whole=True),
    "udp_on_s": Number(0, 1e5),
    "udp_off_s": Number(0, 1e5),
    "udp_random": Number(0, 1, whole=True),
    "udp_start_s": Number(0, 1e5),
    "udp_back": Number(0, 1, whole=True),
    **{column: Number(0, 1e12) for column in mechanisms.COLUMNS.values()},
}
MARKING = {
    **{name: number for name, number in COMMON.items() if name != "loss"},
    "access_mbps": Number(0, 1e6, above=True),
    "stagger_s": Number(0, 1e5),
    "mark_pkts": Number(0, 1e9, whole=True),
    "ecn": Number(0, 1, whole=True),
    **{column: Number(0, 1e12) for column in marks.COLUMNS.values()},
}
LINUX = {**COMMON, "qdelay_mean_w_ms": Number(0, 1e9), "loss_rate_w": Number(0, 1)}
LINUX_OPTIONAL = {"late_mean_us": Number(0, 1e6)}

AGGREGATE = "agg"


def read_folder(folder: str | Path) -> Reference:
    """Read every CSV file in a folder and below, or one CSV file.

    Raises:
        ReferenceDataError: No such folder, no cells in it, or a malformed file; names the file and the line.
    """
    folder = Path(folder)
    if folder.is_file():
        files, root = [folder], folder.parent
    elif folder.is_dir():
        files, root = sorted(p for p in folder.rglob("*.csv") if p.is_file()), folder
    else:
        valid = f"a folder, or a file, of reference measurements (.csv); the project's are in a clone ({describe_clone()})"
        raise ReferenceDataError(f"no such folder; valid: {valid}", folder)
    cells: dict[Setting, Cell] = {}
    skipped: list[Skipped] = []
    for file in files:
        _read_file(file, root, cells, skipped)
    if not cells:
        raise ReferenceDataError(f"holds no reference cells ({len(files)} CSV files, {len(skipped)} skipped)", folder)
    return Reference(folder, tuple(cells.values()), tuple(skipped))


def _read_file(file: Path, root: Path, cells: dict[Setting, Cell], skipped: list[Skipped]) -> None:
    header, rows = _read_rows(file)
    kind, reason = _detect_kind(set(header))
    if kind is None:
        skipped.append(Skipped(file, reason))
        return
    if not rows:
        raise ReferenceDataError("has a header but no rows; valid: at least one row", file, 1)
    _read_cells(file, root, kind, set(header), rows, cells)


def _read_rows(file: Path) -> tuple[list[str], list[tuple[int, Row]]]:
    """Return header and rows with their line numbers, skipping comment lines, from # on.

    Every row has as many fields as the header.
    """
    try:
        records = [record for record in split_csv_rows(read_text(file)) if not record[1].startswith("#")]
    except OSError as error:
        raise ReferenceDataError(f"cannot be read: {error.strerror or error}", file) from None
    except UnicodeDecodeError:
        raise ReferenceDataError("is not UTF-8 text", file) from None
    except CsvError as error:
        raise ReferenceDataError(str(error), file, error.line) from None
    if not records:
        raise ReferenceDataError("is empty; valid: a header and rows", file)
    header = split_csv_fields(records[0][1])
    repeated = {name for name in header if header.count(name) > 1}
    if repeated:
        raise ReferenceDataError(f"column {sorted(repeated)[0]!r} stands twice in the header", file, records[0][0])
    rows: list[tuple[int, Row]] = []
    for line, record in records[1:]:
        fields = split_csv_fields(record)
        if len(fields) != len(header):
            raise ReferenceDataError(f"{len(fields)} fields; valid: {len(header)}, as in the header", file, line)
        rows.append((line, dict(zip(header, fields, strict=True))))
    return header, rows


def _detect_kind(columns: set[str]) -> tuple[str | None, str]:
    """Return the kind of cells in a file with these columns, or None and the reason why it has none."""
    if columns == {"time_s", "mbps"}:
        return None, "a rate schedule: read where a cell names it"
    if {"variant", "policy", "perq_pkts"} <= columns:
        return NS3_SHARED_BUFFER, ""
    if {"flow_id", "sender", "size_bytes"} <= columns:
        return None, "a list of flows: read where a shared-buffer cell names it"
    if {"t_s", "cwnd_pkts"} <= columns:
        return None, "a time series: only the cells' means are compared"
    if {"cc", "rtt_steps", "jitter_ms", "udp_mbps"} <= columns:
        return NS3_MECHANISMS, ""
    if {"cc", "marking", "mark_pkts"} <= columns:
        return NS3_MARKS, ""
    if "cc" in columns and columns & {"goodput_w_mbps", "sojourn_mean_w_ms", "qdelay_mean_w_ms"}:
        if "kernel" in columns or not columns & {"ns3", "flow", "sojourn_mean_w_ms", "qdisc"}:
            return LINUX_DUMBBELL, ""
        return (NS3_LAST_HOP if "rate_trace" in columns else NS3_DUMBBELL), ""
    return None, "its columns are of no known kind"


def _make_ns3_setting(kind: str, row: Row, v: Numbers) -> Setting:
    setting = make_dumbbell_setting(kind, row, v)
    if setting.rtt_ms < setting.family.least_rtt_ms:
        valid = f"at least the access links' {setting.family.least_rtt_ms:g} ms"
        raise ValueError(f"rtt_prop_ms = {setting.rtt_ms:g}; valid: {valid}")
    return replace(setting, qdisc=row["qdisc"], rate_trace=row["rate_trace"] if setting.family.follows_schedule else "")


@dataclass(frozen=True)
class _Format:
    """Format of the files of one kind of cells.

    Attributes:
        make: (kind, row, numbers) -> the row's setting; ValueError says what is wrong with it.
        quantities: Columns of the quantities compared.
        numbers, optional: Columns of numbers, and those that a file may lack.
        texts: Columns of text that are not empty in a cell's row.
        others: Further columns that are needed.
    """

    make: Callable[[str, Row, Numbers], Setting]
    quantities: dict[str, str]
    numbers: dict[str, Number]
    texts: tuple[str, ...]
    optional: dict[str, Number] = field(default_factory=dict)
    others: tuple[str, ...] = ()


_NS3_FORMAT = _Format(
    _make_ns3_setting,
    {GOODPUT: "goodput_w_mbps", QUEUE_DELAY: "sojourn_mean_w_ms", DROPS: "queue_drops"},
    NS3,
    ("cc", "qdisc"),
    NS3_OPTIONAL,
    ("flow",),
)
_FORMATS = {
    NS3_DUMBBELL: _NS3_FORMAT,
    NS3_LAST_HOP: replace(_NS3_FORMAT, texts=("cc", "qdisc", "rate_trace")),
    LINUX_DUMBBELL: _Format(
        make_dumbbell_setting,
        {GOODPUT: "goodput_w_mbps", QUEUE_DELAY: "qdelay_mean_w_ms", LOSS_RATE: "loss_rate_w"},
        LINUX,
        ("cc",),
        LINUX_OPTIONAL,
    ),
    NS3_SHARED_BUFFER: _Format(
        shared_buffer.make_setting,
        shared_buffer.COLUMNS,
        SHARED_BUFFER | SHARED_BUFFER_RESULTS,
        ("variant", "policy", "cc"),
        NS3_OPTIONAL,
    ),
    NS3_MECHANISMS: _Format(mechanisms.make_setting, mechanisms.COLUMNS, MECHANISMS, ("label", "cc"), others=("rtt_steps",)),
    NS3_MARKS: _Format(marks.make_setting, marks.COLUMNS, MARKING, ("label", "cc", "marking")),
}


def _read_cells(
    file: Path, root: Path, kind: str, columns: set[str], rows: list[tuple[int, Row]], cells: dict[Setting, Cell]
) -> None:
    """Add the cells of a file to `cells`, or their values to those that are there."""
    form, totals = _FORMATS[kind], 0
    missing = sorted({*form.texts, *form.numbers, *form.others} - columns)
    if missing:
        raise ReferenceDataError(f"{kind} cells need the column {', '.join(missing)}, which the header lacks", file, 1)
    numbers = form.numbers | {name: number for name, number in form.optional.items() if name in columns}
    for line, row in rows:
        try:
            v = _parse_numbers(row, numbers)
            if "flow" in form.others and not _holds_totals(row, v):
                continue
            totals += 1
            if empty := [name for name in form.texts if not row[name]]:
                raise ValueError(f"{empty[0]} is empty; valid: a name")
            setting = form.make(kind, row, v)
        except ValueError as error:
            raise ReferenceDataError(str(error), file, line) from None
        if setting not in cells:
            cells[setting] = Cell(setting=setting, file=file, line=line, not_judged=setting.family.why_not_judged(setting))
        cell = cells[setting]
        cell.seeds.append(int(v["seed"]))
        for quantity, column in form.quantities.items():
            cell.reference.setdefault(quantity, []).append(v[column])
        if "late_mean_us" in v:
            cell.late_us.append(v["late_mean_us"])
        if setting.family.replays_flows:
            cell.reference.setdefault(DROPS, []).append(v["drops_q0"] + v["drops_q1"])
            if not cell.not_judged:
                name = shared_buffer.name_flow_file(row)
                what = "list of flows (variant, load, seed)"
                cell.flow_files[cell.seeds[-1]] = _find_file(name, "flows", what, file, line, root)
        elif setting.family.follows_schedule and cell.rate_file is None:
            cell.rate_file = _find_file(setting.rate_trace, "rates", "rate_trace", file, line, root)
    if not totals:
        raise ReferenceDataError(f"has no row with flow = {AGGREGATE}, which holds a cell's totals", file, rows[0][0])


def _holds_totals(row: Row, v: Numbers) -> bool:
    """Return whether a row of ns-3's is that of a whole run, not of one flow; raise ValueError if it is neither."""
    if row["flow"] != AGGREGATE and Number(0, v["N"] - 1, whole=True).parse(row["flow"]) is None:
        valid = f"0 to {v['N'] - 1}, or {AGGREGATE} for the whole run"
        raise ValueError(f"flow = {quote(row['flow'])}; valid: {valid}")
    return row["flow"] == AGGREGATE


def _parse_numbers(row: Row, columns: dict[str, Number]) -> Numbers:
    """Return the numbers of a row by column; raise ValueError for an invalid one."""
    values = {}
    for name, column in columns.items():
        value = column.parse(row[name])
        if value is None:
            raise ValueError(f"{name} = {quote(row[name])}; valid: {column.valid}")
        values[name] = value
    if values.get("warm_s", 0.0) >= values["T_s"]:
        raise ValueError(f"warm_s = {values['warm_s']:g} is not below T_s = {values['T_s']:g}")
    return values


def _find_file(name: str, folder: str, what: str, file: Path, line: int, root: Path) -> Path:
    """Return the file that a row names: beside the row's file or in `folder` there, or likewise at the root."""
    if Path(name).name != name:
        raise ReferenceDataError(f"{what} = {quote(name)}; valid: a file name without folders", file, line)
    places = list(dict.fromkeys([file.parent / folder, file.parent, root / folder, root]))
    found = next((place / name for place in places if (place / name).is_file()), None)
    if found is None:
        raise ReferenceDataError(f"{what} = {quote(name)} is in none of {', '.join(map(str, places))}", file, line)
    return found
