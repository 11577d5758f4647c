"""Tables by family: what stands in them, that they are taken up, and what is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from netbuf_gym.errors import CheckpointError, ConfigError
from studies.rlbm import families
from studies.rlbm import families_table as tables
from studies.rlbm.families_table import CONSTANT, FAIR, FAST, NAIVE, SLOW, Measured

QUICK = ["worlds=3", "duration_s=4", "families=high_load", "drops=tail", "slow=", "fast=", "threads=1"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "switch.md"


@pytest.mark.slow
def test_a_table_is_written_and_taken_up(tmp_path, capsys, monkeypatch):
    output, figure = tmp_path / "t.csv.gz", tmp_path / "t.svg"
    assert families.main([*QUICK, f"output={output}", f"figure={figure}"]) == 0
    first, found = output.read_bytes(), tables.read(output, families.comment_of(3, 4), 3)
    assert [who for _, _, who in found] == [who for who in tables.CONTENDERS if who not in (SLOW, FAST)]
    slowdowns = {who: one.slowdown.mean for (_, _, who), one in found.items()}
    assert slowdowns["searched pulse, 10 ms"] != slowdowns["brief_pulse, 10 ms"] != slowdowns["brief_pulse, 100 ms"]
    assert slowdowns["fair queueing"] != slowdowns[FAIR] and figure.stat().st_size > 1000
    capsys.readouterr()
    assert families.main([*QUICK, f"output={output}"]) == 0 and output.read_bytes() == first
    assert capsys.readouterr().out.splitlines()[0].startswith("| drop")  # nothing was run
    assert families.main([*QUICK, f"output={output}", "again=dt"]) == 0 and output.read_bytes() == first
    assert capsys.readouterr().out.splitlines()[0] == "tail high_load: dt"
    with pytest.raises(ConfigError, match=r"begins with .*worlds=3.*; valid: .*worlds=4 duration_s=4"):
        families.main([*QUICK, "worlds=4", f"output={output}"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"tail"', '"side"', r"line 3: is of \['side', 'random', 'naive'\]; valid: a drop place"),
        ("1 2,", "1 x,", "line 3: could not convert string to float: 'x'; valid: 2 numbers, twice"),
        ("1 2,", "1,", "line 3: has 1 worlds; valid: 2"),
        ("slowdowns", "slow", "begins with"),
    ],
)
def test_a_damaged_file_is_named(old, new, said, tmp_path):
    path = tmp_path / "t.csv.gz"
    tables.write(path, {("tail", "random", NAIVE): Measured(np.array([1.0, 2.0]), np.array([5.0, 5.0]))}, "x")
    assert tables.read(path, "x", 2)["tail", "random", NAIVE].slowdowns.tolist() == [1, 2]
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).decode().replace(old, new).encode()))
    with pytest.raises(ConfigError, match=said):
        tables.read(path, "x", 2)
    path.write_text("no gzip")
    with pytest.raises(ConfigError, match="cannot be read"):
        tables.read(path, "x", 2)


def test_ratios_are_paired_by_world():
    rng = np.random.default_rng(1)
    naive = Measured(np.exp(rng.normal(1, 1, 400)), rng.normal(5, 1, 400))
    own = Measured(naive.slowdowns * np.exp(rng.normal(-0.5, 0.1, 400)), naive.goodputs * 0.99)
    own.slowdowns[7] = np.nan
    ratio, goodput = own.over(naive), own.goodput_over(naive)
    assert ratio.low < ratio.mean < ratio.high < ratio.low * 1.03 and ratio.mean == pytest.approx(np.exp(-0.5), rel=0.03)
    assert goodput.mean == pytest.approx(0.99) and 0.989 < goodput.low < goodput.high < 0.991
    assert own.slowdown.low < np.exp(np.nanmean(np.log(own.slowdowns))) < own.slowdown.high


def measured(ratios, naive=None):
    """Contenders in two families, whose ratios to the naive buffer are these, family by family."""
    found = {}
    for family, own in ratios.items():
        base = np.ones_like(own) if naive is None else naive
        for who in (NAIVE, CONSTANT, FAIR):
            found["tail", family, who] = Measured(base, np.ones_like(own))
        found["tail", family, SLOW] = Measured(base * own, np.ones_like(own))
    return found


def test_families_count_alike_together_and_a_seed_is_one_observation():
    rng = np.random.default_rng(2)
    noise, other = np.exp(rng.normal(0, 0.5, (2, 100)))
    alone = tables.together(measured({"bbr": 2 * noise}), "tail", SLOW, NAIVE)
    same = tables.together(measured({"bbr": 2 * noise, "incast": 0.5 * noise}), "tail", SLOW, NAIVE)
    unlike = tables.together(measured({"bbr": 2 * noise, "incast": 0.5 * other}), "tail", SLOW, NAIVE)
    assert alone == pytest.approx(measured({"bbr": 2 * noise})["tail", "bbr", SLOW].over(Measured(np.ones(100), noise)))
    assert same.mean == pytest.approx(alone.mean / 2)
    assert np.log(same.high / same.low) == pytest.approx(np.log(alone.high / alone.low)), "the same noise in both families"
    assert np.log(unlike.high / unlike.low) == pytest.approx(np.log(alone.high / alone.low) / np.sqrt(2), rel=0.15)
    gaps = 2 * noise
    gaps[::3] = np.nan
    some = tables.together(measured({"bbr": gaps, "incast": 0.5 * other}), "tail", SLOW, NAIVE)
    assert some.mean == pytest.approx(np.exp((np.nanmean(np.log(gaps)) + np.log(0.5 * other).mean()) / 2))


def test_the_summary_names_where_an_agent_is_worse():
    both = measured({"bbr": np.array([1.9, 2.1, 2.0]), "incast": np.array([0.5, 0.45, 0.55])})
    one, worse = tables.summary(both)
    assert one.startswith("* agent, 100 ms, drops at the tail, 2 families: over naive 0.99")
    assert worse.startswith("* Worse than the naive buffer by more than 3 %: agent, 100 ms, bbr, tail (1.998 [")


@pytest.mark.parametrize("part", families.PARTS)
def test_the_page_says_what_is_kept(part):
    assert families.kept(part).keys() >= {(drop, "random", who) for drop in ("tail", "head") for who in (NAIVE, SLOW, FAST)}
    assert families.written(PAGE, PAGE.read_text()) == PAGE.read_text(), f"families page={PAGE}"


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
        (["output=/nonexistent/t.csv.gz"], "output = '/nonexistent/t.csv.gz': its folder cannot be written"),
        (["page=/nonexistent.md"], "page = '/nonexistent.md' cannot be read .*; valid: docs/switch.md"),
        (["again=me"], "again = 'me'; valid: naive; best constant; agent, 100 ms;"),
        (["figure=/nonexistent/a.svg"], "figure = '/nonexistent/a.svg': its folder cannot be written"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        families.main([*QUICK, *arguments])


def test_agents_of_other_tasks_are_refused(tmp_path):
    for key in ("slow", "fast"):
        with pytest.raises(CheckpointError, match=f"^{key} = {tmp_path}: holds neither"):
            families.main([*QUICK, f"{key}={tmp_path}"])
    with pytest.raises(ConfigError, match="slow = 'congestion_window/ppo' is an agent of congestion_window; valid"):
        families.main([*QUICK, "slow=congestion_window/ppo"])


def test_everybody_is_known_by_name():
    assert set(families.PLAYERS) | set(families.AGENTS) == set(families.CONTENDERS)
    assert {who for who, (interval_s, _) in families.PLAYERS.items() if interval_s < 0.1} == {
        who for who in families.PLAYERS if who.endswith(", 10 ms")
    }
