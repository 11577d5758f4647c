#include "netbuf/stack.h"

#include <algorithm>
#include <bit>

#include "netbuf/sender.h"

namespace netbuf {

namespace {

constexpr uint32_t kTimestampBytes = 12;
constexpr uint8_t kAllOptions = kOffersSack | kOffersTimeStamps | kOffersScaling;

// Linux 6.x with HZ=250, as Debian's: 1500-byte IP packets without link header; TCP_DELACK_MIN, TCP_MAX_QUICKACKS,
// tcp_comp_sack_delay_ns, TCP_RTO_MIN.
const StackProfile kLinux{
    .mss = 1448,
    .data_overhead = 52,
    .ack_bytes = 52,
    .sack_bytes = {0, 12, 20, 28},
    .syn_bytes = 60,
    .syn_ack_bytes = 60,
    .syn_options = kAllOptions,
    .options = kAllOptions,
    .max_sack_blocks = 3,
    .delayed_ack_packets = 2,
    .delayed_ack_timeout = 40 * kMillisecond,
    .quick_acks = 16,
    .compressed_ack_delay = kMillisecond,
    .initial_rto = kSecond,
    .min_rto = 200 * kMillisecond,
    .max_rto = 120 * kSecond,
    .unsampled_rto = 3 * kSecond,
    .tick = 4 * kMillisecond,
    .rtt_granularity = 0,
    .reset_bytes = 40,
    .datagram_overhead = 0,
    .syn_tries = 11,
    .syn_ack_tries = 6,
    .linear_syns = 4,
    .data_retries = 15,
    .orphan_retries = 8,
    .time_wait = 60 * kSecond,
    .make_recovery = make_linux_recovery,
    .transmit = transmit_linux,
    .unsent_limit = 128 * 1024,
    .has_hosts = true,
    .speaks_ecn = true,
    .takes_settings = true,
    .paces = true,
    .confirms_repeated_syn_ack = true,
    .heeds_lost_syns = true,
    .first_data_is_an_event = false,
    .confirms_repeated_fin = true,
    .restarts_after_idle = true,
    .time_stamps = true,
    .scales_windows = true,
    .sack_ends_retransmission = true,
    .keeps_rate_samples = false,
    .retransmission_measures_window = false,
    .tunes_window = true,
    .acknowledges_as_read = true,
    .ignores_late_stamps = false,
    .counts_syn_answers = false,
    .ignores_fin_beyond_hole = false,
    .acknowledges_around_fin = false,
    .repeats_fin = false,
    .reports_duplicates = true,
    .echoes_duplicates = true,
    .orders_ties = false,
    .keeps_rates = false,
};

// ns-3.44 as the reference runs configure it: PPP framing of two bytes; only the first segment is acknowledged at once;
// no SACK compression; a maximum segment lifetime of half a second.
const StackProfile kNs3{
    .mss = 1448,
    .data_overhead = 54,
    .ack_bytes = 54,
    .sack_bytes = {0, 8, 16, 24},
    .syn_bytes = 58,
    .syn_ack_bytes = 58,
    .syn_options = kAllOptions,
    .options = kAllOptions,
    .max_sack_blocks = 3,
    .delayed_ack_packets = 2,
    .delayed_ack_timeout = 200 * kMillisecond,
    .quick_acks = 1,
    .compressed_ack_delay = 0,
    .initial_rto = 3 * kSecond,
    .min_rto = kSecond,
    .max_rto = 60 * kSecond,
    .unsampled_rto = 3 * kSecond,
    .tick = 0,
    .rtt_granularity = kMillisecond,
    .reset_bytes = 42,
    .datagram_overhead = 30,
    .syn_tries = 6,
    .syn_ack_tries = 6,
    .linear_syns = 0,
    .data_retries = 0,
    .orphan_retries = 0,
    .time_wait = kSecond,
    .make_recovery = make_ns3_recovery,
    .transmit = transmit_ns3,
    .unsent_limit = 0,
    .has_hosts = false,
    .speaks_ecn = false,
    .takes_settings = false,
    .paces = false,
    .confirms_repeated_syn_ack = false,
    .heeds_lost_syns = false,
    .first_data_is_an_event = true,
    .confirms_repeated_fin = false,
    .restarts_after_idle = false,
    .time_stamps = true,
    .scales_windows = true,
    .sack_ends_retransmission = false,
    .keeps_rate_samples = true,
    .retransmission_measures_window = true,
    .tunes_window = false,
    .acknowledges_as_read = false,
    .ignores_late_stamps = true,
    .counts_syn_answers = true,
    .ignores_fin_beyond_hole = true,
    .acknowledges_around_fin = true,
    .repeats_fin = true,
    .reports_duplicates = false,
    .echoes_duplicates = false,
    .orders_ties = true,
    .keeps_rates = true,
};

// Of Linux' SYNs: beside the largest segment, SACK goes into the room that a time stamp leaves.
uint32_t syn_option_bytes(uint8_t options) {
  const uint32_t stamped = options & kOffersTimeStamps ? kTimestampBytes : options & kOffersSack ? 4 : 0;
  return stamped + (options & kOffersScaling ? 4 : 0);
}

// options: of both ends. A segment has the bytes that its header saves.
void leave_out(StackProfile& profile, uint8_t offers, uint8_t options, bool fixed_mss) {
  if (options == kAllOptions && offers == kAllOptions) return;
  const uint32_t plain = profile.syn_bytes - syn_option_bytes(kAllOptions);
  profile.syn_bytes = plain + syn_option_bytes(offers);
  profile.syn_ack_bytes = plain + syn_option_bytes(options);
  profile.syn_options = offers;
  profile.options = options;
  if (!(options & kOffersTimeStamps)) {
    profile.time_stamps = false;
    if (!fixed_mss) profile.mss += kTimestampBytes;
    profile.data_overhead -= kTimestampBytes;
    profile.ack_bytes -= kTimestampBytes;
  }
  if (!(options & kOffersScaling)) profile.scales_windows = false;
  if (!(options & kOffersSack)) {
    profile.max_sack_blocks = 0;
    profile.compressed_ack_delay = 0;
    profile.reports_duplicates = false;
    profile.make_recovery = make_linux_reno_recovery;
  }
}

uint8_t options_of(const WorldConfig& world) {
  return static_cast<uint8_t>((world.sack ? kOffersSack : 0) | (world.timestamps ? kOffersTimeStamps : 0) |
                              (world.window_scaling ? kOffersScaling : 0));
}

// What one end has: what neither the connection nor its host does without; where both are silent, as usual.
uint8_t options_of(const TcpSettings& flow, const TcpSettings& host, uint8_t usual) {
  const auto has = [](std::optional<bool> one, std::optional<bool> other, uint8_t otherwise, uint8_t option) {
    const bool used = one || other ? one.value_or(true) && other.value_or(true) : otherwise & option;
    return static_cast<uint8_t>(used ? option : 0);
  };
  return has(flow.sack, host.sack, usual, kOffersSack) |
         has(flow.timestamps, host.timestamps, usual, kOffersTimeStamps) |
         has(flow.window_scaling, host.window_scaling, usual, kOffersScaling);
}

bool silent(const TcpSettings& settings) {
  return settings.max_rto_ns == 0 && !settings.slow_start_after_idle && !settings.window_scaling &&
         !settings.timestamps && !settings.sack;
}

}  // namespace

Time modelled_timeout(uint32_t retries, Time max_rto) {
  constexpr Time kLeast = 200 * kMillisecond;  // TCP_RTO_MIN
  const auto doublings = static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(max_rto / kLeast)) - 1);
  const Time doubled = ((Time{2} << std::min(retries, doublings)) - 1) * kLeast;
  return doubled + (retries > doublings ? retries - doublings : 0) * max_rto;
}

const StackProfile& stack_profile(Stack stack) { return stack == Stack::ns3 ? kNs3 : kLinux; }

StackProfile stack_profile(const WorldConfig& config) { return Profiles(config).usual(); }

Profiles::Profiles(const WorldConfig& config)
    : base_(stack_profile(config.stack)), fixed_mss_(config.mss > 0) {
  if (config.mss) base_.mss = config.mss;
  if (config.min_rto_ns) base_.min_rto = config.min_rto_ns;
  if (config.syn_retries) base_.syn_tries = 1 + base_.linear_syns + config.syn_retries;
  if (config.data_retries) base_.data_retries = config.data_retries;
  if (config.delayed_ack_packets) base_.delayed_ack_packets = config.delayed_ack_packets;
  const uint8_t options = options_of(config);
  usually_ = {config.max_rto_ns ? config.max_rto_ns : base_.max_rto, options, options,
              base_.restarts_after_idle && config.slow_start_after_idle};
  usual_ = host_sender_ = make(usually_);
  host_sender_.transmit = transmit_at_host;
  if (std::any_of(config.hosts.begin(), config.hosts.end(), [](const HostConfig& host) { return !silent(host); })) {
    hosts_.assign(config.hosts.begin(), config.hosts.end());
  }
}

StackProfile Profiles::make(const Settings& settings) const {
  StackProfile profile = base_;
  profile.max_rto = settings.max_rto;
  profile.restarts_after_idle = settings.restarts_after_idle;
  leave_out(profile, settings.offers, settings.options, fixed_mss_);
  if (settings.at_host) profile.transmit = transmit_at_host;
  return profile;
}

const StackProfile& Profiles::at(const FlowConfig& flow, int32_t host, bool at_host) {
  if (hosts_.empty() && silent(flow)) [[likely]] return at_host ? host_sender_ : usual_;
  static const TcpSettings nothing;
  const auto of = [&](int32_t index) -> const TcpSettings& {
    return index < 0 || hosts_.empty() ? nothing : hosts_[static_cast<size_t>(index)];
  };
  const TcpSettings& here = of(host);
  Settings settings = usually_;
  settings.offers = options_of(flow, of(flow.sender_host), usually_.offers);
  settings.options = settings.offers & options_of(flow, of(flow.receiver_host), usually_.options);
  if (const Time own = flow.max_rto_ns ? flow.max_rto_ns : here.max_rto_ns) settings.max_rto = own;
  if (const auto& own = flow.slow_start_after_idle ? flow.slow_start_after_idle : here.slow_start_after_idle) {
    settings.restarts_after_idle = base_.restarts_after_idle && *own;
  }
  settings.at_host = at_host;
  auto found = own_.find(settings);
  if (found == own_.end()) found = own_.emplace(settings, make(settings)).first;
  return found->second;
}

}  // namespace netbuf
