"""All campaigns whose rows stand in `results/studies`: the command of each, what it needs, and its running."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.utils.plots import require
from netbuf_gym.utils.progress import ProgressBar, say
from netbuf_gym.zoo import resolve
from studies.auter import trained, tune_constant
from studies.catalogue import EXPERIMENTS
from studies.common import kept
from studies.common.campaign import RUNS, Campaign, OtherCampaignError, keep_rows
from studies.common.experiment import Experiment
from studies.common.replay import why_stale
from studies.receiver import agent as receiver_agent
from studies.receiver import measured
from studies.rlbm import compare
from studies.sender import seeds
from studies.switch import families
from studies.validation import measured as validation

CHECKOUT = Path(__file__).resolve().parents[1]
MISSING, MEANS_ALONE = "missing", "keeps means over seeds, not runs"
"""Reasons why a campaign has no rows that could be stale."""
LIVE, TRAIN, TRACES = "live", "train", "traces"
"""What a campaign may need: real time on this machine's kernel, agents that are trained first, measured traces."""


@dataclass(frozen=True, kw_only=True)
class StudyCampaign(ABC):
    """A campaign, which makes the rows of a section.

    Attributes:
        study, section: Of which.
        words: Of its command, after the program's.
        needs: "", `LIVE`, `TRAIN` or `TRACES`.
        minutes: How long it takes on two cores, about.
        agents: Names of the package's agents that play: its rows follow from them.
    """

    study: str
    section: str
    words: tuple[str, ...] = ()
    needs: str = ""
    minutes: float
    agents: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What `netbuf-gym results make` calls it."""
        return f"studies/{self.study}/{self.section.replace(' ', '_')}"

    @property
    @abstractmethod
    def command(self) -> str:
        """As it is typed in the checkout."""

    @abstractmethod
    def run(self, *, jobs: int | None = None, executor: str = LOCAL.name, traces: str | None = None) -> Path:
        """Runs what is not done yet below `runs/studies` and keeps the rows; an interrupted call goes on when it is repeated.

        Args:
            jobs: At once; None: one for each core.
            executor: Where the runs are made, for a campaign that can be spread.
            traces: The folder with measured traces, for a campaign of these.

        Returns:
            the file with the rows.

        Raises:
            ConfigError: Something that it needs is not there; says what.
        """

    def find_stale(self) -> str:
        """Reason why the rows are not what the campaign would make now; "": none is known.

        They are missing, or hold means alone, or another model played than the package's agent of that name is, or a sample
        of their runs comes out otherwise.
        """
        path = kept.path_of(CHECKOUT, self.study, self.section)
        if not path.is_file():
            return MISSING
        header = kept.read_header(path)
        if header.get("rows") == kept.MEANS:
            return MEANS_ALONE
        played = set(header.get("agents", {}).values())
        others = [name for name in self.agents if played and resolve.digest_of(name) not in played]
        if others:
            return f"played by another model than {', '.join(others)}"
        found = None if self.needs else kept.read(CHECKOUT, self.study, self.section)
        return self.replay(found) if found else ""

    @staticmethod
    def is_stale(reason: str) -> bool:
        """Whether a reason of `find_stale` is one of rows that are there."""
        return reason not in ("", MISSING, MEANS_ALONE)

    def mark(self, reason: str) -> None:
        """Marks the rows as stale, or takes their mark away, by a reason of `find_stale`."""
        if reason == "" or self.is_stale(reason):
            kept.mark(CHECKOUT, self.study, self.section, reason)

    @property
    def has_sample(self) -> bool:
        """Whether a sample of the rows' runs can be played again."""
        return False

    def replay(self, found: kept.Kept) -> str:
        """Reason why rows are stale by some of their runs, which are played again; "": none, or there is no sample."""
        return ""

    def _traces(self, traces: str | None) -> str:
        if traces is None:
            raise ConfigError(f"{self.name} plays measured traces; valid: --traces DIR, a folder with them")
        return traces


@dataclass(frozen=True, kw_only=True)
class ExperimentCampaign(StudyCampaign):
    """A campaign of `netbuf-gym reproduce`."""

    @property
    def command(self) -> str:
        words = [*self.words, "traces=DIR"] if self.needs == TRACES else self.words
        return " ".join(["netbuf-gym reproduce", self.study, *words])

    def run(self, *, jobs: int | None = None, executor: str = LOCAL.name, traces: str | None = None) -> Path:
        words = [*self.words, f"traces={self._traces(traces)}"] if self.needs == TRACES else list(self.words)
        return run_experiment(EXPERIMENTS[self.study], self.section, words, jobs, executor, CHECKOUT)

    @property
    def has_sample(self) -> bool:
        return not self.needs

    def replay(self, found: kept.Kept) -> str:
        experiment = EXPERIMENTS[self.study]
        return why_stale(experiment, experiment.parse(self.words).settings, found)


@dataclass(frozen=True, kw_only=True)
class ModuleCampaign(StudyCampaign):
    """A campaign of a module of the studies, run as a program.

    Attributes:
        module: Below `studies`.
        main: Of it.
        cores: How its words call the number of threads; "": it has none.
        sample: Finds out why rows are stale by playing some of their runs again; None: by nothing.
    """

    module: str
    main: Callable[[Sequence[str]], int]
    cores: str = ""
    sample: Callable[[kept.Kept], str] | None = None

    @property
    def command(self) -> str:
        return " ".join([f"python -m studies.{self.module}", *self.words])

    def run(self, *, jobs: int | None = None, executor: str = LOCAL.name, traces: str | None = None) -> Path:
        if executor != LOCAL.name:
            say(f"{self.name}: runs here and not by {executor}: it is one program")
        words = [self._traces(traces) if word == "DIR" else word for word in self.words]
        cores = [f"{self.cores}={jobs or len(os.sched_getaffinity(0))}"] if self.cores else []
        self.main([*words, *cores])
        return kept.path_of(CHECKOUT, self.study, self.section)

    @property
    def has_sample(self) -> bool:
        return self.sample is not None and not self.needs

    def replay(self, found: kept.Kept) -> str:
        return self.sample(found) if self.sample else ""


@dataclass(frozen=True, kw_only=True)
class SeedCampaign(StudyCampaign):
    """The sender's claims by training seed: what other seeds' agents do in the campaigns of links and of events.

    Attributes:
        models: Run directories of a training campaign, one a seed.
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
                more = [f"traces={self._traces(traces)}"] if parts[part].needs == TRACES else []
                words = [word for word in parts[part].words if word.partition("=")[0] not in ("schemes", "agent")]
                words += ["schemes=[agent]", f"agent={model}", "figures=false", *more]
                play(EXPERIMENTS[self.study], words, folder / seed / part, jobs, executor)
        path = seeds.keep(folder, CHECKOUT)
        shutil.rmtree(folder)
        return path


def run_experiment(
    experiment: Experiment[Any], section: str, words: Sequence[str], jobs: int | None, executor: str, root: Path
) -> Path:
    """Runs a campaign below `runs/studies`, draws its pictures there and keeps its rows; returns their file."""
    require()  # refuses, before any work is done, where nothing can be drawn
    drawn = kept.drawn_folder(root, experiment.name, section)
    folder = drawn.with_name("campaign")
    campaign = play(experiment, words, folder, jobs, executor)
    shutil.rmtree(drawn, ignore_errors=True)
    campaign.draw(drawn)
    path = keep_rows(experiment, section, folder, root)
    kept.mark_drawn(root, experiment.name, section)
    shutil.rmtree(folder)
    return path


def play(experiment: Experiment[Any], words: Sequence[str], folder: Path, jobs: int | None, executor: str) -> Campaign:
    """Runs what is not done yet of a campaign in its folder; what stands there of another version or agent is played anew."""
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


def _play_receiver(words: Sequence[str]) -> int:
    return receiver_agent.main(words[1:])  # after "agent"


QUEUES, HOSTS, RECEIVERS = ("queue_threshold/ppo",), ("host_buffers/dqn",), ("receiver_window/ppo_lstm",)
SENDERS = ("congestion_window/sender",)
EVENTS = "studies=[start,outage,delay_step,reverse,rivals,agents,elsewhere]"
BESIDE = "schemes=[newreno,cubic,bbr,vegas,westwood,copa,queue_target,keep,constant,agent]"
POLICIES = "schemes=[agent,cubic,bbr,newreno,queue_target,keep,random,nuwa,naive,dt]"
PAPERS = "studies=[settings,regions,latency,bandwidth,loss,flow_size,memory,long_run]"
LEARNERS = tuple(f"{name}=runs/ppcc/{name}/model.zip" for name in ("dqn", "a2c", "ppo", "ppo_lstm"))
_NUWA = [*(f"nuwa_k{k}" for k in (1, 2, 3, 5, 7, 9)), "nuwa_k7_bulk"]
_NUWA += [*(f"nuwa_paper_k{k}" for k in (1, 2, 3, 5, 7, 9)), "nuwa_paper_k7_bulk", "rledbat", "fixed", "autotuned", "cubic"]
_NUWA += ["newreno", "westwood", "vegas", "bbr", "bbrplus", "copa", "vivace", "inigo", "qtcp", "random"]
ALL_NUWA = f"schemes=[nuwa_rl,{','.join(_NUWA)}]"


def _live(study: str, section: str, minutes: float, agents: tuple[str, ...], *words: str) -> ExperimentCampaign:
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
        agents=QUEUES,
    ),
    ExperimentCampaign(
        study="rlbm",
        section="thesis-code",
        words=("schemes=[naive,sophisticated,dt,abm,random,random_no_beta,rlbm]", "agent=queue_threshold/ppo"),
        minutes=28,
        agents=QUEUES,
    ),
    ModuleCampaign(
        study="rlbm",
        section="compare",
        module="rlbm.compare",
        main=compare.main,
        words=("agent=queue_threshold/ppo",),
        cores="jobs",
        minutes=12,
        agents=QUEUES,
    ),
    *(
        ModuleCampaign(
            study="switch",
            section=section,
            module="switch",
            main=families.main,
            words=(section.replace(" ", "_"),),
            cores="threads",
            sample=families.why_stale,
            minutes=minutes,
            agents=(*QUEUES, "queue_threshold/ppo-10ms"),
        )
        for section, minutes in (("random", 30), ("families", 70), ("300 s", 15))
    ),
    ExperimentCampaign(
        study="sender",
        section="links",
        words=("studies=[ppcc,grid,traces]", "agent=congestion_window/sender"),
        needs=TRACES,
        minutes=9,
        agents=SENDERS,
    ),
    ExperimentCampaign(
        study="sender",
        section="events",
        words=(EVENTS, BESIDE, "seeds=10", "agent=congestion_window/sender"),
        minutes=2,
        agents=SENDERS,
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
        agents=(*SENDERS, "congestion_window/ppo_kl-ppcc"),
    ),
    ExperimentCampaign(
        study="nuwa",
        section="generated",
        words=(ALL_NUWA, "agent=receiver_window/ppo_lstm"),
        minutes=37,
        agents=RECEIVERS,
    ),
    ExperimentCampaign(
        study="nuwa",
        section="real",
        words=("studies=[mobile,networks,grid,video]", ALL_NUWA, "networks=[4g,5g]", "agent=receiver_window/ppo_lstm"),
        needs=TRACES,
        minutes=8,
        agents=RECEIVERS,
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
            PAPERS,
            "schemes=[default,tune-1,tune-2,max,bbr,auter,auter_bbr,agent,agent_bbr,autotuning,bpftune,constant,random]",
            "duration_s=30",
            "hours=4",
            "agent=host_buffers/dqn",
            "auter=host_buffers/auter",
        ),
        minutes=12,
        agents=(*HOSTS, "host_buffers/auter"),
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
    _live(
        "auter",
        "live",
        38,
        HOSTS,
        *("studies=[paths]", "schemes=[default,max,agent,autotuning,constant]", "plant=linux", "seeds=3"),
        "agent=host_buffers/dqn",
    ),
    _live(
        "auter",
        "live_tables",
        27,
        HOSTS,
        "studies=[settings,regions]",
        "schemes=[default,tune-1,tune-2,max,bbr,agent,agent_bbr,autotuning,bpftune,constant,random]",
        *("plant=linux", "seeds=3", "agent=host_buffers/dqn"),
    ),
    _live(
        "auter",
        "live_sweeps",
        10,
        HOSTS,
        *("studies=[latency,bandwidth,loss]", "schemes=[default,max,bbr,agent,autotuning,bpftune,constant]", "plant=linux"),
        *("seeds=1", "duration_s=15", "agent=host_buffers/dqn"),
    ),
    _live(
        "auter",
        "live_flows",
        10,
        HOSTS,
        *("studies=[flow_size,memory]", "schemes=[default,max,bbr,agent,autotuning,bpftune,constant]", "plant=linux"),
        *("seeds=1", "duration_s=20", "agent=host_buffers/dqn"),
    ),
    _live(
        "auter",
        "live_long",
        20,
        HOSTS,
        *("studies=[long_run]", "schemes=[default,max,agent,autotuning]", "plant=linux", "seeds=1", "agent=host_buffers/dqn"),
    ),
    _live("live", "congestion_window", 14, SENDERS, POLICIES),
    _live("live", "receiver_window", 26, RECEIVERS, "tasks=[receiver_window]", POLICIES, "repeats=2"),
    _live("live", "queue_threshold", 23, QUEUES, "tasks=[queue_threshold]", POLICIES, "duration_s=22"),
    ModuleCampaign(
        study="receiver",
        section=receiver_agent.WORLDS,
        module="receiver",
        main=_play_receiver,
        words=("agent", *RECEIVERS, "--traces", "DIR", "--part", "evaluation", "--windows", "4", "--seeds", "2"),
        needs=TRACES,
        minutes=15,
        agents=RECEIVERS,
    ),
    ModuleCampaign(
        study="receiver",
        section=receiver_agent.SURVIVAL,
        module="receiver",
        main=_play_receiver,
        words=("agent", *RECEIVERS, "--survival"),
        minutes=10,
        agents=RECEIVERS,
    ),
    *(
        ModuleCampaign(
            study="receiver",
            section=section,
            module="receiver",
            main=measured.main,
            words=(section,),
            sample=measured.why_stale,
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
            sample=validation.why_stale,
            minutes=minutes,
        )
        for section, minutes in (("reference", 1), ("mechanisms", 0.2), ("marks", 0.1), (validation.LINUX, 10))
    ),
)
"""Those that are simulated with the package's own agents need nothing and come by themselves; the others are asked for."""
