"""`netbuf-gym live check`: what is there is found as live plants find it, what is not is named with what to do."""

import json
import os
import sys

import pytest

from netbuf_gym.cli import program
from netbuf_gym.errors import ConfigError
from netbuf_gym.host import capabilities
from netbuf_gym.plants.linux import machine as plants_machine
from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.bpf import struct_ops
from netbuf_gym.plants.linux.machine import Machine
from netbuf_gym.plants.linux.proxy import processes

NAMES = "Linux|live worlds|INET_DIAG|BPF struct_ops|congestion controls|ss-server|ss-local|sysctls|rings".split("|")
TUN = "there is no /dev/net/tun (modprobe tun; in a container: --device /dev/net/tun)"


def checked(capsys):
    status = program.main(["live", "check", "--json"])
    return status, {one["name"]: one for one in json.loads(capsys.readouterr().out)}


@pytest.mark.slow
def test_this_machine(namespace, capsys):
    """In a namespace, since sysctls are opened for writing, though nothing is written."""
    done = namespace.live("check", "--json")
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert list(found) == NAMES and found["Linux"]["ok"] and all(one["needed_for"] for one in found.values())
    assert all(one["remedy"] for one in found.values() if not one["ok"])
    assert found["live worlds"]["ok"] and done.returncode == 0, done.stdout
    assert not found["sysctls"]["ok"] and "net.core" in found["sysctls"]["found"]  # the whole machine's, read-only in here


@pytest.mark.release
def test_why_sysctls_cannot_be_set_and_what_to_do_are_said(namespace):
    script = "mount -o bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "
    done = namespace.run("unshare", "-m", "sh", "-c", f"{script}{sys.executable} -m netbuf_gym live check --json")
    found = {one["name"]: one for one in json.loads(done.stdout)}
    cause, remedy = "/proc/sys is mounted read-only", "mount -o remount,rw /proc/sys; in a container: --privileged, or"
    assert cause in found["sysctls"]["found"] and remedy in found["sysctls"]["remedy"]
    assert cause in found["live worlds"]["remedy"] and remedy in found["live worlds"]["remedy"] and done.returncode == 1
    inside = {one["name"]: one for one in json.loads(namespace.live("check", "--json").stdout)}
    assert inside["sysctls"]["found"].startswith("4 of 8 can be set; net.core.rmem_max, ")
    assert "read-only in this network namespace" in inside["sysctls"]["found"]
    assert remedy not in inside["sysctls"]["remedy"] and "outside of that" in inside["sysctls"]["remedy"]


@pytest.fixture
def elsewhere(monkeypatch):
    """Without the findings that look at this host's own settings, and with live worlds that are said to be possible."""
    monkeypatch.setattr(capabilities, "KINDS", {})
    monkeypatch.setattr(capabilities, "look", lambda: Machine("", True, ("cubic",)))
    return monkeypatch


def test_what_live_plants_cannot_do_is_said_in_their_words(elsewhere, capsys):
    elsewhere.setattr(capabilities, "look", lambda: Machine(TUN))
    status, found = checked(capsys)
    assert status == 1 and not found["live worlds"]["ok"] and found["live worlds"]["remedy"] == TUN
    assert program.main(["live", "check"]) == 1
    assert f"live worlds: needed for live plants: namespaces, and TUN devices in them\n  {TUN}" in capsys.readouterr().out


def test_the_plants_own_probe_is_asked(elsewhere, capsys):
    """Where a helper finds no TUN device, the check does: both try the same."""
    elsewhere.undo()
    elsewhere.setattr(capabilities, "KINDS", {})
    said = []

    class Refused:
        def ask(self, message):
            said.append(message)
            raise ConfigError(TUN)

        def close(self):
            said.append("closed")

    elsewhere.setattr(plants_machine, "Process", Refused)
    _, found = checked(capsys)
    assert said == [{"do": "check"}, "closed"] and found["live worlds"]["remedy"] == TUN


def test_an_older_kernel_takes_no_congestion_controls_even_from_root(elsewhere, capsys):
    elsewhere.setattr(struct_ops, "kernel_release", lambda: (6, 1))
    elsewhere.setattr(struct_ops, "kernel_structs", lambda: ({}, {}))
    elsewhere.setattr(capabilities, "may_register_bpf", lambda: True)
    status, found = checked(capsys)
    assert not found["BPF struct_ops"]["ok"] and "since kernel 6.3; this one is older" in found["BPF struct_ops"]["remedy"]
    assert status == 0  # a sender is limited from user space then


@pytest.mark.parametrize(
    ("held", "first", "able"),
    [
        ({system.SYS_ADMIN}, True, True),
        ({system.BPF, system.PERFMON, system.NET_ADMIN}, True, True),
        ({system.BPF, system.NET_ADMIN}, True, False),
        (set(range(41)), False, False),
    ],
)
def test_privileges_of_bpf(monkeypatch, tmp_path, held, first, able):
    status, uid_map = tmp_path / "status", tmp_path / "uid_map"
    status.write_text(f"Name:\tx\nCapEff:\t{sum(1 << bit for bit in held):016x}\n")
    uid_map.write_text("         0          0 4294967295\n" if first else "0 1000 1\n")
    monkeypatch.setattr(system, "open", lambda path: (status if path.endswith("status") else uid_map).open(), raising=False)
    assert system.read_capabilities() == held and system.may_register_bpf() is able


def test_programs_that_are_missing(elsewhere, capsys):
    elsewhere.setattr(processes.shutil, "which", lambda *words, **options: None)
    _, found = checked(capsys)
    assert "apt install shadowsocks-libev" in found["ss-server"]["remedy"] and not found["ss-local"]["ok"]


def test_who_makes_worlds(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "in a user namespace, links with a real-time priority" in checked(capsys)[1]["live worlds"]["found"]
