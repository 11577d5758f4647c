"""The tuner's step, on settings, a meter and a clock that are made up: what it sets, restores, leaves alone, and says."""

import math

import pytest

from netbuf_gym.host.journal import Journal, Place, restore_settings
from netbuf_gym.host.rate_limits import ChangeRateLimit, Watchdog
from netbuf_gym.host.settings import Setting, SettingError
from netbuf_gym.host.targets import HostSettings
from netbuf_gym.host.tuner import EndSignal, Tuner

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
FIRST = {RMEM: (4096, 131072, 6000000), WMEM: (4096, 16384, 4000000)}


class Memory(Setting):
    """A setting that is nowhere but here."""

    labels = ("min", "default", "max")

    def __init__(self, name):
        self.name, self.value, self.refuses = name, FIRST[name], False

    def read(self):
        return self.value

    def write(self, value):
        if self.refuses:
            raise SettingError(f"{self.name} cannot be set: no privileges")
        self.value = value

    def require_writable(self):
        pass

    def limits(self, index):
        return 1, 2**31 - 1


class World:
    """A host with a tuner whose intervals last 5 s: what is measured and decided is what a test says."""

    def __init__(self, path, apply=True, pace=None, **watchdog):
        self.settings = {name: Memory(name) for name in FIRST}
        self.mbps, self.latency_s, self.busy_s, self.wish = 50.0, 0.05, 5.0, {}
        self.now_s, self.name, self.seen = 1000.0, "made up", []
        host = HostSettings(self.settings.values())
        self.journal = Journal(path, Place.read_current()) if apply else None
        dog = Watchdog(**{"factor": 2.0, "hold_s": 10.0, "pause_s": 20.0, **watchdog})
        pace = ChangeRateLimit(1000.0, 0.0) if pace is None else pace
        self.tuner = Tuner(host, self, self, self.journal, pace, dog, clock=lambda: self.now_s)

    def look(self):
        pass

    def measure(self):
        sent = self.mbps * 1e6 / 8 * self.busy_s
        return {"elapsed_s": 5.0, "busy_s": self.busy_s, "sent_bytes": sent, "latency_s": self.latency_s}

    def decide(self, telemetry):
        self.seen.append(telemetry)
        return self.wish

    def step(self, **more):
        vars(self).update(more)
        self.now_s += 5.0
        return self.tuner.step()

    def most(self, name=WMEM):
        return self.settings[name].value[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "live.json"


def test_what_is_decided_is_set_and_written_down(path):
    world = World(path)
    step = world.step(wish={"tcp_wmem_max_bytes": 5e6})
    assert [str(one) for one in step.changes] == [f"{WMEM}: 4096 16384 4000000 -> 4096 16384 5000000"]
    assert step.changes[0].why == "made up" and step.time_s == 5.0 and world.most() == 5000000
    assert world.seen[0]["tcp_wmem_max_bytes"] == 4000000 and list(Journal.read(path).entries) == [WMEM]
    assert world.step().changes == ()  # it is what it is to be


def test_a_dry_run_only_says(path):
    world = World(path, apply=False)
    for _ in range(2):
        assert [one.after for one in world.step(wish={"tcp_wmem_max_bytes": 5e6}).changes] == [(4096, 16384, 5000000)]
    assert world.most() == 4000000 and not path.exists()


def test_no_faster_than_the_pace(path):
    world = World(path, pace=ChangeRateLimit(2.0, 10.0))
    seen = []
    for _ in range(5):
        world.step(wish={"tcp_wmem_max_bytes": 30e6})
        seen.append(world.most())
    assert seen == [8000000, 8000000, 16000000, 16000000, 30000000]


def test_worse_for_long_enough_restores_the_last_good_settings_and_pauses(path):
    world = World(path)
    for _ in range(4):
        world.step()
    world.step(wish={"tcp_wmem_max_bytes": 1e6})
    assert world.most() == 1000000
    assert world.step(mbps=10.0).notes == ()
    decided = len(world.seen)
    restoring = world.step()
    assert world.most() == 4000000 and len(world.seen) == decided
    assert [one.why for one in restoring.changes] == ["the last good setting"]
    (note,) = restoring.notes
    assert note.startswith("throughput is 10 Mbit/s where 50 is usual for 10 s: nothing is tuned for 20 s")
    assert note.endswith(", the last good settings are restored")
    for _ in range(3):
        assert world.step(mbps=50.0).changes == () and world.most() == 4000000  # paused, whatever is decided
    assert world.step().changes and world.most() == 1000000


def test_quiet_between_bad_intervals_is_not_counted(path):
    world = World(path, hold_s=15.0)
    for _ in range(4):
        world.step()
    world.step(wish={"tcp_wmem_max_bytes": 1e6})
    for _ in range(2):
        assert world.step(mbps=10.0, busy_s=5.0).notes == () and world.most() == 1000000
        for _ in range(100):
            assert world.step(busy_s=0.0).notes == ()
    assert world.step(busy_s=5.0).notes and world.most() == 4000000


def test_what_somebody_else_changes_is_left_alone_and_does_not_keep_the_watchdog_waiting(path):
    world = World(path)
    for _ in range(4):
        world.step()
    world.settings[RMEM].value = (4096, 4096, 8192)
    said = world.step(mbps=10.0, wish={"tcp_rmem_max_bytes": 5e6})
    assert said.changes == () and said.notes == (
        f"{RMEM} is 4096 4096 8192, which somebody else has set (it was 4096 131072 6000000): no longer tuned",
    )
    notes = [note for _ in range(9) for note in world.step().notes]
    assert len(notes) == 1 and "what is usual is learnt anew" in notes[0]  # once; and nothing is said to be restored
    assert world.settings[RMEM].value == (4096, 4096, 8192)


def test_a_restore_that_somebody_else_was_faster_than_is_not_announced(path):
    world = World(path)
    for _ in range(4):
        world.step()
    world.step(wish={"tcp_wmem_max_bytes": 1e6})
    world.step(mbps=10.0)
    setting, theirs = world.settings[WMEM], (4096, 16384, 123456)
    looks = []

    def changed_between_two_looks():
        looks.append(1)
        if len(looks) > 1:
            setting.value = theirs
        return setting.value

    setting.read = changed_between_two_looks
    step = world.step()
    assert step.changes == () and setting.value == theirs
    assert f"{WMEM} is 4096 16384 123456, where we had set 4096 16384 1000000: somebody else" in step.notes[0]
    assert "nothing is tuned for 20 s" in step.notes[1] and "restored" not in step.notes[1]
    assert [one.outcome for one in restore_settings(Journal.read(path), world.settings.get)] == ["left"]


def test_a_refusal_ends_it_and_all_comes_back(path):
    world = World(path)
    world.step(wish={"tcp_wmem_max_bytes": 1e6})
    world.settings[RMEM].refuses = True
    with pytest.raises(SettingError, match="tcp_rmem cannot be set: no privileges"):
        world.step(wish={"tcp_rmem_max_bytes": 1e6})
    assert list(Journal.read(path).entries) == [WMEM]
    restore_settings(Journal.read(path), world.settings.get)
    assert {name: one.value for name, one in world.settings.items()} == FIRST and not path.exists()


def test_steps_follow_the_clock_until_the_duration_is_over(path):
    world, steps = World(path), []
    ended = EndSignal()
    ended.wait = lambda seconds: setattr(world, "now_s", world.now_s + seconds)
    world.tuner.run(steps.append, ended, 21.0)
    assert [step.time_s for step in steps] == pytest.approx([5.0, 10.0, 15.0, 20.0])
    ended.number = 2
    world.tuner.run(steps.append, ended, math.inf)
    assert len(steps) == 4
    ended.close()
