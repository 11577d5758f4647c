"""The calibration: its split, its estimates, and how like the generated traces are to those that it has not seen."""

import dataclasses
import json

import numpy as np
import pytest

from netbuf_gym.errors import TraceError
from netbuf_gym.traces import DeliveryTrace, generate
from netbuf_gym.traces import networks as generators
from netbuf_gym.traces.calibration import (
    FINEST_S,
    PARTS,
    SPLIT,
    calibrate,
    estimate_traits,
    fit_population,
    format_records,
    generate_trace,
    read_part,
)
from netbuf_gym.traces.likeness import compute_distances, summarise
from netbuf_gym.traces.networks import POPULATIONS, TRAITS, load_population

LENGTH_S = {"4g": 120.0, "5g": 900.0}
LIMITS = {
    "4g": {"rate_10ms": 0.15, "rate_100ms": 0.15, "rate_1s": 0.2, "acf_10ms": 0.15, "acf_1s": 0.2, "gap_ms": 0.2}
    | {"outage_s": 0.3},
    "5g": {"rate_1s": 0.15, "acf_1s": 0.15, "outage_s": 0.15},
}
"""Largest distances to the measured traces that were left out; the calibration's own are at up to 0.15."""


def stored(network, part="evaluation"):
    return json.loads(POPULATIONS.read_text())[network]["measured"][part]


def beyond(network, made):
    found = compute_distances(made, stored(network))
    return {name: found[name] for name, limit in LIMITS[network].items() if found[name] > limit}


def summary_of(network, paths, count=40):
    return summarise([generate_trace(network, paths, LENGTH_S[network], seed) for seed in range(count)], FINEST_S[network])


@pytest.mark.parametrize("network", SPLIT)
def test_the_parts_share_no_trace(network):
    names = [name for part in PARTS for name in SPLIT[network][part]]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("network", SPLIT)
def test_generated_traces_are_like_measured_ones_that_were_left_out(network):
    made = (generate(network, duration_s=LENGTH_S[network], seed=seed) for seed in range(40))
    assert not beyond(network, summarise(made, FINEST_S[network]))


@pytest.mark.slow
@pytest.mark.parametrize("network", SPLIT)
@pytest.mark.parametrize(("trait", "change"), [("log_sigma", -1.2), ("log_outage_shape", -2.0), ("scales", 30.0)])
def test_a_broken_calibration_is_seen(network, trait, change):
    paths = load_population(network)
    if trait == "scales":
        broken = dataclasses.replace(paths, scales_s=paths.scales_s / change)
    else:
        mean = paths.mean.copy()
        mean[TRAITS.index(trait)] += change
        broken = dataclasses.replace(paths, mean=mean)
    assert beyond(network, summary_of(network, broken, 20))


def test_measured_means_lie_within_a_population_one_and_a_half_times_as_wide():
    for network in SPLIT:
        means = np.exp([load_population(network).draw(np.random.default_rng(seed), spread=1.5)[0] for seed in range(400)])
        for part in PARTS:
            measured = np.array(stored(network, part)["mean_mbps"])
            assert np.quantile(means, 0.005) < measured.min() and measured.max() < np.quantile(means, 0.995)


@pytest.mark.slow
def test_traits_are_found_again():
    paths = load_population("4g")
    for name, change in (("log_mean", 1.0), ("log_sigma", 0.6), ("log_outages", 1.5), ("log_burst", 1.0)):
        i = TRAITS.index(name)
        found = []
        for sign in (-0.5, 0.5):
            mean = paths.mean.copy()
            mean[i] += sign * change
            fixed = dataclasses.replace(paths, mean=mean, sd=np.zeros(len(TRAITS)))
            found.append(np.mean([estimate_traits(generate_trace("4g", fixed, 120, seed), paths)[name] for seed in range(5)]))
        assert found[1] - found[0] == pytest.approx(change, abs=0.6 * change)


def test_an_outage_at_the_start_of_deliveries_counts():
    paths = load_population("4g")
    whole = generate_trace("4g", paths, 60, seed=1)
    late = DeliveryTrace(whole.time_ms + 5000, whole.period_ms + 5000)
    found, before = estimate_traits(late, paths), estimate_traits(whole, paths)
    minutes = 60 / 60
    assert np.exp(found["log_outages"]) - np.exp(before["log_outages"]) == pytest.approx(1 / minutes, rel=0.2)
    assert found["log_outage_shape"] < before["log_outage_shape"] and found["fade"] == pytest.approx(before["fade"], abs=0.05)
    assert found["log_mean"] == pytest.approx(before["log_mean"], abs=0.02)


def test_a_fit_keeps_what_it_does_not_fit():
    settled = {**json.loads(POPULATIONS.read_text())["5g"], "source": "x"}
    given = [generate("5g", duration_s=300, seed=seed) for seed in range(4)]
    record = fit_population("5g", given, settled, rounds=0)
    assert record["source"] == "x" and record["traits"]["log_burst"] == settled["traits"]["log_burst"]
    assert record["traits"]["log_mean"] != settled["traits"]["log_mean"]
    assert json.loads(format_records({"5g": record})) == {"5g": record}


def test_missing_traces_are_named(tmp_path):
    with pytest.raises(TraceError, match=r"lacks ATT-LTE-driving-2016\.down, .* which the calibration of 4g needs"):
        calibrate(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("network", SPLIT)
def test_the_stored_summaries_are_of_the_measured_traces(shared, network):
    given = read_part(shared / "traces", network, "evaluation")
    assert summarise(given, FINEST_S[network]) == stored(network)
    made = (generate(network, duration_s=generators.LONGEST_OUTAGE_S * 12, seed=seed) for seed in range(20))
    assert compute_distances(summarise(made, FINEST_S[network]), stored(network))["rate_1s"] < 0.25
