"""Clients: `python load.py JSON`. They fetch files that do not end, and web pages.

The argument is an object:
    connect: [address, port] of the proxy, or of the target itself
    socks: [address, port] of the target, where the proxy speaks SOCKS5; null: it is connected on by itself
    bind: address that connections begin at, or null
    bulk: [{"start_s": ...}], connections that fetch without an end
    arrivals_per_s: of objects (web visits), Poisson; 0: none
    sizes: [[bytes, ...], [cumulative, ...]] of the objects
    page: [fewest, most] objects a page, fetched over one connection, one after the other
    think_s: mean time between two objects of a page, exponential
    seed: of all that is random

A bulk connection that breaks is opened again a second later; an object that does not come is not asked for again.

Says `ready` when it begins, then a JSON object a second: bytes received so far, objects completed, connections that there are,
how many have failed, and why the last one did. A second that nobody reads is not told. Ends when standard input does.
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
    """One connection, and the sizes that it still fetches."""

    def __init__(self, connection: socket.socket, sizes: list[int], bulk: bool):
        self.connection, self.sizes, self.left, self.stage, self.bulk = connection, sizes, 0, "connecting", bulk
        self.answer = b""


class Load:
    """All of them."""

    def __init__(self, plan: dict[str, Any]):
        self.plan, self.random = plan, random.Random(plan["seed"])
        self.chosen = selectors.DefaultSelector()
        self.buffer = bytearray(READ_BYTES)
        self.due: list[tuple[float, int, Callable[[], Any]]] = []
        self.count = 0
        self.totals: dict[str, Any] = {"received_bytes": 0, "completed": 0, "connections": 0, "failures": 0, "why": ""}

    def run(self) -> None:
        """Until standard input ends."""
        begin = time.monotonic()
        for one in self.plan["bulk"]:
            self.at(begin + one["start_s"], self.open_bulk)
        if self.plan["arrivals_per_s"] > 0:
            self.at(begin + self.gap(), self.arrive)
        self.at(begin + 1.0, self.tell)
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

    def at(self, when: float, what: Callable[[], Any]) -> None:
        """Calls a function then."""
        self.count += 1
        heapq.heappush(self.due, (when, self.count, what))

    def gap(self) -> float:
        """Until the next page."""
        return self.random.expovariate(2 * self.plan["arrivals_per_s"] / sum(self.plan["page"]))

    def size(self) -> int:
        """From the distribution, linear between its points; of one point that point."""
        sizes, cumulative = self.plan["sizes"]
        u = self.random.random()
        i = bisect.bisect_left(cumulative, u)
        if i == 0:
            return max(1, round(sizes[0]))
        share = (u - cumulative[i - 1]) / (cumulative[i] - cumulative[i - 1])
        return max(1, round(sizes[i - 1] + share * (sizes[i] - sizes[i - 1])))

    def arrive(self) -> None:
        """A page is visited."""
        self.open([self.size() for _ in range(self.random.randint(*self.plan["page"]))])
        self.at(time.monotonic() + self.gap(), self.arrive)

    def open_bulk(self) -> None:
        """A connection that fetches without an end."""
        self.open([ENDLESS], bulk=True)

    def open(self, sizes: list[int], bulk: bool = False) -> None:
        """Another connection."""
        connection = socket.socket()
        connection.setblocking(False)
        try:
            if self.plan.get("bind"):
                connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
                connection.bind((self.plan["bind"], 0))
            connection.connect_ex(tuple(self.plan["connect"]))
        except OSError as error:
            connection.close()
            self.failed(bulk, error)
            return
        self.totals["connections"] += 1
        self.chosen.register(connection, selectors.EVENT_WRITE, Fetch(connection, sizes, bulk))

    def failed(self, bulk: bool, error: OSError) -> None:
        """A connection has."""
        self.totals["failures"] += 1
        self.totals["why"] = str(error.strerror or error)[:WHY_CHARACTERS]
        if bulk:
            self.at(time.monotonic() + AGAIN_S, self.open_bulk)

    def handle(self, fetch: Fetch) -> None:
        """Something has come, or the connection stands."""
        try:
            if not self.advance(fetch):
                self.close(fetch)
        except BlockingIOError:
            pass
        except OSError as error:
            self.close(fetch)
            self.failed(fetch.bulk, error)

    def advance(self, fetch: Fetch) -> bool:
        """Whether it goes on; OSError: it has failed."""
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
                self.ask(fetch)
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
                self.ask(fetch)
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
        self.at(time.monotonic() + pause_s, lambda: self.ask(fetch))
        return True

    def ask(self, fetch: Fetch) -> None:
        """For the next object."""
        if fetch.connection.fileno() < 0:
            return
        fetch.stage, fetch.left = "fetching", fetch.sizes.pop(0)
        try:
            fetch.connection.send(NUMBER.pack(fetch.left))
        except OSError as error:
            self.close(fetch)
            self.failed(fetch.bulk, error)

    def close(self, fetch: Fetch) -> None:
        """Lets it go."""
        self.totals["connections"] -= 1
        self.chosen.unregister(fetch.connection)
        fetch.connection.close()

    def tell(self) -> None:
        """What there is, each second."""
        with suppress(BlockingIOError):
            os.write(1, json.dumps(self.totals).encode() + b"\n")  # as short as a pipe takes wholly or not at all
        self.at(time.monotonic() + 1.0, self.tell)


if __name__ == "__main__":
    Load(json.loads(sys.argv[1])).run()
