"""Runs the notebooks of this folder from clean, and keeps what they show.

    python notebooks/run.py [--check] [NAME...]

Each notebook gets a new kernel, whose working folder is a temporary one, and is written back where it was with its outputs, or,
where a cell raises, left as it was. Without names it is all of them. What depends on when and where it was run is not kept: no
times of execution, no version of Python, no progress on standard error. With --check nothing is written.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

try:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal, CellExecutionError, CellTimeoutError, DeadKernelError
except ImportError as error:
    sys.exit(f"{error}; pip install 'netbuf-gym[notebooks]'")

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.suggestions import did_you_mean

FAILED = (CellExecutionError, CellTimeoutError, CellControlSignal, DeadKernelError, nbformat.reader.NotJSONError)
"""What a notebook can fail by; the others go on."""

HERE = Path(__file__).resolve().parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
MOST_SECONDS = 600
"""Of a cell, on a machine that is busy otherwise."""
UNHEARD = "ignore:IProgress not found"
"""What tqdm says where there are no widgets."""


def names() -> list[str]:
    """Of all notebooks."""
    return sorted(path.stem for path in HERE.glob("*.ipynb"))


def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs that it has when it is run in a folder.

    Raises:
        CellExecutionError: a cell raises.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=MOST_SECONDS,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR", "--InteractiveShell.colors=nocolor"],
    )
    with tempfile.TemporaryDirectory() as private:  # no profile, history or start-up file of the user's
        own = {"IPYTHONDIR": private, "PYDEVD_DISABLE_FILE_VALIDATION": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": UNHEARD}
        client.execute(env={**os.environ, **own})
    return tidied(notebook)


def tidied(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what says when and by what it was run."""
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in ("tags",) if key in cell.metadata})
        for output in cell.get("outputs", ()):
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})
    return notebook


def main(argv: list[str]) -> int:
    """Runs the command; returns 1 where a notebook failed. Raises ConfigError for a name of none."""
    parser = argparse.ArgumentParser(prog="python notebooks/run.py", description=__doc__.splitlines()[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(names()))
    parser.add_argument("--check", action="store_true", help="run them, and leave the files as they are")
    given = parser.parse_args(argv)
    failed, chosen = [], given.names
    for name in chosen:
        if name not in names():
            raise ConfigError(f"NAME = {name!r} is no notebook; {did_you_mean(name, names())}valid: {', '.join(names())}")
    for name in chosen or names():
        path, begun = HERE / f"{name}.ipynb", time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                text = nbformat.writes(execute(path, Path(folder))) + "\n"
                if not given.check:
                    write_atomic(path, text)
                said = f"{len(text.encode()) / 1000:.0f} kB"
            except FAILED as error:
                failed.append(name)
                said = f"failed\n{type(error).__name__}: {error}"
        print(f"{name}: {time.perf_counter() - begun:.0f} s, {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ConfigError as error:
        sys.exit(f"notebooks/run.py: error: {error}")
