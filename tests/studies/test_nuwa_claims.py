"""How Nuwa's claims are judged, how sharing is measured."""

import math

import numpy as np
import pytest

from studies.common import judging
from studies.common.campaign import Campaign
from studies.nuwa import nuwa_claims as claims
from studies.nuwa import nuwa_measures as measures
from studies.nuwa import nuwa_worlds as worlds
from studies.nuwa.nuwa_experiment import NUWA
from studies.nuwa.nuwa_schemes import NAMES, STYLES
from studies.nuwa.nuwa_settings import Settings
from tests.studies.hand_made_runs import make_runs


def row(scheme: str, seed: int, study="mobile", network="5g", **values) -> dict:
    return {"study": study, "network": network, "scheme": scheme, "seed": float(seed)} | values


def test_differences_judge_what_may_be_negative():
    rows = [row("cubic", seed, loss=0.01, utility=-0.5) for seed in range(4)]
    rows += [row("nuwa_k7", seed, loss=0.0, utility=-0.4 + 0.001 * seed) for seed in range(4)]
    runs = make_runs(NUWA, rows)
    assert judging.compute_change(runs, "nuwa_k7", "cubic", "loss", claims.CELLS) is None  # nothing is a multiple of nothing
    found = judging.compute_change(runs, "nuwa_k7", "cubic", "utility", claims.CELLS, judging.DIFFERENCE)
    assert found.mean == pytest.approx(0.1015) and found.low > 0
    less = judging.Claim("less loss", "", "loss", ("cubic",), judging.LOWER, by=judging.DIFFERENCE)
    assert judging.judge_claim(less, runs, "nuwa_k7", "cubic", claims.CELLS) == "-0.01 [-0.01, -0.01]: holds"
    assert judging.judge_claim(less, runs, "nuwa_k7", "bbr", claims.CELLS) == "-"
    much = judging.Claim("", "", "utility", ("cubic",), judging.HIGHER, 0.2, by=judging.DIFFERENCE)
    assert judging.judge_claim(much, runs, "nuwa_k7", "cubic", claims.CELLS).endswith(judging.SLIGHT)


def test_table_1_is_judged_by_the_papers_margin():
    rows = [row("cubic", seed, data_mb=100.0, queue_delay_mean_ms=100.0, loss=0.01) for seed in range(3)]
    rows += [row("nuwa_paper_k7", seed, data_mb=103.0 + 0.1 * seed, queue_delay_mean_ms=80.0, loss=0.02) for seed in range(3)]
    lines = claims.build_table_1_claims(make_runs(NUWA, rows)).splitlines()[2:]
    assert [line.rpartition(": ")[2].rstrip(" |") for line in lines] == ["in sign only", "holds", "the opposite holds"]
    assert all("| CUBIC |" in line for line in lines)


def test_claims_speak_of_schemes_and_cells_that_there_are():
    for about in [*claims.GAIN, *claims.SERVERS, *claims.make_agent_claims()]:
        assert {about.scheme, *about.claim.rivals} <= set(NAMES)
        assert about.claim.measure in NUWA.measures
    for claim in claims.TABLE_1:
        assert set(claim.rivals) <= set(NAMES) and claim.measure in NUWA.measures
    assert {colour for colour, _, _ in STYLES.values()} and len({one[2] for one in STYLES.values()}) == len(STYLES)


def flows(rates_of, end_s=60.0):
    """Bytes delivered by flows whose rates in Mbit/s are functions of time."""
    time_s = np.arange(0, end_s + 0.05, 0.1)
    rates = np.array([[rate(now) for rate in rates_of] for now in time_s])
    delivered = np.concatenate([np.zeros((1, len(rates_of))), np.cumsum(rates[:-1] * 1e6 / 8 * 0.1, axis=0)])
    return time_s, delivered


def test_sharing_is_measured_as_it_happens():
    """Two flows, the second of which arrives at 10 s and has its half from 14 s on."""
    time_s, delivered = flows([lambda t: 10 if t < 14 else 5, lambda t: 0 if t < 14 else 5])
    found = measures.measure_sharing(time_s, delivered, 1, [0.0, 10.0], 10.0)
    assert found["jain"] == pytest.approx(1) and found["own_share"] == pytest.approx(1)
    assert found["jain_2"] == pytest.approx(1, abs=0.001)
    assert 4.9 < found["converged_2_s"] < 6.1  # four seconds late, and the window of two is fair a little before its end
    assert found["goodput_mbps"] == pytest.approx(10)


def test_flows_that_never_share_never_converge():
    time_s, delivered = flows([lambda t: 9, lambda t: 1])
    found = measures.measure_sharing(time_s, delivered, 2, [0.0, 10.0], 10.0)
    assert math.isnan(found["converged_2_s"]) and found["jain"] == pytest.approx(100 / 164)


def test_rates_are_means_of_windows():
    time_s, delivered = flows([lambda t: 8 if t < 10 else 0], end_s=20)
    rates = measures.compute_rates_mbps(time_s, delivered, 2.0)[:, 0]
    assert np.isnan(rates[time_s < 1.9]).all() and rates[50] == pytest.approx(8)
    assert rates[np.searchsorted(time_s, 11.0)] == pytest.approx(4, rel=0.05)
    assert measures.compute_mean_rates(time_s, delivered, 0, 20)[0] == pytest.approx(4)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A tiny campaign with everything that the section shows, figures included."""
    folder = tmp_path_factory.mktemp("campaign") / "out"
    settings = Settings(
        studies=("mobile", "networks", "change", "fairness"),
        schemes=("cubic", "vegas", *(f"nuwa_paper_k{k}" for k in (1, 2, 3, 5, 7, 9))),
        networks=("wifi",),
        seeds=2,
        duration_s=2.0,
    )
    campaign = Campaign(NUWA, settings, folder, jobs=2)
    campaign.run(lambda done, total: None)
    campaign.draw(folder / "figures")
    return folder


@pytest.mark.slow
def test_a_section_is_made_of_kept_rows(finished, section_of):
    text = section_of(NUWA, "generated", finished)
    for said in (
        "### Table I",
        "| published | 10 Mbit/s, a jump each 0.1 s |",
        "### Fairness",
        "(../figures/nuwa/change.png)",
        "194.5; 125.4; 0.56",
    ):
        assert said in text, said


def test_verdicts_are_of_the_rival_that_is_furthest_from_the_claim():
    data = {"cubic": 100, "bbr": 150, "nuwa_paper_k7": 120}
    runs = make_runs(NUWA, [row(scheme, seed, data_mb=value + seed) for seed in range(3) for scheme, value in data.items()])
    line = next(line for line in claims.build_verdicts_table(runs).splitlines() if "at least 4 % more data" in line)
    assert line.startswith("| published rule, k = 7, 5G: at least 4 % more data, against BBR, CUBIC | 4 %, Table I | -19.9 % [")
    assert line.endswith("] (BBR) | holds against 1 of 2 |")


def test_cells_of_fairness_are_the_worlds():
    assert claims.build_fairness_table(make_runs(NUWA, [row("cubic", 0, "fairness", worlds.OWN, jain=1.0)])).count("\n") == 2
