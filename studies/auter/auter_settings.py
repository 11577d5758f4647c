"""Settings of the campaign (studies, schemes, plant, seeds), read from the command line and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from studies.auter import paper
from studies.auter.auter_schemes import LEARNED, NAMES, RECIPE, TASK, WITH_BBR, WITH_VEGAS
from studies.common.settings import Range
from studies.common.settings import Settings as Common

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
    "agent": ((LEARNED, WITH_BBR[LEARNED], WITH_VEGAS[LEARNED]), f"{TASK}/dqn"),
    "auter": ((RECIPE, WITH_BBR[RECIPE], WITH_VEGAS[RECIPE]), f"{TASK}/auter"),
}
"""Schemes of each agent key, and the agent shipped with the package for that key; see `Settings.agents`."""
DEFAULT_SCHEMES = tuple(name for name in NAMES if not any(name in schemes for schemes, _ in AGENTS.values()))

SIM, LINUX = "sim", "linux"
PLANTS = {SIM: "the simulator", LINUX: "the kernel of this machine, live"}
LIVE_S, AT_ONCE = 90 * 60.0, 2
"""Longest real time of a campaign's live runs in s, and the number of concurrent worlds assumed; more `jobs` take less."""


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """Settings of a campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        studies: Names from `STUDIES`.
        schemes: Names from `schemes.NAMES`.
        plant: One of `PLANTS`.
        seeds, first_seed: Number of worlds of each cell, and the seed of the first.
        duration_s: Duration of every run but long ones in s; None: the duration in `studies`.
        hours: Duration of each run of the study `long_run`; None: the paper's 31, and 20 minutes live.
        agent: File or run directory of our learned agent; "" without one.
        auter: File or run directory of an agent trained with the paper's recipe; "" without one.
        epochs: Epochs of each training session of the study `training`.
        training_seeds: Number of training sessions.
    """

    experiment: ClassVar[str] = "auter"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = TASK
    shipped: ClassVar[str] = AGENTS["agent"][1]
    agents: ClassVar = AGENTS
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES
    valid: ClassVar = {
        "studies": STUDIES,
        "schemes": NAMES,
        "plant": PLANTS,
        "duration_s": Range(5, 86_400),
        "hours": Range(0.01, 240),
        "epochs": Range(paper.RESET_EACH, 10**7),
        "training_seeds": Range(1, 100),
    }

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

    @property
    def live(self) -> bool:
        """True if the runs take real time."""
        return self.plant == LINUX
