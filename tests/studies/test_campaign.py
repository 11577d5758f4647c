"""The campaign: its grid, its files, resuming, interruption, and what it refuses."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError, ReferenceDataError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.utils.files import exclusive_lock
from studies.common.campaign import Campaign
from studies.rlbm.rlbm_experiment import RLBM
from studies.rlbm.rlbm_settings import CONTROLLED, NAMES, Settings
from studies.rlbm.rlbm_work import make_parts

TINY = ["sizes=[20,50]", "loads=[0.3,0.8]", "seeds=2", "duration_s=2", "jobs=2"]


def reproduce(*arguments: str) -> int:
    return main(["reproduce", "rlbm", *arguments])


def tiny(output, **changes) -> Campaign:
    values = {"sizes": (20,), "loads": (0.3, 0.8), "seeds": 2, "duration_s": 2.0, "intervals": ()} | changes
    return Campaign(RLBM, Settings(**values), output, jobs=2)


def quiet(done: int, total: int) -> None:
    pass


def test_a_row_a_run(tmp_path):
    table = tiny(tmp_path / "out", intervals=(0.05, 0.1)).run(quiet)
    runs = RLBM.read(table)
    assert runs.comment.startswith("netbuf-gym") and "netbuf-gym reproduce rlbm sizes=[20]" in runs.comment
    # 4 schemes without decisions, random at 0.1 s and, in the sweep (CUBIC only), at 0.05 s
    assert len(runs) == 2 * 2 * (4 * 2 + 2 + 1)
    keys = list(zip(*(runs.columns[name].tolist() for name in ("scheme", "cc", "size", "load", "seed")), strict=True))
    sweep = runs.columns["interval_s"] == 0.05
    assert len(set(keys)) == len(keys) - sweep.sum() and sweep.sum() == 4
    assert set(runs.columns["seed"]) == {1_000_000, 1_000_001}
    assert not (tmp_path / "out" / "parts").exists()
    description = json.loads((tmp_path / "out" / "campaign.json").read_text())
    assert description["command"] in runs.comment and description["seconds"] > 0 and description["machine"]


def test_every_scheme_gets_the_same_traffic(tmp_path):
    schemes = tuple(name for name in NAMES if name != "rlbm")
    runs = RLBM.read(tiny(tmp_path, schemes=schemes, ccs=("cubic",), traffic="thesis-text").run(quiet))
    assert runs.values("scheme") == list(schemes)
    for load in (0.3, 0.8):
        for seed in (1_000_000, 1_000_001):
            cell = runs.where(load=load, seed=seed)
            for column in ("flows_started", "flows_started_p0", "flows_started_p1"):
                assert len(set(cell.columns[column])) == 1, column
            assert cell.columns["flows_started"][0] > 100
            assert len(set(cell.columns["throughput_mbps"])) > 5


def test_measures_are_consistent(tmp_path):
    runs = RLBM.read(tiny(tmp_path, schemes=("naive", "random", "codel"), traffic="thesis-text").run(quiet))
    column = runs.columns
    assert ((0 < column["throughput_mbps"]) & (column["throughput_mbps"] < 10)).all()
    np.testing.assert_array_equal(column["flows_completed"], column["flows_completed_p0"] + column["flows_completed_p1"])
    assert (column["flows_completed"] <= column["flows_started"]).all()
    assert (column["slowdown_p99_p0"] <= column["slowdown_max_p0"]).all() and (column["slowdown_mean_p0"] >= 1).all()
    assert ((0 < column["occupancy_p99"]) & (column["occupancy_p99"] <= 1)).all()
    switches = runs.where(scheme=("naive", "random")).columns
    np.testing.assert_allclose(switches["drops"], switches["drops_0"] + switches["drops_1"])
    assert np.isnan(runs.where(scheme="codel").columns["drops_0"]).all()
    assert np.isnan(runs.where(scheme=("naive", "codel")).columns["interval_s"]).all()
    assert (column["ping_mean_ms"] > 10).sum() > len(runs) / 2


def test_the_results_depend_on_neither_jobs_nor_the_order_of_work(tmp_path):
    settings = Settings(sizes=(20,), loads=(0.3,), seeds=3, duration_s=1.0, intervals=())
    one = Campaign(RLBM, settings, tmp_path / "one", jobs=1).run(quiet).read_text()
    assert Campaign(RLBM, settings, tmp_path / "three", jobs=3).run(quiet).read_text() == one


def test_resumes_what_was_interrupted(tmp_path, monkeypatch):
    whole = tiny(tmp_path / "whole").run(quiet).read_text()
    interrupted = tiny(tmp_path / "out")

    def stop(done: int, total: int) -> None:
        if done >= total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted.run(stop)
    written = set(os.listdir(tmp_path / "out" / "parts"))
    assert 0 < len(written) < len(interrupted.parts) and not (tmp_path / "out" / "runs.csv").exists()
    before = json.loads((tmp_path / "out" / "campaign.json").read_text())["seconds"]
    ran = []
    original = Campaign._run_chunk
    monkeypatch.setattr(
        Campaign, "_run_chunk", lambda self, chunk: ran.append(f"{chunk.part.name}.csv") or original(self, chunk)
    )
    assert tiny(tmp_path / "out").run(quiet).read_text() == whole
    assert not written & set(ran)
    assert json.loads((tmp_path / "out" / "campaign.json").read_text())["seconds"] >= before


@pytest.mark.slow
@pytest.mark.parametrize("blow, status", [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_interruption_by_a_signal(tmp_path, blow, status):
    """Whatever ends it, what is done is kept, and the same command goes on to the same table."""
    # where the tests run in a shell's background, their children would ignore the signal
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from netbuf_gym.cli.program import main; sys.exit(main(sys.argv[1:]))"
    words = ["schemes=[naive,dt]", "ccs=[cubic]", "sizes=[20,50,100]", "loads=[0.8]", "seeds=2", "intervals=[]", "jobs=1"]
    arguments = ["reproduce", "rlbm", *words, "duration_s=20", "figures=false", "traffic=thesis-text"]
    output = tmp_path / "out"
    command = [sys.executable, "-c", program, *arguments, f"output={output}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()  # it has begun
            while not list(output.glob("parts/*.csv")) and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(blow)
            _, errors = process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == status
    assert errors.endswith("netbuf-gym: interrupted; the same command goes on\n") or blow == signal.SIGKILL
    written = {path.name: path.stat().st_mtime_ns for path in output.glob("parts/*.csv")}
    assert 0 < len(written) < 6 and not (output / "runs.csv").exists()
    assert main([*arguments, f"output={output}"]) == 0 == main([*arguments, f"output={tmp_path / 'whole'}"])
    assert (output / "runs.csv").read_bytes() == (tmp_path / "whole" / "runs.csv").read_bytes()


def test_a_fault_ends_everything(tmp_path, monkeypatch):
    from netbuf_gym.errors import SimulatorFault

    def fault(*arguments):
        raise SimulatorFault("broken")

    monkeypatch.setattr(Simulator, "run", fault)
    with pytest.raises(SimulatorFault):
        tiny(tmp_path).run(quiet)


def test_one_process_at_a_time(tmp_path, capsys):
    first = tiny(tmp_path)
    with exclusive_lock(first.output, "output"):
        assert reproduce("sizes=[20]", "loads=[0.3,0.8]", "seeds=2", "duration_s=2", "intervals=[]", f"output={tmp_path}") == 2
    assert "another process" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_writes_and_draws(tmp_path, capsys):
    output = tmp_path / "out"
    arguments = [*TINY, "schemes=[naive,random,random_no_beta,red]", "ccs=[newreno]", "intervals=[0.1,0.2]", f"output={output}"]
    assert reproduce(*arguments) == 0
    figures = sorted(path.name for path in (output / "figures").iterdir())
    assert figures == sorted(
        [
            "throughput_slowdown_newreno.png",
            "fct_flows_newreno.png",
            "occupancy_newreno.png",
            "ping_newreno.png",
            "queue_length_20.png",
            "queue_length_50.png",
            "interval_sweep.png",
        ]
    )
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (output / "figures").iterdir())
    out = capsys.readouterr().out
    assert "runs.csv" in out and "7 figures" in out
    assert reproduce(*arguments) == 0  # done already: draws only
    assert reproduce(*arguments[:-1], "first_seed=5", arguments[-1]) == 2
    error = capsys.readouterr().err
    assert "holds another campaign (netbuf-gym reproduce rlbm schemes=" in error and error.count("\n") == 1


@pytest.mark.slow
def test_all_ten_sizes_in_one_figure(tmp_path):
    sizes = ",".join(str(10 * k) for k in range(1, 11))
    arguments = ["schemes=[naive]", f"sizes=[{sizes}]", "ccs=[cubic]", "loads=[0.5]", "seeds=1", "duration_s=1"]
    assert reproduce(*arguments, f"output={tmp_path / 'out'}") == 0
    assert (tmp_path / "out" / "figures" / "all_sizes_cubic.png").is_file()


@pytest.mark.slow
def test_worlds_in_which_nothing_completes_are_drawn_too(tmp_path):
    arguments = ["sizes=[1]", "ccs=[bbr]", "loads=[0.1]", "seeds=1", "duration_s=0.1", "traffic=default", "schemes=all"]
    assert reproduce(*arguments, "figures=true", f"output={tmp_path / 'out'}") == 0
    runs = RLBM.read(tmp_path / "out" / "runs.csv")
    assert np.isnan(runs.columns["fct_mean_s"]).all() and (runs.columns["flows_completed"] == 0).all()


def test_bad_outputs(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert reproduce(*TINY, f"output={tmp_path / 'file' / 'out'}") == 2
    assert "Not a directory" in capsys.readouterr().err
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    for name in ("file", "lost"):
        assert reproduce(*TINY, f"output={tmp_path / name}") == 2
        assert f"output = '{tmp_path / name}' is no folder; valid: a folder" in capsys.readouterr().err
    assert reproduce(*TINY, f"output={tmp_path}") == 2
    assert "holds files, but no campaign" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_unknown_experiments_and_keys_given_twice(capsys):
    assert main(["reproduce", "kettle"]) == 2
    assert "experiment = 'kettle' is unknown; valid: rlbm" in capsys.readouterr().err
    assert reproduce("seeds=1", "seeds=2") == 2
    assert "seeds is given twice" in capsys.readouterr().err


def test_an_agent_and_its_scheme_come_together(tmp_path, capsys):
    (tmp_path / "model.zip").write_bytes(b"no model")
    assert reproduce("schemes=[naive]", f"agent={tmp_path / 'model.zip'}") == 2
    assert "schemes has no 'rlbm'" in capsys.readouterr().err
    assert reproduce(f"agent={tmp_path / 'model.zip'}", f"output={tmp_path / 'out'}") == 2
    assert "truncated or damaged, no whole zip file" in capsys.readouterr().err


def test_the_default_is_the_thesis_grid():
    settings = RLBM.parse([]).settings
    assert settings.command() == "netbuf-gym reproduce rlbm"
    without_learning = [part for part in make_parts(settings) if part.runs[0][0] not in CONTROLLED]
    assert len(without_learning) * len(settings.loads) * settings.seeds == 6400
    assert RLBM.parse(["seeds=10", "loads=[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8]"]).settings == settings
    assert RLBM.parse(["schemes=[dt, abm]"]).settings.schemes == ("dt", "abm")
    assert RLBM.parse(["seeds=3"]).output != RLBM.parse(["seeds=4"]).output


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small campaign that is done, its text, and a function that copies it into a folder."""
    output = tmp_path_factory.mktemp("finished") / "out"
    values = {"ccs": ("cubic",), "schemes": ("naive", "random")}
    text = tiny(output, **values).run(quiet).read_text()

    def copy(folder, changed):
        shutil.copytree(output, folder)
        (folder / "runs.csv").write_text(changed, newline="")
        return tiny(folder, **values)

    return text, copy


def cuts(text: str) -> dict[str, str]:
    """What may be left of a table whose end was lost."""
    last = text.rstrip("\n").rpartition("\n")[2]
    value = re.search(r"[0-9]\.[0-9]{3,}", last)
    whole = len(text) - len(last) - 1
    return {
        "nothing": "",
        "part of the first line": text[:20],
        "the first line": text.partition("\n")[0],
        "part of the header": text[: text.index("fct_mean")],
        "the header": "\n".join(text.split("\n")[:2]) + "\n",
        "half the rows": "\n".join(text.split("\n")[:6]) + "\n",
        "half the file": text[: len(text) // 2],
        "all rows but the last": text[:whole],
        "the last without its end": text[:-30],
        "the last until within a number": text[: whole + value.end() - 2],
        "the last within a number, ended": text[: whole + value.end() - 2] + "\n",
        "the last with all columns, a number cut": text[:whole] + last.replace(value[0], value[0][:-2], 1) + "\n",
        "the last without its check": text.rpartition(",")[0] + "\n",
    }


@pytest.mark.parametrize("cut", cuts("fct_mean\nx,0.1234\n"))
def test_a_table_that_was_cut_is_completed(tmp_path, finished, cut, monkeypatch):
    text, copy = finished
    again = copy(tmp_path / "out", cuts(text)[cut])
    with pytest.raises(ReferenceDataError, match=r"runs\.csv:\d+: is cut: (\d of 8|none) of its rows are whole"):
        RLBM.read(tmp_path / "out" / "runs.csv")
    ran = []
    original = Campaign._run_chunk
    monkeypatch.setattr(Campaign, "_run_chunk", lambda self, chunk: ran.append(chunk.runs[0][0]) or original(self, chunk))
    assert again.run(quiet).read_text() == text
    assert set(ran) == ({"random"} if "last" in cut or "half the rows" in cut else {"naive", "random"})
    assert again.lost == (4 if len(set(ran)) == 1 else 8)
    assert not (tmp_path / "out" / "parts").exists()


def test_a_table_without_its_last_end_of_line_is_whole(tmp_path, finished, monkeypatch):
    text, copy = finished
    monkeypatch.setattr(Campaign, "_run_chunk", None)
    again = copy(tmp_path / "out", text.rstrip("\n"))
    assert len(RLBM.read(again.run(quiet))) == 8 and again.lost == 0


def damages(text: str) -> dict[str, tuple[str, str]]:
    """What a table may have become otherwise, and what is said of it."""
    lines = text.split("\n")
    swapped, fields = [*lines[:2], lines[3], lines[2], *lines[4:]], lines[4].split(",")
    return {
        "a row twice": ("\n".join([*lines[:4], lines[3], *lines[4:]]), "5: repeats line 4"),
        "the last row twice": (text + lines[-2] + "\n", "11: repeats line 10"),
        "a row less": ("\n".join([*lines[:4], *lines[5:]]), "5: is the run naive,cubic,20,0.8,,1000001; valid here: naive"),
        "two rows changed places": ("\n".join(swapped), "3: is the run naive,cubic,20,0.3,,1000001; valid here: naive"),
        "a digit changed": (_with(lines, 4, re.sub(r"(\d\.\d)\d", r"\g<1>x", lines[4], count=1)), "5: is damaged"),
        "a number shortened": (_with(lines, 4, re.sub(r"(\d\.\d+)\d,", r"\1,", lines[4], count=1)), "5: is damaged"),
        "a value less": (_with(lines, 4, ",".join(fields[:-2])), "5: holds"),
        "a row cut within": (_with(lines, 4, lines[4][:25]), "5: holds"),
        "an empty check": (_with(lines, 4, ",".join([*fields[:-1], ""])), "5: is damaged"),
        "another column": (text.replace("throughput_mbps", "speed", 1), "2: lacks the column throughput_mbps"),
        "a column more": (_with(lines, 1, lines[1] + ",more"), "2: holds other columns: more"),
        "columns in another order": (_with(lines, 1, lines[1].replace("scheme,cc", "cc,scheme")), "2: holds other columns"),
        "another count": (_with(lines, 0, lines[0].replace("; 8 rows", "; 9 rows")), "3: is damaged"),
        "no first line": ("\n".join(lines[1:]), "1: does not begin with a campaign's command"),
        "something else": ("a,b\n1,2\n", "1: does not begin with a campaign's command"),
        "half a quote": (_with(lines, 4, '"' + lines[4]), "5: is not CSV"),
    }


def _with(lines: list[str], at: int, line: str) -> str:
    return "\n".join([*lines[:at], line, *lines[at + 1 :]])


@pytest.mark.parametrize("damage", damages("\n".join(["a,b,c,0.123,d"] * 12)))
def test_a_table_that_is_damaged_otherwise_is_refused(tmp_path, finished, damage, monkeypatch):
    text, copy = finished
    changed, message = damages(text)[damage]
    assert changed != text
    monkeypatch.setattr(Campaign, "_run_chunk", None)
    again = copy(tmp_path / "out", changed)
    with pytest.raises(ReferenceDataError, match=rf"runs\.csv:{re.escape(message)}"):
        again.run(quiet)
    if "of the run" not in message and "places" not in damage:
        with pytest.raises(ReferenceDataError, match=r"runs\.csv:\d+: "):
            RLBM.read(tmp_path / "out" / "runs.csv")
    assert (tmp_path / "out" / "runs.csv").read_text() == changed


def test_the_table_of_another_campaign_is_refused(tmp_path, finished, capsys):
    text, copy = finished
    other = tiny(tmp_path / "other", ccs=("cubic",), schemes=("naive", "random"), duration_s=1.5)
    (tmp_path / "other" / "runs.csv").write_text(text)
    with pytest.raises(ReferenceDataError, match=r"runs\.csv:1: is the table of another campaign \(netbuf-gym .*; valid: "):
        other.run(quiet)
    theirs = tiny(tmp_path / "third", ccs=("cubic",), schemes=("naive", "random"), duration_s=1.5).run(quiet).read_text()
    lines = text.split("\n")
    again = copy(tmp_path / "out", _with(lines, 4, theirs.split("\n")[4]))
    with pytest.raises(ReferenceDataError, match=r"runs\.csv:5: is damaged, or of another campaign"):
        again.run(quiet)


def test_the_command_completes_refuses_and_says_so(tmp_path, capsys):
    arguments = ["sizes=[20]", "loads=[0.3]", "seeds=2", "duration_s=1", "schemes=[naive]", "ccs=[cubic]", "intervals=[]"]
    arguments += ["figures=false", f"output={tmp_path / 'out'}"]
    assert reproduce(*arguments) == 0
    path = tmp_path / "out" / "runs.csv"
    text = path.read_text()
    path.write_text(text[:-40])
    capsys.readouterr()
    assert reproduce(*arguments) == 0
    assert f"{path}: its end was cut; 2 of its runs were made again" in capsys.readouterr().out
    assert path.read_text() == text
    path.write_text(text + text.split("\n")[2] + "\n")
    assert reproduce(*arguments) == 2
    error = capsys.readouterr().err
    assert f"{path}:5: repeats line 3" in error and error.count("\n") == 1
    (tmp_path / "out" / "campaign.json").write_text("{")
    assert reproduce(*arguments) == 2
    assert "campaign.json: is not a campaign's description" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "repeated", "changed", "foreign"])
def test_a_part_that_was_damaged_is_run_again(tmp_path, damage):
    whole = tiny(tmp_path / "whole").run(quiet).read_text()
    interrupted = tiny(tmp_path / "out")

    def stop(done: int, total: int) -> None:
        if done >= total - 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted.run(stop)
    parts = sorted((tmp_path / "out" / "parts").iterdir())
    text = parts[0].read_text()
    lines = text.split("\n")
    changed = {
        "cut": text[:-12] + "\n",
        "repeated": "\n".join([*lines[:-2], lines[2], ""]),
        "changed": _with(lines, 3, lines[3].replace("1", "2", 1)),
        "foreign": parts[1].read_text(),
    }
    parts[0].write_text(changed[damage])
    assert tiny(tmp_path / "out").run(quiet).read_text() == whole


def test_what_a_kill_leaves_of_the_first_file_is_no_other_campaign(tmp_path):
    """Killed while it writes its description, a campaign leaves a temporary file only, and the command goes on."""
    (tmp_path / ".campaign.json.x7k2").write_text('{"sche')
    assert tiny(tmp_path).run(quiet).is_file()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".mine").write_text("")
    with pytest.raises(ConfigError, match="holds files, but no campaign"):
        tiny(tmp_path / "other")
