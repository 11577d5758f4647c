// Receiver controls: what they know, and what they do with it.
#include <algorithm>
#include <cmath>

#include "netbuf/batch.h"
#include "receiver_controls/nuwa.h"
#include "worlds.h"

using namespace netbuf;

namespace {

FlowConfig received(const std::string& control, const std::string& cc = "receiver_driven", Given parameters = {}) {
  FlowConfig flow = worlds::flow(cc, {0}, {1});
  flow.receiver = control;
  flow.receiver_parameters = std::move(parameters);
  return flow;
}

WorldConfig path(double mbps, double rtt_ms, int64_t queue, std::vector<FlowConfig> flows) {
  WorldConfig world = worlds::dumbbell(mbps, rtt_ms, queue, {});
  world.flows = std::move(flows);
  return world;
}

double share_of(World& world, uint32_t flow, Time from, Time until) {
  world.run(from);
  const int64_t before = world.flows()[flow].counters().delivered_bytes;
  world.run(until);
  return static_cast<double>(world.flows()[flow].counters().delivered_bytes - before) * 8e9 /
         static_cast<double>(until - from);
}

double mean_wait(World& world) {
  const LinkStats stats = world.links()[0].stats(world.now());
  return stats.sojourn_sum / static_cast<double>(stats.packets_out);
}

std::unique_ptr<ReceiverControl> control(const std::string& name, Given parameters = {}, int64_t buffer = 0) {
  FlowConfig config;
  config.receiver = name;
  config.receiver_parameters = std::move(parameters);
  config.receive_buffer_bytes = buffer;
  return make_receiver_control(config, 1448);
}

Arrival packet(Time sent, Time transit) {
  return {sent + transit, kMicrosecond, static_cast<uint32_t>(sent / kMicrosecond), 1448, -1, 0, 0, 0, 0, false};
}

// Keeps what it is told.
class Recorder final : public ReceiverControl {
 public:
  explicit Recorder(std::vector<Arrival>& arrivals) : arrivals_(arrivals) {}
  int64_t initial_window() const override { return 100 * 1448; }
  int64_t window(const Arrival& arrival) override {
    arrivals_.push_back(arrival);
    return 100 * 1448;
  }

 private:
  std::vector<Arrival>& arrivals_;
};

std::vector<Arrival> arrivals_of(const WorldConfig& config, Time until) {
  std::vector<Arrival> arrivals;
  World world(config, 1);
  world.flows()[0].receiver.attach(std::make_unique<Recorder>(arrivals));
  world.run(until);
  return arrivals;
}

}  // namespace

TEST(every_receiver_control_fills_a_link) {
  for (const ReceiverControlRecord* record : Catalogue<ReceiverControlRecord>::all()) {
    if (record->meaning.empty()) continue;  // of another test
    for (const char* cc : {"receiver_driven", "cubic"}) {
      for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
        WorldConfig config = path(10, 40, 300, {received(std::string(record->name), cc)});
        config.stack = stack;
        World world(config, 1);
        CHECK_GT(share_of(world, 0, 10 * kSecond, 40 * kSecond), 8.5e6);
        CHECK_LT(mean_wait(world), 0.08);
        CHECK_EQ(world.flows()[0].counters().timeouts, 0u);
      }
    }
  }
}

TEST(nuwa_keeps_the_queue_near_its_target) {
  for (const double target : {25, 75, 150}) {
    World world(path(10, 40, 1000, {received("nuwa", "receiver_driven", {{"target_ms", target}})}), 1);
    world.run(60 * kSecond);
    CHECK_GT(mean_wait(world), 0.4e-3 * target);
    CHECK_LT(mean_wait(world), 1.1e-3 * target);
  }
}

TEST(windows_follow_from_arrivals_alone) {
  // The same arrivals in another world's clock and with the same gaps give the same window.
  const std::pair<const char*, Given> all[] = {
      {"nuwa", {}}, {"nuwa", {{"gain", 1}}}, {"rledbat", {}}, {"fixed", {}}, {"agent", {}}};
  for (const auto& [name, parameters] : all) {
    const auto here = control(name, parameters), ahead = control(name, parameters), behind = control(name, parameters);
    Rng rng(3);
    Time sent = 0;
    for (int i = 0; i < 20'000; ++i) {
      sent += kMillisecond + static_cast<Time>(rng.below(kMillisecond));
      Arrival arrival = packet(sent, 20 * kMillisecond + static_cast<Time>(rng.below(50 * kMillisecond)));
      if (i % 40 == 0) arrival.rtt = 40 * kMillisecond + static_cast<Time>(rng.below(50 * kMillisecond));
      if (i % 1000 == 0) arrival.missing = 1;
      if (i % 1000 == 50) arrival.repeated = true;
      Arrival later = arrival;
      later.now += 3600 * kSecond;
      later.stamp += 123'456'789;
      Arrival earlier = arrival;
      earlier.now -= 3600 * kSecond;   // a clock that shows a negative time from first to last
      const int64_t window = here->window(arrival);
      CHECK_EQ(window, ahead->window(later));
      CHECK_EQ(window, behind->window(earlier));
    }
  }
}

TEST(a_clock_that_shows_a_negative_time_measures_as_any_other) {
  for (const Time unit : {kMillisecond, kMicrosecond}) {
    WorldConfig config = path(10, 40, 300, {received("nuwa")});
    config.flows[0].timestamp_ns = unit;
    const std::vector<Arrival> usual = arrivals_of(config, 5 * kSecond);
    config.flows[0].clock_offset_ns = -3600 * kSecond;
    const std::vector<Arrival> negative = arrivals_of(config, 5 * kSecond);
    CHECK_GT(usual.size(), 1000u);
    CHECK_EQ(usual.size(), negative.size());
    for (size_t i = 0; i < usual.size(); ++i) {
      CHECK_EQ(usual[i].now, negative[i].now + 3600 * kSecond);
      CHECK_EQ(usual[i].rtt, negative[i].rtt);
    }
  }
}

TEST(a_window_of_measured_products_is_the_same_on_a_clock_of_any_time) {
  const auto carried = [](Time offset) {
    WorldConfig config = path(20, 40, 100, {received("nuwa", "receiver_driven", {{"gain", 1}})});
    config.flows[0].clock_offset_ns = offset;
    World world(config, 1);
    world.run(10 * kSecond);
    return world.flows()[0].counters().delivered_bytes;
  };
  const auto usual = carried(0);
  CHECK_GT(usual, 20'000'000);
  CHECK_EQ(usual, carried(3600 * kSecond));
  CHECK_EQ(usual, carried(-3600 * kSecond));
}

TEST(reordering_is_forgotten_when_losses_go_on_without_it) {
  // The route becomes shorter once: packets overtake each other for a moment.
  // Then a short queue loses as if they never had.
  const auto dropped = [](bool reorder) {
    WorldConfig config = path(100, 10, 20, {received("nuwa")});
    config.links[0].delay_time_ns = {0, 5 * kSecond};
    config.links[0].delay_step_ns = {config.links[0].delay_ns + 3 * kMillisecond, config.links[0].delay_ns};
    config.links[0].delay_reorders = reorder;
    World world(config, 1);
    world.run(60 * kSecond);
    return world.flows()[0].counters().queue_drops;
  };
  const auto in_order = dropped(false);
  CHECK_GT(in_order, 100u);
  CHECK_GT(static_cast<double>(in_order) * 1.5, dropped(true));
}

TEST(late_packets_are_those_that_were_overtaken) {
  WorldConfig config = path(10, 40, 20, {received("nuwa", "cubic")});
  const auto count = [](const std::vector<Arrival>& arrivals, bool Arrival::*what) {
    return std::count_if(arrivals.begin(), arrivals.end(), [&](const Arrival& a) { return a.*what; });
  };
  const std::vector<Arrival> in_order = arrivals_of(config, 20 * kSecond);
  CHECK_GT(count(in_order, &Arrival::repeated), 10);
  CHECK_EQ(count(in_order, &Arrival::late), 0);
  config.links[0].jitter = {.distribution = "uniform", .scale_ns = 10e6, .reorder = true};
  CHECK_GT(count(arrivals_of(config, 20 * kSecond), &Arrival::late), 100);
}

TEST(nuwa_is_not_slowed_by_packets_that_overtake_each_other) {
  for (const double milliseconds : {2, 10}) {
    WorldConfig config = path(10, 40, 250, {received("nuwa")});
    config.links[0].jitter = {.distribution = "uniform", .scale_ns = milliseconds * 1e6, .reorder = true};
    World world(config, 1);
    CHECK_GT(share_of(world, 0, 10 * kSecond, 60 * kSecond), 8e6);
  }
}

TEST(nuwa_heeds_losses_beside_reordering) {
  // A queue that is far too short for the target: what keeps the window down is losses.
  const auto lost = [](double keep) {
    WorldConfig config = path(10, 40, 15, {received("nuwa", "receiver_driven", {{"keep", keep}})});
    config.links[0].jitter = {.distribution = "uniform", .scale_ns = 10e6, .reorder = true};
    World world(config, 1);
    world.run(60 * kSecond);
    return world.flows()[0].counters().queue_drops;
  };
  CHECK_LT(2 * lost(0.85), lost(1));
}

TEST(nothing_grows_in_silence) {
  for (const char* name : {"nuwa", "rledbat"}) {
    const auto one = control(name);
    Time sent = 0;
    int64_t window = 0;
    for (int i = 0; i < 3000; ++i, sent += kMillisecond) window = one->window(packet(sent, 20 * kMillisecond));
    // However long the silence: one packet's worth, or a new round's.
    const int64_t after_silence = one->window(packet(sent + 100 * kSecond, 20 * kMillisecond));
    CHECK_LE(after_silence, window + 1448);
  }
}

TEST(windows_stay_between_two_segments_and_the_buffer) {
  for (const char* name : {"nuwa", "rledbat"}) {
    const auto one = control(name, {}, 100'000);
    Rng rng(5);
    for (int i = 0; i < 50'000; ++i) {
      const Time wait =
          static_cast<Time>(rng.below(static_cast<uint64_t>(i / 10'000 % 2 ? 2 * kSecond : kMillisecond)));
      Arrival arrival = packet(i * kMillisecond, kMillisecond + wait);
      arrival.rtt = i % 10 ? -1 : 2 * kMillisecond + wait;
      arrival.repeated = i % 100 == 0;
      const int64_t window = one->window(arrival);
      CHECK_GE(window, 2 * 1448);
      CHECK_LE(window, 100'000);
    }
  }
}

TEST(tanh_is_good_to_one_in_ten_thousand) {
  for (double x = -12; x < 12; x += 0.001) CHECK_NEAR(quick_tanh(x), std::tanh(x), 1e-4);
}

TEST(flows_that_join_share_alike_within_10_s) {
  for (const double target : {25, 75}) {
    std::vector<FlowConfig> flows(4, received("nuwa", "receiver_driven", {{"target_ms", target}}));
    for (size_t i = 0; i < 4; ++i) flows[i].start_ns = static_cast<Time>(i) * 10 * kSecond;
    World world(path(10, 40, 500, flows), 1);
    for (uint32_t n = 2; n <= 4; ++n) {
      world.run((n * 10 - 2) * kSecond);
      std::vector<double> before;
      for (const Flow& flow : world.flows()) before.push_back(static_cast<double>(flow.counters().delivered_bytes));
      world.run(n * 10 * kSecond);
      double sum = 0, squares = 0;
      for (uint32_t i = 0; i < n; ++i) {
        const double got = static_cast<double>(world.flows()[i].counters().delivered_bytes) - before[i];
        sum += got, squares += got * got;
      }
      CHECK_GE(sum * sum / (n * squares), 0.94);
    }
  }
}

TEST(rledbat_makes_way_for_cubic) {
  std::vector<FlowConfig> flows = {received("rledbat", "cubic"), worlds::flow("cubic", {0}, {1})};
  flows[1].start_ns = 10 * kSecond;
  World world(path(10, 40, 300, flows), 1);
  CHECK_LT(share_of(world, 0, 20 * kSecond, 60 * kSecond), 1.5e6);
}

TEST(agents_see_what_a_receiver_can_and_are_obeyed) {
  // Nothing empties the queue before the agent does, so the path as it was at the start must not be forgotten.
  const Given parameters = {{"drain_interval_s", 0}, {"base_window_s", 1000}};
  WorldConfig config =
      path(10, 40, 500, {received("agent", "receiver_driven", parameters), worlds::flow("cubic", {0}, {1})});
  config.flows[1].start_ns = 1000 * kSecond;
  Batch batch(1, 1, 1, make_agent("receiver"));
  batch.reset(0, config, 1);
  const auto fields = batch.fields();
  const auto field = [&](const char* name) {
    return batch.telemetry()[std::find(fields.begin(), fields.end(), name) - fields.begin()];
  };
  batch.advance(10 * kMillisecond, nullptr);
  for (const char* name : {"queue_delay_last_s", "queue_delay_s", "queue_delay_mean_s", "delay_gradient", "rtt_s",
                           "silence_s"}) {
    CHECK(std::isnan(field(name)));
  }
  CHECK_NEAR(field("longest_gap_s"), 0.01, 1e-9);
  batch.advance(20 * kSecond, nullptr);
  batch.control()[0] = 0;
  batch.control()[2] = 40 * 1448;
  batch.advance(2 * kSecond, nullptr);
  batch.advance(100 * kMillisecond, nullptr);
  CHECK_EQ(field("k"), 0);
  CHECK_EQ(field("window_bytes"), 40 * 1448);
  CHECK_NEAR(field("packets_received"), 83, 3);
  CHECK_NEAR(field("receive_rate_bps"), 9.64e6, 0.4e6);
  CHECK_NEAR(field("queue_delay_s"), field("true_queue_delay_mean_s"), 2e-3);
  CHECK_NEAR(field("rtt_min_s"), 0.041, 2e-3);
  CHECK_EQ(field("packets_missing"), 0);
  batch.control()[0] = 7;
  batch.control()[1] = 0.03;
  batch.control()[2] = NAN;
  batch.advance(kSecond, nullptr);
  CHECK_EQ(field("k"), 7);
  CHECK_NEAR(field("target_delay_s"), 0.03, 1e-9);
  batch.control()[0] = 65;
  CHECK_THROWS(batch.advance(kSecond, nullptr), std::invalid_argument);
}

TEST(an_application_that_reads_at_a_rate_holds_the_sender_to_it) {
  WorldConfig config = path(50, 40, 300, {worlds::flow("cubic", {0}, {1})});
  config.flows[0].receive_buffer_bytes = 200'000;
  config.flows[0].read_bps = 5e6;
  World world(config, 1);
  CHECK_NEAR(share_of(world, 0, 5 * kSecond, 25 * kSecond), 5e6, 0.1e6);
  CHECK_GT(world.flows()[0].receiver.buffered_bytes(), 100'000);
  CHECK_LE(world.flows()[0].receiver.buffered_bytes(), 200'000);
}

TEST(bad_receivers_are_refused) {
  const auto refused = [](auto&& change) {
    WorldConfig config = path(10, 40, 100, {received("nuwa")});
    change(config.flows[0]);
    CHECK_THROWS(World(config, 1), std::invalid_argument);
  };
  refused([](FlowConfig& f) { f.receiver = "dune"; });
  refused([](FlowConfig& f) { f.receiver_parameters = {{"gains", 1}}; });
  refused([](FlowConfig& f) { f.receiver_parameters = {{"k", 65}}; });
  refused([](FlowConfig& f) { f.receiver = "fixed", f.receiver_parameters = {{"window_bytes", 1}}; });
  refused([](FlowConfig& f) { f.receiver = "fixed", f.receiver_parameters = {{"window_bytes", 1447}}; });
  refused([](FlowConfig& f) { f.window_clamp_bytes = 10'000; });
  refused([](FlowConfig& f) { f.timestamp_ns = 4'000'000; });
  refused([](FlowConfig& f) { f.clock_drift_ppm = NAN; });
  refused([](FlowConfig& f) { f.clock_offset_ns = INT64_MAX; });
  refused([](FlowConfig& f) { f.read_bps = -1; });
}

TEST(a_window_of_one_segment_is_enough) {
  World world(path(10, 40, 100, {received("fixed", "cubic", {{"window_bytes", 1448}})}), 1);
  CHECK_GT(share_of(world, 0, kSecond, 5 * kSecond), 0.1e6);
}
