// Video clients: when chunks are asked for and arrive, what is played, which bitrates come next.
#include "netbuf/video.h"

#include "worlds.h"

using namespace netbuf;

namespace {

VideoConfig video(std::vector<double> mbps) {
  VideoConfig config;
  for (const double one : mbps) config.bitrate_bps.push_back(one * 1e6);
  config.reservoir_ns = 10 * kSecond;
  config.cushion_ns = 10 * kSecond;
  return config;
}

WorldConfig streaming(const VideoConfig& config, double mbps, double rtt_ms = 40, Stack stack = Stack::linux_kernel) {
  WorldConfig world = worlds::dumbbell(mbps, rtt_ms, 200, {"cubic"}, stack);
  world.flows[0].app = "video";
  world.flows[0].video = {config};
  return world;
}

const VideoClient& client_of(World& world) {
  return dynamic_cast<const VideoClient&>(*world.flows()[0].receiver.sink());
}

// Whether all that has arrived has been played or is there yet, byte for byte and nanosecond for nanosecond.
void check_conserved(World& world, const VideoConfig& config) {
  const VideoClient& client = client_of(world);
  const Playback playback = client.playback(world.now());
  int64_t arrived = 0, ended = 0;
  for (const Chunk& chunk : client.chunks()) {
    if (chunk.ended < 0) continue;
    arrived += chunk.bytes;
    ++ended;
  }
  CHECK_EQ(playback.played + playback.buffered, ended * config.chunk_ns);
  CHECK_LE(arrived, world.flows()[0].counters().delivered_bytes);
  CHECK_LE(world.flows()[0].counters().delivered_bytes, client.asked_bytes());
  CHECK_LE(playback.buffered, config.buffer_ns);
  if (playback.delay >= 0) CHECK_EQ(playback.played + playback.stalled + playback.delay, world.now());
}

}  // namespace

TEST(a_chunk_takes_a_round_trip_and_its_transmission) {
  VideoConfig config = video({0.2});
  config.chunk_ns = kSecond;
  WorldConfig described = streaming(config, 10);
  described.flows[0].initial_cwnd_packets = 100;
  World world(described, 1);
  world.run(20 * kSecond);
  const auto& chunks = client_of(world).chunks();
  CHECK_GT(chunks.size(), 10u);
  // 25,000 bytes in 18 packets, the last of them 384 bytes.
  const Time carried = 17 * 1'200'000 + (384 + 52) * 800;
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    CHECK_EQ(chunks[i].bytes, 25'000);
    const Time ends = chunks[i].begun + 40 * kMillisecond + carried;
    if (i == 0) {
      CHECK_EQ(chunks[i].ended, ends + 52 * 800);  // behind the handshake's ACK
    } else {
      CHECK_NEAR(static_cast<double>(chunks[i].ended), static_cast<double>(ends), 1);
    }
    CHECK_NEAR(static_cast<double>(chunks[i].first - chunks[i].begun), 40e6 + 1.2e6, i == 0 ? 52 * 800 + 1 : 1);
  }
  CHECK_EQ(chunks[0].begun, 60 * 800 + 20 * kMillisecond);  // with the answer to the SYN
}

TEST(chunks_are_asked_for_when_there_is_room) {
  VideoConfig config = video({0.5});
  config.chunk_ns = 2 * kSecond;
  config.buffer_ns = 6 * kSecond;
  World world(streaming(config, 20), 1);
  world.run(100 * kSecond);
  const auto& chunks = client_of(world).chunks();
  CHECK_EQ(chunks[1].begun, chunks[0].ended);
  CHECK_EQ(chunks[2].begun, chunks[1].ended);
  for (size_t i = 4; i + 1 < chunks.size(); ++i) {
    CHECK_EQ(chunks[i].buffered, config.buffer_ns - config.chunk_ns);
    CHECK_EQ(chunks[i].begun - chunks[i - 1].begun, config.chunk_ns);
  }
  const Playback playback = client_of(world).playback(world.now());
  CHECK_EQ(playback.stalls, 0u);
  CHECK_EQ(playback.delay, chunks[1].ended);  // four seconds of video, two chunks
  check_conserved(world, config);
}

TEST(servers_start_anew_after_a_silence) {
  VideoConfig config = video({4});
  config.buffer_ns = 8 * kSecond;
  World world(streaming(config, 50, 100), 1);
  world.run(3 * kSecond);
  uint32_t most = 0, least = UINT32_MAX;
  for (int i = 0; i < 3000; ++i) {
    world.run(world.now() + 10 * kMillisecond);
    const uint32_t cwnd = world.flows()[0].sender.tcb.cwnd_packets;
    most = std::max(most, cwnd);
    if (world.flows()[0].sender.tcb.packets_out() > 0) least = std::min(least, cwnd);
  }
  CHECK_GT(most, 100u);
  CHECK_LE(least, 40u);
}

TEST(a_client_stalls_where_its_lowest_bitrate_is_too_much) {
  const VideoConfig config = video({4});
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    World world(streaming(config, 2, 40, stack), 1);
    for (int i = 1; i <= 60; ++i) {
      world.run(i * 2 * kSecond);
      check_conserved(world, config);
    }
    const Playback playback = client_of(world).playback(world.now());
    CHECK_GT(playback.stalls, 10u);
    // 4 s of 4 Mbit/s take 8.3 s.
    CHECK_NEAR(seconds(playback.stalled) / seconds(playback.played), 2 * 1500.0 / 1448 - 1, 0.1);
  }
}

TEST(requests_are_repeated_until_something_comes_of_them) {
  VideoConfig config = video({0.3, 1, 3});
  config.chunk_ns = kSecond;
  for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
    WorldConfig described = streaming(config, 10, 40, stack);
    for (LinkConfig& link : described.links) link.loss = 0.05, link.loss_on_acks = true;
    World world(described, 3);
    for (int i = 1; i <= 100; ++i) {
      world.run(i * 2 * kSecond);
      check_conserved(world, config);
    }
    CHECK_GT(client_of(world).chunks().size(), 50u);
  }
}

TEST(the_throughput_rule_takes_the_harmonic_mean) {
  VideoConfig config = video({1, 2, 4, 8});
  config.window_chunks = 2;
  config.safety = 0.5;
  const auto rule = Catalogue<BitrateRuleRecord>::get("rate", "abr").make(config);
  std::vector<Chunk> chunks;
  CHECK_EQ(rule->next({config.bitrate_bps, chunks, 0}), 0u);
  const auto add = [&](double mbps) {
    Chunk chunk;
    chunk.begun = 0, chunk.ended = kSecond, chunk.bytes = static_cast<int64_t>(mbps * 1e6 / 8), chunk.bitrate_bps = 1e6;
    chunks.push_back(chunk);
  };
  add(100);
  CHECK_EQ(rule->next({config.bitrate_bps, chunks, 0}), 3u);
  add(4);
  CHECK_EQ(rule->next({config.bitrate_bps, chunks, 0}), 1u);  // 2 / (1/100 + 1/4) = 7.7, half of it 3.8
  add(12);
  CHECK_EQ(rule->next({config.bitrate_bps, chunks, 0}), 1u);  // 2 / (1/4 + 1/12) = 6
  add(1);
  CHECK_EQ(rule->next({config.bitrate_bps, chunks, 0}), 0u);
}

TEST(the_buffer_rule_is_bba_0) {
  const VideoConfig config = video({1, 2, 3, 5});  // 10 s of reservoir, 10 s of cushion: 0.4 Mbit/s a second
  const auto rule = Catalogue<BitrateRuleRecord>::get("buffer", "abr").make(config);
  const auto next = [&](double last, double buffered_s) {
    Chunk chunk;
    chunk.begun = 0, chunk.ended = kSecond, chunk.bytes = 1, chunk.bitrate_bps = last * 1e6;
    const std::vector<Chunk> chunks = {chunk};
    return config.bitrate_bps[rule->next({config.bitrate_bps, chunks, from_seconds(buffered_s)})] / 1e6;
  };
  CHECK_EQ(next(5, 10), 1.0);     // the reservoir
  CHECK_EQ(next(1, 20), 5.0);     // beyond the cushion
  CHECK_EQ(next(1, 12.4), 1.0);   // 1.96: not yet 2
  CHECK_EQ(next(1, 12.6), 2.0);   // 2.04: the highest below
  CHECK_EQ(next(1, 16), 3.0);     // 3.4
  CHECK_EQ(next(3, 16), 3.0);     // within its neighbours
  CHECK_EQ(next(3, 13), 3.0);     // 2.2: not down to 2
  CHECK_EQ(next(3, 12), 2.0);     // 1.8: the lowest above
  CHECK_EQ(next(5, 14), 3.0);     // 2.6
  CHECK_EQ(next(5, 19.9), 5.0);
}

TEST(clients_leave_when_the_flow_stops) {
  const VideoConfig config = video({1});
  WorldConfig described = streaming(config, 10);
  described.flows[0].stop_ns = 20 * kSecond;
  World world(described, 1);
  world.run(20 * kSecond);
  const Playback then = client_of(world).playback(world.now());
  const size_t chunks = client_of(world).chunks().size();
  world.run(100 * kSecond);
  const Playback later = client_of(world).playback(world.now());
  CHECK_EQ(later.played, then.played);
  CHECK_EQ(later.stalled, then.stalled);
  CHECK_EQ(client_of(world).chunks().size(), chunks);
}

TEST(a_receiver_that_steers_tells_its_window) {
  VideoConfig config = video({20});
  WorldConfig described = streaming(config, 10);
  described.flows[0].cc = "receiver_driven";
  described.flows[0].receiver = "nuwa";
  World world(described, 1);
  world.run(60 * kSecond);
  const Chunk& last = client_of(world).chunks()[client_of(world).chunks().size() - 2];
  CHECK_NEAR(last.window_bytes * 8 / seconds(last.rtt), 10e6 * 1448 / 1500, 3e6);
  World plain(streaming(config, 10), 1);
  plain.run(60 * kSecond);
  CHECK_LT(client_of(plain).chunks().front().window_bytes, 0.0);
}

TEST(bad_settings_of_video_are_named) {
  const auto refused = [](auto change, const std::string& what) {
    VideoConfig config = video({1, 2});
    change(config);
    try {
      validate(streaming(config, 10));
      check::fail(__FILE__, __LINE__, "accepted: " + what);
    } catch (const std::invalid_argument& error) {
      CHECK(std::string(error.what()).find(what) != std::string::npos);
    }
  };
  refused([](VideoConfig& c) { c.bitrate_bps.clear(); }, "flows[0].video.bitrate_bps");
  refused([](VideoConfig& c) { c.bitrate_bps = {2e6, 1e6}; }, "flows[0].video.bitrate_bps");
  refused([](VideoConfig& c) { c.chunk_ns = 0; }, "flows[0].video.chunk_ns = 0");
  refused([](VideoConfig& c) { c.buffer_ns = kSecond; }, "flows[0].video.buffer_ns = 1000000000");
  refused([](VideoConfig& c) { c.startup_ns = 31 * kSecond; }, "flows[0].video.startup_ns");
  refused([](VideoConfig& c) { c.abr = "none"; }, "flows[0].video.abr = none");
  refused([](VideoConfig& c) { c.safety = 0; }, "flows[0].video.safety = 0");
}
