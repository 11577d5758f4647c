"""The families of paths that senders are trained on."""

import hashlib
import json

import numpy as np
import pytest

from netbuf_gym import scenarios, traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.scenarios.catalogue import sender_controls
from netbuf_gym.scenarios.impairments import DelaySchedule
from netbuf_gym.tasks.congestion_window.families import FAMILIES, NETWORKS, SERVICES, SenderPaths, default_rivals
from netbuf_gym.tasks.congestion_window.paths import Path, PathWorld, ShortFlows
from netbuf_gym.tasks.congestion_window.scenarios import SHARES
from netbuf_gym.training.schema import CONF

YAML = CONF / "scenario" / "paths" / "training.yaml"


def draw(family, count=60, senders=1, seed=7, **kwargs):
    rng, kwargs = np.random.default_rng(seed), {"mixed_probability": 0.0, "duration_s": 8.0, **kwargs}
    distribution = SenderPaths(family=family, senders=("cubic",) * senders, **kwargs)
    return [distribution.draw(rng) for _ in range(count)]


def only(world):
    assert len(world.paths) == 1
    return world.paths[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_worlds_have_what_their_family_says_and_nothing_else(family):
    senders = {"agents": 8, "crowd": 16}.get(family, 1)
    shown = {
        "fixed": lambda path: path.rate_mbps is not None,
        "steps": lambda path: path.generated is None and path.trace is not None and path.trace.rate_mbps.all(),
        "jitter": lambda path: path.generated is not None and path.generated.kind == "jittered",
        "cellular": lambda path: path.generated is not None and path.generated.kind in NETWORKS,
        "fades": lambda path: path.generated is not None and path.generated.kind == "mmwave",
        "outages": lambda path: path.generated is None and path.trace is not None and not path.trace.rate_mbps.all(),
        "loss": lambda path: 1e-4 <= path.loss <= 2e-2,
        "delays": lambda path: isinstance(path.delays, DelaySchedule) and len(path.delays.time_s) < 40,
        "delay_jitter": lambda path: path.jitter_ms or (path.delays is not None and len(path.delays.time_s) >= 40),
        "policer": lambda path: path.policer_mbps,
        "bursts": lambda path: path.short_flows or any(rival.app for rival in path.rivals),
        "reverse": lambda path: path.return_mbps and path.reverse,
        "rivals": lambda path: any(not rival.app for rival in path.rivals),
        "agents": lambda path: len(path.starts_s) > 1 and path.starts_s[-1] > path.starts_s[0] == 0,
    }
    if family == "crowd":
        shown["crowd"] = shown.pop("agents")
    service = family if family in SERVICES else "fixed"
    for world in draw(family, 12, senders):
        for path in world.paths:
            has = {name for name, found in shown.items() if found(path)}
            assert has == {family, service} or (family in ("agents", "crowd") and has == {"fixed"})  # one is left
        assert sum(len(path.starts_s) for path in world.paths) == senders


def test_ranges_are_covered_and_fast_worlds_are_short():
    worlds = draw("fixed", 400, duration_s=20.0)
    rate = np.array([only(world).rate_mbps for world in worlds])
    rtt = np.array([only(world).rtt_ms for world in worlds])
    buffers = np.array([only(world).buffer_packets for world in worlds])
    lasts = np.array([world.duration_s for world in worlds])
    assert 0.5 <= rate.min() < 0.6 and 900 < rate.max() <= 1000 and np.median(rate) == pytest.approx(22.4, rel=0.3)
    assert 5 <= rtt.min() < 5.5 and 370 < rtt.max() <= 400
    bdp = rate * rtt * 1e3 / 8 / 1500
    times = (buffers / bdp)[bdp > 50]
    assert 0.25 * 0.98 <= times.min() < 0.3 and 14 < times.max() <= 16.1 and buffers.min() == 4
    assert set(lasts) == {5.0, 10.0, 20.0} and (lasts[rate < 100] == 20).all() and (lasts >= 20 * rtt / 1e3).all()
    assert (lasts[(rate > 400) & (rtt < 250)] == 5).all() and (lasts[rtt > 250] >= 10).all()


def test_several_agents_share_a_bottleneck_or_have_one_each():
    for world in draw("agents", 20, 8):
        sizes = [len(path.starts_s) for path in world.paths]
        assert sum(sizes) == 8 and max(sizes) > 1
        scenario = world.scenario(("cubic",) * 8).with_agents(8)
        assert scenario.agents == len(scenario.flows) == 8
        shares = [scenario.fair_share_mbps(i) for i in range(8)]
        of_first = world.paths[0].rate_mbps / sizes[0]
        assert shares[: sizes[0]] == pytest.approx([of_first] * sizes[0])
        assert all(path.starts_s[-1] <= world.duration_s / 2 for path in world.paths)
    for world in draw("fixed", 5, 4):
        scenario = world.scenario(("vegas",) * 4)
        assert [flow.path for flow in scenario.flows] == [(0,), (2,), (4,), (6,)]
        assert all(path.rate_mbps * world.duration_s <= 2000.1 for path in world.paths[1:])


def test_rivals_are_all_that_is_built_and_share_the_bottleneck():
    worlds = draw("rivals", 250)
    seen = {rival.cc for world in worlds for rival in only(world).rivals}
    later = {"bbr3", "ledbat", "ledbatpp", "prague"}  # than the worlds that are kept
    assert seen == set(default_rivals()) == set(sender_controls("linux")) - {"receiver_driven", "dctcp"} - later
    counts = [len(only(world).rivals) for world in worlds]
    assert set(counts) == {1, 2, 3} and 0.55 < np.mean(np.array(counts) == 1) < 0.85
    late = [only(world).starts_s[0] > 0 for world in worlds]
    assert 0.25 < np.mean(late) < 0.55
    world = worlds[0]
    scenario = world.scenario(("westwood",))
    assert scenario.flows[0].cc == "westwood" and scenario.flows[1].path == scenario.flows[0].path == (0,)
    assert scenario.fair_share_mbps(0) == pytest.approx(only(world).rate_mbps / (1 + counts[0]))
    stay = draw("rivals", 40, leave_probability=0.0)
    assert all(rival.stop_s is None for world in stay for rival in only(world).rivals)


def test_reverse_flows_take_the_way_back_and_leave_room_for_acks():
    for world in draw("reverse", 40):
        path, scenario = only(world), world.scenario(("cubic",))
        assert path.return_mbps >= 0.06 * path.rate_mbps * (1 - 1e-12)
        assert scenario.flows[1].path == (1,) and scenario.flows[1].return_path == (0,)
        assert scenario.fair_share_mbps(0) == path.rate_mbps


def test_outages_come_at_the_start_too_and_are_held_or_dropped():
    worlds = draw("outages", 120)
    first = np.array([only(world).trace.rate_mbps[0] == 0 for world in worlds])
    held = np.array([only(world).on_outage == "hold" for world in worlds])
    assert 0.05 < first.mean() < 0.3 and 0.35 < held.mean() < 0.65
    assert all(0.3 <= only(world).trace.longest_gap_s <= 10 for world in worlds)


def test_some_paths_jitter_and_the_others_are_as_without():
    assert not any(only(world).jitter_ms for world in draw("fixed", 20))
    worlds = draw("delays", 200, jitter_probability=0.3)
    jitters = np.array([only(world).jitter_ms for world in worlds])
    assert 0.2 < (jitters > 0).mean() < 0.4 and 0.2 <= jitters[jitters > 0].min() and jitters.max() <= 30
    assert all(only(world).jitter_ms <= max(0.2, only(world).rtt_ms / 2) for world in worlds)
    for world in worlds:
        link = world.scenario(("cubic",)).links[0]
        assert (link.jitter.scale_ms if link.jitter else 0) == only(world).jitter_ms
        assert link.jitter is None or not link.jitter.reorder
        assert link.delay_ms is only(world).delays


def test_paths_of_several_senders_may_have_rivals_besides():
    assert not any(path.rivals for world in draw("agents", 20, 8) for path in world.paths)
    paths = [path for world in draw("agents", 100, 8, rivals_probability=0.4) for path in world.paths]
    several = np.array([bool(path.rivals) for path in paths if len(path.starts_s) > 1])
    assert 0.3 < several.mean() < 0.5
    assert not any(path.rivals for path in paths if len(path.starts_s) == 1)
    assert not any(path.rivals for world in draw("fixed", 20, 8, rivals_probability=1.0) for path in world.paths)


def test_networks_are_drawn_as_often_as_they_are_named():
    def kinds(**arguments):
        return [only(world).generated.kind for world in draw("cellular", 40, **arguments)]

    assert set(kinds()) == {"4g", "5g", "wifi", "wired"}
    assert set(kinds(networks=["5g"])) == {"5g"}
    assert 24 <= kinds(networks=["5g", "5g", "5g", "wifi"]).count("5g") <= 36


def test_several_senders_start_one_after_the_other():
    def gaps(**arguments):
        worlds = draw("agents", 60, 3, duration_s=100.0, rate_mbps=(1, 10), **arguments)
        paths = [path for world in worlds for path in world.paths]
        return np.array([path.starts_s[1] for path in paths if len(path.starts_s) > 1])

    assert 0.05 <= gaps().min() and gaps().max() <= 4
    assert gaps(stagger_s=(0, 0)).max() == gaps(stagger_s=0).max() == 0
    late = gaps(stagger_s=(6, 30))
    assert 6 <= late.min() and 10 < late.max() <= 30
    short = draw("agents", 40, 8, duration_s=10.0, rate_mbps=(1, 10), stagger_s=(6, 30))
    assert all(path.starts_s[-1] <= 5 * (1 + 1e-12) for world in short for path in world.paths)


def test_the_generator_decides_the_world_and_json_holds_it():
    distribution = scenarios.get("paths/training", n=3, duration_s=6)
    one, same = (distribution.sample(np.random.default_rng(5)) for _ in range(2))
    assert one == same and one != distribution.sample(np.random.default_rng(6))
    for family in FAMILIES:
        mixed = {"mixed_probability": 1.0, "unequal_probability": 0.5, "idle_probability": 0.5, "jitter_probability": 0.5}
        for world in draw(family, 4, 2, **mixed, duration_s=5.0):
            again = PathWorld.from_dict(json.loads(json.dumps(world.to_dict())))
            assert again.scenario(("cubic", "bbr")) == world.scenario(("cubic", "bbr"))


def test_shares_decide_what_is_drawn():
    mixture = scenarios.get("paths/training", shares={"fixed": 3, "loss": 1, "agents": 0}, mixed_probability=0)
    rng = np.random.default_rng(0)
    names = [mixture.sample(rng).name for _ in range(200)]
    assert set(names) == {"paths/fixed", "paths/loss"} and 0.65 < np.mean(np.array(names) == "paths/fixed") < 0.85
    assert set(SHARES) < set(FAMILIES) and sum(SHARES.values()) == pytest.approx(1)
    written = [line.split(": ") for line in YAML.read_text().splitlines() if line.startswith("    ")]
    assert {name.strip(): float(share) for name, share in written} == SHARES


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("paths/training", {"shares": {"fixd": 1}}, "shares has no family 'fixd'; did you mean 'fixed'"),
        ("paths/training", {"shares": {"fixed": -1}}, "shares.fixed = -1"),
        ("paths/training", {"shares": {"fixed": 0}}, "shares are all 0"),
        ("paths/training", {"shares": 3}, "shares = 3; valid: a number for each family"),
        ("paths/rivals", {"competitors": ["cubik"]}, "cubik"),
        ("paths/rivals", {"competitors": ["receiver_driven"]}, "receiver_driven"),
        ("paths/fixed", {"rate_mbps": (0, 1)}, r"rate_mbps\[0\] = 0"),
        ("paths/fixed", {"mixed_probability": 2}, "mixed_probability = 2"),
        ("paths/fixed", {"jitter_probability": -1}, "jitter_probability = -1"),
        ("paths/agents", {"rivals_probability": 1.5}, "rivals_probability = 1.5"),
        ("paths/agents", {"stagger_s": (0, 4)}, r"stagger_s\[0\] = 0"),
        ("paths/agents", {"stagger_s": (4, 1)}, r"stagger_s\[1\] = 1"),
        ("paths/cellular", {"networks": ["4g", "6g"]}, r"networks\[1\] = '6g'"),
        ("paths/cellular", {"networks": []}, "networks is empty"),
        ("paths/cellular", {"networks": {"4g": 3}}, "networks = {'4g': 3} is not a list; valid: a list of names"),
        ("paths/fixed", {"most_mbit": 0}, "most_mbit = 0"),
        ("paths/rivals", {"most_rivals": 1}, "most_rivals = 1"),
        ("paths/rivals", {"several_probability": 1.5}, "several_probability = 1.5"),
        ("paths/rivals", {"alike_probability": -1}, "alike_probability = -1"),
        ("paths/agents", {"unequal_probability": 2}, "unequal_probability = 2"),
        ("paths/agents", {"rtt_spread": 0.5}, "rtt_spread = 0.5"),
        ("paths/fixed", {"idle_probability": 2}, "idle_probability = 2"),
        ("paths/reverse", {"return_share": (0, 1)}, r"return_share\[0\] = 0"),
        ("paths/fixed", {"mixed_with": ["cellular"]}, r"mixed_with\[0\] = 'cellular'"),
        ("paths/fixed", {"duration_s": 0.5}, "duration_s = 0.5"),
    ],
)
def test_bad_input_is_refused_by_name(name, kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.get(name, **kwargs)


def test_a_world_of_another_form_is_refused():
    with pytest.raises(ScenarioError, match=r"world\.duration_s is missing"):
        PathWorld.from_dict({"family": "fixed"})
    with pytest.raises(ScenarioTypeError, match="world = 5 is not a mapping"):
        PathWorld.from_dict(5)
    with pytest.raises(ScenarioError, match=r"world\.paths\[0\] has no field 'rtt'; valid: rtt_ms, "):
        PathWorld.from_dict({"family": "fixed", "duration_s": 5, "paths": [{"rtt": 3}]})
    with pytest.raises(ScenarioError, match=r"path\.rivals\[0\]\.app has no field 'on'; valid: on_s"):
        Path.from_dict({"rtt_ms": 5, "buffer_packets": 9, "rivals": [{"cc": "cubic", "app": {"on": 1}}]})
    two = PathWorld(
        family="fixed", duration_s=5.0, paths=[Path(rate_mbps=5.0, rtt_ms=9.0, buffer_packets=9, more_rtts_ms=(0, 1))]
    )
    with pytest.raises(ScenarioError, match=r"paths\[0\]\.more_rtts_ms has 2 values; valid: 1, as in starts_s"):
        two.scenario(("cubic",))
    with pytest.raises(ScenarioError, match=r"flows_per_s = 0\.0 is out of range"):
        ShortFlows("cubic", 0.0, 1e4).list_flows(0, 5.0)
    with pytest.raises(ScenarioError, match="senders has 2 names for 1 senders"):
        draw("fixed", 1)[0].scenario(("cubic", "cubic"))


def test_jittered_service_is_on_and_off_within_a_round_trip():
    steady = traces.generate("jittered", duration_s=40, seed=3, mean_mbps=24, off_ms=0, range_factor=1.02)
    switched = traces.generate("jittered", duration_s=40, seed=3, mean_mbps=24, on_ms=20, off_ms=20, off_share=0.0)
    for trace in (steady, switched):
        assert trace.mean_mbps() == pytest.approx(24, rel=0.03)
        assert trace.time_ms[-1] == 40_000 and (np.diff(trace.time_ms) >= 0).all()
    per_ms = [np.bincount(trace.time_ms.astype(int), minlength=40_001)[1:] for trace in (steady, switched)]
    assert per_ms[0].var() == pytest.approx(per_ms[0].mean(), rel=0.06)  # Poisson
    idle = per_ms[1].reshape(-1, 10).sum(axis=1) == 0  # 10 ms without a packet; 20 are expected
    assert not (per_ms[0].reshape(-1, 10).sum(axis=1) == 0).any() and 0.2 < idle.mean() < 0.45
    walking = traces.generate("jittered", duration_s=40, seed=3, mean_mbps=24, sigma=0.1, range_factor=4, off_ms=0)
    seconds = np.bincount((walking.time_ms / 1e3).astype(int))[:40]
    assert seconds.max() / seconds.min() > 2
    with pytest.raises(ScenarioError, match="off_share = 2"):
        traces.generate("jittered", off_share=2)


WORLDS_BEFORE = {"mixed": "aa86d5c3e9f2ef49", "more": "51863eb184e06198"}
"""Digests of worlds of the suites' families, drawn before further families were there."""


def test_further_families_leave_the_worlds_of_the_suites_as_they_are():
    more = {"mixed_probability": 0.3, "jitter_probability": 0.3, "rivals_probability": 0.5, "stagger_s": (0.05, 10.0)}
    for name, kwargs in (("mixed", {"mixed_probability": 0.5}), ("more", more)):
        drawn = hashlib.sha256()
        for family in SHARES:
            for world in draw(family, 12, 4, seed=5, **kwargs):
                drawn.update(json.dumps(frozen.round_floats(world.to_dict())).encode())
        assert drawn.hexdigest()[:16] == WORLDS_BEFORE[name]


def test_crowds_share_slow_links_down_to_a_packet_a_round_trip():
    paths = [path for world in draw("crowd", 150, 16, rate_mbps=(0.1, 1000)) for path in world.paths if len(path.starts_s) > 1]
    sizes = np.array([len(path.starts_s) for path in paths])
    packets = np.array([path.rate_mbps * path.rtt_ms / 12 / len(path.starts_s) for path in paths])
    assert sizes.max() == 16 and (sizes >= 4).mean() > 0.6
    assert 0.99 < packets.min() < 1.2 and 10 < packets.max() < 12.1
    assert {len(world.paths[0].starts_s) for world in draw("crowd", 20, 3)} == {3}


def test_jitter_has_every_kind_at_all_rates():
    paths = [only(world) for world in draw("delay_jitter", 300)]
    walks = [path for path in paths if path.delays is not None]
    jittered = [path for path in paths if path.jitter_ms]
    assert len(walks) + len(jittered) == 300 and 0.1 < len(walks) / 300 < 0.3
    assert all(np.ptp(path.delays.delay_ms) <= 30 and path.delays.least_ms >= path.rtt_ms / 2 for path in walks)
    reordered, correlated = (
        np.mean([bool(getattr(path, name)) for path in jittered]) for name in ("jitter_reorder", "jitter_correlation")
    )
    assert 0.15 < reordered < 0.35 and 0.15 < correlated < 0.35
    scales = np.array([path.jitter_ms for path in jittered])
    assert scales.min() < 3 and 28 < scales.max() <= 30
    assert max(path.jitter_ms for path in jittered if path.rate_mbps > 200) > 20
    slow = max(path.jitter_ms for path in jittered if path.rtt_ms < 20)
    assert slow > 20  # as much as on long paths
    for path in jittered:
        jitter = path.links(1)[0].jitter
        assert (jitter.scale_ms, jitter.reorder, jitter.correlation) == (
            path.jitter_ms,
            path.jitter_reorder,
            path.jitter_correlation,
        )


def test_a_policer_is_slower_than_its_link_and_sets_the_fair_share():
    for world in draw("policer", 40):
        path = only(world)
        assert 0.0999 * path.rate_mbps <= path.policer_mbps <= 0.8001 * path.rate_mbps
        scenario = world.scenario(("cubic",))
        assert scenario.fair_share_mbps(0) == path.policer_mbps and scenario.links[0].discipline.burst_bytes >= 3000
    stepped = draw("policer", 60, mixed_probability=1.0, mixed_with=("steps",))
    assert all(only(world).trace is not None and only(world).policer_mbps for world in stepped)


def test_rivals_are_as_many_and_as_alike_as_is_said():
    worlds = draw("rivals", 200, most_rivals=5, several_probability=0.6, alike_probability=0.5)
    counts = np.array([len(only(world).rivals) for world in worlds])
    assert set(counts) == {1, 2, 3, 4, 5} and 0.5 < (counts > 1).mean() < 0.7
    alike = [len({rival.cc for rival in only(world).rivals}) == 1 for world in worlds if len(only(world).rivals) > 1]
    assert 0.4 < np.mean(alike) < 0.65


def test_flows_of_a_path_may_have_round_trips_of_their_own():
    for world in draw("agents", 40, 8, unequal_probability=1.0, rivals_probability=0.5):
        scenario = world.scenario(("cubic",) * 8)
        senders = iter(range(8))
        for path in world.paths:
            if len(path.starts_s) == 1:
                next(senders)
                continue
            more = [*path.more_rtts_ms, *(rival.more_rtt_ms for rival in path.rivals)]
            assert min(more) == 0 and max(more) <= 9 * path.rtt_ms
            rtts = [scenario.propagation_rtt_ms(next(senders)) for _ in path.starts_s]
            assert rtts == pytest.approx([path.rtt_ms + one for one in path.more_rtts_ms])
    assert not any(path.more_rtts_ms for world in draw("agents", 10, 8) for path in world.paths)
    spread = [world.paths[0] for world in draw("agents", 200, 2, unequal_probability=1.0)]
    assert 5 < max(1 + max(path.more_rtts_ms) / path.rtt_ms for path in spread) <= 10
    beside = [only(world) for world in draw("rivals", 40, unequal_probability=1.0)]
    assert any(path.more_rtts_ms[0] for path in beside) and any(path.rivals[0].more_rtt_ms for path in beside)


def test_bursts_are_flows_with_pauses_or_short_ones_of_the_load_that_was_drawn():
    worlds = draw("bursts", 200, most_mbit=1e6)
    short = [(only(world), world) for world in worlds if only(world).short_flows]
    assert 0.35 < len(short) / 200 < 0.65
    assert all(rival.app.random for world in worlds for rival in only(world).rivals)
    loads = []
    for path, world in short:
        flows = path.short_flows.list_flows(0, world.duration_s)
        assert flows is None or (
            len(flows) < 400 and (np.diff(flows.start_s) >= 0).all() and flows.start_s.max() < world.duration_s
        )
        loads.append(0 if flows is None else flows.size_bytes.sum() * 8e-6 / world.duration_s / path.rate_mbps)
    assert 0.1 < np.median(loads) < 0.3  # of 0.05 to 0.6
    path, world = short[0]
    scenario = world.scenario(("vegas",))
    assert scenario.fair_share_mbps(0) == path.rate_mbps and scenario.traffic.senders[0].path == (0,)


def test_links_that_fade_are_fast_and_come_back():
    traces_ = [only(world).trace for world in draw("fades", 60)]
    peaks = np.array([trace.peak_mbps for trace in traces_])
    assert peaks.min() > 15 and peaks.max() <= 1000
    faded = np.array([trace.rate_mbps.min() / trace.peak_mbps for trace in traces_])
    assert (faded < 0.3).mean() > 0.5 and faded.min() < 0.02


def test_senders_may_have_applications_that_pause():
    worlds = draw("fixed", 60, idle_probability=0.5)
    idle = np.array([only(world).app is not None for world in worlds])
    assert 0.35 < idle.mean() < 0.65
    app = worlds[int(np.argmax(idle))].scenario(("cubic",)).flows[0].app
    assert app.random and app.on_s <= 8 / 3


def test_ways_back_are_as_thin_as_is_said():
    shares = [
        only(world).return_mbps / only(world).rate_mbps
        for world in draw("reverse", 60, return_share=(0.07, 0.2), rate_mbps=(10, 90))
    ]
    assert 0.07 <= min(shares) < 0.09 and 0.15 < max(shares) <= 0.2
