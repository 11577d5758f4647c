"""Telemetry and reports against numbers computed by hand from what is sent when.

The world of most tests: 8 Mbit/s, so that a byte takes a microsecond; 10 ms there, 8.5 ms back; an ACK for every segment. A
segment of 1500 bytes on the wire then takes 1.5 ms and its ACK is back after 20 ms. The handshake: SYN (60 bytes) at 0, its
answer at 18.56 ms; then the last ACK of it (52 bytes), and behind it the first window of four segments:

    sent at         18.560 18.560 18.560 18.560     acknowledged at  38.612 40.112 41.612 43.112
    and from then on each ACK lets one segment out:
    sent at         38.612 40.112 41.612 43.112     acknowledged at  58.612 60.112 61.612 63.112   ... every 20 ms
"""

import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb

Link, Flow, Scenario = nb.scenarios.Link, nb.scenarios.Flow, nb.scenarios.Scenario
MSS, WIRE = 1448, 1500
KEEP = 4  # of the recipe "ppcc": the window stays


def world(*others, duration_s=1.0, cwnd=4, bottleneck=None, **settings):
    links = [Link(**{"name": "bottleneck", "rate_mbps": 8, "delay_ms": 10, "queue_packets": 50} | (bottleneck or {}))]
    links.append(Link(name="back", delay_ms=8.5))
    agent = Flow(cc="agent", path=(0,), return_path=(1,), initial_cwnd_packets=cwnd)
    settings = {"delayed_ack": 1} | settings
    return Scenario(links=links, flows=[agent, *others], duration_s=duration_s, **settings)


def environment(scenario, **kwargs):
    return gym.make("netbuf/CongestionWindow-v0", scenario=scenario.to_dict(), recipe="ppcc", **kwargs)


def played(scenario, steps, **kwargs):
    """Telemetry of each interval, the last one's `info`, and the report, when the window is kept."""
    env = environment(scenario, **kwargs)
    env.reset(seed=1)
    telemetry = []
    for _ in range(steps):
        *_, info = env.step(KEEP)
        telemetry.append(env.unwrapped.telemetry)
    return telemetry, info, env.unwrapped.report()


def acks_until(seconds, window=4):
    """Times of ACKs, in s, up to then."""
    times, cycle = [], 0
    while (first := 0.038612 + 0.02 * cycle) <= seconds:
        times += [first + 0.0015 * k for k in range(window)]
        cycle += 1
    return [time for time in times if time <= seconds]


def test_the_first_interval():
    """13 ACKs by 100 ms, the last at 98.612; 4 + 13 segments sent, 16 of them have arrived."""
    (first,), _, _ = played(world(), 1)
    assert len(acks_until(0.1)) == 13
    expected = {
        "elapsed_s": 0.1,
        "ssthresh_bytes": math.nan,
        "cwnd_bytes": 4 * MSS,
        "mss_bytes": MSS,
        "bytes_in_flight_sum": 13 * 3 * MSS,  # counted when the ACK has come and before it lets a segment out
        "bytes_in_flight_mean": 3 * MSS,
        "segments_acked_sum": 13,
        "segments_acked_mean": 1,
        "rtt_mean_s": (0.020052 + 0.021552 + 0.023052 + 0.024552 + 9 * 0.02) / 13,
        "rtt_min_s": 0.02,
        "send_interval_mean_s": (0.098612 - 0.01856) / 16,  # 17 sent: 16 gaps
        "receive_interval_mean_s": (0.098612 - 0.038612) / 12,  # 13 ACKs: 12 gaps
        "throughput_bps": 13 * MSS * 8 / 0.1,
        "goodput_bps": 16 * MSS * 8 / 0.1,
        "packets_sent": 17,
        "packets_lost": 0,
        "packets_retransmitted": 0,
        "acks": 13,
        "timeouts": 0,
        "in_flight_bytes": 4 * MSS,
        "rtt_min_ever_s": 0.02,
        # Waited: the first window's 0.052, 1.552, 3.052, 4.552 ms. Passed: SYN, last ACK of the handshake, 17 segments.
        "queue_delay_mean_s": (0.052 + 1.552 + 3.052 + 4.552) * 1e-3 / 19,
        "queue_packets": 0,
        "queue_drops": 0,
    }
    assert first.keys() == expected.keys()
    for name, value in expected.items():
        assert first[name] == pytest.approx(value, rel=1e-6, nan_ok=True), name


def test_later_intervals():
    """20 segments and ACKs in each. Gaps count from the last one before the interval: 98.612 to 198.612 ms is 20 gaps."""
    (_, second, third), _, _ = played(world(), 3)
    for telemetry in (second, third):
        for name in ("acks", "packets_sent", "segments_acked_sum"):
            assert telemetry[name] == 20
        for name in ("send_interval_mean_s", "receive_interval_mean_s"):
            assert telemetry[name] == pytest.approx(0.1 / 20, rel=1e-6)
        assert telemetry["rtt_mean_s"] == telemetry["rtt_min_s"] == telemetry["rtt_min_ever_s"] == pytest.approx(0.02, rel=1e-6)
        assert telemetry["throughput_bps"] == telemetry["goodput_bps"] == pytest.approx(20 * MSS * 8 / 0.1, rel=1e-6)
        assert telemetry["queue_delay_mean_s"] == 0


def test_an_interval_without_anything():
    """At 20 ms: SYN, its answer, four segments sent at one instant, of which none has arrived."""
    (first, *_), _, _ = played(world(), 1, interval_s=0.02)
    assert first["packets_sent"] == 4 and first["in_flight_bytes"] == 4 * MSS and first["acks"] == 0
    assert first["send_interval_mean_s"] == 0  # three gaps of nothing
    for name in ("rtt_mean_s", "rtt_min_s", "rtt_min_ever_s", "bytes_in_flight_mean", "receive_interval_mean_s"):
        assert math.isnan(first[name]), name
    assert first["throughput_bps"] == first["goodput_bps"] == 0
    # One segment is in service (until 20.112 ms) and three wait; that one and the handshake's last ACK have left the queue.
    assert first["queue_packets"] == 3


def test_one_ack_makes_no_gap():
    """By 39 ms one ACK has come: a mean of no gaps is not a number. By 78 ms two: one gap."""
    (first, second), _, _ = played(world(cwnd=2), 2, interval_s=0.039)
    assert first["acks"] == 1 and math.isnan(first["receive_interval_mean_s"])
    # 40.112, 58.612, 60.112 and then 78.612 is too late; the gaps count from 38.612 on.
    assert second["acks"] == 3 and second["receive_interval_mean_s"] == pytest.approx((0.060112 - 0.038612) / 3, rel=1e-5)


def test_the_report():
    """1 s: 48 windows of four segments acknowledged by 1 s and one ACK more, 196 segments delivered."""
    _, info, report = played(world(), 10)
    acks = acks_until(1.0)
    delivered = len([time for time in acks_until(1.1) if time - 0.0085 <= 1.0])
    assert (len(acks), delivered) == (193, 196)
    goodput_mbps = 196 * MSS * 8e-6
    mean_rtt_ms = 20 + (0.052 + 1.552 + 3.052 + 4.552) / 193
    passed = 2 + 4 + 193  # SYN and last ACK of the handshake, and every segment: none waits at the end
    expected = {
        "goodput_mbps": goodput_mbps,
        "mean_rtt_ms": mean_rtt_ms,
        "base_rtt_ms": 20.0,
        "queue_delay_mean_ms": (0.052 + 1.552 + 3.052 + 4.552) / passed,
        "loss_rate": 0.0,
        "utility": 0.5 * math.log(goodput_mbps / 8) - 0.5 * math.log(mean_rtt_ms / 20),
        "Mt": math.log10(mean_rtt_ms - 20) - math.log10(goodput_mbps),
        "timeouts": 0,
        "duration_s": 1.0,
    }
    for name, value in expected.items():
        assert report[name] == pytest.approx(value, rel=1e-9), name
        assert info[name] == report[name], name


def test_a_report_of_nothing():
    """By 30 ms nothing was acknowledged: no RTT; what was not delivered counts as one segment."""
    _, _, report = played(world(), 1, interval_s=0.01)
    assert report["goodput_mbps"] == 0 and math.isnan(report["mean_rtt_ms"]) and report["loss_rate"] == 0
    assert math.isnan(report["utility"]) and math.isnan(report["Mt"])
    assert report["duration_s"] == pytest.approx(0.01)


def test_loss_rate_counts_full_queues():
    """A window of 12 into a queue of 5: behind the handshake's ACK 5 segments fit, 7 are dropped at once."""
    telemetry, _, report = played(world(cwnd=12, bottleneck={"queue_packets": 5}), 1, interval_s=0.03)
    assert telemetry[0]["queue_drops"] == 7
    assert telemetry[0]["packets_sent"] == 12 and report["loss_rate"] == pytest.approx(7 / 12)


@pytest.mark.parametrize("seed", range(4))
def test_loss_rate_counts_random_losses(seed):
    """No queue is ever full here: what is sent again was lost at random, and no more was than that and the last window."""
    env = environment(world(bottleneck={"loss": 0.05}, duration_s=10.0))
    env.reset(seed=seed)
    sent = again = 0
    for _ in range(100):
        env.step(KEEP)
        telemetry = env.unwrapped.telemetry
        sent, again = sent + telemetry["packets_sent"], again + telemetry["packets_retransmitted"]
        assert telemetry["queue_drops"] == 0
    lost = env.unwrapped.report()["loss_rate"] * sent
    assert lost == pytest.approx(round(lost), abs=1e-6)
    assert 20 < again and again <= round(lost) <= again + 4


def test_both_kinds_of_loss_add_up():
    """Every second segment is lost on the way, by a Gilbert-Elliott channel that is always good or bad in turn."""
    bad = nb.scenarios.GilbertElliott(p_good_to_bad=1.0, p_bad_to_good=1.0, loss_good=0.0, loss_bad=1.0)
    scenario = world(cwnd=12, bottleneck={"queue_packets": 5, "gilbert_elliott": bad})
    _, _, report = played(scenario, 1, interval_s=0.035)
    # 7 of 12 at the queue; of the 5 that pass, the 2nd and 4th or the 1st, 3rd and 5th.
    assert report["loss_rate"] * 12 == pytest.approx(7 + 2) or report["loss_rate"] * 12 == pytest.approx(7 + 3)


# ---- ends of episodes


@pytest.mark.parametrize(
    ("duration_s", "interval_s", "steps"),
    [(1.0, 0.1, 10), (1.05, 0.1, 11), (0.95, 0.1, 10), (0.3, 0.1, 3), (0.3, 0.2, 2), (0.05, 0.1, 1), (0.7, 0.07, 10)],
)
def test_the_last_interval_is_whole(duration_s, interval_s, steps):
    env = environment(world(duration_s=duration_s), interval_s=interval_s)
    env.reset(seed=1)
    for step in range(1, steps + 1):
        *_, terminated, truncated, info = env.step(KEEP)
        assert not terminated and truncated == (step == steps), step
    assert info["duration_s"] == pytest.approx(steps * interval_s)
    assert steps * interval_s >= duration_s - 1e-9 > (steps - 1) * interval_s - 1e-9


@pytest.mark.parametrize(("most", "steps"), [(1, 1), (4, 4), (11, 11), (12, 11)])
def test_max_episode_steps_ends_earlier_and_never_later(most, steps):
    scenario = world(duration_s=1.05).to_dict()
    envs = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=2, scenario=scenario, max_episode_steps=most)
    envs.reset(seed=1)
    for step in range(1, 2 * steps + 1):
        *_, truncated, info = envs.step(np.zeros(2, int))
        assert truncated.tolist() == [step % steps == 0] * 2, step
        if truncated.any():
            assert info["final_info"]["duration_s"].tolist() == pytest.approx([0.1 * steps] * 2)


def test_max_episode_steps_of_the_scalar_environment():
    env = environment(world(duration_s=1.05), max_episode_steps=3)
    env.reset(seed=1)
    assert [env.step(KEEP)[3] for _ in range(3)] == [False, False, True]


# ---- bounds of the window


def bounds(scenario):
    """The least and the largest window, in bytes, that many cuts and many doublings come to."""
    env = gym.make("netbuf/CongestionWindow-v0", scenario=scenario.to_dict(), clamp="path")
    env.reset(seed=1)
    windows = []
    for action in [10] * 12 + [0] * 12:
        env.step(action)
        windows.append(env.unwrapped.telemetry["cwnd_bytes"])
    return windows[-1], max(windows)


@pytest.mark.parametrize(
    ("limits", "buffer_packets"),
    [
        ({"queue_packets": 50}, 50),
        ({"queue_packets": None, "queue_bytes": 60_000}, 40),
        ({"queue_packets": 50, "queue_bytes": 30_000}, 20),
        ({"queue_packets": 10, "queue_bytes": 60_000}, 10),
    ],
)
def test_a_window_is_bounded_by_path_and_buffer(limits, buffer_packets):
    """8 Mbit/s times 18.5 ms of propagation are 18,500 bytes, in segments of 1500 on the wire. Twice that and the buffer."""
    low, high = bounds(world(bottleneck=limits))
    assert low == 2 * MSS
    assert high == int(2 * (18_500 / WIRE + buffer_packets) * MSS)  # whole bytes


@pytest.mark.parametrize(("limits", "buffer_packets"), [({}, 50), ({"queue_packets": None, "queue_bytes": 75_200}, 100)])
def test_a_window_counts_in_segments_of_the_world(limits, buffer_packets):
    """700 bytes of payload are 752 on the wire."""
    small = world(mss_bytes=700, bottleneck=limits)
    low, high = bounds(small)
    assert low == 2 * 700
    assert high == int(2 * (18_500 / 752 + buffer_packets) * 700)


def test_small_segments_from_the_first_decision_on():
    """The window starts at the flow's initial one, in the world's segments, and keeping it keeps it."""
    env = environment(world(mss_bytes=700))
    env.reset(seed=1)
    env.step(KEEP)
    telemetry = env.unwrapped.telemetry
    assert telemetry["cwnd_bytes"] == telemetry["in_flight_bytes"] == 4 * 700 and telemetry["mss_bytes"] == 700
    assert env.unwrapped.engine.show(0)["cwnd_packets"] == pytest.approx(4)
    for _ in range(9):
        *_, info = env.step(KEEP)
    # Segments arrive 18.56 + 0.052 + 0.752 k + 10 ms after the start, k = 1 to 4, and every 10 + 8.5 + 0.752 ms from then on.
    first = [0.028612 + 0.000752 * k for k in (1, 2, 3, 4)]
    delivered = sum(math.floor((1.0 - time) / 0.019252) + 1 for time in first)
    assert info["goodput_mbps"] == pytest.approx(delivered * 700 * 8e-6, rel=1e-9)
    assert info["base_rtt_ms"] == pytest.approx(19.252)


# ---- beside others


def test_telemetry_of_the_bottleneck_counts_what_others_do_there():
    """A second flow of a window of 30 starts at 0.5 s: the queue holds what it sent. What it loses is its own."""
    other = Flow(cc="cubic", path=(0,), return_path=(1,), initial_cwnd_packets=30, start_s=0.5)
    telemetry, _, _ = played(world(other, bottleneck={"queue_packets": 20}), 6)
    before, after = telemetry[4], telemetry[5]
    assert before["queue_drops"] == 0 and before["queue_delay_mean_s"] == 0
    # Its handshake is over at 518.56 ms; within the burst at most 20 wait and one is in service: 9 or 8 are dropped.
    alone, _, _ = played(world(bottleneck={"queue_packets": 20}), 6)
    assert alone[5]["queue_drops"] == 0 and alone[5]["queue_delay_mean_s"] == 0
    assert after["queue_drops"] == 0
    # 21 segments wait for 0 to 30 ms, the mean over those that leave is some 10 ms; the agent's few wait too.
    assert 0.005 < after["queue_delay_mean_s"] < 0.03
    assert after["rtt_mean_s"] > alone[5]["rtt_mean_s"] + 0.002


def test_queue_drops_are_those_of_the_flow_at_all_links_of_its_path():
    """30 segments at once: 20 wait at the first link behind the last ACK of the handshake. At the second are others, too."""
    links = [
        Link(name="first", rate_mbps=8, delay_ms=5, queue_packets=20),
        Link(name="second", rate_mbps=10, delay_ms=5, queue_packets=3),
        Link(name="back", delay_ms=8.5),
    ]
    agent = Flow(cc="agent", path=("first", "second"), return_path=("back",), initial_cwnd_packets=30)
    other = Flow(cc="cubic", path=("second",), return_path=("back",), initial_cwnd_packets=30, start_s=0.2)
    env = environment(Scenario(links=links, flows=[agent, other], duration_s=2))
    env.reset(seed=1)
    drops = []
    for _ in range(10):
        env.step(KEEP)
        drops.append(env.unwrapped.telemetry["queue_drops"])
    world = env.unwrapped.engine.plant.world(0)
    first, second, _ = (link["queue_drops"] for link in world.link_stats())
    agents, others = (flow["queue_drops"] for flow in world.flow_stats())
    assert sum(drops) == agents and agents + others == first + second
    assert drops[0] == 10 and agents > first > 9 and others > 10


def test_the_fair_share_is_that_of_the_senders_own_path():
    """Two agents on links of their own, 8 and 2 Mbit/s, three other flows beside the second: 8 and 0.5 Mbit/s."""
    links = [
        Link(name="bottleneck", rate_mbps=8, delay_ms=10, queue_packets=50),
        Link(name="narrow", rate_mbps=2, delay_ms=10, queue_packets=5),
        Link(name="wide", rate_mbps=100, delay_ms=5),
        Link(name="back", delay_ms=5),
    ]
    mine = Flow(cc="agent", path=("bottleneck", "wide"), return_path=("back",))
    other = Flow(cc="agent", path=("wide", "narrow"), return_path=("back",))
    beside = Flow(cc="cubic", path=("narrow",), return_path=("back",))
    scenario = Scenario(links=links, flows=[mine, other, beside, beside, beside], duration_s=4)
    assert [scenario.fair_share_mbps(i) for i in range(5)] == [8, 0.5, 0.5, 0.5, 0.5]
    assert [scenario.tightest_link(i) for i in range(5)] == [0, 1, 1, 1, 1]
    kwargs = {"scenario": scenario.to_dict(), "num_envs": 2, "senders": 2, "recipe": "ppcc", "reward": "log_utility"}
    env = gym.make_vec("netbuf/CongestionWindow-v0", **kwargs)
    env.reset(seed=1)
    tracker = env.unwrapped.engine.tracker
    assert tracker.capacity_bps.tolist() == [8e6, 2e6] and tracker.share_bps.tolist() == [8e6, 0.5e6]
    full = 8 * MSS * 8 / WIRE / 8
    assert tracker.highest_window / MSS == pytest.approx([2 * (8e6 * 0.02 / 8 / WIRE + 50), 2 * (2e6 * 0.02 / 8 / WIRE + 5)])
    for _ in range(30):
        env.step(np.array([KEEP, KEEP]))
    reports = env.unwrapped.engine.report(0)
    shares = [8, 0.5]
    for report, share_mbps in zip(reports, shares, strict=True):
        x, y = report["goodput_mbps"] / share_mbps, report["mean_rtt_ms"] / report["base_rtt_ms"]
        assert report["utility"] == pytest.approx(0.5 * math.log(x) - 0.5 * math.log(y), rel=1e-9)
    assert reports[0]["queue_delay_mean_ms"] < 10 < reports[1]["queue_delay_mean_ms"]  # each at the slowest link of its path
    assert full > reports[0]["goodput_mbps"] > reports[1]["goodput_mbps"]


def test_an_agent_on_a_path_that_nothing_limits_is_refused():
    links = [Link(name="bottleneck", rate_mbps=8, delay_ms=10), Link(name="free", delay_ms=10), Link(name="back", delay_ms=5)]
    agent = Flow(cc="agent", path=("free",), return_path=("back",))
    other = Flow(cc="cubic", path=("bottleneck",), return_path=("back",))
    with pytest.raises(nb.errors.ConfigError, match=r"flows\[0\]"):
        environment(Scenario(links=links, flows=[agent, other], duration_s=1))


@pytest.mark.parametrize("stack", ["linux", "ns3"])
@pytest.mark.parametrize("mss", [100, 536, 999, 9000])
def test_windows_are_of_the_scenarios_segments(mss, stack):
    """10 segments at first, kept to the byte; bounds of 2 segments, and of twice the path and its buffer."""
    scenario = nb.scenarios.dumbbell(rate_mbps=20, rtt_ms=30, senders=["agent"], duration_s=5, stack=stack)
    scenario = replace(scenario, mss_bytes=mss)
    env = environment(scenario)
    env.reset(seed=1)
    tracker = env.unwrapped.engine.tracker
    assert tracker.cwnd.tolist() == [10 * mss] and tracker.lowest_window.tolist() == [2 * mss]
    bdp_packets = 20e6 * scenario.propagation_rtt_ms() * 1e-3 / 8 / scenario.data_bytes
    assert tracker.highest_window[0] == pytest.approx(2 * (bdp_packets + 150) * mss)
    for _ in range(4):
        env.step(KEEP)
        telemetry = env.unwrapped.telemetry
        assert telemetry["cwnd_bytes"] == telemetry["in_flight_bytes"] == 10 * mss and telemetry["mss_bytes"] == mss
    env.step(10)  # 600 segments' squares over the window
    assert env.unwrapped.telemetry["cwnd_bytes"] == int(min(10 * mss + 600 * mss / 10, tracker.highest_window[0]))
    for _ in range(30):
        env.step(0)
    assert env.unwrapped.telemetry["cwnd_bytes"] == 2 * mss


def test_the_fair_share_is_that_of_all_flows():
    """Two flows: half of 8 Mbit/s each; the utility of the report counts by it."""
    other = Flow(cc="cubic", path=(0,), return_path=(1,))
    _, _, report = played(world(other), 10)
    expected = 0.5 * math.log(report["goodput_mbps"] / 4) - 0.5 * math.log(report["mean_rtt_ms"] / 20)
    assert report["utility"] == pytest.approx(expected, rel=1e-9)


def test_reports_of_a_later_start():
    """The agent starts at 0.5 s: its duration is what is left."""
    links = [Link(name="bottleneck", rate_mbps=8, delay_ms=10, queue_packets=50), Link(name="back", delay_ms=8.5)]
    flow = Flow(cc="agent", path=(0,), return_path=(1,), initial_cwnd_packets=4, start_s=0.5)
    late = Scenario(links=links, flows=[flow], duration_s=1.0, delayed_ack=1)
    _, _, report = played(late, 10)
    delivered = len([time for time in acks_until(0.6) if time - 0.0085 <= 0.5])
    assert report["duration_s"] == pytest.approx(0.5)
    assert report["goodput_mbps"] == pytest.approx(delivered * MSS * 8e-6 / 0.5, rel=1e-9)


# ---- a run without an agent

WAITED_MS = (0.052, 1.552, 3.052, 4.552)
"""What the first window's segments wait; nothing else ever does."""


def simulated(**kwargs):
    """The same exchange: a sender whom the receiver's buffer holds at four segments."""
    links = [Link(name="bottleneck", rate_mbps=8, delay_ms=10, queue_packets=50), Link(name="back", delay_ms=8.5)]
    flow = Flow(cc="newreno", path=(0,), return_path=(1,), initial_cwnd_packets=4, receive_buffer_bytes=4 * MSS)
    return nb.simulate(Scenario(links=links, flows=[flow], duration_s=1.0, delayed_ack=1), seed=1, **kwargs)


def test_totals_of_a_run():
    result = simulated()
    flow, link, back = result.flows[0], result.links["bottleneck"], result.links["back"]
    assert (flow.packets_sent, flow.acks_received, flow.delivered_bytes) == (197, 193, 196 * MSS)
    assert flow.goodput_mbps == pytest.approx(196 * MSS * 8e-6)
    assert flow.rtt_mean_ms == pytest.approx(20 + sum(WAITED_MS) / 193) and flow.rtt_min_ms == pytest.approx(20)
    assert (flow.packets_retransmitted, flow.queue_drops, flow.random_losses, flow.timeouts, flow.fast_recoveries) == (0,) * 5
    assert math.isnan(flow.completion_s)
    # SYN, the handshake's last ACK, and 197 segments have left the queue; SYN/ACK and 196 ACKs of what arrived went back.
    wire = 60 + 52 + 197 * WIRE - 112  # of the last one 112 bytes are still to be sent: it began after 888 of a millisecond
    assert (link.packets_in, link.packets_out, link.queue_drops, link.queue_max_packets_total) == (199, 199, 0, 4)
    assert link.throughput_mbps == pytest.approx(wire * 8e-6) and link.utilisation == pytest.approx(wire * 8e-6 / 8)
    mean = sum(WAITED_MS) / 199
    assert link.queue_delay_mean_ms == pytest.approx(mean)
    assert link.queue_delay_std_ms == pytest.approx(math.sqrt(sum(w * w for w in WAITED_MS) / 199 - mean * mean))
    assert link.queue_mean_packets == pytest.approx(sum(WAITED_MS) / 1000)
    assert back.packets_out == 197 and back.throughput_mbps == pytest.approx((60 + 196 * 52) * 8e-6)
    assert math.isnan(back.utilisation)


def test_totals_after_a_warm_up():
    """From 100 ms to 1 s: 180 of everything, and nothing waits any more."""
    result = simulated(warmup_s=0.1)
    flow, link = result.flows[0], result.links["bottleneck"]
    assert (flow.packets_sent, flow.acks_received, flow.delivered_bytes) == (180, 180, 180 * MSS)
    assert flow.goodput_mbps == pytest.approx(180 * MSS * 8e-6 / 0.9) and flow.rtt_mean_ms == pytest.approx(20)
    assert (link.packets_out, link.queue_delay_mean_ms, link.queue_mean_packets) == (180, 0, 0)
    assert link.utilisation == pytest.approx(180 * WIRE * 8e-6 / 0.9 / 8)
    assert (flow.packets_sent_total, link.queue_max_packets_total) == (197, 4)


def test_series_of_a_run():
    series = {name: np.asarray(values) for name, values in simulated(sample_interval_s=0.1).series.items()}
    assert series["time_s"].ravel() == pytest.approx(np.arange(1, 11) / 10)
    first = {  # 112 bytes of the last segment are sent in the next interval, which leaves as many
        "goodput_mbps": 16 * MSS * 8e-6 / 0.1,
        "throughput_mbps": 17 * WIRE * 8e-6 / 0.1,
        "queue_delay_ms": sum(WAITED_MS) / 19,
    }
    later = {
        "rtt_ms": 20,
        "in_flight_packets": 4,
        "goodput_mbps": 20 * MSS * 8e-6 / 0.1,
        "throughput_mbps": 20 * WIRE * 8e-6 / 0.1,
        "queue_delay_ms": 0,
        "queue_packets": 0,
        "queue_drops": 0,
    }
    for name, value in (later | first).items():
        assert series[name].reshape(10, -1)[0, 0] == pytest.approx(value), name
    for name, value in later.items():
        assert series[name].reshape(10, -1)[1:, 0] == pytest.approx(value), name
    assert np.isnan(series["ssthresh_packets"]).all() and np.isnan(series["pacing_mbps"]).all()
    # Of each round trip an eighth: 13 ACKs in the first interval, four of them late, 20 in each later one.
    srtt = 18.56
    for rtt in [*(20 + w for w in WAITED_MS), *[20] * 9]:
        srtt += (rtt - srtt) / 8
    assert series["srtt_ms"].ravel()[0] == pytest.approx(srtt, rel=1e-5)
    assert series["srtt_ms"].ravel()[1] == pytest.approx(20 + (srtt - 20) * (7 / 8) ** 20, rel=1e-5)


def test_a_finite_flow_by_hand():
    """3000 bytes: 1448, 1448 and 104, sent at 18.56 ms; the last arrives behind 52 + 1500 + 1500 + 156 bytes, 10 ms later."""
    links = [Link(name="bottleneck", rate_mbps=8, delay_ms=10, queue_packets=50), Link(name="back", delay_ms=8.5)]
    flow = Flow(cc="newreno", path=(0,), return_path=(1,), app=nb.scenarios.Sized(size_bytes=3000))
    result = nb.simulate(Scenario(links=links, flows=[flow], duration_s=1.0, delayed_ack=1), seed=1)
    assert result.flows[0].completion_s == pytest.approx(0.01856 + 0.000052 + 2 * 0.0015 + 0.000156 + 0.01, abs=1e-9)
    assert (result.flows[0].packets_sent, result.flows[0].delivered_bytes) == (3, 3000)
