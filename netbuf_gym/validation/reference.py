"""Reference measurements from CSV files, whose kind is recognised by their columns, not by their names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.errors import ReferenceDataError, shown
from netbuf_gym.utils.files import CsvError, read_text, split_csv_fields, split_csv_rows
from netbuf_gym.validation import marks, mechanisms, shared_buffer
from netbuf_gym.validation.cells import DROPS, FAMILIES, GOODPUT, LOSS_RATE, QUEUE_DELAY, Cell, Reference, Setting, Skipped
from netbuf_gym.validation.dumbbells import LINUX_DUMBBELL, NS3_DUMBBELL, NS3_LAST_HOP
from netbuf_gym.validation.marks import NS3_MARKS
from netbuf_gym.validation.mechanisms import NS3_MECHANISMS
from netbuf_gym.validation.shared_buffer import NS3_SHARED_BUFFER

Row = dict[str, str]


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
        raise ReferenceDataError("no such folder; valid: a folder, or a file, of reference measurements (.csv)", folder)
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
    _READERS[kind](file, root, kind, set(header), rows, cells)


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
    rows = []
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


def _require_columns(file: Path, columns: set[str], needed: set[str], kind: str) -> None:
    missing = sorted(needed - columns)
    if missing:
        raise ReferenceDataError(f"{kind} cells need the column {', '.join(missing)}, which the header lacks", file, 1)


def _parse_numbers(file: Path, line: int, row: Row, columns: dict[str, Number]) -> dict[str, float]:
    values = {}
    for name, column in columns.items():
        value = column.parse(row[name])
        if value is None:
            raise ReferenceDataError(f"{name} = {shown(row[name])}; valid: {column.valid}", file, line)
        values[name] = value
    if values.get("warm_s", 0.0) >= values["T_s"]:
        message = f"warm_s = {values['warm_s']:g} is not below T_s = {values['T_s']:g}"
        raise ReferenceDataError(message, file, line)
    return values


def _add_values(
    cells: dict[Setting, Cell], setting: Setting, file: Path, line: int, seed: int, values: dict[str, float]
) -> Cell:
    cell = cells.get(setting)
    if cell is None:
        cell = cells[setting] = Cell(setting=setting, file=file, line=line, not_judged=setting.family.why_not_judged(setting))
    cell.seeds.append(seed)
    for quantity, value in values.items():
        cell.reference.setdefault(quantity, []).append(value)
    return cell


def _read_ns3(file: Path, root: Path, kind: str, columns: set[str], rows: list[tuple[int, Row]], cells: dict) -> None:
    family = FAMILIES[kind]
    texts = {"cc", "flow", "qdisc"} | ({"rate_trace"} if family.follows_schedule else set())
    _require_columns(file, columns, texts | set(NS3), kind)
    optional = {name: number for name, number in NS3_OPTIONAL.items() if name in columns}
    aggregates = 0
    for line, row in rows:
        v = _parse_numbers(file, line, row, NS3 | optional)
        _require_text(file, line, row, "cc")
        if row["flow"] != AGGREGATE:
            if Number(0, v["N"] - 1, whole=True).parse(row["flow"]) is None:
                valid = f"0 to {v['N'] - 1}, or {AGGREGATE} for the whole run"
                raise ReferenceDataError(f"flow = {shown(row['flow'])}; valid: {valid}", file, line)
            continue
        aggregates += 1
        setting = Setting(
            kind=kind,
            label=row.get("label", ""),
            cc=row["cc"],
            flows=v["N"],
            rate_mbps=v["B_mbps"],
            rtt_ms=v["rtt_prop_ms"],
            buffer_packets=v["buffer_pkts"],
            loss=v["loss"],
            duration_s=v["T_s"],
            warmup_s=v["warm_s"],
            stagger_s=v["stagger_s"],
            access_mbps=v["access_mbps"],
            rate_trace=_require_text(file, line, row, "rate_trace") if family.follows_schedule else "",
            qdisc=_require_text(file, line, row, "qdisc"),
            hystart=bool(v.get("hystart", 1)),
            mss_bytes=v.get("mss", 1448),
            delayed_ack=v.get("delack", 2),
            min_rto_s=v.get("min_rto_s", 1.0),
        )
        if setting.rtt_ms < family.least_rtt_ms:
            message = f"rtt_prop_ms = {setting.rtt_ms:g}; valid: at least the access links' {family.least_rtt_ms:g} ms"
            raise ReferenceDataError(message, file, line)
        values = {GOODPUT: v["goodput_w_mbps"], QUEUE_DELAY: v["sojourn_mean_w_ms"], DROPS: v["queue_drops"]}
        cell = _add_values(cells, setting, file, line, v["seed"], values)
        if family.follows_schedule and cell.rate_file is None:
            cell.rate_file = _find_rate_file(file, line, root, setting.rate_trace)
    if not aggregates:
        raise ReferenceDataError(f"has no row with flow = {AGGREGATE}, which holds a cell's totals", file, rows[0][0])


def _read_linux(file: Path, root: Path, kind: str, columns: set[str], rows: list[tuple[int, Row]], cells: dict) -> None:
    _require_columns(file, columns, {"cc"} | set(LINUX), kind)
    optional = {name: number for name, number in LINUX_OPTIONAL.items() if name in columns}
    for line, row in rows:
        v = _parse_numbers(file, line, row, LINUX | optional)
        setting = Setting(
            kind=kind,
            label=row.get("label", ""),
            cc=_require_text(file, line, row, "cc"),
            flows=v["N"],
            rate_mbps=v["B_mbps"],
            rtt_ms=v["rtt_prop_ms"],
            buffer_packets=v["buffer_pkts"],
            loss=v["loss"],
            duration_s=v["T_s"],
            warmup_s=v["warm_s"],
        )
        values = {GOODPUT: v["goodput_w_mbps"], QUEUE_DELAY: v["qdelay_mean_w_ms"], LOSS_RATE: v["loss_rate_w"]}
        cell = _add_values(cells, setting, file, line, v["seed"], values)
        if "late_mean_us" in v:
            cell.late_us.append(v["late_mean_us"])


def _read_shared_buffer(file: Path, root: Path, kind: str, columns: set[str], rows: list, cells: dict) -> None:
    _require_columns(file, columns, {"variant", "policy", "cc"} | set(SHARED_BUFFER) | set(SHARED_BUFFER_RESULTS), kind)
    optional = {name: number for name, number in NS3_OPTIONAL.items() if name in columns}
    for line, row in rows:
        v = _parse_numbers(file, line, row, SHARED_BUFFER | optional | SHARED_BUFFER_RESULTS)
        for name in ("variant", "policy"):
            if "/" in _require_text(file, line, row, name):
                raise ReferenceDataError(f"{name} = {shown(row[name])}; valid: a name without a slash", file, line)
        setting = shared_buffer.make_setting(kind, row, v, _require_text(file, line, row, "cc"))
        values = {quantity: v[column] for quantity, column in shared_buffer.COLUMNS.items()}
        values[DROPS] = v["drops_q0"] + v["drops_q1"]
        cell = _add_values(cells, setting, file, line, v["seed"], values)
        if not cell.not_judged:
            cell.flow_files[v["seed"]] = shared_buffer.find_flow_file(file, line, root, row)


def _read_mechanisms(file: Path, root: Path, kind: str, columns: set[str], rows: list, cells: dict) -> None:
    _require_columns(file, columns, {"label", "cc", "rtt_steps"} | set(MECHANISMS), kind)
    for line, row in rows:
        v = _parse_numbers(file, line, row, MECHANISMS)
        for name in ("label", "cc"):
            _require_text(file, line, row, name)
        if v["N"] + v["N_back"] == 0:
            raise ReferenceDataError("N = 0 and N_back = 0; valid: at least one flow", file, line)
        setting = mechanisms.make_setting(kind, row, v, file, line)
        _add_values(
            cells, setting, file, line, v["seed"], {quantity: v[column] for quantity, column in mechanisms.COLUMNS.items()}
        )


def _read_marks(file: Path, root: Path, kind: str, columns: set[str], rows: list, cells: dict) -> None:
    _require_columns(file, columns, {"label", "cc", "marking"} | set(MARKING), kind)
    for line, row in rows:
        v = _parse_numbers(file, line, row, MARKING)
        for name in ("label", "cc", "marking"):
            _require_text(file, line, row, name)
        setting = marks.make_setting(kind, row, v)
        _add_values(cells, setting, file, line, v["seed"], {quantity: v[column] for quantity, column in marks.COLUMNS.items()})


def _require_text(file: Path, line: int, row: Row, name: str) -> str:
    if not row[name]:
        raise ReferenceDataError(f"{name} is empty; valid: a name", file, line)
    return row[name]


def _find_rate_file(file: Path, line: int, root: Path, name: str) -> Path:
    """Return the rate schedule that a row names: beside the row's file or in a folder rates there, or likewise at the root."""
    if Path(name).name != name:
        raise ReferenceDataError(f"rate_trace = {shown(name)}; valid: a file name without folders", file, line)
    places = [file.parent / "rates", file.parent, root / "rates", root]
    for place in places:
        if (place / name).is_file():
            return place / name
    looked = ", ".join(str(place) for place in dict.fromkeys(places))
    raise ReferenceDataError(f"rate_trace = {shown(name)} is in none of {looked}", file, line)


_READERS: dict[str, Callable] = {
    NS3_DUMBBELL: _read_ns3,
    NS3_LAST_HOP: _read_ns3,
    LINUX_DUMBBELL: _read_linux,
    NS3_SHARED_BUFFER: _read_shared_buffer,
    NS3_MECHANISMS: _read_mechanisms,
    NS3_MARKS: _read_marks,
}
