#include "netbuf/tap.h"

namespace netbuf {

namespace {
constexpr uint8_t kEndOfOptions = 0, kNoOption = 1, kSackOption = 5;

uint32_t word(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}
uint32_t half(const uint8_t* at) { return uint32_t{at[0]} << 8 | at[1]; }
}  // namespace

TapSeen TapSeen::read(const uint8_t* packet, uint32_t length, bool backward) {
  TapSeen seen;
  const uint32_t header = (packet[0] & 15u) * 4;
  // Not TCP, too short, or not a packet's first fragment.
  if (packet[9] != 6 || length < header + 20 || (packet[6] & 0x1f) | packet[7]) return seen;
  const uint8_t* tcp = packet + header;
  const uint32_t offset = (tcp[12] >> 4) * 4u;
  if (offset < 20 || length < header + offset) return seen;
  const uint32_t from = half(tcp), to = half(tcp + 2);
  seen.tcp = true;
  seen.ports = backward ? to << 16 | from : from << 16 | to;
  seen.seq = word(tcp + 4);
  seen.ack = word(tcp + 8);
  seen.payload = length - header - offset;
  seen.fin = tcp[13] & 1;
  seen.syn = tcp[13] & 2;
  seen.reset = tcp[13] & 4;
  seen.echo = tcp[13] & 64;
  for (uint32_t at = 20; backward && at + 2 <= offset && tcp[at] != kEndOfOptions;) {
    if (tcp[at] == kNoOption) {
      ++at;
      continue;
    }
    if (tcp[at] == kSackOption && tcp[at + 1] >= 10 && at + 10 <= offset) {
      seen.sacked = true;
      seen.sack_end = word(tcp + at + 6);
    }
    if (tcp[at + 1] < 2) break;
    at += tcp[at + 1];
  }
  return seen;
}

void Tap::sent(Time now, const TapSeen& seen) {
  if (!seen.tcp) return;
  if (seen.reset) {
    connections_.erase(seen.ports);
    return;
  }
  if (seen.syn) {
    Connection& connection = connections_[seen.ports];
    connection.una = connection.next = seen.seq + 1;
    connection.segments.clear();
    return;
  }
  const auto found = connections_.find(seen.ports);
  if (seen.payload == 0 || found == connections_.end()) return;
  Connection& connection = found->second;
  ++counters_.packets_sent;
  counters_.sent_bytes += seen.payload;
  if (counters_.packets_sent == 1) counters_.first_sent = now;
  counters_.last_sent = now;
  const uint32_t end = seen.seq + seen.payload;
  if (!before(seen.seq, connection.next)) {
    connection.next = end;
    connection.segments.push({end, false, false, now});
    return;
  }
  ++counters_.packets_retransmitted;
  if (after(end, connection.next)) connection.next = end;
  for (uint32_t i = connection.segments.head(); i != connection.segments.tail(); ++i) {
    Segment& segment = connection.segments[i];
    if (after(segment.end, seen.seq)) segment.repeated = true, segment.at = now;
    if (!before(segment.end, end)) break;
  }
}

void Tap::received(const TapSeen& seen, bool marked) {
  counters_.packets_received += seen.data();
  counters_.marks += marked && seen.data();
  counters_.received_bytes += seen.payload;
}

void Tap::answered(Time now, const TapSeen& seen) {
  if (!seen.tcp) return;
  if (seen.reset) {
    connections_.erase(seen.ports);
    return;
  }
  const auto found = connections_.find(seen.ports);
  if (found == connections_.end() || seen.syn) return;
  Connection& connection = found->second;
  Ring<Segment>& segments = connection.segments;
  if (seen.payload == 0) {
    ++counters_.acks;
    if (counters_.acks == 1) counters_.first_ack = now;
    counters_.last_ack = now;
  }
  if (after(seen.ack, connection.una) && !after(seen.ack, connection.next + 1)) {  // one beyond: of the FIN
    const uint32_t upto = after(seen.ack, connection.next) ? connection.next : seen.ack;
    counters_.acked_bytes += upto - connection.una;
    connection.una = upto;
    Segment latest{0, false, true, 0};  // the newest that is acknowledged: those before it may have waited for the ACK
    while (!segments.empty() && !after(segments.front().end, upto)) {
      if (!segments.front().sacked) latest = segments.front();
      segments.pop();
    }
    note_rtt(now, latest);
  }
  if (seen.sacked && after(seen.sack_end, connection.una)) {
    for (uint32_t i = segments.tail(); i != segments.head() && !before(segments[i - 1].end, seen.sack_end); --i) {
      Segment& segment = segments[i - 1];
      if (segment.end != seen.sack_end) continue;
      note_rtt(now, segment);
      segment.sacked = true;
    }
  }
  if (seen.payload == 0) counters_.in_flight_sum += static_cast<double>(connection.next - connection.una);
  if (seen.fin && segments.empty()) connections_.erase(found);
}

// Of a segment that was sent again, if it cannot have been the first copy that arrived.
void Tap::note_rtt(Time now, const Segment& segment) {
  const Time rtt = now - segment.at;
  if (segment.sacked || (segment.repeated && rtt < counters_.rtt_min)) return;
  ++counters_.rtt_count;
  counters_.rtt_sum += rtt;
  counters_.rtt_last = rtt;
  if (rtt < counters_.rtt_min) counters_.rtt_min = rtt;
  if (rtt < interval_rtt_min) interval_rtt_min = rtt;
}

int64_t Tap::in_flight_bytes() const {
  int64_t sum = 0;
  for (const auto& [ports, connection] : connections_) sum += connection.next - connection.una;
  return sum;
}

}  // namespace netbuf
