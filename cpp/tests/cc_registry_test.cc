// The catalogue of congestion controls: what holds for all of them, and the agent's.
#include <set>
#include <stdexcept>

#include "fake_connection.h"
#include "worlds.h"

using namespace netbuf;

namespace {

constexpr Stack kStacks[] = {Stack::linux_kernel, Stack::ns3};

std::string refusal(std::string_view name, Stack stack, const Given& parameters) {
  try {
    make_congestion_control(name, stack, parameters);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

void survives(const std::string& name, Stack stack, const Given& parameters) {
  fake::Connection c(name, {}, stack, parameters);
  // ns-3's BBR is held back by pacing alone after a recovery in STARTUP.
  const bool unlimited = name == "bbr" && stack_profile(stack).keeps_rate_samples;
  for (int round = 0; round < 20; ++round) {
    c.run_acks(300);
    if (round % 5 == 4) c.time_out();
    else c.lose();
    CHECK_GE(c.tcb.cwnd, int64_t{c.tcb.mss});
    CHECK_GE(c.tcb.ssthresh, 2 * int64_t{c.tcb.mss});
    if (!unlimited) CHECK_LT(c.tcb.cwnd_packets, 20'000u);
  }
}

}  // namespace

TEST(records_are_whole_and_in_the_order_of_their_names) {
  std::string last;
  for (const CongestionControlRecord* record : Catalogue<CongestionControlRecord>::all()) {
    CHECK_LT(last, std::string(record->name));
    last = record->name;
    CHECK(!record->meaning.empty());
    CHECK(record->linux_kernel || record->ns3);
    CHECK(Catalogue<CongestionControlRecord>::find(record->name) == record);
    for (const Stack stack : kStacks) {
      std::set<std::string_view> names;
      for (const Parameter& parameter : record->parameters) {
        CHECK(!parameter.in(stack) || names.insert(parameter.name).second);
        CHECK(!parameter.meaning.empty());
        CHECK_LT(parameter.low, parameter.high);
        CHECK(std::isnan(parameter.initial) ||
              (parameter.low <= parameter.initial && parameter.initial <= parameter.high));
      }
    }
  }
  CHECK(Catalogue<CongestionControlRecord>::find("cubicc") == nullptr);
}

TEST(a_second_of_the_same_name_is_refused) {
  CHECK_THROWS(Entry<CongestionControlRecord>({.name = "cubic", .meaning = "another"}), std::logic_error);
}

TEST(an_unknown_name_is_named_with_the_valid_ones) {
  const std::string message = refusal("cubicc", Stack::linux_kernel, {});
  CHECK(message.find("cc = cubicc: must be one of ") != std::string::npos);
  for (const std::string& name : worlds::controls(Stack::linux_kernel)) CHECK(message.find(name) != std::string::npos);
  CHECK(!refusal("", Stack::ns3, {}).empty());
}

TEST(what_a_stack_does_not_have_is_refused_there) {
  const std::string message = refusal("linuxreno", Stack::linux_kernel, {});
  CHECK(message.find("cc = linuxreno: must be one of the linux stack: ") != std::string::npos);
  CHECK(message.find("cubic") != std::string::npos);
  CHECK(refusal("linuxreno", Stack::ns3, {}).empty());
}

TEST(parameters_are_checked_and_named) {
  for (const CongestionControlRecord* record : Catalogue<CongestionControlRecord>::all()) {
    for (const Stack stack : kStacks) {
      if (!record->in(stack)) continue;
      CHECK(refusal(record->name, stack, {{"colour", 1}}).find("cc_parameters[colour] = 1: must be ") !=
            std::string::npos);
      for (const Parameter& parameter : record->parameters) {
        const std::string name(parameter.name), field = "cc_parameters[" + name + "] = ";
        if (!parameter.in(stack)) {
          bool elsewhere = false;  // of the same name, in this stack
          for (const Parameter& other : record->parameters) {
            elsewhere |= other.name == parameter.name && other.in(stack);
          }
          if (!elsewhere) {
            CHECK(refusal(record->name, stack, {{name, parameter.initial}}).find(field) != std::string::npos);
          }
          continue;
        }
        for (const double good : {parameter.low, parameter.high}) {
          CHECK(refusal(record->name, stack, {{name, good}}).empty());
        }
        for (const double bad : {parameter.low - 1, parameter.high * 2 + 1, double{NAN}, double{INFINITY}}) {
          CHECK(refusal(record->name, stack, {{name, bad}}).find(field) != std::string::npos);
        }
        if (parameter.kind != Parameter::Kind::real) {
          CHECK(!refusal(record->name, stack, {{name, parameter.low + 0.5}}).empty());
        }
      }
    }
  }
}

TEST(every_one_survives_losses_and_time_outs_at_every_end_of_its_ranges) {
  for (const Stack stack : kStacks) {
    for (const std::string& name : worlds::controls(stack)) {
      survives(name, stack, {});
      for (const Parameter& parameter : Catalogue<CongestionControlRecord>::find(name)->parameters) {
        if (!parameter.in(stack)) continue;
        for (const double value : {parameter.low, parameter.high}) {
          survives(name, stack, {{std::string(parameter.name), value}});
        }
      }
    }
  }
}

TEST(defaults_that_are_given_change_no_bit) {
  for (const Stack stack : kStacks) {
    for (const std::string& name : worlds::controls(stack, false)) {
      WorldConfig plain = worlds::dumbbell(10, 40, 40, {name, "newreno"}, stack), given = plain;
      plain.links[0].loss = given.links[0].loss = 2e-3;
      for (const Parameter& parameter : Catalogue<CongestionControlRecord>::find(name)->parameters) {
        if (parameter.in(stack) && !std::isnan(parameter.initial)) {
          given.flows[0].cc_parameters[std::string(parameter.name)] = parameter.initial;
        }
      }
      World a(plain, 5), b(given, 5);
      a.run(20 * kSecond);
      b.run(20 * kSecond);
      CHECK(worlds::fingerprint(a) == worlds::fingerprint(b));
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
