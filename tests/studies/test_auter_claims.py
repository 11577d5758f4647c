"""How the claims of the paper on Auter are judged, and the page and the figures that are made of it."""

import math

import numpy as np
import pytest

from studies.auter import auter_claims as claims
from studies.auter import auter_figures as figures
from studies.auter import auter_tables as tables
from studies.auter import auter_worlds as worlds
from studies.auter import paper
from studies.auter.auter_experiment import AUTER
from studies.auter.auter_measures import MEASURES
from studies.auter.auter_schemes import LEARNED, NAMES, RECIPE, STYLES
from studies.auter.auter_settings import STUDIES
from studies.common import judging
from studies.common.results import Runs
from tests.studies.hand_made_runs import make_runs

GAIN = {"default": 1.0, "tune-1": 1.05, "tune-2": 1.3, "max": 1.2, "bbr": 1.1, RECIPE: 1.25, LEARNED: 1.4, "autotuning": 1.4}


def row(study: str, cell: str, scheme: str, seed: int, step: int = 0, **values) -> dict:
    keys = {"study": study, "cell": cell, "plant": "sim", "scheme": scheme, "step": float(step), "seed": float(seed)}
    return keys | dict.fromkeys(MEASURES, math.nan) | values


def campaign(seeds: int = 3) -> Runs:
    """A campaign of every study in which each scheme has the gain of `GAIN` everywhere, and noise of a per cent."""
    cells = {
        "settings": tuple(paper.TABLE_1),
        "regions": paper.CELLS,
        "latency": ("0ms", "20ms", "40ms", "80ms", "100ms"),
        "bandwidth": worlds.cross_cells(("10mbps", "200mbps")),
        "loss": worlds.cross_cells(("0%", "1%")),
        "flow_size": worlds.cross_cells(("10kB", "100MB", "mixed")),
        "memory": ("1", "100", "1000"),
        "long_run": ("es-ea",),
    }
    rng, rows = np.random.default_rng(0), []
    for study, own in cells.items():
        for cell in own:
            for scheme, gain in GAIN.items():
                for seed in range(seeds):
                    for step in range(5 if study == "long_run" else 1):
                        values = {name: 10.0 * gain * rng.uniform(0.99, 1.01) for name in MEASURES}
                        rows.append(row(study, cell, scheme, seed, step, **values))
    for step in range(50, 4501, 50):
        for seed in range(2):
            rows.append(row("training", "paper", RECIPE, seed, step, **{name: rng.uniform(1, 9) for name in MEASURES}))
    return make_runs(AUTER, rows)


def test_the_papers_numbers_are_those_of_its_tables():
    """Means of Table IV's columns; where the text says otherwise, so do we."""
    assert paper.compute_gain("bbr") == pytest.approx(paper.GAIN_SAID["bbr"], abs=2e-4)
    assert paper.compute_gain("auter") == pytest.approx(0.2015, abs=1e-4)  # the text: 0.2033
    assert paper.compute_gain("auter", paper.select_cells(traffic="short")) == pytest.approx(
        paper.GAIN_SAID_OF["short"], abs=2e-4
    )
    assert paper.compute_gain("auter", paper.select_cells(region="es-ea")) == pytest.approx(
        paper.GAIN_SAID_IN["es-ea"], abs=2e-4
    )
    assert max(paper.compute_gain("auter", (cell,)) for cell in paper.CELLS) == pytest.approx(paper.BEST_GAIN, abs=1e-3)
    assert len(paper.CELLS) == 6 and set(paper.select_cells()) == set(paper.CELLS) == set(paper.LATENCY_MS)


def test_claims_speak_of_schemes_and_measures_that_there_are():
    for claim in (*claims.ABOUT_AUTER, *claims.WITH_BBR_TOO, *claims.OURS, *(one.claim for one in claims.CONTRASTS)):
        assert set(claim.rivals) <= set(NAMES) and claim.measure in MEASURES
        studies = claim.where["study"]
        assert {studies} if isinstance(studies, str) else set(studies) <= set(STUDIES)
    for one in claims.OTHERS:
        assert {one.scheme, *one.claim.rivals} <= set(NAMES) and one.claim.measure in MEASURES
    assert len({one[2] for one in STYLES.values()}) == len(STYLES) == len({one[:2] for one in STYLES.values()})


def test_gains_are_judged_by_the_papers_figures():
    text = claims.build_auter_claims_table(campaign())
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()}
    average = lines["20.33 % more throughput, three regions (Table IV)"]
    assert [one.rpartition(": ")[2] for one in average.strip(" |").split(" | ")[2:]] == ["holds"] * 3
    assert "in sign only" in lines["4.67 times at 40 ms (Fig. 4)"]
    assert "the opposite holds" in lines["1000 connections: over 15 % less memory (Fig. 9)"]
    assert "does not hold" in lines["at most 0.8 ms of extra delay, ms (Fig. 4-7)"]
    assert "no difference shown" in lines["long traffic gains more than short (V-B)"]


def test_a_contrast_is_the_difference_of_two_gains():
    rows = [row("regions", cell, "default", seed, throughput_mbps=10.0) for cell in paper.CELLS for seed in range(3)]
    for cell in paper.CELLS:
        gain = 1.5 if cell.endswith("long") else 1.2
        rows += [row("regions", cell, "max", seed, throughput_mbps=10 * gain * (1 + 0.01 * seed)) for seed in range(3)]
    runs = make_runs(AUTER, rows)
    halves = [runs.where(cell=paper.select_cells(traffic=traffic)) for traffic in ("long", "short")]
    found = judging.compute_contrast(*halves, "max", "default", "throughput_mbps", claims.CELLS)
    assert found.mean == pytest.approx(math.log(1.25)) and found.low > 0
    assert judging.compute_contrast(*halves, "max", "bbr", "throughput_mbps", claims.CELLS) is None


def test_at_most_is_judged_by_the_whole_interval():
    found = judging.compute_interval([0.1, 0.3, 0.2])
    assert judging.decide_verdict(judging.AT_MOST, found, 0.8, judging.DIFFERENCE) == "holds"
    assert judging.decide_verdict(judging.AT_MOST, found, 0.3, judging.DIFFERENCE) == "not shown"
    assert judging.decide_verdict(judging.AT_MOST, found, -0.3, judging.DIFFERENCE) == "does not hold"


def test_tables_have_the_papers_figures_beside_ours():
    runs = campaign()
    assert "| 161.3 |" in tables.build_settings_table(runs) and "| 0.1469 |" in tables.build_settings_table(runs)
    assert "(+40.5)" in tables.build_gains_table(runs) and "(20.3)" in tables.build_gains_table(runs)
    assert "(142)" in tables.build_regions_table(runs) and "(281.1)" in tables.build_regions_table(runs, "latency_ms", 1)
    assert "296.8 %" in tables.build_sweep_table(runs, "latency")
    for table in (tables.build_memory_table(runs), tables.build_long_run_table(runs), tables.build_training_table(runs)):
        assert table.count("\n") > 5 and "nan" not in table
    assert "<!--" not in claims.build_other_claims_table(runs) + claims.build_own_claims_table(runs)


@pytest.mark.slow
def test_every_study_has_its_figure(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = figures.draw_all(campaign(), tmp_path)
    sweeps = [f"sweep_{study}" for study in ("latency", "bandwidth", "loss", "flow_size")]
    names = ["settings", "regions", "regions_scatter", *sweeps, "memory", "long_run", "training"]
    assert [path.stem for path in drawn] == names
    assert all(path.stat().st_size > 5000 for path in drawn)
    assert figures.draw_all(campaign(1).where(study="regions"), tmp_path)  # one seed has no interval
