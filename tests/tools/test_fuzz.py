"""Fuzzing itself: what is wrong is found, whatever way it goes wrong, and can be found again."""

import ctypes
import faulthandler
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from netbuf_gym import _core
from netbuf_gym.errors import NetbufError
from netbuf_gym.scenarios import DISCIPLINES, Scenario, dumbbell, get
from netbuf_gym.simulation.results.result import Links
from netbuf_gym.simulation.runner import simulate
from tools.fuzz import environments, oracles, random_worlds
from tools.fuzz.case import ACCEPTED, Case, Finding, spoil
from tools.fuzz.sanitized import Finder, find_module, list_run_times
from tools.fuzz.server import Batch, Kind

ROOT = Path(__file__).resolve().parents[2]


def fuzz(*words, status=0):
    command = [sys.executable, "-m", "tools.fuzz", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def goes_wrong(case):
    """A case for each way to go wrong, by number."""
    case.tell({"number": case.number})
    if case.number == 1:
        raise Finding("this and that")
    if case.number == 2:
        raise KeyError("no such thing")
    if case.number == 3:
        faulthandler.disable()
        ctypes.string_at(0)
    if case.number == 4:
        time.sleep(60)
    if case.number == 5:
        held = [bytearray(b"x" * (8 << 20)) for _ in range(40)]
        time.sleep(len(held))
    if case.number == 6:
        os._exit(3)
    return ACCEPTED


@pytest.mark.slow
def test_whatever_goes_wrong_is_found_with_its_inputs():
    kind = Kind("wrong", goes_wrong, limit_s=0.5, memory_bytes=128 << 20)
    found, number = [], 0
    while number < 8:
        outcomes = Batch(kind, 1, number, 30.0, count=8 - number).run()
        found += outcomes
        number += len(outcomes)
    assert [one.number for one in found] == list(range(8))
    assert [bool(one.finding) for one in found] == [False, True, True, True, True, True, True, False]
    hangs = "hangs: 0.0 s of the processor's, 4."
    says = ["this and that", "KeyError: 'no such thing'", "SIGSEGV", hangs, "memory: grew by", "exit status 3"]
    for one, words in zip(found[1:7], says, strict=True):
        assert words in one.finding and one.inputs == repr({"number": one.number})


@pytest.mark.slow
def test_an_interrupt_comes_after_a_while():
    def waits(case):
        try:
            time.sleep(30)
        except KeyboardInterrupt:
            if case.number == 0:
                return "interrupted"
            time.sleep(30)

    kind = Kind("waits", waits, interrupt_s=0.2, limit_s=0.3)
    first, second = Batch(kind, 1, 0, 0.0).run() + Batch(kind, 1, 1, 0.0).run()
    assert (first.result, first.finding) == ("interrupted", "")
    assert second.finding.startswith("hangs: ") and "by the clock since it was interrupted" in second.finding


def case_of(number, seed=1, kind="scenarios"):
    return Case(seed, kind, number, Path("."), lambda inputs: None)


def test_a_case_is_drawn_alike_and_unlike_its_neighbours():
    worlds = [repr(random_worlds.draw_world(case_of(n, s))) for n, s in ((5, 1), (5, 1), (6, 1), (5, 2))]
    assert worlds[0] == worlds[1] and len(set(worlds)) == 3


def test_random_worlds_are_mostly_valid_and_hold_everything_that_there_is():
    made, text = [], ""
    for number in range(300):
        data = random_worlds.draw_world(case_of(number))
        text += json.dumps(data)
        try:
            scenario = random_worlds.shorten(Scenario.from_dict(data))
        except NetbufError:
            continue
        if scenario is not None:
            made.append(scenario)
            assert random_worlds.bound_packets(scenario) <= random_worlds.PACKETS
    assert len(made) > 240
    controls = {"bbr", "cubic", "newreno", "vegas", "westwood"}
    for word in (*DISCIPLINES, *controls, "poisson", "incast", "list", "static", "abm", "drr", "rates", "deliveries", "on_off"):
        assert f'"{word}"' in text
    spoilt = [repr(spoil(case_of(n), random_worlds.draw_world(case_of(n)))) for n in range(50)]
    assert sum(repr(random_worlds.draw_world(case_of(n))) != one for n, one in enumerate(spoilt)) > 45


WORLD = dumbbell(rate_mbps=5, rtt_ms=20, buffer_packets=20, senders=["cubic", "bbr"], duration_s=2.0)
WRONG_FLOW = {
    "packets_retransmitted": 10**6, "delivered_bytes": 10**9, "rtt_min_ms": 19.0, "goodput_mbps": 5.1, "completion_s": 3.0,
    "queue_drops": -1, "cwnd_mean_packets": float("nan"), "rtt_mean_ms": 1.0,
}  # fmt: skip
WRONG_LINK = {
    "packets_in": 1, "queue_drops": 10**6, "queue_max_packets_total": 21, "throughput_mbps": 5.2, "random_losses": 10**7,
    "queue_mean_packets": float("inf"), "marks": 10**7,
}  # fmt: skip


@pytest.mark.parametrize("part", ["flows", "links"])
def test_a_result_with_one_wrong_number_is_found(part):
    result = simulate(WORLD, 1)
    oracles.check_result(result)
    for name, value in (WRONG_FLOW if part == "flows" else WRONG_LINK).items():
        at = WORLD.bottleneck if part == "links" else 0
        items = list(getattr(result, part))
        items[at] = replace(items[at], **{name: value})
        wrong = replace(result, **{part: Links(items) if part == "links" else tuple(items)})
        with pytest.raises(Finding, match="does not hold"):
            oracles.check_result(wrong)


def test_finite_flows_and_switches_with_one_wrong_number_are_found():
    result = simulate(get("rlbm/cubic-100-0.6", duration_s=5.0), 1)
    oracles.check_result(result)
    for name, value in {"slowdown": 0.9, "size_bytes": 1, "flow": 0}.items():
        table = result.completions.copy()
        table[name] = value
        with pytest.raises(Finding):
            oracles.check_result(replace(result, completions=table))
    with pytest.raises(Finding):
        oracles.check_result(replace(result, traffic=replace(result.traffic, delivered_bytes=7)))
    switch = result.switches[0]
    for changes in ({"occupancy_max": 1.1}, {"queues": (replace(switch.queues[0], arrivals=10**7),)}):
        with pytest.raises(Finding):
            oracles.check_result(replace(result, switches=type(result.switches)([replace(switch, **changes)])))


def test_results_that_differ_are_found():
    a = {"x": [1.0, float("nan")], "y": {"z": "w"}}
    oracles.require_equal(a, {"x": [1.0, float("nan")], "y": {"z": "w"}}, "same")
    with pytest.raises(Finding, match=r"other: x\[0\] is 1\.0 and 1\.5"):
        oracles.require_equal(a, {"x": [1.5, float("nan")], "y": {"z": "w"}}, "other")
    steps = [(None, np.zeros(2), 1.0, False, False)]
    with pytest.raises(Finding):
        environments.require_equal_steps(steps, [(None, np.ones(2), 1.0, False, False)], "two")


@pytest.mark.release
def test_the_command_goes_over_all_kinds_and_writes_what_it_found(tmp_path):
    output = tmp_path / "fuzz.json"
    fuzz("--seconds", "6", "--seed", "3", "--findings", str(tmp_path / "findings"), "--output", str(output))
    data = json.loads(output.read_text())
    assert set(data["kinds"]) == {"scenarios", "environments", "commands", "files"}
    assert all(kind["cases"] > 0 for kind in data["kinds"].values()) and data["findings"] == []
    assert data["sanitizers"] == "none" and not (tmp_path / "findings").exists()


def test_one_case_alone_and_bad_arguments():
    text = fuzz("--case", "1:scenarios:5")
    assert text.startswith("inputs: ") and text.endswith(("accepted\n", "refused\n", "too large\n"))
    for words in (["--case", "5"], ["--kinds", "x"], ["--seconds", "0"]):
        fuzz(*words, status=2)


def test_the_module_is_found_in_its_build_with_the_run_times_that_it_needs(tmp_path):
    own = Path(_core.__file__)
    assert list_run_times(own) == []
    with pytest.raises(SystemExit, match=r"holds no _core\*\.so"):
        find_module(tmp_path)
    shutil.copy(own, tmp_path / own.name)
    finder = Finder(find_module(tmp_path))
    assert finder.find_spec("netbuf_gym.errors", None) is None
    assert finder.find_spec("netbuf_gym._core", None).origin == str(tmp_path / own.name)
    (tmp_path / "x.cc").write_text("int f() { return 1; }\n")
    compiler = next(found for found in map(shutil.which, ("c++", "g++", "clang++")) if found)
    made = tmp_path / "_core.x.so"
    flags = ["-shared", "-fPIC", "-fsanitize=address,undefined"]
    subprocess.run([compiler, *flags, str(tmp_path / "x.cc"), "-o", str(made)], check=True)
    found = list_run_times(made)
    assert "libasan" in found[0] and all(Path(path).is_file() for path in found)
