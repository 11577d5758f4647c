"""`netbuf-gym export`: a trained agent for use in other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from netbuf_gym.errors import require_extra


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("model", metavar="MODEL", help="name of an agent in the zoo, model file, or run folder")
    parser.add_argument("folder", metavar="FOLDER", help="new folder for model.zip, config.yaml and a README.md with metadata")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--onnx", action="store_true", help="add policy.onnx, checked against the decisions of the model")
    form.add_argument("--rl-zoo3", action="store_true", help="write a log folder of RL Zoo (rl_zoo3), for its commands")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    with require_extra("a trained agent", "train"):
        from netbuf_gym.zoo import export
    folder = Path(arguments.folder)
    if arguments.rl_zoo3:
        written, command = export.export_rl_zoo3(arguments.model, folder)
        print(f"written to {written}\nplay it with: {command}")
        return 0
    for path in export.export_folder(arguments.model, folder, arguments.onnx):
        print(f"written to {path}")
    return 0
