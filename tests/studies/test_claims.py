"""Claims, tables, the page about them, the comparison and the search for Dynamic Thresholds' alphas."""

import math

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.stats import Interval
from studies import page
from studies.common import judging, showing
from studies.common.campaign import Campaign
from studies.common.results import Runs
from studies.rlbm import claims, compare, tune_dt
from studies.rlbm.experiment import RLBM
from studies.rlbm.settings import Settings


def made(rows: list[dict]) -> Runs:
    """Results of which only some columns matter."""
    columns = {name: np.array([row.get(name, math.nan) for row in rows]) for name in RLBM.columns}
    return Runs("made by hand", columns, RLBM.keys, tuple(RLBM.measures))


def row(scheme: str, seed: int, **values) -> dict:
    return {"scheme": scheme, "cc": "cubic", "size": 100.0, "load": 0.5, "seed": float(seed)} | values


def test_changes_are_paired_relative_and_over_seeds():
    rows = [row("naive", seed, fct_mean_s=10.0 * (seed + 1)) for seed in range(4)]
    rows += [row("random", seed, fct_mean_s=9.0 * (seed + 1)) for seed in range(4)]
    found = claims.change(made(rows), "random", "naive", "fct_mean_s")
    assert found == pytest.approx((math.log(0.9),) * 3)
    assert claims.change(made(rows), "random", "abm", "fct_mean_s") is None
    assert claims.change(made(rows), "random", "naive", "drops") is None  # measured nowhere


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
    assert judging.verdict(expected, Interval(*interval), least) == verdict


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
    alone = judging.interval([0.1])
    assert judging.judged(judging.HIGHER, alone) == "+10.5 %: not judged, of one seed"
    assert judging.judged(judging.HIGHER, alone, by=judging.DIFFERENCE) == "+0.1: not judged, of one seed"
    assert judging.judged(judging.HIGHER, judging.interval([0.1, 0.1])) == "+10.5 % [+10.5, +10.5]: holds"


def test_every_claim_gets_a_verdict(finished):
    runs = claims.at_interval(RLBM.read(finished / "runs.csv"), 0.1)
    table = claims.claims_table(runs)
    lines = table.splitlines()[2:]
    assert len(lines) == sum(len(claim.rivals) for claim in claims.CLAIMS) + 3
    words = (judging.HOLDS, judging.OPPOSITE, judging.UNDECIDED, judging.SLIGHT, "does not hold", "not shown")
    assert all(any(f"]: {word} |" in line for word in words) for line in lines)


def test_the_page_is_filled_by_the_command(finished, tmp_path):
    docs = tmp_path / "page.md"
    mark = "thesis-text: written by python -m studies.page"
    docs.write_text(f"# Title\n\n<!-- {mark} -->\nold\n<!-- end of thesis-text -->\n\nlast words\n")
    assert page.main(["rlbm", str(docs), f"thesis-text={finished}"]) == 0
    text = docs.read_text()
    assert text.startswith("# Title") and text.endswith("last words\n") and "\nold\n" not in text
    assert "traffic=thesis-text" in text and "| 1000 | random_no_beta |" in text and "| random | 500 |" in text
    assert "Here 50 ms gives, random: the highest throughput at " in text and " of 3 sizes; random_no_beta: " in text
    assert (tmp_path / "figures" / "rlbm" / "means-thesis-text.csv.gz").stat().st_size < 20_000
    assert page.main(["rlbm", str(docs), f"thesis-text={finished}"]) == 0
    assert docs.read_text() == text
    with pytest.raises(ConfigError, match="must hold the lines"):
        page.main(["rlbm", str(docs), f"default={finished}"])
    with pytest.raises(ConfigError, match="has traffic thesis-text"):
        docs.write_text(text.replace("thesis-text:", "default:").replace("end of thesis-text", "end of default"))
        page.main(["rlbm", str(docs), f"default={finished}"])
    with pytest.raises(ConfigError, match="no finished campaign"):
        page.main(["rlbm", str(docs), f"default={tmp_path}"])


def test_pictures_get_smaller(tmp_path):
    from studies.rlbm.figures import grid

    runs = made([row("naive", seed, throughput_mbps=5.0 + seed) for seed in range(3)])
    figure = grid(runs, Settings(schemes=("naive",), loads=(0.5,)), ("throughput_mbps",), (100,), "title")
    figure.savefig(tmp_path / "figure.png")
    small = showing.smaller(tmp_path / "figure.png")
    assert small.startswith(b"\x89PNG") and len(small) < (tmp_path / "figure.png").stat().st_size


TINY = ["sizes=[50]", "loads=[0.5,0.8]", "seeds=2", "duration_s=5", "jobs=2"]


def test_the_comparison(tmp_path, capsys):
    schemes = "schemes=[dt,naive,random,codel]"
    assert compare.main([schemes, *TINY, f"output={tmp_path}"]) == 0
    out = capsys.readouterr().out
    assert "p99 of dt minus this" in out and "**dt against random**" in out
    assert (tmp_path / "table.md").read_text() in out
    by_seed = (tmp_path / "comparison.csv").read_text().splitlines()
    assert by_seed[0].startswith("# netbuf-gym") and len(by_seed) == 2 + 4 * 2
    cells = (tmp_path / "cells.csv").read_text().splitlines()
    assert len(cells) == 2 + 4 * 2 * 1 * 2


def test_the_comparison_pools_a_seeds_flows():
    settings = Settings(schemes=("naive",), ccs=("cubic",), sizes=(100,), loads=(0.1, 0.2), seeds=2, first_seed=0, duration_s=1)
    outcomes = {
        ("naive", "cubic", 100, load, seed): compare.Outcome(np.arange(1.0, 51.0) + 50 * (load == 0.2) + seed, 1e6)
        for load in (0.1, 0.2)
        for seed in (0, 1)
    }
    found = compare.Comparison(settings, outcomes)
    assert found.slowdown("naive").tolist() == [99.0, 100.0]
    assert found.run_mean("naive").tolist() == [75.0, 76.0]
    assert found.throughput("naive").tolist() == [8.0, 8.0]
    assert found.by_cell("naive")["cubic", 100, 0.1] == (50.0, 8.0, 100)


def test_what_the_comparison_refuses(tmp_path):
    with pytest.raises(ConfigError, match="is the campaign's"):
        compare.main(["traffic=thesis-text"])
    with pytest.raises(ConfigError, match="colour"):
        compare.main(["colour=red", f"output={tmp_path}"])


def test_the_search_of_alphas_keeps_to_the_throughput(tmp_path, capsys, monkeypatch):
    rows = [
        {"alpha_0": 0.5, "alpha_1": 0.5, "slowdown_p99_p0": 3.0, "throughput_over_naive": 0.98},
        {"alpha_0": 1.0, "alpha_1": 0.5, "slowdown_p99_p0": 4.0, "throughput_over_naive": 0.995},
        {"alpha_0": 8.0, "alpha_1": 0.5, "slowdown_p99_p0": 4.0, "throughput_over_naive": 1.0},
    ]
    assert tune_dt.best(rows) is rows[1]
    monkeypatch.setattr(tune_dt, "ALPHAS", (0.25, 1.0))
    assert tune_dt.main(["worlds=3", "jobs=2", f"output={tmp_path / 'table.csv'}"]) == 0
    assert "DT_ALPHAS = (" in capsys.readouterr().out
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0].startswith("# netbuf-gym") and "seeds 0 to 2" in lines[0] and len(lines) == 2 + 4
    assert lines[5].split(",")[-1] == "1"  # naive over naive
    with pytest.raises(ConfigError, match="worlds = 1 is out of range"):
        tune_dt.main(["worlds=1", f"output={tmp_path / 'table.csv'}"])
    with pytest.raises(ConfigError, match="argument 'seeds=3' is unknown"):
        tune_dt.main(["seeds=3"])


def test_the_constant_is_what_the_committed_search_found():
    from netbuf_gym.scenarios import DT_ALPHAS

    lines = [line.split(",") for line in tune_dt.TABLE.read_text().splitlines()[1:]]
    rows = [dict(zip(lines[0], map(float, line), strict=True)) for line in lines[1:]]
    assert len(rows) == len(tune_dt.ALPHAS) ** 2
    chosen = tune_dt.best(rows)
    assert (chosen["alpha_0"], chosen["alpha_1"]) == DT_ALPHAS
