"""notebooks/: they run from clean, and what is committed says nothing of the machine that they were run on."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from netbuf_gym.errors import ConfigError
from tests.helpers.release_cases import for_release

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
SMALLEST = "bufferbloat"
ABSOLUTE = re.compile(r"(?<![\w.:/])/(home|root|tmp|work|usr|opt|var|mnt|srv|Users|builds?)/")


def loaded():
    """notebooks/run.py, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("notebooks_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = loaded()


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell):
    """What a cell has printed, and the text of what it has shown."""
    found = [output.text if output.output_type == "stream" else output.data.get("text/plain", "") for output in cell.outputs]
    return [re.sub(r"<Figure size .*>", "", text) for text in found]


def pictures(notebook):
    return [sum("image/png" in output.get("data", {}) for output in cell.outputs) for cell in code(notebook)]


def of(*sources):
    """A notebook of these cells."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


@pytest.mark.slow
@pytest.mark.parametrize("name", [SMALLEST, *for_release(*sorted(set(run.names()) - {SMALLEST}))])
def test_it_runs_from_clean_and_shows_something(name, tmp_path):
    made = run.execute(FOLDER / f"{name}.ipynb", tmp_path)
    assert sum(pictures(made)) >= 1 and any(map(texts, code(made)))
    for cell in code(made):
        assert not [output for output in cell.outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert made.metadata == {"kernelspec": run.KERNEL, "language_info": {"name": "python"}}
    assert all(set(cell.metadata) <= {"tags"} for cell in made.cells)


@pytest.mark.parametrize("name", run.names())
def test_what_is_committed_says_nothing_of_the_machine(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    nbformat.validate(notebook)
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    shown = [text for cell in code(notebook) for text in texts(cell)]
    shown += [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert not [text for text in shown if ABSOLUTE.search(text)]


@pytest.mark.release
def test_the_kernel_is_left_out_by_name_where_there_can_be_no_live_world(tmp_path):
    notebook = nbformat.read(FOLDER / "kernel.ipynb", 4)
    first = "from netbuf_gym.plants.linux import machine\nmachine.look = lambda: machine.Machine('there is no /dev/net/tun')"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
    nbformat.write(notebook, tmp_path / "kernel.ipynb")
    made = run.execute(tmp_path / "kernel.ipynb", tmp_path)
    said = "".join(text for cell in code(made) for text in texts(cell))
    assert "no live worlds here: there is no /dev/net/tun" in said and "skipped: there is no /dev/net/tun" in said
    assert "linux" not in said.replace("/dev/net/tun", "") and sum(pictures(made)) == 1


@pytest.mark.slow
def test_what_raises_is_said_and_left_as_it_was(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "HERE", tmp_path)
    nbformat.write(of("print(6 * 7)"), tmp_path / "good.ipynb")
    nbformat.write(of("1 / 0"), tmp_path / "wrong.ipynb")
    before = (tmp_path / "wrong.ipynb").read_bytes()
    assert run.main(["--check", "good"]) == 0 and not nbformat.read(tmp_path / "good.ipynb", 4).cells[0].outputs
    assert run.main([]) == 1
    assert "good: " in (said := capsys.readouterr().out) and "wrong: " in said and "ZeroDivisionError" in said
    assert texts(nbformat.read(tmp_path / "good.ipynb", 4).cells[0]) == ["42\n"]
    assert (tmp_path / "wrong.ipynb").read_bytes() == before
    with pytest.raises(CellExecutionError):
        run.execute(tmp_path / "wrong.ipynb", tmp_path)
    (tmp_path / "wrong.ipynb").write_text("no notebook")
    assert run.main(["wrong"]) == 1 and "NotJSONError" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"NAME = 'god' is no notebook; did you mean 'good'\? valid: good, wrong"):
        run.main(["god"])
