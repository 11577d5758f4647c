// One TCP connection: a sender and a receiver, joined by a path. They meet in packets and ACKs only; what is told of
// the whole (completion, results) is told here.
#pragma once
#include <compare>
#include <memory>
#include <vector>

#include "netbuf/receiver.h"
#include "netbuf/sender.h"

namespace netbuf {

// Cumulative counters of both ends and of the path; intervals are differences of two copies.
struct FlowCounters : SenderCounters, ReceiverCounters {
  uint64_t queue_drops = 0, random_losses = 0;
};

class alignas(64) Flow {           // by cache lines: what many flows need in turn stands in few
 public:
  // index: its name in the network.
  Flow(uint32_t index, const FlowConfig& config, const WorldConfig& world, Network& network, Rng* rng);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // ---- events
  void arrive(Flight& flight, uint8_t stage) {
    switch (stage) {
      case kAtReceiver:
        path.arrived();
        receiver.receive(flight.packet);
        break;
      case kAtSender:
        path.arrived();
        sender.receive(flight.ack);
        break;
      default: return stage < kAtBackwardHop ? path.cross_forward(flight.packet) : path.cross_backward(flight.ack);
    }
    if (ends_) [[unlikely]] note_completion(flight.packet.time);
  }
  Time next_timer() const { return timers_.next(); }
  bool next_timer_is_receivers() const {
    const Alarm first = timers_.first();
    return first == Alarm::acknowledgement || first == Alarm::reading;
  }
  void run_timer();              // the earliest

  // Where an event stands among others of the same instant: ns-3 handles them in the order in which they were
  // scheduled, and those scheduled at the same instant in the order of the events that did so.
  struct Turn {
    Time scheduled, cause, queueing;
    auto operator<=>(const Turn&) const = default;
  };
  Turn turn(const Flight& flight) const;
  Turn timer_turn() const;

  // ---- the applications' side
  void attach(std::unique_ptr<Source> source) { ends_ = true, sender.attach(std::move(source)); }
  void attach(std::unique_ptr<Sink> sink) { ends_ = true, receiver.attach(std::move(sink)); }
  void attach(std::unique_ptr<ReceiverControl> control);
  void agent_window(Time now, double bytes);
  bool controlled() const { return sender.controlled(); }
  void note_failure(Time now);   // the sender's, to the receiving application

  // Every packet and ACK goes the long way from now on, which comes to the same.
  void take_no_shortcut() { sender.take_no_shortcut(), receiver.take_no_shortcut(); }
  bool over() const { return completed_ != kNever || sender.failed(); }  // it has completed, or failed
  // For how long nobody but the receiver learns of a packet that arrives there; 0: perhaps at once.
  Time receiver_lead() const { return ends_ || !receiver.alone() ? 0 : path.least_ack_delay(); }
  bool finished() const;         // nothing is left to do or on its way: the flow can be forgotten

  // ---- results
  FlowCounters counters() const;
  Time started_at() const { return start_; }
  Time completed_at() const { return completed_; }   // kNever while unfinished
  double cwnd_integral(Time now) const;              // byte seconds
  uint64_t packets_in_network() const;               // data packets on their way to the receiver, waiting ones too
  uint32_t bottleneck() const { return path.bottleneck(); }
  // Hosts, by index; those that have none are its own.
  PacketEnds ends(bool of_ack) const { return of_ack ? PacketEnds{to_, from_} : PacketEnds{from_, to_}; }
  size_t memory_bytes() const;

 private:
  Timers timers_;
  bool ends_;                    // the stream may
  Time completed_ = kNever;

 public:
  Path path;
  std::unique_ptr<Echoes> echoes;  // null: no receiver control
  Sender sender;
  alignas(64) Receiver receiver;

 private:
  Flow(uint32_t index, const FlowConfig& config, const Application& application, const WorldConfig& world, Network& network,
       Rng* rng);
  void note_completion(Time now);
  void listen();

  Time start_;
  uint64_t from_, to_;
};

}  // namespace netbuf
