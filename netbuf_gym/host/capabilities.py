"""Capabilities of this machine for live plants and host tuning, and what to install for those that are missing."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from netbuf_gym.host.settings import Ring, SettingError, Sysctl
from netbuf_gym.plants.linux.bpf.struct_ops import PREFIX, explain_unavailable
from netbuf_gym.plants.linux.diag import TcpSockets
from netbuf_gym.plants.linux.machine import Machine, look
from netbuf_gym.plants.linux.netlink import Generic
from netbuf_gym.plants.linux.proxy.processes import find_program
from netbuf_gym.plants.linux.setup import available_controls
from netbuf_gym.plants.linux.sysctls import KINDS
from netbuf_gym.plants.linux.system import BPF_PRIVILEGES, may_register_bpf

CONTROLS = ("cubic", "reno", "bbr")
PROGRAMS = ("ss-server", "ss-local")


@dataclass(frozen=True)
class Finding:
    """One requirement of live plants or host tuning, and whether it is met.

    Attributes:
        name: name of the requirement.
        ok: whether it is met.
        found: what was found, or what is wrong.
        needed_for: what does not work without it.
        remedy: what to do or install, where it is missing.
        required: whether live plants do not run at all without it.
    """

    name: str
    ok: bool
    found: str
    needed_for: str
    remedy: str = ""
    required: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a JSON-able dict."""
        return asdict(self)


def collect_findings() -> list[Finding]:
    """Return all findings; nothing is changed. The requirements of live plants are tried in the way that plants use them."""
    tried = look()
    shadowsocks = "live hosts behind a Shadowsocks proxy; the plain relay works without"
    return [
        _check_system(),
        _check_worlds(tried),
        _check_diag(),
        _check_struct_ops(),
        _check_congestion_controls(),
        *(_check_program(name, shadowsocks) for name in PROGRAMS),
        _check_sysctls(),
        _check_rings(),
    ]


def _check_system() -> Finding:
    ok = sys.platform == "linux" and sys.byteorder == "little"
    found = f"{platform.system()} {platform.release()} {platform.machine()}"
    remedy = "" if ok else "a little-endian machine with Linux"
    return Finding("Linux", ok, found, "everything live", remedy, required=True)


def _check_worlds(tried: Machine) -> Finding:
    how = "as root" if os.geteuid() == 0 else "in a user namespace"
    how += ", links with a real-time priority" if tried.realtime else ", links without a real-time priority"
    found = "cannot be made" if tried.missing else f"can be made, {how}"
    what = "live plants: namespaces, and TUN devices in them"
    return Finding("live worlds", not tried.missing, found, what, tried.missing, required=True)


def _check_diag() -> Finding:
    try:
        with TcpSockets() as sockets:
            count = len(sockets.list())
    except OSError as error:
        why = error.strerror or str(error)
        return Finding("INET_DIAG", False, why, "observation of connections", "modprobe tcp_diag", required=True)
    return Finding("INET_DIAG", True, f"lists {count} connections", "observation of connections", required=True)


def _check_struct_ops() -> Finding:
    what = "congestion windows of agents in the kernel; without it a sender is limited from user space"
    reason = explain_unavailable()
    if reason:
        return Finding("BPF struct_ops", False, "not on this kernel", what, reason)
    able = may_register_bpf()
    found = "congestion controls may be registered" if able else "no privileges"
    return Finding("BPF struct_ops", able, found, what, "" if able else BPF_PRIVILEGES)


def _check_congestion_controls() -> Finding:
    have = available_controls()
    missing = [name for name in CONTROLS if name not in have]
    remedy = "" if not missing else " ".join(f"modprobe tcp_{name};" for name in missing).rstrip(";")
    have = frozenset(name for name in have if not name.startswith(f"{PREFIX}_"))  # without those of running worlds
    found = " ".join(sorted(have)) or "not reported by the kernel"
    return Finding("congestion controls", not missing, found, "baselines, and their comparison with agents", remedy)


def _check_program(name: str, what: str) -> Finding:
    try:
        path = find_program(name)
    except FileNotFoundError as error:
        return Finding(name, False, "not installed", what, error.strerror or str(error))
    return Finding(name, True, _describe_program(path) or path, what)


def _describe_program(path: str) -> str:
    """Return the path of a program of shadowsocks-libev, with the version that the program reports."""
    try:
        done = subprocess.run([path, "-h"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip().startswith("shadowsocks-libev")]
    return f"{path} ({words[0]})" if words else path


def _check_sysctls() -> Finding:
    refused: dict[str, SettingError] = {}
    for name in KINDS:
        try:
            Sysctl(name).require_writable()
        except SettingError as error:
            refused[name] = error
    found = f"{len(KINDS) - len(refused)} of {len(KINDS)} can be set"
    alike: dict[tuple[str, str], list[str]] = {}
    for name, why in refused.items():
        alike.setdefault((why.cause, why.remedy), []).append(name)
    causes = [f"{', '.join(names)}: {cause}" for (cause, _), names in alike.items()]
    remedy = "\n  ".join(f"{', '.join(names)}: {what or cause}" for (cause, what), names in alike.items())
    found = "; ".join([found, *causes])
    return Finding("sysctls", not refused, found, "netbuf-gym live tune --apply", remedy)


def _check_rings() -> Finding:
    found = []
    try:
        with Generic() as netlink:
            netlink.family("ethtool")
    except OSError as error:
        return Finding("rings", False, f"no ethtool over netlink: {error.strerror}", "live tune --ring", "Linux 5.6 or newer")
    for device in sorted(os.listdir("/sys/class/net")):
        ring = Ring(device)
        try:
            found.append(f"{device} {ring.read()[0]} of {ring.limits(0)[1]}")
        except SettingError:
            continue
    listed = ", ".join(found) or "no device has one"
    return Finding("rings", bool(found), listed, "live tune --ring", "" if found else "a network card")
