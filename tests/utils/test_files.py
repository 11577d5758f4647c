import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from netbuf_gym import scenarios, traces
from netbuf_gym.errors import ScenarioError, TraceError
from netbuf_gym.utils import files
from netbuf_gym.validation.reference import _read_rows


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


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):

        def fail(*_, code=code):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError) as caught:
            files.write_atomic(path, "new")
        assert (caught.value.errno, caught.value.filename) == (code, str(path))
        assert caught.value.strerror == os.strerror(code)
        assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [["simulate", "--duration", "1", "--json"], ["trace", "generate", "walk", "--out"]])
def test_commands_name_the_file_that_outgrows_its_limit(tmp_path, words):
    program = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    program += "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    program += "from netbuf_gym.cli.program import main; sys.exit(main(sys.argv[1:]))"
    path = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", program, *words, str(path)], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("netbuf-gym: error: ") and done.stderr.count("\n") == 1
    assert f"{path}: " in done.stderr and "File too large" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_names_the_file_too(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        files.write_atomic(tmp_path / "nowhere" / "a.txt", "new")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")


def test_names_as_long_as_the_system_takes_them(tmp_path):
    files.write_atomic(tmp_path / ("é" * 127), "new")
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_what_cannot_be_printed_is_said_in_a_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "netbuf_gym", "list"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "netbuf-gym: error: standard output: No space left on device\n"


@pytest.mark.slow
def test_a_closed_output_is_no_error():
    line = f"'{sys.executable}' -m netbuf_gym list sizes >&-"
    done = subprocess.run(["bash", "-c", line], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_records_of_csv_text():
    text = 'a,b\n\n1, 2\n  \n"x, y","2 ""q"""\n "line\n\nbreak",3\n4,5'
    records = files.split_csv_rows(text)
    assert [line for line, _ in records] == [1, 3, 5, 6, 9]
    fields = [files.split_csv_fields(record) for _, record in records]
    assert fields == [["a", "b"], ["1", "2"], ["x, y", '2 "q"'], ["line\n\nbreak", "3"], ["4", "5"]]
    assert files.split_csv_rows("a\n\n") == [(1, "a")] and files.split_csv_rows("") == []


@pytest.mark.parametrize(("text", "line"), [('a\n1,"2\n3\n', 2), ('a\n\n"1"x,2\n', 3)])
def test_text_that_is_not_csv(text, line):
    with pytest.raises(files.CsvError, match="is not CSV") as caught:
        files.split_csv_rows(text)
    assert caught.value.line == line


BOM = b"\xef\xbb\xbf"
READERS = {
    "t.csv": (b"time_s,mbps\n0,1\n1,2\n", traces.read),
    "steps.csv": (b"time_s,mbps\n0,1\n1,2\n", lambda path: [column.tolist() for column in traces.read_rate_steps(path)]),
    "two.txt": (b"0 1\n1 2\n", traces.read),
    "d.down": (b"1\n2\n3\n", traces.read),
    "flows.csv": (b"flow_id,start_s,sender,size_bytes,priority,note\n7,0.5,0,1000,1,x\n", scenarios.FlowList.read_csv),
    "sizes.csv": (b"size_bytes,cumulative\n1000,0.5\n2000,1\n", scenarios.SizeDistribution.read_csv),
    "world.json": (
        json.dumps(scenarios.get("dumbbell").to_dict()).encode(),
        lambda path: scenarios.get(f"file:{path}"),
    ),
    "reference.csv": (b"time_s,mbps\n0,1\n", lambda path: [row for _, row in _read_rows(path)[1]]),
}


@pytest.mark.parametrize("name", READERS)
def test_a_byte_order_mark_and_quotes_change_nothing(tmp_path, name):
    data, read = READERS[name]
    path = tmp_path / name
    path.write_bytes(data)
    plain = read(path)
    path.write_bytes(BOM + data.replace(b"\n", b"\r\n"))
    assert read(path) == plain
    if name.endswith(".csv"):
        lines = data.decode().splitlines()
        quoted = [", ".join(f'"{field}"' for field in line.split(",")) for line in lines]
        path.write_text("\n\n".join(quoted).replace('"x"', '"x, and\nmore"') + "\n", encoding="utf-8-sig")
        assert read(path) == plain


def test_messages_name_the_line_of_a_quoted_row(tmp_path):
    path = tmp_path / "flows.csv"
    path.write_text('start_s,sender,size_bytes,priority,note\n"0","0","1000","0","a\nb"\n\n"1","0","x","0",""\n')
    with pytest.raises(ScenarioError, match=r"flows.csv:5: size_bytes = 'x' is not a number"):
        scenarios.FlowList.read_csv(path)
    path = tmp_path / "t.csv"
    path.write_text('"time_s","mbps"\n"0","1"\n"1","-2"\n')
    with pytest.raises(TraceError, match=r"t.csv:3: mbps = '-2'"):
        traces.read(path)
    path.write_text('"time_s","mbps"\n"0","1"\n"1","2\n')
    with pytest.raises(TraceError, match=r"t.csv:3: is not CSV"):
        traces.read(path)
