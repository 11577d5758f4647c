// What differs between the stack profiles, Linux and ns-3.44, besides their congestion controls: numbers, what each
// does or does not do, and strategies.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "netbuf/config.h"

namespace netbuf {

class Recovery;
class Sender;

// In a SYN's options, and in the log of packets.
enum HandshakeOption : uint8_t { kOffersSack = 2, kOffersTimeStamps = 4, kOffersScaling = 8 };

struct StackProfile {
  uint32_t mss;
  uint32_t data_overhead, ack_bytes;       // bytes on the wire beyond the payload; a pure ACK without SACK blocks
  uint32_t sack_bytes[4];                  // extra bytes of an ACK with 0..3 SACK blocks
  uint32_t syn_bytes, syn_ack_bytes;
  uint8_t syn_options, options;            // of HandshakeOption: what the sender offers; what both ends have
  uint32_t max_sack_blocks;                // 0: no selective acknowledgements
  uint32_t delayed_ack_packets;            // an ACK at the latest after this many segments
  Time delayed_ack_timeout;
  uint32_t quick_acks;                     // segments acknowledged at once at the start and after trouble
  Time compressed_ack_delay;               // SACK compression after the third duplicate; 0: none
  Time initial_rto, min_rto, max_rto;
  Time unsampled_rto;                      // of a connection whose handshake told no round trip
  Time tick;                               // of the clock of time-outs, probes and delayed ACKs (1 / HZ); 0: exact
  Time rtt_granularity;                    // of the time stamps that feed the RTO
  uint32_t reset_bytes;
  // Of sources that count the payload of an on period in whole bits; 0: they count time.
  uint32_t datagram_overhead;
  uint32_t syn_tries, syn_ack_tries;       // the first counts
  uint32_t linear_syns;                    // time-outs of the SYN that do not double the next (tcp_syn_linear_timeouts)
  // Time-outs in a row, at the least RTO, after which what is sent again is given up, and the FIN of a stream that its
  // application has closed (tcp_retries2, tcp_orphan_retries); 0: never.
  uint32_t data_retries, orphan_retries;
  Time time_wait;                          // how long a sender that has closed answers for its connection

  std::unique_ptr<Recovery> (*make_recovery)();
  void (*transmit)(Sender&);               // sends what the window lets go

  // ---- sender
  // Bytes that wait to leave from which on a socket takes no more to write (TCP_NOTSENT_LOWAT), where it is at no host;
  // 0: it takes what leaves at once.
  int64_t unsent_limit;
  bool has_hosts;                          // what sockets' buffers do is known of it
  bool speaks_ecn;                         // as RFC 3168 has it, where a flow asks for it
  bool takes_settings;                     // options of the handshake and retries are the world's to set
  // Windows of controls that do not pace themselves, where the world asks for it.
  bool paces;
  bool confirms_repeated_syn_ack;          // else such an answer starts the window anew
  bool heeds_lost_syns;                    // two or more: a first window of one segment (RFC 5681, 3.1)
  bool first_data_is_an_event;             // a nanosecond after the handshake
  bool confirms_repeated_fin;              // while it remembers the connection
  bool restarts_after_idle;                // RFC 5681, 4.1
  bool sacks() const { return max_sack_blocks > 0; }
  bool time_stamps;                        // ACKs echo those of what they answer (RFC 7323, 3)
  bool scales_windows;                     // RFC 7323, 2; else they end at kLargestUnscaledWindow
  bool sack_ends_retransmission;           // a copy of what is selectively acknowledged is not in flight any more
  bool keeps_rate_samples;                 // for ACKs that bring no better one
  bool retransmission_measures_window;     // of streams that end: whether the window limits is asked anew

  // ---- receiver
  // Dynamic right-sizing, and every segment acknowledged while the window grows.
  bool tunes_window;
  // What is due is acknowledged once the application has read all that came at the same instant.
  bool acknowledges_as_read;
  bool ignores_late_stamps;                // a segment whose time stamp is older than one seen before is not echoed
  bool counts_syn_answers;                 // whoever asked for them; else each SYN sets the timer anew
  bool ignores_fin_beyond_hole;            // before anything else of the stream has come
  bool acknowledges_around_fin;            // before and after its own; else that is the acknowledgement
  bool repeats_fin;                        // by a second timer; else time-outs back off
  bool reports_duplicates;                 // by which segment it was (D-SACK, RFC 2883); else only that there was one
  bool echoes_duplicates;                  // RFC 7323, 4.3; else in-order segments only

  // ---- world
  bool orders_ties;                        // events of one instant take turns in the order in which they were scheduled
  bool keeps_rates;                        // what a link has begun to send it sends at the rate of then
};
// How long time-outs in a row take, the first of the least RTO: tcp_model_timeout.
Time modelled_timeout(uint32_t retries, Time max_rto);

const StackProfile& stack_profile(Stack stack);
StackProfile stack_profile(const WorldConfig& config);  // of those without settings of their own

// The profiles of a world's connections: one, but for those of senders at hosts, and where flows or hosts have settings
// of their own.
class Profiles {
 public:
  explicit Profiles(const WorldConfig& config);
  const StackProfile& usual() const { return usual_; }
  const StackProfile& sender(const FlowConfig& flow) { return at(flow, flow.sender_host, flow.sender_host >= 0); }
  // And of the path.
  const StackProfile& receiver(const FlowConfig& flow) { return at(flow, flow.receiver_host, false); }

 private:
  struct Settings {
    Time max_rto = 0;
    uint8_t offers = 0, options = 0;
    bool restarts_after_idle = false, at_host = false;
    auto operator<=>(const Settings&) const = default;
  };
  StackProfile make(const Settings& settings) const;
  const StackProfile& at(const FlowConfig& flow, int32_t host, bool at_host);

  StackProfile base_, usual_, host_sender_;  // base_: but for settings
  bool fixed_mss_;
  Settings usually_;
  std::vector<TcpSettings> hosts_;         // empty: none has settings of its own
  std::map<Settings, StackProfile> own_;
};
inline constexpr int64_t kLargestUnscaledWindow = 65'535;

}  // namespace netbuf
