"""notebooks/: they run from clean, and what was committed shows nothing of the machine that they were run on."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from netbuf_gym.errors import ConfigError

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
MOST_LINES, MOST_BYTES = 15, 450_000
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


def test_all_are_known_by_their_names():
    assert PATHS and [path.stem for path in PATHS] == run.names()


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_runs_from_clean(path, tmp_path):
    made = run.execute(path, tmp_path)
    assert sum(pictures(made)) >= 1
    for cell in code(made):
        assert not [output for output in cell.outputs if output.output_type == "error" or output.get("name") == "stderr"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_was_committed_is_whole_and_says_nothing_of_the_machine(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    assert sum(pictures(notebook)) >= 1 and any(map(texts, code(notebook)))
    assert {output.output_type for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert {output.name for output in outputs if output.output_type == "stream"} <= {"stdout"}
    shown = [text for cell in code(notebook) for text in texts(cell)]
    shown += [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert not [text for text in shown if ABSOLUTE.search(text)]
    assert notebook.metadata == {"kernelspec": run.KERNEL, "language_info": {"name": "python"}}
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_is_short_and_its_links_lead_somewhere(path):
    notebook = nbformat.read(path, 4)
    assert 8 <= len(notebook.cells) <= 20
    assert [len(cell.source.splitlines()) for cell in code(notebook) if len(cell.source.splitlines()) > MOST_LINES] == []
    assert not [line for cell in code(notebook) for line in cell.source.splitlines() if re.search(r"\bimport _|\._[a-z]", line)]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert targets and all((FOLDER / target).exists() for target in targets)
    assert text.startswith("# ")


@pytest.mark.slow
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


def test_readers_find_them():
    page = (FOLDER / "README.md").read_text()
    assert re.findall(r"^\| \[\w+\]\((\w+)\.ipynb\)", page, re.M) and all(f"({path.name})" in page for path in PATHS)
    for name, target in (("README.md", "notebooks/README.md"), ("docs/index.md", "../notebooks/README.md")):
        assert f"]({target})" in (ROOT / name).read_text()
    assert "notebooks/run.py" in (ROOT / "Makefile").read_text()
