// The sender of a flow whose congestion control is an agent's. It sets the window, and sees what a sender can: its
// ACKs, its own counters, and, for reports and rewards only, what became of its packets at the tightest link.
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "netbuf/agent.h"

namespace netbuf {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ratio(double sum, double count) { return count > 0 ? sum / count : kNaN; }

struct Start {
  Time time = 0;
  FlowCounters counters;
  uint32_t lost = 0;
  double sojourn_sum = 0;
  uint64_t dequeued = 0;
};

// An interval of one sender, as its telemetry is made of it.
struct Interval {
  const Sender& sender;
  const Tcb& tcb;
  const Start& start;
  const FlowCounters& then;  // at the start
  FlowCounters now;
  Link& link;                // the tightest
  double elapsed;

  template <class Counters, class T>
  double grown(T Counters::*counter) const {
    return static_cast<double>(now.*counter - then.*counter);
  }
  double acks() const { return grown(&FlowCounters::acks); }
  double sent() const { return grown(&FlowCounters::packets_sent); }
  double segments() const { return grown(&FlowCounters::segments_acked); }
  double in_flight_sum() const { return grown(&FlowCounters::in_flight_sum) * tcb.mss; }
};

struct Field {
  std::string_view name;
  double (*value)(const Interval& i);
};
constexpr Field kFields[] = {
    {"elapsed_s", [](const Interval& i) { return i.elapsed; }},
    {"ssthresh_bytes",
     [](const Interval& i) { return i.tcb.ssthresh >= kInfiniteWindow ? kNaN : static_cast<double>(i.tcb.ssthresh); }},
    {"cwnd_bytes", [](const Interval& i) { return static_cast<double>(i.tcb.cwnd); }},
    {"mss_bytes", [](const Interval& i) { return static_cast<double>(i.tcb.mss); }},
    {"bytes_in_flight_sum", [](const Interval& i) { return i.in_flight_sum(); }},
    {"bytes_in_flight_mean", [](const Interval& i) { return ratio(i.in_flight_sum(), i.acks()); }},
    {"segments_acked_sum", [](const Interval& i) { return i.segments(); }},
    {"segments_acked_mean", [](const Interval& i) { return ratio(i.segments(), i.acks()); }},
    {"rtt_mean_s",
     [](const Interval& i) { return ratio(i.grown(&FlowCounters::rtt_sum) * 1e-9, i.grown(&FlowCounters::rtt_count)); }},
    {"rtt_min_s",
     [](const Interval& i) { return i.sender.interval_rtt_min < kNever ? seconds(i.sender.interval_rtt_min) : kNaN; }},
    // Gaps that end in this interval; the first packet of all has none before it.
    {"send_interval_mean_s",
     [](const Interval& i) {
       const bool earlier = i.then.packets_sent > 0;
       const Time since = earlier ? i.then.last_sent : i.sender.first_sent();
       return ratio(seconds(i.now.last_sent - since), i.sent() - 1 + earlier);
     }},
    {"receive_interval_mean_s",
     [](const Interval& i) {
       const bool earlier = i.then.acks > 0;
       const Time since = earlier ? i.then.last_ack : i.sender.first_ack();
       return ratio(seconds(i.now.last_ack - since), i.acks() - 1 + earlier);
     }},
    {"throughput_bps", [](const Interval& i) { return ratio(i.grown(&FlowCounters::acked_bytes) * 8, i.elapsed); }},
    {"goodput_bps", [](const Interval& i) { return ratio(i.grown(&FlowCounters::delivered_bytes) * 8, i.elapsed); }},
    {"packets_sent", [](const Interval& i) { return i.sent(); }},
    {"packets_lost", [](const Interval& i) { return static_cast<double>(i.tcb.lost - i.start.lost); }},
    {"packets_retransmitted", [](const Interval& i) { return i.grown(&FlowCounters::packets_retransmitted); }},
    {"acks", [](const Interval& i) { return i.acks(); }},
    {"timeouts", [](const Interval& i) { return i.grown(&FlowCounters::timeouts); }},
    {"in_flight_bytes", [](const Interval& i) { return static_cast<double>(i.tcb.in_flight()) * i.tcb.mss; }},
    {"rtt_min_ever_s", [](const Interval& i) { return i.sender.rtt_min < kNever ? seconds(i.sender.rtt_min) : kNaN; }},
    {"queue_delay_mean_s",
     [](const Interval& i) {
       const uint64_t dequeued = i.link.counters().packets_out - i.start.dequeued;
       return ratio(i.link.sojourn_sum() - i.start.sojourn_sum, static_cast<double>(dequeued));
     }},
    {"queue_packets", [](const Interval& i) { return static_cast<double>(i.link.queue_packets()); }},
    {"queue_drops", [](const Interval& i) { return i.grown(&FlowCounters::queue_drops); }},
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
        fine_(p["fine"] != 0),
        slow_start_(p["slow_start"] != 0),
        latency_{std::min(p["latency_s"], p["latency_high_s"]), p["latency_high_s"]},
        jitter_{std::min(p["jitter_s"], p["jitter_high_s"]), p["jitter_high_s"]} {}

  std::vector<std::string> fields() const override {
    std::vector<std::string> names;
    for (const Field& field : kFields) names.emplace_back(field.name);
    return names;
  }
  std::vector<Control> controls() const override {
    return {{"cwnd_bytes", 1, static_cast<double>(kInfiniteWindow), "a window in [1, 2^40] bytes"}};
  }
  std::string_view what() const override { return "controlled flows"; }

  std::vector<uint32_t> find(World& world) const override {
    std::vector<uint32_t> flows;
    for (uint32_t i = 0; i < world.flows().size(); ++i) {
      if (!world.flows()[i].controlled()) continue;
      flows.push_back(i);
      world.flows()[i].sender.steer(paced_, fine_, slow_start_);
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
    Link& link = world.links()[flow.bottleneck()];
    link.note(world.now());
    const Interval interval{flow.sender, flow.sender.tcb,  start, start.counters, flow.counters(),
                            link,        seconds(world.now() - start.time)};
    write_fields(interval, out, std::make_index_sequence<std::size(kFields)>());
  }

 private:
  // Field by field, each known to the compiler.
  template <size_t... k>
  static void write_fields(const Interval& interval, double* out, std::index_sequence<k...>) {
    ((out[k] = kFields[k].value(interval)), ...);
  }

  bool paced_, fine_, slow_start_;
  Range latency_, jitter_;
};

constexpr double kLongest = 100;

const Entry<AgentRecord> entry{{
    .name = "sender",
    .meaning = "sets a flow's congestion window",
    .make = make_kind<SenderAgent>,
    .parameters = {truth("paced", false, "packets leave at 1.2 windows in the least round trip"),
                   truth("fine", false, "where paced, windows below two segments, to 1/16 of one, leave at one in a round trip"),
                   truth("slow_start", false, "until the first decision the window grows by what is acknowledged"),
                   real("latency_s", 0, 0, kLongest, "least time that the decisions of a sender take"),
                   real("latency_high_s", 0, 0, kLongest, "most time, of which each sender has one"),
                   real("jitter_s", 0, 0, kLongest, "least time that a decision may take beyond that"),
                   real("jitter_high_s", 0, 0, kLongest, "most time, of which each sender has one")},
}};

}  // namespace
}  // namespace netbuf
