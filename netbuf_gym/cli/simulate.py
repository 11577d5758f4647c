"""`netbuf-gym simulate`: runs a scenario without an agent and prints what its flows and links did."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.cli.common import assignment, assignments, check_outputs, check_plot, names, real, whole
from netbuf_gym.controllers import code_references
from netbuf_gym.errors import ConfigError, called
from netbuf_gym.scenarios import Distribution, Scenario
from netbuf_gym.scenarios.codec import application_of
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.simulation.results.video import ESTIMATES
from netbuf_gym.simulation.runner import SAMPLE_INTERVALS_S, simulate
from netbuf_gym.utils import checks
from netbuf_gym.utils.tables import number, text_table

HELP = "run a scenario without an agent"
EPILOG = """examples:
  netbuf-gym simulate --scenario ppcc/2 --senders cubic,bbr --seed 1
  netbuf-gym simulate --scenario dumbbell --set rate_mbps=50 --set buffer_packets=200 --plot run.png
  netbuf-gym simulate --scenario trace:lte.down --senders bbr --csv run.csv
  netbuf-gym simulate --senders mine.cc,mine.py:Gentle,cubic --plot run.png
  netbuf-gym simulate --scenario rlbm/cubic-500-0.6 --scheme abm --flows flows.csv
  netbuf-gym simulate --app '{"kind": "video", "abr": "buffer"}' --duration 120
  netbuf-gym simulate --scenario rlbm/default --set flow_list=flows.csv --scheme '{"name": "dt", "alphas": [2, 0.5]}'
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--scenario",
        default="dumbbell",
        metavar="NAME",
        help="a name (netbuf-gym list), trace:PATH or file:PATH (default: dumbbell)",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=assignment,
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the scenario; may be repeated",
    )
    parser.add_argument(
        "--senders",
        type=names,
        metavar="CC,...",
        help="congestion control of each flow, e.g. cubic,bbr; also your own: mine.cc, mine.py:NAME",
    )
    parser.add_argument(
        "--scheme",
        type=scheme,
        metavar="NAME",
        help="buffer management (netbuf-gym list schemes), or a JSON object of name and parameters",
    )
    parser.add_argument(
        "--app",
        type=scheme,
        metavar="KIND",
        help="what every flow sends: bulk, video, or a JSON object of kind and fields (sized, on_off, video)",
    )
    parser.add_argument("--stack", choices=("linux", "ns3"), help="TCP stack (default: the scenario's, linux)")
    parser.add_argument("--duration", type=real, metavar="S", help="seconds (default: the scenario's)")
    parser.add_argument(
        "--seed",
        type=whole(0, 2**63 - 1),
        default=1,
        metavar="N",
        help="decides losses, and the draw from a distribution (default: 1)",
    )
    parser.add_argument(
        "--warmup", type=real, default=0.0, metavar="S", help="leave the first seconds out of the statistics (default: 0)"
    )
    parser.add_argument(
        "--sample-interval", type=real, default=0.1, metavar="S", help="time between samples of the series (default: 0.1)"
    )
    parser.add_argument("--json", metavar="FILE", help="write statistics and series as JSON")
    parser.add_argument("--csv", metavar="FILE", help="write the series as CSV, a row for each sample and flow")
    parser.add_argument("--flows", metavar="FILE", help="write the finite flows as CSV: a flow list that can be replayed")
    parser.add_argument("--plot", metavar="FILE", help="draw the series (.png, .pdf, .svg)")
    parser.add_argument("--all-links", action="store_true", help="show links without a queue limit too")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    check_outputs(arguments.json, arguments.csv, arguments.flows, arguments.plot)
    check_plot(arguments.plot)
    interval_s = checks.number("sample_interval_s", arguments.sample_interval, *SAMPLE_INTERVALS_S)
    scenario = scenario_of(arguments)
    if arguments.flows and scenario.traffic is None:
        raise ConfigError(f"--flows: {called(scenario)} has no finite flows")
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        result = simulate(
            scenario,
            arguments.seed,
            sample_interval_s=interval_s if arguments.json or arguments.csv or arguments.plot else None,
            warmup_s=arguments.warmup,
            progress=sys.stderr.isatty(),
        )
    if arguments.json:
        result.write_json(arguments.json)
    if arguments.csv:
        result.write_csv(arguments.csv)
    if arguments.flows:
        result.write_flows_csv(arguments.flows)
    if arguments.plot:
        result.plot(arguments.plot)
    print(describe(result, arguments.all_links))
    return 0


def _show_warning(message: Warning | str, *_: object) -> None:
    """A line, as errors are shown."""
    print(f"netbuf-gym: warning: {message}", file=sys.stderr, flush=True)


def scheme(text: str) -> str | dict:
    """The value of --scheme: a JSON object, or a name."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object") from None


def scenario_of(arguments: argparse.Namespace) -> Scenario:
    """The scenario that the options describe, drawn by the seed if it is a distribution's."""
    kwargs = assignments(arguments.set)
    senders = arguments.senders and [_control(word) for word in arguments.senders]
    given = {"senders": senders, "stack": arguments.stack, "duration_s": arguments.duration}
    for name, value in given.items():
        if value is None:
            continue
        if name in kwargs:
            raise ConfigError(f"{name} is given twice; valid: an option of its own or --set")
        kwargs[name] = value
    senders = None
    if "senders" in kwargs and "senders" not in scenarios.parameters_of(arguments.scenario):
        senders = kwargs.pop("senders")  # a scenario file: the same flows with other congestion controls
    world = scenarios.get(arguments.scenario, **kwargs)
    if isinstance(world, Distribution):
        world = world.sample(np.random.default_rng(arguments.seed))
    if senders is not None:
        world = world.with_senders(senders[0] if isinstance(senders, list) and len(senders) == 1 else senders)
    if arguments.app is not None:
        world = replace(world, flows=[replace(flow, app=application_of("--app", arguments.app)) for flow in world.flows])
    return world if arguments.scheme is None else world.with_scheme(arguments.scheme)


def _control(word: str) -> Any:
    """A congestion control's name as it is, or the user's own that a word names.

    Raises:
        ConfigError, ControlError: a file that is not there; one that does not compile, cannot be imported, or has no such name.
    """
    code_references.require_file(word, "--senders")
    if code_references.is_compiled(word):
        return scenarios.compiled(word)
    return code_references.python(word) if code_references.is_python(word) else word


def describe(result: Result, all_links: bool = False) -> str:
    """The tables for the terminal."""
    scenario = result.scenario
    buffer = "no limit" if scenario.buffer_packets is None else f"{scenario.buffer_packets} packets"
    start_s, end_s = result.window_s
    head = (
        f"{scenario.name or 'scenario'}: {scenario.capacity_mbps:.4g} Mbit/s, {scenario.propagation_rtt_ms():.4g} ms,"
        f" buffer {buffer}, {scenario.stack} stack, seed {result.seed}, statistics of {start_s:g} to {end_s:g} s"
    )
    parts = [head]
    if result.flows:
        parts.append(_flows(result))
    if result.videos:
        parts.append(_videos(result))
    if result.traffic is not None:
        parts.append(_finite_flows(result))
    if result.udp:
        parts.append(_udp(result))
    if result.switches:
        parts.append(_switches(result))
    parts.append(_links(result, all_links))
    total = f"together {number(result.goodput_mbps)} Mbit/s, lost {number(result.loss_rate * 100, 3)} %"
    if len(result.flows) > 1:
        total += f", Jain's fairness {number(result.fairness)}"
    if result.traffic is not None:
        t = result.traffic
        total += f"; {t.flows_completed} of {t.flows_started} finite flows completed, {t.timeouts} time-outs"
    for probe in result.probes:
        total += f"; one-way delay of {probe.received} of {probe.sent} probes {number(probe.mean_ms)} ms"
        total += f" (99 %: {number(probe.percentile_ms(99))}; whole run)"
    return "\n\n".join([*parts, total])


def _flows(result: Result) -> str:
    return text_table(
        [
            "flow",
            "cc",
            "goodput Mbit/s",
            "RTT ms",
            "least ms",
            "cwnd packets",
            "sent",
            "resent",
            "lost %",
            "time-outs",
            "done s",
        ],
        [
            [
                flow.name,
                flow.cc,
                number(flow.goodput_mbps),
                number(flow.rtt_mean_ms),
                number(flow.rtt_min_ms),
                number(flow.cwnd_mean_packets),
                str(flow.packets_sent),
                str(flow.packets_retransmitted),
                number(flow.loss_rate * 100, 3),
                str(flow.timeouts),
                number(flow.completion_s),
            ]
            for flow in result.flows
        ],
    )


def _udp(result: Result) -> str:
    header = ["udp", "sent Mbit/s", "received Mbit/s", "one way ms", "least ms", "longest ms", "sent", "received", "lost %"]
    rows = [
        [
            source.name,
            number(source.sent_mbps),
            number(source.received_mbps),
            number(source.delay_mean_ms),
            number(source.delay_min_ms_total),
            number(source.delay_max_ms_total),
            str(source.packets_sent),
            str(source.packets_received),
            number(source.loss_rate * 100, 3),
        ]
        for source in result.udp
    ]
    return text_table(header, rows)


def _videos(result: Result) -> str:
    header = ["video", "abr", "bitrate Mbit/s", "switches", "chunks", "start s", "played s", "buffered s", "stalled s"]
    return text_table(
        [*header, "stalls", "estimate off %", "window off %"],
        [
            [
                video.name,
                video.abr,
                number(video.bitrate_mean_mbps),
                str(video.switches),
                str(len(video.chunks)),
                number(video.startup_s),
                number(video.played_s),
                number(video.buffered_s),
                number(video.stalled_s),
                str(video.stalls),
                *(number(video.error_median(name) * 100) for name in ESTIMATES),
            ]
            for video in result.videos
        ],
    )


def _finite_flows(result: Result) -> str:
    return text_table(
        ["priority", "flows", "completed", "FCT s", "99 %", "slowdown", "99 %", "worst", "difference s, 99 %", "worst"],
        [
            [
                str(row["priority"]),
                str(row["started"]),
                str(row["completed"]),
                *(
                    number(row[name])
                    for name in (
                        "fct_mean_s",
                        "fct_p99_s",
                        "slowdown_mean",
                        "slowdown_p99",
                        "slowdown_max",
                        "difference_p99_s",
                        "difference_max_s",
                    )
                ),
            ]
            for row in result.by_priority()
        ],
    )


def _switches(result: Result) -> str:
    parts = []
    for switch, given in zip(result.switches, result.scenario.switches, strict=True):
        full = " ".join(
            f"{word} {number(share * 100)} %"
            for word, share in (
                ("mean", switch.occupancy_mean),
                ("99 %:", switch.occupancy_p99),
                ("most", switch.occupancy_max),
            )
        )
        unit = "bytes" if switch.in_bytes else "packets"
        rows = [
            [
                queue.port,
                str(queue.queue),
                str(queue.arrivals),
                str(queue.drops),
                number(queue.packets_mean),
                number(queue.packets_p99),
                number(queue.packets_max),
                number(queue.delay_mean_ms),
            ]
            for queue in switch.queues
        ]
        header = ["port", "queue", "arrivals", "drops", "mean packets", "99 %", "most", "delay ms"]
        title = f"{switch.name}: {given.admission.kind} thresholds, {given.scheduler.kind}, {switch.capacity} {unit};"
        title += f" over the whole run, filled {full}"
        parts.append(f"{title}\n{text_table(header, rows)}")
    return "\n\n".join(parts)


def _links(result: Result, all_links: bool) -> str:
    shown = [
        (link, outcome)
        for link, outcome in zip(result.scenario.links, result.links, strict=True)
        if all_links
        or link.name == result.bottleneck
        or link.queue_packets
        or link.queue_bytes
        or outcome.queue_drops
        or outcome.random_losses
    ]
    return text_table(
        ["link", "Mbit/s", "used %", "queueing ms", "deviation", "queue packets", "most", "drops", "random losses"],
        [
            [
                link.name,
                number(outcome.throughput_mbps),
                number(outcome.utilisation * 100),
                number(outcome.queue_delay_mean_ms),
                number(outcome.queue_delay_std_ms),
                number(outcome.queue_mean_packets),
                str(outcome.queue_max_packets_total),
                str(outcome.queue_drops),
                str(outcome.random_losses),
            ]
            for link, outcome in shown
        ],
    )
