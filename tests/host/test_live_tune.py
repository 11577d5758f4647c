"""`netbuf-gym live tune` and `restore`, in network namespaces only."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netbuf_gym.cli import program
from netbuf_gym.host import locks, session
from netbuf_gym.host.journal import Journal
from netbuf_gym.host.settings import Sysctl
from netbuf_gym.host.tuner import Tuner
from tests.helpers import machines
from tests.helpers.release_cases import for_release

NAMES = ("tcp_rmem", "tcp_wmem", "tcp_limit_output_bytes", "tcp_notsent_lowat")
FAST = Path(__file__).with_name("fast_tuner.py")
WISH = "tcp_wmem_max_bytes=6000000"


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "state" / "live.json"


def all_of(namespace):
    return {name: namespace.get(name) for name in NAMES}


def fast(namespace, *journal):
    argv = [*namespace.enter, sys.executable, FAST, *journal]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def in_default_place(namespace):
    return namespace.run("sh", "-c", "ls -A /var/lib/netbuf-gym 2>/dev/null").stdout.split()


def wait_for(process, what):
    seen, end = [], time.monotonic() + 120
    while time.monotonic() < end and (line := process.stdout.readline()):
        seen.append(line)
        if line == what or (what in line and not what.endswith("\n")):
            return line
    process.kill()
    raise AssertionError(f"{seen[-100:]} {process.stderr.read()}")


@pytest.mark.slow
def test_killed_at_any_moment(namespace, journal):
    original, rng = all_of(namespace), random.Random(1)
    changed = 0
    for _ in range(2):  # make kills-live kills more
        process = fast(namespace, journal)
        wait_for(process, "4\n")
        time.sleep(rng.uniform(0.0, 0.2))
        process.kill()
        process.communicate()
        changed += all_of(namespace) != original
        done = namespace.live("restore", "--journal", journal)
        assert done.returncode == 0, done.stderr
        assert all_of(namespace) == original, done.stdout
        assert not journal.exists()
    assert changed == 2


@pytest.mark.slow
def test_the_next_start_restores_first(namespace, journal):
    original = all_of(namespace)
    process = fast(namespace, journal)
    wait_for(process, "4\n")
    process.kill()
    process.communicate()
    left = all_of(namespace)
    assert left != original
    dry = namespace.live("tune", WISH, "--interval", 3, "--duration", 3, "--journal", journal)
    assert dry.returncode == 0 and "left changed by a former run: net.ipv4." in dry.stdout
    assert all_of(namespace) == left and journal.exists()  # it changes nothing, and says so
    again = fast(namespace, journal)
    assert "left by a former run: net.ipv4." in again.stdout.readline()
    wait_for(again, "4\n")
    assert all_of(namespace) != original
    again.send_signal(signal.SIGTERM)
    again.communicate()
    assert all_of(namespace) == original and not journal.exists()


@pytest.mark.slow
@pytest.mark.parametrize("then", ["tune", *for_release("restore", "another journal")])
def test_a_journal_elsewhere_is_found_by_the_next_start(namespace, journal, then):
    original = all_of(namespace)
    process = fast(namespace, journal)
    wait_for(process, "4\n")
    process.kill()
    process.communicate()
    assert all_of(namespace) != original and in_default_place(namespace) != []
    dry = namespace.live("tune", WISH, "--interval", 3, "--duration", 3)
    assert "left changed by a former run: net.ipv4." in dry.stdout, dry.stderr
    words = ["tune", "controller=keep", "--apply", "--interval", 3, "--duration", 3]
    if then == "another journal":
        words += ["--journal", journal.with_name("other.json")]
    done = namespace.live(*(["restore"] if then == "restore" else words))
    assert done.returncode == 0, done.stderr
    assert "net.ipv4.tcp_wmem is 4096 16384 4194304 again" in done.stdout and all_of(namespace) == original
    assert list(journal.parent.iterdir()) == [] and in_default_place(namespace) == []


@pytest.mark.release
def test_a_journal_in_the_default_place_is_found_by_a_start_with_another_one(namespace, journal):
    original = all_of(namespace)
    process = fast(namespace)
    wait_for(process, "4\n")
    process.kill()
    process.communicate()
    assert all_of(namespace) != original
    done = namespace.live("restore", "--journal", journal)
    assert done.returncode == 0 and all_of(namespace) == original, done.stderr
    assert in_default_place(namespace) == [] and not journal.parent.exists()


@pytest.mark.release
def test_where_no_note_can_be_left_of_a_journal_elsewhere_that_is_said(namespace, journal):
    name = "/var/lib/netbuf-gym/live-$(stat -Lc %i /proc/self/ns/net).json.elsewhere"
    assert namespace.run("sh", "-c", f"mkdir -p {name}").returncode == 0  # a folder in its place
    done = namespace.live("tune", "controller=keep", "--apply", "--interval", 3, "--duration", 3, "--journal", journal)
    assert done.returncode == 0, done.stderr
    assert f"a start that is not given --journal {journal} will not find it: /var/lib/netbuf-gym/live-" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), *for_release((signal.SIGINT, 130), (signal.SIGHUP, 129))],
)
def test_signals_bring_everything_back(namespace, journal, number, status):
    original = all_of(namespace)
    process = namespace.start("tune", WISH, "--apply", "--interval", 3, "--journal", journal)
    assert "set net.ipv4.tcp_wmem: " in wait_for(process, "set net")
    assert namespace.get("tcp_wmem")[2] == 6000000
    process.send_signal(number)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode in (status, -number), err  # the second signal may find the handlers gone, and all restored
    assert "net.ipv4.tcp_wmem is 4096 16384 4194304 again, after 4096 16384 6000000" in out
    assert all_of(namespace) == original and list(journal.parent.iterdir()) == []


@pytest.mark.slow
def test_a_reader_that_goes_away_brings_everything_back(namespace, journal):
    original = all_of(namespace)
    process = namespace.start("tune", WISH, "--apply", "--interval", 3, "--journal", journal)
    wait_for(process, "set net")
    process.stdout.close()
    assert process.wait(timeout=300) == 141
    process.stderr.close()
    assert all_of(namespace) == original and not journal.exists()


@pytest.mark.slow
def test_two_tuners(namespace, journal, tmp_path):
    process = fast(namespace, journal)
    wait_for(process, "4\n")
    try:
        inside = namespace.run("sh", "-c", "echo").returncode
        assert inside == 0
        other = tmp_path / "other.json"  # the same settings, whatever the journal
        for own, *words in ((journal, "restore"), (other, "tune", WISH, "--apply", "--interval", 3)):
            done = namespace.live(*words, "--journal", own)
            assert done.returncode == 2 and f"by process {process.pid} already" in done.stderr, done.stderr
        dry = namespace.live("tune", WISH, "--interval", 3, "--duration", 3, "--journal", other)
        tuned = f"settings of this network namespace are tuned by process {process.pid} just now"
        assert dry.returncode == 0 and tuned in dry.stdout and "former run" not in dry.stdout, dry.stdout
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert not journal.with_name(journal.name + ".lock").exists() and not (tmp_path / "other.json.lock").exists()


def test_who_holds_a_journal_is_asked_without_holding_it(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "NAME", f"\0netbuf-gym/test-{os.getpid()}")
    journal = tmp_path / "state" / "live.json"
    assert locks.describe_holder(journal) == "" and not journal.parent.exists()
    with locks.lock_journal(journal):
        assert locks.describe_holder(journal) == f"journal {journal} is in use by process {os.getpid()}"
    with locks.lock_host_tuning(journal):
        for _ in range(20):  # more than the kernel keeps of who asks
            assert locks.describe_holder(journal).startswith("settings of this network namespace are tuned by ")
    assert locks.describe_holder(journal) == ""


def test_what_somebody_else_changes_is_theirs(namespace, journal):
    original = all_of(namespace)
    process = fast(namespace, journal)
    wait_for(process, "4\n")
    namespace.set("tcp_wmem", 4096, 12345, 123456)
    line = wait_for(process, "somebody else")
    assert "net.ipv4.tcp_wmem is 4096 12345 123456" in line
    wait_for(process, "3\n")  # the others are tuned on
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate()
    assert "net.ipv4.tcp_wmem is 4096 12345 123456, which somebody else has set (it was 4096 16384 4194304)" in out
    assert all_of(namespace) == {**original, "tcp_wmem": (4096, 12345, 123456)}
    assert not journal.exists()


@pytest.mark.slow
def test_a_dry_run_changes_nothing(namespace, journal, tmp_path):
    original = all_of(namespace)
    log, plot = tmp_path / "tune.csv", tmp_path / "tune.png"
    words = ("tune", "--interval", "3", WISH, "--duration", "7", "--journal", journal, "--log", log, "--plot", plot)
    done = namespace.live(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("would set net.ipv4.tcp_wmem: 4096 16384 4194304 -> 4096 16384 6000000 (fixed)") == 2
    assert "with --apply not tuned: net.ipv4" not in done.stdout
    assert "dry run" in done.stdout and all_of(namespace) == original and not journal.parent.exists()
    rows = log.read_text().splitlines()
    assert len(rows) == 3 and rows[0].startswith("time_s,elapsed_s,") and "net.ipv4.tcp_wmem max" in rows[0]
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.release
def test_set_by_and_by(namespace, journal):
    options = ("--most-factor", "1.5", "--per", "3", "--range", "tcp_wmem_max_bytes=1000000:8000000")
    words = ("tune", "--apply", "tcp_wmem_max_bytes=1e9", "--interval", 3, "--duration", 9, "--journal", journal, *options)
    done = namespace.live(*words)
    assert done.returncode == 0, done.stderr
    steps = [line.split("-> 4096 16384 ")[1].split()[0] for line in done.stdout.splitlines() if " set net" in line]
    assert steps == ["6291456", "8000000"]
    kept = "tcp_wmem_max_bytes = 1000000000 is out of its range, 1000000 to 8000000 (--range): 8000000 is aimed at"
    assert done.stdout.count(kept) == 1
    assert namespace.get("tcp_wmem")[2] == 4194304


@pytest.mark.slow
def test_the_machines_own_settings_are_not_there_in_a_namespace(namespace, journal):
    done = namespace.live("tune", WISH, "--interval", 3, "--duration", 3, "--journal", journal)
    assert done.returncode == 0, done.stderr
    assert "with --apply not tuned: net.core.rmem_max cannot be set: it is the whole machine's" in done.stdout


@pytest.mark.slow
def test_read_only_sysctls(namespace, journal):
    script = "mount -o bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "
    words = f"{sys.executable} -m netbuf_gym live tune {WISH} --apply --interval 3 --journal {journal}"
    done = namespace.run("unshare", "-m", "sh", "-c", script + words)
    assert done.returncode == 2, done.stderr
    assert "net.ipv4.tcp_rmem cannot be set: /proc/sys is mounted read-only" in done.stderr
    assert done.stderr.count("\n") == 1 and not journal.exists()


def test_no_privileges(namespace, tmp_path):
    machines.needs_root()  # which it gives up
    code = (
        "import os, sys, netbuf_gym.cli.live; from netbuf_gym import cli; os.setgid(65534); os.setuid(65534);"
        f"words = ['{WISH}', '--apply', '--interval', '3', '--journal', '/tmp/nobody-{os.getpid()}'];"
        "sys.exit(cli.main(['live', 'tune', *words]))"
    )
    done = namespace.run(sys.executable, "-c", code)
    assert done.returncode == 2 and "no privileges; valid: root" in done.stderr, done.stderr
    assert not list(Path("/tmp").glob(f"nobody-{os.getpid()}*"))


@pytest.mark.slow
def test_nothing_to_restore(namespace, journal):
    done = namespace.live("restore", "--journal", journal)
    assert done.returncode == 0 and "nothing to restore" in done.stdout
    journal.parent.mkdir(exist_ok=True)
    journal.write_text("{")
    done = namespace.live("restore", "--journal", journal)
    assert done.returncode == 2 and f"{journal}: is no journal" in done.stderr and journal.read_text() == "{"
    assert Journal.read(journal.with_name("none")) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tune", "--interval", "2"], "--interval = 2.0 is out of range; valid: 3 to 10"),
        (["tune", "--interval", "nan"], "'nan' is not a finite number"),
        (["tune", "--duration", "1"], "--duration = 1.0 is out of range; valid: 5"),
        (["tune", "--most-factor", "1", "x=1"], "--most-factor = 1.0 is out of range; valid: above 1"),
        (["tune", "--per", "-1"], "--per = -1.0 is out of range; valid: 0 to"),
        (["tune", "--worse-factor", "0"], "--worse-factor = 0.0"),
        (["tune", "--worse-for", "-1"], "--worse-for = -1.0"),
        (["tune", "--pause", "1e6"], "--pause = 1000000.0"),
        (["tune", "--range", "nothing=1:2"], "'nothing=1:2' is not CONTROL=LOW:HIGH"),
        (["tune", "--settings", "net.ipv4.ip_forward", WISH], "'net.ipv4.ip_forward' is not one that is tuned"),
        (["tune", "tcp_wmem_max=1"], "tcp_wmem_max_bytes"),
        (["tune", "tcp_wmem_max_bytes=x"], "tcp_wmem_max_bytes = 'x'"),
        (["tune", "tcp_wmem_max_bytes=1", "--apply", "controller=bpftune"], "several decide"),
        (["tune", "--apply", "nothing"], "argument 'nothing' is unknown; valid: controller="),
        (["tune", "--log", "/nowhere/x.csv"], "there is no folder /nowhere"),
        (["tune", "--plot", "x.gif"], "no known plot format"),
        (["tune", "--log", "./same", "--journal", "same"], "--log ./same is the journal"),
        (["tune", "--journal", ""], "--journal '' names no file"),
        (["restore", "--journal", "/"], "--journal '/' names no file"),
        (["tune", "tcp_wmem_max_bytes=1", "recipe=direct"], "recipe = 'direct' has no effect on values"),
        (["tune", "controller=nobody"], "'nobody'"),
        (["nothing"], "invalid choice"),
    ],
)
def test_bad_input(capsys, monkeypatch, words, message):
    monkeypatch.setattr(Sysctl, "write", lambda self, value: pytest.fail("a setting of this machine's would have been set"))
    monkeypatch.setattr(Tuner, "run", lambda *_: pytest.fail("this would have gone on for ever"))
    monkeypatch.setattr(session, "open_journal", lambda *_: pytest.fail("this machine would have been tuned"))
    assert program.main(["live", *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and captured.out == ""


REFUSED = [
    (["ring_packets=512"], "ring_packets = 512 would do nothing: no ring is tuned; valid: --ring DEVICE"),
    (["socket_bytes=100000"], "socket_bytes = 100000 would do nothing: net.core.rmem_max and net.core.wmem_max are not"),
    ([WISH, "--settings", "net.ipv4.tcp_rmem"], "tcp_wmem_max_bytes = 6000000 would do nothing: net.ipv4.tcp_wmem is not"),
    ([WISH, "--range", "ring_packets=64:128"], "range of ring_packets = 64:128 would do nothing: no ring is tuned"),
    ([WISH, "--range", "tcp_wmem_max_bytes=1:2"], "range of tcp_wmem_max_bytes = 1:2 holds nothing that the max of net"),
    ([WISH, "tcp_wmem_default_bytes=7e6"], "tcp_wmem_default_bytes = 7000000 is above the maximum that is to be reached"),
    (["controller=bbr"], "controller 'bbr' sets congestion control 'bbr', which is not tuned here"),
    (["controller=max", "recipe=direct"], "recipe = 'direct' does nothing with controller 'max'"),
    (["--settings", "net.core.rmem_max", WISH], "net.core.rmem_max cannot be set: it is the whole machine's"),
    (["--ring", "lo", WISH], "ring of lo cannot be used: "),
    (["--ring", "none0", WISH], "there is no such device"),
]
"""Words that would do nothing, or ask for what there is not."""


@pytest.mark.slow
def test_words_that_would_do_nothing_are_refused(namespace, journal):
    code = (
        "import contextlib, io, json; from netbuf_gym import cli\n"
        "def said(words):\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:\n"
        "        return cli.main(['live', 'tune', *words]), err.getvalue()\n"
    )
    end = ["--apply", "--interval", "3", "--duration", "3", "--journal", str(journal)]
    commands = [[*words, *end] for words, _ in REFUSED]
    original = all_of(namespace)
    told = json.loads(namespace.python(f"{code}print(json.dumps([said(words) for words in {commands!r}]))"))
    for (_, message), (status, err) in zip(REFUSED, told, strict=True):
        assert status == 2 and message in err and err.count("\n") == 1, err
    assert all_of(namespace) == original and list(journal.parent.iterdir()) == [] and in_default_place(namespace) == []


@pytest.mark.release
def test_an_administrators_settings_are_what_bpftune_begins_with(namespace, journal):
    namespace.set("tcp_rmem", 4096, 262144, 33554432)
    namespace.set("tcp_wmem", 4096, 65536, 16777216)
    tuned = all_of(namespace)
    done = namespace.live("tune", "--apply", "--interval", 3, "--duration", 9, "--journal", journal)
    assert done.returncode == 0 and "bpftune, every 3 s; sets; " in done.stdout, done.stderr
    assert "set net" not in done.stdout.replace("cannot be set", "") and all_of(namespace) == tuned
