import math

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import (
    IMIX,
    WEB_SEARCH,
    Constant,
    Exponential,
    Flow,
    Link,
    Lognormal,
    Mixed,
    Pareto,
    PoissonArrivals,
    RenewalArrivals,
    Scenario,
    Sender,
    SizeDistribution,
    Traffic,
    UdpSource,
    WebSessions,
    Weibull,
)
from netbuf_gym.scenarios.laws import LAWS, make_config


@pytest.mark.parametrize(
    ("law", "mean", "median"),
    [
        (Constant(value=3), 3, 3),
        (Exponential(mean=2), 2, 2 * math.log(2)),
        (Exponential(mean=2, low=1), 3, 1 + 2 * math.log(2)),  # without memory
        (Pareto(minimum=2, shape=3), 3, 2 * 2 ** (1 / 3)),
        (Pareto(minimum=2, shape=1, high=200), 2 * math.log(100) / 0.99, 2 / (1 - 0.99 / 2)),
        (Pareto.of_mean(5, 1.5), 5, 5 / 3 * 2 ** (1 / 1.5)),
        (Lognormal(mu=1, sigma=0.5), math.exp(1.125), math.e),
        (Lognormal.of_mean(10, 20), 10, 10 / math.sqrt(5)),
        (Lognormal(mu=8.37, sigma=1.37, low=100, high=2e6), 10710, None),  # 3GPP TR 25.892 says 10710, and 7758
        (Lognormal(mu=6.17, sigma=2.36, low=50, high=2e6), 7758, None),
        (Weibull(scale=3, shape=1), 3, 3 * math.log(2)),
        (Weibull(scale=2, shape=0.5), 4, 2 * math.log(2) ** 2),
        (Mixed(parts=[Constant(value=1), Exponential(mean=10)], weights=[3, 1]), 3.25, 1),
        (IMIX, 4084 / 12, 40),
        (SizeDistribution(name="s", size_bytes=[1, 3], cumulative=[0, 1]), 2, 2),
    ],
)
def test_mean_and_draws(law, mean, median):
    assert law.compute_mean() == pytest.approx(mean, rel=0.06 if median is None else 1e-9)
    draws = law.draw(200_000, seed=1)
    if median is not None:
        assert np.median(draws) == pytest.approx(median, rel=0.02)
    if math.isfinite((draws**2).mean()) and not isinstance(law, Pareto):
        assert draws.mean() == pytest.approx(law.compute_mean(), abs=4 * draws.std() / math.sqrt(len(draws)) + 1e-12)
    for limit in (0.5, 2.5, 100.0):  # of min(draw, limit)
        cut = np.minimum(draws, limit)
        assert law.compute_mean(limit) == pytest.approx(cut.mean(), abs=4.5 * cut.std() / math.sqrt(len(cut)) + 1e-12)


def test_bounds_hold():
    for law in (
        Pareto(minimum=1, shape=0.5, low=3, high=9),
        Lognormal(mu=0, sigma=3, low=3, high=9),
        Weibull(scale=1, shape=1, low=3, high=9),
    ):
        draws = law.draw(10_000)
        assert 3 <= draws.min() < 3.01 and 8.9 < draws.max() <= 9


STEPS = SizeDistribution(name="s", size_bytes=[10, 20, 20, 40], cumulative=[0.2, 0.4, 0.6, 1])


@pytest.mark.parametrize(
    "law",
    [
        Mixed(parts=[Exponential(mean=500), Exponential(mean=1e6)], weights=[1, 1]),
        Mixed(parts=[Constant(value=1e5), Constant(value=700), Pareto(minimum=100, shape=0.5)], weights=[5, 1, 1]),
        Mixed(parts=[WEB_SEARCH, Lognormal(mu=6, sigma=2), Weibull(scale=1e5, shape=1, low=10)], weights=[3, 1, 1]),
        Mixed(parts=[STEPS, Exponential(mean=1e5)], weights=[2, 1]),
    ],
)
def test_mixtures_within_bounds_are_as_if_draws_were_repeated(law):
    low, high = 15, 65535
    draws = law.draw(1_000_000)
    kept = draws[(draws >= low) & (draws <= high)]
    config = law.to_core(low, high)
    found = np.array(config.sample(2, 200_000))
    assert low <= found.min() and found.max() <= high
    assert config.mean() == pytest.approx(kept.mean(), abs=5 * kept.std() / math.sqrt(len(kept)))
    for share in (20, 50, 80):
        at = np.percentile(kept, share)
        assert np.mean(found < at) == pytest.approx(np.mean(kept < at), abs=0.006)


def test_packets_of_a_mixture_have_the_mean_of_repeated_draws():
    law = Mixed(parts=[Exponential(mean=500), Exponential(mean=1e6)], weights=[1, 1])
    source = UdpSource(path=[0], rate_mbps=1, packet_bytes=law)
    inside = [math.exp(-0.5 / m) - math.exp(-65535 / m) for m in (500, 1e6)]
    means = [(m + 0.5) * math.exp(-0.5 / m) - (m + 65535) * math.exp(-65535 / m) for m in (500, 1e6)]
    assert source.mean_packet_bytes == pytest.approx(sum(means) / sum(inside), rel=1e-9)


def test_points_within_bounds():
    assert STEPS.compute_share(15, 30) == pytest.approx(0.8 - 0.3)
    assert (STEPS.compute_share(20, 20), STEPS.compute_share(10, 10)) == (pytest.approx(0.2), pytest.approx(0.2))
    config = STEPS.to_core(15, 30)
    assert list(config.values) == [15, 20, 20, 30] and list(config.cumulative) == pytest.approx([0, 0.2, 0.6, 1])
    with pytest.raises(ScenarioError, match="points: low = 50, high = 60 hold less than a millionth"):
        STEPS.to_core(50, 60)


def test_wide_lognormals_have_means():
    law = Lognormal(mu=0, sigma=100, high=1000)
    draws = law.draw(100_000)
    assert law.compute_mean() == pytest.approx(draws.mean(), abs=5 * draws.std() / math.sqrt(len(draws)))
    sessions = WebSessions.of_model("3gpp", 1_000_000, objects=law)
    assert 1 < sessions.flows_per_page < 1001
    traffic = Traffic(senders=[Sender(cc="cubic", path=["ahead"], return_path=["back"])], arrivals=[sessions])
    with pytest.raises(ScenarioError, match=r"traffic.arrivals\[0\].users = 1e\+06 makes .* flows"):
        world(traffic=traffic, duration_s=1e4)


@pytest.mark.parametrize("flows_per_s", [1e-9, 1e-8])
def test_rare_poisson_arrivals_take_laws_of_sizes(flows_per_s):
    arrivals = PoissonArrivals(flows_per_s=flows_per_s, sizes=Constant(value=1000))
    traffic = Traffic(senders=[Sender(cc="cubic", path=["ahead"], return_path=["back"])], arrivals=[arrivals])
    assert not len(nb.simulate(world(traffic=traffic, duration_s=0.1)).opened)


def test_configurations_of_the_core_are_checked():
    empty = make_config("points")
    stray = make_config("points", values=[1, 2], cumulative=[0, 1], parts=[make_config("constant", scale=1)])
    for config, message in (
        (empty, "law.cumulative"),
        (make_config("zipf"), "law.kind = zipf"),
        (stray, "law.parts = 1: must be none, unless mixed"),
        (make_config("constant", values=[1]), "law.values = 1: must be none, unless points"),
    ):
        for ask in (lambda c: c.sample(0, 1), lambda c: c.highest(), lambda c: c.mean(), lambda c: c.tail(1)):
            with pytest.raises(ValueError, match=message):
                ask(config)


def test_means_that_are_not():
    assert math.isinf(Pareto(minimum=1, shape=1).compute_mean())
    assert math.isfinite(Pareto(minimum=1, shape=0.5, high=10).compute_mean())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exponential(mean=0), r"exponential.mean = 0.* is out of range; valid: 1e-12 to 1e\+15"),
        (lambda: Pareto(minimum=1, shape=math.nan), "pareto.shape = nan is out of range; valid: 0.01 to 100"),
        (lambda: Pareto.of_mean(1, 1), "pareto.shape = 1.0 is out of range; valid: above 1 to 100"),
        (lambda: Lognormal(mu=0, sigma=1, low=2, high=1), "lognormal.high = 1 is not above low = 2"),
        (lambda: Exponential(mean=1, low=100), "exponential: low = 100, high = inf hold less than a millionth of the law"),
        (lambda: Mixed(parts=[Exponential(mean=1)], weights=[1, 2]), "mixed.weights has 2 values for 1 parts; valid: as many"),
        (lambda: Mixed(parts=[3], weights=[1]), r"mixed.parts\[0\] = 3; valid: a law that is not mixed itself"),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, packet_bytes=Constant(value=1e6)),
            r"udp.packet_bytes = Constant\(value=1000000.0\): less than .* valid: a law of sizes from 1 to 65535 bytes",
        ),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, packet_bytes=Mixed(parts=[Constant(value=1e6)], weights=[1])),
            "udp.packet_bytes = Mixed.* valid: a law of sizes from 1 to 65535 bytes",
        ),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, packet_bytes=WEB_SEARCH),
            r"udp.packet_bytes: 'web_search' has size_bytes = 3e\+07, which is out of range; valid: 1 to 65535",
        ),
        (lambda: IMIX.draw(-1), "n = -1 is out of range; valid: 0..10000000"),
        (lambda: IMIX.draw(10**15), "n = 1000000000000000 is out of range"),
        (lambda: IMIX.draw(2, seed=-1), "seed = -1 is out of range; valid: 0..18446744073709551615"),
        (lambda: IMIX.draw(2.5), "n = 2.5 is not a whole number"),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, packet_bytes="imx"),
            "udp.packet_bytes = 'imx' is unknown; did you mean 'imix'",
        ),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, arrivals="bursty"),
            "udp.arrivals = 'bursty' is unknown; valid: constant, poisson",
        ),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, on_s=Pareto(minimum=1, shape=1), off_s=1),
            "udp.on_s: the law's mean is inf s",
        ),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, on_s=1, off_s=Lognormal(mu=-30, sigma=1)),
            "udp.off_s: the law's times, cut at a",
        ),
        (
            lambda: UdpSource(path=[0], rate_mbps=1, on_s=1, off_s=Exponential(mean=1), random=True),
            "udp.random = True beside a law",
        ),
        (lambda: RenewalArrivals(gap_s=1, sizes=IMIX), "renewal.gap_s = 1 is not a law"),
        (
            lambda: PoissonArrivals(flows_per_s=1, sizes=Pareto(minimum=1, shape=1)),
            "poisson.sizes: the law's mean is inf bytes",
        ),
        (lambda: WebSessions.of_model("4gpp", 1), "model = '4gpp' is unknown; did you mean '3gpp'"),
        (lambda: WebSessions.of_model("3gpp", 0), "web.users = 0 is out of range"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


def world(**fields):
    links = [Link(name="ahead", rate_mbps=10, delay_ms=10, queue_packets=60), Link(name="back", delay_ms=10)]
    return Scenario(**{"links": links, "duration_s": 5} | fields)


def test_json_keeps_laws():
    made = world(
        udp=[
            UdpSource(path=["ahead"], rate_mbps=1, packet_bytes="imix", arrivals="poisson"),
            UdpSource(path=["ahead"], rate_mbps=1, packet_bytes=Exponential(mean=700), on_s=Pareto.of_mean(1, 1.5), off_s=2),
            UdpSource(path=["ahead"], rate_mbps=1, on_s=0.5, off_s=2),
        ],
        traffic=Traffic(
            senders=[Sender(cc="cubic", path=["ahead"], return_path=["back"])],
            arrivals=[
                RenewalArrivals(gap_s=Lognormal.of_mean(1, 3), sizes=Weibull(scale=1e4, shape=0.5)),
                PoissonArrivals(flows_per_s=1, sizes=Mixed(parts=[IMIX, Pareto.of_mean(1e4, 1.2)], weights=[1, 2])),
                WebSessions.of_model("3gpp", 3, connections=None),
                WebSessions.of_model("surge", 2, main_bytes=IMIX),
            ],
        ),
    )
    data = made.to_dict()
    assert data["udp"][0]["packet_bytes"] == {"kind": "points", **_fields_of(IMIX)}
    assert data["udp"][2] == {"path": [0], "rate_mbps": 1.0, "on_s": 0.5, "off_s": 2.0}
    assert Scenario.from_dict(data) == made
    data["udp"][1]["packet_bytes"]["kind"] = "zipf"
    with pytest.raises(ScenarioError, match=r"udp\[1\].packet_bytes.kind = 'zipf' is unknown; valid: constant, exponential"):
        Scenario.from_dict(data)
    with pytest.raises(ScenarioTypeError, match=r"mixed.parts"):
        Mixed(parts=[Mixed(parts=[IMIX], weights=[1])], weights=[1])
    assert sorted(LAWS) == ["constant", "exponential", "lognormal", "mixed", "pareto", "points", "weibull"]


def _fields_of(sizes):
    return {"name": sizes.name, "size_bytes": list(sizes.size_bytes), "cumulative": list(sizes.cumulative)}


def test_flows_without_end_are_refused():
    arrivals = RenewalArrivals(gap_s=Lognormal(mu=-13, sigma=3), sizes=IMIX)  # of a mean of 0.2 ms, and far more short ones
    traffic = Traffic(senders=[Sender(cc="cubic", path=["ahead"], return_path=["back"])], arrivals=[arrivals])
    with pytest.raises(ScenarioError, match=r"traffic.arrivals\[0\].gap_s = 0.000203.* makes .* flows; valid|gap_s = .* makes"):
        world(traffic=traffic, duration_s=1e5)
    assert len(world(flows=[Flow(path=[0], return_path=[1])]).flows) == 1
