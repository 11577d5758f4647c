"""Settings of the campaign, from the command line and checked: schemes, congestion controls, sizes, loads, seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.scenarios import AGENT, SCHEMES, Scenario, congestion_controls, get
from netbuf_gym.tasks.queue_threshold import QUEUE_PACKETS, QueueThreshold
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.utils.arguments import check_choice, check_real, check_unique
from studies.common.settings import Range
from studies.common.settings import Settings as Common

TRAFFIC = {"thesis-code": "rlbm/thesis-code", "thesis-text": "rlbm/thesis-text", "default": "rlbm/default"}
"""Traffic recipes, each with its scenario; the environment's recipe has the same name."""

WITHOUT_LEARNING = ("naive", "sophisticated", "dt", "abm")
RANDOM, RANDOM_NO_BETA, LEARNED = "random", "random_no_beta", "rlbm"
RULES = ("limits", "pulse", "pulse_burst", "brief_pulse")
"""Rules of `netbuf_gym.tasks.queue_threshold`."""
CONTROLLED = (RANDOM, RANDOM_NO_BETA, LEARNED, *RULES)
"""Schemes that decide at every interval."""
NAMES = (*WITHOUT_LEARNING, *CONTROLLED, *(name for name in SCHEMES if name not in (*WITHOUT_LEARNING, AGENT)))
DEFAULT_SCHEMES = (*WITHOUT_LEARNING, RANDOM)

LOADS = tuple(k / 10 for k in range(1, 9))
INTERVALS_S = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
SWEPT_SIZES = (100, 500, 1000)
"""Sizes of the thesis' interval sweep, which uses CUBIC only."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """Settings of a campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        traffic: Name from `TRAFFIC`.
        schemes, ccs, sizes, loads: Axes of the grid; sizes are packets per queue, half of the shared buffer.
        seeds, first_seed: Number of runs in a cell, and the seed of the first.
        duration_s: Duration of a run.
        interval_s: Time between decisions of the schemes that make any.
        intervals: Decision intervals of the interval sweep; empty: no sweep.
        agent: File or run directory of the learned agent; "" without one.
    """

    experiment: ClassVar[str] = "rlbm"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = QueueThreshold.name
    shipped: ClassVar[str] = f"{QueueThreshold.name}/ppo"
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES
    valid: ClassVar = {
        "traffic": TRAFFIC,
        "schemes": NAMES,
        "sizes": Range(1, 1_000_000),
        "loads": Range(0, 10, low_open=True),
        "duration_s": Range(0.1, 3600),
        "interval_s": Range(0.01, 10),
    }

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
        super().__post_init__()
        ccs = sorted(set(congestion_controls("linux")) - {AGENT})
        object.__setattr__(self, "ccs", check_unique("ccs", [check_choice("ccs", name, ccs) for name in self.ccs]))
        intervals = [check_real("intervals", value, 0.01, 10) for value in self.intervals]
        object.__setattr__(self, "intervals", check_unique("intervals", intervals, least=0))

    @property
    def label(self) -> str:
        """Name of the campaign's folder, before the digest."""
        return f"{self.experiment}-{self.traffic}"

    def scenario(self, cc: str, size: int, load: float) -> Scenario:
        """Return the scenario of a cell, under the naive scheme."""
        found = get(TRAFFIC[self.traffic], cc=cc, queue_packets=size, load=load, duration_s=self.duration_s)
        assert isinstance(found, Scenario)
        return found
