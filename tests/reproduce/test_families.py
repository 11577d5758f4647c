"""Tables by family: what stands in them, that they are taken up, and what is refused."""

import csv

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.reproduce.rlbm import families

QUICK = ["worlds=3", "duration_s=4", "families=high_load", "drops=tail", "slow=", "fast=", "threads=1"]


def rows(path):
    return list(csv.DictReader(path.read_text().splitlines()[1:]))


def test_a_table_is_written_and_taken_up(tmp_path, capsys):
    output, figure = tmp_path / "t.csv", tmp_path / "t.svg"
    assert families.main([*QUICK, f"output={output}", f"figure={figure}"]) == 0
    first, found = output.read_text(), rows(output)
    assert [row["contender"] for row in found] == [
        *("naive", "best constant", "brief_pulse, 100 ms", "brief_pulse, 10 ms", "searched pulse, 10 ms"),
        *("pulse, 10 ms", "fq_codel"),
    ]
    slowdowns = {row["contender"]: row["slowdown_p99_p0"] for row in found}
    assert slowdowns["searched pulse, 10 ms"] != slowdowns["brief_pulse, 10 ms"]
    assert found[0]["over_naive"] == found[1]["over_constant"] == "1" and figure.stat().st_size > 1000
    capsys.readouterr()
    assert families.main([*QUICK, f"output={output}"]) == 0 and output.read_text() == first
    assert capsys.readouterr().out.splitlines()[0].startswith("| drop")  # nothing was run
    with pytest.raises(ConfigError, match="worlds=4 duration_s=4"):
        families.main([*QUICK, "worlds=4", f"output={output}"])
    output.write_text(first.replace("over_fq_codel_low", "low"))
    with pytest.raises(ConfigError, match="line 2: column 12 = 'low'"):
        families.main([*QUICK, f"output={output}"])


@pytest.mark.parametrize(("column", "value", "valid"), [(4, "1.x", "a number"), (0, "side", "one of tail, head")])
def test_a_damaged_cell_is_named(column, value, valid, tmp_path):
    comment, names, *lines = families.TABLE.read_text().splitlines()
    path, cells = tmp_path / "t.csv", lines[0].split(",")
    cells[column] = value
    path.write_text("\n".join([comment, names, ",".join(cells), *lines[1:]]))
    with pytest.raises(ConfigError, match=rf"t.csv', line 3: {names.split(',')[column]} = '{value}'; valid: {valid}"):
        families.read(path, comment.removeprefix("# "))


def test_ratios_are_paired_by_world():
    rng = np.random.default_rng(1)
    naive = np.exp(rng.normal(1, 1, 400))
    own = (naive * np.exp(rng.normal(-0.5, 0.1, 400)), 1.98)
    own[0][7] = np.nan
    row = families._row(own, (naive, 2.0), (naive * 0.5, 2.0), (naive, 1.0))
    assert row["worlds"] == 399 and row["goodput_over_naive"] == pytest.approx(0.99)
    assert row["over_naive_low"] < row["over_naive"] < row["over_naive_high"] < row["over_naive_low"] * 1.03
    assert row["over_naive"] == pytest.approx(np.exp(-0.5), rel=0.03)
    assert row["over_constant"] == pytest.approx(2 * row["over_naive"]) and row["over_fq_codel"] == row["over_naive"]


def test_families_count_alike_together():
    def row(family, ratio, spread):
        ends = (("", ratio), ("_low", ratio / spread), ("_high", ratio * spread))
        ratios = {f"over_{rival}{end}": value for rival in families.RIVALS for end, value in ends}
        return {"drop": "tail", "contender": families.SLOW, "family": family, **ratios}

    one, worse = families.summary([row("bbr", 2.0, 1.1), row("incast", 0.5, 1.1)])[1:]
    assert one == "* agent, 100 ms, drops at the tail, 2 families: " + ", ".join(
        f"over {rival} 1.000 [0.935, 1.070]" for rival in ("naive", "constant", "fq-codel")
    )  # 1.1 to the power of 1 / sqrt 2
    assert worse == "* Worse than the naive buffer by more than 3 %: agent, 100 ms, bbr, tail (2.000 [1.818, 2.200])"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["world=3"], "argument 'world=3' is unknown; valid: worlds="),
        (["worlds=1"], "worlds = 1 is out of range; valid: 2"),
        (["families=incasts"], "families = 'incasts' is unknown"),
        (["drops=top"], "drops = 'top'"),
        (["rules=no"], "rules = 'no' is unknown; valid: true, false"),
        (["duration_s=x"], "duration_s"),
        (["figure=a.xyz"], "a.xyz: cannot draw a xyz; valid: png"),
        (["figure=/nonexistent/a.svg"], "figure = '/nonexistent/a.svg': its folder cannot be written"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        families.main([*QUICK, *arguments])


def test_agents_of_other_tasks_are_refused():
    with pytest.raises(ConfigError, match="slow = 'congestion_window/ppo' is an agent of congestion_window; valid"):
        families.main([*QUICK, "slow=congestion_window/ppo"])
