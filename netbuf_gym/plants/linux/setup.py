"""Translation of a scenario for a live world; what the kernel, or the emulator, cannot do is refused by name."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError, describe_scenario, quote
from netbuf_gym.plants.linux.agreed import DRIVEN, NOTSENT_LOWAT_BYTES, PACED_BYTES_PER_S, format_address
from netbuf_gym.plants.linux.bpf.senders import require_support
from netbuf_gym.plants.linux.codec import encode
from netbuf_gym.plants.linux.hosts import cap_buffer, hosts_message
from netbuf_gym.plants.linux.netlink import FEATURES, INITCWND, INITRWND, QUICKACK
from netbuf_gym.plants.linux.sysctls import RTO_MAX, list_tcp_sysctls
from netbuf_gym.scenarios.catalogue import CongestionControl, get_control_name
from netbuf_gym.scenarios.compiled_agent import CompiledAgent
from netbuf_gym.scenarios.flows import Bulk, Flow, OnOff, Sized
from netbuf_gym.scenarios.limits import AGENT
from netbuf_gym.scenarios.media import Medium
from netbuf_gym.scenarios.native import build_flow_config, build_world_config
from netbuf_gym.scenarios.python_control import COMPILED, OwnControl
from netbuf_gym.scenarios.senders import Relay, Sender
from netbuf_gym.scenarios.tcp_settings import HANDSHAKE_OPTIONS, TcpSettings, list_settings
from netbuf_gym.scenarios.traffic import WebSessions
from netbuf_gym.scenarios.types import Scenario

CONTROLS = {"cubic": "cubic", "newreno": "reno", "bbr": "bbr", "vegas": "vegas", "westwood": "westwood", "dctcp": "dctcp"}
"""Congestion controls that the kernel has too, with the kernel's names."""

WINDOW_OF_BUFFER = 1.25
"""Ratio of a receive window to the SO_RCVBUF that gives it."""

UNLIMITED_BYTES = 64 << 20
"""Size of buffers where the scenario does not limit them; a receive buffer grows to it, as the simulator's does. A send buffer
has this size from the beginning: autotuned it is two windows, which binds where a lost segment stands before all that was
delivered.
"""

STEERED_BYTES = 4 << 20
"""A receive buffer where receivers' windows are steered: fixed, since autotuning sets the clamp as well, and no larger than
advertised windows of a fine scale (128 bytes) reach.
"""

CUBIC = "cubic"
MOST_FIRST_SEGMENTS = 1000
ECN, USEC_TIMESTAMPS = 1, 16
"""RTAX_FEATURE_ECN, RTAX_FEATURE_TCP_USEC_TS."""

KERNEL_INITIAL_CWND = 10


@dataclass(frozen=True)
class Agents:
    """The parts of a scenario that agents control, so that they are not refused.

    Attributes:
        kind: kind of the agents, a module of `kinds`; None: there are none.
        parameters: parameters of the kind (`AgentKind.parameters`).
        senders, receivers: whether flows may have `cc` or `receiver` "agent".
    """

    kind: str | None = None
    parameters: Any = None
    senders: bool = False
    receivers: bool = False


@lru_cache
def available_controls() -> frozenset[str]:
    """Return the congestion controls that this kernel has loaded, by its own names; empty where they cannot be read."""
    try:
        return frozenset(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())
    except OSError:
        return frozenset()


class Setup:
    """Setup of a live world for one scenario.

    Args:
        scenario: the scenario to run.
        agents: the agents whose places in the scenario are taken.

    Attributes:
        message: the message for a world's process, without the seed.

    Raises:
        ConfigError: no `Scenario`, or one that has what a live world has not; the message names the field and what is valid.
    """

    def __init__(self, scenario: Any, agents: Agents, realtime: bool = True):
        if not isinstance(scenario, Scenario):
            name = getattr(scenario, "name", scenario)
            raise ConfigError(f"scenario {quote(name)} is no netbuf_gym.scenarios.Scenario; valid for plant 'linux': one")
        self.scenario, self.agents = scenario, agents
        self._check_stack()
        self._nodes: dict[str, int] = {"": 0, " ": 1}  # nodes of senders and receivers without a host of their own
        self._settings: dict[int, dict[str, str]] = {}  # sysctls of nodes of flows with settings of their own
        self.routes: list[dict[str, Any]] = []
        self._metrics: dict[int, list[tuple[str, dict[int, int]]]] = {}
        self._policies: dict[str, str] = {}  # of compiled agents, in base 64, by what stands for their control
        self._compiled: set[str] = set()  # their names
        flows = [self._socket_settings(f"flows[{i}]", flow) for i, flow in enumerate(scenario.flows)]
        senders = [] if scenario.traffic is None else scenario.traffic.senders
        opening = []
        for i, sender in enumerate(senders):
            opening.append(self._socket_settings(f"traffic.senders[{i}]", sender))
            if sender.relay is not None:
                opening.append(self._socket_settings(f"traffic.senders[{i}].relay", sender.relay, sender.cc))
        for i, arrivals in enumerate([] if scenario.traffic is None else scenario.traffic.arrivals):
            if isinstance(arrivals, WebSessions):
                self._refuse(f"traffic.arrivals[{i}]", arrivals.kind, "arrivals that do not wait for flows to end")
        hosts = hosts_message(scenario, self.node, self._refuse)
        self.message: dict[str, Any] = {
            "do": "start",
            "world": self._replace_compiled(encode(build_world_config(scenario))),
            "mtu": scenario.data_bytes,
            "mss": [scenario.mss_of(i) for i in range(len(scenario.flows))],
            "nodes": len(self._nodes),
            "routes": self.routes,
            "flows": flows,
            "senders": opening,
            "metrics": sorted(self._metrics.items()),
            "sysctls": self._sysctls(),
            "settings": [{"node": node, "sysctls": sysctls} for node, sysctls in self._settings.items()],
            "hosts": hosts,
            "realtime": realtime,
            "bottlenecks": [scenario.tightest_link(i) for i in range(len(scenario.flows))],
            "kind": agents.kind,
            "parameters": dict(agents.parameters or {}),
            "policies": self._policies,
        }

    def node(self, host: str) -> int:
        """Return the number of a host's node, adding a node for a new host."""
        return self._nodes.setdefault(host, len(self._nodes))

    def _check_stack(self) -> None:
        scenario = self.scenario
        if (self.agents.parameters or {}).get("levers"):
            self._refuse("recipe", "levers", "'default'")
        if scenario.stack != "linux":
            self._refuse("stack", scenario.stack, "'linux'")
        if isinstance(scenario.hystart, str):
            self._refuse("hystart", scenario.hystart, "True: no kernel has HyStart++")
        if not scenario.hystart and _kernel_hystart():
            self._refuse("hystart", False, "True: it is the whole machine's (/sys/module/tcp_cubic/parameters/hystart)")
        if scenario.delayed_ack not in (None, 1, 2):
            self._refuse("delayed_ack", scenario.delayed_ack, "None, 1 or 2")
        if scenario.min_rto_ms is not None and not Path("/proc/sys/net/ipv4/tcp_rto_min_us").exists():
            self._refuse("min_rto_ms", scenario.min_rto_ms, "None: this kernel has no tcp_rto_min_us")
        self._check_max_rto("", scenario)
        for i, host in enumerate(scenario.hosts):
            self._check_max_rto(f"hosts[{i}].", host)
        if scenario.start_jitter_ms > 0:
            self._refuse("start_jitter_ms", scenario.start_jitter_ms, "0: no two starts are alike on this plant")
        for i, link in enumerate(scenario.links):
            for name in ("duplicate", "corrupt"):
                if getattr(link, name) > 0:
                    self._refuse(f"links[{i}].{name}", getattr(link, name), "0: the links of this plant do neither")
            if isinstance(link.medium, Medium):
                self._refuse(f"links[{i}].medium", link.medium.kind, "None: the links of this plant have rates or traces")

    def _sysctls(self) -> dict[str, str]:
        scenario = self.scenario
        steered = any(flow.receiver is not None for flow in scenario.flows)
        sysctls = {
            "net.ipv4.tcp_rmem": f"4096 {STEERED_BYTES} {STEERED_BYTES}" if steered else f"4096 131072 {UNLIMITED_BYTES}",
            "net.ipv4.tcp_wmem": f"4096 {UNLIMITED_BYTES} {UNLIMITED_BYTES}",
            **list_tcp_sysctls(scenario),
        }
        if scenario.min_rto_ms is not None:
            sysctls["net.ipv4.tcp_rto_min_us"] = str(round(scenario.min_rto_ms * 1e3))
        if scenario.syn_retries is not None:
            sysctls["net.ipv4.tcp_syn_retries"] = str(scenario.syn_retries)
        if scenario.data_retries is not None:
            sysctls["net.ipv4.tcp_retries2"] = str(scenario.data_retries)
        return sysctls

    def _check_max_rto(self, at: str, settings: Scenario | TcpSettings) -> None:
        if settings.max_rto_ms is not None and not Path("/proc/sys", *RTO_MAX.split(".")).exists():
            self._refuse(f"{at}max_rto_ms", settings.max_rto_ms, "None: this kernel has no tcp_rto_max_ms")

    def _find_nodes(self, at: str, one: Flow | Sender | Relay) -> tuple[int, int]:
        """Return the nodes of the ends of a flow: its hosts', or those of all flows at no host with the same settings."""
        self._check_max_rto(f"{at}.", one)
        sysctls = list_tcp_sysctls(one)
        hosts = one.sender_host, getattr(one, "receiver_host", None)
        for name in list_settings(one):
            if hosts[0] is not None and (hosts[1] is not None or name not in HANDSHAKE_OPTIONS):
                self._refuse(
                    f"{at}.{name}", getattr(one, name), f"None for a flow of host {hosts[0]!r}, which has settings for all"
                )
        if (hosts[0] is None) != (hosts[1] is None):
            follows = next(host for host in self.scenario.hosts if host.name in hosts)
            for name in HANDSHAKE_OPTIONS:
                if getattr(one, name) and getattr(follows, name) is None and not getattr(self.scenario, name):
                    self._refuse(f"{at}.{name}", True, f"None: host {follows.name!r} is without it, as the scenario has it")
        if self.scenario.mss_bytes is not None and one.timestamps not in (None, self.scenario.timestamps):
            self._refuse(f"{at}.timestamps", one.timestamps, "None beside mss_bytes, which the network's MTU follows")
        nodes = []
        for host, end in zip(hosts, ("", " "), strict=True):
            key = host or f"{end}{sysctls or ''}"
            nodes.append(self.node(key))
            if host is None and sysctls:
                self._settings[nodes[-1]] = sysctls
        return nodes[0], nodes[1]

    def _socket_settings(self, at: str, one: Flow | Sender | Relay, cc: Any = None) -> dict[str, Any]:
        """Return the socket settings of a flow, or of all flows of a sender or a relay, and add a route of its own.

        Args:
            cc: the congestion control for a relay that has none of its own.
        """
        number = len(self.routes)
        ends = self._find_nodes(at, one)
        self.routes.append(
            {"sender_node": ends[0], "receiver_node": ends[1], "path": list(one.path), "return_path": list(one.return_path)}
        )
        addresses = [format_address(node, number) for node in ends]
        if one.ecn not in (False, True):
            self._refuse(f"{at}.ecn", one.ecn, "False or True: accurate ECN is a setting of all of a kernel's connections")
        if one.ecn:
            self._add_metric(ends[0], addresses[1], FEATURES, ECN)
        if one.initial_cwnd_packets != KERNEL_INITIAL_CWND:
            self._add_metric(ends[0], addresses[1], INITCWND, one.initial_cwnd_packets)
        if self.scenario.delayed_ack == 1:
            self._add_metric(ends[1], addresses[0], QUICKACK, 1)
        if getattr(one, "timestamp_resolution_us", 1000) == 1:
            self._add_metric(ends[0], addresses[1], FEATURES, USEC_TIMESTAMPS)
            self._add_metric(ends[1], addresses[0], FEATURES, USEC_TIMESTAMPS)
        if isinstance(one, Flow) and one.receiver is not None:
            mss = self.scenario.mss_of(number)
            # The kernel would advertise its whole buffer first, and could not shrink the window again.
            first = _core.first_window_bytes(build_flow_config(one), mss)
            self._add_metric(ends[1], addresses[0], INITRWND, max(1, min(first // mss, MOST_FIRST_SEGMENTS)))
        socket: dict[str, Any] = {"route": number, "cc": self._kernel_control(at, cc if one.cc is None else one.cc)}
        if self.scenario.pacing:
            socket["pacing_bytes_per_s"] = PACED_BYTES_PER_S
        if one.sndbuf_bytes is not None:
            socket["asked_send_bytes"] = one.sndbuf_bytes
            socket["send_buffer_bytes"] = cap_buffer(self.scenario, one.sender_host, one.sndbuf_bytes)
        if one.rcvbuf_bytes is not None:
            socket["receive_buffer_bytes"] = cap_buffer(self.scenario, one.receiver_host, one.rcvbuf_bytes)
        if one.sender_host is not None:
            socket["polls"] = next(host.polls for host in self.scenario.hosts if host.name == one.sender_host)
        if one.sender_host is None and get_control_name(one.cc) != AGENT:  # a host has settings of its own
            socket["notsent_lowat_bytes"] = NOTSENT_LOWAT_BYTES
        if isinstance(one, Flow):
            socket |= self._flow_settings(at, one)
        return socket

    def _add_metric(self, node: int, address: str, key: int, value: int) -> None:
        known = self._metrics.setdefault(node, [])
        for other, values in known:
            if other == address:
                values[key] = value | values.get(key, 0) if key == FEATURES else value
                return
        known.append((address, {key: value}))

    def _flow_settings(self, at: str, flow: Flow) -> dict[str, Any]:
        for field in ("routes", "misbehaviour"):
            if getattr(flow, field):
                self._refuse(f"{at}.{field}", getattr(flow, field), "none: routes stay here, and receivers are the kernel's")
        if not isinstance(flow.app, (Bulk, Sized, OnOff)):
            self._refuse(f"{at}.app", flow.app, "Bulk(), Sized(...) or OnOff(...)")
        if flow.receiver is not None and get_control_name(cast(Any, flow.receiver)) == AGENT and not self.agents.receivers:
            self._refuse(f"{at}.receiver", AGENT, "another receiver control, or None: no agents of this kind are here")
        for field in ("clock_offset_ms", "clock_drift_ppm"):
            if getattr(flow, field) and flow.receiver is None:
                self._refuse(f"{at}.{field}", getattr(flow, field), "0 without a receiver control: both ends have one clock")
        socket: dict[str, Any] = {}
        if flow.send_buffer_bytes is not None:
            # SO_SNDBUF would hold a whole burst of 64 KiB more than its value.
            socket |= {"limited": True, "window_bytes": flow.send_buffer_bytes}
        if flow.receive_buffer_bytes is not None:
            socket["receive_buffer_bytes"] = round(flow.receive_buffer_bytes / WINDOW_OF_BUFFER)
        return socket

    def _kernel_control(self, at: str, cc: Any) -> str:
        """Return the kernel's name of a congestion control; "" for an agent's, a key of `policies` for a compiled one's."""
        valid = ", ".join(name for name, own in CONTROLS.items() if own in available_controls())
        if isinstance(cc, CompiledAgent):
            try:
                require_support()
            except ConfigError as error:
                self._refuse(f"{at}.cc", cc.name, f"{valid}; {error}")
            key = f"{COMPILED}/{hashlib.sha256(cc.policy).hexdigest()}"
            self._policies[key] = base64.b64encode(cc.policy).decode()
            self._compiled.add(cc.name)
            return key
        if isinstance(cc, OwnControl):
            self._refuse(f"{at}.cc", cc.name, f"{valid}, of the kernel's")
        name = get_control_name(cc)
        if name == AGENT and self.agents.senders:
            return ""
        if name == DRIVEN:
            return DRIVEN
        if CONTROLS.get(name, "") not in available_controls():
            self._refuse(f"{at}.cc", name, f"{valid}, which this kernel has loaded")
        if isinstance(cc, CongestionControl) and cc.parameters:
            self._refuse(f"{at}.cc", dict(cc.parameters), f"{name!r} with the kernel's own parameters")
        return CONTROLS[name]

    def _replace_compiled(self, data: Any) -> Any:
        """Return an encoded world in which flows of compiled agents have a control that the core knows; nobody asks for it."""
        if isinstance(data, list):
            return [self._replace_compiled(one) for one in data]
        if not isinstance(data, dict):
            return data
        replaced = {key: self._replace_compiled(value) for key, value in data.items()}
        return replaced | ({"cc": CUBIC} if data.get("cc") in self._compiled else {})

    def _refuse(self, field: str, value: Any, valid: str) -> None:
        raise ConfigError(f"{describe_scenario(self.scenario)}: {field} = {quote(value)}; valid on plant 'linux': {valid}")


def _kernel_hystart() -> bool:
    try:
        return Path("/sys/module/tcp_cubic/parameters/hystart").read_text().strip() != "0"
    except OSError:
        return True
