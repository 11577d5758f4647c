"""The search of the pulse's settings: what it draws and measures, who goes on, and that it is taken up again."""

import csv

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.queue_threshold import BriefPulse
from studies.rlbm import tune_pulse

SHORT = {"name": "rlbm/cubic-100-0.9", "duration_s": 8.0}
INTERVAL_S = 0.01


def test_candidates_are_drawn_within_their_ranges_and_are_always_the_same():
    drawn = tune_pulse.drawn(200)
    assert drawn == tune_pulse.drawn(200) and drawn[:9] == tune_pulse.drawn(9)
    for name, (low, high, factors) in tune_pulse.RANGES.items():
        values = np.array([one[name] for one in drawn])
        assert low <= values.min() and values.max() <= high
        middle = (low * high) ** 0.5 if factors else (low + high) / 2
        assert 0.35 < np.mean(values < middle) < 0.65
        own = getattr(BriefPulse(), name)
        assert low <= own <= high
    for one in drawn[:5]:
        BriefPulse(**one)


def test_a_third_goes_on_until_three_have_played():
    assert tune_pulse.rounds(81) == [81, 27, 9, 3] and tune_pulse.rounds(10) == [10, 3] and tune_pulse.rounds(3) == [3]


@pytest.mark.slow
def test_candidates_are_judged_over_the_rule_in_the_same_worlds():
    rule = tune_pulse.played(BriefPulse(), SHORT, range(4), INTERVAL_S)
    same = tune_pulse.judged(rule, rule)
    assert (same["over_rule"], same["over_rule_low"], same["over_rule_high"], same["goodput_over_rule"]) == (1, 1, 1, 1)
    never = tune_pulse.played(BriefPulse(tail_ms=1000, shut_ms=None), SHORT, range(4), INTERVAL_S)
    judged = tune_pulse.judged(never, rule)
    assert judged["over_rule"] == pytest.approx(np.exp(np.mean(never[0] - rule[0]))) and judged["over_rule"] != 1
    assert judged["over_rule_low"] < judged["over_rule"] < judged["over_rule_high"] and judged["worlds"] == 4
    unknown = (np.array([np.nan, *rule[0][1:]]), rule[1])
    assert tune_pulse.judged(unknown, rule)["worlds"] == 3


def test_what_delivers_too_little_comes_last():
    rows = [
        {"over_rule": ratio, "goodput_over_rule": goodput} for ratio, goodput in ((0.9, 0.997), (0.99, 1.0), (0.95, 0.9981))
    ]
    assert sorted(rows, key=tune_pulse.rank) == [rows[2], rows[1], rows[0]]


@pytest.mark.slow
def test_a_search_is_written_as_it_goes_and_taken_up_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tune_pulse, "_scenario", lambda: SHORT)
    table, asked = tmp_path / "table.csv", []
    play = tune_pulse.played

    def played(contender, scenario, seeds, interval_s):
        asked.append((contender.every_ms, seeds))
        return play(contender, scenario, seeds, interval_s)

    monkeypatch.setattr(tune_pulse, "played", played)
    arguments = ["candidates=4", "worlds=2", "jobs=1", f"output={table}"]
    assert tune_pulse.main(arguments) == 0
    whole, said = table.read_text(), capsys.readouterr().out
    comment, head, *lines = whole.splitlines()
    assert comment.endswith("tune_pulse interval_s=0.01 candidates=4 worlds=2") and len(lines) == 7
    table.write_text("\n".join((comment, head, *lines[:2])) + "\n")  # as an interruption leaves it
    asked.clear()
    assert tune_pulse.main(arguments) == 0
    assert table.read_text() == whole and capsys.readouterr().out == said
    times = [one["every_ms"] for one in tune_pulse.drawn(4)]
    assert asked[:3] == [(100.0, range(2)), (times[2], range(2)), (times[3], range(2))]
    assert [seeds for _, seeds in asked[3:]] == [range(2, 6)] * 4  # the rule and the best three, in worlds not played yet

    rows = list(csv.DictReader(table.read_text().splitlines()[1:]))
    assert [(row["first_seed"], row["candidate"]) for row in rows[:4]] == [("0", str(k)) for k in range(4)] and len(rows) == 7
    worst = max(rows[:4], key=lambda row: tune_pulse.rank({key: float(value) for key, value in row.items()}))
    assert {row["candidate"] for row in rows[4:]} == {str(k) for k in range(4)} - {worst["candidate"]}
    asked.clear()
    assert tune_pulse.main(arguments) == 0 and not asked and capsys.readouterr().out == said
    with pytest.raises(ConfigError, match=r"valid: '# netbuf-gym .*candidates=5 worlds=2', or no such"):
        tune_pulse.main(["candidates=5", *arguments[1:]])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda lines: [lines[0], lines[1].replace("bursts", "burst"), *lines[2:]],
            "line 2: column 8 = 'burst'; valid: the columns first_seed, candidate, ",
        ),
        (lambda lines: [*lines[:-1], lines[-1][:20]], r"line \d+: \w+ = ''; valid: a number"),
        (lambda lines: [*lines[:-1], "x" + lines[-1]], r"line \d+: first_seed = 'x\d+'; valid: a whole number"),
        (lambda lines: lines[:-1], r"has \[81, 27, 9, 2\] rows by round; valid"),
        (lambda lines: lines[:2], r"has \[\] rows"),
    ],
)
def test_a_table_that_is_damaged_or_unfinished_is_no_result(damage, said, tmp_path, monkeypatch):
    lines = tune_pulse.TABLE.read_text().splitlines()
    monkeypatch.setattr(tune_pulse, "TABLE", tmp_path / "table.csv")
    tune_pulse.TABLE.write_text("\n".join(lines) + "\n")
    assert tune_pulse.best()
    tune_pulse.TABLE.write_text("\n".join(damage(lines)) + "\n")
    with pytest.raises(ConfigError, match=said):
        tune_pulse.best()


def test_the_committed_search_is_whole():
    rows = tune_pulse.read(tune_pulse.TABLE, tune_pulse.TABLE.read_text().splitlines()[0].removeprefix("# "))
    by_round = [sum(first == one for first, _ in rows) for one in sorted({first for first, _ in rows})]
    assert by_round == tune_pulse.rounds(81)
    found = tune_pulse.best()
    last = [row for (first, _), row in rows.items() if first == max(first for first, _ in rows)]
    ratios = {row["over_rule"]: {name: row[name] for name in tune_pulse.RANGES} for row in last}
    assert found == ratios[min(ratios)] and all(row["goodput_over_rule"] > tune_pulse.LEAST_GOODPUT for row in last)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("pairs=3", "'pairs=3' is unknown; valid: "),
        ("candidates=2", "candidates = 2 is out of range; valid: 3"),
        ("worlds=x", "worlds = 'x' is not a whole number"),
        ("interval_s=0", "interval_s = 0"),
    ],
)
def test_bad_arguments_are_refused(argument, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        tune_pulse.main([argument, f"output={tmp_path / 'table.csv'}"])
    assert not list(tmp_path.iterdir())
