"""`netbuf-gym simulate`: a scenario without an agent, with statistics of flows and links."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.cli.common import (
    add_scenario_arguments,
    add_seed,
    check_outputs,
    check_plot,
    collect_assignments,
    one_line_warnings,
    parse_names,
    parse_real,
)
from netbuf_gym.cli.program import Parser
from netbuf_gym.controllers import code_references
from netbuf_gym.errors import ConfigError, describe_scenario
from netbuf_gym.scenarios import Distribution, Scenario, Switch
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS
from netbuf_gym.scenarios.codec import parse_application
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.simulation.results.traffic import ENOUGH, SwitchResult
from netbuf_gym.simulation.results.video import ESTIMATES
from netbuf_gym.simulation.runner import SAMPLE_INTERVALS_S, simulate
from netbuf_gym.utils import checks
from netbuf_gym.utils.parameters import read_settings
from netbuf_gym.utils.tables import format_number, text_table

EPILOG = """examples:
  netbuf-gym simulate --scenario ppcc/2 --senders cubic,bbr --seed 1
  netbuf-gym simulate --scenario dumbbell --set rate_mbps=50 --set buffer_packets=200 --plot run.png
  netbuf-gym simulate --scenario trace:lte.down --senders bbr --csv run.csv
  netbuf-gym simulate --senders mine.cc,mine.py:Gentle,cubic --plot run.png
  netbuf-gym simulate --senders cubic,bbr --duration 10 --pcap run.pcap --packets run.csv
  netbuf-gym simulate --scenario rlbm/cubic-500-0.6 --scheme abm --flows flows.csv
  netbuf-gym simulate --app '{"kind": "video", "abr": "buffer"}' --duration 120
  netbuf-gym simulate --scenario rlbm/default --set flow_list=flows.csv --scheme '{"name": "dt", "alphas": [2, 0.5]}'
"""


OTHER_NAMES = {
    **dict.fromkeys(("cc", "ccs", "congestion_control", "congestion", "algorithm"), "--senders"),
    **dict.fromkeys(("time", "duration_s", "seconds"), "--duration"),
    "warmup_s": "--warmup",
}
"""Options by what other programs, or the Python interface, call them."""


def add(parser: Parser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class, parser.find_meant = EPILOG, argparse.RawDescriptionHelpFormatter, find_meant
    parser.add_argument(
        "--scenario",
        default="dumbbell",
        metavar="NAME",
        help="name (netbuf-gym list scenarios), trace:PATH or file:PATH (default: dumbbell)",
    )
    add_scenario_arguments(parser, "scenario, or a setting of TCP such as timestamps=false")
    parser.add_argument(
        "--senders",
        type=parse_names,
        metavar="CC,...",
        help="congestion control of each flow, e.g. cubic,bbr or cubic:beta=0.8; also code: FILE.cc, FILE.py:NAME",
    )
    parser.add_argument(
        "--scheme",
        type=parse_scheme,
        metavar="NAME",
        help="buffer management (netbuf-gym list schemes), also with settings, dt:alpha_0=2; or JSON of name and parameters",
    )
    parser.add_argument(
        "--app",
        type=parse_scheme,
        metavar="KIND",
        help="application of every flow: bulk, video, or a JSON object of kind and fields (sized, on_off, video)",
    )
    parser.add_argument("--stack", choices=("linux", "ns3"), help="TCP stack (default: the scenario's, linux)")
    parser.add_argument("--duration", type=parse_real, metavar="S", help="duration in seconds (default: the scenario's)")
    add_seed(parser, 1, "seed of random losses, and of the sample from a distribution of scenarios")
    parser.add_argument(
        "--warmup", type=parse_real, default=0.0, metavar="S", help="seconds before the statistics begin (default: 0)"
    )
    parser.add_argument(
        "--sample-interval",
        type=parse_real,
        default=0.1,
        metavar="S",
        help="seconds between samples of the series (default: 0.1)",
    )
    parser.add_argument("--json", metavar="FILE", help="write statistics and series as JSON")
    parser.add_argument("--csv", metavar="FILE", help="write the series as CSV: a row for each sample and flow")
    parser.add_argument("--flows", metavar="FILE", help="write the finite flows as CSV: a flow list for --set flow_list=FILE")
    parser.add_argument("--packets", metavar="FILE", help="write a log of all packets as CSV: sent, received, lost and where")
    parser.add_argument("--pcap", metavar="FILE", help="write a capture at the senders, for tcpdump, tshark and Wireshark")
    parser.add_argument("--plot", metavar="FILE", help="plot the series (.png, .pdf or .svg)")
    parser.add_argument("--all-links", action="store_true", help="print links without a queue limit too")


def find_meant(words: Sequence[str], arguments: argparse.Namespace) -> str:
    """Return what unrecognised words stand for: a scenario, an argument of the scenario, or an option; "" for nothing."""
    word, equals, value = words[0].partition("=")
    name = word.lstrip("-").replace("-", "_")
    value = value or next((one for one in words[1:2] if not one.startswith("-")), "...")
    if not equals and not word.startswith("-") and (word in scenarios.names() or ":" in word):
        return f"--scenario {word}"
    option = OTHER_NAMES.get(name)
    if name in vars(arguments) and name not in ("set", "command"):
        option = f"--{name.replace('_', '-')}"
    if option is not None:
        return f"{option} {value}"
    chosen = arguments.scenario if arguments.scenario in scenarios.names() else "dumbbell"
    known = scenarios.parameters_of(chosen)
    argument = next((one for one in known if name in (one, one.partition("_")[0])), name if equals and name == word else None)
    return "" if argument is None else f"--set {argument}={value}"


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    check_outputs(arguments.json, arguments.csv, arguments.flows, arguments.packets, arguments.pcap, arguments.plot)
    check_plot(arguments.plot)
    interval_s = checks.number("sample_interval_s", arguments.sample_interval, *SAMPLE_INTERVALS_S)
    with one_line_warnings():
        scenario = resolve_scenario(arguments)
        if arguments.flows and scenario.traffic is None:
            raise ConfigError(f"--flows: {describe_scenario(scenario)} has no finite flows")
        if arguments.json:
            scenario.to_dict()  # refuses what JSON cannot hold before the world is run
        result = simulate(
            scenario,
            arguments.seed,
            sample_interval_s=interval_s if arguments.json or arguments.csv or arguments.plot else None,
            warmup_s=arguments.warmup,
            progress=sys.stderr.isatty(),
            packets=bool(arguments.packets or arguments.pcap),
        )
    if arguments.json:
        result.write_json(arguments.json)
    if arguments.csv:
        result.write_csv(arguments.csv)
    if arguments.flows:
        result.write_flows_csv(arguments.flows)
    if arguments.packets:
        result.write_packets_csv(arguments.packets)
    if arguments.pcap:
        result.write_pcap(arguments.pcap)
    if arguments.plot:
        result.plot(arguments.plot)
    print(format_result(result, arguments.all_links))
    return 0


def parse_scheme(text: str) -> str | dict:
    """Parse the value of --scheme or --app: a JSON object, or a name."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object") from None


def resolve_scenario(arguments: argparse.Namespace) -> Scenario:
    """Return the scenario that the options describe; sampled with the seed if they name a distribution.

    Raises:
        ConfigError, ControlError, ScenarioError: Options that describe no scenario.
    """
    kwargs = collect_assignments(arguments.set)
    given = {
        "senders": arguments.senders and [_resolve_control(word) for word in arguments.senders],
        "stack": arguments.stack,
        "duration_s": arguments.duration,
    }
    for name, value in given.items():
        if value is None:
            continue
        if name in kwargs:
            raise ConfigError(f"{name} is given twice; valid: an option of its own or --set")
        kwargs[name] = value
    senders: Any = None
    if "senders" in kwargs and "senders" not in scenarios.parameters_of(arguments.scenario):
        senders = kwargs.pop("senders")  # scenario file: same flows, other congestion controls
    world = scenarios.get(arguments.scenario, **kwargs)
    if isinstance(world, Distribution):
        world = world.sample(np.random.default_rng(arguments.seed))
    if senders is not None:
        world = world.with_senders(senders[0] if isinstance(senders, list) and len(senders) == 1 else senders)
    if arguments.app is not None:
        world = replace(world, flows=[replace(flow, app=parse_application("--app", arguments.app)) for flow in world.flows])
    return world if arguments.scheme is None else world.with_scheme(arguments.scheme)


def _resolve_control(word: str) -> Any:
    """Return a congestion control's name, with settings as in `cubic:beta=0.8` or without, or the user's own control.

    Raises:
        ConfigError: A missing file, or invalid settings.
        ControlError: Code that does not compile, cannot be imported, or has no such name.
    """
    code_references.require_file(word, "--senders")
    if code_references.is_compiled(word):
        return scenarios.compiled(word)
    if code_references.is_python(word):
        return code_references.load_object(word)
    name, colon, settings = word.partition(":")
    if colon and name in CONGESTION_CONTROLS:
        return {"name": name, **read_settings(name, settings, CONGESTION_CONTROLS[name].list_tunable())}
    return word


def format_result(result: Result, all_links: bool = False) -> str:
    """Format a result as tables for the terminal."""
    scenario = result.scenario
    buffer = "no limit" if scenario.buffer_packets is None else f"{scenario.buffer_packets} packets"
    start_s, end_s = result.window_s
    head = (
        f"{scenario.name or 'scenario'}: {scenario.capacity_mbps:.4g} Mbit/s, {scenario.propagation_rtt_ms():.4g} ms,"
        f" buffer {buffer}, {scenario.stack} stack, seed {result.seed}, statistics of {start_s:g} to {end_s:g} s"
    )
    parts = [head]
    if result.flows:
        parts.append(_format_table(FLOW_COLUMNS, result.flows))
    if result.videos:
        parts.append(_format_table(VIDEO_COLUMNS, result.videos))
    if result.traffic is not None:
        by_priority = result.by_priority()
        parts.append(_format_table(FINITE_FLOW_COLUMNS, by_priority))
        few = [f"{row['completed']} of priority {row['priority']}" for row in by_priority if 0 < row["completed"] < ENOUGH]
        if few:
            parts.append(f"few flows completed, {', '.join(few)}: below {ENOUGH} one or two of them decide a p99")
    if result.udp:
        parts.append(_format_table(UDP_COLUMNS, result.udp))
    parts += [_format_switch(*pair) for pair in zip(result.switches, result.scenario.switches, strict=True)]
    links = [
        outcome
        for link, outcome in zip(result.scenario.links, result.links, strict=True)
        if all_links
        or link.name == result.bottleneck
        or link.queue_packets
        or link.queue_bytes
        or outcome.queue_drops
        or outcome.random_losses
    ]
    parts.append(_format_table(LINK_COLUMNS, links))
    total = f"total {format_number(result.goodput_mbps)} Mbit/s, lost {format_number(result.loss_rate * 100, 3)} %"
    if len(result.flows) > 1:
        total += f", Jain's fairness {format_number(result.fairness)}"
    if result.traffic is not None:
        t = result.traffic
        total += f"; {t.flows_completed} of {t.flows_started} finite flows completed, {t.timeouts} time-outs"
    for probe in result.probes:
        total += f"; one-way delay of {probe.received} of {probe.sent} probes {format_number(probe.mean_ms)} ms"
        total += f" (p99 {format_number(probe.percentile_ms(99))}; whole run)"
    return "\n\n".join([*parts, total])


def _format_table(columns: Columns, items: Iterable[Any]) -> str:
    rows = [[_format_cell(get(item)) for get in columns.values()] for item in items]
    return text_table(list(columns), rows)


def _format_cell(value: object) -> str:
    return format_number(value) if value is None or isinstance(value, float) else str(value)


def _format_switch(outcome: SwitchResult, switch: Switch) -> str:
    admission = "no" if switch.admission is None else switch.admission.kind
    unit = "bytes" if outcome.in_bytes else "packets"
    occupancy = {"mean": outcome.occupancy_mean, "p99": outcome.occupancy_p99, "max": outcome.occupancy_max}
    shares = ", ".join(f"{name} {format_number(share * 100)} %" for name, share in occupancy.items())
    title = f"{outcome.name}: {admission} thresholds, {switch.scheduler.kind}, {outcome.capacity} {unit};"
    return f"{title} occupancy over the whole run: {shares}\n{_format_table(QUEUE_COLUMNS, outcome.queues)}"


Columns = Mapping[str, Callable[[Any], object]]
"""Functions that return the cells of a table's columns, by heading."""

FLOW_COLUMNS: Columns = {
    "flow": lambda flow: flow.name,
    "cc": lambda flow: flow.cc,
    "goodput Mbit/s": lambda flow: flow.goodput_mbps,
    "RTT ms": lambda flow: flow.rtt_mean_ms,
    "min RTT ms": lambda flow: flow.rtt_min_ms,
    "cwnd packets": lambda flow: flow.cwnd_mean_packets,
    "sent": lambda flow: flow.packets_sent,
    "resent": lambda flow: flow.packets_retransmitted,
    "lost %": lambda flow: format_number(flow.loss_rate * 100, 3),
    "time-outs": lambda flow: flow.timeouts,
    "done s": lambda flow: flow.completion_s,
}
UDP_COLUMNS: Columns = {
    "udp": lambda source: source.name,
    "sent Mbit/s": lambda source: source.sent_mbps,
    "received Mbit/s": lambda source: source.received_mbps,
    "delay ms": lambda source: source.delay_mean_ms,
    "min delay ms": lambda source: source.delay_min_ms_total,
    "max delay ms": lambda source: source.delay_max_ms_total,
    "sent": lambda source: source.packets_sent,
    "received": lambda source: source.packets_received,
    "lost %": lambda source: format_number(source.loss_rate * 100, 3),
}
VIDEO_COLUMNS: Columns = {
    "video": lambda video: video.name,
    "abr": lambda video: video.abr,
    "bitrate Mbit/s": lambda video: video.bitrate_mean_mbps,
    "switches": lambda video: video.switches,
    "chunks": lambda video: len(video.chunks),
    "start s": lambda video: video.startup_s,
    "played s": lambda video: video.played_s,
    "buffered s": lambda video: video.buffered_s,
    "stalled s": lambda video: video.stalled_s,
    "stalls": lambda video: video.stalls,
    "estimate error %": lambda video: video.error_median(ESTIMATES[0]) * 100,
    "window error %": lambda video: video.error_median(ESTIMATES[1]) * 100,
}
FINITE_FLOW_COLUMNS: Columns = {
    "priority": lambda row: row["priority"],
    "flows": lambda row: row["started"],
    "completed": lambda row: row["completed"],
    "FCT s": lambda row: row["fct_mean_s"],
    "FCT p99 s": lambda row: row["fct_p99_s"],
    "slowdown": lambda row: row["slowdown_mean"],
    "slowdown p99": lambda row: row["slowdown_p99"],
    "slowdown max": lambda row: row["slowdown_max"],
    "difference p99 s": lambda row: row["difference_p99_s"],
    "difference max s": lambda row: row["difference_max_s"],
}
QUEUE_COLUMNS: Columns = {
    "port": lambda queue: queue.port,
    "queue": lambda queue: queue.queue,
    "arrivals": lambda queue: queue.arrivals,
    "drops": lambda queue: queue.drops,
    "mean packets": lambda queue: queue.packets_mean,
    "p99": lambda queue: queue.packets_p99,
    "max": lambda queue: queue.packets_max,
    "delay ms": lambda queue: queue.delay_mean_ms,
}
LINK_COLUMNS: Columns = {
    "link": lambda link: link.name,
    "Mbit/s": lambda link: link.throughput_mbps,
    "utilization %": lambda link: link.utilisation * 100,
    "queueing ms": lambda link: link.queue_delay_mean_ms,
    "deviation": lambda link: link.queue_delay_std_ms,
    "queue packets": lambda link: link.queue_mean_packets,
    "max": lambda link: link.queue_max_packets_total,
    "drops": lambda link: link.queue_drops,
    "random losses": lambda link: link.random_losses,
}
