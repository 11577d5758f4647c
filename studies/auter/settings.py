"""What the campaign runs: studies, schemes, plant, seeds; from the command line, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.utils.arguments import choice, real, whole
from studies.auter import paper
from studies.auter.schemes import LEARNED, NAMES, RECIPE, TASK, WITH_BBR
from studies.common.settings import Settings as Common
from studies.common.settings import unique

SETTINGS, REGIONS, TRAINING = "settings", "regions", "training"
LATENCY, BANDWIDTH, LOSS, FLOW_SIZE = "latency", "bandwidth", "loss", "flow_size"
MEMORY, LONG_RUN, PATHS = "memory", "long_run", "paths"
SWEEPS = (LATENCY, BANDWIDTH, LOSS, FLOW_SIZE)
STUDIES = {
    SETTINGS: "hand-tuned settings in two regions (Table I)",
    REGIONS: "three regions with short and long traffic (Table IV)",
    LATENCY: "extra latency of 0 to 100 ms (Fig. 4)",
    BANDWIDTH: "bandwidths of 10 to 200 Mbit/s (Fig. 5)",
    LOSS: "random loss of 0 to 1 % (Fig. 6)",
    FLOW_SIZE: "flows of 10 kB to 100 MB, and mixed ones (Fig. 7)",
    MEMORY: "memory with up to 1000 connections (Fig. 9)",
    LONG_RUN: "31 hours of a path that changes (Fig. 8)",
    PATHS: "24 paths of 40 ms and more, from Linux's own settings on: what the default agent is judged by (12 of them live)",
    TRAINING: "a training session of the paper's recipe, 4,500 epochs (Fig. 3)",
}
DEFAULT_STUDIES = tuple(name for name in STUDIES if name != TRAINING)

AGENTS = {
    "agent": ((LEARNED, WITH_BBR[LEARNED]), f"{TASK}/dqn"),
    "auter": ((RECIPE, WITH_BBR[RECIPE]), f"{TASK}/auter"),
}
"""See `Settings.agents`."""
DEFAULT_SCHEMES = tuple(name for name in NAMES if not any(name in schemes for schemes, _ in AGENTS.values()))

SIM, LINUX = "sim", "linux"
PLANTS = {SIM: "the simulator", LINUX: "the kernel of this machine, live"}
LIVE_S, AT_ONCE = 90 * 60.0, 2
"""The most that the live runs of a campaign may take, so many worlds at once; with more `jobs` they take less."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """A campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        studies: Of `STUDIES`.
        schemes: Of `schemes.NAMES`.
        plant: Of `PLANTS`.
        seeds, first_seed: How many worlds a cell has, and the first one's seed.
        duration_s: Of every run but long ones; None: as `studies` has it.
        hours: Of each run of the study `long_run`; None: the paper's 31, and live 20 minutes.
        agent: File of our learned agent, or its run directory; "" without one.
        auter: The same of an agent that was trained by the paper's recipe.
        epochs: Of each training session of the study `training`.
        training_seeds: How many of them there are.
    """

    experiment: ClassVar[str] = "auter"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = TASK
    shipped: ClassVar[str] = AGENTS["agent"][1]
    agents: ClassVar = AGENTS
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES

    studies: tuple[str, ...] = DEFAULT_STUDIES
    schemes: tuple[str, ...] = DEFAULT_SCHEMES
    plant: str = SIM
    seeds: int = 5
    first_seed: int = FIRST_EVALUATION_SEED
    duration_s: float | None = None
    hours: float | None = None
    agent: str = ""
    auter: str = ""
    epochs: int = paper.EPOCHS
    training_seeds: int = 3

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "studies", unique("studies", [choice("studies", name, STUDIES) for name in self.studies]))
        put(self, "schemes", unique("schemes", [choice("schemes", name, NAMES) for name in self.schemes]))
        choice("plant", self.plant, PLANTS)
        put(self, "seeds", whole("seeds", self.seeds, 1, 100_000))
        put(self, "first_seed", whole("first_seed", self.first_seed, 0, 2**62))
        if self.duration_s is not None:
            put(self, "duration_s", real("duration_s", self.duration_s, 5, 86_400))
        if self.hours is not None:
            put(self, "hours", real("hours", self.hours, 0.01, 240))
        put(self, "epochs", whole("epochs", self.epochs, paper.RESET_EACH, 10**7))
        put(self, "training_seeds", whole("training_seeds", self.training_seeds, 1, 100))
        self.require_agent()

    @property
    def live(self) -> bool:
        """Whether runs take real time."""
        return self.plant == LINUX
