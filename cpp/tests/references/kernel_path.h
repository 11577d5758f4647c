// The path over which a kernel module and ours are run beside each other: it answers a rate and a window with what the
// kernel would tell, in whole numbers, a tick of 2 ms after the other. One bottleneck of changing capacity, 40 ms there
// and back, a queue of 100 packets, one packet in a thousand lost at random. A tick's ACKs come as one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>

class KernelPath {
 public:
  static constexpr int64_t kTick = 2000, kRtt = 40'000;  // microseconds
  static constexpr uint32_t kMss = 1448, kQueue = 100;
  static constexpr uint64_t kUnpaced = 1'000'000'000;  // bytes a second

  // Cumulative, but for what the last ACK brought.
  int64_t now_us = 1'000'000, srtt_us = kRtt, rtt_us = -1, delivered_us = now_us;
  uint32_t sent = 0, delivered = 0, lost = 0;
  uint32_t newly_delivered = 0, newly_lost = 0, prior_in_flight = 0;
  uint32_t sample_delivered = 0, sample_prior_delivered = 0;  // the delivery rate sample
  int64_t sample_interval_us = 0;                             // 0: none

  uint32_t in_flight() const { return sent - delivered - lost; }

  // Sends for a tick at so many bytes a second within the window, then lets the tick pass.
  void step(uint64_t rate, uint32_t window) {
    credit_ = std::min<uint64_t>(credit_ + rate * kTick, uint64_t{1} << 50);
    while (credit_ >= uint64_t{kMss} * 1'000'000 && in_flight() < window) {
      credit_ -= uint64_t{kMss} * 1'000'000;
      send();
    }
    credit_ = std::min<uint64_t>(credit_, uint64_t{kMss} * 2'000'000);
    now_us += kTick;
    acknowledge();
  }

 private:
  struct Packet {
    int64_t sent_us, known_us, rtt_us;  // known: delivered, or found to be lost
    int64_t delivered_us;
    uint32_t delivered;
    bool lost;
  };

  int64_t per_packet_us() const {
    const int64_t second = now_us / 1'000'000 % 20;
    return second < 8 ? 1200 : second < 13 ? 400 : second < 17 ? 3000 : 1200;
  }

  void send() {
    if (in_flight() == 0) delivered_us = now_us;
    ++sent;
    const int64_t arrival = now_us + kRtt / 2, wait = std::max<int64_t>(free_us_ - arrival, 0);
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    const bool gone = wait > kQueue * per_packet_us() || (state_ >> 33) % 1000 == 0;
    if (!gone) free_us_ = arrival + wait + per_packet_us();
    int64_t known = (gone ? arrival + wait : free_us_) + kRtt / 2;
    if (!packets_.empty()) known = std::max(known, packets_.back().known_us);
    packets_.push_back({now_us, known, known - now_us, delivered_us, delivered, gone});
  }

  void acknowledge() {
    newly_delivered = newly_lost = 0;
    rtt_us = -1;
    sample_interval_us = 0;
    prior_in_flight = in_flight();
    Packet last{};
    while (!packets_.empty() && packets_.front().known_us <= now_us) {
      const Packet packet = packets_.front();
      packets_.pop_front();
      if (packet.lost) {
        ++newly_lost;
        continue;
      }
      ++newly_delivered;
      last = packet;
    }
    lost += newly_lost;
    delivered += newly_delivered;
    if (newly_delivered == 0) return;
    rtt_us = last.rtt_us;
    srtt_us += (rtt_us - srtt_us) / 8;
    delivered_us = now_us;
    sample_prior_delivered = last.delivered;
    sample_delivered = delivered - last.delivered;
    sample_interval_us = std::max<int64_t>(now_us - last.delivered_us, 1);
  }

  std::deque<Packet> packets_;
  uint64_t credit_ = 0, state_ = 5;
  int64_t free_us_ = 0;
};
