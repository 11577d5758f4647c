"""What this machine can do of all that is live, and what is to be installed for the rest."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.live.settings import KINDS, Ring, SettingError, Sysctl
from netbuf_gym.plants.linux.diag import TcpSockets
from netbuf_gym.plants.linux.netlink import Generic

CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 12, 21, 38, 39
CONTROLS = ("cubic", "reno", "bbr")


@dataclass(frozen=True)
class Finding:
    """One thing that is needed for something.

    Attributes:
        name: what it is.
        ok: whether it is there.
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
        """As JSON has it."""
        return asdict(self)


def findings() -> list[Finding]:
    """All of them; nothing is changed."""
    return [check() for check in CHECKS]


def _system() -> Finding:
    ok = sys.platform == "linux" and sys.byteorder == "little"
    found = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Finding("Linux", ok, found, "everything live", required=True)


def _namespaces() -> Finding:
    why = _in_child(_new_namespace)
    words = "as root" if os.geteuid() == 0 else "in a user namespace"
    remedy = "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    remedy += "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces above 0"
    found = f"can be made, {words}" if not why else f"cannot be made: {why}"
    return Finding("network namespaces", not why, found, "live plants", "" if not why else remedy, required=True)


def _new_namespace() -> int:
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    libc = ctypes.CDLL(None, use_errno=True)
    return 0 if libc.unshare(flags) == 0 else ctypes.get_errno()


def _in_child(what: Callable[[], int]) -> str:
    """What the error is that a function gives in a process of its own; "": none."""
    pid = os.fork()
    if pid == 0:
        code = errno.EINVAL
        try:
            code = what()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "" if code == 0 else os.strerror(code) if code > 0 else f"signal {-code}"


def _tun() -> Finding:
    path = "/dev/net/tun"
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        remedy = "modprobe tun" if error.errno in (errno.ENOENT, errno.ENODEV) else f"chmod 0666 {path}"
        if error.errno == errno.ENOENT:
            remedy += "; in a container: --device /dev/net/tun"
        return Finding(path, False, error.strerror or str(error), "links of live plants", remedy, required=True)
    return Finding(path, True, "can be opened", "links of live plants", required=True)


def _diag() -> Finding:
    try:
        with TcpSockets() as sockets:
            count = len(sockets.list())
    except OSError as error:
        why = error.strerror or str(error)
        return Finding("INET_DIAG", False, why, "observation of connections", "modprobe tcp_diag", required=True)
    return Finding("INET_DIAG", True, f"tells of {count} connections", "observation of connections", required=True)


def _btf() -> Finding:
    ok = Path("/sys/kernel/btf/vmlinux").is_file()
    remedy = "" if ok else "a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's own has it)"
    what = "congestion windows of agents in the kernel; without it a sender is limited from user space"
    return Finding("BTF", ok, "there" if ok else "there is no /sys/kernel/btf/vmlinux", what, remedy)


def _struct_ops() -> Finding:
    held = capabilities()
    root = _in_first_user_namespace()
    able = root and CAP_NET_ADMIN in held and (CAP_SYS_ADMIN in held or {CAP_BPF, CAP_PERFMON} <= held)
    found = "may be loaded" if able else "no privileges" if root else "no privileges: not in the first user namespace"
    what = "congestion windows of agents in the kernel; without it a sender is limited from user space"
    remedy = "" if able else "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    return Finding("BPF struct_ops", able, found, what, remedy)


def capabilities() -> set[int]:
    """Of this process, those in effect."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            mask = int(line.split()[1], 16)
            return {bit for bit in range(64) if mask >> bit & 1}
    return set()


def _in_first_user_namespace() -> bool:
    words = Path("/proc/self/uid_map").read_text().split()
    return words[:3] == ["0", "0", "4294967295"]


def _congestion() -> Finding:
    have = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    missing = [name for name in CONTROLS if name not in have]
    remedy = "" if not missing else " ".join(f"modprobe tcp_{name};" for name in missing).rstrip(";")
    return Finding("congestion controls", not missing, " ".join(have), "baselines, and their comparison with agents", remedy)


def _program(name: str, package: str, what: str) -> Finding:
    path = shutil.which(name) or next((p for p in (f"/usr/sbin/{name}", f"/sbin/{name}") if os.access(p, os.X_OK)), None)
    if path is None:
        return Finding(name, False, "not installed", what, f"apt install {package}")
    return Finding(name, True, _version(path) or path, what)


def _version(path: str) -> str:
    """What a program of shadowsocks-libev says of itself."""
    try:
        done = subprocess.run([path, "-h"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip().startswith("shadowsocks-libev")]
    return f"{path} ({words[0]})" if words else path


def _sysctls() -> Finding:
    able, why = [], []
    for name in KINDS:
        try:
            Sysctl(name).require_writable()
            able.append(name)
        except SettingError as error:
            why.append(str(error))
    found = f"{len(able)} of {len(KINDS)} can be set" + (f"; {why[0]}" if why else "")
    remedy = "" if not why else "run as root on the host itself"
    return Finding("sysctls", not why, found, "netbuf-gym live tune --apply", remedy)


def _rings() -> Finding:
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
    told = ", ".join(found) or "no device has one"
    return Finding("rings", bool(found), told, "live tune --ring", "" if found else "a network card")


CHECKS: tuple[Callable[[], Finding], ...] = (
    _system,
    _namespaces,
    _tun,
    _diag,
    _btf,
    _struct_ops,
    _congestion,
    lambda: _program("ss-server", "shadowsocks-libev", "live hosts behind a Shadowsocks proxy; the plain relay does without"),
    lambda: _program("ss-local", "shadowsocks-libev", "live hosts behind a Shadowsocks proxy; the plain relay does without"),
    _sysctls,
    _rings,
)
