import math
from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import Mixture, RandomDumbbell


def draw(distribution, count=2000):
    rng = np.random.default_rng(7)
    return [distribution.sample(rng) for _ in range(count)]


def test_random_dumbbells_cover_their_ranges_log_uniformly():
    worlds = draw(scenarios.get("ppcc/random"))
    rate = np.array([w.capacity_mbps for w in worlds])
    rtt = np.array([w.propagation_rtt_ms() for w in worlds])
    buffers = np.array([w.buffer_packets for w in worlds])
    loss = np.array([w.links[w.bottleneck].loss for w in worlds])
    for values, low, high in ((rate, 1, 100), (rtt, 5, 200)):
        assert low <= values.min() < low * 1.05 and high / 1.05 < values.max() <= high
        assert np.median(values) == pytest.approx(math.sqrt(low * high), rel=0.12)
    bdp = rate * rtt * 1e3 / 8 / 1500
    large = bdp > 50
    assert 0.24 < (buffers / bdp)[large].min() < 0.3 and 7 < (buffers / bdp)[large].max() < 8.1
    assert buffers.min() == 2
    assert (loss == 0).mean() == pytest.approx(0.5, abs=0.04)
    assert 1e-5 <= loss[loss > 0].min() and loss.max() <= 1e-2
    assert np.median(loss[loss > 0]) == pytest.approx(10**-3.5, rel=0.25)
    assert np.corrcoef(np.log(rate), np.log(rtt))[0, 1] == pytest.approx(0, abs=0.06)


@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_random_dumbbells_are_those_that_dumbbell_makes(stack):
    distribution = RandomDumbbell(
        stack=stack, senders=("cubic", "agent"), stagger_s=2.0, rtt_ms=(8, 90), change_probability=0.5
    )
    for world in draw(distribution, 30):
        bottleneck, back = world.links[:2]
        made = scenarios.dumbbell(
            rate_mbps=bottleneck.rate_mbps,
            trace=bottleneck.trace,
            rtt_ms=world.propagation_rtt_ms(),
            buffer_packets=bottleneck.queue_packets,
            loss=bottleneck.loss,
            senders=distribution.senders,
            stagger_s=2.0,
            stack=stack,
            name="random",
        )
        assert bottleneck.delay_ms == back.delay_ms == pytest.approx(made.links[0].delay_ms, rel=1e-12)
        apart = {"delay_ms": 0.0}  # which the sum over the path rounds
        ours, theirs = ([replace(link, **apart) for link in links] for links in (world.links[:2], made.links[:2]))
        assert ours == theirs
        assert replace(world, links=made.links) == made and world.links[2:] == made.links[2:]


def test_samples_that_no_dumbbell_can_have_are_refused():
    with pytest.raises(ScenarioError, match=r"rtt_ms = 3\.\d+ is less than four access delays; valid: 4 or more"):
        draw(RandomDumbbell(stack="ns3", rtt_ms=(3, 4.5)))
    with pytest.raises(ScenarioError, match=r"buffer_packets = .* is out of range"):
        RandomDumbbell(rate_mbps=1e6, rtt_ms=1e5, buffer_bdp=1e4)


def test_rates_change_in_a_share_of_the_worlds():
    settings = {"change_probability": 0.4, "change_interval_s": [1, 4], "change_factor": 3, "duration_s": 50}
    worlds = draw(scenarios.get("ppcc/random", **settings), 500)
    traces = [w.links[w.bottleneck].trace for w in worlds]
    changing = [trace for trace in traces if trace is not None]
    assert 150 < len(changing) < 250
    for trace in changing:
        assert 50 / 4 - 1 <= len(trace.time_s) <= 50 and trace.time_s[-1] < 50
        gaps, factors = np.diff(trace.time_s), trace.rate_mbps[1:] / trace.rate_mbps[:-1]
        assert gaps.min() >= 1 - 1e-9 and gaps.max() <= 4 + 1e-9
        assert factors.min() >= 1 / 3 - 1e-9 and factors.max() <= 3 + 1e-9
        assert trace.rate_mbps.min() >= 1 and trace.rate_mbps.max() <= 100
    with pytest.raises(ScenarioError, match="change_interval_s"):
        scenarios.get("ppcc/random", change_interval_s=(1e-6, 1))


def test_the_generator_decides_the_world():
    distribution = scenarios.get("ppcc/random", n=2)
    assert distribution.sample(np.random.default_rng(3)) == distribution.sample(np.random.default_rng(3))
    assert distribution.sample(np.random.default_rng(3)) != distribution.sample(np.random.default_rng(4))
    assert len(distribution.sample(np.random.default_rng(3)).flows) == distribution.flows == 2


def test_a_number_fixes_a_range():
    assert {w.capacity_mbps for w in draw(scenarios.get("ppcc/random", rate_mbps=[30, 30]), 5)} == {30}
    assert {w.capacity_mbps for w in draw(scenarios.get("ppcc/random", rate_mbps=30), 5)} == {30}


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rate_mbps": (0, 1)}, r"rate_mbps\[0\] = 0"),
        ({"rate_mbps": (2, 1)}, r"rate_mbps\[1\] = 1"),
        ({"rate_mbps": (1, math.nan)}, r"rate_mbps\[1\] = nan"),
        ({"rate_mbps": (1, 2, 3)}, "rate_mbps = .*valid: a number, or two"),
        ({"rate_mbps": "ab"}, "rate_mbps = 'ab'"),
        ({"rtt_ms": (1, math.inf)}, r"rtt_ms\[1\] = inf"),
        ({"buffer_bdp": (-1, 1)}, r"buffer_bdp\[0\] = -1"),
        ({"loss": (0.1, 1.5)}, r"loss\[1\] = 1.5"),
        ({"senders": []}, "senders is empty"),
        ({"duration_s": -1}, "duration_s = -1"),
        ({"stack": "bsd"}, "stack = 'bsd'"),
        ({"stagger_s": math.nan}, "stagger_s = nan"),
    ],
)
def test_bad_ranges_are_named(kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        RandomDumbbell(**kwargs)


def test_mixture_draws_by_weight():
    a, b = scenarios.get("ppcc/1"), scenarios.get("ppcc/3")
    names = [w.name for w in draw(Mixture(parts=[a, b, scenarios.get("ppcc/random")], weights=[1, 3, 0]), 1000)]
    assert set(names) == {"ppcc/1", "ppcc/3"}
    assert names.count("ppcc/3") / len(names) == pytest.approx(0.75, abs=0.05)
    assert {w.name for w in draw(scenarios.get("ppcc/any"), 100)} == {f"ppcc/{i}" for i in (1, 2, 3, 4)}


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"parts": []}, "parts is empty"),
        ({"parts": ["ppcc/1"]}, r"parts\[0\] = 'ppcc/1' is not a Scenario"),
        ({"parts": [scenarios.get("ppcc/1"), scenarios.get("ppcc/1", n=2)]}, r"parts have \[1, 2\] flows"),
        ({"parts": [scenarios.get("ppcc/1")], "weights": [1, 2]}, "weights has 2 values for 1 parts"),
        ({"parts": [scenarios.get("ppcc/1")], "weights": [0]}, "weights are all 0"),
        ({"parts": [scenarios.get("ppcc/1")], "weights": [math.nan]}, r"weights\[0\] = nan"),
    ],
)
def test_bad_mixtures_are_named(kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        Mixture(**kwargs)
