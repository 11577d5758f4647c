"""`netbuf-gym trace`: capacity traces, flow lists and distributions of flow sizes."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np

from netbuf_gym import scenarios, traces
from netbuf_gym.cli.common import (
    add_scenario_arguments,
    add_seed,
    check_outputs,
    check_plot,
    collect_assignments,
    make_whole_parser,
    one_line_warnings,
    parse_names,
    parse_real,
)
from netbuf_gym.cli.program import Parser, add_verb
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import Distribution, FlowList, SizeDistribution
from netbuf_gym.scenarios.catalogue import sender_controls
from netbuf_gym.scenarios.sizes import read_records
from netbuf_gym.simulation.results.plots import plot_trace
from netbuf_gym.simulation.runner import simulate
from netbuf_gym.traces import DeliveryTrace, RateTrace, Trace, calibration
from netbuf_gym.traces.likeness import OUTAGE_S, compute_variability, summarise
from netbuf_gym.traces.networks import POPULATIONS
from netbuf_gym.traces.units import RATE_UNITS, TIME_UNITS
from netbuf_gym.utils.files import parse_number, split_csv_fields, write_atomic, write_json
from netbuf_gym.utils.tables import format_number, text_table
from netbuf_gym.validation import networks

EPILOG = """examples:
  netbuf-gym trace generate 4g --duration 80 --seed 3 --out lte.down
  netbuf-gym trace generate 5g --set mean_mbps=40 --set outages=2 --format mbit --out 5g.csv
  netbuf-gym trace generate walk --set start_mbps=20 --set sigma=0.2 --format mahimahi --out walk.down
  netbuf-gym trace show lte.down
  netbuf-gym trace plot lte.down --out lte.png
  netbuf-gym trace convert lte.down lte.csv --format csv --step 0.01
  netbuf-gym trace convert log.csv drive.csv --format csv --column DL_bitrate --unit kbit/s --start 60 --duration 120
  netbuf-gym trace compare traces --plot fit
  netbuf-gym trace rank traces
  netbuf-gym trace flows --scenario rlbm/default --set load=0.8 --seed 3 --out flows.csv
  netbuf-gym trace show flows.csv
"""
FORMATS = (*traces.HEADERS, "mahimahi")
FORMAT_HELP = "csv: time_s,mbps; mbit: time,Mbit/s; mahimahi: a line for each packet, its time in ms"
UNITS = {"_s": "s", "_mbps": "Mbit/s", "_bytes": "bytes"}
"""Units of figures, by the end of their names."""


def find_meant(words: Sequence[str], arguments: argparse.Namespace) -> str:
    """Return the option that an unrecognised KEY=VALUE stands for; "" for other words and verbs."""
    settable = "=" in words[0] and not words[0].startswith("-") and hasattr(arguments, "set")
    return f"--set {words[0]}" if settable else ""


def add(parser: Parser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class, parser.find_meant = EPILOG, argparse.RawDescriptionHelpFormatter, find_meant
    metavar = "generate | show | plot | convert | calibrate | compare | rank | flows"
    verbs = parser.add_subparsers(dest="verb", required=True, metavar=metavar)
    verb = add_verb(verbs, "generate", "generate a capacity trace")
    verb.add_argument("kind", choices=sorted(traces.GENERATORS), help="generator (netbuf-gym list traces)")
    verb.add_argument("--out", required=True, metavar="FILE", help="file to write")
    verb.add_argument("--duration", type=parse_real, default=60.0, metavar="S", help="length in seconds (default: 60)")
    add_seed(verb, 1)
    add_scenario_arguments(verb, "generator")
    verb.add_argument("--format", choices=FORMATS, help=f"{FORMAT_HELP} (default: the generator's)")
    verb = add_verb(verbs, "show", "print statistics of a trace, a flow list or a distribution of flow sizes")
    verb.add_argument("file", help=f"{traces.FORMATS}; or a CSV file of flows, or of size_bytes,cumulative")
    verb.add_argument("--json", metavar="FILE", help="write the statistics as JSON")
    _add_reading(verb)
    verb = add_verb(verbs, "plot", "plot the rate of a trace over time")
    verb.add_argument("file", help=traces.FORMATS)
    verb.add_argument("--out", required=True, metavar="FILE", help="file to write (.png, .pdf or .svg)")
    _add_reading(verb)
    verb = add_verb(verbs, "convert", "convert a trace between formats")
    verb.add_argument("file", help=traces.FORMATS)
    verb.add_argument("out", help="file to write")
    verb.add_argument("--format", choices=FORMATS, required=True, help=FORMAT_HELP)
    _add_reading(verb)
    verb.add_argument("--step", type=parse_real, metavar="S", help="seconds between rates, mahimahi to rates (default: 0.1)")
    verb = add_verb(verbs, "calibrate", "fit the populations of the generators 4g and 5g to measured traces")
    verb.add_argument("folder", help="folder of the measured traces, at any depth")
    verb.add_argument("--out", default=str(POPULATIONS), metavar="FILE", help="file to write (default: the package's)")
    verb = add_verb(verbs, "compare", "print distances of generated traces to measured ones outside of the calibration")
    _add_measured(verb, 100)
    verb.add_argument("--plot", metavar="PREFIX", help="plot the distributions into PREFIX-4g.png and PREFIX-5g.png")
    verb = add_verb(verbs, "rank", "rank congestion controls on generated and on measured traces")
    _add_measured(verb, 40)
    known = [name for name in networks.CONTROLS if name in sender_controls("linux")]
    verb.add_argument(
        "--controls", type=parse_names, default=known, metavar="A,B,...", help=f"three or more (default: {','.join(known)})"
    )
    verb = add_verb(verbs, "flows", "write the finite flows of a scenario as a flow list")
    verb.add_argument(
        "--scenario", default="rlbm/default", metavar="NAME", help="netbuf-gym list scenarios (default: rlbm/default)"
    )
    verb.add_argument("--out", required=True, metavar="FILE", help="file to write")
    add_seed(verb, 1)
    add_scenario_arguments(verb)


def _add_reading(verb: argparse.ArgumentParser) -> None:
    """Add the options that say how a trace file is read."""
    verb.add_argument(
        "--column", metavar="NAME|N", help="column of the rates, by name or number from 1 (default: the only one)"
    )
    verb.add_argument("--unit", metavar="UNIT", help=f"unit of the rates: {RATE_UNITS} (default: as the file says, or Mbit/s)")
    verb.add_argument("--time-unit", metavar="UNIT", help=f"unit of the times: {TIME_UNITS} (default: as the file says, or s)")
    verb.add_argument("--start", type=parse_real, metavar="S", help="seconds of the trace to leave out (default: 0)")
    verb.add_argument(
        "--duration",
        type=parse_real,
        metavar="S",
        help="seconds to read, the trace repeated where it is shorter (default: all)",
    )


def _read_trace(arguments: argparse.Namespace) -> Trace:
    return traces.read(
        arguments.file,
        column=arguments.column,
        unit=arguments.unit,
        time_unit=arguments.time_unit,
        start_s=0.0 if arguments.start is None else arguments.start,
        duration_s=arguments.duration,
    )


def _add_measured(verb: argparse.ArgumentParser, count: int) -> None:
    verb.add_argument("folder", help="folder of the measured traces, at any depth")
    verb.add_argument(
        "--part", choices=calibration.PARTS, default="evaluation", help="part of the measured traces (default: evaluation)"
    )
    verb.add_argument("--json", metavar="FILE", help="write the results as JSON")
    count_help = f"traces to generate, 2 to 10000 (default: {count})"
    verb.add_argument("--count", type=make_whole_parser(2, 10_000), default=count, metavar="N", help=count_help)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    with one_line_warnings():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    check_outputs(getattr(arguments, "out", None), getattr(arguments, "json", None))
    if arguments.verb == "generate":
        _generate(arguments)
    elif arguments.verb == "show":
        content = _read_content(arguments)
        if arguments.json:
            write_json(arguments.json, compute_figures(content))
        print(format_figures(content))
    elif arguments.verb == "plot":
        check_plot(arguments.out)
        plot_trace(_read_trace(arguments), arguments.out)
    elif arguments.verb == "convert":
        trace = _convert_trace(_read_trace(arguments), arguments.format, arguments.step)
        _write_trace(trace, arguments.out, arguments.format)
    elif arguments.verb == "calibrate":
        write_atomic(arguments.out, calibration.format_records(calibration.calibrate(arguments.folder)))
        print(f"written to {arguments.out}")
    elif arguments.verb == "flows":
        flows = generate_flows(arguments.scenario, collect_assignments(arguments.set), arguments.seed)
        flows.write_csv(arguments.out)
        print(format_figures(flows))
    else:
        data = _compare(arguments) if arguments.verb == "compare" else _rank(arguments)
        if arguments.json:
            write_json(arguments.json, data)
    return 0


def _generate(arguments: argparse.Namespace) -> None:
    parameters = collect_assignments(arguments.set)
    for name, option in (("duration_s", "--duration"), ("seed", "--seed")):
        if name in parameters:
            raise ConfigError(f"--set {name}: is no argument of the generator; valid: {option}")
    trace = traces.generate(arguments.kind, duration_s=arguments.duration, seed=arguments.seed, **parameters)
    if arguments.format:
        trace = _convert_trace(trace, arguments.format)
    _write_trace(trace, arguments.out, arguments.format)


def _write_trace(trace: Trace, path: str, form: str | None) -> None:
    traces.write(trace, path, form if form in traces.HEADERS else "csv")
    print(format_figures(traces.read(path)))


def _convert_trace(trace: Trace, form: str, step_s: float | None = None) -> Trace:
    """Convert a trace to a `time_s,mbps` schedule or to the deliveries of a Mahimahi file.

    Raises:
        ConfigError: A step that would have no effect, or a trace without a length.
        ScenarioError: A step out of range, or a trace of too many deliveries.
    """
    to_rates = form in traces.HEADERS
    if step_s is not None and not (to_rates and isinstance(trace, DeliveryTrace)):
        raise ConfigError(f"--step {step_s:g} has no effect: only deliveries that become rates have a step to choose")
    if to_rates:
        return trace if isinstance(trace, RateTrace) else trace.to_rates(0.1 if step_s is None else step_s)
    if not trace.duration_s:
        raise ConfigError(f"--duration is missing: {trace.name or 'the trace'} is one rate without an end; valid: --duration S")
    deliveries = trace.to_deliveries() if isinstance(trace, RateTrace) else trace
    made = deliveries.to_mahimahi()
    silent_s = (made.period_ms - deliveries.time_ms[-1]) / 1e3
    if silent_s >= OUTAGE_S:
        said = f"delivers nothing in its last {silent_s:.3g} s, and a Mahimahi file ends with a delivery"
        warnings.warn(f"{trace.name or 'the trace'}: {said}: the last one before moved to the end", UserWarning, stacklevel=2)
    return made


def _read_content(arguments: argparse.Namespace) -> Trace | FlowList | SizeDistribution:
    given = [arguments.column, arguments.unit, arguments.time_unit, arguments.start, arguments.duration]
    workload = read_workload(arguments.file) if all(one is None for one in given) else None
    return _read_trace(arguments) if workload is None else workload


def read_workload(path: str) -> FlowList | SizeDistribution | None:
    """Read a flow list or a size distribution, recognised by the header or by rows of two comma-separated numbers.

    Returns:
        The flow list or size distribution; None if the file is neither.

    Raises:
        ScenarioError: A file that begins like one and cannot be read to its end; the message names file and line.
    """
    try:
        header = [name.lower() for name in split_csv_fields(read_records(path)[0][1])]
    except ScenarioError:
        return None  # reading it as a trace reports the error
    if len(header) == 2 and all(map(_is_number, header)):
        size, share = (float(parse_number(field)) for field in header)
        is_trace = size == 0 or share > 1  # a time may begin at 0, a rate lie above 1
        return None if is_trace else SizeDistribution.read_csv(path)
    if "size_bytes" not in header:
        return None
    return SizeDistribution.read_csv(path) if "cumulative" in header else FlowList.read_csv(path)


def _is_number(text: str) -> bool:
    try:
        parse_number(text)
    except ValueError:
        return False
    return True


def generate_flows(scenario: str, arguments: dict[str, object], seed: int) -> FlowList:
    """Return the finite flows that a named scenario opens with a seed.

    Raises:
        ConfigError: The scenario has no finite flows.
        ScenarioError: An unknown name or argument, or a value out of range.
    """
    world = scenarios.get(scenario, **arguments)
    if isinstance(world, Distribution):
        world = world.sample(np.random.default_rng(seed))
    if world.traffic is None:
        raise ConfigError(f"scenario {scenario!r} has no finite flows; valid: one with traffic, e.g. rlbm/default")
    return simulate(world, seed, sample_interval_s=None).flow_list()


def compute_figures(content: Trace | FlowList | SizeDistribution) -> dict[str, object]:
    """Compute the figures that describe a trace, a flow list or a size distribution."""
    if isinstance(content, SizeDistribution):
        figures = {
            "name": content.name,
            "kind": "flow sizes",
            "points": len(content.size_bytes),
            "mean_bytes": content.mean_bytes,
        }
        return figures | {f"p{share}_bytes": float(content.quantile(share / 100)) for share in (1, 50, 90, 99)}
    if isinstance(content, FlowList):
        span_s = float(content.start_s[-1])
        figures = {
            "kind": "flow list",
            "flows": len(content),
            "first_start_s": float(content.start_s[0]),
            "last_start_s": span_s,
            "senders": len(np.unique(content.sender)),
            "mean_bytes": float(content.size_bytes.mean()),
            "offered_mbps": float(content.size_bytes.sum()) * 8e-6 / span_s if span_s else float("nan"),
        }
        priorities, counts = np.unique(content.priority, return_counts=True)
        return figures | {f"priority_{one}_flows": int(count) for one, count in zip(priorities, counts, strict=True)}
    rates = content if isinstance(content, RateTrace) else content.to_rates(0.1)
    return {
        "name": content.name,
        "kind": "rates" if isinstance(content, RateTrace) else "deliveries",
        "duration_s": content.duration_s,
        "mean_mbps": content.mean_mbps(),
        "peak_mbps": content.peak_mbps,
        "longest_gap_s": content.longest_gap_s,
        **compute_variability(content),
        "least_mbps": float(rates.rate_mbps.min()),
        **({"steps": len(content.time_s)} if isinstance(content, RateTrace) else {"opportunities": len(content.time_ms)}),
    }


def format_figures(content: Trace | FlowList | SizeDistribution) -> str:
    """Format the figures of a trace, a flow list or a size distribution as a table."""
    rows = []
    for name, value in compute_figures(content).items():
        unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
        label = name.removesuffix("_s").removesuffix("_mbps").replace("_bytes", " size").replace("_", " ")
        if isinstance(value, (int, float)):
            text = str(round(value)) if unit == "bytes" else format_number(value, 5)
        else:
            text = str(value)
        rows.append([label, f"{text} {unit}".rstrip()])
    return text_table(["", ""], rows).split("\n", 2)[2]


def _compare(arguments: argparse.Namespace) -> dict[str, object]:
    if arguments.plot:
        check_plot(f"{arguments.plot}.png")
    data: dict[str, object] = {}
    for network in calibration.SPLIT:
        found = networks.compare(arguments.folder, network, arguments.part, arguments.count)
        data[network] = found
        rows = [[name, f"{value:.3f}", f"{found['measured'][name]:.3f}"] for name, value in found["generated"].items()]
        print(f"{network}, {arguments.part}")
        print(text_table(["distance to held-out traces", "generated", "calibration traces"], rows))
        if arguments.plot:
            given = calibration.read_part(arguments.folder, network, arguments.part)
            measured = summarise(given, calibration.FINEST_S[network])
            generated = networks.summarise_generated(network, arguments.count)
            networks.plot_likeness(network, measured, generated, f"{arguments.plot}-{network}.png")
    return data


def _rank(arguments: argparse.Namespace) -> dict[str, object]:
    data: dict[str, object] = {}
    over = [*networks.BUFFERS, "mean"]
    for network in calibration.SPLIT:
        given = networks.cut_windows(calibration.read_part(arguments.folder, network, arguments.part))
        generated = [traces.generate(network, duration_s=networks.WINDOW_S, seed=seed) for seed in range(arguments.count)]
        utility = {
            "measured": networks.rank_controls(given, arguments.controls),
            "generated": networks.rank_controls(generated, arguments.controls),
        }
        cells = {kind: dict(zip(over, [*table, table.mean(0)], strict=True)) for kind, table in utility.items()}
        rows = [
            [one, *(f"{cells[kind][buffer][i]:.3f}" for buffer in over for kind in utility)]
            for i, one in enumerate(arguments.controls)
        ]
        head = [f"{buffer}, {kind}" for buffer in over for kind in utility]
        correlation = {b: networks.rank_correlation(cells["measured"][b], cells["generated"][b]) for b in over}
        print(f"{network}: {len(given)} windows of measured traces ({arguments.part}), {len(generated)} generated")
        print(text_table(["utility", *head], rows))
        print("rank correlation: " + ", ".join(f"{b} {value:.2f}" for b, value in correlation.items()))
        data[network] = {
            "controls": list(arguments.controls),
            **{kind: np.round(table, 4).tolist() for kind, table in utility.items()},
            "rank_correlation": correlation,
        }
    return data
