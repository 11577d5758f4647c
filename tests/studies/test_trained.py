"""Trained agents in the campaign."""

import numpy as np
import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.zoo import library
from studies.rlbm.rlbm_experiment import RLBM

TINY = [
    "algo.num_envs=4",
    "algo.kwargs.n_steps=8",
    "algo.kwargs.batch_size=16",
    "scenario.kwargs.duration_s=2",
    "stagger_steps=0",
    "total_timesteps=64",
    "progress=false",
    "tensorboard=false",
]
GRID = ["sizes=[50]", "loads=[0.5]", "seeds=2", "duration_s=3", "jobs=2"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The model of a tiny agent."""
    from netbuf_gym.training.train import train

    return train(["env=queue_threshold", *TINY, f"run_dir={tmp_path_factory.mktemp('trained') / 'run'}"]).model_path


@pytest.mark.slow
def test_an_agent_runs_beside_the_schemes(trained, tmp_path):
    arguments = [*GRID, "intervals=[0.05,0.1]", f"agent={trained}", "figures=false"]
    for number, traffic in enumerate(("default", "thesis-code")):
        output = tmp_path / str(number)
        assert main(["reproduce", "rlbm", *arguments, f"traffic={traffic}", f"output={output}"]) == 0
        runs = RLBM.read(output / "runs.csv")
        assert runs.values("scheme") == ["naive", "sophisticated", "dt", "abm", "random", "rlbm"]
        own = runs.where(scheme="rlbm")
        assert len(own) == 2 * 2 + 2 and set(own.columns["interval_s"]) == {0.05, 0.1}
        for column in ("flows_started_p0", "flows_started_p1"):
            naive = runs.where(scheme="naive", cc="cubic").columns[column]
            assert (own.where(cc="cubic", interval_s=0.1).columns[column] == naive).all()


def test_another_model_in_the_agents_place_is_refused(trained, tmp_path, capsys):
    model, output = tmp_path / "model.zip", tmp_path / "out"
    model.write_bytes(trained.read_bytes())
    arguments = ["reproduce", "rlbm", *GRID, "schemes=[rlbm]", "intervals=[]", f"agent={model}", f"output={output}"]
    assert main([*arguments, "figures=false"]) == 0
    model.write_bytes((library.FOLDER / "queue_threshold" / "a2c" / "model.zip").read_bytes())
    assert main([*arguments, "figures=false"]) == 2
    assert "was begun with another file as the agent" in capsys.readouterr().err


def test_the_agent_decides_as_in_its_environment(trained):
    """The campaign's run and the environment's are one, to the last bit."""
    from netbuf_gym.training import models
    from netbuf_gym.training.checkpoints import checkpoint
    from studies.rlbm.controllers import make_controller, play
    from studies.rlbm.rlbm_settings import Settings

    settings = Settings(traffic="default", schemes=("rlbm",), agent=str(trained), duration_s=5.0)
    scenario, seen = settings.scenario("cubic", 100, 0.8), {}
    agent = make_controller("rlbm", settings)
    worlds = [(scenario, 7), (scenario, 8)]
    play(agent, worlds, lambda view, _: seen.update({view.index: view.simulated.switch_stats()}), 0.1)

    saved = checkpoint.read_model(trained)
    spec = {"name": "rlbm/default", "cc": "cubic", "queue_packets": 100, "load": 0.8, "duration_s": 5.0}
    adapter = models.make_env(saved.env["id"], 1, 1, saved.env["kwargs"] | {"scenario": spec})
    observation, _ = adapter.env.reset(seed=[8])
    engine = adapter.env.unwrapped.engine
    policy = agent.start(engine.task, [8])
    for _ in range(49):
        action, _ = policy(observation, None, np.zeros(1, bool))
        observation, *_ = adapter.env.step(action)
    action, _ = policy(observation, None, np.zeros(1, bool))
    engine.decide(engine.task.check_actions(action, 1))
    assert engine.plant.world(0).switch_stats() == seen[1]
