"""Suites on engines, and what is kept of them: as in one go in one process, to the bit."""

import errno
import json
import pickle

import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.evaluation.suites import SUITES, get_suite
from netbuf_gym.leaderboard import controllers, play
from netbuf_gym.training.checkpoints import versions
from netbuf_gym.utils.executors import LOCAL
from tests.helpers.release_cases import for_release

WORDS = ["suite", "gate", "controller=[random,congestion_window/ppo,newreno]", "families=[ppcc]", "figures=false"]


def play_suite(folder, *words):
    return main([*WORDS, f"output={folder}", *words])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite") / "alone"
    assert play_suite(folder, "threads=1") == 0
    return folder


def same(one, other):
    """Results but for the time that they took."""
    first, second = (json.loads((folder / "result.json").read_text()) for folder in (one, other))
    for data in (first, second):
        for name in data["controllers"]:
            data["controllers"][name] |= {"seconds": 0, "cpu_seconds": 0}
    return first == second and (one / "worlds.csv").read_bytes() == (other / "worlds.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joblib", *for_release("ray", "submitit_local")])
def test_a_suite_is_the_same_to_the_bit_on_every_engine(name, alone, tmp_path, monkeypatch):
    pytest.importorskip({"submitit_local": "submitit"}.get(name, name))
    monkeypatch.chdir(tmp_path)
    assert play_suite(tmp_path / "out", f"executor={name}", "jobs=2") == 0
    assert same(alone, tmp_path / "out")


@pytest.mark.slow
def test_what_was_played_before_an_interruption_is_not_played_again(alone, tmp_path, monkeypatch, capsys):
    own, played = play.run, []

    def counted(suite, cells, controller, **more):
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(controller.name)
        return own(suite, cells, controller, **more)

    monkeypatch.setattr(play, "run", counted)
    assert play_suite(tmp_path / "out") == 130 and not (tmp_path / "out" / "result.json").exists()
    assert len(list((tmp_path / "out" / "parts").iterdir())) == 2
    played.clear()
    played.append("room for one more")
    assert play_suite(tmp_path / "out") == 0 and len(played) == 2 and same(alone, tmp_path / "out")
    assert play_suite(tmp_path / "out") == 0 and len(played) == 2, "nothing is played again"


def test_a_full_disk_is_no_controllers_fault(tmp_path, monkeypatch, capsys):
    def full(path, text):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(play, "write_atomic", full)
    words = ["suite", "gate", "controller=[newreno,cubic]", "families=[ppcc]", "figures=false", f"output={tmp_path / 'out'}"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said and "failed" not in said and not (tmp_path / "out" / "result.json").exists()


@pytest.mark.slow
def test_other_programs_worlds_and_damaged_files_are_played(tmp_path, monkeypatch):
    folder, words = tmp_path / "out", ["controller=newreno", "families=[ppcc]"]

    def parts():
        assert main(["suite", "gate", *words, "figures=false", f"output={folder}"]) == 0
        return sorted((folder / "parts").iterdir())

    (first,) = parts()
    for text in ("{", "{}", json.dumps({"worlds": {}, "seconds": 1, "cpu_seconds": 1})):
        first.write_text(text)
        assert parts() == [first] and len(json.loads(first.read_text())["worlds"]) > 1
    monkeypatch.setattr(versions, "compute_program_digest", lambda: "another")
    assert len(parts()) == 2
    words[1] = "families=[fixed]"
    assert len(parts()) > 2


def test_worlds_that_are_each_alone_are_cut_into_more_groups(tmp_path):
    own = get_suite("v1/receiver_window")
    cells = own.load().cells
    rule, control = (controllers.resolve_controller(word, own) for word in ("keep", "cubic"))
    runner = play.SuiteRunner(own, own.load(), tmp_path, LOCAL, 1, 1)
    assert len(runner._group_worlds(rule, cells)) == 1
    groups = runner._group_worlds(control, cells)
    assert len(groups) == -(-len(cells) // play.LONE_GROUP_SIZE)
    assert [cell for group in groups for cell in group] == list(cells)


def test_other_processes_look_a_suite_and_its_worlds_up_by_name():
    for own in SUITES.values():
        assert pickle.loads(pickle.dumps(own)) is own
    edition = get_suite("gate").load()
    last, first = edition.cells[-1], edition.cells[0]
    assert edition.get_named_cells([last.name, first.name]) == [last, first]


def test_output_is_written_in_before_anything_is_played(tmp_path, capsys, monkeypatch):
    def full(dir):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("netbuf_gym.utils.files.tempfile.TemporaryFile", full)
    assert main(["suite", "gate", "controller=cubic", f"output={tmp_path}"]) == 2
    assert f"output = '{tmp_path}' cannot be written in: No space left on device; valid: a folder" in capsys.readouterr().err
