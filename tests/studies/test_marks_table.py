"""The table of marks in place of drops: what stands in it, and what is refused."""

import csv

import pytest

from netbuf_gym import rollout
from netbuf_gym.errors import NetbufError
from studies.rlbm import marks


@pytest.mark.slow
def test_marks_stand_beside_drops(tmp_path, capsys):
    output = tmp_path / "t.csv"
    assert marks.main(["worlds=4", "contenders=naive,brief_pulse", "threads=1", f"output={output}"]) == 0
    comment, *lines = output.read_text().splitlines()
    assert comment.endswith("python -m studies.rlbm.marks worlds=4 contenders=naive,brief_pulse")
    rows = {(row["contender"], row["place"]): row for row in csv.DictReader(lines)}
    assert list(rows) == [(name, place) for name in ("naive", "brief_pulse") for place in marks.PLACES]
    assert [float(rows[name, "tail"]["over_tail"]) for name in ("naive", "brief_pulse")] == [1, 1]
    dropped = {place: float(rows["brief_pulse", place]["drops"]) for place in marks.PLACES}
    assert dropped["mark"] < 0.2 * dropped["tail"]  # but for SYNs and what exceeds the buffer
    assert sum(line.startswith("|") for line in capsys.readouterr().out.splitlines()) == 8


def test_its_worlds_are_the_same_but_for_what_becomes_of_packets():
    drawn = [
        rollout.draw("queue_threshold", {"name": "rlbm/random", "ecn": True, **asked}, [2_000_003])[0].scenario
        for asked in marks.PLACES.values()
    ]
    switches = [one.switches[0] for one in drawn]
    assert [(one.drop, one.congested) for one in switches] == [("tail", "drop"), ("head", "drop"), ("tail", "mark")]
    assert all(one.traffic == drawn[0].traffic and one.traffic.senders[0].ecn for one in drawn)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["world=3"], "argument 'world=3' is unknown; valid: worlds="),
        (["worlds=1"], "worlds = 1 is out of range; valid: 2"),
        (["contenders=nobody"], "nobody"),
        (["contenders=queue_threshold/nobody"], "queue_threshold/nobody"),
        (["contenders=host_buffers/dqn"], "an agent of host_buffers; valid: one of queue_threshold"),
        (["contenders=naive,naive"], "contenders = 'naive,naive' has one of them twice"),
        (["output=/nonexistent/t.csv"], "output = '/nonexistent/t.csv': its folder cannot be written"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(NetbufError, match=said):
        marks.main(["worlds=2", "contenders=naive", *arguments])
