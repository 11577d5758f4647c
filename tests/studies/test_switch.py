"""Families of switches' worlds: what is kept of them, that playing goes on, ratios, verdicts, and what is refused."""

import numpy as np
import pytest

from netbuf_gym.errors import CheckpointError, ConfigError, ReferenceDataError
from netbuf_gym.utils.overrides import select_overrides, split_override
from studies.common import kept
from studies.switch import families
from studies.switch import switch_tables as tables
from studies.switch.switch_tables import CONSTANT, FAIR, FAST, NAIVE, SLOW, Measurements

QUICK = ["families", "worlds=3", "duration_s=4", "families=high_load", "drops=tail", "slow=", "fast=", "threads=1"]


def replace_argument(argument):
    """Return the words of `QUICK` with another value of one key."""
    return [*select_overrides(QUICK, [split_override(argument)[0]])[1], argument]


@pytest.mark.slow
def test_rows_are_kept_and_playing_goes_on(tmp_path, capsys, monkeypatch):
    assert families.main([*QUICK, f"output={tmp_path / 'whole'}"]) == 0
    whole = kept.build_path(tmp_path / "whole", "switch", "families")
    found = tables.parse_rows(kept.read_rows(tmp_path / "whole", "switch", "families"))
    assert [who for _, _, who in found] == [who for who in tables.CONTROLLERS if who not in (SLOW, FAST)]
    slowdowns = {who: one.slowdown.mean for (_, _, who), one in found.items()}
    assert slowdowns["searched pulse, 10 ms"] != slowdowns["brief_pulse, 10 ms"] != slowdowns["brief_pulse, 100 ms"]
    assert slowdowns["fair queueing"] != slowdowns[FAIR]
    assert (kept.find_drawn_folder(tmp_path / "whole", "switch", "families") / "families.svg").stat().st_size > 1000
    rows = kept.read_rows(tmp_path / "whole", "switch", "families")
    assert families.explain_staleness(rows) == ""
    other = {key: Measurements(one.slowdowns, one.goodputs + 1) if key[-1] == "dt" else one for key, one in found.items()}
    kept.write_rows(tmp_path / "other", "switch", "families", rows.header, tables.format_rows(other))
    said = families.explain_staleness(kept.read_rows(tmp_path / "other", "switch", "families"))
    assert said.startswith("differs in 1 of 1 runs") and "most in tail high_load dt: goodputs" in said
    missing = {**rows.header, "command": f"python -m studies.switch families slow= fast={tmp_path / 'none'}"}
    kept.write_rows(tmp_path / "other", "switch", "families", missing, tables.format_rows(found))
    assert families.explain_staleness(kept.read_rows(tmp_path / "other", "switch", "families")).startswith("fast = ")
    measure, played = families._measure_controller, []

    def killed(who, *rest):
        if who == "dt":
            raise KeyboardInterrupt
        return measure(who, *rest)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(families, "_measure_controller", killed)
        families.main([*QUICK, f"output={tmp_path / 'out'}"])
    monkeypatch.setattr(families, "_measure_controller", lambda who, *rest: played.append(who) or measure(who, *rest))
    assert families.main([*QUICK, f"output={tmp_path / 'out'}"]) == 0
    assert played == ["dt", "abm", "codel", FAIR, "fair queueing"]
    assert kept.build_path(tmp_path / "out", "switch", "families").read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"tail"', '"side"', r"3: is of \['side', 'random', 'naive'\]; valid: a drop place"),
        ("1 2,", "1 x,", "3: could not convert string to float: 'x'; valid: 2 numbers, twice"),
        ("1 2,", "1,", "3: has 1 worlds; valid: 2"),
    ],
)
def test_a_damaged_row_is_named(old, new, said, tmp_path):
    text = tables.format_rows({("tail", "random", NAIVE): Measurements(np.array([1.0, 2.0]), np.array([5.0, 5.0]))})
    kept.write_rows(tmp_path, "switch", "random", {"command": "by hand", "worlds": 2}, text)
    assert tables.parse_rows(kept.read_rows(tmp_path, "switch", "random"))["tail", "random", NAIVE].slowdowns.tolist() == [1, 2]
    kept.write_rows(tmp_path, "switch", "random", {"command": "by hand", "worlds": 2}, text.replace(old, new))
    with pytest.raises(ReferenceDataError, match=said):
        tables.parse_rows(kept.read_rows(tmp_path, "switch", "random"))


def test_ratios_are_paired_by_world():
    rng = np.random.default_rng(1)
    naive = Measurements(np.exp(rng.normal(1, 1, 400)), rng.normal(5, 1, 400))
    own = Measurements(naive.slowdowns * np.exp(rng.normal(-0.5, 0.1, 400)), naive.goodputs * 0.99)
    own.slowdowns[7] = np.nan
    ratio, goodput = own.compute_ratio(naive), own.compute_goodput_ratio(naive)
    assert ratio.low < ratio.mean < ratio.high < ratio.low * 1.03 and ratio.mean == pytest.approx(np.exp(-0.5), rel=0.03)
    assert goodput.mean == pytest.approx(0.99) and 0.989 < goodput.low < goodput.high < 0.991
    assert own.slowdown.low < np.exp(np.nanmean(np.log(own.slowdowns))) < own.slowdown.high


def measured(ratios, naive=None):
    """Controllers in two families, whose ratios to the naive buffer are these, family by family."""
    found = {}
    for family, own in ratios.items():
        base = np.ones_like(own) if naive is None else naive
        for who in (NAIVE, CONSTANT, FAIR):
            found["tail", family, who] = Measurements(base, np.ones_like(own))
        found["tail", family, SLOW] = Measurements(base * own, np.ones_like(own))
    return found


def test_families_count_alike_together_and_a_seed_is_one_observation():
    rng = np.random.default_rng(2)
    noise, other = np.exp(rng.normal(0, 0.5, (2, 100)))
    alone = tables.combine_families(measured({"bbr": 2 * noise}), "tail", SLOW, NAIVE)
    same = tables.combine_families(measured({"bbr": 2 * noise, "incast": 0.5 * noise}), "tail", SLOW, NAIVE)
    unlike = tables.combine_families(measured({"bbr": 2 * noise, "incast": 0.5 * other}), "tail", SLOW, NAIVE)
    assert alone == pytest.approx(
        measured({"bbr": 2 * noise})["tail", "bbr", SLOW].compute_ratio(Measurements(np.ones(100), noise))
    )
    assert same.mean == pytest.approx(alone.mean / 2)
    assert np.log(same.high / same.low) == pytest.approx(np.log(alone.high / alone.low)), "the same noise in both families"
    assert np.log(unlike.high / unlike.low) == pytest.approx(np.log(alone.high / alone.low) / np.sqrt(2), rel=0.15)
    gaps = 2 * noise
    gaps[::3] = np.nan
    some = tables.combine_families(measured({"bbr": gaps, "incast": 0.5 * other}), "tail", SLOW, NAIVE)
    assert some.mean == pytest.approx(np.exp((np.nanmean(np.log(gaps)) + np.log(0.5 * other).mean()) / 2))


def test_the_summary_names_where_an_agent_is_worse():
    both = measured({"bbr": np.array([1.9, 2.1, 2.0]), "incast": np.array([0.5, 0.45, 0.55])})
    one, worse = tables.format_summary(both)
    assert one.startswith("* agent, 100 ms, drops at the tail, 2 families: over naive 0.99")
    assert worse.startswith("* Worse than the naive buffer by more than 3 %: agent, 100 ms, bbr, tail (1.998 [")


def test_targets_are_judged_by_means_and_by_whole_intervals():
    """Twice as good as the naive buffer, and no better than the best constant."""
    ones, worlds = np.ones(3), {}
    for drop in ("tail", "head"):
        for family in ("random", "incast"):
            for who in (NAIVE, CONSTANT, FAIR, SLOW, FAST):
                slowdown, goodput = (4.0, 1.0) if who == NAIVE else (2.0, 0.98)
                worlds[drop, family, who] = Measurements(ones * slowdown, ones * goodput)
    lines = tables.format_verdicts(worlds, worlds, worlds).splitlines()[2:]
    verdicts = [line.rpartition(" | ")[2].rstrip(" |") for line in lines]
    assert verdicts == ["holds"] * 2 + ["does not hold"] * 2 + ["holds"] * 6 + ["does not hold"] * 8
    assert "at most 2.3, below best constant's, below fq-codel's" in lines[2] and "0.980 [0.980, 0.980]" in lines[-1]


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        ("", {SLOW: "queue_threshold/ppo", FAST: "queue_threshold/ppo-10ms"}),
        (" worlds=2 slow=runs/mine fast=", {SLOW: "runs/mine"}),
    ],
)
def test_rows_are_run_again_with_the_agents_of_their_command(words, loaded, tmp_path, monkeypatch):
    header = {"command": f"python -m studies.switch families{words}", "worlds": 2, "duration_s": 60}
    found = {("tail", "random", NAIVE): Measurements(np.array([1.0, 2.0]), np.array([3.0, 4.0]))}
    kept.write_rows(tmp_path, "switch", "families", header, tables.format_rows(found))
    played = []
    monkeypatch.setattr(families, "load_agent", lambda key, name: name)
    measured = next(iter(found.values()))
    monkeypatch.setattr(families, "_measure_controller", lambda who, agents, *rest: played.append(agents) or measured)
    assert families.explain_staleness(kept.read_rows(tmp_path, "switch", "families")) == ""
    assert played == [loaded]


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("world=3", "argument 'world=3' is unknown; did you mean 'worlds='. valid: worlds="),
        ("worlds=1", "worlds = 1 is out of range; valid: 2"),
        ("families=[incasts]", "families = 'incasts' is unknown"),
        ("families=high_load,incasts", "families = 'incasts' is unknown"),
        ("drops=top", "drops = 'top'"),
        ("duration_s=x", "duration_s = 'x' is not a number"),
    ],
)
def test_bad_arguments_are_refused(argument, said):
    with pytest.raises(ConfigError, match=said):
        families.main(replace_argument(argument))
    with pytest.raises(ConfigError, match="section = 'years' is unknown; valid: random, families, 300 s"):
        families.main(["years"])


def test_agents_of_other_tasks_are_refused(tmp_path):
    for key in ("slow", "fast"):
        with pytest.raises(CheckpointError, match=f"^{key} = {tmp_path}: holds neither"):
            families.main(replace_argument(f"{key}={tmp_path}"))
    with pytest.raises(ConfigError, match="slow = 'congestion_window/ppo' is an agent of congestion_window; valid"):
        families.main(replace_argument("slow=congestion_window/ppo"))
