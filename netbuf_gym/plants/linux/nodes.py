"""Nodes of a world: a network namespace each, with one TUN device through which all traffic goes in and out."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress

from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.netlink import Routing

DEVICE = "tun0"
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
RING_PACKETS = 4096
"""Length of the device's own queue, between the kernel and the emulator, which empties it at once."""

SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    "net.ipv4.tcp_no_metrics_save": "1",  # else a connection would inherit what one before it has learned
    "net.ipv4.tcp_orphan_retries": "1",
    "net.ipv4.ip_local_port_range": "1024 65535",
    "net.ipv4.tcp_tw_reuse": "1",
    "net.ipv4.tcp_ecn": "2",  # as asked for, and as routes say
    "net.ipv4.tcp_ecn_fallback": "0",  # a SYN that is sent again asks for ECN, too
}
"""Sysctls set in every node, where the kernel has them."""

FINAL_SYSCTLS = {"net.ipv4.tcp_rto_max_ms": "1000"}
"""Sysctls set before the end: what is left of a connection then goes within a second."""


class Node:
    """A network namespace, made and entered by the calling thread.

    Args:
        number: number of the node; its addresses are 10.number.0.0/16.
        mtu: MTU of the node's device, bytes.

    Attributes:
        namespace, tun: descriptors.

    Raises:
        OSError: the machine has no TUN devices, or does not let us make one; the message says so.
    """

    def __init__(self, number: int, mtu: int):
        self.number, self.namespace, self.tun = number, -1, -1
        try:
            system.unshare(system.NEWNET)
            self.namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            self.tun = _open_tun()
            with Routing() as netlink:
                netlink.set_up("lo")
                netlink.set_up(DEVICE, mtu, RING_PACKETS)
                netlink.local(f"10.{number}.0.0", 16)
                netlink.route("10.0.0.0", 8, DEVICE)
            self.set(SYSCTLS)
        except BaseException:
            self.close()
            raise

    def enter(self) -> None:
        """Move the calling thread into the node's namespace."""
        system.setns(self.namespace, system.NEWNET)

    def set(self, sysctls: Mapping[str, str]) -> None:
        """Set those of the sysctls that this kernel has."""
        self.enter()
        for name, value in sysctls.items():
            with suppress(FileNotFoundError):
                set_sysctl(name, value)

    def set_route_metrics(self, metrics: Iterable[tuple[str, Mapping[int, int]]]) -> None:
        """Set metrics, by RTAX_ number, of the routes to some addresses of other nodes."""
        self.enter()
        with Routing() as netlink:
            for address, values in metrics:
                netlink.route(address, 32, DEVICE, dict(values))

    def close(self) -> None:
        """Release the namespace, which goes with everything in it once nobody else holds it."""
        for descriptor in (self.tun, self.namespace):
            if descriptor >= 0:
                os.close(descriptor)
        self.tun = self.namespace = -1


def set_sysctl(name: str, value: str) -> None:
    """Set a sysctl, in the calling thread's network namespace where the sysctl belongs to one.

    Raises:
        FileNotFoundError: this kernel has none of this name.
        OSError: the sysctl cannot be set; the message names it and the value.
    """
    try:
        with open("/proc/sys/" + name.replace(".", "/"), "w") as file:
            file.write(value)
    except FileNotFoundError:
        raise
    except OSError as error:
        valid = "a value that this kernel takes" if error.errno == errno.EINVAL else "/proc/sys that may be written to here"
        why = os.strerror(error.errno or 0)
        if error.errno == errno.EROFS:
            why, valid = system.READ_ONLY, system.MAKE_WRITABLE
        raise OSError(error.errno, f"sysctl {name} = {value}: {why}; valid: {valid}") from None


def get_sysctl(name: str) -> str:
    """Return the value of a sysctl, in the calling thread's network namespace where the sysctl belongs to one."""
    with open("/proc/sys/" + name.replace(".", "/")) as file:
        return file.read().strip()


def _open_tun() -> int:
    try:
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        missing = {
            errno.ENOENT: "there is no /dev/net/tun (modprobe tun; in a container: --device /dev/net/tun)",
            errno.ENODEV: "the kernel has no TUN devices (modprobe tun)",
            errno.EACCES: "/dev/net/tun may not be opened by this user (chmod 666 /dev/net/tun, or run as root)",
            errno.EPERM: "/dev/net/tun may not be opened here (in a container: --device /dev/net/tun)",
        }.get(error.errno or 0, f"/dev/net/tun cannot be opened: {os.strerror(error.errno or 0)}")
        raise OSError(error.errno, missing) from None
    try:
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    except OSError as error:
        os.close(descriptor)
        raise OSError(error.errno, f"a TUN device cannot be made: {os.strerror(error.errno or 0)}") from None
    return descriptor
