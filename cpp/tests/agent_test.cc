// The interface of agents: what holds for every kind, and what a kind of one's own needs.
#include "netbuf/agent.h"

#include <cmath>
#include <set>

#include "netbuf/batch.h"
#include "worlds.h"

using namespace netbuf;

namespace {

// Counts what a host has received, and stops its flow's window at what it is told: neither a sender's nor a switch's.
struct Received {
  int64_t bytes = 0;
};

class Host final : public AgentOf<Received> {
 public:
  explicit Host(const Parameters& parameters) : AgentOf(2, 1), most_(parameters["most_packets"]) {}

  std::vector<std::string> fields() const override { return {"received_bytes", "window_packets"}; }
  std::vector<Control> controls() const override { return {{"window_packets", 1, most_, "a number of packets"}}; }
  std::string_view what() const override { return "hosts"; }
  std::vector<uint32_t> find(World& world) const override {
    std::vector<uint32_t> flows;
    for (uint32_t i = 0; i < world.flows().size(); i += 2) flows.push_back(i);  // every other one
    return flows;
  }

 protected:
  void begin(World& world, uint32_t flow, Received& start) const override { start.bytes = bytes(world, flow); }
  void apply(World& world, uint32_t flow, const double* control) const override {
    if (!std::isnan(*control)) world.set_window(flow, *control * 1448);
  }
  void run_to_event(World& world, std::span<const uint32_t> agents, Time interval,
                    uint32_t max_intervals) const override {
    const int64_t before = bytes(world, agents[0]);
    for (uint32_t n = 0; n < max_intervals && bytes(world, agents[0]) == before; ++n) world.run(world.now() + interval);
  }
  void write(World& world, uint32_t flow, const Received& start, double* out) const override {
    *out++ = static_cast<double>(bytes(world, flow) - start.bytes);
    *out++ = world.flows()[flow].sender.tcb.cwnd_packets;
  }

 private:
  static int64_t bytes(World& world, uint32_t flow) { return world.flows()[flow].counters().delivered_bytes; }
  double most_;
};

const Entry<AgentRecord> entry{{
    .name = "test_host",
    .meaning = "of this test",
    .make = make_kind<Host>,
    .parameters = {real("most_packets", 100, 1, 1000, "the largest window")},
}};

}  // namespace

TEST(every_kind_can_be_made_by_its_name) {
  for (const AgentRecord* record : Catalogue<AgentRecord>::all()) {
    const auto agent = make_agent(record->name);
    const auto fields = agent->fields();
    CHECK(!fields.empty());
    CHECK_EQ(std::set(fields.begin(), fields.end()).size(), fields.size());
    for (const Control& control : agent->controls()) CHECK_LT(control.low, control.high);
    CHECK(!record->meaning.empty());
    CHECK(!agent->what().empty());
  }
  CHECK_THROWS(make_agent("router"), std::invalid_argument);
  CHECK_THROWS(make_agent("sender", {{"queues", 2}}), std::invalid_argument);
  CHECK_THROWS(make_agent("switch", {{"queues", 65}}), std::invalid_argument);
}

TEST(a_kind_of_ones_own_is_an_entry) {
  const WorldConfig config = worlds::dumbbell(10, 40, 100, std::vector<std::string>(4, "agent"));
  Batch batch(2, 3, 2, make_agent("test_host", {{"most_packets", 50}}));
  for (uint32_t w = 0; w < 2; ++w) batch.reset(w, config, w);
  CHECK_EQ(std::vector<int>(batch.agent_mask(), batch.agent_mask() + 6) == std::vector<int>({1, 1, 0, 1, 1, 0}), true);
  batch.control()[0] = 30;
  batch.control()[1] = 5;
  batch.advance(2 * kSecond, nullptr);
  CHECK_EQ(batch.telemetry()[1], 30);
  CHECK_EQ(batch.telemetry()[3], 5);
  CHECK_GT(batch.telemetry()[0], 3 * batch.telemetry()[2]);
  CHECK(std::isnan(batch.telemetry()[4]));            // there is no third one
  CHECK_EQ(batch.world(0).flows()[1].sender.tcb.cwnd_packets, 10u);
  batch.advance_to_event(kMillisecond, 1000, nullptr);
  CHECK_EQ(batch.telemetry()[0], 1448);
  batch.control()[4] = 51;
  CHECK_THROWS(batch.advance(kSecond, nullptr), std::invalid_argument);
  batch.control()[4] = 50;
  batch.control()[2] = 1e9;                           // nobody's
  batch.advance(kSecond, nullptr);
  CHECK_THROWS(batch.reset(0, worlds::dumbbell(10, 40, 100, std::vector<std::string>(7, "agent")), 1),
               std::invalid_argument);
}

TEST(an_interval_is_cut_at_an_event_without_a_trace) {
  const WorldConfig config = worlds::dumbbell(10, 40, 100, {"agent", "cubic", "agent"});
  Batch whole(1, 2, 1, make_agent("sender")), cut(1, 2, 1, make_agent("sender"));
  whole.reset(0, config, 3);
  cut.reset(0, config, 3);
  whole.advance(5 * kSecond, nullptr);
  double elapsed = 0;
  while (cut.world(0).now() < 5 * kSecond) {
    cut.advance_to_event(5 * kSecond - cut.world(0).now(), 1, nullptr);
    elapsed += cut.telemetry()[0];
  }
  CHECK_NEAR(elapsed, 5, 1e-9);
  CHECK(worlds::fingerprint(whole.world(0)) == worlds::fingerprint(cut.world(0)));
}
