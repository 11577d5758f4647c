import math
from pathlib import Path

import pytest

from netbuf_gym.validation.cells import ALONE, DISTRIBUTION, DROPS, GOODPUT, GROUPED, LOSS_RATE, QUEUE_DELAY, Cell, Setting
from netbuf_gym.validation.judging import NOT_JUDGED, OUT, WITHIN, choose_judging, judge_cell, judge_groups, standard_error


def setting(kind="ns3-dumbbell", cc="NewReno", flows=1, buffer=40, loss=0.0, label="L", **more) -> Setting:
    fields = {"rate_mbps": 10.0, "rtt_ms": 20.0, "duration_s": 60.0, "warmup_s": 10.0}
    return Setting(kind=kind, label=label, cc=cc, flows=flows, buffer_packets=buffer, loss=loss, **{**fields, **more})


def cell(ours, reference=(10.0, 100.0, 100.0), third=DROPS, not_judged="", **kwargs) -> Cell:
    """Values of goodput, delay and drops (or loss rate): numbers, or lists with one for each seed."""
    names = (GOODPUT, QUEUE_DELAY, third)

    def lists(values):
        return {n: list(v) if isinstance(v, (list, tuple)) else [v] for n, v in zip(names, values, strict=True)}

    made = Cell(setting=setting(**kwargs), file=Path("a.csv"), line=2, not_judged=not_judged)
    made.reference, made.ours = lists(reference), lists(ours)
    return made


def linux(ours, reference=(10.0, 100.0, 0.01), cc="cubic", **kwargs) -> Cell:
    return cell(ours, reference, third=LOSS_RATE, kind="linux-dumbbell", cc=cc, **kwargs)


@pytest.mark.parametrize(
    ("kwargs", "how"),
    [
        ({"cc": "NewReno"}, ALONE),
        ({"cc": "LinuxReno"}, ALONE),
        ({"cc": "NewReno", "buffer": 150000}, ALONE),
        ({"cc": "Cubic", "flows": 4, "qdisc": "CoDel"}, ALONE),
        ({"cc": "Cubic", "flows": 4, "qdisc": "Red", "loss": 0.01}, ALONE),
        ({"cc": "NewReno", "flows": 2}, GROUPED),
        ({"cc": "NewReno", "loss": 1e-4}, GROUPED),
        ({"cc": "Cubic"}, GROUPED),
        ({"cc": "WestwoodPlus"}, GROUPED),
        ({"cc": "Cubic", "buffer": 150000}, GROUPED),
        ({"cc": "Cubic", "buffer": 150000, "loss": 1e-4}, DISTRIBUTION),
        ({"cc": "NewReno", "buffer": 150000, "loss": 1e-4, "flows": 2}, DISTRIBUTION),
        ({"cc": "NewReno", "kind": "ns3-lasthop", "rate_trace": "4g.csv"}, GROUPED),
        ({"cc": "reno", "kind": "linux-dumbbell"}, GROUPED),
        ({"cc": "reno", "kind": "linux-dumbbell", "buffer": 150000, "loss": 1e-4}, GROUPED),
    ],
)
def test_how_a_cell_is_judged(kwargs, how):
    judged = setting(**kwargs)
    assert judged.family.choose_judging(judged) == how


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ((10.099, 104.9, 109.9), WITHIN),
        ((9.901, 95.1, 90.1), WITHIN),
        ((10.11, 100, 100), OUT),
        ((9.89, 100, 100), OUT),
        ((10, 105.1, 100), OUT),
        ((10, 100, 111), OUT),
        ((math.nan, 100, 100), OUT),
        ((10, math.nan, 100), OUT),
    ],
)
def test_single_lossless_newreno_cells_have_the_tight_tolerance(ours, verdict):
    assert judge_cell(cell(ours)).verdict == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [((10, 2.9, 6), WITHIN), ((10, 3.1, 5), OUT), ((10, 2, 3.9), OUT)],
)
def test_small_delays_and_counts_have_a_floor(ours, verdict):
    assert judge_cell(cell(ours, reference=(10, 2.0, 5))).verdict == verdict


@pytest.mark.parametrize(
    ("ours", "as_cell", "as_group"),
    [
        ((10.19, 111.9, 119.9), WITHIN, WITHIN),
        ((10.21, 100, 100), WITHIN, OUT),
        ((10.39, 123.9, 139.9), WITHIN, OUT),
        ((10.41, 100, 100), OUT, OUT),
        ((10, 124.1, 100), OUT, OUT),
        ((10, 100, 140.1), OUT, OUT),
    ],
)
def test_grouped_cells_have_twice_their_groups_tolerance(ours, as_cell, as_group):
    judged = cell(ours, cc="Cubic")
    assert judge_cell(judged).verdict == as_cell
    (group,) = judge_groups([judged])
    assert group.verdict == as_group


def test_a_groups_means_may_even_out_and_its_cells_may_not():
    cells = [cell((10.3, 100, 100), cc="Cubic", buffer=10), cell((9.7, 100, 100), cc="Cubic", buffer=20)]
    (group,) = judge_groups(cells)
    assert group.verdict == WITHIN and group.comparisons[0].ours == pytest.approx(10)
    assert [judge_cell(c).verdict for c in cells] == [WITHIN, WITHIN]
    cells = [cell((10.5, 100, 100), cc="Cubic", buffer=10), cell((9.5, 100, 100), cc="Cubic", buffer=20)]
    assert judge_groups(cells)[0].verdict == WITHIN and [judge_cell(c).verdict for c in cells] == [OUT, OUT]


def test_a_group_is_one_scheme_on_one_path_with_all_sizes_inside():
    same = [cell((10, 100, 100), cc="Cubic", **k) for k in ({}, {"flows": 8}, {"buffer": 5}, {"loss": 0.01})]
    other = [
        cell((10, 100, 100), cc="Cubic", **k)
        for k in ({"label": "M"}, {"rate_mbps": 20.0}, {"rtt_ms": 30.0}, {"kind": "ns3-lasthop", "rate_trace": "4g.csv"})
    ]
    groups = judge_groups([*same, *other, cell((10, 100, 100)), cell((10, 100, 100), cc="WestwoodPlus")])
    assert [len(group.cells) for group in groups] == [4, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("cc", "ours", "verdict"),
    [
        ("cubic", (10.19, 111.9, 0.0119), WITHIN),
        ("cubic", (10.21, 100, 0.01), OUT),
        ("cubic", (10, 112.1, 0.01), OUT),
        ("cubic", (10, 100, 0.0121), OUT),
        ("bbr", (10.29, 124.9, 0.0119), WITHIN),
        ("bbr", (10.31, 100, 0.01), OUT),
        ("bbr", (10, 125.1, 0.01), OUT),
    ],
)
def test_linux_groups(cc, ours, verdict):
    (group,) = judge_groups([linux(ours, cc=cc)])
    assert group.verdict == verdict


@pytest.mark.parametrize(("cc", "floor_ms"), [("reno", 2.0), ("bbr", 3.0)])
def test_linux_floors(cc, floor_ms):
    def verdict(delay, loss):
        return judge_groups([linux((10, delay, loss), reference=(10, 5.0, 1e-4), cc=cc)])[0].verdict

    assert verdict(5 + floor_ms - 0.01, 2.9e-4) == WITHIN
    assert verdict(5 + floor_ms + 0.01, 1e-4) == OUT
    assert verdict(5, 3.1e-4) == OUT


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [((9.81, 20.9, 0), WITHIN), ((9.79, 20.0, 0), OUT), ((10.0, 23.1, 0), OUT), ((10.0, 17.1, 900), WITHIN)],
)
def test_queue_disciplines_are_judged_by_goodput_and_delay(ours, verdict):
    assert judge_cell(cell(ours, reference=(10.0, 20.0, 100), cc="Cubic", flows=4, qdisc="CoDel")).verdict == verdict


def test_a_short_delay_under_a_discipline_may_be_off_by_a_millisecond():
    for delay, verdict in ((3.9, WITHIN), (4.1, OUT)):
        ours, reference = (10.0, delay, 0), (10.0, 3.0, 0)
        assert judge_cell(cell(ours, reference, cc="Cubic", flows=4, qdisc="FqCoDel")).verdict == verdict


def test_disciplines_that_draw_lots_have_standard_errors():
    spread = {"reference": ([10.0, 10.1, 9.9], [20.0] * 3, [9] * 3), "cc": "Cubic", "flows": 4}
    same = (10.0, 20.0, 9)
    assert standard_error(cell(same, qdisc="Pie", **spread), GOODPUT) > 0
    assert standard_error(cell(same, qdisc="CoDel", **spread), GOODPUT) == 0


def test_random_loss_adds_two_standard_errors_of_the_reference():
    # goodput 9, 10, 11: standard deviation 1, of the mean 1/sqrt(3) = 0.577; a cell may be off by 2 * 0.2 + 2 * 0.577
    reference = ([9, 10, 11], [100] * 3, [100] * 3)
    made = cell(([11.5, 11.6], [100] * 2, [100] * 2), reference, cc="Cubic", loss=0.01)
    assert standard_error(made, GOODPUT) == pytest.approx(1 / math.sqrt(3))
    assert judge_cell(made).comparisons[0].allowed == pytest.approx(0.4 + 2 / math.sqrt(3))
    assert judge_cell(made).verdict == WITHIN
    made.ours[GOODPUT] = [11.56, 11.56]
    assert judge_cell(made).verdict == OUT
    assert judge_groups([made])[0].comparisons[0].allowed == pytest.approx(0.2 + 2 / math.sqrt(3))


def test_a_single_reference_run_takes_its_spread_from_ours():
    made = cell(([9, 10, 11], [100] * 3, [100] * 3), cc="Cubic", loss=0.01)
    assert standard_error(made, GOODPUT) == pytest.approx(1.0)


def test_without_random_loss_there_is_no_such_allowance():
    made = cell(([10, 10], [100] * 2, [100] * 2), ([9, 11], [100] * 2, [100] * 2), cc="Cubic")
    assert standard_error(made, GOODPUT) == 0.0


def test_errors_of_a_group_are_those_of_its_mean():
    lossy = cell(([9, 10, 11], [100] * 3, [100] * 3), cc="Cubic", loss=0.01)
    lossless = cell((10, 100, 100), cc="Cubic")
    (group,) = judge_groups([lossy, lossless])
    assert group.comparisons[0].standard_error == pytest.approx(1.0 / 2)


def test_bottomless_lossy_cells_are_compared_as_distributions():
    kwargs = {"cc": "Cubic", "buffer": 150000, "loss": 1e-4}
    spread = [9.0 + 0.05 * i for i in range(30)]
    ours = (spread, [s * 100 for s in spread], [0] * 30)
    reference = ([9.1, 9.4, 9.7, 10.0, 10.3], [910, 940, 970, 1000, 1030], [0] * 5)
    verdict = judge_cell(cell(ours, reference, **kwargs))
    assert verdict.verdict == WITHIN and all(c.p > 0.5 for c in verdict.comparisons)
    far = judge_cell(cell(ours, ([7.0] * 5, *reference[1:]), **kwargs))
    assert far.verdict == OUT and [c.verdict for c in far.comparisons] == [OUT, WITHIN, WITHIN]
    assert far.comparisons[0].p < 1e-4
    broken = judge_cell(cell(([math.nan] * 30, *ours[1:]), reference, **kwargs))
    assert broken.verdict == OUT
    assert judge_groups([cell(ours, reference, **kwargs)]) == []


@pytest.mark.parametrize(
    ("delays", "loss", "how"),
    [
        ([50, 150] * 10, 0.01, DISTRIBUTION),  # two standard errors: 23 ms, of 12 allowed
        ([90, 110] * 10, 0.01, GROUPED),  # 4.6 ms
        ([50, 150] * 10, 0.0, GROUPED),  # no lots are drawn
        ([50, 150] * 9, 0.01, GROUPED),  # too few to say
    ],
)
def test_where_the_references_seeds_do_not_tell_the_mean_distributions_are_compared(delays, loss, how):
    seeds = len(delays)
    reference = ([10] * seeds, delays, [100] * seeds)
    made = cell(([10] * 250, [50] * 250, [100] * 250), reference, cc="Cubic", loss=loss)
    made.seeds = list(range(seeds))
    assert choose_judging(made) == how
    assert len(judge_groups([made])) == (how == GROUPED)
    if how == DISTRIBUTION:
        assert judge_cell(made).verdict == OUT  # one of two ways only
        made.ours[QUEUE_DELAY] = [50, 150] * 125
        assert choose_judging(made) == how and judge_cell(made).verdict == WITHIN


def test_what_the_reference_has_printed_rounded_is_neither_above_nor_below_ours():
    kwargs = {"cc": "Cubic", "buffer": 150000, "loss": 1e-4}
    packets = [12483] * 13 + [12484] * 8 + [12485] * 9
    exact = [n * 1448 * 8 / 7.5e6 for n in packets]
    ours, reference = (exact, [100] * 30, [0] * 30), ([float(f"{x:.8g}") for x in exact], [100] * 30, [0] * 30)
    assert judge_cell(cell(ours, reference, **kwargs)).comparisons[0].distance == 0


def test_ours_do_not_decide_how_a_cell_is_judged():
    reference = ([10] * 20, [100] * 20, [100] * 20)
    made = cell(([10] * 30, [10, 500] * 15, [100] * 30), reference, cc="Cubic", loss=0.01)
    made.seeds = list(range(20))
    assert choose_judging(made) == GROUPED and judge_cell(made).verdict == OUT
    assert standard_error(made, QUEUE_DELAY) == 0


def test_what_is_not_judged_is_in_no_group():
    made = cell((99, 99, 99), cc="Vegas", not_judged="odd")
    assert judge_cell(made).verdict == NOT_JUDGED and judge_groups([made]) == []


def test_relative_error_of_nothing_is_none():
    (_, delay, drops) = judge_cell(cell((10, 2, 1), reference=(10, 4, 0))).comparisons
    assert delay.relative_error == -0.5 and math.isnan(drops.relative_error) and drops.error == 1
