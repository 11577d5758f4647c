"""Laws of networking as a study: comparisons, verdicts, rows, and what an interruption leaves."""

from __future__ import annotations

import json
import time

import pytest

from netbuf_gym.errors import ConfigError, ReferenceDataError
from studies.common import kept
from studies.validation import laws, measured, trust
from studies.validation import validation_sections as sections
from studies.validation.laws import Comparison, Law, LawVerdict
from studies.validation.laws_catalogue import BY_NAME, LAWS


def make_law(name="line", compare=lambda x: Comparison.of_value(2.0, x), xs=(2.0, 2.1, 2.6), middle=0.1, largest=0.2):
    return Law(
        name=name,
        title="a line",
        source="nobody",
        formula="2",
        compare=compare,
        worlds=laws.make_grid(x=xs),
        middle=middle,
        largest=largest,
    )


@pytest.fixture
def few(monkeypatch):
    """A catalogue of one law of arithmetic and two of the real ones, in a world each."""
    chosen = {law.name: law for law in (make_law(xs=(2.0, 2.1)), *(with_one_world(BY_NAME[n]) for n in ("policer", "mathis")))}
    for module in (measured, sections, trust):
        monkeypatch.setattr(module, "BY_NAME", chosen)
    return chosen


def with_one_world(law):
    return laws.replace(law, worlds=law.worlds[-1:])


def test_a_deviation_is_relative_to_the_nearest_value_allowed():
    assert Comparison.of_value(2.0, 2.5).deviation == 0.25
    assert Comparison(1.0, 2.0, 1.5).deviation == 0 and Comparison(1.0, 2.0, 0.9).deviation == pytest.approx(-0.1)
    assert Comparison(0.0, 1.0, float("nan")).deviation == float("inf")


def test_a_law_holds_within_its_median_and_its_largest_deviation():
    for law, within in ((make_law(), False), (make_law(largest=0.31), True), (make_law(middle=0.04, largest=0.31), False)):
        verdict = LawVerdict(law, {laws.format_world(world): law.compare(**world) for world in law.worlds})
        assert verdict.middle == pytest.approx(0.05) and verdict.worst[0] == "x=2.6"
        assert verdict.within == within


def test_rows_are_kept_judged_and_shown(few, tmp_path):
    measured.keep_section("laws", tmp_path, jobs=1)
    rows = kept.read_rows(tmp_path, "validation", "laws")
    assert [row["law"] for row in rows.records] == ["line", "line", "policer", "mathis"]
    report = measured.build_report(rows)
    assert report.within and report.summary == "3 laws in 4 worlds, 0 do not hold"
    assert report.laws[0].worlds["x=2.1"] == Comparison(2.0, 2.0, 2.1)
    table = sections.SECTIONS["laws"](rows)
    assert "| a line (`line`) | 2; nobody | 2: x 2.0, 2.1 | 2.50 % (10.00 %) | 5.00 % (20.00 %) | holds |" in table
    assert "| laws of networking | by formula | 3 laws in 4 worlds, 0 do not hold | within |" in sections.verdicts(
        {"laws": rows}
    )
    assert measured.find_stale_reason(rows) == ""
    assert not (tmp_path / "runs/studies/validation/laws" / laws.UNFINISHED).exists()


def test_changed_and_missing_rows_are_told(few, tmp_path):
    measured.keep_section("laws", tmp_path)
    rows = kept.read_rows(tmp_path, "validation", "laws")
    rows.records[-1]["ours"] = "1.0"
    assert not measured.build_report(rows).within
    assert measured.find_stale_reason(rows).startswith("differs in 1 of 3 runs")
    another = [{**row, "world": row["world"].replace("x=2.0", "x=3.0")} for row in rows.records]
    for records, told in (
        (rows.records[:-1], "has rows of 0 of the 1 worlds of mathis, and of 0 others"),
        (rows.records[1:], "has rows of 1 of the 2 worlds of line, and of 0 others"),
        (another, "has rows of 1 of the 2 worlds of line, and of 1 others"),
    ):
        with pytest.raises(ReferenceDataError, match=f"{told}; .* results make studies/validation/laws"):
            measured.build_report(laws.kept.KeptRows(rows.root, "validation", "laws", rows.header, records))


def test_the_program_is_the_package_its_core_and_the_laws(tmp_path, monkeypatch):
    package, study = tmp_path / "netbuf_gym", tmp_path / "studies"
    files = [package / "_core.so", package / "__init__.py", package / "scenarios" / "udp.py", study / "laws_queues.py"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    monkeypatch.setattr(laws.netbuf_gym, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(laws, "__file__", str(study / "laws.py"))
    seen = {laws._compute_program_digest()}
    for file in files:
        file.write_text("2")
        seen.add(laws._compute_program_digest())
    assert len(seen) == 1 + len(files)


def test_an_interrupted_run_goes_on_unless_the_program_is_another(tmp_path, monkeypatch):
    asked = []
    unfinished = tmp_path / "runs/studies/validation/laws" / laws.UNFINISHED

    def count_kept():
        return len(json.loads(unfinished.read_text())["rows"]) if unfinished.exists() else 0

    def compare(x):
        asked.append(x)
        if x == 3 and asked.count(3) == 1:
            late = time.monotonic() + 60
            while count_kept() < 2 and time.monotonic() < late:
                time.sleep(0.01)
            raise KeyboardInterrupt
        return Comparison.of_value(1.0, 1.0)

    law = make_law(compare=compare, xs=(1, 2, 3, 4))
    with pytest.raises(KeyboardInterrupt):
        laws.keep_laws([law], tmp_path, jobs=1)
    assert not kept.build_path(tmp_path, "validation", "laws").exists()
    left = unfinished.read_text()
    laws.keep_laws([law], tmp_path, jobs=1)
    assert asked.count(1) == asked.count(2) == 1 and asked.count(3) == 2
    unfinished.write_text(left)
    monkeypatch.setattr(laws, "_compute_program_digest", lambda: "another")
    laws.keep_laws([law], tmp_path, jobs=1)
    assert asked.count(1) == 2


def test_named_laws_are_compared_and_not_kept(few, capsys):
    path = kept.build_path(measured.CHECKOUT, "validation", "laws")
    before = path.read_bytes() if path.is_file() else None
    assert measured.main(["laws", "--only", "line", "policer", "jobs=1"]) == 0
    out = capsys.readouterr().out
    assert "2 laws in 3 worlds, 0 do not hold" in out and "mathis" not in out
    assert measured.main(["laws", "--only=line"]) == 0
    assert (path.read_bytes() if path.is_file() else None) == before
    with pytest.raises(ConfigError, match=r"law = 'mathi' is unknown; did you mean|law = 'mathi'.*valid"):
        measured.main(["laws", "--only", "mathi"])
    with pytest.raises(ConfigError, match="--only names no law; valid: line, policer, mathis"):
        measured.main(["laws", "--only"])
    with pytest.raises(ConfigError, match="--only"):
        measured.main(["marks", "--only", "line"])


def test_the_catalogue_is_of_many_laws_in_several_worlds_each():
    assert len(BY_NAME) == len(LAWS) >= 30
    for law in LAWS:
        assert len({laws.format_world(world) for world in law.worlds}) == len(law.worlds) >= 4, law.name
        assert 0 < law.middle <= law.largest and law.source and law.formula
    named = [name for one in trust.PHENOMENA for name in one.laws]
    assert sorted(named) == sorted(BY_NAME)
    for one in trust.PHENOMENA:
        assert one.limits and all((measured.CHECKOUT / "tests" / path).is_file() for path in one.checks), one.name


def test_the_table_of_trust_takes_its_figures_from_rows(tmp_path):
    rows = kept.read_rows(measured.CHECKOUT, "validation", "laws")
    lines = trust.format_trust_table(rows).splitlines()
    assert len(lines) == 2 + len(trust.PHENOMENA)
    for one, line in zip(trust.PHENOMENA, lines[2:], strict=True):
        name, law, ns3, kernel, checks, limits = (cell.strip() for cell in line.strip("|").split(" | "))
        assert (name, limits) == (one.name, one.limits) and checks
        assert bool(law) == bool(one.laws) and bool(ns3) == bool(one.ns3), one.name
        assert bool(kernel) == bool(one.kernel or one.settings or one.measured), one.name


QUICK = ("least-rtt", "completion", "slow-start", "window-limit", "rto-backoff", "tail-probe", "idle-restart", "lindley")
QUICK += ("codel", "policer", "vegas-queue", "copa-queue")


@pytest.mark.parametrize("name", QUICK)
def test_laws_of_quick_worlds_hold(name):
    assert laws.run_laws([BY_NAME[name]], 2).within


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(BY_NAME) - set(QUICK)))
def test_laws_hold_in_some_of_their_worlds(name):
    law = BY_NAME[name]
    chosen = laws.replace(law, worlds=law.worlds[:: max(1, len(law.worlds) // 3)], middle=law.largest)
    report = laws.run_laws([chosen], 2)
    assert report.within, report.text()
