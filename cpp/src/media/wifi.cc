// Wi-Fi: an access point and stations that take turns on one channel, half-duplex, by contention.
//
// Sources: IEEE 802.11-2020: 10.23.2 (EDCA: AIFS, backoff, contention windows), 10.3.2.11 (acknowledgements), 10.12
// (A-MPDU), 10.25 (block acknowledgement, reordering), 17.4.3 and 19.4.3 (durations of OFDM and HT PPDUs), Table 9-155
// (EDCA's default parameters). Capacity: Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination
// function", IEEE JSAC 18(3), 2000, equations 7 and 9 to 13.
//
// All downlinks are queues of the access point, which serves them in turn; each uplink is a station. Further stations
// without links always have something to send. Whoever has something waits until the channel has been idle for the AIFS
// and its backoff has counted down; the counter stands still while the channel is busy. One PPDU goes per access, an
// aggregate of packets of one link: those to be sent again first. Who finds the channel idle and has counted down before
// sends at once. Two that send at once collide and get no answer; the channel is then busy for as long as an ACK would
// take (EIFS). A packet of an aggregate fails on its own with probability packet_error; what came after it waits at the
// receiver until it has come or been given up. No RTS, no rate control, no capture, no hidden stations.
#include <algorithm>
#include <cmath>
#include <deque>

#include "netbuf/medium.h"

namespace netbuf {
namespace {

constexpr uint32_t kPacketBytes = 1500;       // of stations without links, and what the capacity is told for
constexpr uint32_t kAckBytes = 14, kBlockAckBytes = 24;  // the latter without its bitmap
constexpr uint32_t kDelimiterBytes = 4;
constexpr double kServiceAndTailBits = 16 + 6;
constexpr double kControlSymbolUs = 4;

Time from_us(double us) { return static_cast<Time>(us * 1e3 + 0.5); }

// How long what is on the air takes.
class Timing {
 public:
  explicit Timing(const Parameters& p)
      : slot(from_us(p["slot_us"])),
        sifs(from_us(p["sifs_us"])),
        aifs(sifs + p.as<Time>("aifsn") * slot),
        limit(from_us(p["ppdu_us"])),
        most_bytes(p.as<uint32_t>("ampdu_bytes")),
        most_packets(p.as<uint32_t>("ampdu_packets")),
        frame_bytes_(p.as<uint32_t>("frame_bytes")),
        preamble_us_(p["preamble_us"]),
        symbol_us_(p["symbol_us"]),
        symbol_bits_(p["rate_mbps"] * symbol_us_),
        control_preamble_us_(p["control_preamble_us"]),
        control_bits_(p["control_mbps"] * kControlSymbolUs) {}

  uint32_t frame(uint32_t wire_bytes) const { return wire_bytes + frame_bytes_; }
  // A frame in an aggregate: delimiter, and padding to four bytes.
  static uint32_t subframe(uint32_t frame_bytes) { return kDelimiterBytes + ((frame_bytes + 3) & ~uint32_t{3}); }
  Time ppdu(uint32_t bytes) const {
    return from_us(preamble_us_ + symbol_us_ * std::ceil((kServiceAndTailBits + 8.0 * bytes) / symbol_bits_ - 1e-9));
  }
  Time answer(uint32_t frames) const {
    const uint32_t bytes = frames <= 1 ? kAckBytes : kBlockAckBytes + (most_packets > 64 ? 32 : 8);
    return from_us(control_preamble_us_ +
                   kControlSymbolUs * std::ceil((kServiceAndTailBits + 8.0 * bytes) / control_bits_ - 1e-9));
  }
  // Whether an aggregate of so many bytes may be one PPDU.
  bool fits(uint32_t bytes) const { return bytes <= most_bytes && ppdu(bytes) <= limit; }
  uint32_t most_alike(uint32_t wire_bytes) const {  // packets in one PPDU; at least one
    const uint32_t each = subframe(frame(wire_bytes));
    uint32_t count = 1;
    while (count < most_packets && fits((count + 1) * each)) ++count;
    return count;
  }
  Time ppdu_alike(uint32_t count, uint32_t wire_bytes) const {
    return ppdu(count == 1 ? frame(wire_bytes) : count * subframe(frame(wire_bytes)));
  }

  const Time slot, sifs, aifs, limit;
  const uint32_t most_bytes, most_packets;

 private:
  const uint32_t frame_bytes_;
  const double preamble_us_, symbol_us_, symbol_bits_, control_preamble_us_, control_bits_;
};

class Wifi final : public Medium {
 public:
  explicit Wifi(MediumSetting setting)
      : timing_(setting.parameters),
        cw_min_(setting.parameters.as<uint32_t>("cw_min")),
        cw_max_(setting.parameters.as<uint32_t>("cw_max")),
        retries_(setting.parameters.as<uint32_t>("retries")),
        packet_error_(setting.parameters["packet_error"]),
        rng_(setting.seed) {
    for (uint32_t i = 0; i < setting.ports.size(); ++i) {
      const MediumPort& port = setting.ports[i];
      queues_.push_back({port.link, {}, 0});
      if (port.up || access_point_ == kNone) {
        if (!port.up) access_point_ = static_cast<uint32_t>(stations_.size());
        stations_.push_back({{}, 0, cw_min_});
      }
      const auto of_uplink = static_cast<uint32_t>(stations_.size() - 1);
      queues_.back().station = port.up ? of_uplink : access_point_;
      stations_[queues_.back().station].queues.push_back(i);
    }
    background_ = setting.parameters.as<uint32_t>("stations");
    background_packets_ = static_cast<uint32_t>(
        setting.parameters.or_else("station_packets", timing_.most_alike(kPacketBytes)));
    background_ppdu_ = timing_.ppdu_alike(background_packets_, kPacketBytes);
    for (uint32_t i = 0; i < background_; ++i) {
      Station station{{}, 0, cw_min_};
      station.backoff = rng_.below(cw_min_ + 1);
      station.pending = true;
      station.due = static_cast<Time>(station.backoff) * timing_.slot;
      stations_.push_back(station);
    }
    plan();
  }

  Time next() const override { return next_; }

  bool offered(Time now, uint32_t port) override {
    Station& station = stations_[queues_[port].station];
    if (station.pending) return false;
    const Time at = queues_[port].link->sendable(now);
    if (at <= now) contend(station, now);
    else station.wake = std::min(station.wake, at);
    const Time before = next_;
    plan();
    return next_ != before;
  }

  void run(Time now) override {
    for (Station& station : stations_) {
      if (!station.pending && station.wake <= now) look(station, now);
    }
    senders_.clear();
    for (Station& station : stations_) {
      if (station.pending && station.due <= now && prepare(station, now)) senders_.push_back(&station);
    }
    if (!senders_.empty()) exchange(now);
    plan();
  }

  size_t memory_bytes() const override {
    size_t bytes = sizeof *this + stations_.capacity() * sizeof(Station);
    for (const Queue& queue : queues_) bytes += sizeof queue + queue.window.size() * sizeof(Frame);
    return bytes;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // A packet that has left its queue, until those before it and it have been received, or given up.
  struct Frame {
    Queued item;
    uint32_t failures;
    bool received, sent;        // sent: in the PPDU that is being made
  };
  struct Queue {
    Link* link;
    std::deque<Frame> window;
    uint32_t station;
  };
  struct Station {
    std::vector<uint32_t> queues;  // none: without links
    uint32_t turn, cw, backoff = 0, attempts = 0;
    bool pending = false;          // has something to send, and contends since
    Time due = kNever;             // when it would send if the channel stayed idle
    Time wake = kNever;            // when a discipline lets something go
    uint32_t frames = 0;           // of its PPDU
    Time ppdu = 0;
  };

  void contend(Station& station, Time now) {
    station.pending = true;
    station.wake = kNever;
    if (now < idle_since_) {
      if (station.backoff == 0) station.backoff = rng_.below(station.cw + 1);
    } else if (station.backoff * timing_.slot <= now - idle_since_) {
      station.backoff = 0;
      station.due = now;
      return;
    }
    station.due = idle_since_ + station.backoff * timing_.slot;
  }

  // Whether a station has something now, or will have.
  void look(Station& station, Time now) {
    station.pending = false;
    station.wake = kNever;
    for (const uint32_t index : station.queues) {
      const Time at = waits(queues_[index]) ? now : queues_[index].link->sendable(now);
      if (at <= now) return contend(station, now);
      station.wake = std::min(station.wake, at);
    }
  }
  static bool waits(const Queue& queue) {
    return std::any_of(queue.window.begin(), queue.window.end(), [](const Frame& frame) { return !frame.received; });
  }

  // Makes the PPDU of a station whose turn it is; false: its disciplines dropped all that it had.
  bool prepare(Station& station, Time now) {
    if (station.queues.empty()) {
      station.frames = background_packets_;
      station.ppdu = background_ppdu_;
      return true;
    }
    for (uint32_t tried = 0; tried < station.queues.size(); ++tried) {
      if (aggregate(queues_[station.queues[station.turn]], station, now)) return true;
      station.turn = (station.turn + 1) % static_cast<uint32_t>(station.queues.size());
    }
    station.backoff = 0;
    look(station, now);
    return false;
  }

  bool aggregate(Queue& queue, Station& station, Time now) {
    uint32_t frames = 0, bytes = 0, first = 0;
    const auto add = [&](Frame& frame) {
      const uint32_t length = timing_.frame(frame.item.bytes), all = bytes + Timing::subframe(length);
      if (frames > 0 && (frames == timing_.most_packets || !timing_.fits(all))) return false;
      if (frames++ == 0) first = length;
      bytes = all;
      return frame.sent = true;
    };
    for (Frame& frame : queue.window) {
      if (!frame.received && !add(frame)) break;
    }
    bool full = std::any_of(queue.window.begin(), queue.window.end(), [](const Frame& f) { return !f.received && !f.sent; });
    Queued item;
    while (!full && queue.window.size() < timing_.most_packets && queue.link->sendable(now) <= now &&
           queue.link->draw(now, item)) {
      queue.window.push_back({item, 0, false, false});
      full = !add(queue.window.back());
    }
    if (frames == 0) return false;
    station.frames = frames;
    station.ppdu = timing_.ppdu(frames == 1 ? first : bytes);
    return true;
  }

  void exchange(Time now) {
    const Time idle = std::max<Time>(0, now - idle_since_);
    const auto counted = static_cast<uint32_t>(std::min<Time>(idle / timing_.slot, UINT32_MAX));
    const bool alone = senders_.size() == 1;
    Time end = now;
    for (const Station* station : senders_) end = std::max(end, now + station->ppdu);
    Time done = end + timing_.sifs + timing_.answer(1);
    for (Station* station : senders_) {
      const bool answered = receive(*station, now, end, alone);
      if (answered) done = end + timing_.sifs + timing_.answer(station->frames);
      if (answered || ++station->attempts > retries_) {
        station->attempts = 0;
        station->cw = cw_min_;
      } else {
        station->cw = std::min(2 * station->cw + 1, cw_max_);
      }
    }
    idle_since_ = done + timing_.aifs;
    for (Station& station : stations_) station.backoff -= std::min(station.backoff, counted);
    for (Station* station : senders_) {
      if (!station->queues.empty()) {
        queues_[station->queues[station->turn]].link->occupy(now, done);
        station->turn = (station->turn + 1) % static_cast<uint32_t>(station->queues.size());
        look(*station, now);
      }
      station->backoff = rng_.below(station->cw + 1);
    }
    for (Station& station : stations_) {
      if (station.pending) station.due = idle_since_ + station.backoff * timing_.slot;
    }
  }

  // What becomes of a PPDU; whether it is answered.
  bool receive(Station& station, Time now, Time end, bool alone) {
    bool answered = false;
    if (station.queues.empty()) {
      for (uint32_t i = 0; alone && i < station.frames && !answered; ++i) answered = !fails();
      return answered;
    }
    Queue& queue = queues_[station.queues[station.turn]];
    for (Frame& frame : queue.window) {
      if (!frame.sent) continue;
      frame.sent = false;
      frame.received = alone && !fails();
      answered |= frame.received;
      if (!frame.received) ++frame.failures;
    }
    std::erase_if(queue.window, [&](const Frame& frame) {
      const bool given_up = frame.failures > retries_ && !frame.received;
      if (given_up) queue.link->abandon(frame.item);
      return given_up;
    });
    for (; !queue.window.empty() && queue.window.front().received; queue.window.pop_front()) {
      queue.link->deliver(queue.window.front().item, now, end);
    }
    return answered;
  }
  bool fails() { return packet_error_ > 0 && rng_.uniform() < packet_error_; }

  void plan() {
    next_ = kNever;
    for (const Station& station : stations_) next_ = std::min(next_, station.pending ? station.due : station.wake);
  }

  const Timing timing_;
  const uint32_t cw_min_, cw_max_, retries_;
  const double packet_error_;
  uint32_t background_ = 0, background_packets_ = 1, access_point_ = kNone;
  Time background_ppdu_ = 0;
  std::vector<Queue> queues_;                // by port
  std::vector<Station> stations_;            // those with links first
  std::vector<Station*> senders_;
  Time idle_since_ = 0;                      // the AIFS is over, or will be
  Time next_ = kNever;
  Rng rng_;
};

// Bianchi's fixed point: how likely a saturated station sends in a slot, of so many, where what it sends alone fails
// with probability error too.
double transmission_probability(double stations, double window, double doublings, double error) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double tau = (low + high) / 2;
    const double p = 1 - std::pow(1 - tau, stations - 1) * (1 - error);
    double sum = 0, factor = 1;                // of (2p)^i; equation 7 without its singularity at p = 1/2
    for (int k = 0; k < static_cast<int>(doublings); ++k, factor *= 2 * p) sum += factor;
    (tau < 2 / (1 + window + p * window * sum) ? low : high) = tau;
  }
  return low;
}

double capacity_bps(const Parameters& p, bool, double) {
  const Timing timing(p);
  const uint32_t packets = timing.most_alike(kPacketBytes);
  const auto others_packets = static_cast<uint32_t>(p.or_else("station_packets", packets));
  const double stations = 1 + p["stations"], error = p["packet_error"];
  const double window = p["cw_min"] + 1, doublings = std::round(std::log2((p["cw_max"] + 1) / window));
  const double tau = transmission_probability(stations, window, doublings, std::pow(error, packets));
  const double others_idle = std::pow(1 - tau, stations - 1);
  const double own = tau * others_idle, other = (stations - 1) * own, none = (1 - tau) * others_idle;
  const Time overhead = timing.sifs + timing.aifs;
  const Time own_ppdu = timing.ppdu_alike(packets, kPacketBytes);
  const Time others_ppdu = timing.ppdu_alike(others_packets, kPacketBytes);
  const auto of = [](Time t) { return static_cast<double>(t); };
  const double slot = none * of(timing.slot) + own * of(own_ppdu + overhead + timing.answer(packets)) +
                      other * of(others_ppdu + overhead + timing.answer(others_packets)) +
                      (tau - own) * of(std::max(own_ppdu, others_ppdu) + overhead + timing.answer(1)) +
                      (1 - tau - none - other) * of(others_ppdu + overhead + timing.answer(1));
  return own * (1 - error) * packets * kPacketBytes * 8e9 / slot;
}

const Entry<MediumRecord> entry{{
    .name = "wifi",
    .meaning = "Wi-Fi (IEEE 802.11 EDCA): an access point and stations contend for one half-duplex channel, on which data "
               "go in aggregates and are acknowledged at once",
    .make = [](MediumSetting setting) -> std::unique_ptr<Medium> { return std::make_unique<Wifi>(std::move(setting)); },
    .capacity_bps = capacity_bps,
    .has_gains = false,
    .parameters =
        {
            real("rate_mbps", 65, 0.1, 100'000, "rate of data on the air, Mbit/s"),
            real("preamble_us", 36, 0, 1000, "preamble and headers of the PHY before data, us"),
            real("symbol_us", 4, 0.1, 100, "OFDM symbol with its guard interval, us"),
            real("control_mbps", 24, 0.1, 1000, "rate of acknowledgements, Mbit/s"),
            real("control_preamble_us", 20, 0, 1000, "preamble and headers of the PHY before acknowledgements, us"),
            real("slot_us", 9, 1, 100, "slot of the backoff, us"),
            real("sifs_us", 16, 1, 100, "gap between data and their acknowledgement (SIFS), us"),
            whole("aifsn", 3, 1, 15, "slots of idle channel after a SIFS before the backoff counts"),
            whole("cw_min", 15, 0, 32767, "least contention window, slots"),
            whole("cw_max", 1023, 0, 32767, "largest contention window, slots"),
            whole("ampdu_packets", 64, 1, 256, "most packets in an aggregate, and that wait at the receiver to be put in order"),
            whole("ampdu_bytes", 65'535, 1, 6'500'631, "longest aggregate, bytes"),
            real("ppdu_us", 5484, 1, 5484, "longest transmission, us"),
            whole("frame_bytes", 24, 0, 200, "bytes on the air that each packet has beyond those on the wire"),
            real("packet_error", 0, 0, 0.9, "probability that a packet is not received, each time it is sent"),
            whole("retries", 7, 0, 255, "how often a packet is sent again before it is lost"),
            whole("stations", 0, 0, 100, "further stations that always have something to send"),
            whole("station_packets", kAutomatic, 1, 256, "packets of 1500 bytes in each aggregate of the further stations; auto: as many as fit"),
            whole("channel", 0, 0, 1'000'000, "number of the channel: links whose media are equal share one"),
        },
    .check =
        [](const Parameters& p) {
          if (p["cw_max"] < p["cw_min"]) {
            throw std::invalid_argument("cw_max = " + std::to_string(p.as<uint32_t>("cw_max")) + " is below cw_min");
          }
        },
}};

}  // namespace
}  // namespace netbuf
