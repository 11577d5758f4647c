"""The journal: whatever happens, the original values come back, and nobody else's are overwritten."""

import errno
import json
import os
import socket

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.host import journal as journals
from netbuf_gym.host import locks
from netbuf_gym.host.journal import ForeignChangeError, Journal, Place, restore_settings
from netbuf_gym.host.rings import RingSizes
from netbuf_gym.host.settings import Ring, SettingError, Sysctl
from tests.helpers import machines

NAME, OTHER = "net.ipv4.tcp_rmem", "net.ipv4.tcp_notsent_lowat"
ORIGINAL, WANTED = (4096, 131072, 6291456), (4096, 131072, 8388608)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "sys/net/ipv4"
    folder.mkdir(parents=True)
    (folder / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    (folder / "tcp_notsent_lowat").write_text("4294967295\n")
    return tmp_path / "sys"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "live.json"


def fresh(path):
    return Journal(path, Place.read_current())


def test_what_was_set_is_brought_back(root, path):
    make = lambda name: Sysctl(name, root)  # noqa: E731
    journal = fresh(path)
    assert journal.set(make(NAME), WANTED) == WANTED == make(NAME).read()
    journal.set(make(NAME), (4096, 131072, 16777216))
    journal.set(make(OTHER), (65536,))
    kept = json.loads(path.read_text())["settings"]
    assert kept[NAME] == {"original": [*ORIGINAL], "ours": [[*WANTED], [4096, 131072, 16777216]], "foreign": None}
    done = restore_settings(Journal.read(path), make)
    assert [(one.name, one.outcome) for one in done] == [(OTHER, "restored"), (NAME, "restored")]
    assert make(NAME).read() == ORIGINAL and make(OTHER).read() == (4294967295,)
    assert not path.exists() and os.listdir(path.parent) == []


@pytest.mark.parametrize("at", ["before", "after"])
def test_killed_between_the_journal_and_the_change(root, path, monkeypatch, at):
    class Killed(BaseException):
        pass

    setting = Sysctl(NAME, root)
    write = setting.write

    def killed(value):
        if at == "after":
            write(value)
        raise Killed

    setting.write = killed
    with pytest.raises(Killed):
        fresh(path).set(setting, WANTED)
    done = restore_settings(Journal.read(path), lambda name: Sysctl(name, root))
    assert [one.outcome for one in done] == ["as it was" if at == "before" else "restored"]
    assert Sysctl(NAME, root).read() == ORIGINAL


def test_the_journal_is_on_the_disk_before_the_change(root, path):
    setting = Sysctl(NAME, root)
    seen = []
    write = setting.write
    setting.write = lambda value: (seen.append(json.loads(path.read_text())["settings"][NAME]["ours"]), write(value))
    fresh(path).set(setting, WANTED)
    assert seen == [[[*ORIGINAL], [*WANTED]]]


def test_no_journal_no_change(root, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        fresh(tmp_path / "file" / "live.json").set(Sysctl(NAME, root), WANTED)
    assert Sysctl(NAME, root).read() == ORIGINAL


def test_somebody_elses_value_is_left_alone(root, path):
    setting, journal = Sysctl(NAME, root), fresh(path)
    journal.set(setting, WANTED)
    setting.write((1, 2, 3))
    with pytest.raises(ForeignChangeError, match="is 1 2 3, where we had set 4096 131072 8388608: somebody else"):
        journal.set(setting, ORIGINAL)
    assert setting.read() == (1, 2, 3) and journal.changed_by_others(setting)
    done = restore_settings(Journal.read(path), lambda name: Sysctl(name, root))
    assert [one.outcome for one in done] == ["left"] and "it is left alone" in done[0].words
    assert setting.read() == (1, 2, 3) and not path.exists()


def test_a_change_after_the_kill_is_left_alone_too(root, path):
    fresh(path).set(Sysctl(NAME, root), WANTED)
    Sysctl(NAME, root).write((4096, 4096, 4096))
    assert [one.outcome for one in restore_settings(Journal.read(path), lambda name: Sysctl(name, root))] == ["left"]


def test_a_refused_change_is_not_written_down(root, path):
    setting, journal = Sysctl(NAME, root), fresh(path)
    setting.write = lambda value: (_ for _ in ()).throw(SettingError("refused"))
    with pytest.raises(SettingError, match="refused"):
        journal.set(setting, WANTED)
    assert journal.entries == {} and not path.exists()


def test_what_cannot_be_brought_back_stays_in_the_journal(root, path):
    fresh(path).set(Sysctl(NAME, root), WANTED)

    def make(name):
        raise SettingError("no privileges")

    done = restore_settings(Journal.read(path), make)
    assert [one.outcome for one in done] == ["failed"] and "is not 4096 131072 6291456 again: no privileges" in done[0].words
    assert list(Journal.read(path).entries) == [NAME]


def test_a_restart_of_the_machine_brings_everything_back_by_itself(root, path):
    journal = Journal(path, Place("another start", *list(vars(Place.read_current()).values())[1:]))
    journal.set(Sysctl(NAME, root), WANTED)
    done = restore_settings(Journal.read(path), lambda name: Sysctl(name, root))
    assert [one.outcome for one in done] == ["as it was"] and "started anew" in done[0].words
    assert Sysctl(NAME, root).read() == WANTED and not path.exists()


def test_another_namespaces_journal_is_refused(root, path):
    here = Place.read_current()
    Journal(path, Place(here.boot_id, here.namespace + 1, here.cookie)).set(Sysctl(NAME, root), WANTED)
    with pytest.raises(ConfigError, match="is of network namespace"):
        restore_settings(Journal.read(path), lambda name: Sysctl(name, root))
    assert path.exists()


def test_a_namespace_that_was_given_the_number_anew(root, path):
    here = Place.read_current()
    machines.needs_linux(5, 14)
    Journal(path, Place(here.boot_id, here.namespace, here.cookie + 1)).set(Sysctl(NAME, root), WANTED)
    done = restore_settings(Journal.read(path), lambda name: Sysctl(name, root))
    assert [one.outcome for one in done] == ["as it was"] and "its network namespace is gone" in done[0].words
    assert Sysctl(NAME, root).read() == WANTED and not path.exists()


class FakeRings:
    """A card whose driver rounds up to multiples of 64."""

    def __init__(self):
        self.tx, self.calls = 256, 0

    def get(self, device):
        return RingSizes(self.tx, 1024)

    def set(self, device, tx):
        self.calls += 1
        self.tx = -(-tx // 64) * 64
        return RingSizes(self.tx, 1024)


def test_a_driver_that_rounds(path):
    access = FakeRings()
    ring = Ring("eth9", access)
    assert ring.limits(0) == (64, 1024)
    journal = fresh(path)
    assert journal.set(ring, (300,)) == (320,)
    assert Journal.read(path).entries["ring of eth9"].ours == ((320,),)
    done = restore_settings(Journal.read(path), lambda name: Ring("eth9", access))
    assert access.tx == 256 and done[0].outcome == "restored"


@pytest.mark.parametrize("wanted", [300, 320], ids=["rounded", "as it was meant"])
def test_a_ring_that_somebody_else_changed_is_left_alone(path, wanted):
    access = FakeRings()
    fresh(path).set(Ring("eth9", access), (wanted,))
    access.tx = 512  # after a kill, or between the last step and the end
    done = restore_settings(Journal.read(path), lambda name: Ring("eth9", access))
    assert access.tx == 512 and done[0].outcome == "left" and "is 512, which somebody else has set" in done[0].words


@pytest.mark.parametrize("step", ["first", "second"])
def test_a_ring_whose_change_was_killed_before_it_was_read_back(path, step):
    class Killed(BaseException):
        pass

    access, journal = FakeRings(), fresh(path)
    ring = Ring("eth9", access)
    if step == "second":
        journal.set(ring, (400,))

    def acts_and_ends(device, tx):
        FakeRings.set(access, device, tx)
        raise Killed

    access.set = acts_and_ends
    with pytest.raises(Killed):
        journal.set(ring, (300,))
    del access.set
    assert access.tx == 320
    assert [one.outcome for one in restore_settings(Journal.read(path), lambda name: Ring("eth9", access))] == ["restored"]
    assert access.tx == 256


def test_a_driver_that_does_not_answer_in_time(path):
    access, journal = FakeRings(), fresh(path)

    def acts_too_late(device, tx):
        FakeRings.set(access, device, tx)
        raise TimeoutError("timed out")

    access.set = acts_too_late
    with pytest.raises(SettingError, match=r"ring of eth9 cannot be used: the kernel has not answered for 30 s"):
        journal.set(Ring("eth9", access), (300,))
    assert list(Journal.read(path).entries) == ["ring of eth9"]
    del access.set
    restore_settings(Journal.read(path), lambda name: Ring("eth9", access))
    assert access.tx == 256


def test_killed_before_it_was_known_how_the_driver_rounds(path):
    access = FakeRings()
    ring = Ring("eth9", access)
    ring.read = lambda: (256,)  # what was before, again: as if the process ended before it read
    fresh(path).set(ring, (300,))
    assert access.tx == 320
    restore_settings(Journal.read(path), lambda name: Ring("eth9", access))
    assert access.tx == 256


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"version": 2}', "\0", '{"version": 1, "settings": {"a": {}}}', "[" * 10**5]
)
def test_damaged_journals_are_refused(path, text):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"live\.json: "):
        Journal.read(path)
    assert path.read_text() == text


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(journals.os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = Place("x", 7, 8)
    assert journals.default_path(place) == tmp_path / "netbuf-gym" / "live-7.json"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert journals.default_path(place).parts[-4:] == (".local", "state", "netbuf-gym", "live-7.json")


def test_the_lock_goes_with_its_holder(path):
    with locks.lock_host_tuning(path):
        pass
    with locks.lock_host_tuning(path):
        assert [one.name for one in path.parent.iterdir()] == ["live.json.lock"]
    assert list(path.parent.iterdir()) == []


def test_what_a_killed_process_has_half_written_goes(path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*names):
        monkeypatch.undo()
        monkeypatch.setattr(journals.Path, "unlink", lambda self, **options: None)  # nothing is cleaned by who is dead
        raise Killed

    journal = fresh(path)
    journal.entries[NAME] = journals.Entry(ORIGINAL, (WANTED,))
    path.parent.mkdir()
    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(Killed):
        journal.write()
    monkeypatch.undo()
    assert len(list(path.parent.iterdir())) == 1 and not path.exists()
    with locks.lock_host_tuning(path):
        pass
    assert list(path.parent.iterdir()) == []


def test_nothing_to_restore_makes_no_folder(path):
    with locks.lock_host_tuning(path, begins=False):
        assert not path.parent.exists()


def test_any_user_can_take_the_name_so_that_the_holders_user_is_said(monkeypatch, path):
    with locks.lock_host_tuning(path):
        with pytest.raises(locks.LockedError, match=f"by process {os.getpid()} already; valid: one tuner at a time .kill -INT"):
            with locks.lock_host_tuning(path):
                pass
        monkeypatch.setattr(locks, "_find_holder", lambda: (4711, 1234))
        with pytest.raises(locks.LockedError, match=r"by process 4711 of user 1234 already, or it only claims so; valid: "):
            with locks.lock_host_tuning(path):
                pass


def test_a_kernel_without_such_addresses_is_not_busy(monkeypatch, path):
    class Refusing(socket.socket):
        def bind(self, address):
            raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(locks.socket, "socket", Refusing)
    with pytest.raises(PermissionError):
        with locks.lock_host_tuning(path):
            pass


def test_bad_values_are_refused(root):
    setting = Sysctl(NAME, root)
    for value in ((1, 2), (4096, 2.0, 3), (True, 1, 2), (0, 1, 2), (3, 2, 1), (1, 2, 2**31)):
        with pytest.raises(SettingError, match="valid: "):
            setting.check_value(value)
    with pytest.raises(ConfigError, match="tcp_rmem"):
        Sysctl("net.ipv4.tcp_rmen")
    with pytest.raises(SettingError, match="cannot be read: No such file"):
        Sysctl("net.ipv4.tcp_wmem", root).read()
