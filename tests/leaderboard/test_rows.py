"""Files of rows: written, read, marked, and refused where they are damaged or of other worlds."""

import math
from dataclasses import replace

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import get_suite
from netbuf_gym.leaderboard import controllers, play, rows, scoring

SUITE = get_suite("mvfst-rl")
EDITION = SUITE.load()
KEYS = [metric.key for metric in SUITE.metrics]


@pytest.fixture
def made():
    """Rows of figures made by hand, the first metric of the first world missing."""
    worlds = {cell.name: dict.fromkeys(KEYS, 1 / 3 + k) for k, cell in enumerate(EDITION.cells)}
    worlds[EDITION.cells[0].name][KEYS[0]] = math.nan
    about = dict(zip(rows.ABOUT, (SUITE.name, EDITION.version, EDITION.digest, SUITE.task, "cubic"), strict=True))
    return rows.Rows({**about, "command": "x", "seconds": math.nan}, worlds)


def test_rows_come_back_to_six_digits(made, tmp_path):
    path = rows.get_file(SUITE, "cubic", tmp_path)
    rows.write(path, made, SUITE, EDITION)
    back = rows.read(path)
    rows.require_whole(back, SUITE, EDITION)
    assert path == tmp_path / "mvfst-rl" / "cubic.csv" and back.about == {**made.about, "seconds": None}
    first, second = (cell.name for cell in EDITION.cells[:2])
    assert list(back.worlds) == [cell.name for cell in EDITION.cells] and back.worlds[second][KEYS[0]] == 1.33333
    assert math.isnan(back.worlds[first][KEYS[0]]) and back.worlds[first][KEYS[1]] == 0.333333
    kept, unfit = rows.read_kept(SUITE, folder=tmp_path)
    assert kept["cubic"].worlds[second] == back.worlds[second] and unfit == []


def test_files_are_named_after_controllers():
    own = get_suite("v1/queue_threshold")
    names = [rows.get_file(own, name).name for name in ("queue_threshold/ppo-10ms", "limits:100:5", "autotuning+bbr")]
    assert names == ["ppo-10ms.csv", "limits-100-5.csv", "autotuning+bbr.csv"]


def test_a_mark_changes_the_first_line_alone(made, tmp_path):
    path = rows.get_file(SUITE, "cubic", tmp_path)
    rows.write(path, made, SUITE, EDITION)
    before = path.read_text()
    assert rows.mark_stale(path, "differs") and rows.read(path).stale == "differs" and not rows.mark_stale(path, "differs")
    assert path.read_text().split("\n")[1:] == before.split("\n")[1:]
    assert rows.mark_stale(path, "") and path.read_text() == before and not rows.mark_stale(path, "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[3:], "is no file of rows"),
        (lambda text: text.replace("netbuf-gym/rows/1", "netbuf-gym/rows/0", 1), "schema 'netbuf-gym/rows/0'"),
        (lambda text: text.replace('"controller": "cubic", ', "", 1), "is no file of rows .'controller'."),
        (lambda text: text.replace("family,world", "world,family", 1), "line 2: columns"),
        (lambda text: text.replace("1.33333", "fast", 1), "line 4 is damaged"),
        (lambda text: text[:-3], r"line 56 is damaged"),
        (lambda text: text + text.splitlines()[-1] + "\n", "line 57 is damaged: .*another world than before"),
        (lambda text: text.replace(EDITION.digest, "0" * 16, 1), "digest 0000000000000000; valid: suite mvfst-rl"),
        (lambda text: "\n".join(text.splitlines()[:-1]) + "\n", "cubic lacks 1 of 54 worlds"),
        (lambda text: text.replace(KEYS[-1], "other", 1), f"lacks {KEYS[-1]}; valid: {KEYS[0]}"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(made, tmp_path, change, said):
    path = rows.get_file(SUITE, "cubic", tmp_path)
    rows.write(path, made, SUITE, EDITION)
    path.write_text(change(path.read_text()))
    with pytest.raises(ConfigError, match=said):
        rows.require_whole(rows.read(path), SUITE, EDITION)
    kept, unfit = rows.read_kept(SUITE, folder=tmp_path)
    assert kept == {} and len(unfit) == 1


def test_rows_of_an_earlier_version_may_lack_numbers_of_flows(tmp_path):
    suite = get_suite("v1/queue_threshold")
    edition = suite.load()
    old = {cell.name: {one.key: 1.0 for one in suite.metrics if one.key not in suite.counts} for cell in edition.cells}
    about = {"suite": suite.name, "version": edition.version, "digest": edition.digest, "task": suite.task}
    path = rows.get_file(suite, "naive", tmp_path)
    rows.write(path, rows.Rows({**about, "controller": "naive"}, old), suite, edition)
    back = rows.read_kept(suite, folder=tmp_path)[0]["naive"]
    assert all(math.isnan(one["flows_completed_p0"]) and one["score"] == 1.0 for one in back.worlds.values())
    path.write_text("\n".join(line.rpartition(",,,")[0] or line for line in path.read_text().splitlines()) + "\n")
    header = path.read_text().splitlines()[1]
    path.write_text(path.read_text().replace(header, header.partition(",flows_completed")[0], 1))
    old = rows.read_kept(suite, folder=tmp_path)[0]["naive"]
    assert "flows_completed_p0" not in old.worlds[edition.cells[0].name] and scoring.score_rows(old, suite, edition).flows == {}


def test_rows_in_the_file_of_another_controller_are_refused(made, tmp_path):
    path = rows.get_file(SUITE, "vegas", tmp_path)
    rows.write(path, made, SUITE, EDITION)
    assert rows.read_kept(SUITE, folder=tmp_path) == ({}, [f"{path}: holds rows of cubic; valid: those in cubic.csv"])


def test_a_damaged_head_is_not_marked(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("# [1\n")
    with pytest.raises(ConfigError, match=r"x\.csv: is no file of rows"):
        rows.mark_stale(path, "differs")
    assert path.read_text() == "# [1\n"


def test_rows_are_stamped_with_program_machine_and_command():
    cells = EDITION.cells[:2]
    played = play.run(SUITE, cells, controllers.resolve_controller("cubic", SUITE))
    made = rows.make_rows(played, SUITE, EDITION, "a command", model_sha256=None)
    assert (
        made.about["machine"] == rows.read_processor_name()
        and made.about["command"] == "a command"
        and made.controller == "cubic"
    )
    again = made.worlds[cells[1].name]
    assert all(again[key] == float(f"{value:.6g}") for key, value in played.values[1].items() if not math.isnan(value))
    assert replace(made, where="x").to_suite_run(replace(EDITION, cells=cells)).list_values(KEYS[0])[1] == again[KEYS[0]]
