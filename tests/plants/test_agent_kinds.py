import numpy as np
import pytest

from netbuf_gym import _core, scenarios
from netbuf_gym.scenarios.native import build_world_config

KINDS = {record["name"]: record for record in _core.agent_kinds()}
WORLDS = {
    "sender": lambda: scenarios.dumbbell(senders=["agent", "cubic", "agent"], duration_s=60),
    "switch": lambda: scenarios.get("rlbm/default", scheme="agent", load=0.8),
}
"""A world for each kind that is looked at closely."""
PARAMETERS = {"switch": {"queues": 2}}


def batch(kind, agents=2, worlds=2, **parameters):
    made = _core.Batch(worlds, agents, kind=kind, **PARAMETERS.get(kind, {}), **parameters)
    for world in range(worlds):
        made.reset(world, build_world_config(WORLDS[kind]()), world)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_names_its_fields_and_controls(kind):
    assert KINDS[kind]["meaning"]
    made = _core.Batch(3, 2, kind=kind, **PARAMETERS.get(kind, {}))
    assert len(set(made.fields)) == len(made.fields) and made.fields[0] == "elapsed_s"
    assert made.telemetry.shape == (3, 2, len(made.fields))
    assert made.control.shape == (3, 2, len(made.controls)) and len(set(made.controls)) == len(made.controls)
    assert np.isnan(made.telemetry).all() and np.isnan(made.control).all() and not made.agent_mask.any()


@pytest.mark.parametrize("kind", WORLDS)
def test_intervals_are_as_long_as_asked_for_and_events_end_them(kind):
    made = batch(kind)
    there = made.agent_mask.astype(bool)
    made.advance(250_000_000)
    np.testing.assert_allclose(made.telemetry[there][:, 0], 0.25)
    made.advance(250_000_000, np.array([0, 1], np.uint8))
    assert [made.now_ns(world) for world in range(2)] == [250_000_000, 500_000_000]
    for _ in range(20):
        made.advance_to_event(100_000_000, 50)
        assert (made.telemetry[there][:, 0] <= 5).all()
    assert all(250_000_000 < made.now_ns(world) < 100_000_000_000 for world in range(2))


def test_the_window_is_the_senders_control():
    made = batch("sender")
    assert made.controls == ["cwnd_bytes"] and made.agent_mask.tolist() == [[1, 1], [1, 1]]
    made.control[:, 0, 0], made.control[:, 1, 0] = 50_000, 20_000
    made.advance(1_000_000_000)
    cwnd = made.fields.index("cwnd_bytes")
    assert made.telemetry[:, :, cwnd].tolist() == [[50_000, 20_000]] * 2
    stats = made.flow_stats(0)
    assert stats[0]["delivered_bytes"] > 1.5 * stats[2]["delivered_bytes"]


def test_an_ack_is_what_senders_wait_for():
    made = batch("sender", worlds=1)
    acks = made.fields.index("acks")
    made.advance(2_000_000_000)
    for _ in range(50):
        made.advance_to_event(1_000_000_000)
        assert made.telemetry[0, :, acks].sum() == 1


def test_alphas_are_the_switchs_controls():
    made = batch("switch", agents=1, worlds=1)
    assert made.controls == ["alpha_0", "alpha_1", "cut_alpha_0", "cut_alpha_1", "cut_s", "drop_head", "mark"]
    made.control[0, 0] = 0.25, 4, *[np.nan] * 5
    made.advance(100_000_000)
    assert [made.telemetry[0, 0, made.fields.index(f"alpha_{q}")] for q in (0, 1)] == [0.25, 4]


def test_with_levers_a_switch_has_its_scheduler_too():
    made = batch("switch", agents=1, worlds=1, levers=True)
    assert made.controls[7:] == ["scheduler", "quantum_0", "quantum_1", "large_victims"]
    assert made.fields[-6:] == [f"{name}_{q}" for q in (0, 1) for name in ("share", "slots_used", "largest_share")]
    for control, share in (((2, np.nan, np.nan), 1), ((1, np.nan, np.nan), 0.5), ((1, 300, 100), 0.75), ((np.nan,) * 3, 0.75)):
        made.control[0, 0] = *[np.nan] * 7, *control, np.nan
        made.advance(10_000_000)
        assert made.telemetry[0, 0, made.fields.index("share_0")] == share


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _core.Batch(1, 1, kind="router"), "kind = router: must be one of .*sender.* switch"),
        (lambda: _core.Batch(1, 1, kind="switch", queues=0), r"switch\[queues\] = 0: must be a whole number in \[1, 64\]"),
        (lambda: _core.Batch(1, 1, kind="switch", queues=1.5), r"switch\[queues\] = 1.5: must be a whole number in \[1, 64\]"),
        (lambda: _core.Batch(1, 1, kind="switch", queues="two"), "queues = 'two': must be a number"),
        (lambda: _core.Batch(1, 1, kind="switch", ports=2), r"switch\[ports\] = 2: must be one of queues"),
        (lambda: _core.Batch(1, 1, kind="sender", queues=2), r"sender\[queues\] = 2: must be one of paced fine slow_start"),
        (lambda: _core.Batch(0, 1), "n_worlds = 0: must be at least 1"),
        (lambda: _core.Batch(1, 0), "n_agents = 0: must be at least 1"),
        (lambda: _core.Batch(1, 1, 300), r"threads = 300: must be in \[1, 256\]"),
        (lambda: batch("sender", agents=1), r"controlled flows = 2: must be in \[1, 1\]"),
        (
            lambda: _core.Batch(1, 1).reset(0, build_world_config(WORLDS["switch"]()), 1),
            r"controlled flows = 0: must be in \[1, 1\]",
        ),
        (
            lambda: _core.Batch(1, 1, kind="switch").reset(0, build_world_config(WORLDS["sender"]()), 1),
            r"switches under an agent's control = 0: must be in \[1, 1\]",
        ),
        (
            lambda: _core.Batch(1, 1, kind="switch", queues=3).reset(0, build_world_config(WORLDS["switch"]()), 1),
            "queues = 2 at a switch: must be 3",
        ),
        (lambda: batch("sender").advance(0), "interval_ns = 0: must be positive"),
        (lambda: batch("sender").advance_to_event(1, 0), "max_intervals = 0: must be at least 1"),
        (lambda: batch("sender").advance_to_event(10**17, 1000), "max_intervals = 1000: must be at least 1, and"),
        (lambda: batch("sender").advance(1, np.ones(3, np.uint8)), "mask has 3 entries: must have 2"),
    ],
)
def test_what_cannot_be_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("kind", "place", "value", "message"),
    [
        ("sender", -1, -5, r"control\[1\]\[0\] = -5.000000: must be a window in \[1, 2\^40\] bytes, or NaN"),
        ("sender", -1, np.inf, r"control\[1\]\[0\] = inf: must be a window"),
        ("switch", 1, -1, r"control\[1\]\[0\] = -1.000000: must be an alpha in \[0, 1e6\], or NaN"),
        ("switch", 3, 2e6, r"control\[1\]\[0\] = 2000000.000000: must be an alpha in \[0, 1e6\], or NaN"),
        ("switch", 4, -1, r"control\[1\]\[0\] = -1.000000: must be a time in \[0, 100\] s, or NaN"),
        ("switch", 5, 2, r"control\[1\]\[0\] = 2.000000: must be 0 or 1"),
    ],
)
def test_a_control_out_of_range_is_named_and_nothing_has_run(kind, place, value, message):
    made = batch(kind)
    made.control[1, 0, place] = value
    with pytest.raises(ValueError, match=message):
        made.advance(1_000_000)
    assert made.now_ns(0) == made.now_ns(1) == 0
    made.advance(1_000_000, np.array([1, 0], np.uint8))  # worlds that are not selected are not looked at
