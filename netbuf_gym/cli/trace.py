"""`netbuf-gym trace`: generates, shows, plots and converts traces of varying capacity; generates and shows flow lists."""

from __future__ import annotations

import argparse

from netbuf_gym import traces
from netbuf_gym.cli import networks, workload
from netbuf_gym.cli.common import (
    check_outputs,
    check_plot,
    collect_assignments,
    make_whole_parser,
    parse_assignment,
    parse_real,
)
from netbuf_gym.errors import ConfigError
from netbuf_gym.simulation.results.plots import plot_trace
from netbuf_gym.traces import DeliveryTrace, RateTrace, Trace
from netbuf_gym.traces.likeness import compute_variability
from netbuf_gym.utils.files import write_json
from netbuf_gym.utils.tables import format_number, text_table

HELP = "make, show, draw and convert traces of varying capacity; make and show flow lists"
EPILOG = """examples:
  netbuf-gym trace generate 4g --duration 80 --seed 3 --out lte.down
  netbuf-gym trace generate 5g --set mean_mbps=40 --set outages=2 --format mbit --out 5g.csv
  netbuf-gym trace generate walk --set start_mbps=20 --set sigma=0.2 --format mahimahi --out walk.down
  netbuf-gym trace show lte.down
  netbuf-gym trace plot lte.down --out lte.png
  netbuf-gym trace convert lte.down lte.csv --format csv --step 0.01
  netbuf-gym trace compare traces --plot fit
  netbuf-gym trace rank traces
  netbuf-gym trace flows --scenario rlbm/default --set load=0.8 --seed 3 --out flows.csv
  netbuf-gym trace show flows.csv
"""
FORMATS = (*traces.HEADERS, "mahimahi")
FORMAT_HELP = "csv: time_s,mbps; mbit: time,Mbit/s; mahimahi: a millisecond a line"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    metavar = "generate | show | plot | convert | calibrate | compare | rank | flows"
    verbs = parser.add_subparsers(dest="verb", required=True, metavar=metavar)
    verb = verbs.add_parser("generate", help="make a trace")
    verb.add_argument("kind", choices=sorted(traces.GENERATORS), help="generator (netbuf-gym list traces)")
    verb.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    verb.add_argument("--duration", type=parse_real, default=60.0, metavar="S", help="seconds (default: 60)")
    verb.add_argument("--seed", type=make_whole_parser(0, 2**63 - 1), default=1, metavar="N", help="(default: 1)")
    verb.add_argument(
        "--set",
        action="append",
        type=parse_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the generator; may be repeated",
    )
    verb.add_argument("--format", choices=FORMATS, help=f"{FORMAT_HELP} (default: what the generator makes)")
    verb = verbs.add_parser("show", help="print what a trace file, a flow list or a distribution of flow sizes holds")
    verb.add_argument("file", help=f"{traces.FORMATS}; or a CSV file of flows, or of size_bytes,cumulative")
    verb.add_argument("--json", metavar="FILE", help="write the figures as JSON too")
    verb = verbs.add_parser("plot", help="draw a trace file's rate over time")
    verb.add_argument("file", help=traces.FORMATS)
    verb.add_argument("--out", required=True, metavar="FILE", help=".png, .pdf or .svg")
    verb = verbs.add_parser("convert", help="write a trace file in the other format")
    verb.add_argument("file", help=traces.FORMATS)
    verb.add_argument("out", help="the file to write")
    verb.add_argument("--format", choices=FORMATS, required=True, help=FORMAT_HELP)
    verb.add_argument("--duration", type=parse_real, metavar="S", help="length to convert (default: one period)")
    verb.add_argument("--step", type=parse_real, metavar="S", help="step of a csv made from deliveries (default: 0.1)")
    networks.add(verbs)
    verb = verbs.add_parser("flows", help="write the finite flows that a scenario opens as a flow list")
    verb.add_argument("--scenario", default="rlbm/default", metavar="NAME", help="(netbuf-gym list; default: rlbm/default)")
    verb.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    verb.add_argument("--seed", type=make_whole_parser(0, 2**63 - 1), default=1, metavar="N", help="(default: 1)")
    verb.add_argument(
        "--set",
        action="append",
        type=parse_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the scenario; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    if arguments.verb in networks.VERBS:
        return networks.run(arguments)
    if arguments.verb == "generate":
        check_outputs(arguments.out)
        parameters = collect_assignments(arguments.set)
        for name, option in (("duration_s", "--duration"), ("seed", "--seed")):
            if name in parameters:
                raise ConfigError(f"--set {name}: is no argument of the generator; valid: {option}")
        trace = traces.generate(arguments.kind, duration_s=arguments.duration, seed=arguments.seed, **parameters)
        if arguments.format:
            trace = _convert_trace(trace, arguments.format)
        traces.write(trace, arguments.out, _get_header(arguments.format))
        print(format_trace(traces.read(arguments.out)))
    elif arguments.verb == "show":
        check_outputs(arguments.json)
        flows = workload.read_workload(arguments.file)
        trace = traces.read(arguments.file) if flows is None else None
        if arguments.json:
            write_json(arguments.json, compute_figures(trace) if flows is None else workload.compute_figures(flows))
        print(format_trace(trace) if flows is None else workload.format_workload(flows))
    elif arguments.verb == "flows":
        check_outputs(arguments.out)
        flows = workload.generate_flows(arguments.scenario, collect_assignments(arguments.set), arguments.seed)
        flows.write_csv(arguments.out)
        print(workload.format_workload(flows))
    elif arguments.verb == "plot":
        check_outputs(arguments.out)
        check_plot(arguments.out)
        plot_trace(traces.read(arguments.file), arguments.out)
    else:
        check_outputs(arguments.out)
        trace = _convert_trace(traces.read(arguments.file), arguments.format, arguments.duration, arguments.step)
        traces.write(trace, arguments.out, _get_header(arguments.format))
        print(format_trace(traces.read(arguments.out)))
    return 0


def _get_header(form: str | None) -> str:
    return form if form in traces.HEADERS else "csv"


def _convert_trace(trace: Trace, form: str, duration_s: float | None = None, step_s: float | None = None) -> Trace:
    """Convert a trace to a `time_s,mbps` schedule or to the deliveries of a Mahimahi file.

    Raises:
        ConfigError: A length or a step that would have no effect, or a missing length for a trace without one.
        ScenarioError: A length or a step out of range.
    """
    rates, to_rates = isinstance(trace, RateTrace), form in traces.HEADERS
    if duration_s is not None and not (rates and not to_rates):
        raise ConfigError(f"--duration {duration_s:g} has no effect: only rates that become deliveries have a length to choose")
    if step_s is not None and not (not rates and to_rates):
        raise ConfigError(f"--step {step_s:g} has no effect: only deliveries that become rates have a step to choose")
    if rates == to_rates:
        return trace
    if to_rates:
        return trace.to_rates(0.1 if step_s is None else step_s)
    if duration_s is None and not trace.duration_s:
        raise ConfigError(f"--duration is missing: {trace.name or 'the trace'} is one rate without an end; valid: --duration S")
    made = trace.to_deliveries(duration_s)
    return DeliveryTrace(made.time_ms, name=made.name)  # a Mahimahi file repeats after its last opportunity


def compute_figures(trace: Trace) -> dict[str, object]:
    """Compute the figures that describe a trace."""
    data: dict[str, object] = {
        "name": trace.name,
        "kind": "rates" if isinstance(trace, RateTrace) else "deliveries",
        "duration_s": trace.duration_s,
        "mean_mbps": trace.mean_mbps(),
        "peak_mbps": trace.peak_mbps,
        "longest_gap_s": trace.longest_gap_s,
    }
    data |= compute_variability(trace)
    if isinstance(trace, RateTrace):
        data["least_mbps"] = float(trace.rate_mbps.min())
        data["steps"] = len(trace.time_s)
    else:
        data["least_mbps"] = float(trace.to_rates(0.1).rate_mbps.min())
        data["opportunities"] = len(trace.time_ms)
    return data


def format_trace(trace: Trace) -> str:
    """Format the figures of a trace as a table."""
    units = {"duration_s": "s", "longest_gap_s": "s", "mean_mbps": "Mbit/s", "peak_mbps": "Mbit/s", "least_mbps": "Mbit/s"}
    rows = []
    for name, value in compute_figures(trace).items():
        word = name.removesuffix("_s").removesuffix("_mbps").replace("_", " ")
        text = format_number(value, 5) if isinstance(value, (int, float)) else str(value)
        rows.append([word, f"{text} {units.get(name, '')}".rstrip()])
    return text_table(["", ""], rows).split("\n", 2)[2]
