// The registry of congestion controls, and the agent's.
#include <stdexcept>

#include "check.h"
#include "fake_connection.h"

using namespace netbuf;

TEST(names_are_unique_and_all_can_be_made) {
  const std::vector<std::string> names = congestion_control_names();
  CHECK_EQ(names.size(), 7u);
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t j = 0; j < i; ++j) CHECK_NE(names[i], names[j]);
    CHECK(make_congestion_control(names[i], Stack::linux_kernel) != nullptr);
    CHECK(make_congestion_control(names[i], Stack::ns3) != nullptr);
  }
}

TEST(an_unknown_name_is_named_with_the_valid_ones) {
  std::string message;
  try {
    make_congestion_control("cubicc", Stack::linux_kernel);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  CHECK(message.find("'cubicc'") != std::string::npos);
  for (const std::string& name : congestion_control_names()) CHECK(message.find(name) != std::string::npos);
  CHECK_THROWS(make_congestion_control("", Stack::ns3), std::invalid_argument);
}

TEST(every_one_survives_losses_and_time_outs) {
  for (const std::string& name : congestion_control_names()) {
    for (const Stack stack : {Stack::linux_kernel, Stack::ns3}) {
      fake::Connection c(name, {}, stack);
      for (int round = 0; round < 20; ++round) {
        c.run_acks(300);
        if (round % 5 == 4) c.time_out();
        else c.lose();
        CHECK_GE(c.tcb.cwnd, int64_t{c.tcb.mss});
        CHECK_GE(c.tcb.ssthresh, 2 * int64_t{c.tcb.mss});
        CHECK_LT(c.tcb.cwnd_packets, 10000u);
      }
    }
  }
}

TEST(the_agent_keeps_its_window) {
  fake::Connection c("agent", {});
  CHECK(c.cc->owns_window());
  CHECK(!c.cc->wants_rate());
  c.tcb.set_cwnd_packets(37);
  c.run_acks(500);
  CHECK_EQ(c.tcb.cwnd_packets, 37u);
  CHECK_EQ(c.cc->ssthresh(c.tcb), 37 * int64_t{c.tcb.mss} / 2);
}
