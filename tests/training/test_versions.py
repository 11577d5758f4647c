"""What agents were made with: as their folders say it, or their files, or not recorded; by one rule."""

import json
import shutil

import pytest

from netbuf_gym import zoo
from netbuf_gym.errors import ConfigError
from netbuf_gym.training.checkpoints import checkpoint, packing, versions
from netbuf_gym.zoo import export, library

IN_FILES = ("numpy", "torch", "stable-baselines3", "gymnasium")


def said_of(path):
    saved = checkpoint.read_model(path)
    return versions.resolve_versions(saved.path, saved.versions, saved.config.seed)


@pytest.mark.parametrize("name", library.names())
def test_every_agent_says_what_it_was_made_with(name):
    """All of it, or that it was not recorded; and nothing that neither its folder nor its file has."""
    folder = library.FOLDER / name
    said = said_of(folder / library.MODEL)
    assert said.keys() == versions.collect_versions().keys() | {"seed"} and said["packages"].keys() == set(versions.LIBRARIES)
    if versions.KEY in library.read_metrics(folder):
        assert said == library.read_metrics(folder)[versions.KEY] and versions.NOT_RECORDED not in str(said)
    else:
        unknown = {package for package, of_it in said["packages"].items() if of_it == versions.NOT_RECORDED}
        assert unknown == set(versions.LIBRARIES) - set(IN_FILES) and said["git_revision"] == versions.NOT_RECORDED
        own = checkpoint.read_model(folder / library.MODEL)
        assert (said["packages"]["torch"], said["python"]) == (own.versions["torch"], own.versions["python"])
        assert said["seed"] == library.read_metrics(folder)["kept_seed"]
    for package in IN_FILES:
        assert said["packages"][package][0].isdigit()
    assert said["platform"].startswith("Linux-") and said["netbuf_gym"][0].isdigit()


def test_a_hubs_card_and_what_goes_on_to_others_say_it_too(tmp_path):
    """Of an agent whose folder says nothing: as its file was, and not of the machine that hands it on."""
    shutil.copy(library.FOLDER / "host_buffers/auter" / library.MODEL, tmp_path)
    own = said_of(tmp_path / library.MODEL)
    export.export_folder(str(tmp_path / library.MODEL), tmp_path / "hub")
    assert json.loads((tmp_path / "hub" / versions.NAME).read_text()) == own
    words = versions.format_versions(own)
    assert "git revision not recorded" in words and f"torch {own['packages']['torch']}, " in words
    assert words in (tmp_path / "hub" / "README.md").read_text()
    assert zoo.load(tmp_path / "hub" / library.MODEL).versions == own
    (tmp_path / "hub" / versions.NAME).unlink()
    assert said_of(tmp_path / "hub" / library.MODEL) == own


def test_a_packed_model_was_made_where_it_was_trained(trained, tmp_path, monkeypatch):
    own = checkpoint.read_model(trained)
    monkeypatch.setattr(versions.platform, "python_version", lambda: "9.9")
    packing.pack_model(own, tmp_path / library.MODEL)
    assert checkpoint.read_model(tmp_path / library.MODEL).versions == own.versions


def test_what_was_not_installed_is_left_out_and_what_is_damaged_refused(tmp_path):
    said = {"netbuf_gym": "1", "packages": {"numpy": "2", "wandb": None}, "python": "3", "git_revision": None, "platform": "L"}
    (tmp_path / versions.NAME).write_text(json.dumps(said))
    found = versions.resolve_versions(tmp_path / library.MODEL, {}, 0)
    assert versions.format_versions(found) == "Made with netbuf-gym 1, numpy 2, Python 3, platform L."
    for text in ("{", "[]", '{"packages": 3}', "{}"):
        (tmp_path / versions.NAME).write_text(text)
        with pytest.raises(ConfigError, match=r"versions.json: does not say what was used .*; valid: what training wrote"):
            versions.resolve_versions(tmp_path / library.MODEL, {}, 0)


def test_metrics_say_it_before_a_file_that_an_earlier_agent_left(tmp_path):
    said = [{"packages": {"numpy": number}} for number in "12"]
    (tmp_path / versions.NAME).write_text(json.dumps(said[0]))
    (tmp_path / "metrics.json").write_text(json.dumps({"task": "x"}))
    assert versions.read_versions_beside(tmp_path / library.MODEL) == said[0]
    (tmp_path / "metrics.json").write_text(json.dumps({versions.KEY: said[1]}))
    assert versions.read_versions_beside(tmp_path / library.MODEL) == said[1]
    for text in ("{", "[]", '{"versions": 3}', '{"versions": {}}'):
        (tmp_path / "metrics.json").write_text(text)
        with pytest.raises(ConfigError, match=r"metrics.json: does not say what was used"):
            versions.read_versions_beside(tmp_path / library.MODEL)


def test_a_file_of_others_says_no_more_than_names_and_short_texts():
    assert versions.select_known_versions({"torch": "2\n" * 999, "harm": "x", "numpy": 3}) == {
        "torch": ("2 " * 40)[:80],
        "numpy": "3",
    }
    assert (
        versions.select_known_versions([1])
        == versions.select_known_versions(None)
        == {}
        == versions.parse_system_info(b"\xff\xfe nothing")
    )
    text = b"- OS: Linux-6 # 1 SMP\n- Python: 3.11.7\n- Numpy: 2\n"
    assert versions.parse_system_info(text) == {"platform": "Linux-6", "python": "3.11.7"}
