"""Suites of the field: their worlds as published, their rankings on rows made by hand, their reports, and what is kept."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym.cli import program
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import SUITES, field, recorder
from netbuf_gym.evaluation.suites.field import ccbench, games, pantheon
from netbuf_gym.evaluation.suites.field.suite import Sign, Table
from netbuf_gym.leaderboard import controllers, field_reports, play, rows
from netbuf_gym.leaderboard.field_reports import tabulate_signs
from netbuf_gym.simulation.runner import simulate
from tests.evaluation.hand_made_field import cell, made

RUNS = {
    "ccbench/solo": 660,
    "ccbench/friendly": 125,
    "testbed/2024": 1030,
    "testbed/2025": 2271,
    "rfc9743": (243 + 16 + 6 + 8 + 9 + 6) * 3,
    "rfc7928": 4 * 25 + 72,
    "pantheon": 36 * 5,
    "mvfst-rl": 18 * 3,
    "genet/synthetic": 572,
    "sage": 500 + 125,
    "bbr3/conformance": 15 * 4,
}


# ---- worlds


@pytest.mark.slow
@pytest.mark.parametrize("suite", field.SUITES, ids=lambda suite: suite.name)
def test_every_suite_has_its_worlds(suite):
    edition = suite.load()
    names = [one.name for one in edition.cells]
    assert len(names) == len(set(names)) == RUNS[suite.name]
    assert set(edition.families) == set(suite.families)
    assert all(one.scenario.agents >= 1 for one in edition.cells)
    assert all(one.worlds and one.feature for one in suite.not_run)
    assert set(suite.scatter) <= {metric.key for metric in suite.metrics}


def test_ccbench_worlds_are_the_league_s():
    one = cell("ccbench/solo", "48-20-4x-d-8B").scenario
    link = one.links[0]
    assert link.queue_packets == 8 * 48 * 20 // 6 and one.propagation_rtt_ms() == 40 and one.duration_s == 24
    assert link.trace.time_s.tolist() == [0, 7, 14, 21] and link.trace.rate_mbps.tolist() == [48, 12, 48, 12]
    assert cell("ccbench/solo", "12-5-constant-0.5B").scenario.links[0].queue_packets == 5
    names = {one.name for one in SUITES["ccbench/solo"].load().cells}
    assert not any(name.startswith(("96-80-4x-u", "192-5-2x-u", "192-5-4x-u")) for name in names)
    beside = cell("ccbench/friendly", "192-80-16B").scenario
    assert [(flow.cc, flow.start_s) for flow in beside.flows] == [("cubic", 0.0), ("agent", 5.0)]
    assert beside.links[0].queue_packets == 16 * 192 * 80 // 6


def test_other_worlds_are_as_published():
    policed, shallow = pantheon.make_job(12, 1), pantheon.make_job(15, 3)
    assert [link.queue_packets for link in policed.links] == [1, 1] and policed.links[0].rate_mbps == 108
    assert shallow.links[0].queue_bytes == 9000 and [flow.start_s for flow in shallow.flows] == [0, 10, 20]
    one = cell("sage", "quarter-96-160-16").scenario
    assert one.links[0].trace.rate_mbps.tolist() == [96, 24] and one.links[0].trace.period_s == 14
    assert [flow.cc for flow in cell("sage", "friendly-12-10-1").scenario.flows] == ["agent", "cubic"]


# ---- scores


def test_solo_wins_by_rounded_power():
    mbps, delay = (
        np.array([[10.4, 0.3, 0.2], [9.6, 5.0, 0.1], [9.4, 5.0, 0.0]]),
        np.array([[10.0, 1.0, 5.0]] * 2 + [[10, 1.1, np.nan]]),
    )
    assert games.compute_power(mbps, delay).tolist() == [[10, 0, 0], [10, 25, 0], [8.1, 25, 0]]
    won = games.decide_solo_games(games.compute_power(mbps, delay))
    assert won.tolist() == [[True, False, False], [True, True, False], [False, True, False]]
    assert games.decide_solo_games(games.compute_power(mbps, delay), 0.2)[2].tolist() == [True, True, False]


def test_friendly_wins_by_the_nearest_to_half():
    mbps = np.array([[6.0, 8.2], [5.0, 3.0], [10.0, 12.0]])
    won = games.decide_friendly_games(mbps, np.array([6.0, 6.0]))
    assert won.tolist() == [[True, True], [False, False], [False, False]]  # m = 0: 5.4 to 6.6; m = 2: 3.6 to 8.8
    assert games.decide_friendly_games(mbps, np.array([6.0, 6.0]), 0.5).tolist() == [[True, True], [True, True], [False, True]]


def test_league_ranks_who_played_everything():
    games = {f"{key}_{k}": value for k in range(4) for key, value in (("mbps", 10.0), ("delay_ms", 20.0))}
    worse = games | {f"delay_ms_{k}": 40.0 for k in range(4)}
    about = {"w1": {"family": "constant", "rate": 12}, "w2": {"family": "2x-u", "rate": 12}}
    results = made({"a": {"w1": worse, "w2": games}, "b": {"w1": games, "w2": games}, "c": {"w1": games}}, about)
    told = ccbench.rank_league(results, "solo")
    assert told.ranking == ["b", "a"] and [row[:3] for row in told.tables[0].rows] == [
        ["1", "b", "100.00"],
        ["2", "a", "50.00"],
    ]
    assert told.first[0].startswith("b wins most games of solo: 100.00 % of 8")


def test_record_says_what_simulate_says():
    one = cell("ccbench/friendly", "12-20-B")
    suite = SUITES["ccbench/friendly"]
    played = play.run(suite, [one], controllers.resolve_controller("bbr", suite))
    result = simulate(one.scenario.with_senders(["cubic", "bbr"]), seed=one.seed, sample_interval_s=5.0)
    arrival = result.series["arrival_mbps"][:, 1] * 1500 / 1448
    assert played.values[0]["mbps_0"] == pytest.approx(arrival[1:7].mean(), rel=1e-9)
    assert played.values[0]["mbps_3"] == pytest.approx(arrival[19:24].mean(), rel=1e-9)


def test_weighted_quantile():
    values, weights = np.array([3.0, 1.0, 2.0, np.nan]), np.array([1.0, 8.0, 1.0, 5.0])
    assert recorder.weighted_quantile(values, weights, 0.8) == 1 and recorder.weighted_quantile(values, weights, 0.95) == 3
    assert math.isnan(recorder.weighted_quantile(values[3:], weights[3:], 0.5))


# ---- reports and what is kept


@pytest.mark.slow
def test_command_ranks_among_the_kept(tmp_path, capsys):
    words = ["suite", "bbr3/conformance", "controller=[cubic,vegas]", "families=[tiny,rate-up]", "beside=[]", "threads=2"]
    assert program.main([*words, f"output={tmp_path}"]) == 0
    page, text = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    assert 'src="data:image/png;base64,' in page and "http" not in page.split("<body>")[1].split("base64")[0]
    assert "## Not run" in text and "| Handling Spurious Fast Recovery | nothing: " in text and "beside kept" not in text
    rows = list(csv.DictReader(io.StringIO((tmp_path / "worlds.csv").read_text().partition("\n")[2])))
    assert {row["controller"] for row in rows} == {"cubic", "vegas", "bbr3"} and len(rows) == 3 * 8  # bbr3 is needed beside
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["ranking"] == [row[0] for row in found["tables"][0]["rows"]] and found["first"][0] in capsys.readouterr().out
    again = [
        *words[:2],
        "controller=bbr",
        *words[3:4],
        f"beside=[{tmp_path}/worlds.csv]",
        f"output={tmp_path}/b",
        "figures=false",
    ]
    assert program.main(again) == 0
    assert "beside kept results of cubic, vegas, bbr3" in (tmp_path / "b" / "report.md").read_text()
    again[3] = "families=[tiny,drain]"
    assert program.main(again) == 2, "two of its families are not those two"
    said = capsys.readouterr().err
    assert "beside has cubic without 4 of the 8 worlds, drain-1mbps-100ms among them; valid: results of all of them" in said


def test_one_that_fails_is_a_row_and_the_suite_goes_on(tmp_path, capsys, monkeypatch):
    real = play.run

    def failing(suite, cells, controller, **more):
        if controller.name == "vegas":
            raise ConfigError("its window is NaN; valid: a number")
        return real(suite, cells, controller, **more)

    monkeypatch.setattr(play, "run", failing)
    words = ["suite", "bbr3/conformance", "controller=[vegas,bbr3]", "families=[tiny]", "beside=[]", "figures=false"]
    assert program.main([*words, f"output={tmp_path}"]) == 1
    assert capsys.readouterr().err.count("vegas failed: its window is NaN") == 1
    text = (tmp_path / "report.md").read_text()
    assert "vegas failed: its window is NaN" in text and "| vegas | failed |  |" in text
    assert json.loads((tmp_path / "result.json").read_text())["failed"] == {"vegas": "its window is NaN; valid: a number"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["families=[none]"], "families holds 'none'; valid: startup-plateau"),
        (["against=x.json"], "against = x.json: bbr3/conformance ranks its controllers; valid: beside="),
        (["beside=[missing.csv]"], "beside = missing.csv: cannot be read: No such file or directory; valid: a worlds.csv"),
    ],
)
def test_bad_words(words, says, capsys, tmp_path):
    assert program.main(["suite", "bbr3/conformance", "controller=bbr3", *words, f"output={tmp_path}"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("word", ["missing.cc", "missing.py:Name"])
def test_a_file_that_is_not_there_is_bad_input(word, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(play, "run", lambda *given, **more: pytest.fail("something is played"))
    words = ["suite", "bbr3/conformance", f"controller=[cubic,'{word}']", "beside=[]", f"output={tmp_path}"]
    assert program.main(words) == 2
    assert f"controller = '{word}': there is no file {word.partition(':')[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("suite", ["bbr3/conformance", "gate"])
def test_families_are_listed(suite, capsys):
    assert program.main(["suite", suite, "--families"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    cells = SUITES[suite].load().cells
    assert {row[0]: int(row[1]) for row in rows} == {
        family: sum(one.family == family for one in cells) for family in SUITES[suite].families
    }


def test_beside_is_of_the_field_and_of_the_same_worlds(tmp_path, capsys):
    assert program.main(["suite", "gate", "controller=cubic", "beside=[]", f"output={tmp_path}"]) == 2
    assert "beside = []: gate ranks no controllers; valid: no beside" in capsys.readouterr().err
    (tmp_path / "worlds.csv").write_text("# netbuf-gym suite sage; suite sage, version 0, digest 0\ncontroller,world\n")
    assert program.main(["suite", "sage", "controller=cubic", f"beside=[{tmp_path}/worlds.csv]", f"output={tmp_path}"]) == 2
    assert "valid: suite sage, version 1, digest" in capsys.readouterr().err


def test_a_damaged_file_beside_is_told_by_its_line(tmp_path):
    suite = SUITES["mvfst-rl"]
    edition, path = suite.load(), tmp_path / "worlds.csv"
    columns = ",".join(["controller", *rows.COLUMNS, *(metric.key for metric in suite.metrics)])
    row = ",".join(["a", "job 1", "w", "1", "2", *["0.5"] * len(suite.metrics)])

    def read_worlds(text):
        path.write_text(f"# x; {rows.describe_edition(suite.name, edition.version, edition.digest)}\n{text}")
        return rows.read_worlds(path, suite, edition)

    found = read_worlds(f"{columns}\n{row}\n{row.removesuffix('0.5').replace('a,', 'b,')}\n")
    assert found["a"]["w"]["power"] == 0.5 and math.isnan(found["b"]["w"][suite.metrics[-1].key])
    for text, says in {
        f"{columns}\n{row}\n{row[:-1]}": "line 4 is damaged: 'a,job 1,w",
        f"{columns}\n{row.removesuffix(',0.5')}\n{row}\n": "line 3 is damaged",
        f"{columns}\n{row}x\n": "line 3 is damaged",
        f"{columns}\n\n{row}\n": "line 3 is damaged: ''",
        f"{columns.replace('power', 'powder')}\n{row}\n": "has columns .*; valid: those of mvfst-rl, controller,family",
        "": r"has columns \[\]",
    }.items():
        with pytest.raises(ConfigError, match=f"beside = {path}: {says}"):
            read_worlds(text)


@pytest.mark.slow
def test_nobody_who_has_come_to_anything_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.cc").write_text("nonsense")
    assert program.main(["suite", "rfc7928", "controller=wrong.cc", "beside=[]", "output=out"]) == 1
    said = capsys.readouterr().out
    assert "no controller has results" in said and "| wrong.cc | failed |" in said
    assert "failed" in (tmp_path / "out" / "report.html").read_text()


def test_signs_and_documents():
    table = tabulate_signs(
        [Sign("a", "b", False, "1 < 2", "because"), Sign("c", "d", None, "-"), Sign("e", "f", True, "x", "unused")]
    )
    assert [row[-2:] for row in table.rows] == [["because", "no"], ["", "not known"], ["", "yes"]]
    blocks = [field_reports.Heading("a & b"), table, field_reports.Lines(["`x<y`"], listed=True)]
    page = field_reports.render_page("<t>", blocks)
    assert "<title>&lt;t&gt;</title>" in page and "<code>x&lt;y</code>" in page and page.count('class="flag"') == 1
    assert "| a | b | 1 < 2 | because | no |" in field_reports.render_markdown([Table("t", table.header, table.rows)], None)
    assert set(field_reports.TABLES) == {"field suites", "field signs", "field leagues", "field firsts"}


def test_places_are_of_whoever_took_part(monkeypatch):
    rankings = [(SUITES["pantheon"], ["cubic", "bbr", "vegas"]), (SUITES["sage"], ["bbr", "cubic"])]
    monkeypatch.setattr(field_reports, "collect_rankings", lambda task: rankings if task == "congestion_window" else [])
    table = field_reports.tabulate_places("congestion_window")
    assert table.header == ["", "controller", "ahead of", "pantheon (3)", "sage (2)"]
    assert table.rows == [["1", "bbr", "0.75", "2", "1"], ["2", "cubic", "0.50", "1", "2"], ["3", "vegas", "0.00", "3", "-"]]
    assert field_reports.tabulate_places("queue_threshold") is None
    rankings.append((SUITES["bbr3/conformance"], ["vegas", "bbr", "cubic"]))  # who is like BBRv3 is not ahead of anybody
    again = field_reports.tabulate_places("congestion_window")
    assert [row[:3] for row in again.rows] == [row[:3] for row in table.rows] and again.rows[0][-1] == "2"
    assert "bbr3/conformance ranks by likeness to a reference, and is not in the mean" in again.says


def test_kept_results_of_an_earlier_version_and_stale_ones_are_told(tmp_path, capsys, monkeypatch):
    suite = SUITES["bbr3/conformance"]
    kept = rows.read_kept(suite)[0]["bbr"]
    monkeypatch.setattr(rows, "FOLDER", tmp_path / "kept")
    edition, file = suite.load(), rows.get_file(suite, "bbr")
    words = ["suite", suite.name, "controller=cubic", "families=[tiny]", "figures=false", f"output={tmp_path / 'out'}"]
    for change, said in (
        ({"digest": "00"}, f"Kept results that are not ranked: {file}: was evaluated on suite bbr3/conformance"),
        ({"stale": "differs in 3 worlds"}, "Stale: bbr (differs in 3 worlds)."),
    ):
        rows.write(file, replace(kept, about={**kept.about, **change}), suite, edition)
        assert program.main(words) == 0
        assert said in capsys.readouterr().out and said in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.slow
def test_suites_that_rank_nobody_have_no_places():
    ranked = field_reports.collect_rankings("congestion_window")
    assert ranked and all(len(names) > 1 and suite.task == "congestion_window" for suite, names in ranked)
    assert field_reports.collect_rankings("host_buffers") == []
