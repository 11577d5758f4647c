// What validate() refuses, and that its message names the field.
#include "worlds.h"

using namespace netbuf;

namespace {

template <class Change>
void refused(const char* field, Change&& change) {
  WorldConfig config = worlds::dumbbell(10, 40, 50, {"cubic"});
  validate(config);
  change(config);
  try {
    validate(config);
    check::fail(__FILE__, __LINE__, std::string("accepted: bad ") + field);
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()).find(field) != std::string::npos);
  }
}

}  // namespace

TEST(bad_links_are_refused) {
  for (const double rate : {-1.0, 0.5, 1e-300, double{NAN}, double{INFINITY}}) {
    refused("rate_bps", [&](WorldConfig& c) { c.links[0].rate_bps = rate; });
    refused("schedule_rate_bps",
            [&](WorldConfig& c) { c.links[0].schedule_time_ns = {0}, c.links[0].schedule_rate_bps = {rate}; });
  }
  refused("delay_ns", [](WorldConfig& c) { c.links[0].delay_ns = -1; });
  refused("delay_ns", [](WorldConfig& c) { c.links[0].delay_ns = INT64_MAX; });
  refused("queue_limit_packets", [](WorldConfig& c) { c.links[0].queue_limit_packets = -1; });
  refused("queue_limit_bytes", [](WorldConfig& c) { c.links[0].queue_limit_bytes = -1; });
  for (const double loss : {-0.1, 1.0, double{NAN}}) refused("loss", [&](WorldConfig& c) { c.links[0].loss = loss; });
  refused("ge", [](WorldConfig& c) { c.links[0].ge = {0.1, 0.1, 0.1}; });
  refused("ge", [](WorldConfig& c) { c.links[0].ge = {0.1, 0.1, 0.1, 1.5}; });
  refused("loss_list", [](WorldConfig& c) { c.links[0].loss_list = {3, 3}; });
  refused("schedule",
          [](WorldConfig& c) { c.links[0].schedule_time_ns = {0, 5}, c.links[0].schedule_rate_bps = {1e6}; });
  refused("schedule_time_ns",
          [](WorldConfig& c) { c.links[0].schedule_time_ns = {1}, c.links[0].schedule_rate_bps = {1e6}; });
  refused("schedule_time_ns", [](WorldConfig& c) {
    c.links[0].schedule_time_ns = {0, 5, 5}, c.links[0].schedule_rate_bps = {1e6, 1e6, 1e6};
  });
  refused("schedule_rate_bps",
          [](WorldConfig& c) { c.links[0].schedule_time_ns = {0}, c.links[0].schedule_rate_bps = {0}; });
  refused("schedule_period_ns", [](WorldConfig& c) {
    c.links[0].schedule_time_ns = {0, 5}, c.links[0].schedule_rate_bps = {1e6, 2e6}, c.links[0].schedule_period_ns = 5;
  });
  refused("trace_ns", [](WorldConfig& c) { c.links[0].trace_ns = {5, 4}, c.links[0].trace_period_ns = 10; });
  refused("trace_ns", [](WorldConfig& c) { c.links[0].trace_ns = {-1}, c.links[0].trace_period_ns = 10; });
  refused("trace_period_ns", [](WorldConfig& c) { c.links[0].trace_ns = {5}, c.links[0].trace_period_ns = 4; });
  refused("trace_period_ns", [](WorldConfig& c) { c.links[0].trace_ns = {0}, c.links[0].trace_period_ns = 0; });
  refused("links", [](WorldConfig& c) { c.links.clear(); });
}

TEST(bad_flows_are_refused) {
  refused("flows", [](WorldConfig& c) { c.flows.clear(); });
  refused("cc", [](WorldConfig& c) { c.flows[0].cc = "tahoe"; });
  refused("cc", [](WorldConfig& c) { c.flows[0].controlled = true; });
  refused("path", [](WorldConfig& c) { c.flows[0].path.clear(); });
  refused("return_path", [](WorldConfig& c) { c.flows[0].return_path.clear(); });
  refused("path", [](WorldConfig& c) { c.flows[0].path = {2}; });
  refused("path", [](WorldConfig& c) { c.flows[0].path.assign(101, 0); });
  refused("start_ns", [](WorldConfig& c) { c.flows[0].start_ns = -1; });
  refused("stop_ns", [](WorldConfig& c) { c.flows[0].start_ns = c.flows[0].stop_ns = 5; });
  refused("app", [](WorldConfig& c) { c.flows[0].app = "stream"; });
  refused("size_bytes", [](WorldConfig& c) { c.flows[0].app = "sized"; });
  refused("on_ns", [](WorldConfig& c) { c.flows[0].app = "on_off"; });
  refused("off_ns", [](WorldConfig& c) {
    c.flows[0].app = "on_off", c.flows[0].on_ns = 1, c.flows[0].off_ns = INT64_MAX;
  });
  refused("app_rate_bps", [](WorldConfig& c) { c.flows[0].app_rate_bps = NAN; });
  refused("send_buffer_bytes", [](WorldConfig& c) { c.flows[0].send_buffer_bytes = -1; });
  refused("receive_buffer_bytes", [](WorldConfig& c) { c.flows[0].receive_buffer_bytes = -1; });
  refused("window_clamp_bytes", [](WorldConfig& c) { c.flows[0].window_clamp_bytes = -1; });
  refused("initial_cwnd_packets", [](WorldConfig& c) { c.flows[0].initial_cwnd_packets = 0; });
}

TEST(worlds_without_an_end_are_refused) {
  refused("path", [](WorldConfig& c) { c.links[0].rate_bps = 0; });  // endless data, no rate, no buffer
  refused("path", [](WorldConfig& c) {
    c.links[0].rate_bps = 0, c.links[0].delay_ns = c.links[1].delay_ns = 0, c.flows[0].receive_buffer_bytes = 10'000;
  });
  WorldConfig buffered = worlds::dumbbell(0, 40, 0, {"cubic"});
  buffered.flows[0].receive_buffer_bytes = 100'000;
  World world(buffered, 1);
  world.run(kSecond);
  CHECK_GT(world.flows()[0].counters().delivered_bytes, 1'000'000);
}

TEST(the_ns3_stack_has_every_option_of_the_handshake) {
  const auto refused_in_ns3 = [](const char* field, auto change) {
    refused(field, [change](WorldConfig& c) { c.stack = Stack::ns3, change(c); });
  };
  refused_in_ns3("sack", [](WorldConfig& c) { c.sack = false; });
  refused_in_ns3("timestamps", [](WorldConfig& c) { c.timestamps = false; });
  refused_in_ns3("flows[0].window_scaling", [](WorldConfig& c) { c.flows[0].window_scaling = false; });
  refused_in_ns3("syn_retries", [](WorldConfig& c) { c.syn_retries = 1; });
  refused_in_ns3("data_retries", [](WorldConfig& c) { c.data_retries = 1; });
  refused_in_ns3("hosts[0].sack", [](WorldConfig& c) { c.hosts.emplace_back().sack = false; });
}
