"""Claims, tables, the section about them, and the comparison."""

import math

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.statistics import Interval
from studies.common import judging, kept, showing
from studies.common.campaign import Campaign
from studies.rlbm import compare, comparison
from studies.rlbm import rlbm_claims as claims
from studies.rlbm.rlbm_experiment import RLBM
from studies.rlbm.rlbm_settings import Settings
from tests.studies.hand_made_runs import make_runs


def row(scheme: str, seed: int, **values) -> dict:
    return {"scheme": scheme, "cc": "cubic", "size": 100.0, "load": 0.5, "seed": float(seed)} | values


def test_changes_are_paired_relative_and_over_seeds():
    rows = [row("naive", seed, fct_mean_s=10.0 * (seed + 1)) for seed in range(4)]
    rows += [row("random", seed, fct_mean_s=9.0 * (seed + 1)) for seed in range(4)]
    found = claims.compute_change(make_runs(RLBM, rows), "random", "naive", "fct_mean_s")
    assert found == pytest.approx((math.log(0.9),) * 3)
    assert claims.compute_change(make_runs(RLBM, rows), "random", "abm", "fct_mean_s") is None
    assert claims.compute_change(make_runs(RLBM, rows), "random", "naive", "drops") is None  # measured nowhere


@pytest.mark.parametrize(
    "expected, interval, least, verdict",
    [
        (judging.LOWER, (-0.1, -0.2, -0.01), 0.0, "holds"),
        (judging.LOWER, (-0.1, -0.2, 0.01), 0.0, "no difference shown"),
        (judging.LOWER, (0.1, 0.01, 0.2), 0.0, "the opposite holds"),
        (judging.LOWER, (-0.01, -0.011, -0.009), 0.05, "in sign only"),
        (judging.HIGHER, (0.1, 0.01, 0.2), 0.05, "holds"),
        (judging.HIGHER, (-0.1, -0.2, -0.01), 0.0, "the opposite holds"),
        (judging.NOT_LOWER, (0.0, -0.009, 0.009), 0.0, "holds"),
        (judging.NOT_LOWER, (-0.01, -0.02, 0.0), 0.0, "not shown"),
        (judging.NOT_LOWER, (-0.1, -0.2, -0.02), 0.0, "does not hold"),
    ],
)
def test_verdicts(expected, interval, least, verdict):
    assert judging.decide_verdict(expected, Interval(*interval), least) == verdict


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A tiny campaign with everything that the page shows."""
    folder = tmp_path_factory.mktemp("campaign") / "out"
    settings = Settings(
        traffic="thesis-text",
        schemes=("naive", "sophisticated", "random", "random_no_beta"),
        sizes=(100, 500, 1000),
        loads=(0.1, 0.2),
        seeds=2,
        duration_s=3.0,
        intervals=(0.05, 0.1),
    )
    Campaign(RLBM, settings, folder, jobs=2).run(lambda done, total: None)
    return folder


def test_one_seed_is_shown_and_not_judged():
    """An interval without an end tells nothing."""
    alone = judging.compute_interval([0.1])
    assert judging.format_judgement(judging.HIGHER, alone) == "+10.5 %: not judged, of one seed"
    assert judging.format_judgement(judging.HIGHER, alone, by=judging.DIFFERENCE) == "+0.1: not judged, of one seed"
    assert judging.format_judgement(judging.HIGHER, judging.compute_interval([0.1, 0.1])) == "+10.5 % [+10.5, +10.5]: holds"


def test_every_claim_gets_a_verdict(finished):
    runs = claims.select_interval(RLBM.read(finished / "runs.csv"), 0.1)
    table = claims.format_claims_table(runs)
    lines = table.splitlines()[2:]
    assert len(lines) == sum(len(claim.rivals) for claim in claims.CLAIMS) + 3
    words = (judging.HOLDS, judging.OPPOSITE, judging.UNDECIDED, judging.SLIGHT, "does not hold", "not shown")
    assert all(any(f"]: {word} |" in line for word in words) for line in lines)


def test_pictures_get_smaller(tmp_path):
    from studies.rlbm.rlbm_figures import plot_grid

    runs = make_runs(RLBM, [row("naive", seed, throughput_mbps=5.0 + seed) for seed in range(3)])
    figure = plot_grid(runs, Settings(schemes=("naive",), loads=(0.5,)), ("throughput_mbps",), (100,), "title")
    figure.savefig(tmp_path / "figure.png")
    small = showing.shrink_image(tmp_path / "figure.png")
    assert small.startswith(b"\x89PNG") and len(small) < (tmp_path / "figure.png").stat().st_size


def test_a_section_is_made_of_kept_rows(finished, section_of):
    text = section_of(RLBM, "thesis-text", finished)
    assert "traffic=thesis-text" in text and "| 1000 | random_no_beta |" in text and "| random | 500 |" in text
    assert "Here 50 ms gives, random: the highest throughput at " in text and " of 3 sizes; random_no_beta: " in text
    table = claims.format_claims_table(claims.select_interval(RLBM.read(finished / "runs.csv"), 0.1))
    lines = [[line.rpartition(": ")[2] for line in one.splitlines() if "]: " in line] for one in (table, text)]
    assert lines[0] == lines[1] and len(lines[0]) > 20  # six digits decide as nine do


TINY = ["sizes=[50]", "loads=[0.5,0.8]", "seeds=2", "duration_s=5", "jobs=2"]


def test_the_comparison_goes_on_with_the_scheme_that_it_was_at(tmp_path, monkeypatch):
    settings = RLBM.parse(["traffic=default", "intervals=[]", "schemes=[dt,naive,random,codel]", *TINY]).settings
    whole = compare.keep_comparison(settings, tmp_path / "whole", 2, ["a=b"], tmp_path / "first").read_bytes()
    play = compare.play_scheme

    def killed(settings, scheme, *rest):
        if scheme == "random":
            raise KeyboardInterrupt
        return play(settings, scheme, *rest)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(compare, "play_scheme", killed)
        compare.keep_comparison(settings, tmp_path / "out", 2, ["a=b"], tmp_path / "second")
    played = []
    monkeypatch.setattr(
        compare, "play_scheme", lambda settings, scheme, *rest: played.append(scheme) or play(settings, scheme, *rest)
    )
    assert compare.keep_comparison(settings, tmp_path / "out", 2, ["a=b"], tmp_path / "second").read_bytes() == whole
    assert played == ["random", "codel"]
    text = comparison.format_comparison(kept.read_rows(tmp_path / "second", "rlbm", "compare"))
    assert "p99 of dt minus this" in text and "**dt against random**" in text


def test_the_comparison_pools_a_seeds_flows():
    settings = Settings(schemes=("naive",), ccs=("cubic",), sizes=(100,), loads=(0.1, 0.2), seeds=2, first_seed=0, duration_s=1)
    outcomes = {
        ("cubic", 100, load, seed): compare.Outcome(np.arange(1.0, 51.0) + 50 * (load == 0.2) + seed, 1e6)
        for load in (0.1, 0.2)
        for seed in (0, 1)
    }
    names = ("slowdown_p99_p0", "slowdown_p99_p0_run_mean", "throughput_mbps", "flows_completed_p0")
    seeds, cells, pooled = [], {}, {}
    for row in compare.make_rows(settings, "naive", outcomes):
        values = [row[name] for name in names]
        if "seed" in row:
            seeds.append(values)
        else:
            (cells if "cc" in row else pooled)[row["size"], row["load"]] = values
    assert seeds == [[99.0, 75.0, 8.0, 100], [100.0, 76.0, 8.0, 100]]
    assert cells[100, 0.1] == pooled[100, 0.1] == [50.0, None, 8.0, 100]


def test_what_the_comparison_refuses(tmp_path):
    with pytest.raises(ConfigError, match="is the campaign's"):
        compare.main(["traffic=thesis-text"])
    with pytest.raises(ConfigError, match="colour"):
        compare.main(["colour=red", f"output={tmp_path}"])
