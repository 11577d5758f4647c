"""By what the recipe `default` is decided: what sockets measure, and nothing of the world."""

import inspect
import zlib

import numpy as np
import pytest

from netbuf_gym.envs.engine import Engine
from netbuf_gym.tasks.congestion_window import FACTORS, CongestionWindow
from netbuf_gym.tasks.congestion_window.path_tracker import DRAIN_AFTER_S
from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY
from netbuf_gym.tasks.congestion_window.tracker import Tracker
from tests.tasks.hand_made import MSS, acknowledged, telemetry, tracker

BEFORE_DRAIN = round(DRAIN_AFTER_S * 10)  # intervals of 0.1 s

OF_A_SOCKET = {
    "elapsed_s": "the sender's clock",
    "ssthresh_bytes": "tcpi_snd_ssthresh",
    "cwnd_bytes": "tcpi_snd_cwnd",
    "mss_bytes": "tcpi_snd_mss",
    "bytes_in_flight_sum": "tcp_packets_in_flight on each ACK",
    "bytes_in_flight_mean": "likewise",
    "segments_acked_sum": "tcpi_delivered",
    "segments_acked_mean": "likewise",
    "rtt_mean_s": "the samples of which tcpi_rtt is made",
    "rtt_min_s": "likewise",
    "send_interval_mean_s": "the sender's clock",
    "receive_interval_mean_s": "the sender's clock on ACKs",
    "throughput_bps": "tcpi_bytes_acked and what is SACKed",
    "packets_sent": "tcpi_segs_out",
    "packets_lost": "what the sender marked lost",
    "packets_retransmitted": "tcpi_total_retrans",
    "acks": "tcpi_segs_in",
    "timeouts": "tcpi_total_rto",
    "in_flight_bytes": "tcpi_unacked less tcpi_sacked and tcpi_lost, and tcpi_retrans",
    "rtt_min_ever_s": "the samples of which tcpi_rtt is made",
}
"""Where a sender reads what it is observed of."""

OF_THE_WORLD = ("capacity_bps", "share_bps", "base_rtt_s", "highest_window", "first_beside")
PRIVILEGED = tuple(field.name for field in TELEMETRY.fields if field.privileged)


def test_everything_measured_is_a_sockets_or_privileged():
    assert set(OF_A_SOCKET) | set(PRIVILEGED) == set(TELEMETRY.names) and not set(OF_A_SOCKET) & set(PRIVILEGED)
    given = {name for reset in (Tracker.reset, Tracker.reset_path) for name in inspect.signature(reset).parameters}
    given -= {"self", "rows", "path"}
    assert given == {*OF_THE_WORLD, "initial_window", "mss_bytes"}  # the last two a sender sets itself


def spoil(made, telemetry, names, rng):
    """Other values of what a sender cannot know, in place; nothing measured stays so now and then."""
    for name in names:
        if name in OF_THE_WORLD:
            getattr(made, name)[:] = 10.0 ** rng.uniform(-6, 9, made.rows)
        else:
            values = 10.0 ** rng.uniform(-6, 9, len(telemetry))
            telemetry[:, TELEMETRY.index(name)] = np.where(rng.random(len(telemetry)) < 0.2, np.nan, values)


def play(names, steps=120, **options):
    """Bits of observations, controls and worlds, under a policy that follows every bit observed, with these names spoilt."""
    engine = Engine(3, task="congestion_window", scenario="ppcc/random", agents=2, **options)
    rng = np.random.default_rng(0)
    update = engine.tracker.update

    def spoilt(measured):
        measured = measured.copy()
        spoil(engine.tracker, measured, names, rng)
        update(measured)

    engine.tracker.update = spoilt
    for world in range(3):
        engine.reset_world(world, np.random.default_rng(world))
    engine.start_history(range(3))
    spoil(engine.tracker, np.empty((0, len(TELEMETRY.fields))), names, rng)
    observed, told = [], []
    for _ in range(steps):
        seen = engine.history.read(np.empty((engine.rows, engine.task.observation_space.shape[0]), np.float32))
        observed.append(seen.tobytes())
        levels = [zlib.crc32(row.tobytes()) % 1000 for row in seen]
        if engine.task.actions == "continuous":
            actions = np.array(levels)[:, None] / 500 - 1
        else:
            actions = np.array(levels) % (len(FACTORS) - 3) + 3
        engine.decide(actions)
        told.append(engine.plant.control.tobytes())
    measured = [engine.plant.world(world).flow_stats() for world in range(3)]
    return observed, told, [[flow["packets_sent"] for flow in one] for one in measured]


LATE = {"actions": "continuous", "latency_s": 0.01, "jitter_s": 0.02}


@pytest.mark.parametrize("options", [{}, LATE, {"clamp": "none"}, {"recipe": "bare"}])
def test_nothing_privileged_is_observed_or_decides(options):
    honest = play((), **options)
    assert play(PRIVILEGED + OF_THE_WORLD, **options) == honest
    assert not all(np.isnan(np.frombuffer(one)).all() for one in honest[1])


def test_the_clamp_of_the_path_is_privileged():
    honest, spoilt = play((), clamp="path"), play(("highest_window",), clamp="path")
    assert honest[1] != spoilt[1]
    assert play(PRIVILEGED, clamp="path") == honest


@pytest.mark.parametrize("name", PRIVILEGED + OF_THE_WORLD)
def test_none_of_what_is_privileged_is_observed_or_decides(name):
    """One by one, on hand-made telemetry of a time-out, a drain and silence."""
    task, rng = CongestionWindow(), np.random.default_rng(2)
    one, other = tracker(task=task), tracker(task=task)
    for k in range(BEFORE_DRAIN + 20):
        segments = int(rng.integers(1, 40))
        step = telemetry() if k % 17 == 5 else acknowledged(segments, 0.05 if k < 9 else 0.1, timeouts=k == 30)
        step[:, TELEMETRY.index("cwnd_bytes")] = MSS if k == 30 else one.cwnd
        one.update(step)
        step = step.copy()
        spoil(other, step, (name,), rng)
        other.update(step)
        action = rng.integers(0, len(FACTORS), 1)
        told = [task.decode(action, made, np.empty((1, 1))) for made in (one, other)]
        seen = [task.observe(made, np.empty((task.width, 1), np.float32)) for made in (one, other)]
        assert told[0].tobytes() == told[1].tobytes() and seen[0].tobytes() == seen[1].tobytes()
        if not np.isnan(told[0]):
            one.cwnd[:] = other.cwnd[:] = told[0][0]
