"""The comparison of the simulator with the kernel: its worlds, its runs on both, and how they are judged."""

import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

import netbuf_gym as nb
from netbuf_gym.cli.program import main
from studies.common.campaign import Campaign, read_finished
from studies.common.experiment import Chunk
from studies.common.results import Runs
from studies.live import judging, live_sections, live_work
from studies.live import live_schemes as schemes
from studies.live import live_worlds as worlds
from studies.live.live_experiment import LIVE
from studies.live.live_measures import ACTIONS, MEASURES
from studies.live.live_settings import Settings
from studies.live.live_work import KEYS, PLANTS, make_parts
from tests.helpers import machines


def quiet(done: int, total: int) -> None:
    pass


def test_worlds_cover_what_is_asked():
    for task in (worlds.SENDER, worlds.RECEIVER):
        made = [make(5.0) for make in worlds.WORLDS[task].values()]
        assert len(made) >= 12 and sum(world.name == worlds.TRACE for world in made) == 1
    assert len(worlds.WORLDS[worlds.SWITCH]) >= 12
    rates, trips, queues = (np.array(column) for column in zip(*worlds.PATHS, strict=True))
    assert (rates.min(), rates.max()) == (5, 100) and (trips.min(), trips.max()) == (10, 150)
    assert (queues.min(), queues.max()) == (0.5, 4)
    world = worlds.WORLDS[worlds.SENDER]["10M-40ms-1bdp"](5.0)
    assert (world.capacity_mbps, world.propagation_rtt_ms(), world.buffer_packets, world.agents) == (10, 40, 33, 1)
    beside = [world for name, world in worlds.WORLDS[worlds.SENDER].items() if name.startswith("cubic-")]
    assert [world(5.0).buffer_packets for world in beside] == [33, 67, 267]
    for make in beside:
        agent, rival = make(5.0).flows
        assert make(5.0).start_jitter_ms == 40 and worlds.to_live(make(5.0)).start_jitter_ms == 0
        assert (rival.cc, make(5.0).agents, rival.start_s - agent.start_s) == ("cubic", 1, worlds.LATER_S)
    for name, trips in (("longer", [40, 90]), ("shorter", [100, 50])):
        delays = worlds.WORLDS[worlds.SENDER][name](20.0).links[0].delay_ms
        assert delays.time_s.tolist() == [0, 5] and (delays.delay_ms + trips[0] / 2).tolist() == trips


@pytest.mark.slow
def test_every_phase_beside_a_rival_occurs():
    """Of starts within 1 ms of another 20 runs have 10 results: the phase is a few packets', and remains."""
    world = worlds.WORLDS[worlds.SENDER]["cubic-20M-40ms-1bdp"](30.0).with_senders(["newreno", "cubic"])
    few, all_of_them = (
        len({round(nb.simulate(replace(world, start_jitter_ms=ms), seed=seed).flows[0].goodput_mbps, 3) for seed in range(20)})
        for ms in (1.0, world.start_jitter_ms)
    )
    assert few < 15 and all_of_them >= 19


def test_the_simulators_runs_come_first():
    parts = make_parts(Settings(tasks=tuple(worlds.WORLDS), worlds=2, schemes=("cubic", "naive")))
    plants = [part.runs[0][KEYS.index("plant")] for part in parts]
    assert list(dict.fromkeys(plants)) == ["sim", "noise", "linux"] and plants == sorted(plants, key=PLANTS.index)
    assert "noise" not in {part.runs[0][3] for part in make_parts(Settings(worlds=1, noise_ms=0))}
    seeds = {part.runs[0][0]: len(part.runs) for part in parts}
    assert seeds == {worlds.SENDER: 1, worlds.RECEIVER: 1, worlds.SWITCH: 5}


def test_cells_that_differ_from_run_to_run_have_more_of_them():
    parts = make_parts(Settings(schemes=("cubic", "bbr", "keep", "random")))
    runs = {(run[1], run[2], run[3]): [key[-1] for key in part.runs] for part in parts for run in part.runs}
    count = {cell: len(seeds) for cell, seeds in runs.items()}
    beside = "cubic-20M-40ms-1bdp"
    assert [count[beside, scheme, "linux"] for scheme in ("cubic", "random")] == [5, 5]
    assert [count[beside, scheme, "sim"] for scheme in ("cubic", "random")] == [40, 5]
    for plant in PLANTS:
        assert count[worlds.TRACE, "bbr", plant] == (5 if plant == "linux" else 40)
        assert count["5M-20ms-2bdp", "random", plant] == 1
        assert runs[beside, "random", plant] == runs[beside, "random", "linux"], "the same actions on both"


def test_actions_are_counted_by_their_places():
    assert schemes.count_actions_by_bin(np.array([0, 10, 10]), spaces.Discrete(12)).tolist() == [1, *[0] * 9, 2, 0]
    assert schemes.count_actions_by_bin(np.array([0, 23]), spaces.Discrete(24)).tolist() == [1, *[0] * 10, 1]
    box = spaces.Box(-1.0, 1.0, (2,))
    assert schemes.count_actions_by_bin(np.array([[-1.0, 1.0], [0.0, 0.0]]), box).tolist() == [
        1,
        0,
        0,
        0,
        0,
        0,
        2,
        0,
        0,
        0,
        0,
        1,
    ]


def test_late_runs_are_played_again_alone(monkeypatch):
    """The first two decide late, at half of the pace; the third, which is on time, counts."""
    task, turns = worlds.SENDER, []
    settings = Settings(schemes=("cubic",), worlds=1)
    work = live_work.LiveWork(settings)
    intervals_s = iter([0.2, 0.16, 0.15])

    def play(key, stop):
        turns.append(live_work.TURNS._waiting)
        return {"interval_p50_s": next(intervals_s)}

    monkeypatch.setattr(work, "_play", play)
    run = (task, "5M-20ms-2bdp", "cubic", live_work.LIVE, 1)
    (row,) = work.run(Chunk(work.parts[-1], (run,)), None, threading.Event())
    assert turns == [0, 1, 1] and row["interval_p50_s"] == 0.15


def test_who_runs_alone_waits_for_all_and_lets_nobody_begin():
    turns, seen, begun = live_work.Turns(), [], threading.Event()

    def alone():
        begun.set()
        with turns.take(alone=True):
            seen.append("alone")

    thread = threading.Thread(target=alone)
    with turns.take(alone=False), turns.take(alone=False):
        thread.start()
        begun.wait()
        seen.append("beside")
    thread.join()
    with turns.take(alone=False):
        seen.append("after")
    assert seen == ["beside", "alone", "after"]


def test_late_decisions_are_told():
    columns = {name: [] for name in (*KEYS, *MEASURES)}
    for scheme, interval_s in (("cubic", 0.1), ("bbr", 0.21)):
        row = dict.fromkeys(MEASURES, 0.1) | {"interval_p50_s": interval_s}
        for name, value in (row | dict(zip(KEYS, (worlds.SENDER, "5M", scheme, "linux", 1), strict=True))).items():
            columns[name].append(value)
    runs = Runs("", {name: np.array(values) for name, values in columns.items()}, KEYS, tuple(MEASURES))
    assert "less than two thirds of their pace in 1 of 2 runs" in live_sections._describe_emulator(runs)


def runs_of(values: dict) -> Runs:
    """Rows of utilities by (world, scheme, plant) of senders, of seed 1 or by seed; actions all in one place."""
    columns = {name: [] for name in (*KEYS, *MEASURES)}
    cells = [(*cell, own if isinstance(own, dict) else {1: own}) for cell, own in values.items()]
    for world, scheme, plant, seed, utility in ((*cell, *run) for *cell, own in cells for run in own.items()):
        row = dict.fromkeys(MEASURES, math.nan) | dict.fromkeys(ACTIONS, 0.0) | {"utility": utility}
        row[ACTIONS[3 if plant == "sim" else 4]] = 1.0
        row |= {"task": worlds.SENDER, "world": world, "scheme": scheme, "plant": plant, "seed": seed}
        for name, column in columns.items():
            column.append(row[name])
    return Runs("", {name: np.array(column) for name, column in columns.items()}, KEYS, tuple(MEASURES))


def test_cells_agree_within_a_tenth_or_two_hundredths():
    values = {
        ("a", "cubic", "sim"): -1.0, ("a", "cubic", "linux"): -1.09,
        ("b", "cubic", "sim"): -1.0, ("b", "cubic", "linux"): -1.11,
        ("c", "cubic", "sim"): -0.01, ("c", "cubic", "linux"): -0.029,
        ("d", "cubic", "sim"): -0.01, ("d", "cubic", "linux"): 0.011,
    }  # fmt: skip
    cells = judging.collect_cells(runs_of(values))
    assert [cell.within for cell in cells] == [True, False, True, False]
    assert [cell.distance for cell in cells] == [1.0] * 4
    assert "2 of 4" in judging.format_summary_table(cells)
    assert [line.split("|")[1].strip() for line in judging.format_outside_table(cells).splitlines()[2:]] == ["b", "d"]


def test_verdicts_count_worlds_and_pairs():
    values = {
        ("a", "agent", "sim"): -0.1, ("a", "agent", "linux"): -0.1,
        ("a", "cubic", "sim"): -0.2, ("a", "cubic", "linux"): -0.05,
        ("b", "agent", "sim"): -0.1, ("b", "agent", "linux"): -0.11,
        ("b", "cubic", "sim"): -0.3, ("b", "cubic", "linux"): -0.3,
    }  # fmt: skip
    name, target = "congestion windows", "10 % or 0.02 of utility"
    assert judging.make_verdict_rows(runs_of(values)) == [
        [f"{name}: `agent` agrees", target, "2 of 2 worlds", "holds"],
        [f"{name}: `cubic` agrees", target, "1 of 2 worlds", "in all but 1"],
        [f"{name}: pairs keep their order", "every pair", "1 of 2 pairs", "in all but 1"],
    ]


def test_a_difference_of_three_runs_has_an_interval():
    """Of pairs: t(0.975; 2) = 4.303 times the error 0.00882; else by Welch, here with 4 degrees of freedom, t = 2.776."""
    values = {
        ("a", "random", "sim"): {1: -0.1, 2: -0.3, 3: -0.2},
        ("a", "random", "linux"): {1: -0.16, 2: -0.37, 3: -0.24},
        ("b", "cubic", "sim"): {1: -0.1, 2: -0.2, 3: -0.3}, ("b", "cubic", "linux"): {4: -0.3, 5: -0.4, 6: -0.5},
        ("c", "bbr", "sim"): {1: -0.1, 2: -0.2}, ("c", "bbr", "linux"): {1: -0.2, 2: -0.2},
    }  # fmt: skip
    paired, apart, few = judging.collect_cells(runs_of(values))
    assert (paired.difference, paired.half_width) == pytest.approx((-0.17 / 3, 4.303 * 0.00882), rel=1e-3)
    assert (apart.difference, apart.half_width) == pytest.approx((-0.2, 2.776 * 0.1 * (2 / 3) ** 0.5), rel=1e-3)
    assert math.isnan(few.half_width)
    table = judging.format_outside_table([paired, apart, few])
    assert "| -0.057 ± 0.038 |" in table and "| -0.050 |" in table


def test_a_hosts_noise_is_judged_beside():
    values = {("a", "bbr", "sim"): -0.1, ("a", "bbr", "noise"): -0.15, ("a", "bbr", "linux"): -0.16}
    (cell,) = judging.collect_cells(runs_of(values))
    assert not cell.within and cell.within_noise
    assert "| 0 of 1 | 1 of 1 |" in judging.format_summary_table([cell]) and "-0.150" in judging.format_outside_table([cell])


def test_noise_delays_every_packet_of_every_link():
    world = worlds.WORLDS[worlds.SENDER]["10M-40ms-1bdp"](5.0).with_senders(["cubic"])
    rtt = [nb.simulate(one, seed=1).flows[0].rtt_mean_ms for one in (world, worlds.add_noise(world, 1.0))]
    assert all(link.jitter.scale_ms == 1.0 for link in worlds.add_noise(world, 1.0).links) and rtt[1] > rtt[0]


def test_every_controller_may_be_asked_for():
    settings = Settings.from_values({"schemes": ("all",)})
    assert settings.schemes == schemes.NAMES and "schemes" in settings.command()


def test_an_order_that_is_lost_is_named():
    values = {
        ("a", "agent", "sim"): -0.1, ("a", "agent", "linux"): -0.1,
        ("a", "cubic", "sim"): -0.2, ("a", "cubic", "linux"): -0.05,
        ("a", "bbr", "sim"): -0.11, ("a", "bbr", "linux"): -0.3,
    }  # fmt: skip
    pairs = judging.find_pairs(judging.collect_cells(runs_of(values)))
    assert {(pair.better, pair.worse): pair.keeps_order for pair in pairs} == {
        ("agent", "cubic"): False,
        ("bbr", "cubic"): False,
    }
    said = judging.describe_order(judging.collect_cells(runs_of(values)))
    assert "Of 2 pairs" in said and "0 have the same order" in said


@pytest.mark.slow
def test_both_plants_in_one_campaign(tmp_path, section_of):
    machines.needs_live_worlds()
    settings = Settings(tasks=(worlds.SENDER,), schemes=("cubic", "queue_target"), worlds=1, duration_s=2.0)
    campaign = Campaign(LIVE, settings, tmp_path / "out", jobs=2)
    runs = LIVE.read(campaign.run(quiet))
    assert len(runs) == 6 and np.isfinite(runs.columns["utility"]).all()
    live = runs.where(plant="linux").columns
    assert (live["late_p50_ms"] >= 0).all() and (np.abs(live["rate_error"]) < 0.01).all()
    shares = np.array([runs.where(scheme="queue_target").columns[name] for name in ACTIONS])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert read_finished(tmp_path / "out")["begun"][:2] == "20"
    drawn = campaign.draw(tmp_path / "out" / "figures")
    assert [path.name for path in drawn] == ["cells_congestion_window.png"]
    text = section_of(LIVE, worlds.SENDER, tmp_path / "out")
    assert "of 2 cells are within tolerance" in text and "ms late at the median" in text and "figures/live/cells_" in text


@pytest.mark.parametrize(
    "words", ["tasks=[kettle]", "worlds=0", "duration_s=0", "repeats=0", "duration_s=900", "schemes=[agent] sender=none.zip"]
)
def test_bad_settings_are_refused(words, capsys):
    assert main(["reproduce", "live", *words.split()]) == 2
    assert "valid:" in capsys.readouterr().err
