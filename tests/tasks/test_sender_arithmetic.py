"""The congestion-window task's native arithmetic beside the same rules in numpy, to the bit."""

import numpy as np
import pytest

from netbuf_gym import _core
from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.congestion_window.observations import DEFAULT_FEATURES, PPCC_FEATURES, observe_default, observe_ppcc
from netbuf_gym.tasks.congestion_window.path_tracker import LATELY_S, LONG_S, LOSS_MEMORY_S
from netbuf_gym.tasks.congestion_window.rewards import UtilitySign
from netbuf_gym.tasks.congestion_window.task import PPCC_STEPS
from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY
from tests.tasks.hand_made import MSS, tracker

FIELD = {name: column for column, name in enumerate(TELEMETRY.names)}
MEMORY = ("previous_cwnd", "previous_rtt", "previous_throughput", "previous_rate", "rate", "peak_rate", "age_s", "least_rtt")
LOG_HIGH = (16, 16, 2, 2, 2, 2, 2, 64, 65536, 4096, 64)
ONE = np.float32(1)


class Reference:
    """What `Tracker` remembers and `observe_default` makes of it, step by step, from the state that a tracker is in."""

    def __init__(self, made):
        self.last, self.interval_s, self.window = made.last.copy(), made.interval_s, made.cwnd.copy()
        self.known, self.previous_known = made.rtt_known.copy(), made.previous_rtt_known.copy()
        for name in MEMORY:
            setattr(self, name, getattr(made, name).copy())

    def __getitem__(self, field):
        return self.last[FIELD[field]]

    def update(self, telemetry):
        self.previous_cwnd, self.previous_rtt = self["cwnd_bytes"].copy(), self["rtt_mean_s"].copy()
        self.previous_throughput, self.previous_rate = self["throughput_bps"].copy(), self.rate
        self.previous_known = self.known
        now = telemetry.T.astype(np.float32)
        np.copyto(self.last, now, where=~np.isnan(now))
        window = telemetry[:, FIELD["cwnd_bytes"]]
        self.window = np.where(np.isnan(window), self.window, window)
        self.known = self["rtt_mean_s"] > 0
        self.least_rtt = np.fmin(self.least_rtt, now[FIELD["rtt_min_s"]])
        elapsed, throughput = self["elapsed_s"], self["throughput_bps"]
        span = self["receive_interval_mean_s"] * self["acks"]
        spans = (span > 0) & self.previous_known
        self.rate = np.divide(throughput * elapsed, span, where=spans, out=throughput.copy())
        self.peak_rate = np.maximum(self.peak_rate * np.exp(elapsed * np.float32(-0.1)), self.rate)
        self.age_s = np.where(self["acks"] > 0, np.float32(0), self.age_s + elapsed)

    def observe(self):
        rtt, rate, cwnd, mss = self["rtt_mean_s"], self.rate, self["cwnd_bytes"], self["mss_bytes"]
        least = np.where(self.known, self.least_rtt, ONE)
        queueing = np.maximum(rtt / least, ONE)
        packet = mss * np.float32(8 / self.interval_s)
        size = cwnd / mss
        ratios = [
            queueing,
            np.maximum(self["rtt_min_s"] / least, ONE),
            cwnd / np.maximum(self.peak_rate * least * np.float32(1 / 8), mss),
            rate * rtt * np.float32(1 / 8) / cwnd,
            np.divide(rtt, self.previous_rtt, where=self.previous_known, out=np.ones_like(rtt)),
            np.maximum(rate, packet) / np.maximum(self.previous_rate, packet),
            cwnd / self.previous_cwnd,
            rtt * np.float32(1 / self.interval_s),
            size,
            self["segments_acked_sum"] + ONE,
            (ONE - ONE / queueing) * size + ONE,
        ]
        logs = np.log(np.maximum(np.stack(ratios), np.float32(1e-6)))
        logs *= np.array([[1 / np.log(high)] for high in LOG_HIGH], np.float32)
        logs[[2, 7]] *= self.known
        lost = self["packets_lost"]
        features = [
            *np.sqrt(logs[:2]),
            rate / np.maximum(self.peak_rate, ONE) * np.float32(2) - ONE,
            *logs[2:],
            np.sqrt(lost / np.maximum(lost + self["segments_acked_sum"], ONE)),
            self["in_flight_bytes"] / cwnd - ONE,
            self["timeouts"],
            self.age_s,
        ]
        return np.clip(np.stack(features), -1, 1)


class Lately:
    """What `PathTracker` remembers of the time lately without drains, and what is observed of it, in float64."""

    def __init__(self, rows):
        self.rate, self.low_rtt, self.lost, self.acked, self.jumps, self.started = np.zeros((6, rows))
        self.queue_long, self.lost_long, self.acked_long = np.zeros((3, rows))

    def update(self, reference, telemetry):
        """Takes in an interval after `reference` has."""
        kept, loss_kept = (np.exp(-np.float64(reference["elapsed_s"]) / memory) for memory in (LATELY_S, LOSS_MEMORY_S))
        rate, previous = np.float64(reference.rate), np.float64(reference.previous_rate)
        self.rate = np.where(self.rate > 0, kept * self.rate + (1 - kept) * rate, rate)
        seen, low = telemetry[:, FIELD["rtt_min_s"]], kept * self.low_rtt + (1 - kept) * reference["rtt_min_s"]
        low = np.where(self.low_rtt > 0, np.minimum(low, seen), seen)
        self.low_rtt = np.where(np.isnan(seen), self.low_rtt, low)
        self.lost = loss_kept * self.lost + reference["packets_lost"]
        self.acked = loss_kept * self.acked + reference["segments_acked_sum"]
        filled = (reference["rtt_mean_s"] > 1.25 * reference.least_rtt) | (reference["packets_lost"] > 0)
        self.started = np.where(filled, 1, self.started)
        kept = np.exp(-np.float64(reference["elapsed_s"]) / LONG_S)
        queue = np.log(np.maximum(np.where(np.isnan(seen), 1, seen / np.float64(reference.least_rtt)), 1))
        self.queue_long = np.where(np.isnan(seen), self.queue_long, kept * self.queue_long + (1 - kept) * queue)
        self.lost_long = kept * self.lost_long + reference["packets_lost"]
        self.acked_long = kept * self.acked_long + reference["segments_acked_sum"]
        both = (rate > 0) & (previous > 0)
        jump = np.minimum(np.abs(np.log2(np.where(both, rate, 1) / np.where(both, previous, 1))), 2)
        self.jumps = np.where(both, loss_kept * self.jumps + (1 - loss_kept) * jump, self.jumps)

    def observe(self, reference):
        mss, known = np.float64(reference["mss_bytes"]), reference.known
        least = np.where(known, reference.least_rtt, 1)
        ever = np.float64(reference["rtt_min_ever_s"])
        packet = mss * 8 / reference.interval_s
        rate = np.maximum(self.rate, packet)
        features = {
            "rate_trend": np.log(np.maximum(reference.rate, packet) / rate) / np.log(4),
            "window_in_mean_bdp": known * np.log(reference["cwnd_bytes"] / np.maximum(rate * least / 8, mss)) / np.log(4),
            "queue_lately": np.sqrt(np.log(np.maximum(self.low_rtt / least, 1)) / np.log(16)),
            "loss_lately": np.sqrt(self.lost / np.maximum(self.lost + self.acked, 1)),
            "roughness": self.jumps / 2,
            "least_rtt_unseen": np.zeros_like(mss),
            "draining": np.zeros_like(mss),
            "started": self.started,
            "queue_long": np.sqrt(self.queue_long / np.log(16)),
            "loss_long": np.sqrt(self.lost_long / np.maximum(self.lost_long + self.acked_long, 1)),
            "least_rtt_risen": np.log(np.maximum(least / np.where(ever > 0, ever, least), 1)) / np.log(16),
        }
        return {name: np.clip(value, -1, 1) for name, value in features.items()}


def random_telemetry(rng, rows):
    """Intervals of every kind: with and without ACKs, losses, time-outs, round trips; some in which nothing was measured."""
    array = 10.0 ** rng.uniform(-4, 5, (rows, len(FIELD)))
    ranges = {"elapsed_s": (-4, 0), "rtt_mean_s": (-3, 1), "rtt_min_s": (-3, 0), "throughput_bps": (0, 9)}
    ranges |= {"cwnd_bytes": (2, 8), "in_flight_bytes": (0, 8), "receive_interval_mean_s": (-6, 0)}
    for name, (low, high) in ranges.items():
        array[:, FIELD[name]] = 10.0 ** rng.uniform(low, high, rows)
    array[:, FIELD["mss_bytes"]] = MSS
    array[:, FIELD["timeouts"]] = rng.integers(0, 3, rows)
    for name in ("acks", "packets_lost", "segments_acked_sum", "throughput_bps", "elapsed_s", "in_flight_bytes"):
        array[rng.random(rows) < 0.2, FIELD[name]] = 0
    array[rng.random(array.shape) < 0.1] = np.nan
    array[rng.random(rows) < 0.1] = np.nan
    samples = [FIELD["rtt_mean_s"], FIELD["rtt_min_s"]]  # both or neither
    array[np.isnan(array[:, samples]).any(axis=1)[:, None] & np.isin(np.arange(len(FIELD)), samples)] = np.nan
    return array


def same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.tobytes() == b.tobytes(), np.flatnonzero(a.view(np.uint8) != b.view(np.uint8))[:5]


@pytest.mark.parametrize("rows", [1, 3, 16, 37, 256])
def test_memory_and_features_are_those_of_numpy_to_the_bit(rows):
    rng = np.random.default_rng(rows)
    made = tracker(rows, task=CongestionWindow(drain=False))
    reference, lately = Reference(made), Lately(rows)
    out = np.empty((len(DEFAULT_FEATURES), rows), np.float32)
    for _ in range(40):
        telemetry = random_telemetry(rng, rows)
        made.update(telemetry)
        reference.update(telemetry)
        lately.update(reference, telemetry)
        same_bits(made.last, reference.last)
        same_bits(made.cwnd, reference.window)
        same_bits(made.rtt_known, reference.known)
        same_bits(made.previous_rtt_known, reference.previous_known)
        for name in MEMORY:
            same_bits(np.ascontiguousarray(getattr(made, name)), getattr(reference, name))
        expected = reference.observe()
        assert np.isfinite(expected).all()
        observe_default(made, out)
        native, others = out[: len(expected)], lately.observe(reference)
        same_bits(native, expected)
        assert [feature.name for feature in DEFAULT_FEATURES[len(expected) :]] == list(others)
        np.testing.assert_allclose(out[len(expected) :], list(others.values()), atol=1e-3)  # a root of 1e-7 is 3e-4


def test_what_was_measured_now_is_known_until_the_row_starts_anew():
    made = tracker(3)
    telemetry = random_telemetry(np.random.default_rng(0), 3)
    assert np.isnan(made.now).all()
    made.update(telemetry)
    np.testing.assert_array_equal(made.now, telemetry.T.astype(np.float32))
    made.forget(slice(1, 2))
    np.testing.assert_array_equal(made.now[:, [0, 2]], telemetry.T[:, [0, 2]].astype(np.float32))
    assert np.isnan(made.now[:, 1]).all()
    made.update(telemetry)
    np.testing.assert_array_equal(made.now, telemetry.T.astype(np.float32))


def test_arrays_of_other_shapes_are_refused():
    made = tracker(4)
    with pytest.raises(ValueError, match=r"last must have shape \(fields, rows\)"):
        _core.take_in(np.zeros((5, len(FIELD))), made.last)
    with pytest.raises(ValueError, match=r"telemetry must have shape \(rows, fields\)"):
        made.arithmetic.follow(np.zeros((5, len(FIELD))))
    with pytest.raises(ValueError, match=r"telemetry must have shape \(rows, fields\)"):
        made.arithmetic.take_in(np.zeros((5, len(FIELD))))
    path, logs, scales = made.path_arithmetic, np.zeros((15, 4), np.float32), np.zeros(15, np.float32)
    with pytest.raises(ValueError, match=r"telemetry must have shape \(rows, fields\)"):
        path.follow(np.zeros((4, len(FIELD) + 1)))
    with pytest.raises(ValueError, match=r"out must have shape \(15, rows\)"):
        path.ratios(np.zeros((11, 4), np.float32))
    with pytest.raises(ValueError, match=r"out must have shape \(27, rows\)"):
        path.features(logs, scales, np.zeros((16, 4), np.float32))
    with pytest.raises(ValueError, match=r"factors must have shape \(rows,\)"):
        path.decide(np.ones(3), None, np.zeros(4))
    with pytest.raises(ValueError, match=r"caps must have shape \(rows,\)"):
        path.decide(np.ones(4), np.ones(3), np.zeros(4))
    bound = {name: np.zeros((1, 4), np.float32) for name in ("path", "rounds", "logs")}
    bound |= {"base_ever": np.zeros(4, np.float32), "lowest_window": np.zeros(4)}
    bound |= {"windows": np.zeros((4, 4)), "flags": np.zeros((3, 4), bool)}
    with pytest.raises(ValueError, match="rules: there must be drain"):
        _core.SenderPath(made.arithmetic, {}, **bound)
    singles = {"last": 1, "memory": 8, "kept": 1, "means": 3, "path": 2}
    arrays = {name: np.zeros((count, 4), np.float32) for name, count in singles.items()}
    arrays |= {"window": np.zeros(4), "known": np.zeros((2, 4), bool), "begun": np.zeros(4, bool)}
    with pytest.raises(ValueError, match="fields: there must be elapsed_s"):
        _core.SenderFeatures(["rtt"], 0.1, [10.0], "rtt", **arrays)
    with pytest.raises(ValueError, match=r"kept must have shape \(time constants, rows\)"):
        _core.SenderFeatures(["rtt"], 0.1, [10.0, 1.0], "rtt", **arrays)
    with pytest.raises(ValueError, match=r"means must have shape \(3, rows\)"):
        _core.SenderFeatures(["rtt"], 0.1, [10.0], "rtt", **{**arrays, "means": np.zeros((2, 4), np.float32)})


def update_at_random(rows, steps=20):
    """Return a tracker of the recipe ppcc after intervals of every kind."""
    made, rng = tracker(rows, task=CongestionWindow("ppcc")), np.random.default_rng(5)
    for _ in range(steps):
        made.update(random_telemetry(rng, rows))
    return made


@pytest.mark.parametrize("rows", [1, 37])
@pytest.mark.parametrize("weight", [0.5, 0.3, 1.0])
def test_the_recipe_ppcc_is_numpys(rows, weight):
    made = update_at_random(rows)
    made.last[FIELD["ssthresh_bytes"], 0] = np.inf
    low, high = (np.array([[getattr(feature, end)] for feature in PPCC_FEATURES], np.float32) for end in ("low", "high"))
    chosen = made.last[[FIELD[feature.name] for feature in PPCC_FEATURES]]
    wanted = np.clip((chosen - low) * (1 / (high.astype(float) - low)).astype(np.float32), 0, 1)
    np.testing.assert_array_equal(observe_ppcc(made, np.empty((12, rows), np.float32)), wanted)

    actions = np.arange(rows) % len(PPCC_STEPS)
    mss, out = made.last[FIELD["mss_bytes"]], np.empty((rows, 1))
    wanted = PPCC_STEPS[actions] * mss * mss / made.cwnd + made.cwnd
    CongestionWindow("ppcc").decode(actions.astype(np.uint8), made, out)
    np.testing.assert_array_equal(out[:, 0], np.clip(wanted, made.lowest_window, made.highest_window))

    for known in (True, False):
        made.previous_rtt_known[:], ones = known, np.ones(rows)
        throughput, before = (np.maximum(rate, np.float32(1)) for rate in (made["throughput_bps"], made.previous_throughput))
        rtt, earlier = (np.where(known, value, ones) for value in (made["rtt_mean_s"], made.previous_rtt))
        logs = np.log(np.stack([throughput, before, rtt, earlier]).astype(float))
        change = (weight * logs[0] - (1 - weight) * logs[2]) - (weight * logs[1] - (1 - weight) * logs[3])
        reward = np.empty((1, rows), np.float32)
        UtilitySign(weight)(made, reward)
        np.testing.assert_array_equal(reward[0], np.sign(change) * known)


def test_arrays_of_the_recipe_ppcc_that_do_not_fit_are_refused():
    native, two, out = update_at_random(2, 1).arithmetic, np.zeros(2), np.zeros((1, 2), np.float32)
    single, column = np.zeros(1, np.float32), np.zeros(1, np.int64)
    for call in (
        lambda: native.scaled(column, np.zeros(2, np.float32), single, out),
        lambda: native.scaled(column, single, single, np.zeros((2, 2), np.float32)),
        lambda: native.scaled(np.array([len(FIELD)]), single, single, out),
        lambda: native.step(np.zeros(3, np.int64), two, two, None, 1.0, np.zeros((2, 1))),
        lambda: native.step(np.zeros(2, np.int64), np.zeros(0), two, None, 1.0, np.zeros((2, 1))),
        lambda: native.step(np.zeros(2, np.int64), two, two, np.zeros(3), 1.0, np.zeros((2, 1))),
        lambda: native.step(np.zeros(2, np.int64), two, two, None, 1.0, np.zeros((2, 2))),
        lambda: native.utility_arguments(np.zeros((3, 2))),
        lambda: native.utility_signs(np.zeros((4, 3)), 0.5, np.zeros(2, np.float32)),
        lambda: native.utility_signs(np.zeros((4, 2)), 0.5, np.zeros(3, np.float32)),
    ):
        with pytest.raises(ValueError, match="must have shape"):
            call()
