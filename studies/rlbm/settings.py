"""What the campaign runs: schemes, congestion controls, sizes, loads, seeds; from the command line, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.scenarios import AGENT, SCHEMES, Scenario, congestion_controls, get
from netbuf_gym.tasks.queue_threshold import QUEUE_PACKETS, QueueThreshold
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.utils.arguments import choice, real, whole
from studies.common.settings import Settings as Common
from studies.common.settings import unique

TRAFFIC = {"thesis-code": "rlbm/thesis-code", "thesis-text": "rlbm/thesis-text", "default": "rlbm/default"}
"""The traffic recipes, each with its scenario and with the environment's recipe of the same name."""

WITHOUT_LEARNING = ("naive", "sophisticated", "dt", "abm")
RANDOM, RANDOM_NO_BETA, LEARNED = "random", "random_no_beta", "rlbm"
RULES = ("limits", "pulse", "pulse_burst", "brief_pulse")
"""Rules of `netbuf_gym.tasks.queue_threshold`."""
CONTROLLED = (RANDOM, RANDOM_NO_BETA, LEARNED, *RULES)
"""Schemes that decide interval by interval."""
NAMES = (*WITHOUT_LEARNING, *CONTROLLED, *(name for name in SCHEMES if name not in (*WITHOUT_LEARNING, AGENT)))
DEFAULT_SCHEMES = (*WITHOUT_LEARNING, RANDOM)

LOADS = tuple(k / 10 for k in range(1, 9))
INTERVALS_S = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
SWEPT_SIZES = (100, 500, 1000)
"""The thesis' interval sweep: CUBIC and these sizes only."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """A campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        traffic: One of `TRAFFIC`.
        schemes, ccs, sizes, loads: The grid; sizes are packets a queue, half of the shared buffer.
        seeds, first_seed: How many runs a cell has, and the first one's seed.
        duration_s: Of a run.
        interval_s: Between decisions of the schemes that make some.
        intervals: The same for the interval sweep; empty: none.
        agent: File of the learned agent, or its run directory; "" without one.
    """

    experiment: ClassVar[str] = "rlbm"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = QueueThreshold.name
    shipped: ClassVar[str] = f"{QueueThreshold.name}/ppo"
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES

    traffic: str = "thesis-code"
    schemes: tuple[str, ...] = DEFAULT_SCHEMES
    ccs: tuple[str, ...] = ("cubic", "newreno")
    sizes: tuple[int, ...] = QUEUE_PACKETS
    loads: tuple[float, ...] = LOADS
    seeds: int = 10
    first_seed: int = FIRST_EVALUATION_SEED
    duration_s: float = 60.0
    interval_s: float = 0.1
    intervals: tuple[float, ...] = INTERVALS_S
    agent: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        choice("traffic", self.traffic, TRAFFIC)
        put(self, "schemes", unique("schemes", [choice("schemes", name, NAMES) for name in self.schemes]))
        valid = sorted(set(congestion_controls("linux")) - {AGENT})
        put(self, "ccs", unique("ccs", [choice("ccs", name, valid) for name in self.ccs]))
        put(self, "sizes", unique("sizes", [whole("sizes", size, 1, 1_000_000) for size in self.sizes]))
        put(self, "loads", unique("loads", [real("loads", load, 0, 10, low_open=True) for load in self.loads]))
        put(self, "seeds", whole("seeds", self.seeds, 1, 100_000))
        put(self, "first_seed", whole("first_seed", self.first_seed, 0, 2**62))
        put(self, "duration_s", real("duration_s", self.duration_s, 0.1, 3600))
        put(self, "interval_s", real("interval_s", self.interval_s, 0.01, 10))
        put(self, "intervals", tuple(real("intervals", value, 0.01, 10) for value in self.intervals))
        unique("intervals", self.intervals, least=0)
        self.require_agent()

    @property
    def label(self) -> str:
        """What a folder of it is called, before the digest."""
        return f"{self.experiment}-{self.traffic}"

    def scenario(self, cc: str, size: int, load: float) -> Scenario:
        """The world of a cell, under the naive scheme."""
        return get(TRAFFIC[self.traffic], cc=cc, queue_packets=size, load=load, duration_s=self.duration_s)
