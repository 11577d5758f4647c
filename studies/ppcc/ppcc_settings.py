"""Settings of the campaign, from the command line and checked: studies, schemes, agents, seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.zoo import library
from studies.common.settings import Range
from studies.common.settings import Settings as Common
from studies.ppcc.ppcc_schemes import AGENTS, LEARNED, LEARNERS, NAMES, RECIPE, TASK

TABLE, NS3, SERIES, SENDERS, CONSTANTS = "table", "ns3", "series", "senders", "constants"
STUDIES = {
    TABLE: "one sender in the four scenarios (Table III)",
    NS3: "the same with TCP as ns-3 has it, which the paper used",
    SERIES: "window, RTT and throughput second by second, scenario 2 and a fluctuating link (Fig. 4a to c)",
    SENDERS: "1, 2 and 4 senders on 10, 20 Mbit/s and a fluctuating link, scenario 2 (Fig. 4d, 5)",
    CONSTANTS: "constant windows of 10 to 160 packets in the four scenarios: which is the best",
}
DURATION_S = 100.0
"""Duration of the paper's runs."""
FILES = {LEARNED: library.SENDER, RECIPE: f"{TASK}/ppo_kl-{RECIPE}", **{key: f"{TASK}/{key}-{RECIPE}" for key in LEARNERS}}
"""Names of the agents that come with the package, by scheme."""
DEFAULT_SCHEMES = tuple(name for name in NAMES if name not in AGENTS)


@dataclass(frozen=True, kw_only=True)
class Settings(Common):
    """Settings of a campaign; see `netbuf-gym reproduce --help`.

    Attributes:
        studies: Names from `STUDIES`.
        schemes: Names from `schemes.NAMES`.
        seeds, first_seed: Number of worlds in a cell, and the seed of the first.
        duration_s: Duration of every run; None: the paper's 100 s.
        agent: File or run directory of our agent; "" without one.
        ppcc: File or run directory of an agent that was trained by the paper's recipe; "" without one.
        dqn, a2c, ppo, ppo_lstm: Files or run directories of further learners; "" without one.
    """

    experiment: ClassVar[str] = "ppcc"
    learned: ClassVar[str] = LEARNED
    task: ClassVar[str] = TASK
    shipped: ClassVar[str] = FILES[LEARNED]
    agents: ClassVar = {key: ((key,), name) for key, name in FILES.items()}
    names: ClassVar[tuple[str, ...]] = NAMES
    by_default: ClassVar[tuple[str, ...]] = DEFAULT_SCHEMES
    valid: ClassVar = {"studies": STUDIES, "schemes": NAMES, "duration_s": Range(2, 3600)}

    studies: tuple[str, ...] = tuple(STUDIES)
    schemes: tuple[str, ...] = DEFAULT_SCHEMES
    seeds: int = 10
    first_seed: int = FIRST_EVALUATION_SEED
    duration_s: float | None = None
    agent: str = ""
    ppcc: str = ""
    dqn: str = ""
    a2c: str = ""
    ppo: str = ""
    ppo_lstm: str = ""

    @property
    def lasting_s(self) -> float:
        """Duration of a run in seconds."""
        return DURATION_S if self.duration_s is None else self.duration_s
