import math

import numpy as np
import pytest

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError
from netbuf_gym.traces.generators import list_parameters


@pytest.mark.parametrize("kind", traces.GENERATORS)
def test_the_seed_decides_everything(kind):
    first = traces.generate(kind, duration_s=20, seed=1)
    assert first == traces.generate(kind, duration_s=20, seed=1)
    assert first.name == f"{kind}-1"
    if kind not in ("constant", "square"):
        other = traces.generate(kind, duration_s=20, seed=2)
        column = "rate_mbps" if hasattr(first, "rate_mbps") else "time_ms"
        assert not np.array_equal(getattr(first, column), getattr(other, column))


@pytest.mark.parametrize("kind", ["walk", "lte", "mmwave"])
def test_rates_stay_within_their_bounds(kind):
    trace = traces.generate(kind, duration_s=600, seed=5)
    known = list_parameters(kind)
    high = known["high_mbps"]
    low = {"lte": 0, "mmwave": known.get("blocked_low_mbps")}.get(kind, known["low_mbps"])
    assert low <= trace.rate_mbps.min() and trace.rate_mbps.max() <= high
    assert len(set(trace.rate_mbps.tolist())) > 3


def test_outages_have_the_length_asked_for():
    trace = traces.generate("lte", duration_s=600, seed=1, outage_min_s=0.3, outage_max_s=0.5, outages_per_minute=10)
    zero = np.concatenate([[0], (trace.rate_mbps == 0).astype(int), [0]])
    lengths = (np.flatnonzero(np.diff(zero) == -1) - np.flatnonzero(np.diff(zero) == 1)) * 0.05
    assert 60 < len(lengths) < 140
    assert 0.3 - 1e-9 <= lengths.min() and lengths.max() <= 1.0  # two may touch


def test_poisson_has_the_mean_and_spread_of_one():
    trace = traces.generate("poisson", duration_s=200, seed=1, rate_mbps=12.032)
    per_100ms = np.bincount((trace.time_ms // 100).astype(int))[:2000]
    assert trace.mean_mbps() == pytest.approx(12.032, rel=0.02)
    assert per_100ms.var() == pytest.approx(per_100ms.mean(), rel=0.15)


def test_square_alternates():
    trace = traces.generate("square", duration_s=40, low_mbps=1, high_mbps=3, half_period_s=10)
    assert trace.rate_mbps.tolist() == [1, 3, 1, 3] and trace.period_s == 40


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"),
    [
        ("nothing", {}, "kind = 'nothing' is unknown; valid: constant"),
        ("walk", {"colour": 1}, "walk has no parameter 'colour'; valid: start_mbps"),
        ("walk", {"low_mbps": 50}, "low_mbps = 50 is not below"),
        ("walk", {"start_mbps": 100}, "start_mbps = 100.* is out of range"),
        ("walk", {"sigma": -1}, "sigma"),
        ("walk", {"step_s": 0}, "step_s"),
        ("walk", {"duration_s": math.nan}, "duration_s = nan"),
        ("walk", {"duration_s": -1}, "duration_s = -1"),
        ("walk", {"seed": -1}, "seed = -1"),
        ("walk", {"duration_s": 1e5, "step_s": 0.001}, "100000000 steps"),
        ("constant", {"rate_mbps": 0}, "rate_mbps = 0"),
        ("poisson", {"rate_mbps": math.inf}, "rate_mbps = inf"),
        ("poisson", {"rate_mbps": 1e-6, "duration_s": 0.01}, "delivers nothing"),
        ("lte", {"outage_min_s": 2}, "longest dip = 0.8"),
    ],
)
def test_bad_arguments_are_named(kind, kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        traces.generate(kind, **kwargs)
