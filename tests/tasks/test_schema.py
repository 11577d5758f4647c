import copy
import json

import pytest

from netbuf_gym.envs.engine import Engine
from netbuf_gym.errors import CheckpointError
from netbuf_gym.tasks import require_schema


@pytest.fixture(scope="module")
def schema():
    return Engine(1).schema()


def test_a_schema_survives_json_and_fits_itself(schema):
    require_schema(json.loads(json.dumps(schema)), schema)


@pytest.mark.parametrize(
    ("key", "value"),
    [("recipe", "ppcc"), ("history", 5), ("interval_s", 0.2), ("per_ack", True), ("actions", [1.0]), ("task", "other")],
)
def test_a_difference_is_refused_with_both_values(schema, key, value):
    with pytest.raises(CheckpointError, match=key):
        require_schema({**schema, key: value}, schema)


def test_other_features_are_refused_by_the_first_that_differs(schema):
    saved = copy.deepcopy(schema)
    saved["features"][3]["high"] = 8
    with pytest.raises(CheckpointError, match="window_in_bdp"):
        require_schema(saved, schema)
    saved["features"] = saved["features"][:3]
    with pytest.raises(CheckpointError, match="3 features"):
        require_schema(saved, schema)


def test_other_telemetry_is_refused(schema):
    saved = copy.deepcopy(schema)
    saved["telemetry"]["version"] = 99
    with pytest.raises(CheckpointError, match="version 99"):
        require_schema(saved, schema)


@pytest.mark.parametrize("saved", [None, 3, "text", {}, {"telemetry": {}}])
def test_what_is_no_schema_is_refused(schema, saved):
    with pytest.raises(CheckpointError):
        require_schema(saved, schema)


def test_a_damaged_telemetry_part_is_refused(schema):
    with pytest.raises(CheckpointError, match="telemetry"):
        require_schema({**schema, "telemetry": {"version": 1, "fields": [{"nome": 1}]}}, schema)


def test_another_number_of_queues_or_recipe_is_said_before_the_columns_that_follow_from_it():
    two, three = (
        Engine(1, task="queue_threshold", scenario={"name": "rlbm/default", "priority_below": below}).schema()
        for below in ([100_000], [100_000, 1_000_000])
    )
    with pytest.raises(CheckpointError, match="was trained with queues = 2, this environment has 3"):
        require_schema(json.loads(json.dumps(two)), three)
    other = Engine(1, task="queue_threshold", recipe="thesis-text").schema()
    with pytest.raises(CheckpointError, match="recipe = 'thesis-text'"):
        require_schema(other, three)


@pytest.mark.parametrize(("name", "other"), [("drain_after_s", 5.0), ("seen_within", 0.1), ("growth_loss", 0.03)])
def test_what_is_left_out_as_usual_is_another_than_what_is_said(name, other):
    """Whichever of the two says it."""
    usual, said = Engine(1).schema(), Engine(1, **{name: other}).schema()
    assert name not in usual
    with pytest.raises(CheckpointError, match=f"was trained with {name} = {other}, this environment has the default"):
        require_schema(said, usual)
    with pytest.raises(CheckpointError, match=f"was trained with {name} = the default, this environment has {other}"):
        require_schema(usual, said)
