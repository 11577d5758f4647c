#include "netbuf/stack.h"

#include "netbuf/sender.h"

namespace netbuf {

namespace {

constexpr uint32_t kTimestampBytes = 12;

// Linux 6.x with HZ=250, as Debian's: 1500-byte IP packets without link header; TCP_DELACK_MIN, TCP_MAX_QUICKACKS,
// tcp_comp_sack_delay_ns, TCP_RTO_MIN.
const StackProfile kLinux{
    .mss = 1448,
    .data_overhead = 52,
    .ack_bytes = 52,
    .sack_bytes = {0, 12, 20, 28},
    .syn_bytes = 60,
    .max_sack_blocks = 3,
    .delayed_ack_packets = 2,
    .delayed_ack_timeout = 40 * kMillisecond,
    .quick_acks = 16,
    .compressed_ack_delay = kMillisecond,
    .initial_rto = kSecond,
    .min_rto = 200 * kMillisecond,
    .max_rto = 120 * kSecond,
    .tick = 4 * kMillisecond,
    .rtt_granularity = 0,
    .reset_bytes = 40,
    .datagram_overhead = 0,
    .syn_tries = 0,
    .time_wait = 60 * kSecond,
    .make_recovery = make_linux_recovery,
    .transmit = transmit_linux,
    .has_hosts = true,
    .speaks_ecn = true,
    .paces = true,
    .confirms_repeated_syn_ack = true,
    .first_data_is_an_event = false,
    .confirms_repeated_fin = true,
    .restarts_after_idle = true,
    .time_stamps = true,
    .scales_windows = true,
    .sack_ends_retransmission = true,
    .retransmission_measures_window = false,
    .tunes_window = true,
    .echoes_latest_syn = true,
    .ignores_late_stamps = false,
    .counts_syn_answers = false,
    .ignores_fin_beyond_hole = false,
    .acknowledges_around_fin = false,
    .repeats_fin = false,
    .reports_duplicates = true,
    .echoes_duplicates = true,
    .orders_ties = false,
};

// ns-3.44 as the reference runs configure it: PPP framing of two bytes; only the first segment is acknowledged at once;
// no SACK compression; a maximum segment lifetime of half a second.
const StackProfile kNs3{
    .mss = 1448,
    .data_overhead = 54,
    .ack_bytes = 54,
    .sack_bytes = {0, 8, 16, 24},
    .syn_bytes = 58,
    .max_sack_blocks = 3,
    .delayed_ack_packets = 2,
    .delayed_ack_timeout = 200 * kMillisecond,
    .quick_acks = 1,
    .compressed_ack_delay = 0,
    .initial_rto = 3 * kSecond,
    .min_rto = kSecond,
    .max_rto = 60 * kSecond,
    .tick = 0,
    .rtt_granularity = kMillisecond,
    .reset_bytes = 42,
    .datagram_overhead = 30,
    .syn_tries = 6,
    .time_wait = kSecond,
    .make_recovery = make_ns3_recovery,
    .transmit = transmit_ns3,
    .has_hosts = false,
    .speaks_ecn = false,
    .paces = false,
    .confirms_repeated_syn_ack = false,
    .first_data_is_an_event = true,
    .confirms_repeated_fin = false,
    .restarts_after_idle = false,
    .time_stamps = true,
    .scales_windows = true,
    .sack_ends_retransmission = false,
    .retransmission_measures_window = true,
    .tunes_window = false,
    .echoes_latest_syn = false,
    .ignores_late_stamps = true,
    .counts_syn_answers = true,
    .ignores_fin_beyond_hole = true,
    .acknowledges_around_fin = true,
    .repeats_fin = true,
    .reports_duplicates = false,
    .echoes_duplicates = false,
    .orders_ties = true,
};

}  // namespace

const StackProfile& stack_profile(Stack stack) { return stack == Stack::ns3 ? kNs3 : kLinux; }

StackProfile stack_profile(const WorldConfig& config) {
  StackProfile profile = stack_profile(config.stack);
  if (config.mss) profile.mss = config.mss;
  if (config.min_rto_ns) profile.min_rto = config.min_rto_ns;
  if (config.max_rto_ns) profile.max_rto = config.max_rto_ns;
  if (!config.slow_start_after_idle) profile.restarts_after_idle = false;
  if (!config.timestamps) {  // 12 bytes of every header, which segments have instead; 8 of a SYN's
    profile.time_stamps = false;
    if (config.mss == 0) profile.mss += kTimestampBytes;
    profile.data_overhead -= kTimestampBytes;
    profile.ack_bytes -= kTimestampBytes;
    profile.syn_bytes -= 8;
  }
  if (!config.window_scaling) {
    profile.scales_windows = false;
    profile.syn_bytes -= 4;
  }
  if (config.delayed_ack_packets) profile.delayed_ack_packets = config.delayed_ack_packets;
  return profile;
}

}  // namespace netbuf
