"""Conversion of scenarios to the native core's configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netbuf_gym import _core
from netbuf_gym.scenarios.catalogue import CongestionControl, ReceiverControl, get_control_name
from netbuf_gym.scenarios.flows import ACCURATE, Bulk, Flow, OnOff, Paused, Route, Sized
from netbuf_gym.scenarios.hosts import Host
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule
from netbuf_gym.scenarios.limits import AGENT
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.scenarios.senders import Relay, Sender
from netbuf_gym.scenarios.switches import DRR, AgentThresholds, StaticThresholds, Switch
from netbuf_gym.scenarios.traffic import Arrivals, FlowList, Incast, PoissonArrivals, Probe, Traffic
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.scenarios.udp import UdpSource
from netbuf_gym.scenarios.video import Video
from netbuf_gym.traces.types import RateTrace


def build_world_config(scenario: Scenario) -> _core.WorldConfig:
    """Convert a scenario: seconds to whole nanoseconds, Mbit/s to bit/s, None to the core's 0."""
    config = _core.WorldConfig()
    config.links = _convert_cached(scenario.links, build_link_config)
    config.flows = [build_flow_config(flow) for flow in scenario.flows]
    if scenario.hosts:
        config.hosts = [build_host_config(host) for host in scenario.hosts]
        names = [host.name for host in scenario.hosts]
        config.flows = [_assign_hosts(made, flow, names) for made, flow in zip(config.flows, scenario.flows, strict=True)]
    config.stack = scenario.stack
    config.hystart = scenario.hystart
    config.pacing = scenario.pacing
    if scenario.switches:
        config.switches = [build_switch_config(switch) for switch in scenario.switches]
    if scenario.traffic is not None:
        config.traffic = build_traffic_config(scenario.traffic, [host.name for host in scenario.hosts])
    if scenario.probes:
        config.probes = [build_probe_config(probe) for probe in scenario.probes]
    if scenario.udp:
        config.udp = [build_udp_config(source) for source in scenario.udp]
    if scenario.mss_bytes is not None:
        config.mss = scenario.mss_bytes
    if scenario.min_rto_ms is not None:
        config.min_rto_ns = round(scenario.min_rto_ms * 1e6)
    if scenario.delayed_ack is not None:
        config.delayed_ack_packets = scenario.delayed_ack
    return config


def build_link_config(link: Link) -> _core.LinkConfig:
    """Convert a link."""
    config = _core.LinkConfig()
    config.name = link.name
    config.rate_bps = link.rate_mbps * 1e6 if link.rate_mbps is not None else 0.0
    config.delay_ns = round(link.least_delay_ms * 1e6)
    if isinstance(link.delay_ms, DelaySchedule):
        config.delay_time_ns, config.delay_period_ns = _convert_step_times(link.delay_ms)
        config.delay_step_ns = (link.delay_ms.delay_ms * 1e6).round().astype("int64").tolist()
        config.delay_reorders = link.delay_ms.reorder
    if link.jitter is not None:
        config.jitter = build_jitter_config(link.jitter)
    config.queue_limit_packets = link.queue_packets or 0
    config.queue_limit_bytes = link.queue_bytes or 0
    if isinstance(link.loss, LossSchedule):
        config.loss_time_ns, config.loss_period_ns = _convert_step_times(link.loss)
        config.loss_step = link.loss.loss.tolist()
    else:
        config.loss = link.loss
    if link.gilbert_elliott is not None:
        g = link.gilbert_elliott
        config.ge = (g.p_good_to_bad, g.p_bad_to_good, g.loss_good, g.loss_bad)
    config.loss_on_acks = link.loss_on_acks
    if isinstance(link.trace, RateTrace):
        config.schedule_time_ns = to_nanoseconds(link.trace.time_s)
        config.schedule_rate_bps = (link.trace.rate_mbps * 1e6).tolist()
        config.schedule_period_ns = to_nanoseconds(link.trace.period_s) if link.trace.period_s is not None else 0
    elif link.trace is not None:
        config.trace_ns = (link.trace.time_ms * 1e6).round().astype("int64").tolist()
        config.trace_period_ns = round(link.trace.period_ms * 1e6)
    if link.discipline is not None:
        config.discipline = link.discipline.kind
        config.discipline_parameters = link.discipline.parameters()
    if link.device_packets:
        config.device_packets = link.device_packets
    if link.on_outage == "drop":
        config.outage_ns = round(link.outage_ms * 1e6)
    return config


def _convert_step_times(schedule: DelaySchedule | LossSchedule) -> tuple[list[int], int]:
    return to_nanoseconds(schedule.time_s), to_nanoseconds(schedule.period_s) if schedule.period_s is not None else 0


def build_jitter_config(jitter: Jitter) -> _core.JitterConfig:
    """Convert a link's jitter."""
    config = _core.JitterConfig()
    config.distribution = jitter.distribution
    config.scale_ns, config.mean_ns = jitter.scale_ms * 1e6, jitter.mean_ms * 1e6
    config.shape, config.correlation = jitter.shape, jitter.correlation
    config.reorder = jitter.reorder
    return config


def build_flow_config(flow: Flow) -> _core.FlowConfig:
    """Convert a flow, without its hosts."""
    config = _core.FlowConfig()
    _set_cc(config, flow.cc)
    config.controlled = flow.cc == AGENT
    config.ecn = bool(flow.ecn)
    if flow.ecn == ACCURATE:
        config.ecn_counts = True
    config.path = list(flow.path)
    config.return_path = list(flow.return_path)
    if flow.routes:
        config.routes = [build_route_config(route) for route in flow.routes]
    if flow.misbehaviour is not None:
        config.misbehaviour = flow.misbehaviour
    config.start_ns = to_nanoseconds(flow.start_s)
    config.stop_ns = to_nanoseconds(flow.stop_s) if flow.stop_s is not None else 0
    app = flow.app
    if isinstance(app, Bulk):
        config.app = "bulk"
    elif isinstance(app, Sized):
        config.app = "sized"
        config.size_bytes = app.size_bytes
    elif isinstance(app, OnOff):
        config.app = "on_off"
        config.on_ns, config.off_ns = to_nanoseconds(app.on_s), to_nanoseconds(app.off_s)
        config.random_on_off = app.random
        config.app_rate_bps = app.rate_mbps * 1e6 if app.rate_mbps is not None else 0.0
    elif isinstance(app, Paused):
        config.app = "paused"
        config.rest_ns = [to_nanoseconds(time) for rest in app.rests_s for time in rest]
        config.app_rate_bps = app.rate_mbps * 1e6 if app.rate_mbps is not None else 0.0
    elif isinstance(app, Video):
        config.app = "video"
        config.video = [build_video_config(app)]
    config.send_buffer_bytes = flow.send_buffer_bytes or 0
    config.receive_buffer_bytes = flow.receive_buffer_bytes or 0
    config.initial_cwnd_packets = flow.initial_cwnd_packets
    if flow.receiver is not None:
        config.receiver = get_control_name(flow.receiver)
        if isinstance(flow.receiver, ReceiverControl):
            config.receiver_parameters = {name: float(value) for name, value in flow.receiver.parameters}
    config.clock_offset_ns = round(flow.clock_offset_ms * 1e6)
    config.clock_drift_ppm = flow.clock_drift_ppm
    config.timestamp_ns = flow.timestamp_resolution_us * 1000
    if flow.clamp_interval_ms is not None:
        config.clamp_interval_ns = round(flow.clamp_interval_ms * 1e6)
    if flow.read_mbps is not None:
        config.read_bps = flow.read_mbps * 1e6
    if flow.priority:
        config.priority = flow.priority
    return config


def build_route_config(route: Route) -> _core.RouteConfig:
    """Convert a route."""
    config = _core.RouteConfig()
    config.from_ns = to_nanoseconds(route.at_s)
    config.path, config.return_path = list(route.path), list(route.return_path)
    return config


def build_host_config(host: Host) -> _core.HostConfig:
    """Convert a host, whose devices must be indices."""
    config = _core.HostConfig()
    config.name = host.name
    config.tcp_rmem, config.tcp_wmem = list(host.tcp_rmem), list(host.tcp_wmem)
    config.socket_bytes = host.socket_bytes
    config.tcp_mem = list(host.tcp_mem or ())
    config.devices = [int(link) for link in host.devices]
    config.ring_packets = host.ring_packets or 0
    config.ring_stall_ns = to_nanoseconds(host.ring_stall_s)
    config.notsent_lowat_bytes = host.notsent_lowat_bytes or 0
    config.limit_output_bytes = host.limit_output_bytes or 0
    config.moderate_rcvbuf = host.moderate_rcvbuf
    config.polls = host.polls
    config.kernel = host.kernel_number
    config.agent = host.agent
    return config


def _assign_hosts(config: _core.FlowConfig, end: Flow | Sender | Relay, hosts: list[str]) -> _core.FlowConfig:
    """Set the hosts and explicit buffers of a flow's sockets and return the flow; `hosts` are the names in order."""
    if end.sender_host is not None:
        config.sender_host, config.sndbuf_bytes = hosts.index(end.sender_host), end.sndbuf_bytes or 0
    if end.receiver_host is not None:
        config.receiver_host, config.rcvbuf_bytes = hosts.index(end.receiver_host), end.rcvbuf_bytes or 0
    return config


def build_video_config(video: Video) -> _core.VideoConfig:
    """Convert a video client."""
    config = _core.VideoConfig()
    config.bitrate_bps = [bitrate * 1e6 for bitrate in video.bitrates_mbps]
    config.chunk_ns, config.buffer_ns = to_nanoseconds(video.chunk_s), to_nanoseconds(video.buffer_s)
    config.startup_ns = to_nanoseconds(video.startup_s)
    config.abr, config.window_chunks, config.safety = video.abr, video.window_chunks, video.safety
    config.reservoir_ns, config.cushion_ns = map(to_nanoseconds, video.buffer_rule_s)
    return config


def _set_cc(config: _core.FlowConfig, cc: str | CongestionControl | OwnControl) -> None:
    if isinstance(cc, OwnControl):
        return cc.configure_flow(config)
    config.cc = get_control_name(cc)
    if isinstance(cc, CongestionControl):
        config.cc_parameters = {name: float(value) for name, value in cc.parameters}


def build_switch_config(switch: Switch) -> _core.SwitchConfig:
    """Convert a switch."""
    config = _core.SwitchConfig()
    config.name = switch.name
    config.ports = list(switch.ports)
    config.queues = switch.queues
    config.capacity = switch.capacity
    config.in_bytes = switch.in_bytes
    config.queue_cap, config.mark = switch.queue_cap or 0, switch.mark or 0
    admission = switch.admission
    config.admission = admission.kind
    if isinstance(admission, StaticThresholds):
        config.thresholds = list(admission.limits)
    else:
        config.alphas = list(admission.alphas)
        if isinstance(admission, AgentThresholds):
            config.betas = list(admission.betas)
    config.drop, config.protect_syn = switch.drop, switch.protect_syn
    if switch.congested != "drop":
        config.congested = switch.congested
    config.scheduler = switch.scheduler.kind
    if isinstance(switch.scheduler, DRR):
        config.quanta = list(switch.scheduler.quanta_bytes)
    return config


def build_traffic_config(traffic: Traffic, hosts: list[str]) -> _core.TrafficConfig:
    """Convert the traffic of a world with hosts of these names."""
    config = _core.TrafficConfig()
    config.senders = _convert_cached(traffic.senders, build_sender_config)
    if hosts:
        config.senders = [_build_sender_legs(sender, hosts) for sender in traffic.senders]
    config.arrivals = [build_arrivals_config(arrivals) for arrivals in traffic.arrivals]
    config.priority_below = list(traffic.priority_below)
    return config


def build_sender_config(sender: Sender | Relay) -> _core.FlowConfig:
    """Convert a sender, or a relay, to the template of its flows, without its hosts."""
    config = _core.FlowConfig()
    if sender.cc is not None:
        _set_cc(config, sender.cc)
    config.path = list(sender.path)
    config.return_path = list(sender.return_path)
    config.initial_cwnd_packets = sender.initial_cwnd_packets
    config.ecn = sender.ecn
    return config


def _build_sender_legs(sender: Sender, hosts: list[str]) -> _core.FlowConfig:
    """Convert a sender in a world with hosts, with its relay's leg if there is one."""
    config = _assign_hosts(build_sender_config(sender), sender, hosts)
    if sender.relay is not None:
        relay = _assign_hosts(build_sender_config(sender.relay), sender.relay, hosts)
        if sender.relay.cc is None:
            _set_cc(relay, sender.cc)
        relay.relay_buffer_bytes = sender.relay.buffer_bytes
        config.relay = [relay]
    return config


def build_arrivals_config(arrivals: Arrivals) -> _core.ArrivalsConfig:
    """Convert arrivals of any kind."""
    config = _core.ArrivalsConfig()
    config.kind = arrivals.kind
    if isinstance(arrivals, FlowList):
        config.list_start_ns = to_nanoseconds(arrivals.start_s)
        config.list_sender = arrivals.sender.tolist()
        config.list_size = arrivals.size_bytes.tolist()
        config.list_priority = arrivals.priority.tolist()
        return config
    config.start_ns = to_nanoseconds(arrivals.start_s)
    config.stop_ns = to_nanoseconds(arrivals.stop_s) if arrivals.stop_s is not None else 0
    if isinstance(arrivals, PoissonArrivals):
        config.rate_per_s = arrivals.flows_per_s
        config.size_bytes = list(arrivals.sizes.size_bytes)
        config.cumulative = list(arrivals.sizes.cumulative)
    elif isinstance(arrivals, Incast):
        config.interval_ns = to_nanoseconds(arrivals.interval_s)
        config.random = arrivals.random
        config.fan_in = arrivals.fan_in
        config.size_bytes = [arrivals.size_bytes]
    return config


def build_probe_config(probe: Probe) -> _core.ProbeConfig:
    """Convert a probe."""
    config = _core.ProbeConfig()
    config.path = list(probe.path)
    config.priority = probe.priority
    config.interval_ns = to_nanoseconds(probe.interval_s)
    config.start_ns = to_nanoseconds(probe.start_s)
    config.bytes = probe.bytes
    return config


def build_udp_config(source: UdpSource) -> _core.UdpConfig:
    """Convert a source of datagrams."""
    config = _core.UdpConfig()
    config.path = list(source.path)
    config.rate_bps = source.rate_mbps * 1e6
    config.bytes = source.packet_bytes
    config.start_ns = to_nanoseconds(source.start_s)
    config.stop_ns = to_nanoseconds(source.stop_s) if source.stop_s is not None else 0
    if source.on_s is not None:
        config.on_ns, config.off_ns = to_nanoseconds(source.on_s), to_nanoseconds(source.off_s)
        config.random_on_off = source.random
    config.priority = source.priority
    return config


_CACHE: dict[int, tuple[tuple, list]] = {}
_CACHE_SIZE = 256


def _convert_cached(items: tuple, convert: Callable) -> list:
    """Convert each item of a tuple. Tuples that scenarios share (the links of a distribution's worlds) are converted
    once: an episode's reset must not cost more than the episode's first steps."""
    found = _CACHE.get(id(items))
    if found is not None and found[0] is items:
        return found[1]
    made = [convert(item) for item in items]
    if len(_CACHE) >= _CACHE_SIZE:
        _CACHE.clear()
    _CACHE[id(items)] = (items, made)
    return made


def to_nanoseconds(seconds: Any) -> Any:
    """Round seconds to whole nanoseconds: an int for a number, a list of ints for an array."""
    if isinstance(seconds, (int, float)):
        return round(seconds * 1e9)
    return (seconds * 1e9).round().astype("int64").tolist()
