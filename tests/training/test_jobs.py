"""`train`, `evaluate`, `demo` on the command line: help without extras, Hydra's options, what was meant, sweeps, nonsense."""

import os
import random
import statistics
import subprocess
import sys

import pytest
from omegaconf import OmegaConf

from netbuf_gym.cli import program
from netbuf_gym.errors import CheckpointError, ConfigError, SimulatorFault
from netbuf_gym.training import campaign, config_reference, train
from netbuf_gym.training.config import Source, load
from netbuf_gym.training.jobs import load_resumed_config
from netbuf_gym.training.ranges import resolve_evaluation_seeds
from tests.helpers.tiny_jobs import TINY

EXTRAS = ("torch", "hydra", "omegaconf", "matplotlib", "tqdm", "rich", "stable_baselines3", "pandas", "scipy")
WITHOUT = f"""
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
from netbuf_gym import cli
"""
TRACE_VERBS = ("generate", "show", "plot", "convert", "flows")


@pytest.mark.slow
def test_help_of_every_command_needs_no_extras():
    calls = [[name, "--help"] for name in (*program.COMMANDS, *program.JOBS)] + [
        ["trace", verb, "--help"] for verb in TRACE_VERBS
    ]
    calls += [["--help"], ["--version"], ["completion", "zsh"]]
    code = WITHOUT + f"for words in {calls!r}:\n    assert cli.main(words) == 0, words"
    began = os.times()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    spent = os.times().children_user - began.children_user
    assert run.returncode == 0 and run.stderr == "", run.stderr
    assert spent < 3.0, f"{spent} s of processor for {len(calls)} helps"
    for job in ("train", "evaluate"):
        for key in config_reference.list_keys(job):
            assert f"{key.name}={config_reference.format_value(key.default)}" in run.stdout
    helped = subprocess.run([sys.executable, "-c", WITHOUT + "cli.main(['demo', '--help'])"], capture_output=True, text=True)
    assert "experiment=demo\n" in helped.stdout and "max_minutes=2 " in helped.stdout  # its own defaults, not training's
    refused = WITHOUT + "sys.exit(cli.main(['train', 'seed=1']))"
    run = subprocess.run([sys.executable, "-c", refused], capture_output=True, text=True)
    assert run.returncode == 2 and "pip install netbuf-gym[train]" in run.stderr and run.stderr.count("\n") == 1


@pytest.mark.slow
def test_bad_arguments_are_refused_before_the_learners_are_loaded():
    code = "import sys; from netbuf_gym import cli; print(cli.main(sys.argv[1:]), 'torch' in sys.modules)"
    spent, bare = [], []  # beside bare imports at the same moments: machines, and what else runs on them, differ
    for words in (
        ["train", "algo.gama=1"],
        ["train", "scenario.kwargs.rate_mpbs=3"],
        ["evaluate", "seeds=0"],
        ["demo", "algo=pp0"],
        ["train", "-m", "seed=1,x"],
        ["train", "--cfg", "job"],
    ):
        began = os.times().children_user
        subprocess.run([sys.executable, "-c", "import gymnasium, hydra.core.config_store, omegaconf"], check=True)
        between = os.times().children_user
        run = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert run.stdout.splitlines()[-1] == f"{0 if '--cfg' in words else 2} False", (words, run.stderr)
        spent.append(os.times().children_user - between)
        bare.append(between - began)
    assert statistics.median(spent) < 7 * statistics.median(bare), (spent, bare)


@pytest.mark.slow
def test_configurations_are_printed_and_nothing_is_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = command("train", "seed=3", "--cfg", "job", "algo=dqn", "scenario=pantheon/1")
    config = OmegaConf.create(out)
    assert status == 0 and config.env.num_envs == 64
    OmegaConf.resolve(config)
    assert config == load("train", ["seed=3", "algo=dqn", "scenario=pantheon/1"])
    status, out, _ = command("train", "-c", "job", "-p", "algo", "algo.kwargs.gamma=0.5")
    assert status == 0 and out.startswith("# @package algo\n") and OmegaConf.create(out).kwargs.gamma == 0.5
    assert command("train", "--cfg", "job", "-p", "env.num_envs")[1] == "1024\n"
    assert "num_envs: ${algo.num_envs}" in command("train", "--cfg", "job")[1]
    assert "num_envs: 1024" in command("train", "--cfg", "job", "--resolve", "-p", "env")[1]
    assert "runs/sweeps/evaluate" in command("evaluate", "--cfg", "hydra", "-p", "hydra.sweep")[1]
    assert set(OmegaConf.create(command("train", "--cfg", "all")[1])) >= {"hydra", "algo"}
    demo = OmegaConf.create(command("demo", "--cfg", "job", "experiment=queue_threshold")[1])
    assert demo.max_minutes == 2 and demo.env.name == "queue_threshold"  # as long, whatever is trained
    for words in ([], ["experiment=null"], ["experiment=[]"]):
        demo = OmegaConf.create(command("demo", "--cfg", "job", *words)[1])
        assert demo.max_minutes == 2 and demo.env.threads == min(2, len(os.sched_getaffinity(0)))
    assert command("train", "--cfg", "job", "-p", "max_minutes")[1] == "null\n"
    assert command("train", "--cfg", "job", "-p", "scenario.name", "scenario=default")[1] == "null\n"
    for word in ("tuned=queue_threshold", "+tuned=queue_threshold", "tuned=queue_threshold/a2c"):
        tuned = OmegaConf.create(command("train", "env=queue_threshold", "algo=a2c", word, "--cfg", "job")[1])
        assert tuned.algo.kwargs == load("train", ["env=queue_threshold", "algo=a2c", "tuned=queue_threshold/a2c"]).algo.kwargs
    assert OmegaConf.create(command("reproduce", "rlbm", "--cfg", "job", "seeds=3")[1]).seeds == 3
    for topic in ("", "all", "config", "defaults", "defaults-tree", "plugins", "searchpath"):
        status, out, _ = command("train", "--info", *([topic] if topic else []), "algo=dqn")
        assert status == 0 and out
    assert "algo: dqn" in command("train", "--info", "defaults-tree", "algo=dqn")[1]
    assert "conf" in command("evaluate", "-i", "searchpath")[1]
    assert "Hydra" in command("train", "--hydra-help")[1]
    assert command("train", "--version")[1].startswith("netbuf-gym ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "messages"),
    [
        (["train", "algo.gama=1"], ["'algo.gama'", "did you mean 'algo.kwargs.gamma'?", "netbuf-gym train --help"]),
        (["train", "alg=ppo"], ["'alg'", "did you mean 'algo'?"]),
        (["train", "algo.kwargs.gama=1"], ["algo.kwargs.gama", "did you mean 'gamma'?"]),
        (["train", "reward=alpha_fair", "reward.kwargs.alhpa=1"], ["'alhpa'", "did you mean 'alpha'?"]),
        (["train", "env.kwargs.histroy=2"], ["'histroy'", "did you mean 'history'?"]),
        (["train", "~seed"], ["'~seed'", "below kwargs"]),
        (["train", "~algo.kwargs.gama"], ["algo.kwargs.gama", "does not exist"]),
        (["train", "run_dir=a(b"], ["cannot be read", """as a text: "run_dir='a(b'\""""]),
        (["train", "--config-dir", "/none/such", "algo=mine"], ["/none/such", "no such folder"]),
        (["train", "-m", "seed=1,2", "algo.kwargs.max_grad_norm=-1"], ["algo.kwargs.max_grad_norm = -1"]),
        (["simulate", "--scheme", '{"name": "dt", "alhpas": [1]}', "--scenario", "rlbm/default"], ["did you mean 'alphas'?"]),
        (["trace", "generate", "lte", "--set", "sigam=1", "--out", "x.csv"], ["did you mean 'sigma'?"]),
        (["train", "algo=pp0"], ["algo = 'pp0'", "did you mean 'ppo'?", "valid: a2c, dqn"]),
        (["train", "scenario=ppcc/7"], ["'ppcc/7'", "did you mean 'ppcc/1'?", "valid: "]),
        (["train", "total_timestep=5"], ["did you mean 'total_timesteps'?"]),
        (["train", "scenario.kwargs.rate_mpbs=5"], ["no argument 'rate_mpbs'", "did you mean 'rate_mbps'?"]),
        (["train", "++algo.gama=1"], ["'algo.gama'", "did you mean 'algo.kwargs.gamma'?"]),
        (["train", "experiment=dmo"], ["did you mean 'demo'?"]),
        (["train", "reward=alpha-fair"], ["did you mean 'alpha_fair'?"]),
        (["train", "env=congestion-window"], ["did you mean 'congestion_window'?"]),
        (["train", "totel_timesteps"], ["did you mean 'total_timesteps='?"]),
        (["train", "seed=three"], ["seed = 'three'", "valid: int"]),
        (["train", "seed=1,2"], ["--multirun"]),
        (["train", "hydra.run.dir=x"], ["run_dir=DIR"]),
        (["train", "--cfg", "jobs"], ["did you mean 'job'?"]),
        (["train", "--config-di", "x", "y=1"], ["no such folder"]),  # argparse takes a beginning for the whole
        (["train", "--config-dir", "/none/such"], ["/none/such", "no such folder"]),
        (["train", "--config-path", "x"], ["--config-dir DIR"]),
        (["train", "--shell-completion"], ["netbuf-gym completion"]),
        (["train", "-m", "--cfg", "job"], ["one of them"]),
        (["train", "--resolve"], ["with --cfg"]),
        (["train", "--cfg", "job", "-p", "none.such"], ["none.such"]),
        (["demo", "-m", "seed=1,2"], ["-m"]),
        (["evaluate", "modle=x"], ["did you mean 'model'?"]),
        (["evaluate", "task=queue_treshold"], ["did you mean 'queue_threshold'?"]),
        (["evaluate", "seeds=0"], ["seeds = 0"]),
        *[
            (
                ["evaluate", "model=null", "env=receiver_window", f"{plus}{key}=foo"],
                [f"argument '{plus}{key}=foo': in evaluate 'env' is a task's name and has no keys; valid: env=NAME, of "],
            )
            for plus in ("", "+", "++")
            for key in ("env.kwargs.acts_on", "env.name")
        ],
        (["train", "--env", "congestion_window"], ["there is no option --env", "did you mean 'env=congestion_window'?"]),
        (["train", "seed=1", "--algo=dqn"], ["there is no option --algo", "did you mean 'algo=dqn'?"]),
        (["tune", "--total-timesteps", "5"], ["did you mean 'total_timesteps=5'?"]),
        (["demo", "--lr", "--cfg", "job"], ["did you mean 'algo.learning_rate=...'?"]),
        (["evaluate", "--model", "x"], ["did you mean 'model=x'?"]),
        (["train", "--nonsense", "x"], ["unrecognized arguments: --nonsense"]),
        (["evaluate", "congestion_window/sender"], ["did you mean 'model=congestion_window/sender'?"]),
        (["evaluate", "/tmp"], ["did you mean 'model=/tmp'?"]),
        (["evaluate", "queue_threshold"], ["did you mean 'env=queue_threshold'?"]),
        (["train", "ppo"], ["did you mean 'algo=ppo'?"]),
        (["train", "ppcc/4"], ["did you mean 'scenario=ppcc/4'?"]),
        (["train", "/tmp"], ["did you mean 'resume=/tmp'?"]),
        (["train", "env=netbuf/CongestionWindow-v0"], ["id of Gymnasium's", "did you mean 'congestion_window'?"]),
        (["evaluate", "model=null", "env=netbuf/HostBuffers-v0"], ["did you mean 'host_buffers'?"]),
        (["train", "algo.lr=1e-3"], ["did you mean 'algo.learning_rate'?"]),
        (["train", "lr=1e-3"], ["did you mean 'algo.learning_rate'?"]),
        (["train", "timesteps=9"], ["did you mean 'total_timesteps'?"]),
        (["train", "steps=9"], ["did you mean 'total_timesteps'?"]),
        (["train", "algo.batch_size=9"], ["did you mean 'algo.kwargs.batch_size'?"]),
        (["train", "plant=linux"], ["did you mean 'env.kwargs.plant'?"]),
        (["train", "algo=sac"], ["nearest: ppo, which takes continuous actions", "valid: a2c, dqn"]),
        (["demo", "algo=QR-DQN"], ["nearest: dqn"]),
        (["evaluate", "env.kwargs.plant=linux"], ["did you mean 'plant'?", "valid: env=NAME"]),
        (["evaluate", "env.kwargs.recipe=ppcc"], ["did you mean 'recipe'?"]),
        (["evaluate", "env.id=x"], ["did you mean 'env_id'?"]),
        (["evaluate", "episodes=3"], ["did you mean 'seeds'?"]),
        (["trian"], ["did you mean 'train'?"]),
        (["simulate", "--scenaro", "x"], ["did you mean '--scenario'?"]),
        (["evaluate", "congestion_window/none"], ["did you mean 'model=congestion_window/none'?"]),
        (["train", "env.kwargs.rate_mbps=4"], ["env.kwargs.rate_mbps", "did you mean 'scenario.kwargs.rate_mbps'?"]),
        (["simulate", "rate_mbps=5"], ["did you mean '--set rate_mbps=5'?", "netbuf-gym simulate --help"]),
        (["simulate", "scenario=ppcc/2"], ["did you mean '--scenario ppcc/2'?"]),
        (["simulate", "ppcc/2"], ["did you mean '--scenario ppcc/2'?"]),
        (["simulate", "duration=3"], ["did you mean '--duration 3'?"]),
        (["simulate", "--cc", "cubic,bbr"], ["did you mean '--senders cubic,bbr'?"]),
        (["simulate", "--rate=10"], ["did you mean '--set rate_mbps=10'?"]),
        (["simulate", "--scenario", "ppcc/2", "--rate-mbps", "9"], ["did you mean '--set rate_mbps=9'?"]),
        (["trace", "generate", "4g", "mean_mbps=3", "--out", "x"], ["did you mean '--set mean_mbps=3'?"]),
        (["list", "scenarois"], ["did you mean 'scenarios'?"]),
        (["reproduce", "rlbm", "sead=1"], ["did you mean 'seeds='?"]),
    ],
)
def test_what_was_meant(command, argv, messages):
    status, out, err = command(*argv)
    assert (status, out) == (2, "") and err.count("\n") == 1 and err.startswith("netbuf-gym: error: ")
    for message in messages:
        assert message in err


KEYS = (
    *("seed", "algo", "algo.gama", "algo.kwargs.gamma", "algo.kwargs", "scenario", "scenario.name", "scenario.kwargs"),
    *("env", "env.id", "env.kwargs", "experiment", "x", "hydra.run.dir", "hydra", "hydra/launcher", "algo@x", "", "é", "a b"),
    *("reward", "run_dir"),
    *("seeds", "baselines", "task", "plant", "schemes", "sizes", "traffic", "output", "figures", "algo.net_arch", "confidence"),
)
VALUES = (
    *("", "-1", "1e3", "abc", "null", "true", "[", "]", "{", "}", "[1", "[1,2]", "{a:1}", "${x}", "${seed}", "a,b", "'", '"'),
    *("'a", "é", "\ud800", "9" * 30, "1" * 5000, "x" * 3000, "[" * 300, "nan", "inf", "a=b", "=", "/dev/null", "range(1"),
    *("choice()", "glob(*)"),
    *("int(3", "\\", "$", "@", "a b", "\t", "\n", "???", "${", "#", "ppcc/7", "range(0,0)"),
)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["train", "evaluate", "demo", "reproduce"])
def test_nonsense_is_one_line_and_no_trace_back(job, command, tmp_path, monkeypatch):
    """Arguments at random, printed instead of run where they make a configuration."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(job)
    always = ["rlbm", "--cfg", "job"] if job == "reproduce" else ["--cfg", "job"]
    wrong = ["=1", "a=", "=", "++x=1", "~algo", "algo=[", "seed=${x}", "hydra.run.dir=x", "é=1", "seed=1.5e0", "seed"]
    for k in range(60):
        words = [wrong[k]] if k < len(wrong) else []
        for _ in range(0 if words else chance.randint(1, 2)):
            key = chance.choice(("", "", "", "+", "++", "~")) + chance.choice(KEYS)
            words.append(f"{key}={chance.choice(VALUES)}" if chance.random() < 0.93 else key)
        if any(word.startswith("-") for word in words):
            continue
        status, out, err = command(job, *(always[:1] if job == "reproduce" else []) if k < len(wrong) else always, *words)
        assert status in (0, 2) and (status or out), words
        assert status == 0 or (err.count("\n") == 1 and len(err) < 1500), (words, err)
        assert k >= len(wrong) or status == 2, words
    assert list(tmp_path.iterdir()) == []


# ---- a folder of one's own


@pytest.mark.slow
def test_a_folder_of_ones_own(command, tmp_path, tiny):
    mine = tmp_path / "mine"
    for name, text in {
        "algo/quick.yaml": "defaults: [ppo]\nlearning_rate: 0.01\nkwargs:\n  gamma: 0.5\n",
        "scenario/home/dsl.yaml": "name: ppcc/4\nkwargs:\n  rate_mbps: 6\n",
        "experiment/night.yaml": "# @package _global_\ndefaults:\n  - override /algo: quick\nseed: 9\n",
        "env/window.yaml": "name: congestion_window\nid: netbuf/CongestionWindow-v0\nnum_envs: 3\nkwargs: {recipe: ppcc}\n",
        "reward/mine.yaml": "name: power\nkwargs: {}\n",
        "whole.yaml": "defaults: [train, _self_]\ntotal_timesteps: 77\n",
    }.items():
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(text)
    words = ["--config-dir", mine, "--config-name", "whole", "experiment=night", "scenario=home/dsl", "env=window"]
    words += ["reward=mine"]
    status, out, err = command("train", "--cfg", "job", *words)
    config = OmegaConf.create(out)
    assert (status, err) == (0, "")
    assert (config.algo.learning_rate, config.algo.kwargs.gamma, config.seed, config.total_timesteps) == (0.01, 0.5, 9, 77)
    assert (config.scenario.kwargs.rate_mbps, config.env.num_envs, config.reward.name) == (6, 3, "power")
    status, _, err = command("train", "--config-dir", mine, "algo=quik")
    assert status == 2 and "did you mean 'quick'?" in err and "valid: a2c" in err
    overrides, run_dir = tiny
    assert command("train", "--config-dir", mine, "algo=quick", *overrides)[0] == 0
    assert OmegaConf.load(run_dir / "config.yaml").algo.learning_rate == 0.01
    (mine / "algo" / "ppo.yaml").write_text("name: ppo\n")
    status, _, err = command("train", "--config-dir", mine, "--cfg", "job")
    assert status == 2 and "ppo.yaml" in err and "another name" in err
    (mine / "algo" / "ppo.yaml").unlink()
    for text in ("name: [", "nonsense: 1\n", "\x00", "- a\n", "kwargs: 3\n", "defaults: [nothing]\n"):
        (mine / "algo" / "bad.yaml").write_text(text)
        status, _, err = command("train", "--config-dir", mine, "algo=bad", "--cfg", "job")
        assert status == 2 and err.count("\n") == 1, (text, err)


def test_a_single_name_stands_for_a_list_of_one():
    assert load("evaluate", ["baselines=cubic"]).baselines == ["cubic"]
    assert load("evaluate", ["baselines=mine.py:Gentle"]).baselines == ["mine.py:Gentle"]
    assert load("evaluate", ["baselines=null"]).baselines is None
    assert load("train", ["wandb.tags=night"]).wandb.tags == ["night"]
    with pytest.raises(ConfigError, match=r"names several values; valid: one, a list in brackets \(key=\[a,b\]\)"):
        load("evaluate", ["baselines=cubic,bbr"])


@pytest.mark.slow
def test_whole_floats_are_integers_wherever_one_is_due(command, tmp_path, trained):
    config = load("train", ["total_timesteps=1e5", "seed=2.", "algo.net_arch=[6.4e1, 32.0]", "env.threads=1_0.0", "twins=+1E0"])
    assert (config.total_timesteps, config.seed, config.algo.net_arch) == (100_000, 2, [64, 32])
    assert (config.env.threads, config.twins) == (10, 1) and all(type(one) is int for one in config.algo.net_arch)
    assert load("train", ["++seed=1e1", "run_dir='1e5'", "max_minutes=1e1"]).run_dir == "1e5"
    assert resolve_evaluation_seeds(load("evaluate", ["seeds=2e0"]).seeds) == [1_000_000, 1_000_001]
    assert resolve_evaluation_seeds(load("evaluate", ["seeds=[1e6]"]).seeds) == [1_000_000]
    assert load("evaluate", ["lines=8.0"]).lines == 8 and load("tune", ["trials=2e1"]).trials == 20
    mine = tmp_path / "mine"
    for name, text in {
        "experiment/night.yaml": "# @package _global_\ntotal_timesteps: 1e5\nalgo: {net_arch: [6.4e1], learning_rate: 1}\n",
        "algo/quick.yaml": "defaults: [ppo]\nnum_envs: 8.0\nkwargs: {gamma: 1.0, n_steps: 1.6e1}\n",
        "whole.yaml": "defaults: [train, _self_]\nseed: 7.0\n",
    }.items():
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(text)
    config = load("train", ["experiment=night", "algo=quick"], Source(str(mine), "whole"))
    assert (config.total_timesteps, config.algo.net_arch, config.algo.num_envs, config.seed) == (100_000, [64], 8, 7)
    assert config.algo.learning_rate == 1.0 and config.algo.kwargs.gamma == 1.0
    status, out, _ = command("train", "-m", "seed=1e0,2e0", "total_timesteps=1.5", "--config-dir", mine)
    assert status == 2 and out == ""
    for word in ("total_timesteps=1.5", "seed=1e-3", "total_timesteps=inf", "algo.net_arch=[1.5]"):
        with pytest.raises(ConfigError, match=r"Integer"):
            load("train", [word])
    assert campaign.parse_plan(["seeds=2e0", "jobs=1.0", *TINY, "suites=false"]).seeds == range(2)
    assert load_resumed_config(trained, ["total_timesteps=1e3"]).total_timesteps == 1000


@pytest.mark.slow
def test_aliases_of_ones_own_files_are_bounded(command, tmp_path):
    laughs = "a0: &a0 [x, x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))
    (tmp_path / "mine" / "experiment").mkdir(parents=True)
    (tmp_path / "mine" / "experiment" / "laughs.yaml").write_text(f"# @package _global_\n{laughs}\n")
    (tmp_path / "mine" / "laughs.yaml").write_text(laughs)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(laughs)
    for words in (
        ["--config-dir", tmp_path / "mine", "experiment=laughs"],
        ["--config-dir", tmp_path / "mine", "--config-name", "laughs"],
        [f"resume={tmp_path / 'run'}"],
    ):
        status, out, err = command("train", *words)
        assert (status, out) == (2, "") and err.count("\n") == 1 and "more than 10,000 values by its aliases" in err, words


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["'{0}{0}{0}{0}{0}{0}{0}{0}{0}'", "['{0}', '{0}', '{0}', '{0}', '{0}', '{0}']", "{{x: '{0}', y: '{0}'}}"]
)
def test_interpolations_of_ones_own_files_are_bounded(command, tmp_path, form):
    (tmp_path / "experiment").mkdir()
    for relative in (False, True):
        lines = [
            "# @package _global_",
            "env:",
            "  kwargs:",
            "    a0: [1, 2]" if "x" in form or "[" in form else "    a0: xxxxxx",
        ]
        for i in range(1, 40):
            depth = "." if form.startswith("'") else ".."
            lines.append(f"    a{i}: " + form.format(f"${{{depth if relative else 'env.kwargs.'}a{i - 1}}}"))
        (tmp_path / "experiment" / "laughs.yaml").write_text("\n".join(lines))
        status, out, err = command("train", "--config-dir", tmp_path, "experiment=laughs")
        assert (status, out) == (2, "") and err.count("\n") == 1 and "by its interpolations" in err, err
    for word in ("run_dir=${.seed}x${seed}", "env.kwargs.history=${algo.kwargs.n_steps}"):
        load("train", [word])


# ---- sweeps


@pytest.mark.slow
def test_a_sweep_runs_every_combination_and_ends_in_a_table(command, tiny, tmp_path):
    overrides, run_dir = tiny
    status, out, err = command("train", "-m", "seed=1,2", "algo.kwargs.gamma=choice(0.9,abc)", *overrides)
    assert status == 2 and "algo.kwargs.gamma = 'abc'" in err and not run_dir.exists()  # before the first job
    status, out, err = command("train", "-m", "seed=1,2", "reward.kwargs.delay_weight=choice(0.9,-1)", *overrides)
    assert status == 2
    assert "job 1: delay_weight = -1" in err and "job 3: " in err
    assert f"4 jobs in {run_dir}" in out
    done = [OmegaConf.load(run_dir / name / "config.yaml") for name in "02"]
    assert [(one.seed, one.reward.kwargs.delay_weight) for one in done] == [(1, 0.9), (2, 0.9)]
    assert all((run_dir / name / "model.zip").is_file() for name in "02")
    summary = (run_dir / "summary.md").read_text()
    assert summary.count("| done |") == 2 and summary.count("failed: ") == 2
    assert summary.splitlines()[0] == "| job | seed | reward.kwargs.delay_weight | return | status | seconds | folder |"
    assert sorted(path.name for path in run_dir.iterdir()) == ["0", "2", "summary.md"]


@pytest.mark.slow
def test_sweeps_have_the_grammar_of_hydras(trained, tmp_path, monkeypatch):
    from netbuf_gym.training import sweep
    from netbuf_gym.training.config import Source

    def chosen(*overrides):
        return [" ".join(job.chosen) for job in sweep.expand_jobs("train", overrides, Source())[1]]

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").write_text("1\n2\n")  # a trace
    assert chosen("seed=range(0,6,2)") == ["seed=0", "seed=2", "seed=4"]
    assert chosen("algo=choice(ppo,dqn)", "seed=1,2")[:2] == ["algo=ppo seed=1", "algo=ppo seed=2"]
    assert chosen("algo=glob(ppo*)") == ["algo=ppo", "algo=ppo_kl", "algo=ppo_lstm"]
    assert "scenario=ppcc/4" in chosen("scenario=glob(ppcc/*)")
    assert chosen("scenario=ppcc/1,pantheon/1,'trace:a b'") == ["scenario=ppcc/1", "scenario=pantheon/1", "scenario=trace:a b"]
    assert chosen("algo.net_arch=[8],[8,8]") == ["algo.net_arch=[8]", "algo.net_arch=[8,8]"]
    assert chosen("seed=3") == [""]
    folder, jobs = sweep.expand_jobs("train", ["seed=1,2", "hydra.sweep.dir='x y'", "hydra.sweep.subdir=s-${seed}"], Source())
    assert str(folder) == "x y" and [str(job.folder) for job in jobs] == ["x y/s-1", "x y/s-2"]
    assert jobs[1].config.run_dir == load("train", jobs[1].overrides).run_dir == "x y/s-2"
    with pytest.raises(CheckpointError, match="resume = 'b': no such file"):
        sweep.expand_jobs("train", [f"resume={trained},b"], Source())
    folder, (job,) = sweep.expand_jobs("train", [f"resume={trained}", "total_timesteps=512"], Source())
    assert folder is None and (job.config.resume, job.config.total_timesteps) == (str(trained), 512)
    first = sweep.expand_jobs("train", ["seed=1,2"], Source())[0]
    first.mkdir(parents=True)
    assert sweep.expand_jobs("train", ["seed=1,2"], Source())[0] != first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sead=1,2"], "did you mean 'seed'?"),
        (["seed=1,x"], "seed = 'x'"),
        (["algo=ppo,pp0"], "did you mean 'ppo'?"),
        (["seed=range(0,0)"], "no job"),
        (["seed=interval(0,1)"], "interval"),
        (["seed=1,2,"], "cannot be read"),
        (["algo=glob(z*)"], "matches no choice"),
    ],
)
def test_a_sweep_that_cannot_be_run_begins_nothing(command, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = command("train", "-m", *words)
    assert (status, out) == (2, "") and message in err.lower() and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "status", "begun"),
    [([0, 130, 0], 130, 2), ([0, KeyboardInterrupt(), 0], 130, 2), ([SimulatorFault("x"), 0, 0], 3, 3)],
)
def test_an_interruption_ends_a_sweep_and_a_fault_does_not(ends, status, begun, command, tmp_path, monkeypatch):
    calls = []

    def main(job):
        calls.append(job)
        end = ends[len(calls) - 1]
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setattr(train, "main", main)
    found = command("train", "--multirun", "seed=1,2,3", f"run_dir={tmp_path / 'sweep'}")
    assert found[0] == status and len(calls) == begun
    assert ("not begun: 1" in found[2]) == (status == 130)
    assert (tmp_path / "sweep" / "summary.md").is_file()


@pytest.mark.slow
def test_evaluations_are_swept_too(command, tmp_path):
    words = ["model=null", "env=congestion_window,queue_threshold", "baselines=null", "seeds=1", "plots=false"]
    status, out, _ = command("evaluate", "-m", *words, f"run_dir={tmp_path / 'sweep'}")
    assert status == 0 and (tmp_path / "sweep" / "1" / "result.json").is_file()
    assert "utility -" in (tmp_path / "sweep" / "summary.md").read_text() and "slowdown" in out
