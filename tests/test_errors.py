from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym import errors
from netbuf_gym.scenarios import dumbbell


def test_all_errors_share_a_base_and_keep_the_builtin_kind():
    for name, builtin in {
        "ScenarioError": ValueError,
        "ScenarioTypeError": TypeError,
        "TraceError": ValueError,
        "ReferenceDataError": ValueError,
        "ConfigError": ValueError,
        "CheckpointError": ValueError,
        "SimulatorFault": RuntimeError,
        "MissingExtraError": ImportError,
    }.items():
        kind = getattr(errors, name)
        assert issubclass(kind, errors.NetbufError) and issubclass(kind, builtin)


def test_file_errors_point_at_file_and_line():
    assert str(errors.TraceError("bad", "a.csv", 7)) == "a.csv:7: bad"
    assert str(errors.ReferenceDataError("bad", "a.csv")) == "a.csv: bad"


def test_missing_extra_names_the_pip_command():
    error = errors.MissingExtraError("netbuf-gym train", "train", "hydra")
    assert "pip install netbuf-gym[train]" in str(error) and "hydra" in str(error)


@pytest.mark.parametrize(("value", "text"), [(np.float64(2.5), "2.5"), ("a", "'a'"), ("x" * 100, "'" + "x" * 56 + "...")])
def test_values_are_shown_short_and_plain(value, text):
    assert errors.quote(value) == text


@pytest.mark.parametrize(("name", "called"), [("", "^the scenario has no switch"), ("mine", "^scenario 'mine' has no switch")])
def test_a_scenario_without_a_name_is_not_called_by_it(name, called):
    world = replace(dumbbell(), name=name)
    with pytest.raises(errors.ScenarioError, match=called):
        world.with_admission(lambda switch: switch.admission)
