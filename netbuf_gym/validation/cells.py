"""Cells: one setting of the reference measurements, with its seeds, and what is compared in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netbuf_gym.scenarios import Scenario
from netbuf_gym.simulation.results.result import Result

GOODPUT = "goodput_mbps"
QUEUE_DELAY = "queue_delay_ms"
DROPS = "queue_drops"
LOSS_RATE = "loss_rate"
TITLES = {GOODPUT: "goodput", QUEUE_DELAY: "delay", DROPS: "drops", LOSS_RATE: "loss rate"}
"""As table columns: Mbit/s, ms in the queue, packets, a share."""

ALONE, GROUPED, DISTRIBUTION = "alone", "in a group", "as a distribution"
ONE_PACKET = 1.0
"""The floor for counts of drops: they are whole, so that one more or less is the least difference there can be."""

BOTTOMLESS_PACKETS = 10_000
"""From this buffer on a queue never fills within a run (the reference programs, too, draw the line here)."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What was run: equal settings are one cell, whatever the seed. Units as the names say; `cc` as in the file."""

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
    """What only its family knows of; hashable."""

    @property
    def by_chance(self) -> bool:
        """Whether lots are drawn on the way: by random loss, by a discipline, or by what its family knows of."""
        return bool(self.loss) or self.drops_at_random or (self.own is not None and self.own.by_chance)

    @property
    def disciplined(self) -> bool:
        """Whether a queue discipline holds the packets, with a device of one packet behind it (the reference's AQM cells)."""
        return self.qdisc != "DropTail"

    @property
    def drops_at_random(self) -> bool:
        """Whether the queue discipline draws lots."""
        return self.qdisc in ("Pie", "Red")

    @property
    def family(self) -> Family:
        """What is particular to cells of its kind."""
        return FAMILIES[self.kind]

    @property
    def path(self) -> str:
        """The path in words: what the cells of a group share."""
        return self.family.path(self)

    @property
    def group(self) -> tuple:
        """One congestion control on one path, within one family of cells: the key of its group. Of shared-buffer cells, all
        loads of one kind of flow list, congestion control, buffer size and scheme."""
        own = self.family.grouped_by(self)
        return (self.kind, self.label, self.cc, self.rate_mbps, self.rtt_ms, self.rate_trace, self.qdisc, own)

    @property
    def bottomless(self) -> bool:
        """Whether the buffer never fills and random loss decides when slow start ends."""
        return self.buffer_packets >= BOTTOMLESS_PACKETS and self.loss > 0

    @property
    def id(self) -> str:
        """Names the cell in reports and to `--only`."""
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
        setting: What was run.
        file, line: Where its first row stands.
        seeds: The reference's seeds, in the order of the file.
        reference: For each quantity compared, one value a seed.
        rate_file: The file of `setting.rate_trace`, if it names one.
        flow_files: For each seed, the list of flows that a shared-buffer cell replays.
        late_us: For each seed, by how much the reference's link emulator delivered packets late, on average; empty: not said.
        not_judged: Why it is not judged; empty when it is.
        ours: For each quantity, one value for each of our seeds; filled by running it.
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
    """`relative` of the reference or `absolute`, whichever is larger; for a single cell of a group twice that when
    `doubled`."""

    relative: float
    absolute: float = 0.0
    doubled: bool = True

    def allowed(self, reference: float) -> float:
        return max(self.relative * abs(reference), self.absolute)


class Family(ABC):
    """What is particular to one kind of cells: how they are named, run, judged and shown. `FAMILIES` has one of each.

    Attributes:
        kind: Its name, in settings, reports and ids.
        least_rtt_ms: Of its access links.
        follows_schedule: Whether its cells name a rate schedule.
        contributes: Whether each cell of a group contributes to the group what it is allowed itself.
        compact: Whether tables show ours and the error alone, since there are many quantities.
        columns: Of its tables, before the quantities.
    """

    kind: str
    least_rtt_ms = 2.0
    follows_schedule = False
    contributes = False
    compact = False
    columns: tuple[str, ...] = ("flows", "buffer", "loss", "runs")

    def path(self, s: Setting) -> str:
        """The path in words."""
        trace = f", {s.rate_trace}" if s.rate_trace else ""
        discipline = f", {s.qdisc}" if s.disciplined else ""
        return f"{s.rate_mbps:g} Mbit/s, {s.rtt_ms:g} ms{trace}{discipline}"

    def grouped_by(self, s: Setting) -> Hashable:
        """What else cells of one group have in common."""
        return 0

    def id_parts(self, s: Setting) -> list[str]:
        """What tells its cells apart."""
        return [f"N{s.flows}", f"{s.rate_mbps:g}Mbps", f"{s.rtt_ms:g}ms", s.rate_trace, f"{s.buffer_packets}pkts"]

    @abstractmethod
    def why_not_judged(self, s: Setting) -> str:
        """Why a cell is not judged; empty when it is."""

    @abstractmethod
    def scenario(self, cell: Cell, seed: int | None) -> Scenario:
        """The world of a cell that is judged."""

    def seeded(self, s: Setting) -> bool:
        """Whether each seed has a world of its own: what the reference draws and our simulator does not."""
        return False

    def uncertain_starts(self, s: Setting) -> bool:
        """Whether the senders are processes that compete from the first packet on: which of them loses when is chaotic, and
        a single history says little. ns-3's senders start to the nanosecond."""
        return False

    @abstractmethod
    def compared(self, result: Result) -> dict[str, float]:
        """What is set beside the reference: its own definitions."""

    @abstractmethod
    def how_judged(self, s: Setting) -> str:
        """Alone, as a member of its group, or as a distribution over seeds."""

    @abstractmethod
    def tolerances(self, s: Setting) -> Mapping[str, Tolerance]:
        """Of a cell judged alone, or of its group."""

    def row(self, s: Setting, runs: int) -> Sequence[str]:
        """A cell's `columns`."""
        return [str(s.flows), str(s.buffer_packets), f"{s.loss:g}" if s.loss else "0", str(runs)]

    def said(self, s: Setting) -> dict:
        """The columns that say what was run, beside those that all have."""
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


FAMILIES: dict[str, Family] = {}
"""By kind; each module of a family adds its own."""


def family(cls: type[Family]) -> type[Family]:
    """Adds a family: a class decorator."""
    FAMILIES[cls.kind] = cls()
    return cls


@dataclass(frozen=True)
class Skipped:
    """A file that holds no cells, and why it was passed over."""

    file: Path
    reason: str


@dataclass(frozen=True)
class Reference:
    """What a folder held."""

    folder: Path
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]
