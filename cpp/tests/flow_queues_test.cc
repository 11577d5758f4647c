// Lists of flows that take turns.
#include <list>

#include "check.h"
#include "netbuf/rng.h"
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
