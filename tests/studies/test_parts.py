"""The table of the rule's parts: what stands in it, and what is refused."""

import csv

import pytest

from netbuf_gym.errors import NetbufError
from studies.rlbm import parts


@pytest.mark.slow
def test_parts_stand_beside_the_naive_buffer(tmp_path, capsys):
    output = tmp_path / "t.csv"
    assert parts.main(["worlds=4", "cc=cubic", "interval_s=0.1", f"output={output}"]) == 0
    comment, *lines = output.read_text().splitlines()
    found = list(csv.DictReader(lines))
    assert comment.endswith("parts worlds=4 cc=cubic interval_s=0.1")
    names = list(parts.contenders())
    assert [(row["drop"], row["contender"]) for row in found] == [(drop, name) for drop in ("tail", "head") for name in names]
    assert [float(row["over_naive"]) for row in found[::4]] == [1, 1]
    assert len({row["drops"] for row in found[:3]}) == 3  # naive, both parts, one of them
    assert sum(line.startswith("|") for line in capsys.readouterr().out.splitlines()) == 10


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["world=3"], "argument 'world=3' is unknown; valid: worlds="),
        (["worlds=1"], "worlds = 1 is out of range; valid: 2"),
        (["interval_s=x"], "interval_s = 'x' is not a number"),
        (["cc=reno"], "cc = 'reno' is unknown; .*valid: .*newreno"),
        (["cc=cubic,cubic"], "cc holds 'cubic' twice"),
        (["output=/nonexistent/t.csv"], "output = '/nonexistent/t.csv': its folder cannot be written"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(NetbufError, match=said):
        parts.main(["worlds=2", *arguments])
