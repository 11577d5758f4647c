"""`netbuf-gym export`: a trained agent for use elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from netbuf_gym.errors import needing

HELP = "write an agent as a folder for a model hub, its network as ONNX too"


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.add_argument("model", metavar="MODEL", help="an agent's name, a model's file, or a run's folder")
    parser.add_argument("folder", metavar="FOLDER", help="a new folder: README.md with metadata, model.zip, config.yaml, ...")
    parser.add_argument("--onnx", action="store_true", help="with policy.onnx, held against the model's decisions")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    with needing("a trained agent", "train"):
        from netbuf_gym.zoo import export
    for path in export.folder(arguments.model, Path(arguments.folder), arguments.onnx):
        print(f"written to {path}")
    return 0
