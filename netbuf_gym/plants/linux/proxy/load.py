"""Clients: `python load.py JSON`. They fetch files that do not end, and web pages.

The argument is an object:
    connect: [address, port] of the proxy, or of the target itself
    socks: [address, port] of the target, where the proxy speaks SOCKS5; null: the proxy connects on by itself
    bind: address that connections begin at, or null
    bulk: [{"start_s": ...}], connections that fetch without an end
    arrivals_per_s: of objects (web visits), Poisson; 0: none
    sizes: [[bytes, ...], [cumulative, ...]] of the objects
    page: [fewest, most] objects a page, fetched over one connection, one after the other
    think_s: mean time between two objects of a page, exponential
    seed: seed of all random numbers

A bulk connection that breaks is opened again a second later; an object that does not come is not asked for again.

The script prints `ready` when it begins, then a JSON object a second: bytes received so far, objects completed, present
connections, how many have failed, and why the last one did. A line that nobody reads in time is left out. The script ends when
standard input does.
"""

from __future__ import annotations

import bisect
import heapq
import json
import os
import random
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

NUMBER = struct.Struct(">Q")
ENDLESS = 1 << 62
READ_BYTES = 256 * 1024
GONE = "the proxy closed the connection"
AGAIN_S = 1.0
WHY_CHARACTERS = 200


class Fetch:
    """One connection, and the sizes of the objects still to be fetched."""

    def __init__(self, connection: socket.socket, sizes: list[int], bulk: bool):
        self.connection, self.sizes, self.left, self.stage, self.bulk = connection, sizes, 0, "connecting", bulk
        self.answer = b""


class LoadGenerator:
    """All connections of the clients."""

    def __init__(self, plan: dict[str, Any]):
        self.plan, self.random = plan, random.Random(plan["seed"])
        self.chosen = selectors.DefaultSelector()
        self.buffer = bytearray(READ_BYTES)
        self.due: list[tuple[float, int, Callable[[], Any]]] = []
        self.count = 0
        self.totals: dict[str, Any] = {"received_bytes": 0, "completed": 0, "connections": 0, "failures": 0, "why": ""}

    def run(self) -> None:
        """Run until standard input ends."""
        begin = time.monotonic()
        for one in self.plan["bulk"]:
            self.schedule(begin + one["start_s"], self.open_bulk)
        if self.plan["arrivals_per_s"] > 0:
            self.schedule(begin + self.draw_gap(), self.visit_page)
        self.schedule(begin + 1.0, self.print_totals)
        self.chosen.register(0, selectors.EVENT_READ)
        print("ready", flush=True)
        os.set_blocking(1, False)
        while True:
            wait_s = max(0.0, self.due[0][0] - time.monotonic()) if self.due else None
            for key, _ in self.chosen.select(wait_s):
                if key.fileobj == 0:
                    if not os.read(0, 4096):
                        return
                else:
                    self.handle(key.data)
            while self.due and self.due[0][0] <= time.monotonic():
                heapq.heappop(self.due)[2]()

    def schedule(self, when: float, what: Callable[[], Any]) -> None:
        """Schedule a call of a function."""
        self.count += 1
        heapq.heappush(self.due, (when, self.count, what))

    def draw_gap(self) -> float:
        """Draw the time until the next page."""
        return self.random.expovariate(2 * self.plan["arrivals_per_s"] / sum(self.plan["page"]))

    def draw_size(self) -> int:
        """Draw a size from the distribution, linear between its points; of one point that point."""
        sizes, cumulative = self.plan["sizes"]
        u = self.random.random()
        i = bisect.bisect_left(cumulative, u)
        if i == 0:
            return max(1, round(sizes[0]))
        share = (u - cumulative[i - 1]) / (cumulative[i] - cumulative[i - 1])
        return max(1, round(sizes[i - 1] + share * (sizes[i] - sizes[i - 1])))

    def visit_page(self) -> None:
        """Visit a page, and schedule the next visit."""
        self.open([self.draw_size() for _ in range(self.random.randint(*self.plan["page"]))])
        self.schedule(time.monotonic() + self.draw_gap(), self.visit_page)

    def open_bulk(self) -> None:
        """Open a connection that fetches without an end."""
        self.open([ENDLESS], bulk=True)

    def open(self, sizes: list[int], bulk: bool = False) -> None:
        """Open a connection."""
        connection = socket.socket()
        connection.setblocking(False)
        try:
            if self.plan.get("bind"):
                connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
                connection.bind((self.plan["bind"], 0))
            connection.connect_ex(tuple(self.plan["connect"]))
        except OSError as error:
            connection.close()
            self.count_failure(bulk, error)
            return
        self.totals["connections"] += 1
        self.chosen.register(connection, selectors.EVENT_WRITE, Fetch(connection, sizes, bulk))

    def count_failure(self, bulk: bool, error: OSError) -> None:
        """Count a failed connection."""
        self.totals["failures"] += 1
        self.totals["why"] = str(error.strerror or error)[:WHY_CHARACTERS]
        if bulk:
            self.schedule(time.monotonic() + AGAIN_S, self.open_bulk)

    def handle(self, fetch: Fetch) -> None:
        """Handle a connection that is ready."""
        try:
            if not self.advance(fetch):
                self.close(fetch)
        except BlockingIOError:
            pass
        except OSError as error:
            self.close(fetch)
            self.count_failure(fetch.bulk, error)

    def advance(self, fetch: Fetch) -> bool:
        """Advance a connection; return whether it goes on. OSError: the connection has failed."""
        connection = fetch.connection
        if fetch.stage == "connecting":
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            self.chosen.modify(connection, selectors.EVENT_READ, fetch)
            if self.plan.get("socks"):
                connection.send(b"\x05\x01\x00")
                fetch.stage = "greeting"
            else:
                self.request_next(fetch)
            return True
        if fetch.stage in ("greeting", "asking"):
            wanted = 2 if fetch.stage == "greeting" else 10
            data = connection.recv(wanted - len(fetch.answer))
            if not data:
                raise ConnectionError(GONE)
            fetch.answer += data
            if len(fetch.answer) < wanted:
                return True
            if fetch.answer[1]:
                raise ConnectionError(f"the proxy refuses (SOCKS5, {fetch.answer[1]})")
            fetch.answer = b""
            if fetch.stage == "greeting":
                address, port = self.plan["socks"]
                connection.send(b"\x05\x01\x00\x01" + socket.inet_aton(address) + struct.pack(">H", port))
                fetch.stage = "asking"
            else:
                self.request_next(fetch)
            return True
        count = connection.recv_into(self.buffer)
        if not count:
            raise ConnectionError(GONE)
        self.totals["received_bytes"] += count
        fetch.left -= count
        if fetch.left > 0:
            return True
        self.totals["completed"] += 1
        if not fetch.sizes:
            return False
        think_s = self.plan["think_s"]
        pause_s = self.random.expovariate(1 / think_s) if think_s > 0 else 0.0
        self.schedule(time.monotonic() + pause_s, lambda: self.request_next(fetch))
        return True

    def request_next(self, fetch: Fetch) -> None:
        """Request the next object."""
        if fetch.connection.fileno() < 0:
            return
        fetch.stage, fetch.left = "fetching", fetch.sizes.pop(0)
        try:
            fetch.connection.send(NUMBER.pack(fetch.left))
        except OSError as error:
            self.close(fetch)
            self.count_failure(fetch.bulk, error)

    def close(self, fetch: Fetch) -> None:
        """Close a connection."""
        self.totals["connections"] -= 1
        self.chosen.unregister(fetch.connection)
        fetch.connection.close()

    def print_totals(self) -> None:
        """Print the totals, each second."""
        with suppress(BlockingIOError):
            os.write(1, json.dumps(self.totals).encode() + b"\n")  # short enough for a pipe to take in one piece or not at all
        self.schedule(time.monotonic() + 1.0, self.print_totals)


if __name__ == "__main__":
    LoadGenerator(json.loads(sys.argv[1])).run()
