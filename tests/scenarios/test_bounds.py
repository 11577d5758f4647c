"""Where scenarios draw the line: for every range that a docstring states, both ends are good and what lies beyond is not."""

import math
from dataclasses import fields

import numpy as np
import pytest

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import DISCIPLINES, GilbertElliott, Link, Mixture, OnOff, RandomDumbbell, Scenario, Sized, Video
from netbuf_gym.scenarios.flows import Flow
from netbuf_gym.scenarios.switches import ABM, DRR, AgentThresholds, DynamicThresholds, StaticThresholds, Switch
from netbuf_gym.scenarios.traffic import FlowList, Incast, PoissonArrivals, Probe, Sender, Traffic
from netbuf_gym.scenarios.udp import UdpSource
from netbuf_gym.simulation import simulate

UP, DOWN = math.inf, -math.inf
MOST = 2**40
PATHS = {"path": (0,), "return_path": (0,)}
LINK = Link(name="bottleneck", rate_mbps=10)
SIZES = scenarios.SizeDistribution(name="two", size_bytes=(1000.0, 2000.0), cumulative=(0.0, 1.0))


def above(value):
    return value + 1 if isinstance(value, int) else math.nextafter(value, UP)


def below(value):
    return value - 1 if isinstance(value, int) else math.nextafter(value, DOWN)


def flow_list(**changes):
    columns = {"start_s": 0.0, "sender": 0, "size_bytes": 1, "priority": 0} | changes
    return FlowList(**{name: [value] for name, value in columns.items()})


def in_world(**changes):
    return Scenario(**{"links": [LINK], "flows": [Flow(**PATHS)], "duration_s": 1.0} | changes)


def switch(**changes):
    return Switch(**{"buffer_packets": 10} | changes)


RANGES = [
    # (maker of something with one field, the field, its lowest value, its highest)
    (lambda **k: Link(name="a", **k), "rate_mbps", 1e-6, 1e6),
    (lambda **k: Link(name="a", **k), "delay_ms", 0.0, 1e5),
    (lambda **k: Link(name="a", **k), "queue_packets", 1, MOST),
    (lambda **k: Link(name="a", **k), "queue_bytes", 1, MOST),
    (lambda **k: Link(name="a", **k), "loss", 0.0, below(1.0)),
    (lambda **k: Link(name="a", **k), "device_packets", 0, 1000),
    (lambda **k: Link(name="a", **k), "duplicate", 0.0, 1.0),
    (lambda **k: Link(name="a", **k), "corrupt", 0.0, 1.0),
    *(
        (lambda name=name, **k: GilbertElliott(**{"p_good_to_bad": 0.1, "p_bad_to_good": 0.1} | k), name, 0.0, 1.0)
        for name in ("p_good_to_bad", "p_bad_to_good", "loss_good", "loss_bad")
    ),
    (Sized, "size_bytes", 1, MOST),
    (lambda **k: OnOff(**{"on_s": 1, "off_s": 1} | k), "on_s", 1e-6, 1e6),
    (lambda **k: OnOff(**{"on_s": 1, "off_s": 1} | k), "off_s", 1e-6, 1e6),
    (lambda **k: OnOff(on_s=1, off_s=1, **k), "rate_mbps", 1e-6, 1e6),
    (lambda **k: Video(buffer_s=3600, startup_s=0, **k), "chunk_s", 0.1, 1000.0),
    (lambda **k: Video(startup_s=0, **k), "buffer_s", 4.0, 3600.0),
    *(
        (lambda **k: Video(**k), field, low, high)
        for field, low, high in (
            ("startup_s", 0.0, 30.0),
            ("window_chunks", 1, 1000),
            ("safety", 5e-324, 10.0),
            ("reservoir_s", 0.0, 3600.0),
            ("cushion_s", 0.0, 3600.0),
        )
    ),
    (lambda **k: Flow(**PATHS, **k), "start_s", 0.0, 1e6),
    (lambda **k: Flow(**PATHS, **k), "stop_s", 5e-324, 1e6),
    (lambda **k: Flow(**PATHS, **k), "send_buffer_bytes", 4096, MOST),
    (lambda **k: Flow(**PATHS, **k), "receive_buffer_bytes", 4096, MOST),
    (lambda **k: Flow(**PATHS, **k), "initial_cwnd_packets", 1, 1000),
    (lambda **k: Flow(**PATHS, **k), "priority", 0, 63),
    (lambda **k: Sender(**PATHS, **k), "initial_cwnd_packets", 1, 1000),
    (lambda **k: PoissonArrivals(sizes=SIZES, **k), "flows_per_s", 1e-9, 1e6),
    (lambda **k: PoissonArrivals(sizes=SIZES, flows_per_s=1, **k), "start_s", 0.0, 1e6),
    (lambda **k: PoissonArrivals(sizes=SIZES, flows_per_s=1, **k), "stop_s", 5e-324, 1e6),
    (lambda **k: Incast(fan_in=1, size_bytes=1, **k), "interval_s", 1e-6, 1e6),
    (lambda **k: Incast(interval_s=1, size_bytes=1, **k), "fan_in", 1, 2**20),
    (lambda **k: Incast(interval_s=1, fan_in=1, **k), "size_bytes", 1, MOST),
    (flow_list, "start_s", 0.0, 1e6),
    (flow_list, "sender", 0, 2**20),
    (flow_list, "size_bytes", 1, MOST),
    (flow_list, "priority", 0, 63),
    (flow_list, "flow_id", 0, 2**53),
    (lambda **k: Probe(path=(0,), **k), "priority", 0, 63),
    (lambda **k: Probe(path=(0,), **k), "interval_s", 1e-6, 1e6),
    (lambda **k: Probe(path=(0,), **k), "start_s", 0.0, 1e6),
    (lambda **k: Probe(path=(0,), **k), "bytes", 1, 65535),
    *(
        (lambda **k: UdpSource(**{"path": (0,), "rate_mbps": 1} | k), field, low, high)
        for field, low, high in (
            ("priority", 0, 63),
            ("start_s", 0.0, 1e6),
            ("stop_s", 5e-324, 1e6),
            ("packet_bytes", 1, 65535),
        )
    ),
    (lambda **k: UdpSource(path=(0,), **k), "rate_mbps", 1e-6, 1e6),
    (lambda **k: UdpSource(**{"path": (0,), "rate_mbps": 1, "on_s": 1, "off_s": 1} | k), "on_s", 1e-6, 1e6),
    (lambda **k: UdpSource(**{"path": (0,), "rate_mbps": 1, "on_s": 1, "off_s": 1} | k), "off_s", 1e-6, 1e6),
    (lambda limits: StaticThresholds(limits=(5, limits)), "limits", 0, MOST),
    (lambda alphas: DynamicThresholds(alphas=(1, alphas)), "alphas", 0.0, 1e6),
    (lambda alphas: ABM(alphas=(1, alphas)), "alphas", 0.0, 1e6),
    (lambda alphas: AgentThresholds(alphas=(1, alphas)), "alphas", 0.0, 1e6),
    (lambda betas: AgentThresholds(betas=(1, betas)), "betas", 0.0, 1e6),
    (lambda quanta_bytes: DRR(quanta_bytes=(1, quanta_bytes)), "quanta_bytes", 1, 10**9),
    (switch, "queues", 1, 64),
    (lambda **k: Switch(**k), "buffer_packets", 1, MOST),
    (lambda **k: Switch(**k), "buffer_bytes", 1, MOST),
    (switch, "queue_cap", 1, MOST),
    (in_world, "duration_s", 1e-9, 1e6),
    (in_world, "mss_bytes", 100, 9000),
    (in_world, "min_rto_ms", 1.0, 60_000.0),
    (in_world, "delayed_ack", 1, 1000),
    (lambda **k: RandomDumbbell(**k), "loss_probability", 0.0, 1.0),
    (lambda **k: RandomDumbbell(**k), "change_probability", 0.0, 1.0),
    (lambda **k: RandomDumbbell(**k), "change_factor", 1.0, 1e6),
    (lambda **k: RandomDumbbell(**k), "min_buffer_packets", 1, MOST),
    (scenarios.dumbbell, "rate_mbps", 1e-6, 1e6),
    (scenarios.dumbbell, "rtt_ms", 0.0, 1e5),
    (scenarios.dumbbell, "buffer_packets", 1, MOST),
    (scenarios.dumbbell, "stagger_s", 0.0, 1e6),
    (scenarios.dumbbell, "access_mbps", 1e-6, 1e6),
    (lambda **k: scenarios.dumbbell(rtt_ms=1e5, **k), "access_delay_ms", 0.0, 25_000.0),
    (lambda **k: scenarios.dumbbell(access_delay_ms=2, **k), "rtt_ms", 8.0, 1e5),
    (lambda load: PoissonArrivals.for_load(load, 1e-3, SIZES), "load", 1e-3, 1e3),
]
"""What has no range of its own below its lowest value (`for_load`: less than 1e-9 flows a second) is left out there."""


@pytest.mark.parametrize(("make", "field", "low", "high"), RANGES, ids=lambda value: value if isinstance(value, str) else "")
def test_ranges(make, field, low, high):
    for value in (low, high):
        make(**{field: value})
    for value in {above(high), math.nan} | ({below(low)} if field != "load" else set()):
        with pytest.raises(ScenarioError, match=f"{field}|rtt_ms"):
            make(**{field: value})
    if isinstance(low, int):
        with pytest.raises(ScenarioError, match=field):
            make(**{field: low + 0.5})


def ranges_of(discipline):
    return {p.name: (p.low, p.high) for p in discipline.record.parameters if p.kind not in ("truth", "named")}


@pytest.mark.parametrize("kind", DISCIPLINES)
def test_ranges_of_disciplines(kind):
    """Every parameter has a range, stated in the docstring, holds to it, and has its default within."""
    made = DISCIPLINES[kind]
    doc = made.__doc__.replace("\n", " ")
    for field in fields(made):
        if isinstance(field.default, (bool, str)):
            continue
        low, high = ranges_of(made)[field.name]
        also = {"min_packets": {"max_packets": 1e9}, "max_packets": {"min_packets": 1e-3}}.get(field.name, {})
        if not also:
            made(**{field.name: low}), made(**{field.name: high})
        whole = isinstance(field.default, int)
        for value in (low - 1 if whole else below(float(low)), high + 1 if whole else above(float(high))):
            with pytest.raises(ScenarioError, match=field.name):
                made(**{field.name: value} | also)
        assert field.default is None or low <= field.default <= high
        assert f"{field.name}: " in doc


STATED = {
    "red": {
        "min_packets": (0.001, 1e9), "max_packets": (0.001, 1e9), "weight": (1e-9, 1), "max_probability": (1e-9, 1),
        "target_ms": (0.01, 1e4), "adapt_ms": (1, 1e5), "mean_packet_bytes": (1, 65536),
    },
    "codel": {"target_ms": (0.01, 1e4), "interval_ms": (0.1, 1e5), "mtu_bytes": (0, 65536), "ce_threshold_ms": (0, 1e4)},
    "fq_codel": {
        "target_ms": (0.01, 1e4), "interval_ms": (0.1, 1e5), "mtu_bytes": (0, 65536), "flows": (1, 65536),
        "quantum_bytes": (64, 1e6), "drop_batch": (1, 1e6), "perturbation": (1, 2**32 - 1), "ce_threshold_ms": (0, 1e4),
    },
    "pie": {
        "target_ms": (0.01, 1e4), "update_ms": (0.1, 1e4), "alpha": (0, 1000), "beta": (0, 1000), "max_burst_ms": (0, 1e4),
        "burst_quiet_s": (0, 1000), "mean_packet_bytes": (1, 65536), "mark_ecnth": (0, 1),
    },
    "fq_pie": {
        "target_ms": (0.01, 1e4), "update_ms": (0.1, 1e4), "alpha": (0, 1000), "beta": (0, 1000), "max_burst_ms": (0, 1e4),
        "burst_quiet_s": (0, 1000), "mean_packet_bytes": (1, 65536), "mark_ecnth": (0, 1), "flows": (1, 65536),
        "quantum_bytes": (64, 1e6), "perturbation": (1, 2**32 - 1),
    },
    "fq": {
        "quantum_bytes": (64, 1e6), "initial_quantum_bytes": (64, 1e7), "flow_limit": (1, 1e6), "refill_delay_ms": (0, 1e5),
        "max_rate_mbps": (1e-3, 1e6), "ce_threshold_ms": (0, 1e4),
    },
    "cake": {
        "rate_mbps": (1e-3, 1e6), "overhead_bytes": (-64, 256), "mpu_bytes": (0, 256), "rtt_ms": (0.01, 3.6e6),
        "target_ms": (1e-3, 1e6), "memory_bytes": (2000, 1e12), "perturbation": (1, 2**32 - 1),
    },
    "dualpi2": {
        "target_ms": (0.01, 1e4), "tupdate_ms": (0.1, 1e4), "alpha": (0, 1000), "beta": (0, 1000), "coupling_factor": (1, 255),
        "step_thresh_ms": (0, 1e4), "min_qlen_step": (0, 1_000_000), "classic_protection_percent": (0, 100),
        "mtu_bytes": (1, 65536),
    },
}  # fmt: skip
DEFAULTS = {
    "red": {  # Floyd's recommendations: maximum 1/50, gentle; 5 ms and 0.5 s of the adaptive variant
        "min_packets": None, "max_packets": None, "weight": None, "max_probability": 0.02, "gentle": True, "wait": False,
        "adaptive": False, "target_ms": 5, "adapt_ms": 500, "mean_packet_bytes": 1500,
        "ecn": True, "hard_drop": True,  # RFC 3168, 7: beyond the maximum packets are dropped
    },
    "codel": {  # RFC 8289, 4.3 and 4.4
        "target_ms": 5, "interval_ms": 100, "mtu_bytes": 1514, "ecn": True, "ce_threshold_ms": None,
    },
    "fq_codel": {  # RFC 8290, 5.2
        "target_ms": 5, "interval_ms": 100, "mtu_bytes": 1514, "flows": 1024, "quantum_bytes": 1514, "drop_batch": 64,
        "perturbation": None, "ecn": True, "ce_threshold_ms": None,
    },
    "pie": {  # RFC 8033, 4.1 and 4.2, section 5 off; alpha and beta in Hz
        "target_ms": 15, "update_ms": 15, "alpha": 0.125, "beta": 1.25, "max_burst_ms": 150, "burst_quiet_s": 0,
        "mean_packet_bytes": 1514, "cap_increase": True, "derandomise": False, "byte_mode": False,
        "ecn": True, "mark_ecnth": 0.1,  # RFC 8033, 5.1
    },
    "fq_pie": {  # as pie; flows and quantum as Linux has them
        "target_ms": 15, "update_ms": 15, "alpha": 0.125, "beta": 1.25, "max_burst_ms": 150, "burst_quiet_s": 0,
        "mean_packet_bytes": 1514, "cap_increase": True, "derandomise": False, "byte_mode": False,
        "ecn": True, "mark_ecnth": 0.1, "flows": 1024, "quantum_bytes": 1514, "perturbation": None,
    },
    "fq": {  # as Linux has it: two packets and ten of 1514 bytes
        "quantum_bytes": 3028, "initial_quantum_bytes": 15140, "flow_limit": 100, "refill_delay_ms": 40, "max_rate_mbps": None,
        "pacing": True, "ce_threshold_ms": None,
    },
    "cake": {  # as Linux has it
        "rate_mbps": None, "overhead_bytes": 0, "mpu_bytes": 0, "framing": "none", "isolation": "triple-isolate",
        "diffserv": "diffserv3", "path": "internet", "rtt_ms": None, "target_ms": None, "ecn": True, "memory_bytes": None,
        "perturbation": None,
    },
    "dualpi2": {  # RFC 9332, appendix A; alpha and beta in Hz; the rest as Linux has it
        "target_ms": 15, "tupdate_ms": 16, "alpha": 0.16, "beta": 3.2, "coupling_factor": 2, "step_thresh_ms": 1,
        "min_qlen_step": 0, "classic_protection_percent": 10, "drop_overload": True, "drop_early": False,
        "mtu_bytes": 1514, "ecn": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", STATED)
def test_disciplines_are_the_rfcs(kind):
    assert STATED[kind] == ranges_of(DISCIPLINES[kind])
    assert {field.name: field.default for field in fields(DISCIPLINES[kind])} == DEFAULTS[kind]


def test_what_must_come_after():
    for make in (lambda **k: Flow(**PATHS, **k), lambda **k: PoissonArrivals(sizes=SIZES, flows_per_s=1, **k)):
        make(start_s=5, stop_s=above(5.0))
        with pytest.raises(ScenarioError, match=r"stop_s = 5 is not after start_s = 5"):
            make(start_s=5, stop_s=5)


def test_intervals_of_random_worlds():
    for field, low, high in (("rate_mbps", 1e-6, 1e6), ("rtt_ms", 1e-3, 1e5), ("buffer_bdp", 1e-3, 1e4), ("loss", 1e-9, 0.999)):
        RandomDumbbell(**{field: (low, low)}), RandomDumbbell(**{field: (low, high)})
        for bad in ((0.0, high), (low, above(high)), (high, low)):
            with pytest.raises(ScenarioError, match=field):
                RandomDumbbell(**{field: bad})
    with pytest.raises(ScenarioError, match=r"rate_mbps\[0\]"):
        RandomDumbbell(rate_mbps=(below(1e-6), 1.0))
    RandomDumbbell(change_interval_s=(0.01, 1e6))
    with pytest.raises(ScenarioError, match=r"change_interval_s\[0\]"):
        RandomDumbbell(change_interval_s=(below(0.01), 1.0))


def test_weights_of_mixtures():
    world = in_world()
    Mixture(parts=(world, world), weights=(0, 1e9))
    for weights in ((0, 0), (-1e-9, 1), (1, above(1e9)), (1,), (1, 1, 1)):
        with pytest.raises(ScenarioError, match="weights"):
            Mixture(parts=(world, world), weights=weights)


def test_a_switch_counts_in_one_unit_and_for_its_queues():
    for bad in ({"buffer_packets": None}, {"buffer_packets": 1, "buffer_bytes": 1}):
        with pytest.raises(ScenarioError, match="of buffer_packets and buffer_bytes is given"):
            Switch(**bad)
    for queues in (1, 3):
        with pytest.raises(ScenarioError, match=f"for 2 queues; valid: {queues}"):
            switch(queues=queues, admission=DynamicThresholds(alphas=(1, 1)))
        with pytest.raises(ScenarioError, match=f"2 quanta for {queues} queues"):
            switch(queues=queues, scheduler=DRR(quanta_bytes=(1, 1)))
    assert switch(queues=3).admission == DynamicThresholds(alphas=(1.0, 1.0, 1.0))
    assert AgentThresholds().betas == AgentThresholds().alphas == (1.0, 1.0)
    with pytest.raises(ScenarioError, match="3 values for 2 betas"):
        AgentThresholds(alphas=(1, 1, 1))


def test_traffic_knows_its_senders_and_priorities():
    def traffic(*arrivals, **changes):
        return Traffic(**{"senders": [Sender(**PATHS)] * 2, "arrivals": arrivals} | changes)

    burst = Incast(interval_s=1, fan_in=2, size_bytes=1)
    traffic(burst), traffic(flow_list(sender=1))
    with pytest.raises(ScenarioError, match=r"fan_in = 3 of 2 senders"):
        traffic(Incast(interval_s=1, fan_in=3, size_bytes=1))
    with pytest.raises(ScenarioError, match=r"sender = 2 is not there; valid: 0..1"):
        traffic(flow_list(sender=2))
    traffic(burst, priority_below=range(1, 64)), traffic(burst, priority_below=[1, MOST])
    for bad in ([0], [MOST + 1], [2, 2], [3, 2], range(1, 65)):
        with pytest.raises(ScenarioError, match="priority_below"):
            traffic(burst, priority_below=bad)
    # Two bounds make three priorities; a list brings its own.
    port = Link(name="port", rate_mbps=10)
    worlds = {"links": [port], "flows": (), "duration_s": 1}
    Scenario(**worlds, traffic=traffic(burst, priority_below=[5]), switches=[switch(ports=(0,), queues=2)])
    Scenario(**worlds, traffic=traffic(flow_list(priority=1), priority_below=[5, 6]), switches=[switch(ports=(0,), queues=2)])
    with pytest.raises(ScenarioError, match="makes 3 priorities for 2 queues"):
        Scenario(**worlds, traffic=traffic(burst, priority_below=[5, 6]), switches=[switch(ports=(0,), queues=2)])
    with pytest.raises(ScenarioError, match="priority = 2 is beyond the 2 queues"):
        Scenario(**worlds, traffic=traffic(flow_list(priority=2)), switches=[switch(ports=(0,), queues=2)])


@pytest.mark.parametrize(
    ("start_s", "stop_s", "flows"), [(0, None, 5_000_000), (4, None, 3_000_000), (2, 3, 500_000), (20, None, 0)]
)
def test_random_arrivals_are_counted_where_they_come(start_s, stop_s, flows):
    """Half a million a second for ten seconds, from `start_s` to `stop_s`: five million are as many as there may be."""
    steady = PoissonArrivals(flows_per_s=500_000, sizes=SIZES, start_s=start_s, stop_s=stop_s)
    bursts = Incast(interval_s=1e-5, fan_in=5, size_bytes=1, start_s=start_s, stop_s=stop_s)
    assert steady.count_expected_flows(10) == pytest.approx(flows) and bursts.count_expected_flows(10) == pytest.approx(flows)
    assert steady.offered_mbps == pytest.approx(500_000 * 1500 * 8e-6) and bursts.offered_mbps == pytest.approx(5e5 * 8e-6)
    for arrivals in (steady, bursts):
        for count in (1, 2):
            made = Traffic(senders=[Sender(**PATHS)] * 5, arrivals=[arrivals] * count)
            if count * flows <= 5_000_000:
                in_world(flows=(), traffic=made, duration_s=10)
            else:
                with pytest.raises(ScenarioError, match=rf"arrivals\[{count - 1}\].* for 5000000 flows"):
                    in_world(flows=(), traffic=made, duration_s=10)


def test_loads_are_shares_of_the_rate():
    """A mean of 1500 bytes: 12,000 bits; half of 12 Mbit/s are 500 flows a second."""
    made = PoissonArrivals.for_load(0.5, 12, SIZES, start_s=1, stop_s=2)
    assert made.flows_per_s == pytest.approx(500) and (made.start_s, made.stop_s) == (1, 2)
    for load, valid in ((2001, "load"), (1e-12, "makes")):
        with pytest.raises(ScenarioError, match=valid):
            PoissonArrivals.for_load(load, 1e-3, SIZES)
    with pytest.raises(ScenarioError, match=r"makes 1e\+07 flows a second of 'two'; valid: 1e-13 to 100"):
        PoissonArrivals.for_load(1000, 120, SIZES)


def test_random_worlds_by_hand():
    """Uniform numbers u give low * (high / low)^u; buffers are multiples of rate times delay, in packets of 1500 bytes."""

    class Known:
        def __init__(self, *numbers):
            self.numbers = list(numbers)

        def random(self, count=None):
            found = [self.numbers.pop(0) for _ in range(count or 1)]
            return np.array(found) if count else found[0]

    space = RandomDumbbell(rate_mbps=(1, 100), rtt_ms=(5, 80), buffer_bdp=(0.25, 4), loss=(1e-4, 1e-2), loss_probability=0.5)
    world = space.sample(Known(0.5, 0.75, 0.5, 0.49, 0.5))
    link = world.links[world.bottleneck]
    assert link.rate_mbps == pytest.approx(10) and world.propagation_rtt_ms() == pytest.approx(40)
    assert link.queue_packets == round(1.0 * 10e6 * 0.04 / 8 / 1500) and link.loss == pytest.approx(1e-3)
    assert space.sample(Known(0.5, 0.75, 0.5, 0.5, 0.5)).links[0].loss == 0
    assert space.sample(Known(0, 0, 0, 0.5, 0.5)).links[0].queue_packets == 2  # never less
    often = {"change_probability": 0.5, "change_interval_s": (4, 16), "change_factor": 4}
    changing = RandomDumbbell(duration_s=20, rate_mbps=(1, 100), **often)
    assert changing.sample(Known(0.5, 0, 0, 1, 0, 0.5)).links[0].rate_mbps == pytest.approx(10)
    # After 8, 4 and 16 s: times 4, over 2, and the end of the world.
    trace = changing.sample(Known(0.5, 0, 0, 1, 0, 0.49, 0.5, 1.0, 0.0, 0.25, 1.0, 0.5)).links[0].trace
    assert trace.time_s.tolist() == pytest.approx([0, 8, 12]) and trace.rate_mbps.tolist() == pytest.approx([10, 40, 20])
    # Up and down no further than the range.
    trace = changing.sample(Known(0.9, 0, 0, 1, 0, 0.49, 0.5, 1.0, 0.5, 1.0, 1, 1)).links[0].trace
    assert trace.rate_mbps.tolist() == pytest.approx([100**0.9, 100, 100])


def test_shares_of_a_mixture():
    parts = tuple(in_world(name=name) for name in "abc")
    mixture = Mixture(parts=parts, weights=(1, 0, 3))
    rng = np.random.default_rng(0)
    drawn = [mixture.sample(rng).name for _ in range(4000)]
    assert "b" not in drawn and abs(drawn.count("a") - 1000) < 110
    even = Mixture(parts=parts)
    assert all(abs([even.sample(rng).name for _ in range(3000)].count(name) - 1000) < 110 for name in "abc")


def crawl(rate_mbps):
    world = scenarios.dumbbell(rate_mbps=rate_mbps, rtt_ms=40, buffer_packets=100, senders=["newreno"], duration_s=1e5)
    return simulate(world, sample_interval_s=None).flows[0]


def test_a_time_out_is_bounded_however_long_a_round_trip_takes():
    flow = crawl(1e-4)
    assert flow.rtt_mean_ms > 1e6 and 0 < flow.timeouts <= 1e5 / 120 and math.isnan(flow.failed_s)


@pytest.mark.parametrize("rate_mbps", [1e-6, 1e-5])
def test_a_link_that_takes_minutes_for_a_handshake_connects_nobody(rate_mbps):
    assert crawl(rate_mbps).failed_s < 1300
