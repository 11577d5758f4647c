"""Build the zoo: for each task and learner a study of settings, then an agent trained with the best ones over several seeds.

    python -m studies.zoo.build
    python -m studies.zoo.build size=small
    python -m studies.zoo.build envs=[host_buffers] algos=[dqn,a2c] jobs=1 plan=true
    python -m studies.zoo.build measure=true

Keys and their values are in `conf/zoo.yaml`, their meanings in `ZooConfig`. Core-hours are divided among the pairs and
converted to steps by measured rates. Run the command again to continue an interrupted build; finished pairs are not repeated.
Folders and logs of the trainings are below `runs`, in a subfolder for each budget.

An agent is written to `out`/<task>/<learner> and its settings to `tuned`/<task>/<learner>.yaml, which `netbuf-gym train` takes
by `+tuned=<task>`. Where an agent exists already, the better one in validation worlds stays. The comparison of the settings
with the learner's defaults is in `compared`/<task>/<learner>.json (`studies.zoo.compare_tuned`); settings and
comparison are kept whichever agent stays.
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
from netbuf_gym.errors import ConfigError, NetbufError, quote
from netbuf_gym.training import selection, tune
from netbuf_gym.training.callbacks import Interrupt
from netbuf_gym.training.config import flatten_leaves, load, merge_configs, to_plain
from netbuf_gym.training.ranges import ARGUMENTS
from netbuf_gym.training.schema import CONF, FIRST_VALIDATION_SEED
from netbuf_gym.training.tuning import processes, search_space
from netbuf_gym.training.tuning.trials import TrialTraining
from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import check_choice, check_integer, check_real
from netbuf_gym.utils.files import exclusive_lock, write_atomic
from netbuf_gym.utils.overrides import write_whole
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import text_table
from netbuf_gym.utils.yaml_text import check_aliases
from netbuf_gym.zoo import library

TRAINED_SHARE, PRUNED_SHARE = 0.8, 0.7
"""Share of training time spent on steps, the rest being for worlds that models are judged in; share of a trial's steps that
are made on average, since some trials are pruned."""
LEAST_TRIALS = 3
SIZES = {"full": ["zoo.yaml"], "small": ["zoo.yaml", "zoo_small.yaml"]}
DONE = "done.json"
"""File in a pair's run folder, written at its end: which agent stays, and why."""


@dataclass
class ZooConfig:
    """Configuration of a zoo build.

    Attributes:
        envs, algos: Tasks and learners; every combination is built.
        keep: Agents that are kept as they are.
        size: full, or small, which adds the values of `conf/zoo_small.yaml`.
        jobs: Number of concurrent processes.
        hours_studies, hours_training: Core-hours for all studies, and for all trainings.
        seeds: Trainings per agent.
        trial_seeds: Trainings per trial of a study.
        trial_share: Steps of a trial's trainings as a share of an agent's.
        slowest: Core-seconds of a trial, in multiples of those of the defaults, above which studies give it up.
        default_seeds: Trainings with the learner's own settings, which tuned ones are compared with.
        trials: Largest number of trials per study.
        rungs, worlds: Settings of these names of studies (`netbuf-gym tune`).
        snapshots, validation_seeds: Settings of campaigns; tuned settings and defaults are compared in as many held-out worlds.
        evaluation_seeds: Evaluation seeds of each task's campaigns.
        weights: Weights of tasks by which core-hours are divided; 1 by default.
        rates: Steps per core-second of each task and learner in the worlds of the task's agents, as `measure=true` finds them.
        runs, out, tuned, compared: Folders of runs, agents, settings, and comparisons of settings with defaults.
        plan: Whether to print the plan only.
        measure: Whether to measure the rates of the pairs only.
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
    """A task and a learner with their budget.

    Attributes:
        steps, trial_steps: Steps of each training of the agent, and of a trial.
        trials, hours: Largest number of trials of the study, and its core-hours.
    """

    task: str
    algo: str
    steps: int
    trial_steps: int
    trials: int
    hours: float

    @property
    def name(self) -> str:
        """Name of the agent."""
        return f"{self.task}/{self.algo}"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status: 0, 1 if a pair could not be built, or 130 when interrupted."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    config = read_config(argv)
    if config.measure:
        for task in config.envs:
            rates = {algo: float(f"{measure_rate(task, algo):.2g}") for algo in config.algos}
            print(f"  {task}: {{{', '.join(f'{algo}: {value:.0f}' for algo, value in rates.items())}}}", flush=True)
        return 0
    pairs = plan_pairs(config)
    print(format_plan(pairs, config), flush=True)
    return 0 if config.plan else build_pairs(pairs, config)


def read_config(argv: Sequence[str]) -> DictConfig:
    """Return the checked configuration that KEY=VALUE arguments describe.

    Raises:
        ConfigError: An unknown key, task or learner, a wrong type, or a number out of range.
    """
    try:
        for argument in argv:
            check_aliases(argument.partition("=")[2], f"argument {quote(argument)}")
        own = OmegaConf.from_dotlist([write_whole(one) if _is_integer(one.partition("=")[0]) else one for one in argv])
        size = check_choice("size", own.get("size", "full"), SIZES)
        config = merge_configs(OmegaConf.structured(ZooConfig), *(OmegaConf.load(CONF / name) for name in SIZES[size]), own)
    except YAMLError:
        raise ConfigError(f"{' '.join(argv)}: cannot be read; valid: KEY=VALUE, with keys of conf/zoo.yaml") from None
    except OmegaConfBaseException as error:
        what, why = error.full_key or " ".join(argv), str(error).splitlines()[0]
        raise ConfigError(f"{what}: {why}; valid: as in conf/zoo.yaml") from None
    for key, valid in (("envs", tasks.names()), ("algos", [*ARGUMENTS])):
        for name in config[key]:
            check_choice(key, name, valid)
        if len(set(config[key])) < max(1, len(config[key])):
            raise ConfigError(f"{key} = {quote(to_plain(config[key]))}; valid: each once, at least one")
    for name in config.envs:
        rates = config.rates.get(name) or {}
        if not OmegaConf.is_dict(rates) and not isinstance(rates, dict):
            raise ConfigError(f"rates.{name} = {quote(rates)}; valid: a mapping of learners to steps a core-second")
        for algo, value in rates.items():
            check_real(f"rates.{name}.{algo}", value, 0.0, 1e9, low_open=True)
    pairs = [f"{env}/{algo}" for env in tasks.names() for algo in ARGUMENTS]
    for key, valid in (("keep", pairs), *((key, tasks.names()) for key in ("rates", "weights", "evaluation_seeds"))):
        for name in config[key]:
            check_choice(key, name, valid)
    for name, value in config.weights.items():
        check_real(f"weights.{name}", value, 0.0, 1e6, low_open=True)
    for name, value in config.evaluation_seeds.items():
        check_integer(f"evaluation_seeds.{name}", value, 1, 1000)
    for key, low in (("hours_studies", 0), ("hours_training", 0), ("trial_share", 0), ("slowest", 1)):
        if not low < config[key] < 1e6:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: above {low}")
    least = {"jobs": 1, "seeds": 2, "default_seeds": 2, "trial_seeds": 3, "trials": 1, "rungs": 1, "worlds": 1}
    for key, low in {**least, "snapshots": 1, "validation_seeds": 1}.items():
        if not low <= config[key] <= 1000:
            raise ConfigError(f"{key} = {config[key]!r} is out of range; valid: {low} to 1000")
    return config


def _is_integer(key: str) -> bool:
    """Return whether a key's value is an integer."""
    return isinstance(getattr(ZooConfig, key, None), int) or key.startswith("evaluation_seeds.")


def plan_pairs(config: DictConfig) -> list[Pair]:
    """Return the pairs to build with their shares of the budgets.

    Raises:
        ConfigError: A pair of unknown rate, or a budget that leaves no step.
    """
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
        pairs.append(Pair(task, algo, _round_steps(steps), _round_steps(trial), most, hours))
    return pairs


def format_plan(pairs: Sequence[Pair], config: DictConfig) -> str:
    """Format the plan as a table."""
    rows = []
    for one in pairs:
        trial, steps = f"{config.trial_seeds} x {one.trial_steps:,}", f"{config.seeds} x {one.steps:,}"
        rows.append([one.name, f"{one.trials}", trial, f"{one.hours:.2f}", steps])
    total = f"{config.hours_studies:g} + {config.hours_training:g} core-hours, {config.jobs} at a time"
    return f"{total}\n{text_table(['agent', 'trials', 'steps of a trial', 'core-hours', 'steps'], rows)}"


def build_pairs(pairs: Sequence[Pair], config: DictConfig) -> int:
    """Build the unfinished pairs, `jobs` at once, and return the exit status as `main` does."""
    runs = _get_runs_folder(config)
    runs.mkdir(parents=True, exist_ok=True)
    works = PairBuilder(config)
    bar = ProgressBar("zoo", line_seconds=300.0)
    with exclusive_lock(runs, "runs"), ThreadPoolExecutor(config.jobs) as pool, bar, Interrupt() as interrupt:
        made = {pair.name: pool.submit(works.build_pair, pair) for pair in pairs}
        while not all(one.done() for one in made.values()) and interrupt.received is None:
            time.sleep(0.5)
            bar(sum(one.done() for one in made.values()), len(pairs), ", ".join(works.running))
        if interrupt.received is not None:
            works.end_processes(interrupt.received)
            print("interrupted; run the same command again to go on", file=sys.stderr)
            return 130
    results = {name: one.result() for name, one in made.items()}
    print(text_table(["agent", "what became of it"], [[name, text] for name, (text, _) in results.items()]))
    return 0 if all(whole for _, whole in results.values()) else 1


class PairBuilder:
    """Builder of pairs, each by three processes in sequence.

    Attributes:
        running: Labels of the running processes.
    """

    def __init__(self, config: DictConfig):
        self.config, self.running = config, cast(list[str], [])
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stopped, self._lock = threading.Event(), threading.Lock()

    def end_processes(self, received: int) -> None:
        """End the processes after a signal, and start no others."""
        self._stopped.set()
        with self._lock:
            running = [*self._processes]
        processes.end_processes(running, received)

    def build_pair(self, pair: Pair) -> tuple[str, bool]:
        """Run study, training, comparison and choice of a pair; return the outcome in words, and whether the pair is done."""
        try:
            return self._run_stages(pair)
        except (NetbufError, OSError) as error:  # the other pairs continue
            return f"not done: {error}", False

    def _run_stages(self, pair: Pair) -> tuple[str, bool]:
        folder = _get_runs_folder(self.config) / pair.task / pair.algo
        if (folder / DONE).is_file():
            return f"was done: {json.loads((folder / DONE).read_text())['said']}", True
        folder.mkdir(parents=True, exist_ok=True)
        study, agent = folder / "study", folder / "agent"
        worlds = [f"env={pair.task}", f"algo={pair.algo}", f"experiment=worlds/{pair.task}"]
        own = [f"total_timesteps={pair.trial_steps}", f"trials={pair.trials}", f"hours={pair.hours:.4g}", f"run_dir={study}"]
        own.append(f"slowest={self.config.slowest:g}")
        judged = [f"seeds={self.config.trial_seeds}", f"rungs={self.config.rungs}", f"worlds={self.config.worlds}"]
        if beginning := read_experiment_settings(pair.task, pair.algo):
            judged.append(search_space.format_override("begin_with", [beginning]).replace('"', ""))
        tuning = ["-m", "netbuf_gym", "tune", *worlds, *own, *judged]
        if not self._run(f"{pair.name}: study", tuning, folder / "study.log"):
            return f"no study; see {folder / 'study.log'}", False
        settings = flatten_leaves(to_plain(OmegaConf.load(study / tune.BEST).algo), "algo")
        shared = [f"seeds={self.config.seeds}", f"validation_seeds={self.config.validation_seeds}", "suites=false"]
        seeds = self.config.evaluation_seeds.get(pair.task, 20)
        own = [f"evaluation_seeds={seeds}", f"runs={(folder / 'seeds').absolute()}", f"out={agent.absolute()}"]
        chosen = [search_space.format_override(key, value) for key, value in settings.items()]
        steps = [
            f"total_timesteps={_round_steps(pair.steps / tune.compute_cost_ratio(tuning[3:]))}",
            f"snapshots={self.config.snapshots}",
        ]
        campaign = ["-m", "netbuf_gym.training.campaign", *worlds, *chosen, *steps, *shared, *own]
        if not self._run(f"{pair.name}: training", campaign, folder / "training.log"):
            return f"no agent; see {folder / 'training.log'}", False
        runs = f"runs={(folder / 'defaults').absolute()}"
        steps = [f"total_timesteps={pair.steps}", f"snapshots={self.config.snapshots}", f"seeds={self.config.default_seeds}"]
        shared = [f"validation_seeds={self.config.validation_seeds}", f"held_seeds={self.config.validation_seeds}", runs]
        own = [f"tuned={folder / 'seeds'}", f"out={Path(self.config.compared, pair.task, f'{pair.algo}.json')}"]
        compared = ["-m", "studies.zoo.compare_tuned", *own, *worlds, *steps, *shared]
        if not self._run(f"{pair.name}: defaults", compared, folder / "defaults.log"):
            return f"not compared; see {folder / 'defaults.log'}", False
        text = self._install_results(pair, study, agent)
        write_atomic(folder / DONE, json.dumps({"said": text}))
        return text, True

    def _install_results(self, pair: Pair, study: Path, agent: Path) -> str:
        """Install settings and, if it is the better one, the new agent; return which agent stays, and why."""
        place = Path(self.config.tuned, pair.task, f"{pair.algo}.yaml")
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, format_packaged_settings((study / tune.BEST).read_text(encoding="utf-8"), pair.task))
        there = Path(self.config.out, pair.task, pair.algo)
        text = "a new agent"
        if (there / library.MODEL).is_file():
            config = OmegaConf.load(agent / "config.yaml")
            seeds = range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + self.config.validation_seeds)
            scenario = selection.resolve_validation_scenario(cast(DictConfig, config))
            models = [agent / library.MODEL, there / library.MODEL]
            ours, its = selection.score_models(models, pair.task, scenario, seeds)
            better = ours < its if tasks.get(pair.task).measures.lower_is_better else ours > its
            text = f"{'the new agent' if better else 'the one that there was'} stays: {ours:.4f} of the new one, {its:.4f}"
            if not better:
                return text
        replace_folder(agent, there)
        return text

    def _run(self, what: str, argv: Sequence[str], log: Path) -> bool:
        """Run a Python process to its end with a log; return whether it succeeded."""
        with self._lock:
            if self._stopped.is_set():
                return False
            with log.open("ab") as file:
                file.write(f"$ python {shlex.join(argv)}\n".encode())
                file.flush()
                process = subprocess.Popen([sys.executable, *argv], stdout=file, stderr=file)
            self._processes.append(process)
            self.running.append(what)
        status = process.wait()
        with self._lock:
            self._processes.remove(process)
            self.running.remove(what)
        return status == 0


def replace_folder(source: Path, there: Path) -> None:
    """Replace `there`, if it exists, by a copy of a folder; the old one stays whole until the copy is complete."""
    new, old = (there.with_name(f".{there.name}.{what}") for what in ("new", "old"))
    for one in (new, old):
        shutil.rmtree(one, ignore_errors=True)
    shutil.copytree(source, new)
    if there.exists():
        there.rename(old)
    new.rename(there)
    shutil.rmtree(old, ignore_errors=True)


def format_packaged_settings(best: str, task: str) -> str:
    """Return a study's best settings as a file of the package, in the worlds of the study."""
    head = [line for line in best.splitlines() if line.startswith("#")]
    settings = OmegaConf.to_yaml(OmegaConf.create({"algo": OmegaConf.create(best).algo}))
    return "\n".join([*head, "defaults:", f"  - /experiment/worlds/{task}", "  - _self_\n", settings])


def read_experiment_settings(task: str, algo: str) -> dict[str, Any]:
    """Return the searched settings that the experiment of a task's default agent sets; {} if its learner is another one."""
    if not (CONF / "experiment" / f"{task}.yaml").is_file():
        return {}
    theirs = load("train", [f"experiment={task}"])
    if theirs.algo.name != algo:
        return {}
    found = {}
    for one in search_space.read_settings(load("tune", [f"env={task}", f"algo={algo}"]).search):
        value = to_plain(OmegaConf.select(theirs, one.key))
        with suppress(ConfigError):  # outside of the search space
            one.encode_checked(value)
            found[one.name] = value
    return found


def measure_rate(task: str, algo: str, seconds: float = 3.0) -> float:
    """Measure steps per core-second of a learner in the worlds of a task's agents, once it has begun to learn."""
    early = ["algo.kwargs.learning_starts=1000"] if "learning_starts" in ARGUMENTS[algo] else []
    config = load("train", [f"env={task}", f"algo={algo}", f"experiment=worlds/{task}", *early])
    part = config.env.num_envs * 32
    with Interrupt() as interrupt, closing(TrialTraining(config, interrupt)) as training:
        training.train_until(1000 + part)
        began, steps = time.process_time(), training.model.num_timesteps
        while (spent := time.process_time() - began) < seconds:
            training.train_until(training.model.num_timesteps + part)
        return (training.model.num_timesteps - steps) / spent


def _get_runs_folder(config: Any) -> Path:
    return Path(config.runs, f"{config.hours_studies:g}+{config.hours_training:g}")


def _round_steps(steps: float) -> int:
    return int(float(f"{steps:.2g}"))


if __name__ == "__main__":
    scripts.run("build", main)
