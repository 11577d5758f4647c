"""Congestion controls in Python: equal to the core's own packet by packet, told what a sender knows, and named when wrong."""

import dataclasses
import functools
import math
import traceback

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import _core
from netbuf_gym.errors import BusyError, ControlError, ScenarioError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import named
from netbuf_gym.scenarios.python_control import OwnControl


class LinuxNewReno:
    """tcp_reno of Linux, as the core has it: packets are counted."""

    def __init__(self):
        self.count = 0

    def __call__(self, ack):
        acked, cwnd, mss, ssthresh = ack.delivered_packets, ack.cwnd_bytes, ack.mss_bytes, ack.ssthresh_bytes
        packets = ack.cwnd_packets
        if cwnd < ssthresh:
            if cwnd + acked * mss <= ssthresh:
                return cwnd + acked * mss
            used = max(ssthresh // mss, packets) - packets
            packets, acked = packets + used, acked - used
            cwnd = packets * mss
        if acked:
            gained = 0
            if self.count >= packets:
                self.count, gained = 0, 1
            self.count += acked
            if self.count >= packets:
                gained += self.count // packets
                self.count %= packets
            if gained:
                cwnd = (packets + gained) * mss
        return cwnd

    def on_loss(self, ack):
        self.count = 0
        return max(ack.cwnd_packets // 2, 2) * ack.mss_bytes


class Ns3NewReno:
    """TcpNewReno of ns-3: ACKs are counted, and what is in flight is halved."""

    def __call__(self, ack):
        acked, cwnd, mss = ack.acked_packets, ack.cwnd_bytes, ack.mss_bytes
        if not acked:
            return None
        if cwnd < ack.ssthresh_bytes:
            cwnd, acked = cwnd + mss, acked - 1
        if cwnd >= ack.ssthresh_bytes and acked:
            cwnd += max(mss * mss // cwnd, 1)
        return cwnd

    def on_loss(self, ack):
        return max(2 * ack.mss_bytes, ack.in_flight_bytes // 2)


NEWRENO = {"linux": LinuxNewReno, "ns3": Ns3NewReno}


def dumbbell(*senders, **kwargs):
    world = {"rate_mbps": 10, "rtt_ms": 40, "buffer_packets": 50, "duration_s": 20} | kwargs
    return nb.scenarios.dumbbell(**world, senders=senders)


def everything(scenario, seed=5):
    """Whatever there is to be known of a run, but what its flows' controls are called."""
    result = nb.simulate(scenario, seed)
    flows = [{key: value for key, value in vars(flow).items() if key != "cc"} for flow in result.flows]
    numbers = repr((flows, [vars(link) for link in result.links], result.traffic, result.completions))
    return numbers, {name: np.asarray(values).tobytes() for name, values in result.series.items()}


# ---- equality with the core's


@pytest.mark.slow
@pytest.mark.parametrize("stack", NEWRENO)
@pytest.mark.parametrize("world", [{}, {"loss": 0.01}, {"loss": 0.1, "duration_s": 60}, {"buffer_packets": 5}, {"rtt_ms": 300}])
def test_newreno_in_python_sends_the_packets_of_the_cores(stack, world):
    python, native = (dumbbell(cc, "cubic", cc, stack=stack, **world) for cc in (NEWRENO[stack], "newreno"))
    assert everything(python) == everything(native)


@pytest.mark.parametrize("stack", NEWRENO)
def test_finite_flows_of_traffic(stack):
    world = nb.scenarios.get("rlbm/cubic-500-0.6", duration_s=60.0).with_scheme("dt")
    world = dataclasses.replace(world, stack=stack).with_senders("newreno")
    own = world.with_senders(NEWRENO[stack])
    assert own.has_own_controls and not world.has_own_controls
    a, b = nb.simulate(world, 2), nb.simulate(own, 2)
    assert a.traffic == b.traffic and a.traffic.flows_completed > 20
    assert a.completions["fct_s"].tobytes() == b.completions["fct_s"].tobytes()


def test_runs_are_repeatable_and_flows_apart():
    for cc in (LinuxNewReno, LinuxNewReno(), functools.partial(LinuxNewReno)):
        world = dumbbell(cc, cc, loss=0.005)
        assert everything(world) == everything(world) == everything(dumbbell("newreno", "newreno", loss=0.005))


# ---- the protocol


def test_a_function_owns_its_window():
    seen = []

    def twenty(ack):
        seen.append((ack.cwnd_bytes, ack.in_flight_bytes, ack.state))
        return 20 * ack.mss_bytes

    result = nb.simulate(dumbbell(twenty, buffer_packets=None, duration_s=5), sample_interval_s=None)
    assert len(seen) == result.flows[0].acks_received  # nothing was lost, so that every ACK delivered something
    assert {cwnd for cwnd, *_ in seen[1:]} == {20 * 1448}
    assert result.flows[0].goodput_mbps == pytest.approx(20 * 1448 * 8 / 0.0424 * 1e-6, rel=0.05)
    lossy = nb.simulate(dumbbell(lambda ack: 20 * ack.mss_bytes, loss=0.02), sample_interval_s=0.01)
    windows = lossy.series["cwnd_packets"][10:, 0]
    assert (windows == 20).mean() > 0.9 and lossy.flows[0].fast_recoveries > 5  # losses leave the window


def test_what_is_told():
    events = []

    class Listening:
        wants_rate = True

        def start(self, ack):
            events.append(("start", ack))

        def __call__(self, ack):
            events.append(("ack", ack))
            return min(2 * ack.cwnd_bytes, 60 * ack.mss_bytes)

        def on_loss(self, ack):
            events.append(("loss", ack))

        def on_timeout(self, ack):
            events.append(("timeout", ack))

    result = nb.simulate(dumbbell(Listening, loss=0.2, buffer_packets=20, duration_s=30), 3)
    kinds = [kind for kind, _ in events]
    flow = result.flows[0]
    assert kinds[0] == "start" and kinds.count("start") == 1
    assert kinds.count("timeout") == flow.timeouts > 0 and kinds.count("loss") >= flow.fast_recoveries > 0
    times = [ack.time_s for _, ack in events]
    assert times == sorted(times) and 0.04 <= times[0] < times[-1] <= 30
    acks = [ack for kind, ack in events if kind == "ack"]
    assert {ack.state for ack in acks} <= {"open", "disorder", "loss"}
    for ack in acks:
        assert ack.mss_bytes == 1448 and ack.delivered_packets >= 0 and ack.acked_bytes <= ack.acked_packets * 1448
        assert ack.rtt_s is None or 0.04 <= ack.min_rtt_s <= ack.rtt_s < 1
        assert ack.cwnd_packets == ack.cwnd_bytes // 1448 and ack.ssthresh_bytes <= 2**40
        assert ack.in_flight_bytes == ack.in_flight_packets * 1448 and ack.cwnd_limited in (True, False)
        assert ack.delivered_packets_total >= ack.delivered_packets and ack.lost_packets_total >= ack.lost_packets
    rates = [ack.delivery_rate_bps for ack in acks if ack.delivery_rate_bps is not None]
    assert rates and 1e4 < np.median(rates) < 12e6
    assert any(ack.rtt_s is None for ack in acks) or any(ack.rtt_s for ack in acks)
    quiet = []
    nb.simulate(dumbbell(lambda ack: quiet.append(ack.delivery_rate_bps), duration_s=1))
    assert set(quiet) == {None}


@pytest.mark.parametrize("hooks", [True, False])
@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_wanting_rates_changes_no_call(stack, hooks):
    def run(wants):
        calls, rates = [], []

        class Aimd:
            wants_rate = wants
            owns_window = not hooks

            def __call__(self, ack):
                calls.append((ack.time_s, ack.acked_packets, ack.rtt_s, ack.lost_packets, ack.state))
                if ack.delivery_rate_bps is not None:
                    rates.append(ack.delivery_rate_bps)
                return ack.cwnd_bytes + ack.mss_bytes * ack.acked_bytes // ack.cwnd_bytes if hooks else 30 * ack.mss_bytes

            def on_loss(self, ack):
                return max(2 * ack.mss_bytes, ack.in_flight_bytes // 2)

        return nb.simulate(dumbbell(Aimd, loss=0.03, stack=stack)).flows[0].goodput_mbps, calls, rates

    plain, rated = run(False), run(True)
    assert plain[:2] == rated[:2] and not plain[2]
    assert len(rated[2]) > 100 and max(rated[2]) < 1.05 * 10e6  # no rate beyond the link's


def test_an_event_keeps_what_it_told():
    kept = []
    nb.simulate(dumbbell(lambda ack: kept.append((ack, ack.time_s, ack.cwnd_bytes)), duration_s=1))
    assert all((ack.time_s, ack.cwnd_bytes) == (time_s, cwnd) for ack, time_s, cwnd in kept) and len(kept) > 10


def test_pacing():
    paced = nb.simulate(dumbbell(lambda ack: (100 * ack.mss_bytes, 4e6), rate_mbps=50, buffer_packets=200))
    assert paced.flows[0].goodput_mbps == pytest.approx(4, rel=0.05) and paced.links["bottleneck"].queue_max_packets_total < 20
    with pytest.raises(ControlError, match="own controls do not pace in the ns3 stack"):
        nb.simulate(dumbbell(lambda ack: (None, 4e6), stack="ns3"))


def test_a_window_of_one_segment_is_one():
    result = nb.simulate(dumbbell(lambda ack: ack.mss_bytes, duration_s=5))
    assert result.series["cwnd_packets"][-1, 0] == 1 and result.flows[0].goodput_mbps > 0.1


# ---- what goes wrong


NONSENSE = [math.nan, math.inf, -3, 0, 1, 1447, 2.0**41, "20000", True, [1], (1, 2, 3), (-1, None), object(), 1j]


@pytest.mark.parametrize("value", NONSENSE)
def test_nonsense_is_named(value):
    def hasty(ack):
        return value

    valid = r"valid: 1448 bytes \(one segment\) to 2\*\*40, or None"
    with pytest.raises(ControlError, match=rf"congestion control hasty: the call gave .*{valid}"):
        nb.simulate(dumbbell(hasty))


@pytest.mark.parametrize("rate", [math.nan, 0, -1, "fast"])
def test_nonsense_of_a_pacing_rate(rate):
    with pytest.raises(ControlError, match=r"pacing rate = .*valid: 1 to 1e15 bit/s"):
        nb.simulate(dumbbell(lambda ack: (None, rate)))


@pytest.mark.parametrize("value", ["much", 1447])
def test_nonsense_of_on_loss(value):
    class Sure:
        def __call__(self, ack):
            return None

        def on_loss(self, ack):
            return value

    with pytest.raises(ControlError, match=f"Sure: on_loss gave {value!r}; valid: 1448 bytes"):
        nb.simulate(dumbbell(Sure, loss=0.05))


def test_what_cannot_be_called_with_an_ack_is_named_with_its_file():
    class Odd:
        def __call__(self, ack, more):
            return None

    class Loss:
        def __call__(self, ack):
            return None

        def on_loss(self):
            return None

    here = rf"\({__file__}:\d+\) cannot be called with an ACK"
    for control, said in {
        Odd: r"Odd: Odd.__call__\(ack, more\)",
        Odd(): r"Odd: Odd.__call__\(ack, more\)",
        Loss: r"Loss: Loss.on_loss\(\)",
        dumbbell: None,
        functools.partial(lambda gain, ack: None, 3): None,
        functools.wraps(Odd.__call__)(lambda *arguments: None): None,
    }.items():
        if said is None:
            OwnControl(control).make()
            continue
        with pytest.raises(ControlError, match=f"congestion control {said} {here}"):
            nb.simulate(dumbbell(control))


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyError, ZeroDivisionError, SystemExit, KeyboardInterrupt])
def test_what_it_raises_comes_out_with_its_traceback(kind):
    def broken(ack):
        if ack.time_s > 1:
            raise kind("my own mistake")

    world = Simulator(dumbbell(broken), 1)
    with pytest.raises(kind, match="my own mistake") as caught:
        world.run(10**10)
    assert "broken" in "".join(traceback.format_tb(caught.value.__traceback__)) and type(caught.value) is kind
    with pytest.raises(nb.errors.SimulatorFault, match="in the middle of an event"):
        world.run(10**10)
    assert 1 <= world.now_ns * 1e-9 < 2 and world.flow_stats()
    with pytest.raises(kind):
        nb.simulate(dumbbell(broken))


def test_a_class_that_does_not_start():
    class Needy:
        def __init__(self, gain):
            self.gain = gain

        def __call__(self, ack):
            return self.gain * ack.mss_bytes

    with pytest.raises(TypeError, match="gain"):
        nb.simulate(dumbbell(Needy))
    assert nb.simulate(dumbbell(functools.partial(Needy, 10))).flows[0].cc == "Needy"
    assert nb.simulate(dumbbell(Needy(10))).flows[0].goodput_mbps > 1


@pytest.mark.parametrize(
    ("cc", "message"),
    [
        (5, "flow.cc = 5; valid: a name"),
        (object, "its objects cannot be called; valid: a class with __call__"),
        (object(), "flow.cc = <object"),
        ("Gentle", "'Gentle'"),
    ],
)
def test_what_is_no_control(cc, message):
    with pytest.raises(ScenarioError, match=message):
        dumbbell(cc)


def test_what_has_hooks_of_the_wrong_kind():
    class Odd:
        on_loss = 5

        def __call__(self, ack):
            return None

    with pytest.raises(ControlError, match="Odd: on_loss = 5; valid: a method"):
        nb.simulate(dumbbell(Odd))
    Odd.on_loss, Odd.owns_window = None, "yes"
    with pytest.raises(ControlError, match="owns_window = 'yes'; valid: True or False"):
        nb.simulate(dumbbell(Odd))


def test_no_file_holds_it():
    world = dumbbell(LinuxNewReno, "cubic")
    with pytest.raises(ScenarioError, match=r"cc = LinuxNewReno is the user's code, .*; valid here: .*by its name"):
        world.to_dict()
    assert world.with_senders("newreno").to_dict()


# ---- worlds within worlds


def test_a_control_may_simulate_another_world_but_not_run_its_own():
    other = nb.scenarios.dumbbell(duration_s=0.5)
    worlds = []

    def curious(ack):
        if not worlds:
            return None
        assert nb.simulate(other).flows
        with pytest.raises(BusyError, match="called from within"):
            worlds[0].run(10**10)
        with pytest.raises(BusyError):
            worlds[0].flow_stats()
        worlds.clear()
        return None

    world = Simulator(dumbbell(curious), 1)
    world.run(10**8)
    worlds.append(world)
    world.run(10**9)
    assert not worlds


@pytest.fixture
def own_names(monkeypatch):
    """Scenarios that a test registers are forgotten after it."""
    monkeypatch.setattr(named, "_REGISTRY", dict(named._REGISTRY))


def test_rivals_of_an_agent(own_names):
    name = "own-rival-of-an-agent"
    nb.scenarios.register(name, lambda *, python=False: dumbbell("agent", *[LinuxNewReno if python else "newreno"] * 2))

    def play(python, threads):
        scenario = {"name": name, "python": python}
        env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=4, threads=threads, scenario=scenario)
        seen = [env.reset(seed=1)[0]]
        for step in range(40):
            seen += env.step(np.full(4, step % 10))[:2]
        env.close()
        return b"".join(part.tobytes() for part in seen)

    assert play(False, 1) == play(True, 1) == play(True, 2) == play(True, 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_broken_rival_ends_the_step_with_its_traceback(threads, own_names):
    name = f"own-broken-rival-{threads}"

    def late(ack):
        if ack.time_s > 1:
            raise RuntimeError("my own mistake")

    nb.scenarios.register(name, lambda: dumbbell("agent", late))
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=4, threads=threads, scenario=name)
    env.reset(seed=1)
    with pytest.raises(RuntimeError, match="my own mistake") as caught:
        for _ in range(40):
            env.step(np.full(4, 5))
    assert type(caught.value) is RuntimeError
    with pytest.raises(gym.error.ClosedEnvironmentError):
        env.step(np.full(4, 5))
    env.reset(seed=1)
    env.step(np.full(4, 5))


def test_names():
    assert [OwnControl(cc).name for cc in (LinuxNewReno, LinuxNewReno(), functools.partial(LinuxNewReno), max)] == [
        "LinuxNewReno",
        "LinuxNewReno",
        "LinuxNewReno",
        "max",
    ]
    assert "LinuxNewReno" in str(nb.simulate(dumbbell(LinuxNewReno, duration_s=1)).flows[0].cc)
    assert not hasattr(_core.AckEvent, "queue_packets")  # nothing that only the network knows


def test_rivals_in_a_scenario_given_as_it_is():
    world = dumbbell("agent", LinuxNewReno, duration_s=2.0)
    like = world.with_senders(["agent", "newreno"])
    env, native = (gym.make("netbuf/CongestionWindow-v0", scenario=one) for one in (world, like))
    for made in (env, native):
        made.reset(seed=3)
    for step in range(20):
        (a, *rest), (b, *other) = env.step(step % 10), native.step(step % 10)
        assert np.array_equal(a, b) and rest[:3] == other[:3]
    reports = [
        nb.rollout.evaluate("cubic", task="congestion_window", scenario=one, seeds=[1, 2], threads=2) for one in (world, like)
    ]
    assert [report["goodput_mbps"] for report in reports[0]] == [report["goodput_mbps"] for report in reports[1]]
