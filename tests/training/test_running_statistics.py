"""Agents that see observations by running statistics: trained by a key, and the same agents wherever they are used."""

import io
import itertools
import shutil

import numpy as np
import pytest
import stable_baselines3
import torch as th

from netbuf_gym import wrappers
from netbuf_gym.cli import program
from netbuf_gym.errors import CheckpointError
from netbuf_gym.evaluation import rollout, suites
from netbuf_gym.host.decider import make_decider
from netbuf_gym.integrations.normalizing import find_extractors
from netbuf_gym.leaderboard import controllers, play
from netbuf_gym.training.algorithms import cloning
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import make_rules
from netbuf_gym.training.train import train
from netbuf_gym.zoo import datasets, export, library, load
from tests.helpers.release_cases import for_release, sample
from tests.training.test_checkpoint import rewritten, with_meta
from tests.training.test_pairs import QUIET, SMALL, TASKS

RUNNING = "algo.normalize=running"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run folders of tiny trainings, by task and learner, made once."""
    made = {}

    def run(task, algo):
        if (task, algo) not in made:
            made[task, algo] = tmp_path_factory.mktemp("runs") / "run"
            own = [f"env={task}", f"algo={algo}", *SMALL[algo], *QUIET, RUNNING, "algo.normalize_clip=6", "total_timesteps=192"]
            train([*own, "scenario.kwargs.duration_s=5", f"run_dir={made[task, algo]}"])
        return made[task, algo]

    return run


def network(agent):
    return agent._model.policy


def seen_by(agent, observations):
    """What the layers of an agent's network are given."""
    return find_extractors(network(agent))[0](th.as_tensor(observations)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize(("task", "algo"), sample(itertools.product(TASKS, SMALL), 4))
def test_statistics_of_training_are_the_agents_and_stand_still(task, algo, runs, tmp_path):
    run = runs(task, algo)
    agent = load(run)
    own = agent.normalization
    assert own["clip"] == 6 and 128 <= own["count"] < 192  # what the last update's rollout was of
    worlds = agent.make_vec(4)
    wrapped = wrappers.VectorNormalizeObservation(agent.make_vec(4), clip=own["clip"])
    wrapped.moments.load(own)
    wrapped.update = False
    observations, same = worlds.reset(seed=1)[0], wrapped.reset(seed=1)[0]
    for _ in range(5):
        np.testing.assert_allclose(seen_by(agent, observations), same, atol=2e-3)
        assert not np.allclose(same, observations, atol=0.1)
        actions = agent.predict(observations)[0]
        observations, same = worlds.step(actions)[0], wrapped.step(actions)[0]
    rollout.evaluate(agent, task=task, scenario=agent.env_kwargs["scenario"], seeds=[1_000_000])
    assert agent.normalization == own
    export.export_folder(str(run), tmp_path / "hub")
    moved = load(tmp_path / "hub" / "model.zip")
    assert moved.normalization == own
    np.testing.assert_array_equal(moved.predict(observations)[0], agent.predict(observations)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "algo"),
    [
        ("congestion_window", "ppo"),
        ("receiver_window", "ppo_lstm"),
        *for_release(("queue_threshold", "a2c"), ("host_buffers", "dqn")),
    ],
)
def test_a_network_elsewhere_has_them(task, algo, runs, tmp_path):
    """As ONNX it decides as the agent, which the export itself holds it to, and otherwise without them."""
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    agent = load(runs(task, algo))
    exported = ort.InferenceSession(export.export_onnx(agent, checked=60), providers=["CPUExecutionProvider"])
    constants = sum(one.size for one in map(np.asarray, agent.normalization["mean"]))
    assert constants == exported.get_inputs()[0].shape[1]
    if algo != "ppo_lstm":
        observations = np.random.default_rng(0).uniform(-1, 1, (200, constants)).astype(np.float32)
        (actions,) = exported.run(None, {"observation": observations})
        np.testing.assert_allclose(actions, agent.predict(observations)[0], atol=1e-4)
        for one in find_extractors(network(agent)):
            one.load_state_dict(type(one)(agent.observation_space).state_dict())
        assert not np.allclose(actions, agent.predict(observations)[0], atol=1e-4)


def test_other_programs_load_them(runs, tmp_path):
    run = runs("congestion_window", "ppo")
    model, _ = export.export_rl_zoo3(str(run), tmp_path / "logs")
    stock, agent = stable_baselines3.PPO.load(model, device="cpu"), load(run)
    observations = agent.make_vec(8).reset(seed=3)[0]
    np.testing.assert_array_equal(stock.predict(observations, deterministic=True)[0], agent.predict(observations)[0])
    assert find_extractors(stock.policy)[0].moments().to_dict().items() <= agent.normalization.items()


@pytest.mark.slow
def test_commands_play_them(runs, tmp_path, capsys):
    run, own = runs("congestion_window", "a2c"), suites.get_suite("v1/congestion_window")
    data = (run / "model.zip").read_bytes()
    words = ["seeds=1", "plots=false", "progress=false", "baselines=[random]", f"run_dir={tmp_path / 'out'}"]
    assert program.main(["evaluate", f"model={run}", *words, "scenario=ppcc/4", "scenario.kwargs.duration_s=3"]) == 0
    assert "a2c" in capsys.readouterr().out
    played = play.run(own, own.load().cells[:1], controllers.resolve_controller(str(run), own))
    assert np.isfinite(played.list_values(own.score.key)).all() and (run / "model.zip").read_bytes() == data


@pytest.mark.slow
def test_the_live_tuner_decides_by_them(runs):
    agent = load(runs("host_buffers", "ppo"))
    here = {"socket_bytes": 8e6, "tcp_rmem_default_bytes": 2e5, "tcp_rmem_max_bytes": 3e7, "tcp_wmem_default_bytes": 6e4}
    here |= {"tcp_wmem_max_bytes": 1e7}
    given = []
    model = agent.controller.model(make_rules(agent.controller.saved))
    hook = find_extractors(model.policy)[0].register_forward_hook(lambda *a: given.append(a[1:]))
    decided = make_decider(agent.controller, 5.0, here).decide(
        {**here, "elapsed_s": 5.0, "connections": 3.0, "latency_s": 0.05}
    )
    hook.remove()
    (raw,), normal = given[-1]
    np.testing.assert_array_equal(seen_by(agent, raw), normal)
    assert set(here) <= set(decided) and np.isfinite([decided[key] for key in here]).all()


@pytest.mark.slow
def test_a_training_that_begins_with_another_goes_on_with_its_statistics(tiny, tmp_path):
    overrides, run_dir = tiny
    train([*overrides, RUNNING])
    further = [*overrides, f"start_from={run_dir}"]
    train([*further, RUNNING, f"run_dir={tmp_path / 'second'}"])
    counts = [load(run).normalization["count"] for run in (run_dir, tmp_path / "second")]
    assert counts[0] == pytest.approx(96, abs=1) and counts[1] == pytest.approx(128 + 96, abs=1)
    said = r"start_from = .*: was trained with algo.normalize = 'running', this training has 'none'; valid: the same"
    with pytest.raises(CheckpointError, match=said):
        train([*further, f"run_dir={tmp_path / 'third'}"])


def test_who_imitates_has_them_before_it_begins(tmp_path):
    own = ["experiment=queue_threshold", "scenario=rlbm/random", "imitate.steps=60", "imitate.epochs=40", RUNNING]
    quick = [*QUIET, "total_timesteps=8", "algo.kwargs.n_steps=1", "algo.kwargs.batch_size=8", "algo.learning_rate=1e-12"]
    said = []
    train([*own, *quick, f"run_dir={tmp_path / 'run'}"], tell=said.append)
    assert float(next(one for one in said if one.startswith("imitated")).split()[-1]) > 0.9
    assert load(tmp_path / "run").normalization["count"] == pytest.approx(2 * 60 * 16, abs=1)


@pytest.mark.slow
def test_clones_have_those_of_their_data(tmp_path):
    pytest.importorskip("minari")
    name = datasets.record_dataset("queue_threshold", "brief_pulse", tmp_path / "data", scenario="rlbm/default", seeds=[1, 2])
    found = cloning.clone_dataset(name, tmp_path / "data", tmp_path / "run", 40, [RUNNING])
    episode = datasets.load_dataset(name, tmp_path / "data")[0]
    own = load(tmp_path / "run").normalization
    assert own["count"] == pytest.approx(found["decisions"], abs=1) and found["agreement"] > 0.5
    np.testing.assert_allclose(own["mean"], episode.observations[:-1].mean(axis=0), rtol=1e-4, atol=1e-5)


def test_files_without_statistics_or_with_damaged_ones_are_refused(runs, tmp_path):
    run = runs("congestion_window", "ppo")

    def edited(change):
        def edit(name, data):
            if name != checkpoint.PARAMETERS:
                return data
            state = change(th.load(io.BytesIO(data), weights_only=True))
            file = io.BytesIO()
            th.save(state, file)
            return file.getvalue()

        return rewritten(run / "model.zip", tmp_path / "x.zip", edit)

    def damaged(state):
        return {key: -value if key.endswith("running_variance") else value for key, value in state.items()}

    def without(state):
        return {key: value for key, value in state.items() if "extractor.running_" not in key}

    for change, said in ((damaged, "the saved normalisation holds"), (without, "Missing key")):
        with pytest.raises(CheckpointError, match=f"its parameters do not fit its configuration.*{said}"):
            load(edited(change))


def test_runs_of_before_there_was_the_key_are_read_and_gone_on_with(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")

    def older(meta):
        assert [meta["config"]["algo"].pop(key) for key in ("normalize", "normalize_clip")] == ["none", 10.0]

    with_meta(trained / "model.zip", run / "model.zip", older)
    text = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text("".join(line for line in text.splitlines(True) if "normalize" not in line))
    agent, same = load(run), load(trained)
    observations = agent.make_vec(16).reset(seed=2)[0]
    np.testing.assert_array_equal(agent.predict(observations)[0], same.predict(observations)[0])
    assert checkpoint.read_config(run / "config.yaml").algo.normalize == "none"
    assert train([f"resume={run}", "total_timesteps=160"]).timesteps == 160


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(library.names(), 4))
def test_agents_of_the_package_take_observations_as_they_are(name):
    agent = load(name)
    assert agent.normalization is None and not find_extractors(network(agent))
    assert agent.config["algo"]["normalize"] == "none"
