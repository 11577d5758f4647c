// The receiver of a flow whose receiver control is an agent's: Nuwa for each ACK, whose k, target delay or window the
// agent sets. It sees what a receiver can: what has arrived, when on its own clock, and its buffer; and, for reports
// and rewards only, what became of the sender's packets and of the tightest link's queue.
#include <cmath>
#include <limits>

#include "netbuf/agent.h"
#include "receiver_controls/nuwa.h"

namespace netbuf {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(double sum, double count) { return count > 0 ? sum / count : kNaN; }

constexpr std::string_view kFields[] = {
    "elapsed_s",          "received_bytes",          "delivered_bytes",    "packets_received",
    "receive_rate_bps",   "window_bytes",            "advertised_bytes",   "buffered_bytes",
    "queue_delay_last_s", "queue_delay_s",           "queue_delay_mean_s", "queue_delay_min_s",
    "queue_delay_max_s",  "delay_gradient",          "rtt_s",              "rtt_min_s",
    "packets_missing",    "packets_repeated",        "silence_s",          "longest_gap_s",
    "k",                  "target_delay_s",          "bdp_gain",           "mss_bytes",
    "goodput_bps",        "true_queue_delay_mean_s", "queue_packets",      "queue_drops",
    "packets_sent",       "packets_lost",            "cwnd_bytes",
};

struct Start {
  Time time = 0;
  FlowCounters counters;
  uint32_t lost = 0;
  double sojourn_sum = 0, queue_delay = 0;
  uint64_t dequeued = 0;
  bool heard = false;
};

Nuwa& nuwa_of(Flow& flow) { return static_cast<Nuwa&>(*flow.receiver.control()); }

class ReceiverAgent final : public AgentOf<Start> {
 public:
  explicit ReceiverAgent(const Parameters&) : AgentOf(std::size(kFields), 4) {}

  std::vector<std::string> fields() const override { return {std::begin(kFields), std::end(kFields)}; }
  std::vector<Control> controls() const override {
    return {{"k", 0, 64, "a k in [0, 64]"},
            {"target_delay_s", 0.0005, 2, "a delay in [0.0005, 2] s"},
            {"window_bytes", 1, static_cast<double>(kInfiniteWindow), "a window in [1, 2^40] bytes"},
            {"bdp_gain", 0, 16, "a gain in [0, 16]"}};
  }
  std::string_view what() const override { return "controlled receivers"; }

  std::vector<uint32_t> find(World& world) const override {
    std::vector<uint32_t> flows;
    for (uint32_t i = 0; i < world.flows().size(); ++i) {
      if (world.flows()[i].receiver.agent_controlled()) flows.push_back(i);
    }
    return flows;
  }

 protected:
  void begin(World& world, uint32_t index, Start& start) const override {
    Flow& flow = world.flows()[index];
    Link& link = world.links()[flow.bottleneck()];
    link.note(world.now());
    Nuwa& nuwa = nuwa_of(flow);
    nuwa.interval = {};
    nuwa.interval.last = flow.receiver.clock(world.now());
    start = {world.now(),        flow.counters(),      flow.sender.tcb.lost, link.sojourn_sum(),
             nuwa.delay().queue(), link.counters().packets_out, nuwa.heard_any()};
  }

  void apply(World& world, uint32_t index, const double* control) const override {
    Nuwa& nuwa = nuwa_of(world.flows()[index]);
    if (!std::isnan(control[0])) nuwa.set_k(control[0]);
    if (!std::isnan(control[1])) nuwa.set_target(control[1]);
    if (!std::isnan(control[2])) nuwa.set_window(control[2]);
    if (!std::isnan(control[3])) nuwa.set_gain(control[3]);
  }

  // The next data packet of any of them.
  void run_to_event(World& world, std::span<const uint32_t> flows, Time interval,
                    uint32_t max_intervals) const override {
    world.run_to_data(flows, world.now() + interval * max_intervals);
  }

  void write(World& world, uint32_t index, const Start& start, double* out) const override {
    Flow& flow = world.flows()[index];
    const Receiver& receiver = flow.receiver;
    const Nuwa& nuwa = nuwa_of(flow);
    const Interval& seen = nuwa.interval;
    const FlowCounters now = flow.counters(), &then = start.counters;
    Link& link = world.links()[flow.bottleneck()];
    link.note(world.now());

    const double elapsed = seconds(world.now() - start.time);
    const Time clock = receiver.clock(world.now());
    const bool heard = nuwa.heard_any(), any = seen.packets > 0;
    const auto received = static_cast<double>(now.received_bytes - then.received_bytes);

    *out++ = elapsed;
    *out++ = received;
    *out++ = static_cast<double>(now.delivered_bytes - then.delivered_bytes);
    *out++ = static_cast<double>(now.packets_received - then.packets_received);
    *out++ = ratio(received * 8, elapsed);
    *out++ = nuwa.window_bytes();
    *out++ = static_cast<double>(receiver.advertised_bytes());
    *out++ = static_cast<double>(receiver.buffered_bytes());
    *out++ = any ? nuwa.delay().raw() : kNaN;
    *out++ = heard ? nuwa.delay().queue() : kNaN;
    *out++ = ratio(seen.raw_sum, static_cast<double>(seen.packets));
    *out++ = any ? seen.raw_least : kNaN;
    *out++ = any ? seen.raw_most : kNaN;
    *out++ = start.heard && any ? ratio(nuwa.delay().queue() - start.queue_delay, elapsed) : kNaN;
    *out++ = nuwa.rtt() >= 0 ? seconds(nuwa.rtt()) : kNaN;
    *out++ = nuwa.rtt_min() >= 0 ? seconds(nuwa.rtt_min()) : kNaN;
    *out++ = static_cast<double>(now.segments_missing - then.segments_missing);
    *out++ = static_cast<double>(now.segments_repeated - then.segments_repeated);
    *out++ = heard ? seconds(clock - nuwa.heard()) : kNaN;
    *out++ = seconds(std::max(seen.longest_gap, clock - seen.last));
    *out++ = nuwa.k();
    *out++ = nuwa.target_s();
    *out++ = nuwa.gain();
    *out++ = flow.sender.tcb.mss;
    *out++ = ratio(static_cast<double>(now.delivered_bytes - then.delivered_bytes) * 8, elapsed);
    *out++ = ratio(link.sojourn_sum() - start.sojourn_sum,
                   static_cast<double>(link.counters().packets_out - start.dequeued));
    *out++ = link.queue_packets();
    *out++ = static_cast<double>(now.queue_drops - then.queue_drops);
    *out++ = static_cast<double>(now.packets_sent - then.packets_sent);
    *out++ = static_cast<double>(flow.sender.tcb.lost - start.lost);
    *out++ = static_cast<double>(flow.sender.tcb.cwnd);
  }
};

const Entry<AgentRecord> entry{{
    .name = "receiver",
    .meaning = "sets what a flow's receiver steers by, or its window",
    .make = make_kind<ReceiverAgent>,
}};

}  // namespace
}  // namespace netbuf
