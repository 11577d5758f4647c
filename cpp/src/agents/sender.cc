// The sender of a flow whose congestion control is an agent's. It sets the window, and sees what a sender can: its
// ACKs, its own counters, and, for reports and rewards only, what became of its packets at the tightest link.
#include <bit>
#include <cmath>
#include <limits>

#include "netbuf/agent.h"

namespace netbuf {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(double sum, double count) { return count > 0 ? sum / count : kNaN; }

constexpr std::string_view kFields[] = {
    "elapsed_s",            "ssthresh_bytes",       "cwnd_bytes",          "mss_bytes",          "bytes_in_flight_sum",
    "bytes_in_flight_mean", "segments_acked_sum",   "segments_acked_mean", "rtt_mean_s",         "rtt_min_s",
    "send_interval_mean_s", "receive_interval_mean_s", "throughput_bps",   "goodput_bps",        "packets_sent",
    "packets_lost",         "packets_retransmitted", "acks",               "timeouts",           "in_flight_bytes",
    "rtt_min_ever_s",       "queue_delay_mean_s",   "queue_packets",       "queue_drops",
};

struct Start {
  Time time = 0;
  FlowCounters counters;
  uint32_t lost = 0;
  double sojourn_sum = 0;
  uint64_t dequeued = 0;
};

// A number in [0, 1) for a place, a time and a purpose; the same again in the same world.
double drawn(const World& world, uint32_t flow, uint64_t time, uint64_t purpose) {
  return Rng(world.seed() ^ std::rotl(uint64_t{flow}, 48) ^ std::rotl(purpose, 32) ^ time).uniform();
}

// Seconds in a range, to be drawn.
struct Range {
  double low, high;
  Time at(double u) const { return static_cast<Time>((low + (high - low) * u) * 1e9); }
};

class SenderAgent final : public AgentOf<Start> {
 public:
  explicit SenderAgent(const Parameters& p)
      : AgentOf(std::size(kFields), 1, p["latency_high_s"] > 0 || p["jitter_high_s"] > 0),
        paced_(p["paced"] != 0),
        slow_start_(p["slow_start"] != 0),
        latency_{std::min(p["latency_s"], p["latency_high_s"]), p["latency_high_s"]},
        jitter_{std::min(p["jitter_s"], p["jitter_high_s"]), p["jitter_high_s"]} {}

  std::vector<std::string> fields() const override { return {std::begin(kFields), std::end(kFields)}; }
  std::vector<Control> controls() const override {
    return {{"cwnd_bytes", 1, static_cast<double>(kInfiniteWindow), "a window in [1, 2^40] bytes"}};
  }
  std::string_view what() const override { return "controlled flows"; }

  std::vector<uint32_t> find(World& world) const override {
    std::vector<uint32_t> flows;
    for (uint32_t i = 0; i < world.flows().size(); ++i) {
      if (!world.flows()[i].controlled()) continue;
      flows.push_back(i);
      world.flows()[i].sender.steer(paced_, slow_start_);
    }
    return flows;
  }

 protected:
  void begin(World& world, uint32_t index, Start& start) const override {
    Flow& flow = world.flows()[index];
    Link& link = world.links()[flow.bottleneck()];
    link.note(world.now());
    flow.sender.interval_rtt_min = kNever;
    start = {world.now(), flow.counters(), flow.sender.tcb.lost, link.sojourn_sum(), link.counters().packets_out};
  }

  void apply(World& world, uint32_t index, const double* control) const override {
    if (!std::isnan(*control)) world.set_window(index, *control);
  }

  // A latency that is a sender's own, and what comes on top of it each time.
  Time delay(const World& world, uint32_t index) const override {
    const Time each = jitter_.at(drawn(world, index, 0, 2));
    return latency_.at(drawn(world, index, 0, 1)) +
           static_cast<Time>(static_cast<double>(each) * drawn(world, index, static_cast<uint64_t>(world.now()), 3));
  }

  // The next ACK of any of them.
  void run_to_event(World& world, std::span<const uint32_t> flows, Time interval,
                    uint32_t max_intervals) const override {
    world.run_to_ack(flows, world.now() + interval * max_intervals);
  }

  void write(World& world, uint32_t index, const Start& start, double* out) const override {
    const Flow& flow = world.flows()[index];
    const Tcb& tcb = flow.sender.tcb;
    const FlowCounters now = flow.counters(), &then = start.counters;
    Link& link = world.links()[flow.bottleneck()];
    link.note(world.now());

    const double elapsed = seconds(world.now() - start.time);
    const double acks = static_cast<double>(now.acks - then.acks);
    const double in_flight_sum = static_cast<double>(now.in_flight_sum - then.in_flight_sum) * tcb.mss;
    const double segments = static_cast<double>(now.segments_acked - then.segments_acked);
    const double sent = static_cast<double>(now.packets_sent - then.packets_sent);
    const double previous_sent = static_cast<double>(then.packets_sent > 0),
                 previous_acks = static_cast<double>(then.acks > 0);

    *out++ = elapsed;
    *out++ = tcb.ssthresh >= kInfiniteWindow ? kNaN : static_cast<double>(tcb.ssthresh);
    *out++ = static_cast<double>(tcb.cwnd);
    *out++ = tcb.mss;
    *out++ = in_flight_sum;
    *out++ = ratio(in_flight_sum, acks);
    *out++ = segments;
    *out++ = ratio(segments, acks);
    *out++ = ratio(static_cast<double>(now.rtt_sum - then.rtt_sum) * 1e-9,
                   static_cast<double>(now.rtt_count - then.rtt_count));
    *out++ = flow.sender.interval_rtt_min < kNever ? seconds(flow.sender.interval_rtt_min) : kNaN;
    // Gaps that end in this interval; the first packet of all has none before it.
    *out++ = ratio(seconds(now.last_sent - (then.packets_sent ? then.last_sent : flow.sender.first_sent())),
                   sent - 1 + previous_sent);
    *out++ = ratio(seconds(now.last_ack - (then.acks ? then.last_ack : flow.sender.first_ack())),
                   acks - 1 + previous_acks);
    *out++ = ratio(static_cast<double>(now.acked_bytes - then.acked_bytes) * 8, elapsed);
    *out++ = ratio(static_cast<double>(now.delivered_bytes - then.delivered_bytes) * 8, elapsed);
    *out++ = sent;
    *out++ = static_cast<double>(tcb.lost - start.lost);
    *out++ = static_cast<double>(now.packets_retransmitted - then.packets_retransmitted);
    *out++ = acks;
    *out++ = static_cast<double>(now.timeouts - then.timeouts);
    *out++ = static_cast<double>(tcb.in_flight()) * tcb.mss;
    *out++ = flow.sender.rtt_min < kNever ? seconds(flow.sender.rtt_min) : kNaN;
    *out++ = ratio(link.sojourn_sum() - start.sojourn_sum,
                   static_cast<double>(link.counters().packets_out - start.dequeued));
    *out++ = link.queue_packets();
    *out++ = static_cast<double>(now.queue_drops - then.queue_drops);
  }

 private:
  bool paced_, slow_start_;
  Range latency_, jitter_;
};

constexpr double kLongest = 100;

const Entry<AgentRecord> entry{{
    .name = "sender",
    .meaning = "sets a flow's congestion window",
    .make = make_kind<SenderAgent>,
    .parameters = {truth("paced", false, "packets leave at 1.2 windows in the least round trip"),
                   truth("slow_start", false, "until the first decision the window grows by what is acknowledged"),
                   real("latency_s", 0, 0, kLongest, "least time that the decisions of a sender take"),
                   real("latency_high_s", 0, 0, kLongest, "most time, of which each sender has one"),
                   real("jitter_s", 0, 0, kLongest, "least time that a decision may take beyond that"),
                   real("jitter_high_s", 0, 0, kLongest, "most time, of which each sender has one")},
}};

}  // namespace
}  // namespace netbuf
