"""A scenario in the native core's terms."""

from __future__ import annotations

from netbuf_gym import _core
from netbuf_gym.scenarios.types import AGENT, Bulk, Flow, Link, OnOff, Scenario, Sized
from netbuf_gym.traces.types import RateTrace


def world_config(scenario: Scenario) -> _core.WorldConfig:
    """Converts a scenario: seconds to whole nanoseconds, Mbit/s to bit/s, None to the core's 0."""
    config = _core.WorldConfig()
    config.links = [link_config(link) for link in scenario.links]
    config.flows = [flow_config(flow) for flow in scenario.flows]
    config.stack = scenario.stack
    config.hystart = scenario.hystart
    config.pacing = scenario.pacing
    return config


def link_config(link: Link) -> _core.LinkConfig:
    """Converts one link."""
    config = _core.LinkConfig()
    config.name = link.name
    config.rate_bps = link.rate_mbps * 1e6 if link.rate_mbps is not None else 0.0
    config.delay_ns = round(link.delay_ms * 1e6)
    config.queue_limit_packets = link.queue_packets or 0
    config.queue_limit_bytes = link.queue_bytes or 0
    config.loss = link.loss
    if link.gilbert_elliott is not None:
        g = link.gilbert_elliott
        config.ge = (g.p_good_to_bad, g.p_bad_to_good, g.loss_good, g.loss_bad)
    config.loss_on_acks = link.loss_on_acks
    if isinstance(link.trace, RateTrace):
        config.schedule_time_ns = nanoseconds(link.trace.time_s)
        config.schedule_rate_bps = (link.trace.rate_mbps * 1e6).tolist()
        config.schedule_period_ns = nanoseconds(link.trace.period_s) if link.trace.period_s is not None else 0
    elif link.trace is not None:
        config.trace_ns = (link.trace.time_ms * 1e6).round().astype("int64").tolist()
        config.trace_period_ns = round(link.trace.period_ms * 1e6)
    return config


def flow_config(flow: Flow) -> _core.FlowConfig:
    """Converts one flow."""
    config = _core.FlowConfig()
    config.cc = flow.cc
    config.controlled = flow.cc == AGENT
    config.path = list(flow.path)
    config.return_path = list(flow.return_path)
    config.start_ns = nanoseconds(flow.start_s)
    config.stop_ns = nanoseconds(flow.stop_s) if flow.stop_s is not None else 0
    app = flow.app
    if isinstance(app, Bulk):
        config.app = "bulk"
    elif isinstance(app, Sized):
        config.app = "sized"
        config.size_bytes = app.size_bytes
    elif isinstance(app, OnOff):
        config.app = "on_off"
        config.on_ns, config.off_ns = nanoseconds(app.on_s), nanoseconds(app.off_s)
        config.random_on_off = app.random
        config.app_rate_bps = app.rate_mbps * 1e6 if app.rate_mbps is not None else 0.0
    config.send_buffer_bytes = flow.send_buffer_bytes or 0
    config.receive_buffer_bytes = flow.receive_buffer_bytes or 0
    config.initial_cwnd_packets = flow.initial_cwnd_packets
    return config


def nanoseconds(seconds):
    """Seconds as whole nanoseconds: an int for a number, a list of ints for an array."""
    if isinstance(seconds, (int, float)):
        return round(seconds * 1e9)
    return (seconds * 1e9).round().astype("int64").tolist()
