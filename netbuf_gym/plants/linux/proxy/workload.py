"""A target, a proxy and clients in the nodes of a world, started when its links are, and what the clients got."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from netbuf_gym.plants.linux.netlink import CC_ALGO, Routing
from netbuf_gym.plants.linux.nodes import DEVICE
from netbuf_gym.plants.linux.proxy.processes import Program, Shadowsocks, program_of, script

TARGET = ("127.0.0.1", 9000)
PORT = 8388


class Workload:
    """Of a world with one route, from the proxy's node to the clients'.

    Args:
        world: a `LiveWorld` that has its nodes.
        work: what `relayed.relayed` gave, and `proxy`: `"plain"` or `"shadowsocks"`; `control`: the kernel's name of the
            congestion control.
        seed: of the clients' chance.

    Raises:
        OSError: a program is missing; the message says what to install.
    """

    def __init__(self, world: Any, work: dict[str, Any], seed: int):
        self._work, self._seed = work, seed
        route = world.setup["routes"][0]
        self._server, self._client = world.nodes[route["sender_node"]], world.nodes[route["receiver_node"]]
        self._addresses = [f"10.{node}.0.0" for node in (route["sender_node"], route["receiver_node"])]
        self._programs: list[Program] = []
        self._shadowsocks: Shadowsocks | None = None
        self._load: Program | None = None
        self._told: dict[str, int] = {}
        self._unread = b""
        if work["proxy"] == "shadowsocks":
            for name in ("ss-server", "ss-local"):
                program_of(name)
        for node, to, source, metrics in (
            (self._server, self._addresses[1], self._addresses[0], {CC_ALGO: work["control"].encode() + b"\0"}),
            (self._client, self._addresses[0], self._addresses[1], {}),
        ):
            node.enter()
            with Routing() as netlink:
                netlink.route(to, 32, DEVICE, metrics, source)

    def start(self) -> None:
        """Starts all of it, and waits until the proxy answers; raises RuntimeError with the words of what does not."""
        server, client = self._server.namespace, self._client.namespace
        plan: dict[str, Any] = {key: self._work[key] for key in ("bulk", "arrivals_per_s", "sizes", "page", "think_s")}
        plan |= {"seed": self._seed, "bind": None, "socks": None}
        self._programs.append(script("target", server, *TARGET))
        if self._work["proxy"] == "shadowsocks":
            self._shadowsocks = Shadowsocks(server, client, self._addresses[0], PORT)
            self._shadowsocks.check(TARGET)
            plan |= {"connect": self._shadowsocks.socks, "socks": TARGET}
        else:
            self._programs.append(script("relay", server, self._addresses[0], PORT, *TARGET, self._work["control"]))
            plan |= {"connect": (self._addresses[0], PORT), "bind": self._addresses[1]}
        self._load = script("load", client, json.dumps(plan))
        assert self._load.process.stdout is not None
        os.set_blocking(self._load.process.stdout.fileno(), False)

    def look(self) -> dict[str, int]:
        """What the clients got so far; raises RuntimeError where a program has ended."""
        for program in (*self._programs, *([] if self._shadowsocks is None else self._shadowsocks.programs)):
            if not program.alive:
                raise program.failure()
        if self._load is None:
            return {}
        if not self._load.alive:
            raise self._load.failure()
        stream = self._load.process.stdout
        assert stream is not None
        with suppress(BlockingIOError):
            self._unread += os.read(stream.fileno(), 1 << 16)
        *lines, self._unread = self._unread.split(b"\n")
        if lines:
            self._told = json.loads(lines[-1])
        return self._told

    def close(self) -> None:
        """Ends all of it."""
        for program in ([self._load] if self._load is not None else []) + self._programs:
            program.close()
        if self._shadowsocks is not None:
            self._shadowsocks.close()
