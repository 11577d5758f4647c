import json
import os

import numpy as np
import pytest

from netbuf_gym import files


def test_write_atomic_replaces_a_file_and_keeps_its_mode(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o640)
    files.write_atomic(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_write_atomic_follows_a_link_instead_of_replacing_it(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    files.write_atomic(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_write_atomic_writes_to_devices():
    files.write_atomic("/dev/null", "gone")
    assert not os.path.isfile("/dev/null")


def test_json_has_no_nan_and_no_numpy(tmp_path):
    files.write_json(tmp_path / "a.json", {"a": np.float32("nan"), "b": np.array([1.5, np.inf]), "c": (np.int64(2),)})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": None, "b": [1.5, None], "c": [2]}
