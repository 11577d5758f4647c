// A host: what its settings give the sockets of the flows that end at it, the memory these take, and its ring. Its
// sockets are SendBuffer and ReceiveBuffer (socket_buffer.h).
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "netbuf/config.h"

namespace netbuf {

class Link;
class ReceiveBuffer;
class SendBuffer;

inline constexpr int64_t kPage = 4096;

// A number of bytes held now, and what it was like up to then.
class Level {
 public:
  void add(Time now, int64_t change) {
    integral_ += static_cast<double>(value_) * static_cast<double>(now - since_);
    since_ = now;
    value_ += change;
    if (value_ > most_) most_ = value_;
  }
  int64_t value() const { return value_; }
  int64_t most() const { return most_; }
  double integral(Time now) const {  // x ns
    return integral_ + static_cast<double>(value_) * static_cast<double>(now - since_);
  }

 private:
  Time since_ = 0;
  int64_t value_ = 0, most_ = 0;
  double integral_ = 0;
};

// Of a connection on which the host sends: what became of it since it was last asked, or since it began.
struct SendShare {
  Time there = 0;                          // for how long it was there
  int64_t acked_bytes = 0;
  uint64_t packets_sent = 0, packets_retransmitted = 0, rtt_count = 0;
  Time rtt_sum = 0, rtt_min = kNever;      // the least: since it began
  Time busy = 0, window_limited = 0, buffer_limited = 0;  // busy: all of the time with something to do
  bool sending = false;                    // there was something to send
};

// The shares of an interval together.
struct SendSum {
  uint64_t flows = 0, with_rtt = 0, with_packets = 0, with_least = 0;
  double throughput = 0, latency = 0, least = 0, loss = 0;  // sums over flows: bit/s, s, s, share
  int64_t acked_bytes = 0;
  uint64_t packets_sent = 0, packets_retransmitted = 0, rtt_count = 0;
  Time rtt_sum = 0, rtt_least = kNever, busy = 0, window_limited = 0, buffer_limited = 0;

  void add(const SendShare& share);
};

class Host {
 public:
  explicit Host(const HostConfig& config) : settings_(config) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // In force now. What sockets take from it, and when, is theirs to know.
  const HostConfig& settings() const { return settings_; }
  HostConfig& settings() { return settings_; }
  bool agent_controlled() const { return settings_.agent; }
  int64_t window_clamp = 0;                // what any of its receivers advertises at most; 0: no clamp
  // Of all that it sends; empty: what each connection was given.
  std::string_view congestion_control;

  // ---- memory, in pages
  const Level& memory() const { return memory_; }
  void charge(Time now, int64_t pages) {
    memory_.add(now, pages);
    if (limited()) note_pressure(now);
  }
  bool limited() const { return !settings_.tcp_mem.empty(); }
  bool pressure() const { return pressure_; }
  Time pressure_time(Time now) const { return pressed_ + (pressure_ ? now - pressed_since_ : 0); }
  bool plenty() const { return !limited() || memory_.value() * kPage < settings_.tcp_mem[0]; }
  // Whether a socket that holds so much may hold more bytes;
  // least: what each may in any case, but above the hard limit.
  bool grants(int64_t held, int64_t more, int64_t least) const;

  // ---- sockets
  void join(SendBuffer& one);
  void join(ReceiveBuffer& one);
  void leave(SendBuffer& one);
  void leave(ReceiveBuffer& one);
  const std::vector<SendBuffer*>& senders() const { return senders_; }
  const std::vector<ReceiveBuffer*>& receivers() const { return receivers_; }

  // ---- its ring: nothing leaves until a resize is over
  void interrupt(Time now, Time until) {
    interrupted_ += std::min(now, interrupted_until_) - std::min(interrupted_from_, interrupted_until_);
    interrupted_from_ = now;
    interrupted_until_ = until;
  }
  Time interrupted(Time now) const {
    return interrupted_ + std::min(now, interrupted_until_) - std::min(interrupted_from_, interrupted_until_);
  }

  // ---- what is told of it
  struct Totals {
    // Connections; streams that arrived, or were acknowledged, to their end.
    uint64_t opened = 0, closed = 0, completed = 0;
    uint64_t refused = 0;                  // packets that arrived, for which there was no memory
    int64_t received_bytes = 0;            // by sockets that are gone
    SendSum sent;                          // likewise, since the world began
  };
  Totals totals;
  SendSum gone;                            // in this interval, of sockets that are gone

 private:
  HostConfig settings_;
  Level memory_;
  void note_pressure(Time now);

  bool pressure_ = false;
  Time pressed_ = 0, pressed_since_ = 0;
  Time interrupted_ = 0, interrupted_from_ = 0, interrupted_until_ = 0;
  std::vector<SendBuffer*> senders_;
  std::vector<ReceiveBuffer*> receivers_;
};

// Of flows: which hosts they end at, and what they may say of buffers there.
void check_hosts(const WorldConfig& config);

}  // namespace netbuf
