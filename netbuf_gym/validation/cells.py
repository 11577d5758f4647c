"""Cells of a validation: settings of the reference measurements, with their seeds and the quantities compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypedDict

from netbuf_gym.scenarios import Scenario
from netbuf_gym.simulation.results.result import Result

GOODPUT = "goodput_mbps"
QUEUE_DELAY = "queue_delay_ms"
DROPS = "queue_drops"
LOSS_RATE = "loss_rate"
TITLES = {GOODPUT: "goodput", QUEUE_DELAY: "delay", DROPS: "drops", LOSS_RATE: "loss rate"}
"""Column titles of the quantities: Mbit/s, ms in the queue, packets, a share."""

ALONE, GROUPED, DISTRIBUTION = "alone", "in a group", "as a distribution"
ONE_PACKET = 1.0
"""Absolute tolerance of drop counts: they are whole numbers, so that the least possible difference is one."""

BOTTOMLESS_PACKETS = 10_000
"""Buffer size from which a queue never fills within a run (the reference programs draw the line here too)."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Parameters of a reference run; equal ones form one cell, whatever the seed. Units as named; `cc` as in the file."""

    kind: str
    label: str
    cc: str
    flows: int
    rate_mbps: float
    rtt_ms: float
    buffer_packets: int
    loss: float
    duration_s: float
    warmup_s: float
    stagger_s: float = 0.1
    access_mbps: float | None = None
    rate_trace: str = ""
    qdisc: str = "DropTail"
    hystart: bool = True
    mss_bytes: int = 1448
    delayed_ack: int = 2
    min_rto_s: float = 1.0
    extra: str = ""
    own: Any = None
    """Hashable parameters particular to the family."""

    @property
    def by_chance(self) -> bool:
        """True if a run depends on random draws: by random loss, by a queue discipline, or by the family's own parameters."""
        return bool(self.loss) or self.drops_at_random or (self.own is not None and self.own.by_chance)

    @property
    def disciplined(self) -> bool:
        """True if a queue discipline holds the packets, with a device of one packet behind it (the reference's AQM cells)."""
        return self.qdisc != "DropTail"

    @property
    def drops_at_random(self) -> bool:
        """True if the queue discipline draws random numbers."""
        return self.qdisc in ("Pie", "Red")

    @property
    def family(self) -> Family:
        """Family of the setting's kind."""
        return FAMILIES[self.kind]

    @property
    def path(self) -> str:
        """Description of the path, which the cells of a group share."""
        return self.family.describe_path(self)

    @property
    def group(self) -> tuple:
        """Key of the cell's group: one congestion control on one path, within one family of cells.

        For shared-buffer cells, all loads of one kind of flow list, congestion control, buffer size and scheme.
        """
        own = self.family.group_key(self)
        return (self.kind, self.label, self.cc, self.rate_mbps, self.rtt_ms, self.rate_trace, self.qdisc, own)

    @property
    def bottomless(self) -> bool:
        """True if the buffer never fills and random loss decides when slow start ends."""
        return self.buffer_packets >= BOTTOMLESS_PACKETS and self.loss > 0

    @property
    def id(self) -> str:
        """Name of the cell in reports and for `--only`."""
        parts = [self.kind, self.label, self.cc, *self.family.id_parts(self)]
        if self.loss:
            parts.append(f"loss{self.loss:g}")
        if self.disciplined:
            parts.append(self.qdisc)
        if self.extra:
            parts.append(self.extra)
        return "/".join(part for part in parts if part)


@dataclass(kw_only=True)
class Cell:
    """A setting with the reference's measurements.

    Attributes:
        setting: Parameters of the runs.
        file, line: Location of the cell's first row.
        seeds: The reference's seeds, in the order of the file.
        reference: Values of each quantity compared, one per seed.
        rate_file: File of `setting.rate_trace`, if it names one.
        flow_files: List of flows that a shared-buffer cell replays, by seed.
        late_us: Mean lateness of the reference's link emulator per seed; empty: unknown.
        not_judged: Reason why the cell is not judged; empty when it is.
        our_seeds: Seeds of our runs; filled by running the cell.
        ours: Values of each quantity, one per seed of ours; filled by running the cell.
    """

    setting: Setting
    file: Path
    line: int
    seeds: list[int] = field(default_factory=list)
    reference: dict[str, list[float]] = field(default_factory=dict)
    rate_file: Path | None = None
    flow_files: dict[int, Path] = field(default_factory=dict)
    late_us: list[float] = field(default_factory=list)
    not_judged: str = ""
    our_seeds: list[int] = field(default_factory=list)
    ours: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tolerance:
    """Allowed difference: `relative` times the reference or `absolute`, whichever is larger.

    A single cell of a group is allowed twice that when `doubled`.
    """

    relative: float
    absolute: float = 0.0
    doubled: bool = True

    def get_limit(self, reference: float) -> float:
        return max(self.relative * abs(reference), self.absolute)


class Family(ABC):
    """Naming, running, judging and presentation of one kind of cells. `FAMILIES` has one instance of each.

    Attributes:
        kind: Name of the kind in settings, reports and ids.
        least_rtt_ms: Least RTT, that of the access links.
        follows_schedule: Whether cells name a rate schedule.
        replays_flows: Whether cells name a list of flows for each seed.
        contributes: Whether each cell of a group contributes its own tolerance to the group's.
        compact: Whether tables show only our value and the error, for families with many quantities.
        columns: Table columns before the quantities.
    """

    kind: str
    least_rtt_ms = 2.0
    follows_schedule = False
    replays_flows = False
    contributes = False
    compact = False
    columns: tuple[str, ...] = ("flows", "buffer", "loss", "runs")

    def describe_path(self, s: Setting) -> str:
        """Return a description of the path."""
        trace = f", {s.rate_trace}" if s.rate_trace else ""
        discipline = f", {s.qdisc}" if s.disciplined else ""
        return f"{s.rate_mbps:g} Mbit/s, {s.rtt_ms:g} ms{trace}{discipline}"

    def group_key(self, s: Setting) -> Hashable:
        """Return a further key that cells of one group have in common."""
        return 0

    def id_parts(self, s: Setting) -> list[str]:
        """Return the parts of an id that distinguish cells of the family."""
        return [f"N{s.flows}", f"{s.rate_mbps:g}Mbps", f"{s.rtt_ms:g}ms", s.rate_trace, f"{s.buffer_packets}pkts"]

    @abstractmethod
    def why_not_judged(self, s: Setting) -> str:
        """Return the reason why a cell is not judged; empty when it is."""

    @abstractmethod
    def make_scenario(self, cell: Cell, seed: int | None) -> Scenario:
        """Return the world of a cell that is judged."""

    def has_seeded_worlds(self, s: Setting) -> bool:
        """Return whether each seed has its own world, because the reference makes random draws that our simulator does not."""
        return False

    def has_uncertain_starts(self, s: Setting) -> bool:
        """Return whether the senders are processes that compete from the first packet on.

        Their losses are then chaotic, and a single history says little. ns-3's senders start to the nanosecond.
        """
        return False

    @abstractmethod
    def measure_quantities(self, result: Result) -> dict[str, float]:
        """Return the quantities compared with the reference, by the reference's definitions."""

    @abstractmethod
    def choose_judging(self, s: Setting) -> str:
        """Return `ALONE`, `GROUPED` (as a member of a group) or `DISTRIBUTION` (over seeds)."""

    @abstractmethod
    def list_tolerances(self, s: Setting) -> Mapping[str, Tolerance]:
        """Return the tolerances by quantity, of a cell judged alone or of its group."""

    def format_row(self, s: Setting, runs: int) -> Sequence[str]:
        """Return a cell's `columns`."""
        return [str(s.flows), str(s.buffer_packets), f"{s.loss:g}" if s.loss else "0", str(runs)]

    def report_fields(self, s: Setting) -> dict:
        """Return the report's fields of a setting, beside those that all families have."""
        return {
            "path": s.path,
            "flows": s.flows,
            "rtt_ms": s.rtt_ms,
            "rate_trace": s.rate_trace or None,
            "qdisc": s.qdisc,
            "loss": s.loss,
            "duration_s": s.duration_s,
            "warmup_s": s.warmup_s,
            "stagger_s": s.stagger_s,
        }


def match_pattern(name: str, pattern: str) -> bool:
    """Return whether a cell's id matches a pattern, or contains it when it has no wildcard; case-insensitive."""
    name, pattern = name.lower(), pattern.lower()
    return fnmatchcase(name, pattern) if set(pattern) & set("*?[") else pattern in name


FAMILIES: dict[str, Family] = {}
"""Families by kind; each family's module adds its own."""

Row = Mapping[str, str]
Numbers = Mapping[str, float]
"""A row of a reference file by column: its text, and its checked numbers, of which whole ones are integers."""


def make_dumbbell_setting(kind: str, row: Row, v: Numbers, own: Any = None) -> Setting:
    """Return the setting described by the columns of dumbbells, with the defaults of `Setting` for those that a file lacks."""
    return Setting(
        kind=kind,
        label=row.get("label", ""),
        cc=row["cc"],
        flows=int(v["N"]),
        rate_mbps=v["B_mbps"],
        rtt_ms=v["rtt_prop_ms"],
        buffer_packets=int(v["buffer_pkts"]),
        loss=v.get("loss", 0.0),
        duration_s=v["T_s"],
        warmup_s=v["warm_s"],
        stagger_s=v.get("stagger_s", 0.1),
        access_mbps=v.get("access_mbps"),
        own=own,
        **stack_options(v),
    )


class StackOptions(TypedDict):
    """Options of the reference program's stack."""

    hystart: bool
    mss_bytes: int
    delayed_ack: int
    min_rto_s: float


def stack_options(v: Numbers) -> StackOptions:
    """Return the options of the stack from a row's columns, the reference program's defaults for those that a file lacks."""
    return {
        "hystart": bool(v.get("hystart", 1)),
        "mss_bytes": int(v.get("mss", 1448)),
        "delayed_ack": int(v.get("delack", 2)),
        "min_rto_s": v.get("min_rto_s", 1.0),
    }


def register_family(cls: type[Family]) -> type[Family]:
    """Register a family (class decorator)."""
    FAMILIES[cls.kind] = cls()
    return cls


@dataclass(frozen=True)
class Skipped:
    """A file without cells, and the reason why it was skipped."""

    file: Path
    reason: str


@dataclass(frozen=True)
class Reference:
    """Cells and skipped files of a folder of reference measurements."""

    folder: Path
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]
