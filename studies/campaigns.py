"""Catalogue of all campaigns whose rows are kept in `results/studies`: command, requirements and execution of each."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError
from netbuf_gym.leaderboard import controllers
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.utils.plots import require_matplotlib
from netbuf_gym.utils.progress import ProgressBar, print_line
from studies.auter import trained, tune_constant
from studies.catalogue import EXPERIMENTS
from studies.common import kept
from studies.common.campaign import RUNS, Campaign, OtherCampaignError, keep_rows
from studies.common.experiment import Experiment
from studies.common.replay import find_stale_reason
from studies.receiver import agent as receiver_agent
from studies.receiver import goal as receiver_goal
from studies.receiver import measured
from studies.rlbm import compare
from studies.sender import seeds
from studies.switch import families, judging
from studies.validation import measured as validation

CHECKOUT = Path(__file__).resolve().parents[1]
MISSING, MEANS_ONLY = "missing", "keeps means over seeds, not runs"
"""Reasons why a campaign has no rows that could be stale."""
LIVE, TRAIN, TRACES = "live", "train", "traces"
"""Requirements of a campaign: real time on this machine's kernel, agents trained beforehand, measured traces."""


@dataclass(frozen=True, kw_only=True)
class StudyCampaign(ABC):
    """Campaign that produces the rows of a section.

    Attributes:
        study, section: Study, and its section, whose rows the campaign produces.
        words: Arguments of the command, after the program's name.
        needs: "", `LIVE`, `TRAIN` or `TRACES`.
        minutes: Approximate duration on two cores.
        agents: Names of the package's agents that play; the rows depend on them.
    """

    study: str
    section: str
    words: tuple[str, ...] = ()
    needs: str = ""
    minutes: float
    agents: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name for `netbuf-gym results make`."""
        return f"studies/{self.study}/{self.section.replace(' ', '_')}"

    @property
    @abstractmethod
    def command(self) -> str:
        """Command line, as typed in the checkout."""

    @abstractmethod
    def run(self, *, jobs: int | None = None, executor: str = LOCAL.name, traces: str | None = None) -> Path:
        """Run what is not done yet below `runs/studies` and keep the rows; repeating an interrupted call continues it.

        Args:
            jobs: Number of simultaneous runs; None: one for each core.
            executor: Executor of the runs, for a campaign that can be distributed.
            traces: Folder with measured traces, for a campaign that needs these.

        Returns:
            The file with the rows.

        Raises:
            ConfigError: A requirement is not met; the message names it.
        """

    def find_stale(self) -> str:
        """Return the reason why the rows are not what the campaign would produce now; "": none is known.

        Reasons: the rows are missing, hold means only, were played by another model than the package's agent of that name, or a
        sample of their runs comes out differently.
        """
        path = kept.build_path(CHECKOUT, self.study, self.section)
        if not path.is_file():
            return MISSING
        header = kept.read_header(path)
        if header.get("rows") == kept.MEANS:
            return MEANS_ONLY
        played = set(header.get("agents", {}).values())
        others = [name for name in self.agents if played and controllers.compute_model_digest(name) not in played]
        if others:
            return f"played by another model than {', '.join(others)}"
        found = None if self.needs else kept.read_rows(CHECKOUT, self.study, self.section)
        return self.replay_sample(found) if found else ""

    @staticmethod
    def is_stale(reason: str) -> bool:
        """Return whether a reason given by `find_stale` concerns rows that exist."""
        return reason not in ("", MISSING, MEANS_ONLY)

    def update_stale_mark(self, reason: str) -> None:
        """Mark the rows as stale, or remove the mark, according to a reason given by `find_stale`."""
        if reason == "" or self.is_stale(reason):
            kept.mark_stale(CHECKOUT, self.study, self.section, reason)

    @property
    def has_sample(self) -> bool:
        """Whether a sample of the rows' runs can be played again."""
        return False

    def replay_sample(self, found: kept.KeptRows) -> str:
        """Return why rows are stale, by playing some of their runs again; "": they are not, or there is no sample."""
        return ""

    def _require_traces(self, traces: str | None) -> str:
        if traces is None:
            raise ConfigError(f"{self.name} plays measured traces; valid: --traces DIR, a folder with them")
        return traces


@dataclass(frozen=True, kw_only=True)
class ExperimentCampaign(StudyCampaign):
    """Campaign run by `netbuf-gym reproduce`."""

    @property
    def command(self) -> str:
        words = [*self.words, "traces=DIR"] if self.needs == TRACES else self.words
        return " ".join(["netbuf-gym reproduce", self.study, *words])

    def run(self, *, jobs: int | None = None, executor: str = LOCAL.name, traces: str | None = None) -> Path:
        words = [*self.words, f"traces={self._require_traces(traces)}"] if self.needs == TRACES else list(self.words)
        return run_experiment(EXPERIMENTS[self.study], self.section, words, jobs, executor, CHECKOUT)

    @property
    def has_sample(self) -> bool:
        return not self.needs

    def replay_sample(self, found: kept.KeptRows) -> str:
        experiment = EXPERIMENTS[self.study]
        return find_stale_reason(experiment, experiment.parse(self.words).settings, found)


@dataclass(frozen=True, kw_only=True)
class ModuleCampaign(StudyCampaign):
    """Campaign run by a module of the studies as a program.

    Attributes:
        module: Name of the module below `studies`.
        main: Main function of the module.
        cores: Key of the argument with the number of threads; "": there is none.
        sample: Returns why rows are stale, by playing some of their runs again; None: no run is played again.
    """

    module: str
    main: Callable[[Sequence[str]], int]
    cores: str = ""
    sample: Callable[[kept.KeptRows], str] | None = None

    @property
    def command(self) -> str:
        return " ".join([f"python -m studies.{self.module}", *self.words])

    def run(self, *, jobs: int | None = None, executor: str = LOCAL.name, traces: str | None = None) -> Path:
        if executor != LOCAL.name:
            print_line(f"{self.name}: runs here and not by {executor}: it is one program")
        words = [self._require_traces(traces) if word == "DIR" else word for word in self.words]
        cores = [f"{self.cores}={jobs or len(os.sched_getaffinity(0))}"] if self.cores else []
        self.main([*words, *cores])
        return kept.build_path(CHECKOUT, self.study, self.section)

    @property
    def has_sample(self) -> bool:
        return self.sample is not None and not self.needs

    def replay_sample(self, found: kept.KeptRows) -> str:
        return self.sample(found) if self.sample else ""


@dataclass(frozen=True, kw_only=True)
class SeedCampaign(StudyCampaign):
    """Sender's claims by training seed: agents of other seeds in the campaigns of links and of events.

    Attributes:
        models: Run directories of a training campaign, one for each seed.
    """

    models: str = "runs/campaign/congestion_window/sender"

    @property
    def command(self) -> str:
        return f"netbuf-gym reproduce sender ... schemes=[agent] agent={self.models}/seed*/model.zip"

    def run(self, *, jobs: int | None = None, executor: str = LOCAL.name, traces: str | None = None) -> Path:
        models = {path.parent.name[4:]: path for path in sorted((CHECKOUT / self.models).glob("seed*/model.zip"))}
        if not models:
            valid = "the runs of python -m netbuf_gym.training.campaign experiment=sender"
            raise ConfigError(f"{self.models} holds no seed*/model.zip; valid: {valid}")
        folder = CHECKOUT / kept.DRAWN / self.study / self.section
        parts = {one.section: one for one in CAMPAIGNS if isinstance(one, ExperimentCampaign) and one.study == self.study}
        for seed, model in models.items():
            for part in seeds.PARTS:
                more = [f"traces={self._require_traces(traces)}"] if parts[part].needs == TRACES else []
                words = [word for word in parts[part].words if word.partition("=")[0] not in ("schemes", "agent")]
                words += ["schemes=[agent]", f"agent={model}", "figures=false", *more]
                run_campaign(EXPERIMENTS[self.study], words, folder / seed / part, jobs, executor)
        path = seeds.keep_seeds(folder, CHECKOUT)
        shutil.rmtree(folder)
        return path


def run_experiment(
    experiment: Experiment[Any], section: str, words: Sequence[str], jobs: int | None, executor: str, root: Path
) -> Path:
    """Run a campaign below `runs/studies`, draw its figures there, keep its rows and return their file."""
    require_matplotlib()  # fail before any work is done
    drawn = kept.find_drawn_folder(root, experiment.name, section)
    folder = drawn.with_name("campaign")
    campaign = run_campaign(experiment, words, folder, jobs, executor)
    shutil.rmtree(drawn, ignore_errors=True)
    campaign.draw(drawn)
    path = keep_rows(experiment, section, folder, root)
    kept.mark_drawn(root, experiment.name, section)
    shutil.rmtree(folder)
    return path


def run_campaign(experiment: Experiment[Any], words: Sequence[str], folder: Path, jobs: int | None, executor: str) -> Campaign:
    """Run what is not done yet of a campaign in its folder, and discard results there of another version or agent."""
    at_once = [] if jobs is None else [f"jobs={jobs}"]
    order = experiment.parse([*words, f"output={folder}", f"executor={executor}", *at_once])

    def begin() -> Campaign:
        return Campaign(experiment, order.settings, folder, order.jobs, order.executor)

    try:
        campaign = begin()
    except OtherCampaignError:
        shutil.rmtree(folder)
        campaign = begin()
    if not (folder / RUNS).is_file():
        with ProgressBar(f"{experiment.name} {folder.parent.name}") as bar:
            campaign.run(bar)
    return campaign


def _run_receiver_agent(words: Sequence[str]) -> int:
    return receiver_agent.main(words[1:])  # after "agent"


def _run_receiver_goal(words: Sequence[str]) -> int:
    return receiver_goal.main(words[1:])  # after "goal"


QUEUE_AGENTS, HOST_AGENTS, RECEIVER_AGENTS = ("queue_threshold/ppo",), ("host_buffers/dqn",), ("receiver_window/ppo_lstm",)
SENDER_AGENTS = ("congestion_window/sender",)
EVENT_STUDIES = "studies=[start,outage,delay_step,reverse,rivals,agents,elsewhere]"
EVENT_SCHEMES = "schemes=[newreno,cubic,bbr,vegas,westwood,copa,queue_target,keep,constant,agent]"
STRANGER_SCHEMES = "schemes=[newreno,cubic,bbr,bbr3,vegas,copa,queue_target,agent]"
LIVE_SCHEMES = "schemes=[agent,cubic,bbr,newreno,queue_target,keep,random,nuwa,naive,dt]"
PAPER_STUDIES = "studies=[settings,regions,latency,bandwidth,loss,flow_size,memory,long_run]"
LEARNERS = tuple(f"{name}=runs/ppcc/{name}/model.zip" for name in ("dqn", "a2c", "ppo", "ppo_lstm"))
_NUWA = [*(f"nuwa_k{k}" for k in (1, 2, 3, 5, 7, 9)), "nuwa_k7_bulk"]
_NUWA += [*(f"nuwa_paper_k{k}" for k in (1, 2, 3, 5, 7, 9)), "nuwa_paper_k7_bulk", "rledbat", "fixed", "autotuned", "cubic"]
_NUWA += ["newreno", "westwood", "vegas", "bbr", "bbrplus", "copa", "vivace", "inigo", "qtcp", "random"]
ALL_NUWA = f"schemes=[nuwa_rl,{','.join(_NUWA)}]"


def _make_live_campaign(study: str, section: str, minutes: float, agents: tuple[str, ...], *words: str) -> ExperimentCampaign:
    return ExperimentCampaign(study=study, section=section, words=words, needs=LIVE, minutes=minutes, agents=agents)


CAMPAIGNS: tuple[StudyCampaign, ...] = (
    ExperimentCampaign(
        study="rlbm",
        section="default",
        words=(
            "traffic=default",
            "schemes=[naive,sophisticated,dt,abm,random,rlbm,limits,brief_pulse,static_bdp,static_bdp_sqrt_n,red,codel,fq_codel,pie]",
            "agent=queue_threshold/ppo",
        ),
        minutes=7,
        agents=QUEUE_AGENTS,
    ),
    ExperimentCampaign(
        study="rlbm",
        section="thesis-code",
        words=("schemes=[naive,sophisticated,dt,abm,random,random_no_beta,rlbm]", "agent=queue_threshold/ppo"),
        minutes=28,
        agents=QUEUE_AGENTS,
    ),
    ModuleCampaign(
        study="rlbm",
        section="compare",
        module="rlbm.compare",
        main=compare.main,
        words=("agent=queue_threshold/ppo",),
        cores="jobs",
        minutes=12,
        agents=QUEUE_AGENTS,
    ),
    *(
        ModuleCampaign(
            study="switch",
            section=section,
            module="switch",
            main=families.main,
            words=(section.replace(" ", "_"),),
            cores="threads",
            sample=families.explain_staleness,
            minutes=minutes,
            agents=(*QUEUE_AGENTS, "queue_threshold/ppo-10ms"),
        )
        for section, minutes in (("random", 30), ("families", 70), ("300 s", 15))
    ),
    ModuleCampaign(
        study="switch",
        section="judging",
        module="switch",
        main=judging.main,
        words=("judging",),
        cores="threads",
        sample=judging.explain_staleness,
        minutes=15,
        agents=(*QUEUE_AGENTS, "queue_threshold/ppo-10ms"),
    ),
    ExperimentCampaign(
        study="sender",
        section="links",
        words=("studies=[ppcc,grid,traces]", "agent=congestion_window/sender"),
        needs=TRACES,
        minutes=9,
        agents=SENDER_AGENTS,
    ),
    ExperimentCampaign(
        study="sender",
        section="events",
        words=(EVENT_STUDIES, EVENT_SCHEMES, "seeds=10", "agent=congestion_window/sender"),
        minutes=2,
        agents=SENDER_AGENTS,
    ),
    ExperimentCampaign(
        study="sender",
        section="strangers",
        words=("studies=[strangers]", STRANGER_SCHEMES, "seeds=2", "agent=congestion_window/sender"),
        minutes=8,
        agents=SENDER_AGENTS,
    ),
    SeedCampaign(study="sender", section=seeds.SECTION, needs=TRAIN, minutes=15),
    ExperimentCampaign(
        study="ppcc",
        section="simulated",
        words=(
            "schemes=[newreno,qtcp,ppcc,dqn,a2c,ppo,ppo_lstm,agent,cubic,bbr,vegas,westwood,copa,queue_target,keep,constant_action,"
            "constant,random]",
            "agent=congestion_window/sender",
            "ppcc=congestion_window/ppo_kl-ppcc",
            *LEARNERS,
        ),
        needs=TRAIN,
        minutes=1,
        agents=(*SENDER_AGENTS, "congestion_window/ppo_kl-ppcc"),
    ),
    ExperimentCampaign(
        study="nuwa",
        section="generated",
        words=(ALL_NUWA, "agent=receiver_window/ppo_lstm"),
        minutes=37,
        agents=RECEIVER_AGENTS,
    ),
    ExperimentCampaign(
        study="nuwa",
        section="real",
        words=("studies=[mobile,networks,grid,video]", ALL_NUWA, "networks=[4g,5g]", "agent=receiver_window/ppo_lstm"),
        needs=TRACES,
        minutes=8,
        agents=RECEIVER_AGENTS,
    ),
    ExperimentCampaign(
        study="nuwa",
        section="learning",
        words=("studies=[learning]", "duration_s=15", "steps=200000"),
        needs=TRAIN,
        minutes=43,
    ),
    ExperimentCampaign(
        study="auter",
        section="simulated",
        words=(
            PAPER_STUDIES,
            "schemes=[default,tune-1,tune-2,max,bbr,auter,auter_bbr,agent,agent_bbr,autotuning,bpftune,constant,random]",
            "duration_s=30",
            "hours=4",
            "agent=host_buffers/dqn",
            "auter=host_buffers/auter",
        ),
        minutes=12,
        agents=(*HOST_AGENTS, "host_buffers/auter"),
    ),
    ExperimentCampaign(study="auter", section="training", words=("studies=[training]",), needs=TRAIN, minutes=1),
    ModuleCampaign(
        study="auter",
        section=trained.SECTION,
        module="auter.trained",
        main=trained.main,
        cores="jobs",
        needs=TRAIN,
        minutes=5,
    ),
    ModuleCampaign(
        study="auter",
        section="constants",
        module="auter.tune_constant",
        main=tune_constant.main,
        words=("seeds=1",),
        cores="jobs",
        minutes=20,
    ),
    _make_live_campaign(
        "auter",
        "live",
        38,
        HOST_AGENTS,
        *("studies=[paths]", "schemes=[default,max,agent,autotuning,constant]", "plant=linux", "seeds=3"),
        "agent=host_buffers/dqn",
    ),
    _make_live_campaign(
        "auter",
        "live_tables",
        27,
        HOST_AGENTS,
        "studies=[settings,regions]",
        "schemes=[default,tune-1,tune-2,max,bbr,agent,agent_bbr,autotuning,bpftune,constant,random]",
        *("plant=linux", "seeds=3", "agent=host_buffers/dqn"),
    ),
    _make_live_campaign(
        "auter",
        "live_sweeps",
        10,
        HOST_AGENTS,
        *("studies=[latency,bandwidth,loss]", "schemes=[default,max,bbr,agent,autotuning,bpftune,constant]", "plant=linux"),
        *("seeds=1", "duration_s=15", "agent=host_buffers/dqn"),
    ),
    _make_live_campaign(
        "auter",
        "live_flows",
        10,
        HOST_AGENTS,
        *("studies=[flow_size,memory]", "schemes=[default,max,bbr,agent,autotuning,bpftune,constant]", "plant=linux"),
        *("seeds=1", "duration_s=20", "agent=host_buffers/dqn"),
    ),
    _make_live_campaign(
        "auter",
        "live_long",
        20,
        HOST_AGENTS,
        *("studies=[long_run]", "schemes=[default,max,agent,autotuning]", "plant=linux", "seeds=1", "agent=host_buffers/dqn"),
    ),
    _make_live_campaign("live", "congestion_window", 62, SENDER_AGENTS, LIVE_SCHEMES),
    _make_live_campaign("live", "receiver_window", 26, RECEIVER_AGENTS, "tasks=[receiver_window]", LIVE_SCHEMES, "repeats=2"),
    _make_live_campaign("live", "queue_threshold", 23, QUEUE_AGENTS, "tasks=[queue_threshold]", LIVE_SCHEMES, "duration_s=22"),
    ModuleCampaign(
        study="receiver",
        section=receiver_agent.WORLDS,
        module="receiver",
        main=_run_receiver_agent,
        words=("agent", *RECEIVER_AGENTS, "--traces", "DIR", "--part", "evaluation", "--windows", "4", "--seeds", "2"),
        needs=TRACES,
        minutes=15,
        agents=RECEIVER_AGENTS,
    ),
    ModuleCampaign(
        study="receiver",
        section=receiver_goal.SECTION,
        module="receiver",
        main=_run_receiver_goal,
        words=("goal", "--traces", "DIR"),
        needs=TRACES,
        minutes=5,
        agents=RECEIVER_AGENTS,
    ),
    ModuleCampaign(
        study="receiver",
        section=receiver_agent.SURVIVAL,
        module="receiver",
        main=_run_receiver_agent,
        words=("agent", *RECEIVER_AGENTS, "--survival"),
        minutes=10,
        agents=RECEIVER_AGENTS,
    ),
    *(
        ModuleCampaign(
            study="receiver",
            section=section,
            module="receiver",
            main=measured.main,
            words=(section,),
            sample=measured.find_stale_reason,
            minutes=0.1,
        )
        for section in measured.MEASUREMENTS
    ),
    *(
        ModuleCampaign(
            study=validation.STUDY,
            section=section,
            module="validation",
            main=validation.main,
            words=(section,),
            cores="jobs",
            needs=LIVE if section == validation.LINUX else "",
            sample=validation.find_stale_reason,
            minutes=minutes,
        )
        for section, minutes in zip(validation.SECTIONS, (1, 0.2, 0.1, 10, 1), strict=True)
    ),
)
"""All campaigns. Simulated ones with the package's own agents have no requirements and run by default; others on request."""
