"""The judging of receiver agents (studies/receiver): paired intervals, claims, and what breaks paths."""

import math

import numpy as np
import pytest

pytest.importorskip("torch")

from netbuf_gym import traces
from netbuf_gym.errors import NetbufError
from netbuf_gym.traces import RateTrace
from netbuf_gym.utils.statistics import Interval
from studies.common import kept
from studies.receiver import agent, goal, measured, refill_search, survival
from studies.receiver import receiver_claims as claims
from studies.receiver.receiver_claims import NetworkTable, drop_constants, subtract, summarise
from studies.receiver.survival import Trial
from studies.receiver.survival import measure_trial as measure_trial


def rows_of(figures, units=20):
    """Rows of controllers whose utility, share and queueing are these, the unit's own part being common to all."""
    generator, rows = np.random.default_rng(1), []
    for unit in range(units):
        common = generator.normal()
        for buffer in ("1 BDP", "4 BDP"):
            for name, (utility, share, queue) in figures.items():
                noise = 0.01 * generator.normal()
                rows.append(
                    {"network": "4g", "trace": f"t{unit % 5}", "start_s": 0.0, "seed": unit, "rtt_ms": 40.0, "buffer": buffer}
                    | {"controller": name, "utility": utility + common + noise, "share": share + noise / 10, "data_mb": 5.0}
                    | {"queue_delay_mean_ms": queue, "queue_delay_p95_ms": queue, "loss_rate": 0.0}
                )
    return rows


def claims_of(figures):
    return summarise(rows_of(figures))["networks"]["4g"]["claims"]["all"]


def test_margins_are_paired():
    table = NetworkTable(rows_of({"agent": (0.60, 0.9, 10), "cubic": (0.58, 0.9, 90), "bbr": (0.60, 0.9, 10)}))
    margin = table.compare_with_agent("utility", "cubic", subtract)
    assert margin.low > 0.01 and margin.high < 0.03  # though units differ by 1
    assert margin.low < margin.mean < margin.high
    even = table.compare_with_agent("utility", "bbr", subtract)
    assert even.low < 0 < even.high
    by_trace = table.compare_with_agent("utility", "cubic", subtract, by_trace=True)
    assert by_trace.mean == margin.mean and by_trace != margin


def test_utility_must_be_above_every_other():
    good = claims_of({"agent": (0.6, 0.9, 10), "cubic": (0.5, 0.9, 90), "keep": (0.5, 0.9, 10)})
    assert good["utility"] == {"holds": True, "not beaten": []}
    bad = claims_of({"agent": (0.6, 0.9, 10), "cubic": (0.5, 0.9, 90), "keep": (0.6, 0.9, 10)})
    assert bad["utility"] == {"holds": False, "not beaten": ["keep"]}


def test_of_constant_actions_the_best_is_met():
    table = NetworkTable(rows_of({"agent": (0.6, 0.9, 10), "constant_0": (0.1, 0.5, 5), "constant_1": (0.7, 0.9, 5)}))
    assert drop_constants(table) == ["agent", "constant_1"]


@pytest.mark.parametrize(
    "agent, other, name, holds",
    [
        ((0.95, 10.0), (0.85, 10.1), "vegas", True),  # 10 % more data at no more queueing
        ((0.95, 10.2), (0.85, 10.1), "vegas", False),
        ((0.92, 10.0), (0.85, 10.1), "vegas", False),
        ((0.86, 7.0), (0.85, 10.1), "vegas", True),  # 30 % less queueing at no less data
        ((0.86, 7.2), (0.85, 10.1), "vegas", False),
        ((0.83, 7.0), (0.85, 10.1), "vegas", False),
        ((0.90, 90.0), (0.85, 80.0), "cubic", True),  # 4 % more data
        ((0.87, 41.0), (0.85, 80.0), "cubic", False),
        ((0.93, 39.0), (0.97, 80.0), "cubic", True),  # no less than 95 % of it at under half of its queueing
        ((0.91, 39.0), (0.97, 80.0), "cubic", False),
        ((0.93, 41.0), (0.97, 80.0), "cubic", False),
    ],
)
def test_claims_are_what_is_asked(agent, other, name, holds):
    found = claims_of({"agent": (0.6, *agent), name: (0.5, *other)})[name]
    assert found["holds"] is holds
    assert found["data"][0] == pytest.approx(agent[0] / other[0], rel=0.01)


def trial_of(test, rates, variant="queue hold", reference=None):
    """A trial in which these arrive: Mbit/s of each 100 ms, of one flow after the other."""

    class World:
        flows = [None] * len(rates)
        duration_s = len(rates[0]) / 10

    trial = Trial(test, variant, 10.0, 40.0, "1 BDP", World(), agents=len(rates), reference=reference)
    arrived = [np.cumsum(np.array(rate) * 1e6 / 8 / 10) for rate in rates]
    for k in range(len(rates[0])):
        own = [float(one[k]) for one in arrived]
        trial.record.append([(k + 1) / 10, *own, *own, 0.01 * k, k])
    return trial


def outage(late_s, after):
    """10 Mbit/s, nothing from 20 s to 30 s and `late_s` more, then this rate for 2 s, and all of it."""
    rate = np.full(600, 10.0)
    rate[200 : 300 + round(late_s * 10)] = 0
    begin = 300 + round(late_s * 10)
    rate[begin : begin + 40] = after
    return [rate]


@pytest.mark.parametrize(
    "late_s, after, variant, passes",
    [
        (0.0, 9.0, "queue hold", True),
        (1.5, 9.0, "queue hold", True),
        (2.5, 9.0, "queue hold", False),
        (2.5, 9.0, "queue drop", True),  # its time begins with the first delivery
        (0.0, 5.0, "queue hold", False),
        (0.0, 5.0, "queue drop", False),
    ],
)
def test_recovery_is_counted_from_the_return_or_from_the_first_delivery(late_s, after, variant, passes):
    assert measure_trial(trial_of("outage", outage(late_s, after), variant))["passes"] is passes


def test_what_never_comes_back_fails():
    rate = np.full(600, 10.0)
    rate[200:] = 0
    for variant in ("queue hold", "queue drop"):
        found = measure_trial(trial_of("outage", [rate], variant))
        assert found["passes"] is False and found["value"] == math.inf


def test_steps_ways_back_and_fairness_are_measured():
    rate = np.full(600, 10.0)
    rate[250:] = 8.9
    step = measure_trial(trial_of("delay step", [rate]))
    assert step["value"] == pytest.approx(0.89) and step["passes"] is False
    back = measure_trial(trial_of("way back", [rate], reference=trial_of("", [np.full(600, 11.0)])))
    assert back["value"] == pytest.approx((10 * 15 + 8.9 * 15) / 30 / 11, rel=1e-3) and back["passes"] is True
    shares = np.zeros((2, 400))
    shares[0, :], shares[0, 200:], shares[1, 200:] = 10.0, 7.0, 3.0
    fair = measure_trial(trial_of("fairness", shares))
    assert fair["value"] == pytest.approx(100 / (2 * 58), rel=1e-3) and fair["passes"] is False
    assert measure_trial(trial_of("beside", [rate, rate]))["passes"] is None


def test_the_command_keeps_rows_and_shows_their_tables(tmp_path, capsys):
    folder, out = tmp_path / "traces", tmp_path / "out"
    folder.mkdir()
    traces.write(RateTrace([0.0, 30.0], [4.0, 2.0], 60.0), folder / "a.csv")
    traces.write(traces.generate("4g", duration_s=60, seed=1, mean_mbps=3), folder / "b.down")
    named = ["--controllers", "cubic", "nuwa_k2", "keep", "no_such_control", "--no-constants"]
    status = agent.main(["constant:5", "--traces", str(folder), "--networks", "--seeds", "1", *named, "--out", str(out)])
    printed, found = capsys.readouterr().out, kept.read_rows(out, "receiver", "worlds")
    assert status == 0 and printed == claims.format_worlds(found) + "\n"
    assert "This build lacks no_such_control." in printed and "2 traces, 2 units, 6 worlds" in printed
    assert found.header["command"].startswith("python -m studies.receiver agent constant:5 --traces DIR --networks")
    rows = claims.parse_rows(found)
    assert len(rows) == 2 * 3 * 4 and {row["controller"] for row in rows} == {"agent", "cubic", "nuwa_k2", "keep"}
    means = claims.summarise(rows)["networks"]["traces"]["means"]["all"]
    assert means["agent"] == means["keep"] and means["agent"]["utility"] > means["cubic"]["utility"]
    with pytest.raises(NetbufError, match="nowhere"):
        agent.main(["constant:5", "--traces", str(tmp_path / "nowhere")])


@pytest.mark.parametrize(
    ("data", "queueing", "margin", "met"),
    [
        (1.0, 0.33, (0.01, 0.001, 0.02), True),
        (0.999, 0.33, (0.01, 0.001, 0.02), False),
        (1.0, 0.34, (0.01, 0.001, 0.02), False),
        (1.0, 0.33, (0.01, -0.001, 0.02), False),
        (1.0, 0.33, None, False),
    ],
)
def test_the_goal_asks_for_data_queueing_and_utility(data, queueing, margin, met):
    given = None if margin is None else Interval(*margin)
    assert goal.meets_goal(Interval(data, 0.9, 1.1), Interval(queueing, 0.1, 0.9), given) is met


def test_the_goals_command_keeps_rows_and_shows_who_reaches_it(tmp_path, capsys):
    folder, out = tmp_path / "slow", tmp_path / "out"
    folder.mkdir()
    traces.write(RateTrace([0.0, 30.0], [4.0, 2.0], 60.0), folder / "a.csv")
    named = ["--more", f"slow={folder}", "--model", "constant:5", "--controllers", "refill", "--out", str(out)]
    assert goal.main(named) == 0
    printed, found = capsys.readouterr().out, kept.read_rows(out, "receiver", "goal")
    assert printed == goal.format_goal(found) + "\n" and "### slow, evaluation: 1 units, 4 worlds" in printed
    rows = claims.parse_rows(found)
    assert {row["controller"] for row in rows} == {"agent", "refill", "keep", "cubic"} and len(rows) == 16
    assert {row["network"] for row in rows} == {"slow"} and str(tmp_path) not in found.header["command"]
    with pytest.raises(NetbufError, match=r"--more = 'slow'; valid: NAME=FOLDER"):
        goal.main(["--more", "slow"])
    with pytest.raises(NetbufError, match="neither --traces nor --more gives a world"):
        goal.main([])


def test_the_search_begins_with_the_rule_as_shipped(capsys):
    assert refill_search.main(["--trials", "1", "--worlds", "1"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert "as shipped" in first and all(name in first for name in ("4g:", "5g:", "fast:"))
    assert len(others) <= 1 and all(float(line.split()[0]) > float(first.split()[0]) for line in others)


def test_measurements_of_receivers_are_kept_row_by_row():
    """Tables of rows by hand: the worse drift, the least index of the seeds, means of shares."""
    delays = [
        {
            "window": "fixed",
            "link": "1 Mbit/s",
            "change_ms": str(change),
            "unit_us": str(unit),
            "error_ms": error,
        }
        for change in measured.CHANGES_MS
        for unit in measured.UNITS
        for error in ("1.5", "2.25")
    ]
    assert measured.format_delay_table(delays).splitlines()[-1] == "| 1 Mbit/s | fixed |" + " 2.25 |" * 6
    world = {"rtt_ms": "20", "buffer_packets": "100", "target_ms": "25"}
    indices = {"jain_2": "0.99", "jain_4": "1", "rate_mbps": "9.5"}
    fair = [world | indices | {"jain_3": value} for value in ("0.94", "0.95")]
    assert measured.format_fairness_table(fair).splitlines()[::4] == [
        "Jain's index, the least of 2 seeds; 5 of 6 stages reach 0.95:",
        "| 20 | 100 | 25 | 0.990 | 0.940 | 1.000 | 9.50 |",
    ]
    beside = [world | dict(zip(measured.SHARES, shares, strict=True)) for shares in ("1122", "3344")]
    assert measured.format_cubic_table(beside).splitlines()[-1] == "| 100 | 25 | 2.00, 2.00 | 3.00, 3.00 | 0.94 |"


@pytest.mark.slow
def test_what_breaks_paths_is_run():
    survival.SIZES["tiny"] = {"rate_mbps": (5,), "rtt_ms": (40,), "buffer": ("4 BDP",), "agents": (2,)}
    try:
        players, env, _ = agent.load_controllers("constant:6", ["nuwa_k2"], constants=False)
        rows = survival.play_trials(players, env, "tiny")
    finally:
        del survival.SIZES["tiny"]
    assert len(rows) == 2 * 9
    assert {(row["test"], row["variant"]) for row in rows} >= {
        ("outage", "queue hold"),
        ("fairness", "2 flows"),
        ("beside", "bbr"),
    }
    assert all(row["passes"] for row in rows if row["test"] in ("outage", "delay step", "fairness"))
    assert all(0 <= row["share"] <= 1.01 for row in rows)
