"""Pages keep every run beside their tables: what a page says follows from these rows, and readers can reckon for themselves."""

from pathlib import Path

import numpy as np
import pytest

from netbuf_gym import stats
from studies import page
from studies.catalogue import experiment
from studies.common import showing
from studies.common.results import Runs
from studies.live import judging
from studies.ppcc import sections as of_ppcc
from studies.sender import sections as of_sender
from studies.sender import seeds as of_seeds
from studies.sender.schemes import CONSTANT, label

DOCS = Path(__file__).resolve().parents[2] / "docs"
MAX_BYTES = 600_000
EXPERIMENTS = ("sender", "ppcc", "live")


def said_of(name: str, runs: Runs) -> list[str]:
    """What a page must hold of its committed runs."""
    if name == "live":
        return [judging.summary_table(judging.cells_of(runs))]
    if name == "sender" and all(scheme.isdigit() for scheme in runs.values("scheme")):  # training seeds
        folder = DOCS / "figures" / name
        return [of_seeds.table(runs, of_seeds.together([of_seeds.others(folder, part) for part in of_seeds.PARTS]))]
    tables_of = {"sender": of_sender.tables_of, "ppcc": of_ppcc.tables_of}[name]
    return [said for study in runs.values("study") for said in tables_of(runs, study)]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_committed_rows_say_what_the_page_says(name):
    text = (DOCS / f"{name}.md").read_text()
    for path in sorted((DOCS / "figures" / name).glob("rows*.csv.gz")):
        assert path.stat().st_size < MAX_BYTES, path
        for said in said_of(name, showing.read_rows(path, experiment(name))):
            assert said in text, f"{path}: python -m studies.page {name} docs/{name}.md SECTION=DIR"


def test_the_senders_page_calls_schemes_by_their_names():
    text = (DOCS / "sender.md").read_text()
    assert f"**{label(CONSTANT)}**" in text and "constant window" not in " ".join(text.split())
    assert f"of the {label(CONSTANT)}" in " ".join(text.split())


def made(name: str, cells: list[dict], measures: dict, seeds: int = 3) -> Runs:
    """Runs of an experiment with invented measures of many digits."""
    own, rng = experiment(name), np.random.default_rng(3)
    rows = [{**cell, "seed": float(seed)} for cell in cells for seed in range(seeds)]
    columns = {key: np.array([row[key] for row in rows]) for key in own.keys}
    for measure in own.measures:
        low, high = measures.get(measure, (np.nan, np.nan))
        columns[measure] = low + (high - low) * rng.random(len(rows))
    return Runs("netbuf-gym: a test", columns, own.keys, tuple(own.measures))


def test_tables_of_the_rows_are_those_of_the_page(tmp_path):
    cells = [{"study": "start", "cell": "1", "scheme": scheme, "step": 0.0} for scheme in ("newreno", "cubic", "bbr")]
    ranges = {"utility": (-0.5, 0.0), "goodput_mbps": (100.0, 900.0), "reach_s": (1.0, 9.0), "loss": (0, 0.01)}
    runs = made("sender", cells, ranges)
    kept = showing.write_rows(runs, experiment("sender").texts, tmp_path / "rows-events.csv.gz")
    back = showing.read_rows(tmp_path / "rows-events.csv.gz", experiment("sender"))
    assert said_of("sender", back) == said_of("sender", kept) == said_of("sender", runs) != []
    for name in (*runs.keys, *runs.measures):
        same = np.testing.assert_array_equal if name in runs.keys else np.testing.assert_allclose
        same(back.columns[name], runs.columns[name], **({} if name in runs.keys else {"rtol": 1e-7}))
    ours = [stats.mean_interval(one.where(scheme="bbr").columns["reach_s"]) for one in (runs, back)]
    assert ours[0] == pytest.approx(ours[1], rel=1e-6) and back.comment == runs.comment
    shifted = back.where(scheme=("newreno", "cubic"))
    shifted.columns["reach_s"][0] += 1
    assert said_of("sender", shifted) != said_of("sender", back), "another row is another table"


def test_a_page_keeps_the_rows_that_its_tables_are_of(tmp_path, monkeypatch):
    cells = [{"study": "start", "cell": "1", "scheme": "bbr", "step": step} for step in (0.0, 1.0)]
    runs = made("sender", cells, {"utility": (-1, 0), "reach_s": (1, 2)})
    monkeypatch.setattr(of_sender, "described", lambda source: {})
    monkeypatch.setattr(of_sender, "ran", lambda description: "ran")
    monkeypatch.setattr(of_sender, "read", lambda source: runs)
    marks = "<!-- events: written by python -m studies.page -->\n<!-- end of events -->"
    (tmp_path / "sender.md").write_text(marks)
    assert page.main(["sender", str(tmp_path / "sender.md"), f"events={tmp_path}"]) == 0
    back = showing.read_rows(tmp_path / "figures" / "sender" / "rows-events.csv.gz", experiment("sender"))
    assert len(back) == 3 and set(back.columns["step"]) == {0.0}, "whole runs"
    text = (tmp_path / "sender.md").read_text()
    assert "[rows-events.csv.gz](figures/sender/rows-events.csv.gz)" in text
    assert all(said in text for said in said_of("sender", back)) and said_of("sender", back)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("x agent=zoo/agents/a_b/ppo-10ms/model.zip jobs=2", "x agent=a_b/ppo-10ms jobs=2"),
        ("x agent=/somewhere/zoo/agents/a/b/model.zip traces=../real/traces", "x agent=a/b traces=DIR"),
        ("x agent=runs/mine/model.zip seeds=2", "x agent=runs/mine/model.zip seeds=2"),
    ],
)
def test_commands_are_those_of_any_machine(command, said):
    assert showing.of_any_machine(command) == said
