"""What the campaign runs: studies, schemes, networks, seeds; from the command line, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.receiver_window import NETWORKS
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.utils.arguments import choice, real, whole
from studies.common.settings import Settings as Common
from studies.common.settings import unique
from studies.nuwa.schemes import LEARNED, NAMES, TASK

MOBILE, FOUR, GRID, CHANGE, FAIRNESS = "mobile", "networks", "grid", "change", "fairness"
VIDEO, LEARNING = "video", "learning"
STUDIES = {
    MOBILE: "4G and 5G, 80 s: Table I, the gain k (Fig. 7, 9, 10), throughput and delay (Fig. 16)",
    FOUR: "wired, Wi-Fi, 4G and 5G, 40 s: normalised indicators (Fig. 14)",
    GRID: "distance x bandwidth over 5G (Fig. 17)",
    CHANGE: "links that change at a controlled speed: which gain k suits which",
    FAIRNESS: "four flows, one more every 10 s, alone and with CUBIC (Fig. 8, 15)",
    VIDEO: "what a video client takes the path for, beside what it is (Fig. 2)",
    LEARNING: "learning curves of A2C, DQN, PPO and PPO-LSTM on the four networks (Fig. 12)",
}
DEFAULT_STUDIES = tuple(name for name in STUDIES if name != LEARNING)
DEFAULT_SCHEMES = tuple(name for name in NAMES if name != LEARNED)
ALGORITHMS = ("a2c", "dqn", "ppo", "ppo_lstm")
POINTS = 20
"""Of a learning curve."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """A campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        studies: Of `STUDIES`.
        schemes: Of `schemes.NAMES`.
        networks: Those of the studies `networks` and `learning`.
        seeds, first_seed: How many worlds a cell has, and the first one's seed.
        duration_s: Of every run; None: as long as the paper's.
        traces: A folder with folders `4g` and `5g` of traces; "": generated ones.
        agent: File of the learned agent, or its run directory; "" without one.
        algorithms: Learners of the study `learning`.
        steps: Environment steps of each of its runs.
        training_seeds: Runs of each of them.
    """

    experiment: ClassVar[str] = "nuwa"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = TASK
    shipped: ClassVar[str] = f"{TASK}/ppo_lstm"
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES

    studies: tuple[str, ...] = DEFAULT_STUDIES
    schemes: tuple[str, ...] = DEFAULT_SCHEMES
    networks: tuple[str, ...] = NETWORKS
    seeds: int = 10
    first_seed: int = FIRST_EVALUATION_SEED
    duration_s: float | None = None
    traces: str = ""
    agent: str = ""
    algorithms: tuple[str, ...] = ALGORITHMS
    steps: int = 1_000_000
    training_seeds: int = 5

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "studies", unique("studies", [choice("studies", name, STUDIES) for name in self.studies]))
        put(self, "schemes", unique("schemes", [choice("schemes", name, NAMES) for name in self.schemes]))
        put(self, "networks", unique("networks", [choice("networks", name, NETWORKS) for name in self.networks]))
        put(self, "seeds", whole("seeds", self.seeds, 1, 100_000))
        put(self, "first_seed", whole("first_seed", self.first_seed, 0, 2**62))
        if self.duration_s is not None:
            put(self, "duration_s", real("duration_s", self.duration_s, 1, 3600))
        if not isinstance(self.traces, str):
            raise ConfigError(f"traces = {self.traces!r}; valid: a folder")
        put(self, "algorithms", unique("algorithms", [choice("algorithms", name, ALGORITHMS) for name in self.algorithms]))
        put(self, "steps", whole("steps", self.steps, POINTS, 10**9))
        put(self, "training_seeds", whole("training_seeds", self.training_seeds, 1, 100))
        self.require_agent()

    def lasting_s(self, paper_s: float) -> float:
        """How long a run takes that took so long in the paper."""
        return paper_s if self.duration_s is None else self.duration_s
