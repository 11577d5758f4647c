"""System calls that Python does not have, or not in every supported version."""

from __future__ import annotations

import ctypes
import errno
import os
import signal

NEWNS, NEWUSER, NEWPID, NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
NET_ADMIN, SYS_ADMIN, PERFMON, BPF = 12, 21, 38, 39
"""Numbers of capabilities."""
BPF_PRIVILEGES = "CAP_SYS_ADMIN, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, in the machine's own user namespace"
"""Privileges for registering a congestion control of BPF programs."""
READ_ONLY = "/proc/sys is mounted read-only"
MAKE_WRITABLE = "mount -o remount,rw /proc/sys; in a container: --privileged, or --security-opt systempaths=unconfined"
"""Remedy where no sysctl can be set (`READ_ONLY`), in containers above all."""
_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _check_result(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move the thread (user and process namespaces: the processes that it starts) into new namespaces."""
    _check_result(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int = 0) -> None:
    """Enter the namespace of a descriptor."""
    _check_result(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    _check_result(_libc.prctl(_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0), "prctl")


def pidfd_open(pid: int) -> int:
    """Return a descriptor that is readable once a process has ended.

    Raises:
        OSError: ESRCH: there is no such process any more; ENOSYS: the kernel is older than 5.3.
    """
    return _check_result(_libc.syscall(ctypes.c_long(434), ctypes.c_int(pid), ctypes.c_uint(0)), "pidfd_open")


def read_capabilities() -> set[int]:
    """Return the numbers of this process's effective capabilities."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("CapEff:"):
                mask = int(line.split()[1], 16)
                return {bit for bit in range(64) if mask >> bit & 1}
    return set()


def may_register_bpf() -> bool:
    """Return whether this process has `BPF_PRIVILEGES`."""
    with open("/proc/self/uid_map") as file:
        first = file.read().split()[:3] == ["0", "0", "4294967295"]
    held = read_capabilities()
    return first and (SYS_ADMIN in held or {BPF, PERFMON, NET_ADMIN} <= held)


def pidfd_getfd(process: int, number: int) -> int:
    """Duplicate a descriptor of another process, which has to be one that this one may trace.

    Args:
        process: a descriptor of the process (`pidfd_open`).
        number: number of the process's descriptor.

    Raises:
        OSError: EBADF: the process has none of this number; ESRCH: it has ended; EPERM: it may not be traced; ENOSYS: the
            kernel is older than 5.6.
    """
    arguments = (ctypes.c_long(438), ctypes.c_int(process), ctypes.c_int(number), ctypes.c_uint(0))
    return _check_result(_libc.syscall(*arguments), "pidfd_getfd")


def isolate() -> None:
    """Enter new network and process namespaces, in a new user namespace where this process may not make them itself.

    Raises:
        OSError: the machine does not allow it; the message says what is missing.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        try:
            return unshare(NEWNET | NEWPID)
        except OSError as error:
            if error.errno != errno.EPERM:
                raise
    try:
        unshare(NEWUSER | NEWNET | NEWPID)
    except OSError as error:
        hints = {
            errno.ENOSPC: "no more user namespaces are allowed (sysctl user.max_user_namespaces)",
            errno.EPERM: "neither root's privileges nor user namespaces (sysctl kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns; in a container: --cap-add SYS_ADMIN --cap-add NET_ADMIN)",
        }
        hint = hints.get(error.errno or 0, os.strerror(error.errno or 0))
        raise OSError(error.errno, f"network namespaces cannot be made here: {hint}") from None
    _write_file("/proc/self/setgroups", "deny")
    _write_file("/proc/self/uid_map", f"0 {uid} 1")
    _write_file("/proc/self/gid_map", f"0 {gid} 1")


def _write_file(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
