"""A target, a proxy and clients in the nodes of a world, started with its links, and the traffic that the clients received."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

from netbuf_gym.plants.linux.netlink import CC_ALGO, Routing
from netbuf_gym.plants.linux.nodes import DEVICE
from netbuf_gym.plants.linux.proxy.health import HealthProbe
from netbuf_gym.plants.linux.proxy.processes import Program, Shadowsocks, find_program, start_script
from netbuf_gym.plants.linux.proxy.sockets import clamp_windows, set_congestion_control

TARGET = ("127.0.0.1", 9000)
PORT = 8388
MOST_FAILURES = 3
"""Number of failed connections in a row, without a byte between them, at which the proxy is taken to serve nobody."""


class Workload:
    """Workload of a world with one route, from the proxy's node to the clients'.

    Args:
        world: a `LiveWorld` that has its nodes.
        work: the work of `relayed.split_proxy_work`, and `proxy`: `"plain"` or `"shadowsocks"`; `control`: the kernel's name
            of the congestion control.
        seed: seed of the clients' random numbers.

    Raises:
        OSError: a program is missing; the message says what to install.
    """

    def __init__(self, world: Any, work: dict[str, Any], seed: int):
        self._work, self._seed = work, seed
        route = world.setup["routes"][0]
        self._server, self._client = world.nodes[route["sender_node"]], world.nodes[route["receiver_node"]]
        self._addresses = [f"10.{node}.0.0" for node in (route["sender_node"], route["receiver_node"])]
        self._programs: list[Program] = []
        self._proxies: list[Program] = []
        self._shadowsocks: Shadowsocks | None = None
        self._load: Program | None = None
        self._totals: dict[str, Any] = {}
        self._received = self._failures = 0  # totals when the last byte came
        self._unread = b""
        self._healths: list[HealthProbe] = []
        if work["proxy"] == "shadowsocks":
            for name in ("ss-server", "ss-local"):
                find_program(name)
        for node, to, source, metrics in (
            (self._server, self._addresses[1], self._addresses[0], {CC_ALGO: work["control"].encode() + b"\0"}),
            (self._client, self._addresses[0], self._addresses[1], {}),
        ):
            node.enter()
            with Routing() as netlink:
                netlink.route(to, 32, DEVICE, metrics, source)

    def start(self) -> None:
        """Start all programs, and wait until the proxy answers; raises RuntimeError with the words of one that does not."""
        server, client = self._server.namespace, self._client.namespace
        plan: dict[str, Any] = {key: self._work[key] for key in ("bulk", "arrivals_per_s", "sizes", "page", "think_s")}
        plan |= {"seed": self._seed, "bind": None, "socks": None}
        self._programs.append(start_script("target", server, *TARGET))
        if self._work["proxy"] == "shadowsocks":
            self._shadowsocks = Shadowsocks(server, client, self._addresses[0], PORT)
            self._shadowsocks.check(TARGET)
            plan |= {"connect": self._shadowsocks.socks, "socks": TARGET}
            self._proxies = self._shadowsocks.programs
            self._healths.append(HealthProbe("ss-local", client, self._shadowsocks.socks))
        else:
            self._programs.append(start_script("relay", server, self._addresses[0], PORT, *TARGET, self._work["control"]))
            self._proxies = self._programs[-1:]
            plan |= {"connect": (self._addresses[0], PORT), "bind": self._addresses[1]}
        self._healths.append(HealthProbe(self._proxies[0].name, server, (self._addresses[0], PORT)))
        self._load = start_script("load", client, json.dumps(plan))
        assert self._load.process.stdout is not None
        os.set_blocking(self._load.process.stdout.fileno(), False)

    def look(self) -> dict[str, Any]:
        """Return the clients' totals so far (see `load`).

        Raises:
            RuntimeError: a program has ended, the proxy takes no connections any more, or the clients' have failed one after
                the other and brought nothing.
        """
        for program in (*self._programs, *([] if self._shadowsocks is None else self._shadowsocks.programs)):
            if not program.alive:
                raise program.make_failure()
        if self._load is None:
            return {}
        if not self._load.alive:
            raise self._load.make_failure()
        stream = self._load.process.stdout
        assert stream is not None
        with suppress(BlockingIOError):
            self._unread += os.read(stream.fileno(), 1 << 16)
        *lines, self._unread = self._unread.split(b"\n")
        if lines:
            self._totals = json.loads(lines[-1])
            self._judge(self._totals)
        now_s = time.monotonic()
        for health in self._healths:
            health.look(now_s)
        return self._totals

    def _judge(self, totals: dict[str, Any]) -> None:
        if totals["received_bytes"] > self._received:
            self._received, self._failures = totals["received_bytes"], totals["failures"]
        failed = totals["failures"] - self._failures
        if failed >= MOST_FAILURES:
            why = f"{failed} connections have failed, the last: {totals['why']}"
            raise RuntimeError(f"the clients get nothing through the proxy: {why}")

    def clamp_windows(self, size_bytes: int) -> None:
        """Clamp the windows of the connections that the proxy has now at its host; OSError where that cannot be."""
        if self._proxies:
            clamp_windows(self._proxies[0].process.pid, size_bytes)

    def set_congestion_control(self, name: str) -> None:
        """Set the congestion control of the connections that the proxy has now; OSError where that cannot be."""
        if self._proxies:
            set_congestion_control(self._proxies[0].process.pid, name)

    def close(self) -> None:
        """End all programs."""
        for health in self._healths:
            health.close()
        self._healths = []
        for program in ([self._load] if self._load is not None else []) + self._programs:
            program.close()
        if self._shadowsocks is not None:
            self._shadowsocks.close()
