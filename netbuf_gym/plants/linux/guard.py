"""The first of a world's two processes: it makes the namespaces, and ends the second one when the owner is gone.

The second one is process 1 of its process namespace, so that with it everything ends that it has started, and namespaces,
devices and sockets with the last of these. It ends when its socket closes; when the owner dies but some child of the
owner's still holds the socket, by this guard; when the guard dies, by the kernel.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import traceback
from contextlib import suppress

from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.messages import MessageChannel, PeerGone


def main(descriptor: int, owner: int) -> None:
    """Serve the owner at the other end of a socket until one of them is gone; does not return."""
    end = socket.socket(fileno=descriptor)
    end.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, which closes its worlds
    watched = _open_owner_pidfd(owner)
    try:
        system.isolate()
        child = os.fork()
    except OSError as error:
        with suppress(PeerGone):
            MessageChannel(end).send({"error": str(error.strerror or error), "config": True})
        os._exit(1)
    if child == 0:
        _run_child(end, watched)
    end.close()
    os._exit(_wait_for_child(child, watched))


def _run_child(end: socket.socket, watched: int) -> None:
    """Serve the owner in the child process; does not return."""
    status = 1
    try:
        system.die_with_parent()
        if watched >= 0:
            os.close(watched)
        from netbuf_gym.plants.linux.helper import serve

        status = serve(MessageChannel(end))
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def _open_owner_pidfd(owner: int) -> int:
    """Return a descriptor that becomes readable at the owner's end; -1 on kernels without such descriptors."""
    try:
        return system.pidfd_open(owner)
    except OSError as error:
        if error.errno == errno.ESRCH:
            os._exit(1)
        return -1


def _wait_for_child(child: int, watched: int) -> int:
    """Wait until the child has ended, which happens at the latest with the owner; return its exit status."""
    poll = select.poll()
    with suppress(OSError):
        poll.register(system.pidfd_open(child), select.POLLIN)
        if watched >= 0:
            poll.register(watched, select.POLLIN)
            for descriptor, _ in poll.poll():
                if descriptor == watched:
                    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
