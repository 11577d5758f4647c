"""Why marks cost goodput: an excursion of a queue is answered twice. The table that says so, and what is refused."""

import csv

import pytest

from netbuf_gym.errors import NetbufError
from studies.rlbm import marks_twice


@pytest.mark.slow
@pytest.mark.parametrize(("cc", "keeps"), [("cubic", 0.7), ("newreno", 0.5)])
def test_a_lone_flow_answers_an_excursion_once_with_drops_and_twice_with_marks(cc, keeps):
    dropped, marked = (marks_twice.lone_flow(cc, place) for place in ("tail", "mark"))
    assert dropped[0] == pytest.approx(keeps, abs=0.03)
    assert marked[0] == pytest.approx(keeps**2, abs=0.04)
    assert marked[1] < 0.99 * dropped[1]  # the port has nothing to send meanwhile


@pytest.mark.slow
def test_the_table_has_each_control_and_its_root(tmp_path, capsys):
    output = tmp_path / "t.csv"
    assert marks_twice.main(["worlds=2", "threads=1", f"output={output}"]) == 0
    comment, *lines = output.read_text().splitlines()
    rows = list(csv.DictReader(lines))
    assert comment.endswith("marks_twice worlds=2")
    assert [(row["cc"], float(row["keeps"])) for row in rows] == [
        *(("cubic", 0.7), ("cubic", pytest.approx(0.83666))),
        *(("newreno", 0.5), ("newreno", pytest.approx(0.707107))),
    ]
    assert all(0 < float(row["goodput_mark_mbps"]) < 10 and row["worlds"] == "2" for row in rows)
    assert sum(line.startswith("|") for line in capsys.readouterr().out.splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["world=3"], "argument 'world=3' is unknown; valid: worlds="),
        (["worlds=0"], "worlds = 0 is out of range; valid: 1"),
        (["output=/nonexistent/t.csv"], "output = '/nonexistent/t.csv': its folder cannot be written"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(NetbufError, match=said):
        marks_twice.main(["worlds=1", *arguments])
