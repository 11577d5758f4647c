"""Cells: one setting of the reference measurements, with its seeds, and what is compared in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

NS3_DUMBBELL = "ns3-dumbbell"
NS3_LAST_HOP = "ns3-lasthop"
NS3_SHARED_BUFFER = "ns3-sharedbuffer"
LINUX_DUMBBELL = "linux-dumbbell"

GOODPUT = "goodput_mbps"
QUEUE_DELAY = "queue_delay_ms"
DROPS = "queue_drops"
LOSS_RATE = "loss_rate"
TITLES = {GOODPUT: "goodput", QUEUE_DELAY: "delay", DROPS: "drops", LOSS_RATE: "loss rate"}
"""As table columns: Mbit/s, ms in the queue, packets, a share."""

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

    @property
    def disciplined(self) -> bool:
        """Whether a queue discipline holds the packets, with a device of one packet behind it (the reference's AQM cells)."""
        return self.qdisc != "DropTail"

    @property
    def drops_at_random(self) -> bool:
        """Whether the queue discipline draws lots."""
        return self.qdisc in ("Pie", "Red")

    @property
    def path(self) -> str:
        """The path in words: what the cells of a group share."""
        trace = f", {self.rate_trace}" if self.rate_trace else ""
        discipline = f", {self.qdisc}" if self.disciplined else ""
        if self.kind == NS3_SHARED_BUFFER:
            return f"{self.rate_mbps:g} Mbit/s, {self.buffer_packets} packets a queue"
        return f"{self.rate_mbps:g} Mbit/s, {self.rtt_ms:g} ms{trace}{discipline}"

    @property
    def group(self) -> tuple:
        """One congestion control on one path, within one family of cells: the key of its group. Of shared-buffer cells, all
        loads of one kind of flow list, congestion control, buffer size and scheme."""
        shared = self.buffer_packets if self.kind == NS3_SHARED_BUFFER else 0
        return (self.kind, self.label, self.cc, self.rate_mbps, self.rtt_ms, self.rate_trace, self.qdisc, shared)

    @property
    def bottomless(self) -> bool:
        """Whether the buffer never fills and random loss decides when slow start ends."""
        return self.buffer_packets >= BOTTOMLESS_PACKETS and self.loss > 0

    @property
    def id(self) -> str:
        """Names the cell in reports and to `--only`."""
        parts = [self.kind, self.label, self.cc]
        if self.kind != NS3_SHARED_BUFFER:
            parts.append(f"N{self.flows}")
        parts.append(f"{self.rate_mbps:g}Mbps")
        if self.kind != NS3_SHARED_BUFFER:
            parts.append(f"{self.rtt_ms:g}ms")
        parts += [self.rate_trace, f"{self.buffer_packets}pkts"]
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
