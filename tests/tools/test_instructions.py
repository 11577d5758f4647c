"""`benchmarks/instructions.py`: figures are held to their record, or to the recorded commit where the tools are others."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="not in a checkout")
TOOLS = {"compiler": "c++ 12", "valgrind": "3.19", "python": "3.11.7", "numpy": "2.4.6"}
FIGURES = {
    "one": {"instructions": 500.0, "last-level misses": 2.0},
    "memory": {"bytes": 2400.0},
    "step_ppcc": {"instructions": 3e4},
}


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """The program, that builds and counts nothing: `now` and `then` are what the working tree and a commit cost."""
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("instructions", FOLDER / "instructions.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "instructions", module)
    spec.loader.exec_module(module)
    monkeypatch.delitem(sys.modules, "measure")
    module.now, module.then, module.built = json.loads(json.dumps(FIGURES)), json.loads(json.dumps(FIGURES)), []

    def build(source, folder, like=None):
        return module.Built(source, folder / "program", folder / "module", folder / "counting")

    def build_commit(commit, like):
        module.built.append(commit)
        return build(Path(commit), tmp_path)

    def count_all(built, names, jobs):
        figures = module.now if built.source == module.ROOT else module.then
        return {name: figures[name] for name in names if name in figures}

    module.RECORD = tmp_path / "instructions.json"
    module.RECORD.write_text(json.dumps({"commit": "abc", **TOOLS, "figures": FIGURES}))
    for one in (build, build_commit, count_all):
        monkeypatch.setattr(module, one.__name__, one)
    monkeypatch.setattr(module, "find_tool", lambda name: name)
    monkeypatch.setattr(module, "find_commit", lambda commit: commit)
    monkeypatch.setattr(module, "describe_tools", lambda folder: module.tools)
    module.tools = dict(TOOLS)
    module.run_with = lambda *words: (monkeypatch.setattr(sys, "argv", ["instructions.py", *words]), module.main())[1]
    return module


@pytest.mark.parametrize(
    ("case", "what", "figure", "status", "said"),
    [
        ("one", "instructions", 500, 0, "500 instructions a data packet, 500 before (+0.0 %)\n"),
        ("one", "instructions", 509, 0, "(+1.8 %)\n"),
        ("one", "instructions", 511, 1, "(+2.2 %): SLOWER by more than 2 %"),
        ("one", "instructions", 489, 0, "(-2.2 %): better by more than 2 %, record it with --record"),
        ("one", "last-level misses", 2.19, 0, "(+9.5 %)\n"),
        ("one", "last-level misses", 2.25, 1, "SLOWER by more than 10 %"),
        ("memory", "bytes", 2500, 1, "memory: 2,500 bytes a flow, 2,400 before (+4.2 %): SLOWER"),
        ("step_ppcc", "instructions", 31_000, 1, "step_ppcc: 31,000 instructions a step of a world, 30,000 before"),
    ],
)
def test_figures_are_held_to_the_record(bench, capsys, case, what, figure, status, said):
    bench.now[case][what] = figure
    assert bench.run_with("--check") == status
    assert said in capsys.readouterr().out and bench.built == []


def test_a_miss_more_in_a_thousand_packets_is_nothing(bench):
    bench.RECORD.write_text(json.dumps({"commit": "abc", **TOOLS, "figures": {"one": {"last-level misses": 1e-4}}}))
    bench.now = {"one": {"last-level misses": 1e-3}}
    assert bench.run_with("--check", "one") == 0


def test_a_clone_without_the_recorded_commit_compares_what_it_can(bench, capsys, monkeypatch):
    monkeypatch.setattr(bench, "find_commit", lambda commit: "")
    bench.tools["python"] = "3.13.0"
    bench.now["step_ppcc"]["instructions"] *= 2
    assert bench.run_with("--check") == 0 and bench.built == []
    said = capsys.readouterr().out
    assert "not of step_ppcc, step_default: tools" in said and "one: 500" in said and "step_ppcc: " not in said
    bench.now["one"]["instructions"] = 600
    assert bench.run_with("--check") == 1


def test_with_another_compiler_the_recorded_commit_is_built_and_counted(bench, capsys):
    bench.tools["compiler"] = "clang 19"
    for figures in (bench.then, bench.now):  # which this compiler makes more of
        figures["one"]["instructions"] = 800.0
    assert bench.run_with("--check") == 0
    said = capsys.readouterr().out
    assert bench.built == ["abc"] and "compiler clang 19, not c++ 12" in said and "800 before" in said
    bench.now["one"]["instructions"] = 820.0
    assert bench.run_with("--check") == 1


def test_another_python_leaves_the_figures_of_the_core_comparable(bench, capsys):
    bench.tools["python"] = "3.13.1"
    bench.then["one"]["instructions"] = bench.then["step_ppcc"]["instructions"] = 1.0
    bench.now["step_ppcc"]["instructions"] = 1.0
    assert bench.run_with("--check") == 0
    said = capsys.readouterr().out
    assert bench.built == ["abc"] and "as counted here of step_ppcc, step_default, since" in said
    assert "500 instructions a data packet, 500 before" in said


def test_a_case_without_a_record_is_told(bench, capsys):
    bench.now["path"] = {"instructions": 1900.0}
    assert bench.run_with("--check") == 0
    assert "path: 1,900 instructions a data packet, not recorded: record it with --record" in capsys.readouterr().out


def test_figures_of_a_commit_stand_beside_todays(bench, capsys):
    bench.then["one"]["instructions"] = 1000.0
    del bench.then["step_ppcc"]  # which it did not have
    assert bench.run_with("--baseline", "abc", "one", "step_ppcc") == 0
    said = capsys.readouterr().out
    assert "400 packets | instructions a data packet | 1,000 | 500 | 0.50 |" in said
    assert "action 5 | instructions a step of a world | - | 30,000 | - |" in said


@pytest.mark.parametrize("option", ["--check", "--record", "--baseline=abc"])
def test_an_unknown_case_is_refused_in_one_message(bench, capsys, option):
    with pytest.raises(SystemExit, match="2"):
        bench.run_with("one", "tow", option)
    error = capsys.readouterr().err
    assert error.count("tow") == 1 and f"case = tow is unknown; valid: {', '.join(bench.CASES)}" in error


def test_a_record_that_is_missing_is_told(bench):
    bench.RECORD.unlink()
    with pytest.raises(SystemExit, match=r"instructions.json is missing; valid: after .* --record"):
        bench.run_with("--check")


def test_the_record_has_every_case_that_the_program_counts(bench):
    kept = json.loads((FOLDER.parent / "results" / "benchmarks" / "instructions.json").read_text())
    assert set(kept["figures"]) == set(bench.CASES)
    for name, figures in kept["figures"].items():
        expected = {"bytes"} if bench.CASES[name].unit == "flow" else {"instructions"}
        expected |= {"first-level misses", "last-level misses"} if bench.CASES[name].misses else set()
        assert set(figures) == expected and all(figure > 0 for figure in figures.values())
