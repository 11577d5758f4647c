"""Tables of features in docstrings, and the floors that they state."""

from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym import tasks
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.utils import startup


@pytest.mark.parametrize("record", tasks.records(), ids=lambda record: record.name)
def test_docstrings_hold_a_row_for_every_feature(record):
    page = record.rules.__doc__
    assert "{features" not in page
    for recipe in record.rules.recipes:
        for line in record.rules.feature_tables()[recipe].splitlines():
            assert line in page
        names = {feature.name.rstrip("_0123456789") for feature in record.rules(recipe).features}
        assert all(f"| {name} " in page for name in names)
    assert all(f"`{name}`" in Env.__doc__ for name in record.ids if name in startup.IDS)


SMALL = {"name": "rlbm/default", "queue_packets": 2, "duration_s": 10, "rate_mbps": 20, "access_mbps": 200}
WORLDS = {
    "congestion_window": [{"scenario": "ppcc/4"}, {"scenario": "ppcc/4", "recipe": "ppcc"}],
    "receiver_window": [{"acts_on": "target_and_k"}, {"recipe": "nuwa"}],
    "host_buffers": [{"recipe": recipe, "scenario": "auter/training"} for recipe in ("default", "auter", "direct", "control")],
    "queue_threshold": [{"scenario": SMALL, "recipe": recipe} for recipe in ("default", "thesis-text", "thesis-code")],
}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "kwargs"), [(task, one) for task, several in WORLDS.items() for one in several])
def test_floors_are_where_observations_end(task, kwargs):
    env = VectorEnv(8, task=task, **kwargs, history=1)
    rules = env.engine.task
    env.reset(seed=2)
    env.action_space.seed(1)
    seen = np.array([env.step(env.action_space.sample())[0] for _ in range(90)]).reshape(-1, rules.width)
    for feature, low in zip(rules.features, seen.min(axis=0), strict=True):
        assert low < 0 if feature.floor < 0 else low >= 0, feature
        assert feature.floor in (-1, 0)


def test_features_that_are_not_saved_with_models_change_no_schema():
    feature = tasks.Feature("x", 0, 1, "x")
    assert feature.to_dict() == replace(feature, floor=-1).to_dict() == {"name": "x", "low": 0, "high": 1, "meaning": "x"}
