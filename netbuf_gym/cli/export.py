"""`netbuf-gym export`: writes a trained agent for use elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from netbuf_gym.errors import require_extra

HELP = "write an agent as a folder for a model hub, its network as ONNX too"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    parser.add_argument("model", metavar="MODEL", help="an agent's name, a model's file, or a run's folder")
    parser.add_argument("folder", metavar="FOLDER", help="a new folder: README.md with metadata, model.zip, config.yaml, ...")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--onnx", action="store_true", help="with policy.onnx, held against the model's decisions")
    how.add_argument("--rl-zoo3", action="store_true", help="as a folder of logs of rl_zoo3's, for its enjoy and its tables")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    with require_extra("a trained agent", "train"):
        from netbuf_gym.zoo import export
    folder = Path(arguments.folder)
    if arguments.rl_zoo3:
        written, command = export.export_rl_zoo3(arguments.model, folder)
        print(f"written to {written}\nplay it by: {command}")
        return 0
    for path in export.export_folder(arguments.model, folder, arguments.onnx):
        print(f"written to {path}")
    return 0
