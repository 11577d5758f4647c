// Lists of flows that take turns.
#include <list>

#include "check.h"
#include "netbuf/rng.h"
#include "qdisc_server.h"
#include "qdisc/flow_queues.h"

using namespace netbuf;

namespace {

struct Empty {};
using Queues = FlowQueues<Empty>;

std::vector<uint32_t> order_of(const Queues& queues, const Queues::List& list) {
  std::vector<uint32_t> order;
  for (uint32_t i = list.head; i != UINT32_MAX; i = queues[i].next) order.push_back(i);
  return order;
}

}  // namespace

TEST(flows_join_and_leave_a_list_anywhere) {
  Queues queues(50);
  Queues::List list;
  std::list<uint32_t> expected;
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < 50; ++i) out.push_back(i);
  Rng rng(1);
  for (int step = 0; step < 20'000; ++step) {
    if (!out.empty() && rng.below(2) > 0) {
      std::swap(out[rng.below(static_cast<uint32_t>(out.size()))], out.back());
      queues.push(list, out.back());
      expected.push_back(out.back());
      out.pop_back();
    } else if (!expected.empty() && rng.below(2) > 0) {
      out.push_back(expected.front());
      queues.pop(list);
      expected.pop_front();
    } else if (!expected.empty()) {
      const auto leaves = std::next(expected.begin(), rng.below(static_cast<uint32_t>(expected.size())));
      out.push_back(*leaves);
      queues.erase(list, *leaves);
      expected.erase(leaves);
    }
    if (step % 10 == 0) CHECK(order_of(queues, list) == std::vector<uint32_t>(expected.begin(), expected.end()));
  }
}

// A walk along the list for each, 10^11 steps, would not end.
TEST(flows_leave_a_long_list_at_once) {
  constexpr uint32_t kFlows = 500'000;
  Queues queues(kFlows);
  Queues::List list;
  for (uint32_t i = 0; i < kFlows; ++i) queues.push(list, i);
  for (uint32_t i = kFlows; i-- > 1;) queues.erase(list, i);
  CHECK(order_of(queues, list) == (std::vector<uint32_t>{0}));
}

// A connection that takes an old one's number is in another queue, if they do not meet by chance.
TEST(flows_of_the_same_number_hash_anew) {
  Rng rng(1);
  FlowHash hash({.limit_packets = 1, .limit_bytes = 1, .rate_bps = 1, .parameters = discipline_parameters("fq_codel", {}, ""),
                 .sink = nullptr, .rng = &rng});
  Queued data{}, other{};
  data.owner = 7, other.owner = 8;
  uint32_t met = 0;
  for (int connection = 0; connection < 1000; ++connection) {
    const uint32_t before = hash.choose(data, 1024), beside = hash.choose(other, 1024);
    hash.forget(7);
    met += hash.choose(data, 1024) == before;
    CHECK_EQ(hash.choose(other, 1024), beside);
  }
  CHECK_LE(met, 5u);
  CHECK_LE(hash.memory_bytes(), 64u);
}

TEST(disciplines_that_hash_forget_connections) {
  for (const char* name : {"fq_codel", "fq_pie"}) {
    // One of two queues is full: new connections of the same number find it in half the cases.
    uint32_t waited = 0;
    for (uint32_t perturbation = 1; perturbation <= 200; ++perturbation) {
      Server server(name, {{"flows", 2}, {"perturbation", perturbation}}, 12e6, 10'000);
      for (int i = 0; i < 50; ++i) server.arrive(0, 1);
      server.run(3 * kMillisecond);
      server.queue->forget(1);
      server.sent_of.clear();
      server.arrive(3 * kMillisecond, 1, 100);
      std::vector<uint32_t> sizes;
      server.on_sent = [&](const Queued& item) { sizes.push_back(item.bytes); };
      server.run(6 * kMillisecond);
      waited += std::count(sizes.begin(), sizes.end(), 100) == 0;
    }
    CHECK_NEAR(waited, 100, 30);
  }
}
