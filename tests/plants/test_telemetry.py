import json

import pytest

from netbuf_gym import _core
from netbuf_gym.errors import CheckpointError
from netbuf_gym.plants.telemetry import Field, TelemetrySchema
from netbuf_gym.tasks.congestion_window import PPCC_FEATURES, TELEMETRY


def test_the_core_reports_these_fields():
    assert tuple(_core.Batch(1, 1, kind="sender").fields) == TELEMETRY.names


def test_round_trip_through_json():
    again = TelemetrySchema.from_dict(json.loads(json.dumps(TELEMETRY.to_dict())))
    assert again == TELEMETRY
    TELEMETRY.require(again)


def test_index_names_the_valid_fields():
    assert TELEMETRY.index("elapsed_s") == 0
    with pytest.raises(KeyError, match="rtt_mean_s"):
        TELEMETRY.index("rtt")


def test_a_mismatch_is_refused():
    other = TelemetrySchema(TELEMETRY.version + 1, TELEMETRY.fields)
    with pytest.raises(CheckpointError, match="version"):
        TELEMETRY.require(other)
    renamed = TelemetrySchema(TELEMETRY.version, (Field("time_s", "s", "x"), *TELEMETRY.fields[1:]))
    with pytest.raises(CheckpointError, match="column 0"):
        TELEMETRY.require(renamed)
    with pytest.raises(CheckpointError, match="nothing"):
        TELEMETRY.require(TelemetrySchema(TELEMETRY.version, TELEMETRY.fields[:-1]))


def test_no_recipe_observes_a_privileged_field():
    privileged = {field.name for field in TELEMETRY.fields if field.privileged}
    assert privileged == {"goodput_bps", "queue_delay_mean_s", "queue_packets", "queue_drops"}
    assert not privileged & {feature.name for feature in PPCC_FEATURES}
