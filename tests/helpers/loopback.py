"""Sets the loopback device of a network namespace up."""

import fcntl
import socket
import struct

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def up() -> None:
    """In the namespace of this thread."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
