"""Programs in network namespaces: started, waited for, and ended with the thread that started them."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.proxy import socks

HERE = Path(__file__).resolve().parent
PACKAGE = "shadowsocks-libev"
CIPHER = "aes-256-gcm"
READY_S = 10.0
SOCKS_PORT = 1080
"""Port of the SOCKS5 proxy, on the client's 127.0.0.1."""

ATTEMPT_S = 2.0
"""Longest time for an attempt to connect: where the server has not begun, another program may have answered."""


@contextmanager
def enter_namespace(namespace: int) -> Iterator[None]:
    """Move the calling thread into a network namespace (a descriptor), and back; sockets made there stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        system.setns(namespace, system.NEWNET)
        try:
            yield
        finally:
            system.setns(home, system.NEWNET)
    finally:
        os.close(home)


class Program:
    """A process in a network namespace that ends with the thread that started it.

    Args:
        argv: command line.
        namespace: a descriptor of the network namespace.
        name: name of the program in messages.
        ready: whether the program prints `ready` on standard output, which is waited for.
        keep: descriptors that the program inherits.

    Raises:
        RuntimeError: the program ended instead; the message has its last words.
    """

    def __init__(self, argv: Sequence[str], namespace: int, name: str, ready: bool = True, keep: Sequence[int] = ()):
        self.name, self._words = name, tempfile.TemporaryFile()

        def enter() -> None:
            system.setns(namespace, system.NEWNET)
            system.die_with_parent()

        stdout = subprocess.PIPE if ready else self._words
        self.process = subprocess.Popen(
            list(argv), stdin=subprocess.PIPE, stdout=stdout, stderr=self._words, preexec_fn=enter, pass_fds=tuple(keep)
        )
        if ready:
            try:
                self._wait()
            except BaseException:
                self.close()
                raise

    def _wait(self) -> None:
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if readable else b""
        if line.strip() != b"ready":
            raise self.make_failure(f"did not begin within {READY_S:g} s" if not readable else "")

    def make_failure(self, why: str = "") -> RuntimeError:
        """Return an error that says why the program has ended, in its own words."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.5)
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        words = next((line for line in reversed(lines) if "ERROR" in line or "Error" in line), lines[-1] if lines else "")
        return RuntimeError(f"{self.name}: {why or words or f'ended with status {self.process.returncode}'}")

    @property
    def alive(self) -> bool:
        """Whether the program runs."""
        return self.process.poll() is None

    def close(self) -> None:
        """End the program."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._words):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def start_script(name: str, namespace: int, *arguments: Any) -> Program:
    """Start one of the scripts of this package: `relay`, `target`, `load`."""
    argv = [sys.executable, "-I", "-S", str(HERE / f"{name}.py"), *map(str, arguments)]
    return Program(argv, namespace, name)


def find_program(name: str) -> str:
    """Return the path of a program of shadowsocks-libev; raises FileNotFoundError, which says what to install."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/bin")
    if found is None:
        raise FileNotFoundError(2, f"{name} is not installed (Debian: apt install {PACKAGE})")
    return found


class Shadowsocks:
    """`ss-server` in one network namespace, `ss-local` in another; a SOCKS5 proxy for the latter. A context manager.

    Args:
        server, client: descriptors of the namespaces.
        address, port: address where the server listens, and the client connects to.

    Raises:
        FileNotFoundError: shadowsocks-libev is not installed.
        RuntimeError: one of the programs did not begin, in its own words (a port in use, for one).
    """

    def __init__(self, server: int, client: int, address: str, port: int = 8388):
        programs = [find_program(name) for name in ("ss-server", "ss-local")]
        self._client, self.socks = client, ("127.0.0.1", SOCKS_PORT)
        config: dict[str, Any] = {
            "server": address,
            "server_port": port,
            "password": os.urandom(16).hex(),
            "method": CIPHER,
            "timeout": 600,
            "no_delay": True,
        }
        own = {"local_address": self.socks[0], "local_port": SOCKS_PORT}
        self.programs: list[Program] = []
        try:
            for path, namespace, more in zip(programs, (server, client), ({}, own), strict=True):
                name = Path(path).name
                with os.fdopen(os.memfd_create(name), "wb", buffering=0) as file:  # a file on the disk would outlive a kill
                    file.write(json.dumps({**config, **more}).encode())
                    argv = [path, "-c", f"/proc/self/fd/{file.fileno()}"]
                    self.programs.append(Program(argv, namespace, name, ready=False, keep=[file.fileno()]))
        except BaseException:
            self.close()
            raise

    def check(self, target: tuple[str, int], timeout_s: float = READY_S) -> float:
        """Connect through both programs to a listening target, retrying until that succeeds; return the seconds taken.

        Raises:
            RuntimeError: no connection within `timeout_s`.
        """
        begin = time.monotonic()
        last: OSError | None = None
        while time.monotonic() < begin + timeout_s:
            self._require_alive()
            try:
                with enter_namespace(self._client):
                    connection = socket.socket()
                with connection:
                    connection.settimeout(max(0.1, min(ATTEMPT_S, begin + timeout_s - time.monotonic())))
                    connection.connect(self.socks)
                    socks.connect_through(connection, target)
                    connection.sendall((1).to_bytes(8, "big"))
                    if connection.recv(1):
                        return time.monotonic() - begin
            except OSError as error:
                last = error
            time.sleep(0.01)
        self._require_alive()
        raise RuntimeError(f"shadowsocks does not reach {target[0]}:{target[1]} within {timeout_s:g} s: {last}")

    def _require_alive(self) -> None:
        """Raise in the words of a program that has ended; those of the server say more than those of its client."""
        if not all(one.alive for one in self.programs):
            time.sleep(0.1)
            raise next(one for one in self.programs if not one.alive).make_failure()

    def __enter__(self) -> Shadowsocks:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End both programs."""
        for program in self.programs:
            program.close()
