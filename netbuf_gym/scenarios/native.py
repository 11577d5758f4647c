"""Conversion of scenarios to the native core's configuration.

Fields that name a field of the core (`scenarios.fields`) are copied; here is what remains: parts, and choices between forms.
"""

from __future__ import annotations

from typing import Any, cast

from netbuf_gym import _core
from netbuf_gym.scenarios.catalogue import HYSTART_PLUS_PLUS, CongestionControl, Controls, ReceiverControl, get_control_name
from netbuf_gym.scenarios.fields import copy_to_core, to_nanoseconds
from netbuf_gym.scenarios.flows import ACCURATE, Flow, Route
from netbuf_gym.scenarios.hosts import Host
from netbuf_gym.scenarios.impairments import DelaySchedule, LossSchedule
from netbuf_gym.scenarios.limits import AGENT
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.python_control import OwnControl
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.scenarios.video import Video
from netbuf_gym.traces.types import DeliveryTrace, RateTrace
from netbuf_gym.utils.identity_cache import IdentityCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netbuf_gym.scenarios.disciplines import Discipline
    from netbuf_gym.scenarios.media import Medium
    from netbuf_gym.scenarios.senders import Relay, Sender
    from netbuf_gym.scenarios.switches import Switch
    from netbuf_gym.scenarios.traffic import Arrivals, Traffic
    from netbuf_gym.scenarios.udp import DatagramSource


def build_world_config(scenario: Scenario) -> _core.WorldConfig:
    """Convert a scenario: seconds to whole nanoseconds, Mbit/s to bit/s, None to the core's 0."""
    config = _core.WorldConfig()
    copy_to_core(config, scenario)
    config.hystart = scenario.hystart is True
    config.hystart_plus_plus = scenario.hystart == HYSTART_PLUS_PLUS
    config.links = _convert_links(scenario.links)
    hosts = [host.name for host in scenario.hosts]
    if hosts:
        config.hosts = [build_host_config(host) for host in scenario.hosts]
        config.flows = [_assign_hosts(build_flow_config(flow), flow, hosts) for flow in scenario.flows]
    else:
        config.flows = _convert_flows(scenario.flows)
    if scenario.switches:
        config.switches = [build_switch_config(switch) for switch in scenario.switches]
    if scenario.traffic is not None:
        config.traffic = build_traffic_config(scenario.traffic, hosts)
    if scenario.probes:
        config.probes = [_fill_config(_core.ProbeConfig(), probe) for probe in scenario.probes]
    if scenario.udp:
        config.udp = [build_udp_config(source) for source in scenario.udp]
    return config


def _fill_config(config: Any, record: object) -> Any:
    """Set the fields that the record names, and return the configuration."""
    copy_to_core(config, record)
    return config


def build_link_config(link: Link) -> _core.LinkConfig:
    """Convert a link."""
    config = _fill_config(_core.LinkConfig(), link)
    config.delay_ns = round(link.least_delay_ms * 1e6)
    if isinstance(link.delay_ms, DelaySchedule):
        config.delay_time_ns, config.delay_period_ns = _convert_step_times(link.delay_ms)
        config.delay_step_ns = (link.delay_ms.delay_ms * 1e6).round().astype("int64").tolist()
        config.delay_reorders = link.delay_ms.reorder
    if link.jitter is not None:
        config.jitter = _fill_config(_core.JitterConfig(), link.jitter)
    if isinstance(link.loss, LossSchedule):
        config.loss_time_ns, config.loss_period_ns = _convert_step_times(link.loss)
        config.loss_step = link.loss.loss.tolist()
    else:
        config.loss = link.loss
    if link.gilbert_elliott is not None:
        g = link.gilbert_elliott
        config.ge = (g.p_good_to_bad, g.p_bad_to_good, g.loss_good, g.loss_bad)
    if isinstance(link.trace, RateTrace):
        config.schedule_time_ns, config.schedule_period_ns = _convert_step_times(link.trace)
        config.schedule_rate_bps = (link.trace.rate_mbps * 1e6).tolist()
    elif isinstance(link.trace, DeliveryTrace):
        config.trace_ns = (link.trace.time_ms * 1e6).round().astype("int64").tolist()
        config.trace_period_ns = round(link.trace.period_ms * 1e6)
        config.trace_packet_bytes = link.trace.packet_overhead_bytes
    if link.discipline is not None:
        discipline = cast("Discipline", link.discipline)
        config.discipline = discipline.kind
        config.discipline_parameters = discipline.parameters()
    if link.medium is not None:
        medium = cast("Medium", link.medium)
        config.medium = medium.kind
        config.medium_parameters = medium.parameters()
    if link.on_outage == "drop":
        config.outage_ns = round(link.outage_ms * 1e6)
    return config


def _convert_step_times(steps: DelaySchedule | LossSchedule | RateTrace) -> tuple[list[int], int]:
    return to_nanoseconds(steps.time_s), to_nanoseconds(steps.period_s) if steps.period_s is not None else 0


def build_flow_config(flow: Flow) -> _core.FlowConfig:
    """Convert a flow, without its hosts."""
    config = _fill_config(_core.FlowConfig(), flow)
    _set_cc(config, flow.cc)
    if flow.cc == AGENT:
        config.controlled = True
    if flow.ecn == ACCURATE:
        config.ecn_counts = True
    if flow.routes:
        config.routes = [build_route_config(route) for route in flow.routes]
    app = flow.app
    config.app = app.kind
    if isinstance(app, Video):
        config.video = [build_video_config(app)]
    else:
        copy_to_core(config, app)
    if flow.receiver is not None:
        config.receiver = get_control_name(flow.receiver)
        if isinstance(flow.receiver, ReceiverControl):
            config.receiver_parameters = {name: float(value) for name, value in flow.receiver.parameters}
    return config


def build_route_config(route: Route) -> _core.RouteConfig:
    """Convert a route."""
    return _fill_config(_core.RouteConfig(), route)


def build_host_config(host: Host) -> _core.HostConfig:
    """Convert a host, whose devices must be indices."""
    config = _fill_config(_core.HostConfig(), host)
    config.devices = [int(link) for link in host.devices]
    return config


def _assign_hosts(config: _core.FlowConfig, end: Flow | Sender | Relay, hosts: list[str]) -> _core.FlowConfig:
    """Set the hosts of a flow's sockets and return the flow; `hosts` are the names in order."""
    if end.sender_host is not None:
        config.sender_host = hosts.index(end.sender_host)
    if end.receiver_host is not None:
        config.receiver_host = hosts.index(end.receiver_host)
    return config


def build_video_config(video: Video) -> _core.VideoConfig:
    """Convert a video client."""
    config = _fill_config(_core.VideoConfig(), video)
    config.reservoir_ns, config.cushion_ns = map(to_nanoseconds, video.buffer_rule_s)
    return config


def _set_cc(config: _core.FlowConfig, cc: Controls) -> None:
    if isinstance(cc, OwnControl):
        return cc.configure_flow(config)
    config.cc = get_control_name(cc)
    if isinstance(cc, CongestionControl):
        config.cc_parameters = {name: float(value) for name, value in cc.parameters}


def build_switch_config(switch: Switch) -> _core.SwitchConfig:
    """Convert a switch."""
    config = _fill_config(_core.SwitchConfig(), switch)
    config.capacity = switch.capacity
    config.in_bytes = switch.in_bytes
    if switch.admission is not None:
        config.admission = switch.admission.kind
        copy_to_core(config, switch.admission)
    config.scheduler = switch.scheduler.kind
    copy_to_core(config, switch.scheduler)
    if switch.flow_table is not None:
        copy_to_core(config, switch.flow_table)
    return config


def build_traffic_config(traffic: Traffic, hosts: list[str]) -> _core.TrafficConfig:
    """Convert the traffic of a world with hosts of these names."""
    config = _core.TrafficConfig()
    if hosts:
        config.senders = [_build_sender_legs(sender, hosts) for sender in traffic.senders]
    else:
        config.senders = _convert_senders(traffic.senders)
    config.arrivals = [build_arrivals_config(arrivals) for arrivals in traffic.arrivals]
    config.priority_below = list(traffic.priority_below)
    return config


def build_sender_config(sender: Sender | Relay) -> _core.FlowConfig:
    """Convert a sender, or a relay, to the template of its flows, without its hosts."""
    config = _fill_config(_core.FlowConfig(), sender)
    if sender.cc is not None:
        _set_cc(config, sender.cc)
    return config


def _build_sender_legs(sender: Sender, hosts: list[str]) -> _core.FlowConfig:
    """Convert a sender in a world with hosts, with its relay's leg if there is one."""
    config = _assign_hosts(build_sender_config(sender), sender, hosts)
    if sender.relay is not None:
        relay = _assign_hosts(build_sender_config(sender.relay), sender.relay, hosts)
        if sender.relay.cc is None:
            _set_cc(relay, sender.cc)
        config.relay = [relay]
    return config


def build_arrivals_config(arrivals: Arrivals) -> _core.ArrivalsConfig:
    """Convert arrivals of any kind."""
    from netbuf_gym.scenarios.laws import Exponential
    from netbuf_gym.scenarios.sizes import SizeDistribution
    from netbuf_gym.scenarios.traffic import FlowList, PoissonArrivals, RenewalArrivals, WebSessions

    config = _core.ArrivalsConfig()
    config.kind = arrivals.kind
    if isinstance(arrivals, FlowList):
        config.list_start_ns = to_nanoseconds(arrivals.start_s)
        config.list_sender = arrivals.sender.tolist()
        config.list_size = arrivals.size_bytes.tolist()
        config.list_priority = arrivals.priority.tolist()
        return config
    copy_to_core(config, arrivals)
    if isinstance(arrivals, RenewalArrivals):
        config.laws = [arrivals.gap_s.to_core(), arrivals.sizes.to_core()]
    elif isinstance(arrivals, WebSessions):
        laws = (arrivals.main_bytes, arrivals.objects, arrivals.object_bytes, arrivals.reading_s, arrivals.parsing_s)
        config.laws = [law.to_core() for law in laws]
        config.connections = arrivals.connections or 0
    elif isinstance(arrivals, PoissonArrivals):
        if isinstance(arrivals.sizes, SizeDistribution):
            config.size_bytes = list(arrivals.sizes.size_bytes)
            config.cumulative = list(arrivals.sizes.cumulative)
        else:
            config.kind = RenewalArrivals.kind
            config.laws = [Exponential(mean=1 / arrivals.flows_per_s).to_core(), arrivals.sizes.to_core()]
    return config


def build_udp_config(source: DatagramSource) -> _core.UdpConfig:
    """Convert a source of datagrams."""
    from netbuf_gym.scenarios.laws import Law
    from netbuf_gym.scenarios.udp import PacketReplay, get_size_law

    config = _fill_config(_core.UdpConfig(), source)
    config.bytes = source.longest_packet_bytes
    if isinstance(source, PacketReplay):
        config.rate_bps = 1.0
        config.replay_ns = to_nanoseconds(source.time_s)
        config.replay_bytes = source.packet_bytes.tolist()
        return config
    config.poisson = source.arrivals == "poisson"
    if isinstance(source.packet_bytes, Law):
        config.sizes = [get_size_law(source.packet_bytes)]
    if source.period_laws:
        config.periods = [law.to_core() for law in source.period_laws]
    elif source.mean_on_off_s is not None:
        config.on_ns, config.off_ns = map(to_nanoseconds, source.mean_on_off_s)
    return config


_convert_links = IdentityCache(lambda links: [build_link_config(link) for link in links])
_convert_flows = IdentityCache(lambda flows: [build_flow_config(flow) for flow in flows])
_convert_senders = IdentityCache(lambda senders: [build_sender_config(sender) for sender in senders])
"""Conversions of tuples. Those that the scenarios of a distribution share are converted once."""
