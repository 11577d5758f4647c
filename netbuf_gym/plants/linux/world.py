"""A live world, in its own process: nodes, the emulator of the links between them, connections, and the agents' part."""

from __future__ import annotations

import importlib
import math
import os
from typing import Any

from netbuf_gym import _core
from netbuf_gym.plants.linux.codec import decode
from netbuf_gym.plants.linux.messages import MessageChannel
from netbuf_gym.plants.linux.nodes import FINAL_SYSCTLS, Node
from netbuf_gym.plants.linux.steering import Steering


class LiveWorld:
    """A live world; see `setup.Setup.message` for the message that it is made from.

    Attributes:
        config: `_core.WorldConfig`.
        nodes: nodes; the sockets of node N are to be made after `nodes[N].enter()`.
        emulator: `_core.Emulator`; its clock is the world's.
        flows: `_core.LiveFlows`.
        setup: the message.
        steering: what steers connections beside agents.
        kind: the agents' part, of `kinds/NAME.py`; None: no agents.
    """

    def __init__(self, setup: dict[str, Any]):
        self.setup = setup
        self.config = decode(setup["world"])
        self.nodes: list[Node] = []
        self.started = False
        self.emulator: Any = None
        self.flows: Any = None
        self.steering: Any = None
        self.kind: Any = None
        self._since_ns = self._due_ns = 0
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        setup = self.setup
        for number in range(setup["nodes"]):
            self.nodes.append(Node(number, setup["mtu"]))
            self.nodes[-1].set(setup["sysctls"])
        for one in (*setup["settings"], *setup["hosts"]):
            self.nodes[one["node"]].set(one["sysctls"])
        for node, metrics in setup["metrics"]:
            self.nodes[node].set_route_metrics(
                [(address, {int(key): value for key, value in one.items()}) for address, one in metrics]
            )
        routes = [_set_fields(_core.Route(), one) for one in setup["routes"]]
        self.emulator = _core.Emulator(
            self.config, setup["seed"], routes, [node.tun for node in self.nodes], setup["mtu"], realtime=setup["realtime"]
        )
        self.steering = Steering(self)
        if setup["kind"] is not None:
            module = importlib.import_module(f"netbuf_gym.plants.linux.kinds.{setup['kind']}")
            self.kind = module.Kind(self)
        flows = [_set_fields(_core.LiveSocket(), one) for one in setup["flows"]]
        senders = [_set_fields(_core.LiveSocket(), one) for one in setup["senders"]]
        spaces = [node.namespace for node in self.nodes]
        self.flows = _core.LiveFlows(self.config, setup["seed"], self.emulator, spaces, flows, senders)
        self.flows.listen()

    def about(self) -> dict[str, Any]:
        """Return facts for the owner on the world that was made."""
        facts = {"kernel": os.uname().release, **self.steering.about()}
        if self.kind is not None:
            facts |= self.kind.about()
        return facts

    def step(self, message: dict[str, Any], wire: MessageChannel) -> dict[str, Any]:
        """Run the world on: see `helper`."""
        if not self.started:
            self._begin()
        interval_ns, now_ns = message["interval_ns"], self.emulator.now_ns
        end_ns = self._due_ns + interval_ns
        if now_ns - self._due_ns > interval_ns // 2:  # the decision came late: its interval is a whole one
            end_ns = now_ns + interval_ns
        if self.kind is not None and message["control"] is not None:
            self._decide([[math.nan if x is None else x for x in row] for row in message["control"]], end_ns, wire)
        if message["until"] == "event":
            self.kind.wait(end_ns, interval_ns, message["most"], lambda until_ns: self.sleep(until_ns, wire))
            self._due_ns = self.emulator.now_ns
        else:
            self.sleep(end_ns, wire)
            self._due_ns = end_ns  # not when it was noticed: intervals would drift from those of a clock
        failure = self.failure()
        if failure:
            return {"error": failure}
        telemetry = [] if self.kind is None else self.kind.observe()
        now_ns = self.emulator.now_ns
        elapsed_ns, self._since_ns = now_ns - self._since_ns, now_ns
        if self.kind is not None:
            self.kind.begin()
        return {"elapsed_ns": elapsed_ns, "telemetry": telemetry}

    def _decide(self, control: list[list[float]], end_ns: int, wire: MessageChannel) -> None:
        """Apply the control; where decisions take time, each agent's part after its own delay, while the world runs on."""
        delays_ns = self.kind.delays_ns()
        if not delays_ns:
            self.kind.apply(control)
            return
        now_ns = self.emulator.now_ns
        for due_ns, agent in sorted((min(now_ns + delay, end_ns), agent) for agent, delay in enumerate(delays_ns)):
            self.sleep(due_ns, wire)
            self.kind.apply([row if at == agent else [math.nan] * len(row) for at, row in enumerate(control)])

    def sleep(self, until_ns: int, wire: MessageChannel) -> None:
        """Sleep until this time of the world, or until a message comes.

        Raises:
            PeerGone: the owner is gone.
        """
        look_s = math.inf if self.kind is None else self.kind.look_s
        while (left_ns := until_ns - self.emulator.now_ns) > 0:
            if wire.sleep_unless_message(min(left_ns * 1e-9, look_s)):
                return
            if look_s < math.inf:
                self.kind.look()

    def failure(self) -> str:
        """Return why the world cannot go on; empty: it can."""
        for what, thread in (("the emulator", self.emulator), ("the flows", self.flows)):
            if thread.failure:
                return f"{what}: {thread.failure}"
        return "; ".join(f"flow {number}: {why}" for number, why in self.flows.failures())

    def report(self, completions: int = 0) -> dict[str, Any]:
        """Return all counters since the world began, and what the kind of the agents adds (`agents`).

        Args:
            completions: number of the first completion that is included.
        """
        return {
            "now_s": self.emulator.now_ns * 1e-9,
            "links": self.emulator.link_stats(),
            "switches": self.emulator.switch_stats(),
            "queues": self.emulator.switch_sample(),
            "routes": self.emulator.route_stats(),
            "probes": self.emulator.probe_delays(),
            "udp": self.emulator.udp_stats(),
            "flows": self.flows.flow_stats(),
            "traffic": self.flows.totals(),
            "probe_sent": self.emulator.probe_sent(),
            "completions": self.flows.completions(completions),
            "emulator": {**self.emulator.counters(), "realtime": self.emulator.realtime},
            "receivers": self.steering.receiver_stats(self),
            "agents": [] if self.kind is None else self.kind.report(),
        }

    def _begin(self) -> None:
        self.started = True
        self.emulator.start(_core.monotonic_ns())
        self.flows.start()
        if self.kind is not None:
            self.kind.begin()

    def close(self) -> None:
        """End everything; the kernel's remaining state of connections goes within a second."""
        if self.kind is not None:
            self.kind.close()
            self.kind = None
        for thread in (self.flows, self.emulator):
            if thread is not None:
                thread.stop()
        self.flows = self.emulator = None
        if self.steering is not None:
            self.steering.close()
        for node in self.nodes:
            if node.namespace >= 0:
                node.set(FINAL_SYSCTLS)
            node.close()
        self.nodes = []


def _set_fields(config: Any, fields: dict[str, Any]) -> Any:
    for name, value in fields.items():
        setattr(config, name, value)
    return config
