"""Settings of the campaign, from the command line and checked: studies, schemes, the agent, traces, seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from netbuf_gym.errors import ConfigError
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.zoo import library
from studies.common.settings import Range
from studies.common.settings import Settings as Common
from studies.sender.sender_schemes import BOUNDS, CONSTANT, KEEP, LEARNED, NAMES, RULE, TASK, USUAL

PPCC, GRID, START, TRACES, OUTAGE = "ppcc", "grid", "start", "traces", "outage"
DELAY_STEP, REVERSE, RIVALS, AGENTS, ELSEWHERE = "delay_step", "reverse", "rivals", "agents", "elsewhere"
STRANGERS = "strangers"
STUDIES = {
    PPCC: "TCP-PPCC's four scenarios, which the agent is best at",
    GRID: "1 to 1000 Mbit/s, 5 to 400 ms, 0.25 to 4 BDP of buffer, no loss to 1 %: how often a classic is better",
    START: "1 Gbit/s and 50 ms: how long it takes to fill the link",
    TRACES: "measured traces of LTE, 3G and 5G, beside bounds that know their capacity; needs traces=DIR",
    OUTAGE: "10 s without service, the queue held or dropped: how long it takes to recover",
    DELAY_STEP: "a round trip that becomes 50 ms longer or shorter",
    REVERSE: "CUBIC on the way back, which queues the ACKs",
    RIVALS: "one flow of CUBIC, BBR or NewReno beside: shares of the link",
    AGENTS: "2, 4 and 8 senders of a kind, and four that join one after the other",
    ELSEWHERE: "the last five, on paths of other rates and round trips",
    STRANGERS: "jitter, unequal round trips, crowds, policers, fades: shares, and what rivals keep; an hour of a core",
}
NEED_TRACES = (TRACES,)
LARGE = (STRANGERS,)
"""Studies that are played only where they are named."""
DEFAULT_STUDIES = tuple(name for name in STUDIES if name not in (*NEED_TRACES, *LARGE))
DEFAULT_SCHEMES = (*USUAL, RULE, KEEP, CONSTANT, *BOUNDS)


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """Settings of a campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        studies: Names from `STUDIES`.
        schemes: Names from `schemes.NAMES`.
        seeds, first_seed: Number of worlds in a cell, and the seed of the first.
        duration_s: Longest duration of a run; None: the usual duration of each study. Events happen at the same share of a
            run, so that all times of shorter runs are shorter.
        traces: Folder with the measured traces at any depth; "": none.
        agent: File or run directory of the agent; "" without one.
    """

    experiment: ClassVar[str] = "sender"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = TASK
    shipped: ClassVar[str] = library.SENDER
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES
    valid: ClassVar = {"studies": STUDIES, "schemes": NAMES, "duration_s": Range(3, 3600)}

    studies: tuple[str, ...] = DEFAULT_STUDIES
    schemes: tuple[str, ...] = DEFAULT_SCHEMES
    seeds: int = 5
    first_seed: int = FIRST_EVALUATION_SEED
    duration_s: float | None = None
    traces: str = ""
    agent: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if TRACES in self.studies and not self.traces:
            valid = "traces=DIR, a folder with the measured traces that docs/sender.md names"
            raise ConfigError(f"studies holds {TRACES!r}, but there is no folder of traces; valid: {valid}")
        if self.traces and TRACES not in self.studies:
            raise ConfigError(f"traces = {self.traces!r}, but studies has no {TRACES!r}; valid: both or neither")
        if self.traces and not Path(self.traces).is_dir():
            raise ConfigError(f"traces = {self.traces!r} is no folder; valid: a folder with measured traces")

    @classmethod
    def from_values(cls, given: Mapping[str, Any]) -> Common:
        """See `Common.from_values`: with a folder of traces, the default studies include that of traces."""
        if given.get("traces") and "studies" not in given:
            given = {**given, "studies": tuple(name for name in STUDIES if name not in LARGE)}
        return super().from_values(given)

    def lasting_s(self, usual_s: float) -> float:
        """Return the duration of a run that usually takes `usual_s`."""
        return usual_s if self.duration_s is None else min(usual_s, self.duration_s)
