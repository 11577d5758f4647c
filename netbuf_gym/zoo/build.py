"""Makes the zoo: for each task and learner a study of settings, then an agent trained with the best of them over several seeds.

    python -m netbuf_gym.zoo.build
    python -m netbuf_gym.zoo.build size=small
    python -m netbuf_gym.zoo.build envs=[host_buffers] algos=[dqn,a2c] jobs=1 plan=true
    python -m netbuf_gym.zoo.build measure=true

Keys and their values are in `conf/zoo.yaml`, their meanings in `ZooConfig`. Core-hours are divided among the pairs, and become
steps by the rates that were measured. Run the command again to go on with what was interrupted; what is done is not done
again. The trainings' folders and logs are below `runs`, in one of their own for each budget.

An agent goes into `out`/<task>/<learner> and its settings into `tuned`/<task>/<learner>.yaml, which `netbuf-gym train` takes by
`+tuned=<task>`. Where there is an agent already, the better one in validation worlds stays. What the settings are worth beside
the learner's own is in `compared`/<task>/<learner>.json (`netbuf_gym.training.tuning.compare_tuned`); both are kept whichever
agent is.
"""

from __future__ import annotations

import itertools
import json
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, NetbufError, shown
from netbuf_gym.training import selection, tune
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.config import leaves, load, merged, plain
from netbuf_gym.training.ranges import ARGUMENTS
from netbuf_gym.training.schema import CONF, FIRST_VALIDATION_SEED
from netbuf_gym.training.tuning import processes, search_space
from netbuf_gym.training.tuning.trials import Training
from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import choice, real, whole
from netbuf_gym.utils.files import alone, write_atomic
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import text_table
from netbuf_gym.zoo import library

TRAINED_SHARE, PRUNED_SHARE = 0.8, 0.7
"""Of the time for training that is for steps, the rest being for worlds that models are judged in; of a trial's steps that are
made where some trials are given up."""
LEAST_TRIALS = 3
SIZES = {"full": ["zoo.yaml"], "small": ["zoo.yaml", "zoo_small.yaml"]}
DONE = "done.json"
"""In a pair's folder of runs, when it is done: which agent stays, and why."""


@dataclass
class ZooConfig:
    """What the zoo is made by.

    Attributes:
        envs, algos: tasks and learners, each with each.
        keep: agents that are taken over as they are.
        size: full, or small, which stands for what is in `conf/zoo_small.yaml`.
        jobs: processes at once.
        hours_studies, hours_training: core-hours for all studies, and for all trainings.
        seeds: trainings of an agent.
        trial_seeds: trainings of a study's trial.
        trial_share: steps of a trial's trainings, as a share of an agent's.
        slowest: as of studies.
        default_seeds: trainings with the learner's own settings, which tuned ones are compared with.
        trials: at most, of a study.
        rungs, worlds: as of studies (`netbuf-gym tune`).
        snapshots, validation_seeds: as of campaigns; tuned settings and defaults are compared in as many held-out worlds.
        evaluation_seeds: of each task's campaigns.
        weights: of tasks, by which core-hours are divided; 1 unless said.
        rates: steps a core-second of each task and learner in the worlds of the task's agents, as `measure=true` finds them.
        runs, out, tuned, compared: folders of runs, of agents, of settings, of what these are worth beside defaults.
        plan: say what would be done, and do nothing.
        measure: measure the rates of the pairs, and do nothing else.
    """

    envs: list[str] = field(default_factory=list)
    algos: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)
    size: str = "full"
    jobs: int = 2
    hours_studies: float = 12.0
    hours_training: float = 12.0
    seeds: int = 5
    trial_seeds: int = 3
    trial_share: float = 0.12
    slowest: float = 3.0
    default_seeds: int = 3
    trials: int = 40
    rungs: int = 4
    worlds: int = 24
    snapshots: int = 3
    validation_seeds: int = 48
    evaluation_seeds: dict[str, int] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    rates: dict[str, Any] = field(default_factory=dict)
    runs: str = "runs/zoo"
    out: str = "zoo/agents"
    tuned: str = "conf/tuned"
    compared: str = "results/tuned"
    plan: bool = False
    measure: bool = False


@dataclass(frozen=True)
class Pair:
    """A task and a learner, with what is spent on them.

    Attributes:
        steps, trial_steps: of each training of the agent, and of a trial.
        trials, hours: of the study, at most.
    """

    task: str
    algo: str
    steps: int
    trial_steps: int
    trials: int
    hours: float

    @property
    def name(self) -> str:
        """Of the agent."""
        return f"{self.task}/{self.algo}"


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0, 1 where a pair could not be done, or 130 when interrupted."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    config = configured(argv)
    if config.measure:
        for task in config.envs:
            rates = {algo: float(f"{rate(task, algo):.2g}") for algo in config.algos}
            print(f"  {task}: {{{', '.join(f'{algo}: {value:.0f}' for algo, value in rates.items())}}}", flush=True)
        return 0
    pairs = planned(config)
    print(said(pairs, config), flush=True)
    return 0 if config.plan else build(pairs, config)


def configured(argv: Sequence[str]) -> DictConfig:
    """The configuration, checked.

    Raises:
        ConfigError: a key, a type, a task or a learner that there is not, or a number out of range.
    """
    try:
        own = OmegaConf.from_dotlist([*argv])
        size = choice("size", own.get("size", "full"), SIZES)
        config = merged(OmegaConf.structured(ZooConfig), *(OmegaConf.load(CONF / name) for name in SIZES[size]), own)
    except YAMLError:
        raise ConfigError(f"{' '.join(argv)}: cannot be read; valid: KEY=VALUE, with keys of conf/zoo.yaml") from None
    except OmegaConfBaseException as error:
        what, why = error.full_key or " ".join(argv), str(error).splitlines()[0]
        raise ConfigError(f"{what}: {why}; valid: as in conf/zoo.yaml") from None
    for key, valid in (("envs", tasks.names()), ("algos", [*ARGUMENTS])):
        for name in config[key]:
            choice(key, name, valid)
        if len(set(config[key])) < max(1, len(config[key])):
            raise ConfigError(f"{key} = {shown(plain(config[key]))}; valid: each once, at least one")
    for name in config.envs:
        rates = config.rates.get(name) or {}
        if not OmegaConf.is_dict(rates) and not isinstance(rates, dict):
            raise ConfigError(f"rates.{name} = {shown(rates)}; valid: a mapping of learners to steps a core-second")
        for algo, value in rates.items():
            real(f"rates.{name}.{algo}", value, 0.0, 1e9, low_open=True)
    pairs = [f"{env}/{algo}" for env in tasks.names() for algo in ARGUMENTS]
    for key, valid in (("keep", pairs), *((key, tasks.names()) for key in ("rates", "weights", "evaluation_seeds"))):
        for name in config[key]:
            choice(key, name, valid)
    for name, value in config.weights.items():
        real(f"weights.{name}", value, 0.0, 1e6, low_open=True)
    for name, value in config.evaluation_seeds.items():
        whole(f"evaluation_seeds.{name}", value, 1, 1000)
    for key, low in (("hours_studies", 0), ("hours_training", 0), ("trial_share", 0), ("slowest", 1)):
        if not low < config[key] < 1e6:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: above {low}")
    least = {"jobs": 1, "seeds": 2, "default_seeds": 2, "trial_seeds": 3, "trials": 1, "rungs": 1, "worlds": 1}
    for key, low in {**least, "snapshots": 1, "validation_seeds": 1}.items():
        if not low <= config[key] <= 1000:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: {low} to 1000")
    return config


def planned(config: DictConfig) -> list[Pair]:
    """The pairs that are to be made, with their shares of the budgets; raises ConfigError for one of unknown rate."""
    names = [pair for pair in itertools.product(config.envs, config.algos) if "/".join(pair) not in config.keep]
    pairs = []
    for task, algo in names:
        per_s = config.rates.get(task, {}).get(algo)
        if per_s is None:
            raise ConfigError(f"rates.{task}.{algo} is missing; valid: steps a core-second, see measure=true")
        share = config.weights.get(task, 1.0) / sum(config.weights.get(one, 1.0) for one, _ in names)
        steps = per_s * 3600 * config.hours_training * share * TRAINED_SHARE / (config.seeds + config.default_seeds)
        hours = config.hours_studies * share
        trial = steps * config.trial_share
        trials = per_s * 3600 * hours * TRAINED_SHARE / (trial * config.trial_seeds * PRUNED_SHARE)
        most = max(LEAST_TRIALS, min(config.trials, round(trials)))
        if trial < 1:
            raise ConfigError(f"hours_training = {config.hours_training:g} leaves no step for {task}/{algo}; valid: more")
        pairs.append(Pair(task, algo, _rounded(steps), _rounded(trial), most, hours))
    return pairs


def said(pairs: Sequence[Pair], config: DictConfig) -> str:
    """The plan as a table."""
    rows = []
    for one in pairs:
        trial, steps = f"{config.trial_seeds} x {one.trial_steps:,}", f"{config.seeds} x {one.steps:,}"
        rows.append([one.name, f"{one.trials}", trial, f"{one.hours:.2f}", steps])
    total = f"{config.hours_studies:g} + {config.hours_training:g} core-hours, {config.jobs} at a time"
    return f"{total}\n{text_table(['agent', 'trials', 'steps of a trial', 'core-hours', 'steps'], rows)}"


def build(pairs: Sequence[Pair], config: DictConfig) -> int:
    """Makes what is not made yet, so many pairs at once; returns as `main` does."""
    runs = _runs(config)
    runs.mkdir(parents=True, exist_ok=True)
    works = Works(config)
    bar = ProgressBar("zoo", line_seconds=300.0)
    with alone(runs, "runs"), ThreadPoolExecutor(config.jobs) as pool, bar, Interrupt() as interrupt:
        made = {pair.name: pool.submit(works.make, pair) for pair in pairs}
        while not all(one.done() for one in made.values()) and interrupt.received is None:
            time.sleep(0.5)
            bar(sum(one.done() for one in made.values()), len(pairs), ", ".join(works.under_way))
        if interrupt.received is not None:
            works.stop(interrupt.received)
            print("interrupted; run the same command again to go on", file=sys.stderr)
            return 130
    results = {name: one.result() for name, one in made.items()}
    print(text_table(["agent", "what became of it"], [[name, text] for name, (text, _) in results.items()]))
    return 0 if all(whole for _, whole in results.values()) else 1


class Works:
    """Makes pairs, each by three processes, one after the other.

    Attributes:
        under_way: what is being done.
    """

    def __init__(self, config: DictConfig):
        self.config, self.under_way = config, cast(list[str], [])
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stopped, self._lock = threading.Event(), threading.Lock()

    def stop(self, received: int) -> None:
        """Ends the processes after a signal came, and begins no others."""
        self._stopped.set()
        with self._lock:
            running = [*self._processes]
        processes.end(running, received)

    def make(self, pair: Pair) -> tuple[str, bool]:
        """Study, training, comparison, choice; returns what became of it in words, and whether it is done."""
        try:
            return self._make(pair)
        except (NetbufError, OSError) as error:  # the others go on
            return f"not done: {error}", False

    def _make(self, pair: Pair) -> tuple[str, bool]:
        folder = _runs(self.config) / pair.task / pair.algo
        if (folder / DONE).is_file():
            return f"was done: {json.loads((folder / DONE).read_text())['said']}", True
        folder.mkdir(parents=True, exist_ok=True)
        study, agent = folder / "study", folder / "agent"
        worlds = [f"env={pair.task}", f"algo={pair.algo}", f"experiment=worlds/{pair.task}"]
        own = [f"total_timesteps={pair.trial_steps}", f"trials={pair.trials}", f"hours={pair.hours:.4g}", f"run_dir={study}"]
        own.append(f"slowest={self.config.slowest:g}")
        judged = [f"seeds={self.config.trial_seeds}", f"rungs={self.config.rungs}", f"worlds={self.config.worlds}"]
        if beginning := of_experiment(pair.task, pair.algo):
            judged.append(search_space.override("begin_with", [beginning]).replace('"', ""))
        tuning = ["-m", "netbuf_gym", "tune", *worlds, *own, *judged]
        if not self._run(f"{pair.name}: study", tuning, folder / "study.log"):
            return f"no study; see {folder / 'study.log'}", False
        settings = leaves(plain(OmegaConf.load(study / tune.BEST)))
        shared = [f"seeds={self.config.seeds}", f"validation_seeds={self.config.validation_seeds}", "suites=false"]
        seeds = self.config.evaluation_seeds.get(pair.task, 20)
        own = [f"evaluation_seeds={seeds}", f"runs={(folder / 'seeds').absolute()}", f"out={agent.absolute()}"]
        chosen = [search_space.override(key, value) for key, value in settings.items()]
        steps = [f"total_timesteps={_rounded(pair.steps / tune.cost(tuning[3:]))}", f"snapshots={self.config.snapshots}"]
        campaign = ["-m", "netbuf_gym.training.campaign", *worlds, *chosen, *steps, *shared, *own]
        if not self._run(f"{pair.name}: training", campaign, folder / "training.log"):
            return f"no agent; see {folder / 'training.log'}", False
        runs = f"runs={(folder / 'defaults').absolute()}"
        steps = [f"total_timesteps={pair.steps}", f"snapshots={self.config.snapshots}", f"seeds={self.config.default_seeds}"]
        shared = [f"validation_seeds={self.config.validation_seeds}", f"held_seeds={self.config.validation_seeds}", runs]
        own = [f"tuned={folder / 'seeds'}", f"out={Path(self.config.compared, pair.task, f'{pair.algo}.json')}"]
        compared = ["-m", "netbuf_gym.training.tuning.compare_tuned", *own, *worlds, *steps, *shared]
        if not self._run(f"{pair.name}: defaults", compared, folder / "defaults.log"):
            return f"not compared; see {folder / 'defaults.log'}", False
        text = self._settle(pair, study, agent)
        write_atomic(folder / DONE, json.dumps({"said": text}))
        return text, True

    def _settle(self, pair: Pair, study: Path, agent: Path) -> str:
        """Puts settings and agent where they belong; what stays, and why."""
        place = Path(self.config.tuned, pair.task, f"{pair.algo}.yaml")
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, shipped((study / tune.BEST).read_text(encoding="utf-8"), pair.task))
        there = Path(self.config.out, pair.task, pair.algo)
        text = "a new agent"
        if (there / library.MODEL).is_file():
            config = OmegaConf.load(agent / "config.yaml")
            seeds = range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + self.config.validation_seeds)
            scenario = selection.scenario_of(cast(DictConfig, config))
            models = [agent / library.MODEL, there / library.MODEL]
            ours, its = selection.scores(models, pair.task, scenario, seeds)
            better = ours < its if tasks.get(pair.task).measures.lower_is_better else ours > its
            text = f"{'the new agent' if better else 'the one that there was'} stays: {ours:.4f} of the new one, {its:.4f}"
            if not better:
                return text
        replace_folder(agent, there)
        return text

    def _run(self, what: str, argv: Sequence[str], log: Path) -> bool:
        """Runs a process to its end, with a log; whether it did what it was to do."""
        with self._lock:
            if self._stopped.is_set():
                return False
            with log.open("ab") as file:
                file.write(f"$ python {shlex.join(argv)}\n".encode())
                file.flush()
                process = subprocess.Popen([sys.executable, *argv], stdout=file, stderr=file)
            self._processes.append(process)
            self.under_way.append(what)
        status = process.wait()
        with self._lock:
            self._processes.remove(process)
            self.under_way.remove(what)
        return status == 0


def replace_folder(source: Path, there: Path) -> None:
    """Puts a copy of a folder where another one may be, which is whole until the copy is."""
    new, old = (there.with_name(f".{there.name}.{what}") for what in ("new", "old"))
    for one in (new, old):
        shutil.rmtree(one, ignore_errors=True)
    shutil.copytree(source, new)
    if there.exists():
        there.rename(old)
    new.rename(there)
    shutil.rmtree(old, ignore_errors=True)


def shipped(best: str, task: str) -> str:
    """A study's best settings as a file of the package: in the worlds that they were found in."""
    head, _, body = best.partition("\nalgo:")
    return f"{head}\ndefaults:\n  - /experiment/worlds/{task}\n  - _self_\n\nalgo:{body}"


def of_experiment(task: str, algo: str) -> dict[str, Any]:
    """What the experiment of a task's default agent sets of what a study searches; {} where its learner is another."""
    if not (CONF / "experiment" / f"{task}.yaml").is_file():
        return {}
    theirs = load("train", [f"experiment={task}"])
    if theirs.algo.name != algo:
        return {}
    found = {}
    for one in search_space.read(load("tune", [f"env={task}", f"algo={algo}"]).search):
        value = plain(OmegaConf.select(theirs, one.key))
        with suppress(ConfigError):  # beyond what is searched
            one.checked(value)
            found[one.name] = value
    return found


def rate(task: str, algo: str, seconds: float = 3.0) -> float:
    """Steps a core-second of a learner in the worlds of a task's agents, once it learns."""
    early = ["algo.kwargs.learning_starts=1000"] if "learning_starts" in ARGUMENTS[algo] else []
    config = load("train", [f"env={task}", f"algo={algo}", f"experiment=worlds/{task}", *early])
    part = config.env.num_envs * 32
    with Interrupt() as interrupt, closing(Training(config, interrupt)) as training:
        training.go_on(1000 + part)
        began, steps = time.process_time(), training.model.num_timesteps
        while (spent := time.process_time() - began) < seconds:
            training.go_on(training.model.num_timesteps + part)
        return (training.model.num_timesteps - steps) / spent


def _runs(config: Any) -> Path:
    return Path(config.runs, f"{config.hours_studies:g}+{config.hours_training:g}")


def _rounded(steps: float) -> int:
    return int(float(f"{steps:.2g}"))


if __name__ == "__main__":
    scripts.run("build", main)
