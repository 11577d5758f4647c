import inspect

import pytest

from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios.factories import derive_factory
from netbuf_gym.scenarios.named import resolve_senders


def make_path(*, rate_mbps: float = 10.0, rtt_ms: float = 48.0, loss: float = 0.0, senders: tuple = ("cubic",)) -> dict:
    return {"rate_mbps": rate_mbps, "rtt_ms": rtt_ms, "loss": loss, "senders": senders}


def make_wave(*, low_mbps: float = 1.0, loss: float = 0.5, **path) -> dict:
    return {"low_mbps": low_mbps, **make_path(loss=loss, **path)}


def show(factory) -> dict:
    return {name: parameter.default for name, parameter in inspect.signature(factory).parameters.items()}


def test_a_factory_has_other_defaults_and_fewer_arguments():
    factory = derive_factory(make_path, "A slow path.", without=("rtt_ms",), fixed={"loss": 0.1}, rate_mbps=1.0)
    assert show(factory) == {"rate_mbps": 1.0, "senders": ("cubic",)} and factory.__doc__ == "A slow path."
    assert factory() == make_path(rate_mbps=1.0, loss=0.1)
    assert factory(rate_mbps=2, senders=("bbr",)) == make_path(rate_mbps=2, loss=0.1, senders=("bbr",))
    for refused in ("loss", "rtt_ms", "colour"):
        with pytest.raises(TypeError, match=refused):
            factory(**{refused: 0.2})


def test_a_factory_takes_senders_by_number():
    factory = derive_factory(make_path, "", only=("rate_mbps",), resolve=resolve_senders)
    assert show(factory) == {"n": None, "senders": None, "rate_mbps": 10.0}
    assert factory(n=2)["senders"] == ("cubic", "cubic") and factory(n=2, senders="bbr")["senders"] == ("bbr", "bbr")


def test_further_arguments_are_those_of_another_function():
    factory = derive_factory(make_wave, "", like=make_path, only=("rtt_ms",), rtt_ms=5.0)
    assert show(factory) == {"low_mbps": 1.0, "loss": 0.5, "rtt_ms": 5.0}  # what both have is the function's own
    assert factory(low_mbps=2.0) == {"low_mbps": 2.0, **make_path(loss=0.5, rtt_ms=5.0)}


@pytest.mark.parametrize("wrong", [{"colour": 1}, {"fixed": {"colour": 1}}, {"only": ("colour",)}, {"without": ("colour",)}])
def test_names_that_are_no_arguments_are_refused_at_once(wrong):
    with pytest.raises(ConfigError, match=r"'colour' is no argument of .*valid: rate_mbps, rtt_ms"):
        derive_factory(make_path, "", **wrong)


def test_annotations_are_those_of_the_record():
    parameters = inspect.signature(scenarios.named._REGISTRY["ppcc/random"]).parameters
    assert parameters["rate_mbps"].annotation == "tuple[float, float]" and parameters["change_factor"].annotation == "float"
