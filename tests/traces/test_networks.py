"""Generators of whole networks: what a path is drawn from, and what happens on it."""

import numpy as np
import pytest
from scipy.signal import lfilter

from netbuf_gym import _core, traces
from netbuf_gym.errors import ScenarioError
from netbuf_gym.traces.likeness import compute_averages_mbps, find_gaps_s
from netbuf_gym.traces.networks import LONGEST_OUTAGE_S, TRAITS, Population, generate_rates, load_population

NETWORKS = ("wired", "wifi", "4g", "5g")


@pytest.mark.parametrize("network", NETWORKS)
def test_each_seed_has_a_path_of_its_own(network):
    means = [traces.generate(network, duration_s=10, seed=seed).mean_mbps() for seed in range(30)]
    assert np.quantile(means, 0.9) > 2 * np.quantile(means, 0.1)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("form", ["deliveries", "rates"])
def test_the_mean_is_the_one_asked_for(network, form):
    made = [
        traces.generate(network, duration_s=200, seed=seed, mean_mbps=8, outages=0, spread=0, form=form).mean_mbps()
        for seed in range(12)
    ]
    assert np.mean(made) == pytest.approx(8, rel=0.25)


def test_both_forms_vary_alike_from_10_ms_on():
    for seed in range(3):
        one, other = (traces.generate("4g", duration_s=120, seed=seed, form=form) for form in ("deliveries", "rates"))
        for window_s in (0.01, 0.1, 1):
            a, b = compute_averages_mbps(one, window_s), compute_averages_mbps(other, window_s)
            assert a.std() / a.mean() == pytest.approx(b.std() / b.mean(), rel=0.12)


@pytest.mark.parametrize("network", ["wifi", "4g", "5g"])
def test_outages_last_up_to_10_s_and_can_be_left_out(network):
    def gaps(duration_s, **kwargs):
        made = (traces.generate(network, duration_s=duration_s, seed=seed, mean_mbps=20, **kwargs) for seed in range(8))
        return np.concatenate([find_gaps_s(trace) for trace in made])

    some = gaps(300)
    assert (some > 0.1).sum() > 5
    assert some.max() < 3 * LONGEST_OUTAGE_S  # some touch
    assert (gaps(60, outages=0) > 1).sum() == 0
    assert (gaps(300, outages=4) > 0.1).sum() > 1.5 * (some > 0.1).sum()


def test_service_comes_in_bursts_within_an_rtt():
    trace = traces.generate("4g", duration_s=60, seed=4, mean_mbps=8, spread=0, outages=0)
    per_10ms = compute_averages_mbps(trace, 0.01)
    neighbours = np.abs(np.diff(per_10ms)).mean() / per_10ms.mean()
    assert neighbours > 0.25
    even = compute_averages_mbps(traces.generate("poisson", duration_s=60, rate_mbps=80), 0.01)
    assert neighbours > 1.5 * np.abs(np.diff(even)).mean() / even.mean()


def test_a_mahimahi_file_of_a_path_keeps_its_length(tmp_path):
    trace = traces.generate("4g", duration_s=7, seed=3)
    traces.write(trace, tmp_path / "x.down")
    assert traces.read(tmp_path / "x.down").duration_s == 7


def test_a_population_that_does_not_vary_has_one_path():
    paths = load_population("4g")
    first, second = (paths.draw(np.random.default_rng(seed), spread=0) for seed in (1, 2))
    assert np.array_equal(first, second) and np.array_equal(first, paths.mean)
    wide = np.array([paths.draw(np.random.default_rng(seed), spread=2) for seed in range(300)])
    usual = np.array([paths.draw(np.random.default_rng(seed)) for seed in range(300)])
    assert wide[:, 0].std() == pytest.approx(2 * usual[:, 0].std())
    assert isinstance(paths, Population) and len(paths.mean) == len(TRAITS)


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"),
    [
        ("4g", {"mean_mbps": 0}, "mean_mbps = 0"),
        ("4g", {"mean_mbps": 1e5}, "mean_mbps = 100000"),
        ("5g", {"spread": -1}, "spread = -1"),
        ("wifi", {"outages": 1000}, "outages = 1000"),
        ("wired", {"form": "packets"}, "form = 'packets' is unknown; valid: deliveries, rates"),
        ("4g", {"step_s": 0.0105}, "step_s = 0.0105; valid for deliveries: whole milliseconds"),
        ("4g", {"step_s": 2}, "step_s = 2"),
        ("4g", {"duration_s": 1e5, "step_s": 0.001}, "steps; valid: at most"),
        ("4g", {"mean": 3}, "4g has no parameter 'mean'"),
        ("5g", {"duration_s": 3e4, "mean_mbps": 600, "form": "deliveries"}, "opportunities; valid: at most"),
    ],
)
def test_bad_arguments_are_named(kind, kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        traces.generate(kind, **kwargs)


def test_rates_of_an_outage_throughout_are_refused():
    from netbuf_gym.traces.networks import Modulation

    paths = load_population("5g")
    with pytest.raises(ScenarioError, match="an outage throughout"):
        generate_rates(np.random.default_rng(1), Modulation(np.ones(5), np.ones(5, bool), 0.02), paths.mean)


def test_the_mean_of_5g_is_that_of_the_process_before_outages():
    """What `cellular_5g` says of `mean_mbps`."""
    long = [traces.generate("5g", duration_s=5000, seed=seed, mean_mbps=20) for seed in range(20)]
    assert np.mean([trace.mean_mbps() for trace in long]) == pytest.approx(20 * 0.79, rel=0.01)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99, float(np.exp(-1e-4))])
@pytest.mark.parametrize("order", [1, 2])
def test_processes_are_filtered_to_the_bit_as_by_scipy(keep, order):
    noise = np.random.default_rng(5).standard_normal(3000)
    feedback = (-keep,) if order == 1 else (-2 * keep, keep**2)
    found = noise.copy()
    _core.filter_recursively(found, *feedback)
    assert found.tobytes() == (lfilter([1.0], [1.0, *feedback], noise) + 0.0).tobytes()
