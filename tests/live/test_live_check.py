"""`netbuf-gym live check`: what is there is found, what is not is named with what to do."""

import errno
import json

from netbuf_gym import cli
from netbuf_gym.live import machine


def test_as_table_and_as_json(capsys):
    status = cli.main(["live", "check", "--json"])
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert {"Linux", "network namespaces", "/dev/net/tun", "INET_DIAG", "BTF", "ss-server", "sysctls", "rings"} <= found.keys()
    assert found["Linux"]["ok"] and all(one["needed_for"] for one in found.values())
    assert all(one["remedy"] for one in found.values() if not one["ok"])
    assert status == int(any(one["required"] and not one["ok"] for one in found.values()))


def test_what_is_missing_is_named(monkeypatch, capsys):
    def closed(path, flags, *more):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    monkeypatch.setattr(machine.os, "access", lambda path, mode: False)
    proxy = lambda: machine._program("ss-server", "shadowsocks-libev", "proxies")  # noqa: E731
    monkeypatch.setattr(machine, "CHECKS", [machine._tun, proxy])
    monkeypatch.setattr(machine.os, "open", closed)
    assert cli.main(["live", "check"]) == 1
    out = capsys.readouterr().out
    assert "/dev/net/tun: needed for links of live plants\n  modprobe tun; in a container: --device /dev/net/tun" in out
    assert "ss-server: needed for proxies\n  apt install shadowsocks-libev" in out


def test_namespaces_that_are_not_allowed(monkeypatch):
    monkeypatch.setattr(machine, "_new_namespace", lambda: errno.EPERM)
    finding = machine._namespaces()
    assert not finding.ok and finding.required and "Operation not permitted" in finding.found
    assert "kernel.unprivileged_userns_clone" in finding.remedy
