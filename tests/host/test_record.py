"""What a tuner did, in CSV: a row as soon as a step is over, after those of former runs."""

import csv
from itertools import pairwise

from netbuf_gym.host.log import Log, ThinnedSteps
from netbuf_gym.host.tuner import Step


def step(time_s, **telemetry):
    return Step(time_s, {"latency_s": 0.1, **telemetry}, {"net.ipv4.tcp_wmem": (1, 2, 3)}, notes=("one, with a comma",))


def rows(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_a_second_run_goes_on_after_the_first(tmp_path):
    path = tmp_path / "tune.csv"
    for _ in range(2):
        log = Log(str(path))
        for time_s in (5.0, 10.0):
            log.add(step(time_s))
    found = rows(path)
    assert [row["time_s"] for row in found] == ["5.0", "10.0"] * 2
    assert found[3]["net.ipv4.tcp_wmem max"] == "3" and found[3]["notes"] == "one, with a comma"


def test_a_row_that_was_cut_off_spoils_no_other(tmp_path):
    path = tmp_path / "tune.csv"
    Log(str(path)).add(step(5.0))
    path.write_text(path.read_text() + "10.0,0.1")
    Log(str(path)).add(step(5.0))
    assert [row["time_s"] for row in rows(path)] == ["5.0", "10.0", "5.0"]


def test_a_file_of_other_columns_is_kept_beside(tmp_path):
    path = tmp_path / "tune.csv"
    for number in range(3):
        Log(str(path)).add(step(5.0, **{f"more_{number}": 1.0}))
    assert "more_2" in rows(path)[0] and "more_0" in rows(tmp_path / "tune.csv.1")[0]
    assert "more_1" in rows(tmp_path / "tune.csv.2")[0]


def test_of_a_long_run_a_part_is_kept_from_its_begin_to_its_end():
    kept = ThinnedSteps(most=10)
    for number in range(1000):
        kept.add(step(float(number)))
    times = [one.time_s for one in kept.steps]
    assert 5 <= len(times) <= 10 and times[0] == 0 and times[-1] > 870
    assert len({late - early for early, late in pairwise(times)}) == 1
