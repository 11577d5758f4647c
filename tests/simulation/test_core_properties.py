"""What must hold in every world that the native core runs, over worlds drawn at random."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from netbuf_gym import _core
from netbuf_gym.scenarios import sender_controls

MS = 1_000_000


@st.composite
def links(draw):
    link = _core.LinkConfig()
    link.rate_bps = draw(st.floats(1e6, 50e6))
    link.delay_ns = draw(st.integers(0, 40 * MS))
    link.queue_limit_packets = draw(st.sampled_from([0, 1, 5, 40]))
    link.queue_limit_bytes = draw(st.sampled_from([0, 2000, 60_000]))
    link.loss = draw(st.sampled_from([0.0, 1e-3, 0.05]))
    link.loss_on_acks = draw(st.booleans())
    return link


@st.composite
def worlds(draw, senders=None):
    world = _core.WorldConfig()
    world.stack = draw(st.sampled_from(["linux", "ns3"]))
    world.links = draw(st.lists(links(), min_size=2, max_size=4))
    index = st.integers(0, len(world.links) - 1)
    flows = []
    for _ in range(draw(st.integers(1, 4))):
        flow = _core.FlowConfig()
        flow.cc = draw(st.sampled_from(senders or sender_controls(world.stack)))
        flow.controlled = flow.cc == "agent"
        flow.path = draw(st.lists(index, min_size=1, max_size=3))
        flow.return_path = draw(st.lists(index, min_size=1, max_size=3))
        flow.start_ns = draw(st.integers(0, 500 * MS))
        flow.receive_buffer_bytes = draw(st.sampled_from([0, 500, 20_000, 500_000]))
        flow.window_clamp_bytes = draw(st.sampled_from([0, 0, 30_000]))
        if flows and draw(st.booleans()):
            flow.relay_from = len(flows) - 1
            flow.relay_buffer_bytes = draw(st.integers(1, 100_000))
        flows.append(flow)
    world.flows = flows
    return world


@settings(max_examples=60)
@given(worlds(), st.integers(0, 2**64 - 1))
def test_packets_are_conserved_and_queues_keep_their_limits(config, seed):
    world = _core.World(config, seed)
    for step in range(1, 9):
        world.run(step * 500 * MS)
        for flow, settings_ in zip(world.flow_stats(), config.flows, strict=True):
            lost = flow["queue_drops"] + flow["random_losses"]
            received = flow["packets_sent"] - lost - flow["packets_in_network"]
            assert received >= 0
            assert flow["delivered_bytes"] <= received * 1448
            assert flow["packets_retransmitted"] <= flow["packets_sent"]
            if settings_.relay_from >= 0:
                assert flow["delivered_bytes"] <= world.flow_stats()[settings_.relay_from]["delivered_bytes"]
        for link, limits in zip(world.link_stats(), config.links, strict=True):
            assert link["packets_in"] == link["packets_out"] + link["queue_drops"] + link["queue_packets"]
            assert not limits.queue_limit_packets or link["queue_max_packets"] <= limits.queue_limit_packets


@settings(max_examples=20)
@given(worlds(), st.integers(0, 2**64 - 1), st.lists(st.integers(1, 700 * MS), min_size=1, max_size=8))
def test_same_seed_same_numbers_however_the_run_is_cut(config, seed, cuts):
    whole, cut = _core.World(config, seed), _core.World(config, seed)
    end = sum(cuts)
    whole.run(end)
    for i in range(len(cuts)):
        cut.run(sum(cuts[: i + 1]))
    assert repr(whole.flow_stats()) == repr(cut.flow_stats())


@settings(max_examples=15)
@given(st.lists(worlds(senders=("agent",)), min_size=3, max_size=6), st.integers(0, 2**32), st.floats(2000, 100_000))
def test_threads_do_not_change_a_bit(configs, seed, window):
    def run(threads):
        batch = _core.Batch(len(configs), 4, threads)
        for i, config in enumerate(configs):
            batch.reset(i, config, seed + i)
        seen = []
        for step in range(10):
            batch.control[:, :, 0] = np.where(np.arange(4) % 2 == step % 2, window, np.nan)
            if step % 3 == 2:
                batch.advance_to_event(200 * MS)
            else:
                batch.advance(150 * MS)
            seen.append(batch.telemetry.copy())
        return np.array(seen), [repr(batch.flow_stats(i)) for i in range(len(configs))]

    telemetry, stats = run(1)
    for threads in (2, 4):
        again, stats_again = run(threads)
        np.testing.assert_array_equal(telemetry, again)
        assert stats == stats_again
