"""The receiver-window task's native arithmetic beside the same rules in numpy, to the bit."""

import numpy as np
import pytest

from netbuf_gym import _core
from netbuf_gym.tasks.receiver_window.observations import observe_default
from netbuf_gym.tasks.receiver_window.telemetry import TELEMETRY
from tests.tasks.hand_made_receiver import MSS, arrived, tracker

ROWS, ONE = 37, np.float32(1)
LOG_HIGH = (32, 32, 32, 32, 8, 64, 4, 4, 4, 4, 64, 16384, 4096, 8, 22.360679775)
MEMORY = ("rate", "previous_rate", "previous_delay", "previous_window", "peak_rate", "least_seen_s", "draining")
EXACT = ("window", "k", "target_s", "received", "resumed")


class Reference:
    """What `Tracker` remembers and `observe_default` makes of it, step by step, from the state that a tracker is in."""

    def __init__(self, made, drain):
        self.last, self.drain, self.sums = made.last.copy(), drain, made.means.sums.copy()
        self.begun, self.share, self.base_rtt = made.means.begun.copy(), made.share_bps, made.base_rtt_s
        for name in (*MEMORY, *EXACT):
            setattr(self, name, getattr(made, name).copy())

    def __getitem__(self, field):
        return self.last[TELEMETRY.index(field)]

    def update(self, telemetry):
        self.previous_rate, self.previous_delay = self.rate, self["queue_delay_mean_s"].copy()
        self.previous_window = self["window_bytes"].copy()
        now = telemetry.T.astype(np.float32)
        np.copyto(self.last, now, where=~np.isnan(now))
        self.received = np.fmax(telemetry[:, TELEMETRY.index("received_bytes")], 0)
        elapsed, came, outside = self["elapsed_s"], self.received > 0, self.draining == 0
        self.rate = self["receive_rate_bps"] * came
        self.peak_rate = np.maximum(self.peak_rate * np.exp(elapsed * came * np.float32(-0.1)), self.rate)
        for name, field in (("window", "window_bytes"), ("k", "k"), ("target_s", "target_delay_s")):
            value = telemetry[:, TELEMETRY.index(field)]
            np.copyto(getattr(self, name), value, where=~np.isnan(value))
        np.copyto(self.resumed, self.window, where=outside)
        seen = self["queue_delay_min_s"] <= np.maximum(np.float32(0.05) * self["rtt_min_s"], np.float32(2e-3))
        self.least_seen_s += elapsed * came
        self.least_seen_s[seen & came] = 0
        if self.drain:
            self.draining -= ~outside & came
            self.least_seen_s[~outside] = 0
            due = outside & came & (self.least_seen_s >= 8.0 - 1e-3)
            np.copyto(self.draining, np.clip(np.ceil(2 * self["rtt_s"] / 0.1), 2, 4), where=due)
        self.begun |= came
        time = elapsed * self.begun
        queueing = self["true_queue_delay_mean_s"] / self.base_rtt + ONE
        for total, value in zip(self.sums, (ONE, self["goodput_bps"] / self.share, queueing), strict=True):
            total += time * value

    def observe(self):
        rtt, least, mss, window = self["rtt_s"], self["rtt_min_s"], self["mss_bytes"], self["window_bytes"]
        known, delay, packets = least > 0, self["queue_delay_mean_s"], self["packets_received"]
        per_rtt = known / np.where(known, least, ONE)
        packet, missing = mss * np.float32(8 / 0.1), self["packets_missing"]
        ratios = [
            *(self[f"queue_delay_{of}s"] * per_rtt + ONE for of in ("mean_", "", "min_", "max_")),
            (delay / self.target_s).astype(np.float32),
            delay * np.float32(1 / 0.1) + ONE,
            np.where(known, window / np.maximum(self.peak_rate * least * np.float32(1 / 8), mss), ONE),
            np.where(known, self.rate * rtt * np.float32(1 / 8) / window, ONE),
            np.maximum(self.rate, packet) / np.maximum(self.previous_rate, packet),
            window / self.previous_window,
            np.where(known, least * np.float32(1 / 0.1), ONE),
            window / mss,
            packets + ONE,
            self["k"] * (ONE / np.float32(2)),
            (self.target_s / np.float32(np.sqrt(0.002))).astype(np.float32),
        ]
        logs = np.log(np.maximum(np.stack(ratios), np.float32(1e-6)))
        logs *= (1 / np.log(np.array(LOG_HIGH, np.float32)))[:, None]
        roots = [0, 1, 2, 3, 5]
        logs[roots] = np.sqrt(np.maximum(logs[roots], 0))
        features = [
            *logs,
            self.rate / np.maximum(self.peak_rate, ONE) * np.float32(2) - ONE,
            (delay - self.previous_delay) * per_rtt,
            self["delay_gradient"],
            np.sqrt(missing / np.maximum(missing + packets, ONE)),
            np.sqrt(self["packets_repeated"] / np.maximum(packets, ONE)),
            self["buffered_bytes"] / window - ONE,
            np.sqrt(self["longest_gap_s"]),
            np.sqrt(self["silence_s"]),
            self.least_seen_s * np.float32(1 / 8),
            self.draining * np.float32(1 / 4),
            np.log(np.maximum(self["bdp_gain"], np.float32(1 / 4))) * np.float32(1 / np.log(4)),
        ]
        return np.clip(np.stack(features), -1, 1)


def draw_interval(rng):
    """An interval of all rows: some silent, some without what is not always measured, with queues above and below the least."""
    delay = rng.choice([0.0, 0.001, 0.05, 0.3], ROWS) * rng.random(ROWS)
    fields = {
        "packets": rng.integers(0, 40, ROWS) * rng.integers(0, 2, ROWS),
        "delay_s": delay,
        "window_bytes": np.where(rng.random(ROWS) < 0.3, np.nan, rng.integers(2, 400, ROWS) * 1447.3),
        "k": rng.choice([np.nan, 0.5, 3.0], ROWS),
        "target_delay_s": rng.choice([np.nan, 0.025, 0.3], ROWS),
        "bdp_gain": rng.choice([0.0, 0.4, 2.8], ROWS),
        "rtt_s": np.where(rng.random(ROWS) < 0.2, np.nan, 0.05 + delay + 0.3 * rng.random(ROWS)),
        "packets_missing": rng.integers(0, 5, ROWS),
        "packets_repeated": rng.integers(0, 3, ROWS),
        "buffered_bytes": rng.integers(0, 5, ROWS) * 5000.0,
        "delay_gradient": rng.normal(size=ROWS),
        "elapsed_s": 0.1 + 0.4 * (rng.random(ROWS) < 0.3),
    }
    return arrived(rows=ROWS, **fields)


@pytest.mark.parametrize("drain", [True, False])
def test_it_follows_and_observes_as_numpy_does(drain):
    made = tracker(ROWS, drain)
    reference, rng, out = Reference(made, drain), np.random.default_rng(3), np.empty((26, ROWS), np.float32)
    drained = 0
    for _ in range(400):
        interval = draw_interval(rng)
        interval[:5, TELEMETRY.index("queue_delay_min_s")] = 0.5  # the least delay is not seen: drains come
        made.update(interval)
        reference.update(interval)
        for name in (*MEMORY, *EXACT):
            np.testing.assert_array_equal(getattr(made, name), getattr(reference, name), name)
        np.testing.assert_array_equal(made.means.sums, reference.sums)
        np.testing.assert_array_equal(observe_default(made, out), reference.observe())
        drained += np.count_nonzero(made.draining)
    assert (drained > 0) == drain


RULES = (
    *("drain", "peak_memory_s", "seen_share", "seen_s", "drain_after_s", "least_drain_intervals", "greatest_drain_intervals"),
    *("k_middle", "target_middle_s", "least_gain"),
)


def make_native(**changed):
    """Bind arrays of four rows, or others."""
    fields = changed.get("fields", list(TELEMETRY.names))
    arrays = {
        "last": np.zeros((len(fields), 4), np.float32),
        "memory": np.zeros((7, 4), np.float32),
        "exact": np.zeros((5, 4)),
        "kept": np.zeros(4, np.float32),
        "means": np.zeros((3, 4), np.float32),
        "begun": np.zeros(4, bool),
        "path": np.ones((2, 4), np.float32),
    }
    settings = {"fields": fields, "interval_s": 0.1, "rules": dict.fromkeys(RULES, 1.0)}
    return _core.ReceiverFeatures(**settings | arrays | changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"memory": np.zeros((6, 4), np.float32)}, r"memory must have shape \(7, rows\)"),
        ({"exact": np.zeros((5, 3))}, r"exact must have shape \(5, rows\)"),
        ({"kept": np.zeros(3, np.float32)}, r"kept must have shape \(rows,\)"),
        ({"begun": np.zeros(3, bool)}, r"begun must have shape \(rows,\)"),
        ({"means": np.zeros((2, 4), np.float32)}, r"means must have shape \(3, rows\)"),
        ({"path": np.zeros((2, 5), np.float32)}, r"path must have shape \(2, rows\)"),
        ({"fields": list(TELEMETRY.names)[1:]}, "fields: there must be elapsed_s"),
        ({"rules": {}}, "rules: there must be drain"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        make_native(**changed)


def test_calls_with_arrays_that_do_not_fit_are_refused():
    made = make_native()
    few, scales = np.zeros((2, 4), np.float32), np.ones(16, np.float32)
    for call in (
        lambda: made.take_in(np.zeros((4, 3))),
        lambda: made.follow(np.zeros((3, len(TELEMETRY.names)))),
        lambda: made.ratios(few),
        lambda: made.features(few, scales, np.zeros((26, 4), np.float32)),
        lambda: made.features(np.ones((16, 4), np.float32), scales[1:], np.zeros((26, 4), np.float32)),
        lambda: made.features(np.ones((16, 4), np.float32), scales, few),
    ):
        with pytest.raises(ValueError, match="must have shape"):
            call()


def test_a_row_without_a_world_divides_by_nothing():
    made = tracker(2)
    made.last[:, 1], made._memory[:, 1] = 0, 0
    made.last[TELEMETRY.index("mss_bytes"), 1] = made.last[TELEMETRY.index("window_bytes"), 1] = MSS
    made.previous_window[1] = MSS
    assert np.isfinite(observe_default(made, np.empty((26, 2), np.float32))).all()
