"""`netbuf-gym trace calibrate | compare | rank`: populations of networks, and generated traces against measured ones."""

from __future__ import annotations

import argparse

import numpy as np

from netbuf_gym.cli.common import check_outputs, check_plot, make_whole_parser, parse_names
from netbuf_gym.scenarios.catalogue import sender_controls
from netbuf_gym.traces import calibration, generate
from netbuf_gym.traces.likeness import summarise
from netbuf_gym.traces.networks import POPULATIONS
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.tables import text_table
from netbuf_gym.validation import networks

VERBS = ("calibrate", "compare", "rank")


def add(verbs: argparse._SubParsersAction) -> None:
    """Add the parsers of the verbs calibrate, compare and rank."""
    verb = verbs.add_parser("calibrate", help="fit the populations of 4g and 5g to measured traces")
    verb.add_argument("folder", help="where the measured traces are, by their names, at any depth")
    verb.add_argument("--out", default=str(POPULATIONS), metavar="FILE", help="the file to write (default: the package's own)")
    verb = verbs.add_parser("compare", help="distances of generated traces to measured ones that did not calibrate")
    _add_shared_arguments(verb)
    verb.add_argument(
        "--count", type=make_whole_parser(2, 10_000), default=100, metavar="N", help="traces to generate (default: 100)"
    )
    verb.add_argument("--plot", metavar="PREFIX", help="draw them, into PREFIX-4g.png and PREFIX-5g.png")
    verb = verbs.add_parser("rank", help="how congestion controls rank on generated and on measured traces")
    _add_shared_arguments(verb)
    known = [name for name in networks.CONTROLS if name in sender_controls("linux")]
    verb.add_argument(
        "--count", type=make_whole_parser(2, 10_000), default=40, metavar="N", help="traces to generate (default: 40)"
    )
    verb.add_argument(
        "--controls", type=parse_names, default=known, metavar="A,B,...", help=f"at least three (default: {','.join(known)})"
    )


def _add_shared_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("folder", help="where the measured traces are, by their names, at any depth")
    verb.add_argument("--part", choices=calibration.PARTS, default="evaluation", help="(default: evaluation)")
    verb.add_argument("--json", metavar="FILE", help="write the figures as JSON too")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    if arguments.verb == "calibrate":
        check_outputs(arguments.out)
        write_atomic(arguments.out, calibration.format_records(calibration.calibrate(arguments.folder)))
        print(f"written to {arguments.out}")
        return 0
    check_outputs(arguments.json)
    return _compare(arguments) if arguments.verb == "compare" else _rank(arguments)


def _compare(arguments: argparse.Namespace) -> int:
    if arguments.plot:
        check_plot(f"{arguments.plot}.png")
    data = {}
    for network in calibration.SPLIT:
        data[network] = networks.compare(arguments.folder, network, arguments.part, arguments.count)
        found = data[network]
        rows = [[name, f"{value:.3f}", f"{found['measured'][name]:.3f}"] for name, value in found["generated"].items()]
        print(f"{network}, {arguments.part}")
        print(text_table(["distance to held-out traces", "generated", "calibration's"], rows))
        if arguments.plot:
            given = calibration.read_part(arguments.folder, network, arguments.part)
            measured = summarise(given, calibration.FINEST_S[network])
            made = networks.summarise_generated(network, arguments.count)
            networks.plot_likeness(network, measured, made, f"{arguments.plot}-{network}.png")
    if arguments.json:
        write_json(arguments.json, data)
    return 0


def _rank(arguments: argparse.Namespace) -> int:
    data = {}
    over = [*networks.BUFFERS, "mean"]
    for network in calibration.SPLIT:
        given = networks.cut_windows(calibration.read_part(arguments.folder, network, arguments.part))
        made = [generate(network, duration_s=networks.WINDOW_S, seed=seed) for seed in range(arguments.count)]
        table = {
            what: networks.rank_controls(some, arguments.controls) for what, some in (("measured", given), ("generated", made))
        }
        cells = {what: dict(zip(over, [*t, t.mean(0)], strict=True)) for what, t in table.items()}
        rows = [
            [one, *(f"{cells[what][buffer][i]:.3f}" for buffer in over for what in table)]
            for i, one in enumerate(arguments.controls)
        ]
        head = [f"{buffer}, {what}" for buffer in over for what in table]
        correlation = {b: networks.rank_correlation(cells["measured"][b], cells["generated"][b]) for b in over}
        print(f"{network}: {len(given)} windows of measured traces ({arguments.part}), {len(made)} generated")
        print(text_table(["utility", *head], rows))
        print("rank correlation: " + ", ".join(f"{b} {value:.2f}" for b, value in correlation.items()))
        data[network] = {
            "controls": list(arguments.controls),
            **{what: np.round(t, 4).tolist() for what, t in table.items()},
            "rank_correlation": correlation,
        }
    if arguments.json:
        write_json(arguments.json, data)
    return 0
