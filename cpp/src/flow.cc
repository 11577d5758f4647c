#include "netbuf/flow.h"

#include <algorithm>

#include "netbuf/socket_buffer.h"

namespace netbuf {

static uint64_t number_host(int32_t host, uint32_t flow, bool receives) {
  return host >= 0 ? static_cast<uint64_t>(host) : (uint64_t{flow} * 2 + receives + 1) << 32;
}

Flow::Flow(uint32_t index, const FlowConfig& config, const WorldConfig& world, Network& network, Rng* rng)
    : Flow(index, config, application_of(config), world, network, rng) {}

Flow::Flow(uint32_t index, const FlowConfig& config, const Application& application, const WorldConfig& world,
           Network& network, Rng* rng)
    : ends_(!application.endless || config.stop_ns > 0),
      path(index, config, network.profiles->receiver(config), network),
      sender(config, application, world, network.profiles->sender(config), path, timers_, rng),
      receiver(config, network.profiles->receiver(config), path, timers_, network),
      start_(config.start_ns),
      from_(number_host(config.sender_host, index, false)),
      to_(number_host(config.receiver_host, index, true)) {
  if (network.links[config.path.front()].paces()) sender.pace_windows();
  const CongestionControl& cc = sender.cc();
  const StackProfile& profile = sender.profile();
  if (cc.accurate_ecn() || config.ecn) {
    const bool counts = cc.l4s() || config.ecn_counts;
    receiver.speak_ecn(counts              ? Receiver::Ecn::counts
                       : cc.accurate_ecn() ? Receiver::Ecn::exact
                                           : Receiver::Ecn::classic);
    if (counts) path.count_marks();
  }
  if (config.window_clamp_bytes > 0 || !profile.scales_windows || !profile.sacks()) sender.limit_by_receiver();
  if (receiver.limits_window()) sender.heed_windows();
  if (!config.receiver.empty()) listen();
  if (config.sender_host >= 0) {
    Host& host = network.hosts[static_cast<size_t>(config.sender_host)];
    const std::vector<uint32_t>& devices = host.settings().devices;
    const bool rings = std::find(devices.begin(), devices.end(), config.path.front()) != devices.end();
    const Link* device = rings ? &network.links[config.path.front()] : nullptr;
    sender.attach(std::make_unique<SendBuffer>(host, sender, config, profile.mss, device));
    if (!host.congestion_control.empty()) sender.set_congestion_control(host.congestion_control, 0);
  }
  if (config.receiver_host >= 0) {
    sender.limit_by_receiver();
    receiver.attach(std::make_unique<ReceiveBuffer>(network.hosts[static_cast<size_t>(config.receiver_host)], receiver,
                                                    config, profile.mss));
  }
  if (application.answers) [[unlikely]] {
    Ends ends = application.ends(config, receiver);
    attach(std::move(ends.source));
    attach(std::move(ends.sink));
  }
}

void Flow::listen() {
  echoes = std::make_unique<Echoes>();
  sender.limit_by_receiver(echoes.get());
  receiver.hear(echoes.get());
}

void Flow::attach(std::unique_ptr<ReceiverControl> control) {
  if (control) listen();
  receiver.attach(std::move(control));
}

// ---- events

void Flow::run_timer() {
  const Time now = timers_.next();
  switch (timers_.first()) {
    case Alarm::retransmission:
      sender.on_timer(now);
      // Where it has been set again the sender has not failed.
      if (timers_.at(Alarm::retransmission) == kNever && sender.failed()) [[unlikely]] note_failure(now);
      return;
    case Alarm::acknowledgement: return receiver.on_timer(now);
    case Alarm::wakeup:
      timers_.set(Alarm::wakeup, kNever);
      return sender.on_wakeup(now);
    case Alarm::application:
      timers_.set(Alarm::application, kNever);
      sender.on_application(now);
      return note_completion(now);
    case Alarm::reading: return receiver.on_reading(now);
  }
}

// All of the stream has arrived: seen from above, since a receiver knows only of streams that end with FIN.
void Flow::note_completion(Time now) {
  if (completed_ != kNever) return;
  if (sender.failed()) [[unlikely]] return note_failure(now);
  if (!sender.stream_closed()) return;
  if (receiver.counters().delivered_bytes != sender.stream_written()) return;
  completed_ = now;
  if (Sink* sink = receiver.sink()) sink->closed(now);
}

void Flow::note_failure(Time now) {
  if (completed_ != kNever) return;
  if (Sink* sink = receiver.sink()) sink->failed(now);
}

// A packet's arrival is scheduled when its transmission begins on the link before. Its transmission on an access
// link was scheduled when that of the packet before it began, or, if it found the link idle, when the ACK set
// out that let it go, or the timer was set. Of two packets whose transmissions begin together that one comes
// first whose cause is older.
Flow::Turn Flow::turn(const Flight& flight) const {
  const Packet& packet = flight.packet;
  if (packet.stage() == kAtSender || packet.stage() >= kAtBackwardHop) return {path.scheduled(flight.ack), 0, 0};
  const Time begun = path.scheduled(packet);
  if (packet.stage() != kAtForwardHop + 1) return {begun, 0, 0};
  const Path::Departure departure = path.departure(packet);
  const Time since = departure.busy_since;
  if (since < begun) return {begun, departure.packet_before, departure.slow ? since : -since};
  if (const auto [timed_out, set] = sender.timed_out(); packet.sent_at == timed_out) return {begun, set, 0};
  return {begun, packet.kind == kSyn ? 0 : departure.ack, 0};
}

Flow::Turn Flow::timer_turn() const {
  const Time next = timers_.next();
  switch (timers_.first()) {
    case Alarm::wakeup: return {next - 1, 0, 0};
    case Alarm::acknowledgement: return {next - sender.profile().delayed_ack_timeout, 0, 0};
    case Alarm::retransmission: return {sender.timer() == next ? sender.timer_set() : 0, 0, 0};
    default: return {0, 0, 0};
  }
}

bool Flow::finished() const {
  if (sender.failed()) return receiver.unread_bytes() == 0 && path.empty();
  return receiver.closed() && receiver.unread_bytes() == 0 && sender.tcb.una == sender.tcb.nxt && path.empty();
}

// ---- results

void Flow::agent_window(Time now, double bytes) {
  sender.tcb.now = std::max(now, start_);
  sender.set_window(bytes);
  sender.try_send();
}

FlowCounters Flow::counters() const {
  FlowCounters all{sender.counters, receiver.counters()};
  all.queue_drops = path.queue_drops();
  all.random_losses = path.random_losses();
  return all;
}

double Flow::cwnd_integral(Time now) const {
  const Tcb& tcb = sender.tcb;
  return (tcb.cwnd_integral + static_cast<double>(tcb.cwnd) * static_cast<double>(now - tcb.cwnd_since)) * 1e-9;
}

uint64_t Flow::packets_in_network() const {
  return sender.counters.packets_sent + path.duplicates() - receiver.counters().packets_received - path.queue_drops() -
         path.random_losses();
}

size_t Flow::memory_bytes() const {
  return sizeof *this + path.memory_bytes() + sender.board.memory_bytes() + receiver.memory_bytes() +
         (echoes ? echoes->memory_bytes() : 0);
}

}  // namespace netbuf
