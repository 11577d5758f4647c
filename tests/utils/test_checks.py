import math

import numpy as np
import pytest

from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.utils import checks


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int64(1)])
def test_number_takes_every_real_type_and_returns_a_float(value):
    assert checks.number("x", value, 0, 2) == 1.0
    assert type(checks.number("x", value, 0, 2)) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 2.1, np.float64("nan")])
def test_number_refuses_what_is_out_of_range_and_names_it(value):
    with pytest.raises(ScenarioError, match=r"x = .* is out of range; valid: 0 to 2"):
        checks.number("x", value, 0, 2)


@pytest.mark.parametrize("value", ["1", None, True, [1], 1j])
def test_number_refuses_other_types(value):
    with pytest.raises(ScenarioTypeError, match=r"x = .* is not a number"):
        checks.number("x", value, 0, 2)


def test_number_may_exclude_its_lower_end():
    assert checks.number("x", 0, 0, 2) == 0
    with pytest.raises(ScenarioError, match="above 0 to 2"):
        checks.number("x", 0, 0, 2, low_open=True)


@pytest.mark.parametrize("value", [3, 3.0, np.uint8(3)])
def test_integer_takes_whole_numbers_of_every_type(value):
    assert checks.integer("n", value, 1, 3) == 3
    assert type(checks.integer("n", value, 1, 3)) is int


@pytest.mark.parametrize("value", [0, 4, 2.5, math.nan, math.inf])
def test_integer_refuses_what_is_out_of_range(value):
    with pytest.raises(ScenarioError, match=r"n = .*valid: 1\.\.3"):
        checks.integer("n", value, 1, 3)


@pytest.mark.parametrize("value", ["2", True, None])
def test_integer_refuses_other_types(value):
    with pytest.raises(ScenarioTypeError):
        checks.integer("n", value, 1, 3)


def test_boolean_takes_truth_values_only():
    assert checks.boolean("b", np.bool_(True)) is True
    with pytest.raises(ScenarioTypeError, match="b = 1 is not a truth value"):
        checks.boolean("b", 1)


def test_sequence_refuses_strings_scalars_and_nothing():
    assert checks.sequence("s", ["a"], "names") == ("a",)
    with pytest.raises(ScenarioError, match="s is empty; valid: at least one name"):
        checks.sequence("s", [], "names")
    for value in ("abc", 3):
        with pytest.raises(ScenarioTypeError, match="is not a list"):
            checks.sequence("s", value, "names")


def test_text_and_choice():
    assert checks.choice("c", "a", ("a", "b")) == "a"
    with pytest.raises(ScenarioError, match="c = 'z' is unknown; valid: a, b"):
        checks.choice("c", "z", ("a", "b"))
    with pytest.raises(ScenarioTypeError):
        checks.choice("c", 1, ("a", "b"))
    with pytest.raises(ScenarioError, match="control characters"):
        checks.text("t", "a\nb")


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_an_integer_beyond_any_float_is_out_of_range(value):
    with pytest.raises(ScenarioError, match=r"rate_mbps = .* is out of range"):
        checks.number("rate_mbps", value, 0, 1e6)
