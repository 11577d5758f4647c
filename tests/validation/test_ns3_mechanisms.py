"""The ns3 stack beside ns-3.44: delay that changes, jitter, datagrams, data on the way back, as measured in tests/data."""

import re
from pathlib import Path

import pytest

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.scenarios import DelaySchedule
from netbuf_gym.validation import read_folder, validate
from netbuf_gym.validation.cells import ALONE, DROPS, GOODPUT, GROUPED, QUEUE_DELAY
from netbuf_gym.validation.mechanisms import COLUMNS, UDP_DELAY, UDP_RECEIVED
from netbuf_gym.validation.runner import build_world, run_seed

DATA = Path(__file__).resolve().parents[1] / "data" / "ns3_mechanisms.csv"
QUICK = 10
"""Mbit/s: paths up to here are run by tests."""


@pytest.fixture(scope="module")
def cells():
    return read_folder(DATA).cells


def of(cells, label, fastest=QUICK):
    found = [cell for cell in cells if cell.setting.label == label and cell.setting.rate_mbps <= fastest]
    assert found
    return found


WITHOUT_CHANCE = ["udp_constant", "udp_on_off", "udp_back", "reverse", "reverse_slow", "delay_up", "delay_down", "delay_leo"]


@pytest.mark.parametrize("label", WITHOUT_CHANCE)
def test_what_no_chance_decides_has_the_same_numbers(cells, label):
    for cell in of(cells, label):
        ours = run_seed(build_world(cell), cell.setting, seed=1)
        for quantity, relative in {GOODPUT: 1e-6, QUEUE_DELAY: 1e-4, DROPS: 0, UDP_RECEIVED: 1e-6, UDP_DELAY: 1e-4}.items():
            if quantity in ours:
                assert ours[quantity] == pytest.approx(cell.reference[quantity][0], rel=relative, abs=1e-9), cell.setting.id


@pytest.mark.slow
@pytest.mark.parametrize("only", ["*/jitter_*/NewReno/*/10Mbps/*", "*/udp_random/NewReno/*"])
def test_what_chance_decides_agrees(only):
    report = validate(DATA, seeds=12, jobs=1, only=only)
    assert report.within, report.text()


def test_the_worlds(cells):
    cell = of(cells, "delay_down")[0]
    world, s = build_world(cell), cell.setting
    there, back = world.links[:2]
    assert isinstance(there.delay_ms, DelaySchedule) and there.delay_ms == back.delay_ms and there.delay_ms.reorder
    assert there.delay_ms.delay_ms.tolist() == [s.rtt_ms / 2 - 2, s.own.rtt_steps[0][1] / 2 - 2]
    assert s.family.choose_judging(s) == ALONE and world.propagation_rtt_ms() == min(s.rtt_ms, s.own.rtt_steps[0][1])
    cell = of(cells, "udp_back")[0]
    (source,) = build_world(cell).udp
    assert source.path[1] == 1 and source.start_s == cell.setting.own.udp_off_s  # ns-3's rests first
    cell = of(cells, "udp_random")[0]
    rests = {seed: build_world(cell, seed).udp[0].start_s for seed in (1, 2)}
    assert rests[1] != rests[2] and min(rests.values()) > 0 and build_world(cell, 1).udp[0].start_s == rests[1]
    assert cell.setting.family.has_seeded_worlds(cell.setting) and len(cell.seeds) == 30
    cell = of(cells, "reverse")[0]
    assert cell.setting.family.choose_judging(cell.setting) == GROUPED
    assert [flow.path[1] for flow in build_world(cell).flows] == [0, 1]
    (jitter,) = {build_world(cell).links[0].jitter for cell in of(cells, "jitter_in_order")}
    assert jitter.scale_ms == 10 and not jitter.reorder and build_world(cell).links[1].jitter is None


def changed(tmp_path, column, value):
    comment, header, row, *_ = DATA.read_text().splitlines()
    fields = row.split(",")
    fields[header.split(",").index(column)] = value
    path = tmp_path / "cells.csv"
    path.write_text("\n".join([comment, header, ",".join(fields), ""]))
    return path


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("rtt_steps", "20", "rtt_steps = '20'; valid: nothing, or s:ms;s:ms"),
        ("rtt_steps", "a:b", "rtt_steps = 'a:b'; valid: nothing, or s:ms;s:ms"),
        ("rtt_steps", "20:3", "rtt_steps = 3; valid: at least the access links' 4 ms"),
        ("rtt_prop_ms", "3", "rtt_prop_ms = 3; valid: at least the access links' 4 ms"),
        ("label", "", "label is empty; valid: a name"),
        ("N", "0", "N = 0 and N_back = 0; valid: at least one flow"),
        ("udp_bytes", "0", "udp_bytes = '0'; valid: a whole number from 1 to 65535"),
        ("reorder", "2", "reorder = '2'; valid: a whole number from 0 to 1"),
        (COLUMNS[UDP_DELAY], "x", "udp_delay_w_ms = 'x'; valid: a number"),
    ],
)
def test_bad_rows(tmp_path, column, value, message):
    path = changed(tmp_path, column, value)
    with pytest.raises(ReferenceDataError, match=re.escape(message)) as caught:
        read_folder(path)
    assert str(path) in str(caught.value) and "3" in str(caught.value)


def test_steps_that_make_no_world(tmp_path):
    (cell,) = read_folder(changed(tmp_path, "rtt_steps", "20:50;10:60")).cells
    with pytest.raises(ReferenceDataError, match=r"time_s\[2\] = 10 is not after 20"):
        build_world(cell)


def test_schemes_that_are_not_built(tmp_path):
    (cell,) = read_folder(changed(tmp_path, "cc", "Ledbat")).cells
    assert "LEDBAT stands still" in cell.not_judged
