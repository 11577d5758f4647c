"""Settings of the campaign (studies, schemes, networks, seeds), read from the command line and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.receiver_window import NETWORKS
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.common.settings import Range
from studies.common.settings import Settings as Common
from studies.nuwa.nuwa_schemes import LEARNED, NAMES, TASK

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
"""Points of a learning curve."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """Settings of a campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        studies: Names from `STUDIES`.
        schemes: Names from `schemes.NAMES`.
        networks: Networks of the studies `networks` and `learning`.
        seeds, first_seed: Number of worlds of each cell, and the seed of the first.
        duration_s: Duration of every run in s; None: the paper's.
        traces: Folder with subfolders `4g` and `5g` of traces; "": generated traces.
        agent: File or run directory of the learned agent; "" without one.
        algorithms: Learners of the study `learning`.
        steps: Environment steps of each training run of that study.
        training_seeds: Training runs of each learner on each network.
    """

    experiment: ClassVar[str] = "nuwa"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = TASK
    shipped: ClassVar[str] = f"{TASK}/ppo_lstm"
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES
    valid: ClassVar = {
        "studies": STUDIES,
        "schemes": NAMES,
        "networks": NETWORKS,
        "duration_s": Range(1, 3600),
        "algorithms": ALGORITHMS,
        "steps": Range(POINTS, 10**9),
        "training_seeds": Range(1, 100),
    }

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
        super().__post_init__()
        if not isinstance(self.traces, str):
            raise ConfigError(f"traces = {self.traces!r}; valid: a folder")

    def resolve_duration_s(self, paper_s: float) -> float:
        """Return the duration of a run in s, by default the paper's."""
        return paper_s if self.duration_s is None else self.duration_s
