"""`netbuf-gym install`, `status`, `top` and `uninstall`, as a shell has them."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from netbuf_gym.cli import program, status, top
from netbuf_gym.plants.linux.bpf import installed, senders
from netbuf_gym.scenarios.compiled_agent import write_compiled_agent
from tests.helpers import machines
from tests.plants.linux.alone import CHECKOUT
from tests.plants.linux.test_bpf_policy import random_policy


@pytest.fixture
def policy(tmp_path):
    """A compiled agent's file."""
    file = tmp_path / "drawn.policy"
    write_compiled_agent(file, random_policy("tanh", "default"), {"agent": "drawn", "network": "dense 108-64-12"})
    return file


def run(*words):
    command = [sys.executable, "-m", "netbuf_gym", *map(str, words)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=120)


def status_of(name):
    return next((one for one in json.loads(run("status", "--json").stdout) if one["name"] == name), None)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--name", "seventeen_letters"], "name = 'seventeen_letters'; valid: 1 to 15"),
        (["--max-window", "0"], "max_window_mb = 0"),
        (["--max-rate", "-3"], "max_rate_mbps = -3"),
        (["--max-growth", "0.2"], "growth = 0.2"),
        (["--max-growth", "nan"], "not a finite number"),
    ],
)
def test_wrong_arguments_are_one_line(words, message, capsys):
    assert program.main(["install", "congestion_window/ppo", *words]) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1


def test_a_file_that_is_no_policy_is_refused(tmp_path, capsys):
    machines.needs_bpf()
    file = tmp_path / "other.policy"
    file.write_text("no zip")
    for one in (file, tmp_path / "missing.policy"):
        assert program.main(["install", str(one), "--name", f"nbt_{os.getpid()}"]) == 2
        assert "netbuf-gym compile" in capsys.readouterr().err


def test_a_name_that_is_not_installed_is_refused(capsys):
    machines.needs_bpf()
    assert program.main(["uninstall", f"nbt_{os.getpid()}"]) == 2
    assert "is no control that netbuf-gym install has installed" in capsys.readouterr().err


def test_a_sockets_line_has_its_numbers():
    one = installed.Socket("10.0.0.1:5", "10.0.0.2:80", 7, 1, 2, 15_000, 9.5, 20.25, 4)
    totals = dict.fromkeys(("sockets", "opened", "decisions", "windows", "clamped", "late"), 3)
    times = {"decision_mean_us": 50.04, "decision_median_us": 48.5, "decision_p99_us": 90.5}
    bounds = vars(installed.Bounds(2, 10, 1.5))
    about = {"name": "x", "agent": "a", "pinned": True, "readable": True, "bounds": bounds, **totals, **times}
    text = status.format_sender({**about, "open_sockets": [vars(one)]})
    assert "pinned; window at most 2 MB, rate at most 10 Mbit/s, growth at most 1.5 a decision" in text
    assert "mean; median 48.5 us, 99 % within 90.5 us" in text
    assert text.splitlines()[-1].split() == "10.0.0.1:5 10.0.0.2:80 7 15.0 9.50 20.25 4 1 2".split()


def test_top_looks_again_and_again():
    machines.needs_bpf()
    looks = [json.loads(line) for line in run("top", "--json", "--count", 2, "--interval", 0.1).stdout.splitlines()]
    assert len(looks) == 2 and 0.1 <= looks[1]["time_s"] - looks[0]["time_s"]
    assert all(isinstance(look["controls"], list) for look in looks)
    wrong = run("top", "--interval", 0)
    assert wrong.returncode == 2 and "interval = 0" in wrong.stderr


def test_top_gives_the_terminal_back():
    machines.needs_bpf()
    own, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "netbuf_gym", "top"], cwd=CHECKOUT, stdout=other, preexec_fn=_heed_interrupts
    )
    os.close(other)
    shown = b""
    try:
        while top.HOME.encode() not in shown:
            shown += os.read(own, 1 << 16)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        with contextlib.suppress(OSError):  # the end of a terminal that nobody writes to
            while more := os.read(own, 1 << 16):
                shown += more
    finally:
        process.kill()
        process.wait()
        os.close(own)
    assert shown.startswith(top.ENTER.encode()) and shown.endswith(top.LEAVE.encode())


def test_what_a_terminal_has_no_room_for_is_left_out(monkeypatch):
    monkeypatch.setattr(top.shutil, "get_terminal_size", lambda: (4, 2))
    assert top.fit("abcdef\ngh\nij") == "abcd\ngh"


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["uninstall", "Ctrl-C"])
def test_from_installation_to_removal(policy, ends):
    machines.needs_bpf()
    if ends == "uninstall":
        machines.needs_linux(6, 11)
    name = f"nbt_{os.urandom(4).hex()}"
    command = [sys.executable, "-m", "netbuf_gym", "install", str(policy), "--name", name, "--max-window", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, cwd=CHECKOUT, text=True, **pipes, preexec_fn=_heed_interrupts)
    try:
        lines = [process.stdout.readline() for _ in range(2)]
        assert lines[0].startswith(f"{name}: drawn") and "Ctrl-C" in lines[1]
        found = status_of(name)
        assert (
            found["bounds"]["max_window_mb"] == 2
            and found["sockets"] == 0
            and not found["pinned"]
            and found["agent"] == "drawn"
        )
        assert f"{name}: drawn, goes with its process; window at most 2 MB\nsockets: 0 now" in run("status").stdout
        assert name in [one["name"] for one in json.loads(run("top", "--json", "--count", 1).stdout)["controls"]]
        again = run("install", policy, "--name", name)
        assert again.returncode == 2 and "is taken" in again.stderr
        if ends == "uninstall":
            removed = run("uninstall", name)
            assert removed.returncode == 0 and f"{name}: removed" in removed.stdout, removed.stderr
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == (0 if ends == "uninstall" else 130)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert status_of(name) is None and name not in senders.CONTROLS.read_text().split()


def _heed_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
