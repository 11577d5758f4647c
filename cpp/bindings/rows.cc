// Numbers of many agents: what moves between plants and learners,
// and the arithmetic of tasks that would be slow in numpy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>

#include "netbuf/numeric.h"
#include "netbuf/path_evidence.h"
#include "netbuf/receiver_features.h"
#include "netbuf/rows.h"
#include "netbuf/sender_features.h"
#include "netbuf/sender_path.h"
#include "netbuf/switch_features.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {

namespace {

template <class T, size_t N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = Array<T, 1>;
template <class T>
using Matrix = Array<T, 2>;

void require(bool holds, const char* name, const char* shape) {
  if (!holds) throw std::invalid_argument(std::string(name) + " must have shape " + shape);
}

size_t find_column(const std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw std::invalid_argument("fields: there must be " + name);
  return static_cast<size_t>(at - names.begin());
}

// Constants of rules by name.
using Rules = std::map<std::string, double>;

double read_rule(const Rules& rules, const char* name) {
  const auto at = rules.find(name);
  if (at == rules.end()) throw std::invalid_argument(std::string("rules: there must be ") + name);
  return at->second;
}

// The arrays of a tracker, bound once: calls take nothing that stays the same.
class SenderFeatures {
 public:
  SenderFeatures(const std::vector<std::string>& fields, double interval_s, const std::vector<double>& time_constants_s,
                 const std::string& base_rtt, Matrix<float> last, Matrix<float> memory, Vector<double> window, Matrix<bool> known,
                 Matrix<float> kept, Matrix<float> means, Vector<bool> begun, Matrix<float> path)
      : names_(fields), last_(last), memory_(memory), window_(window), known_(known), kept_(kept), means_(means),
        begun_(begun), path_(path) {
    const size_t rows = last.shape(1);
    require(last.shape(0) == fields.size(), "last", "(fields, rows)");
    require(memory.shape(0) == 8 && memory.shape(1) == rows, "memory", "(8, rows)");
    require(window.shape(0) == rows, "window", "(rows,)");
    require(known.shape(0) == 2 && known.shape(1) == rows, "known", "(2, rows)");
    require(kept.shape(0) == time_constants_s.size() && kept.shape(0) > 0 && kept.shape(1) == rows, "kept",
            "(time constants, rows)");
    require(means.shape(0) == 3 && means.shape(1) == rows, "means", "(3, rows)");
    require(begun.shape(0) == rows, "begun", "(rows,)");
    require(path.shape(0) == 2 && path.shape(1) == rows, "path", "(2, rows)");
    for (const double constant_s : time_constants_s) decay_rates_.push_back(static_cast<float>(-1 / constant_s));
    s_.rows = rows;
    s_.interval_rate = static_cast<float>(1 / interval_s);
    s_.interval_bit_rate = static_cast<float>(8 / interval_s);
    s_.elapsed = measured("elapsed_s");
    s_.cwnd = measured("cwnd_bytes");
    s_.mss = measured("mss_bytes");
    s_.segments_acked = measured("segments_acked_sum");
    s_.rtt = measured("rtt_mean_s");
    s_.rtt_min = measured("rtt_min_s");
    s_.receive_interval = measured("receive_interval_mean_s");
    s_.throughput = measured("throughput_bps");
    s_.packets_lost = measured("packets_lost");
    s_.acks = measured("acks");
    s_.timeouts = measured("timeouts");
    s_.in_flight = measured("in_flight_bytes");
    cwnd_column_ = column("cwnd_bytes");
    base_column_ = column(base_rtt.c_str());
    float** remembered[] = {&s_.previous_cwnd, &s_.previous_rtt, &s_.previous_throughput, &s_.previous_rate,
                            &s_.rate,          &s_.peak_rate,    &s_.age,                 &s_.least_rtt};
    for (size_t i = 0; i < std::size(remembered); ++i) *remembered[i] = memory.data() + i * rows;
    s_.window = window.data();
    s_.rtt_known = reinterpret_cast<uint8_t*>(known.data());
    s_.previous_rtt_known = s_.rtt_known + rows;
    s_.lived = means.data();
    s_.throughput_sum = s_.lived + rows;
    s_.rtt_sum = s_.throughput_sum + rows;
    s_.begun = reinterpret_cast<uint8_t*>(begun.data());
    s_.share = path.data();
    s_.base_rtt = s_.share + rows;
  }

  void take_in(const Matrix<const double>& telemetry) {
    require_telemetry(telemetry);
    remember(s_);
    netbuf::take_in(telemetry.data(), s_.rows, names_.size(), last_.data());
    decay_exponents(s_.elapsed, s_.rows, decay_rates_, kept_.data());
  }

  void follow(const Matrix<const double>& telemetry) {
    require_telemetry(telemetry);
    const double* first = telemetry.data();
    netbuf::follow(s_, first + cwnd_column_, first + base_column_, names_.size(), kept_.data());
  }

  void scaled(const Vector<const int64_t>& columns, const Vector<const float>& lows, const Vector<const float>& scales,
              const Matrix<float>& out) const {
    const size_t count = columns.shape(0);
    require(lows.shape(0) == count && scales.shape(0) == count, "lows and scales", "(columns,)");
    require(out.shape(0) == count && out.shape(1) == s_.rows, "out", "(columns, rows)");
    const std::span chosen(columns.data(), count);
    for (const int64_t column : chosen) {
      require(column >= 0 && column < static_cast<int64_t>(names_.size()), "columns", "(columns,), each a field's");
    }
    scaled_fields(last_.data(), s_.rows, chosen, lows.data(), scales.data(), out.data());
  }

  void step(const Vector<const int64_t>& actions, const Vector<const double>& steps, const Vector<const double>& low,
            const std::optional<Vector<const double>>& high, double most, const Matrix<double>& out) const {
    require(actions.shape(0) == s_.rows, "actions", "(rows,)");
    require(steps.shape(0) > 0, "steps", "(steps,), not empty");
    require(low.shape(0) == s_.rows && (!high || high->shape(0) == s_.rows), "low and high", "(rows,)");
    require(out.shape(0) == s_.rows && out.shape(1) == 1, "out", "(rows, 1)");
    step_windows(s_, actions.data(), {steps.data(), steps.shape(0)}, low.data(), high ? high->data() : nullptr, most,
                 out.data());
  }

  void utility_arguments(const Matrix<double>& out) const {
    require(out.shape(0) == 4 && out.shape(1) == s_.rows, "out", "(4, rows)");
    netbuf::utility_arguments(s_, out.data());
  }

  void utility_signs(const Matrix<const double>& logs, double weight, const Vector<float>& out) const {
    require(logs.shape(0) == 4 && logs.shape(1) == s_.rows, "logs", "(4, rows)");
    require(out.shape(0) == s_.rows, "out", "(rows,)");
    netbuf::utility_signs(s_, logs.data(), weight, out.data());
  }

  const SenderRows& rows() const { return s_; }
  size_t fields() const { return names_.size(); }
  size_t column(const char* name) const { return find_column(names_, name); }
  size_t base_column() const { return base_column_; }
  const float* measured(const char* name) const { return last_.data() + column(name) * s_.rows; }
  // What is left of the time constant of this number, in what the caller made of the exponents.
  const float* kept(size_t constant) const {
    require(constant < decay_rates_.size(), "kept", "(four time constants, rows)");
    return kept_.data() + constant * s_.rows;
  }

 private:
  void require_telemetry(const Matrix<const double>& telemetry) const {
    require(telemetry.shape(0) == s_.rows && telemetry.shape(1) == names_.size(), "telemetry", "(rows, fields)");
  }

  SenderRows s_;
  std::vector<std::string> names_;
  size_t cwnd_column_, base_column_;
  std::vector<float> decay_rates_;
  Matrix<float> last_, memory_;  // this and the following: kept alive
  Vector<double> window_;
  Matrix<bool> known_;
  Matrix<float> kept_, means_;
  Vector<bool> begun_;
  Matrix<float> path_;
};

PathRules read_path_rules(const Rules& rules) {
  const auto value = [&](const char* name) { return read_rule(rules, name); };
  const auto single = [&](const char* name) { return static_cast<float>(value(name)); };
  return {
      .drain = value("drain") != 0,
      .interval_s = single("interval_s"),
      .started_rtt = single("started_rtt"),
      .drain_due_s = single("drain_due_s"),
      .seen_ratio = single("seen_ratio"),
      .drain_round_trips = single("drain_round_trips"),
      .least_drain_intervals = single("least_drain_intervals"),
      .heavy_loss = single("heavy_loss"),
      .heavy_rounds = single("heavy_rounds"),
      .least_counted = single("least_counted"),
      .heavy_kept = single("heavy_kept"),
      .most_cut = single("most_cut"),
      .care_s = single("care_s"),
      .growth_loss = single("growth_loss"),
      .growth_rounds = single("growth_rounds"),
      .growth_counted = single("growth_counted"),
      .peak_gain = single("peak_gain"),
      .rate_gain = single("rate_gain"),
      .drain_share = value("drain_share"),
      .drain_of_product = value("drain_of_product"),
      .least_drained = value("least_drained"),
      .cap_segments = value("cap_segments"),
      .spreads = single("spreads"),
  };
}

// The arrays of a tracker of paths, bound once.
class SenderPath {
 public:
  SenderPath(const SenderFeatures& senders, const Rules& rules, Vector<double> lowest_window, Vector<float> base_ever, Matrix<float> path,
             Matrix<float> rounds, Matrix<double> windows, Matrix<bool> flags, Matrix<float> logs)
      : rules_(read_path_rules(rules)),
        columns_{senders.fields(), senders.column("ssthresh_bytes"), senders.column("rtt_min_s"), senders.base_column(),
                 senders.column("acks")},
        lowest_window_(lowest_window), base_ever_(base_ever), path_(path), rounds_(rounds), windows_(windows), flags_(flags), logs_(logs) {
    const size_t rows = senders.rows().rows;
    const auto require_rows = [rows](const auto& array, size_t count, const char* name) {
      require(array.shape(0) == count && array.shape(1) == rows, name,
              ("(" + std::to_string(count) + ", rows)").c_str());
    };
    require(lowest_window.shape(0) == rows, "lowest_window", "(rows,)");
    require(base_ever.shape(0) == rows, "base_ever", "(rows,)");
    float** remembered[] = {&p_.unseen,  &p_.draining,    &p_.least_found, &p_.rate_lately, &p_.low_rtt,
                            &p_.lost_lately, &p_.acked_lately, &p_.roughness, &p_.started, &p_.queue_long,
                            &p_.lost_long, &p_.acked_long, &p_.standing, &p_.held, &p_.least_packet,
                            &p_.least_mean, &p_.packet_found, &p_.spread, &p_.careful};
    float** counted[] = {&p_.heavy.lost,  &p_.heavy.acked,  &p_.heavy.seconds,  &p_.heavy.heavy_in_a_row,
                         &p_.growth.lost, &p_.growth.acked, &p_.growth.seconds, &p_.growth.heavy_in_a_row};
    double** bytes[] = {&p_.wanted, &p_.resumed, &p_.drained, &p_.arrived};
    uint8_t** facts[] = {&p_.acked, &p_.acknowledged, &p_.starting};
    float** logarithms[] = {&p_.jump, &p_.queue};
    require_rows(path, std::size(remembered), "path");
    require_rows(rounds, std::size(counted), "rounds");
    require_rows(windows, std::size(bytes), "windows");
    require_rows(flags, std::size(facts), "flags");
    require_rows(logs, std::size(logarithms), "logs");
    p_.sender = senders.rows();
    p_.base_ever = base_ever.data();
    p_.lowest_window = lowest_window.data();
    p_.kept_lately = senders.kept(1);
    p_.kept_losses = senders.kept(2);
    p_.kept_long = senders.kept(3);
    for (size_t i = 0; i < std::size(remembered); ++i) *remembered[i] = path.data() + i * rows;
    for (size_t i = 0; i < std::size(counted); ++i) *counted[i] = rounds.data() + i * rows;
    for (size_t i = 0; i < std::size(bytes); ++i) *bytes[i] = windows.data() + i * rows;
    for (size_t i = 0; i < std::size(facts); ++i) *facts[i] = reinterpret_cast<uint8_t*>(flags.data()) + i * rows;
    for (size_t i = 0; i < std::size(logarithms); ++i) *logarithms[i] = logs.data() + i * rows;
  }

  void compare_rates() { netbuf::compare_rates(p_); }

  void follow(const Matrix<const double>& telemetry) {
    require_telemetry(telemetry);
    follow_path(p_, rules_, telemetry.data(), columns_);
  }

  void follow_queue(const Matrix<const double>& telemetry) {
    require_telemetry(telemetry);
    netbuf::follow_queue(p_, telemetry.data(), columns_);
  }

  void decide(const Vector<const double>& factors, const std::optional<Vector<const double>>& caps,
              const Vector<double>& out) {
    require_vector(factors, "factors");
    if (caps) require_vector(*caps, "caps");
    require_vector(out, "out");
    decide_windows(p_, rules_, factors.data(), caps ? caps->data() : nullptr, out.data());
  }

  void caps(const Vector<double>& out) {
    require_vector(out, "out");
    measured_caps(p_, rules_, out.data());
  }

  void ratios(const Matrix<float>& out) {
    require(out.shape(0) == kAllRatios && out.shape(1) == p_.sender.rows, "out", "(15, rows)");
    sender_ratios(p_.sender, out.data());
    path_ratios(p_, out.data() + kSenderRatios * p_.sender.rows);
  }

  void features(const Matrix<const float>& logs, const Vector<const float>& scales, const Matrix<float>& out) {
    const size_t rows = p_.sender.rows;
    require(logs.shape(0) == kAllRatios && logs.shape(1) == rows, "logs", "(15, rows)");
    require(scales.shape(0) == kAllRatios, "scales", "(15,)");
    require(out.shape(0) == kSenderFeatures + kPathFeatures && out.shape(1) == rows, "out", "(27, rows)");
    sender_features(p_.sender, logs.data(), scales.data(), out.data());
    path_features(p_, logs.data() + kSenderRatios * rows, scales.data() + kSenderRatios, scales.data()[kQueueing],
                  out.data() + kSenderFeatures * rows);
  }

  const PathRows& rows() const { return p_; }
  const PathColumns& columns() const { return columns_; }

 private:
  void require_telemetry(const Matrix<const double>& telemetry) const {
    require(telemetry.shape(0) == p_.sender.rows && telemetry.shape(1) == columns_.fields, "telemetry",
            "(rows, fields)");
  }
  template <class Array>
  void require_vector(const Array& array, const char* name) const {
    require(array.shape(0) == p_.sender.rows, name, "(rows,)");
  }

  PathRules rules_;
  PathColumns columns_;
  PathRows p_{};
  Vector<double> lowest_window_;  // this and the following: kept alive
  Vector<float> base_ever_;
  Matrix<float> path_, rounds_;
  Matrix<double> windows_;
  Matrix<bool> flags_;
  Matrix<float> logs_;
};

// The arrays of a tracker of evidence, bound once.
class PathEvidence {
 public:
  PathEvidence(const SenderFeatures& senders, const SenderPath& path, Vector<float> base_ever, Matrix<float> memory)
      : columns_(path.columns()), base_ever_(base_ever), memory_(memory) {
    const size_t rows = senders.rows().rows;
    float** remembered[] = {&e_.spread,        &e_.rate_long,   &e_.weight,        &e_.in_flight,
                            &e_.rtt,           &e_.rate,        &e_.in_flight_squares, &e_.rtt_products,
                            &e_.rtt_squares,   &e_.rate_products, &e_.counted,     &e_.lossy,
                            &e_.burst,         &e_.loss_queue,  &e_.loss_offered,  &e_.loss_age};
    require(base_ever.shape(0) == rows, "base_ever", "(rows,)");
    require(memory.shape(0) == std::size(remembered) && memory.shape(1) == rows, "memory", "(16, rows)");
    e_.path = path.rows();
    e_.in_flight_mean = senders.measured("bytes_in_flight_mean");
    e_.segments_per_ack = senders.measured("segments_acked_mean");
    e_.rtt_min_ever = senders.measured("rtt_min_ever_s");
    e_.base_ever = base_ever.data();
    for (size_t i = 0; i < std::size(remembered); ++i) *remembered[i] = memory.data() + i * rows;
  }

  void follow(const Matrix<const double>& telemetry) {
    require(telemetry.shape(0) == rows() && telemetry.shape(1) == columns_.fields, "telemetry", "(rows, fields)");
    follow_evidence(e_, telemetry.data(), columns_);
  }

  void arguments(const Matrix<float>& out) {
    require(out.shape(0) == kEvidenceLogs && out.shape(1) == rows(), "out", "(15, rows)");
    evidence_arguments(e_, out.data());
  }

  void features(const Matrix<const float>& logs, const Vector<const float>& scales, const Matrix<float>& out) {
    require(logs.shape(0) == kEvidenceLogs && logs.shape(1) == rows(), "logs", "(15, rows)");
    require(scales.shape(0) == kEvidenceLogs, "scales", "(15,)");
    require(out.shape(0) == kEvidenceFeatures && out.shape(1) == rows(), "out", "(20, rows)");
    evidence_features(e_, logs.data(), scales.data(), out.data());
  }

 private:
  size_t rows() const { return e_.path.sender.rows; }

  EvidenceRows e_{};
  PathColumns columns_;
  Vector<float> base_ever_;  // this and the following: kept alive
  Matrix<float> memory_;
};

ReceiverRules read_receiver_rules(const Rules& rules, double interval_s) {
  const auto single = [&](const char* name) { return static_cast<float>(read_rule(rules, name)); };
  const auto inverse = [&](const char* name) { return static_cast<float>(1 / read_rule(rules, name)); };
  return {
      .drain = read_rule(rules, "drain") != 0,
      .interval_s = static_cast<float>(interval_s),
      .interval_rate = static_cast<float>(1 / interval_s),
      .packet_rate = static_cast<float>(8 / interval_s),
      .peak_decay = static_cast<float>(-1 / read_rule(rules, "peak_memory_s")),
      .seen_share = single("seen_share"),
      .seen_s = single("seen_s"),
      .drain_due_s = static_cast<float>(read_rule(rules, "drain_after_s") - 1e-3),  // float32 adds up intervals
      .least_drain = single("least_drain_intervals"),
      .greatest_drain = single("greatest_drain_intervals"),
      .per_drain_after = inverse("drain_after_s"),
      .per_greatest_drain = inverse("greatest_drain_intervals"),
      .k_middle = single("k_middle"),
      .target_middle = single("target_middle_s"),
      .least_gain = single("least_gain"),
  };
}

// The arrays of a tracker of receivers, bound once.
class ReceiverFeatures {
 public:
  ReceiverFeatures(const std::vector<std::string>& fields, double interval_s, const Rules& rules, Matrix<float> last,
                   Matrix<float> memory, Matrix<double> exact, Vector<float> kept, Matrix<float> means,
                   Vector<bool> begun, Matrix<float> path)
      : rules_(read_receiver_rules(rules, interval_s)),
        columns_{fields.size(), find_column(fields, "received_bytes"), find_column(fields, "window_bytes"),
                 find_column(fields, "k"), find_column(fields, "target_delay_s")},
        last_(last), memory_(memory), exact_(exact), kept_(kept), means_(means), begun_(begun), path_(path) {
    const size_t rows = last.shape(1);
    float** remembered[] = {&r_.rate, &r_.previous_rate, &r_.previous_delay, &r_.previous_window, &r_.peak_rate,
                            &r_.least_seen, &r_.draining};
    double** in_force[] = {&r_.window_exact, &r_.k_exact, &r_.target, &r_.received, &r_.resumed};
    float** summed[] = {&r_.lived, &r_.throughput_sum, &r_.rtt_sum};
    const float** of_path[] = {&r_.share, &r_.base_rtt};
    const auto bind = [rows](const auto& array, const auto& members, const char* name) {
      require(array.shape(0) == std::size(members) && array.shape(1) == rows, name,
              ("(" + std::to_string(std::size(members)) + ", rows)").c_str());
      for (size_t i = 0; i < std::size(members); ++i) *members[i] = array.data() + i * rows;
    };
    require(last.shape(0) == fields.size(), "last", "(fields, rows)");
    require(kept.shape(0) == rows, "kept", "(rows,)");
    require(begun.shape(0) == rows, "begun", "(rows,)");
    bind(memory, remembered, "memory");
    bind(exact, in_force, "exact");
    bind(means, summed, "means");
    bind(path, of_path, "path");
    r_.rows = rows;
    r_.kept = kept.data();
    r_.begun = reinterpret_cast<uint8_t*>(begun.data());
    const std::pair<const char*, const float**> measured[] = {
        {"elapsed_s", &r_.elapsed},
        {"packets_received", &r_.packets},
        {"receive_rate_bps", &r_.receive_rate},
        {"window_bytes", &r_.window},
        {"buffered_bytes", &r_.buffered},
        {"queue_delay_s", &r_.delay_filtered},
        {"queue_delay_mean_s", &r_.delay},
        {"queue_delay_min_s", &r_.delay_min},
        {"queue_delay_max_s", &r_.delay_max},
        {"delay_gradient", &r_.delay_gradient},
        {"rtt_s", &r_.rtt},
        {"rtt_min_s", &r_.rtt_min},
        {"packets_missing", &r_.missing},
        {"packets_repeated", &r_.repeated},
        {"silence_s", &r_.silence},
        {"longest_gap_s", &r_.longest_gap},
        {"k", &r_.k},
        {"bdp_gain", &r_.bdp_gain},
        {"mss_bytes", &r_.mss},
        {"goodput_bps", &r_.goodput},
        {"true_queue_delay_mean_s", &r_.true_delay},
    };
    for (const auto& [name, at] : measured) *at = last.data() + find_column(fields, name) * rows;
  }

  void take_in(const Matrix<const double>& telemetry) {
    require_telemetry(telemetry);
    remember_receivers(r_);
    netbuf::take_in(telemetry.data(), r_.rows, columns_.fields, last_.data());
    take_in_receivers(r_, rules_, telemetry.data(), columns_);
  }

  void follow(const Matrix<const double>& telemetry) {
    require_telemetry(telemetry);
    follow_receivers(r_, rules_, telemetry.data(), columns_);
  }

  void ratios(const Matrix<float>& out) const {
    require(out.shape(0) == kReceiverRatios && out.shape(1) == r_.rows, "out", "(16, rows)");
    receiver_ratios(r_, rules_, out.data());
  }

  void features(const Matrix<const float>& logs, const Vector<const float>& scales, const Matrix<float>& out) const {
    require(logs.shape(0) == kReceiverRatios && logs.shape(1) == r_.rows, "logs", "(16, rows)");
    require(scales.shape(0) == kReceiverRatios, "scales", "(16,)");
    require(out.shape(0) == kReceiverFeatures && out.shape(1) == r_.rows, "out", "(26, rows)");
    receiver_features(r_, rules_, logs.data(), scales.data(), out.data());
  }

 private:
  void require_telemetry(const Matrix<const double>& telemetry) const {
    require(telemetry.shape(0) == r_.rows && telemetry.shape(1) == columns_.fields, "telemetry", "(rows, fields)");
  }

  ReceiverRules rules_;
  ReceiverColumns columns_;
  ReceiverRows r_{};
  Matrix<float> last_, memory_;  // this and the following: kept alive
  Matrix<double> exact_;
  Vector<float> kept_;
  Matrix<float> means_;
  Vector<bool> begun_;
  Matrix<float> path_;
};

// The arrays of a tracker of switches, bound once.
class SwitchFeatures {
 public:
  SwitchFeatures(const std::vector<std::string>& fields, size_t queues, const Rules& rules, Matrix<float> last,
                 Matrix<float> memory, Array<float, 3> leasts, Array<float, 3> since, Matrix<float> world,
                 Matrix<float> betas, Matrix<bool> flags, Matrix<float> kept)
      : names_(fields), last_(last), memory_(memory), leasts_(leasts), since_(since), world_(world), betas_(betas),
        flags_(flags), kept_(kept) {
    const size_t rows = last.shape(1);
    const auto require_matrix = [rows](const auto& array, size_t count, const char* name, const char* shape) {
      require(array.shape(0) == count && array.shape(1) == rows, name, shape);
    };
    const auto require_cube = [rows, queues](const Array<float, 3>& array, const char* name) {
      require(array.shape(0) == 3 && array.shape(1) == queues && array.shape(2) == rows, name, "(3, queues, rows)");
    };
    if (queues == 0) throw std::invalid_argument("queues = 0: must be at least 1");
    require(last.shape(0) == fields.size(), "last", "(fields, rows)");
    require_matrix(memory, 7 * queues + 2, "memory", "(7 * queues + 2, rows)");
    require_cube(leasts, "leasts");
    require_cube(since, "since");
    require_matrix(world, 5, "world", "(5, rows)");
    require_matrix(betas, queues, "betas", "(queues, rows)");
    require_matrix(flags, 2, "flags", "(2, rows)");
    require_matrix(kept, 4, "kept", "(4, rows)");
    rules_ = {rule(rules, "least_window_s"), rule(rules, "target_s"), rule(rules, "long_ago_s")};
    for (const char* name : {"load_memory_s", "starts_memory_s", "burst_memory_s", "excess_memory_s"}) {
      decay_rates_.push_back(static_cast<float>(-1 / read_rule(rules, name)));
    }
    s_.rows = rows;
    s_.elapsed = measured("elapsed_s");
    s_.capacity = measured("capacity");
    s_.free_fraction = measured("free_fraction");
    s_.flows_started = measured("flows_started");
    s_.flows_completed = measured("flows_completed");
    s_.drop_head = measured("drop_head");
    const float** of_world[] = {&s_.capacity_bps, &s_.service, &s_.packet_units, &s_.ports, &s_.cap_share};
    for (size_t i = 0; i < std::size(of_world); ++i) *of_world[i] = world.data() + i * rows;
    s_.in_bytes = reinterpret_cast<uint8_t*>(flags.data());
    s_.flow_known = reinterpret_cast<uint8_t*>(flags.data()) + rows;
    const float** parts[] = {&s_.kept_load, &s_.kept_starts, &s_.kept_burst, &s_.kept_excess};
    for (size_t i = 0; i < std::size(parts); ++i) *parts[i] = kept.data() + i * rows;
    s_.flows_open = memory.data() + 7 * queues * rows;
    s_.window = s_.flows_open + rows;
    for (size_t k = 0; k < queues; ++k) s_.queues.push_back(bind_queue(k, queues));
  }

  void take_in(const Matrix<const double>& telemetry) {
    require(telemetry.shape(0) == s_.rows && telemetry.shape(1) == names_.size(), "telemetry", "(rows, fields)");
    netbuf::take_in(telemetry.data(), s_.rows, names_.size(), last_.data());
    decay_exponents(s_.elapsed, s_.rows, decay_rates_, kept_.data());
  }

  void follow() { follow_switches(s_, rules_); }

  void ratios(const Matrix<const float>& log_scales, const Matrix<float>& logs, const Matrix<float>& log1ps) {
    require_logs(logs, log1ps);
    switch_ratios(s_, read_scales(log_scales), logs.data(), log1ps.data());
  }

  void features(const Matrix<const float>& log_scales, const Vector<const float>& log1p_scales,
                const Matrix<const float>& logs, const Matrix<const float>& log1ps, const Matrix<float>& out) {
    require_logs(logs, log1ps);
    require(log1p_scales.shape(0) == kQueueLog1ps, "log1p_scales", "(12,)");
    require(out.shape(0) == kSwitchFeatures + kQueueFeatures * s_.queues.size() && out.shape(1) == s_.rows, "out",
            "(5 + 18 * queues, rows)");
    switch_features(s_, read_scales(log_scales), log1p_scales.data(), logs.data(), log1ps.data(), out.data());
  }

 private:
  static SwitchLogScales read_scales(const Matrix<const float>& scales) {
    require(scales.shape(0) == kSwitchLogs + 1 && scales.shape(1) == 3, "log_scales", "(3, 3)");
    SwitchLogScales read;
    const float* value = scales.data();
    for (LogScale& scale : read) {
      scale = {value[0], value[1], value[2]};
      value += 3;
    }
    return read;
  }
  static float rule(const Rules& rules, const char* name) { return static_cast<float>(read_rule(rules, name)); }
  const float* measured(const std::string& name) const {
    return last_.data() + find_column(names_, name) * s_.rows;
  }
  template <class Logs>
  void require_logs(const Logs& logs, const Logs& log1ps) const {
    const size_t queues = s_.queues.size();
    require(logs.shape(0) == kSwitchLogs + kQueueLogs * queues && logs.shape(1) == s_.rows, "logs",
            "(2 + 2 * queues, rows)");
    require(log1ps.shape(0) == kQueueLog1ps * queues && log1ps.shape(1) == s_.rows, "log1ps", "(12 * queues, rows)");
  }
  SwitchQueueRows bind_queue(size_t queue, size_t queues) {
    SwitchQueueRows q{};
    const std::pair<const char*, const float**> fields[] = {
        {"alpha", &q.alpha},
        {"queue_packets", &q.queue_packets},
        {"queue_bytes", &q.queue_bytes},
        {"arrivals", &q.arrivals},
        {"drops", &q.drops},
        {"drained_bytes", &q.drained_bytes},
        {"queue_delay_mean_s", &q.queue_delay_mean},
        {"flows_completed", &q.flows_completed},
        {"ratio_sum", &q.ratio_sum},
        {"queue_packets_max", &q.queue_packets_max},
        {"queue_bytes_min", &q.queue_bytes_min},
        {"syns", &q.syns},
        {"flows_opened", &q.flows_opened},
        {"flows_closed", &q.flows_closed},
    };
    for (const auto& [name, at] : fields) *at = measured(std::string(name) + "_" + std::to_string(queue));
    q.betas = betas_.data() + queue * s_.rows;
    const auto bind = [&](std::initializer_list<float**> members, float* data) {
      size_t index = queue;
      for (float** const member : members) {
        *member = data + index * s_.rows;
        index += queues;
      }
    };
    bind({&q.load, &q.starts_lately, &q.starts_most, &q.flows_seen, &q.share_of_buffer, &q.excess_sum,
          &q.excess_flows}, memory_.data());
    bind({&q.least_bytes, &q.least_before, &q.least_now}, leasts_.data());
    bind({&q.above, &q.cut_age, &q.drop_age}, since_.data());
    return q;
  }

  SwitchRows s_{};
  SwitchRules rules_{};
  std::vector<std::string> names_;
  std::vector<float> decay_rates_;
  Matrix<float> last_, memory_;  // this and the following: kept alive
  Array<float, 3> leasts_, since_;
  Matrix<float> world_, betas_;
  Matrix<bool> flags_;
  Matrix<float> kept_;
};

}  // namespace

void bind_rows(nb::module_& m) {
  m.def("take_in", [](const Matrix<const double>& telemetry, const Matrix<float>& last) {
    const size_t rows = telemetry.shape(0), fields = telemetry.shape(1);
    require(last.shape(0) == fields && last.shape(1) == rows, "last", "(fields, rows)");
    take_in(telemetry.data(), rows, fields, last.data());
  }, "telemetry"_a, "last"_a.noconvert(),
        "Writes of telemetry, (rows, fields), what is no NaN into last, (fields, rows).");

  m.def("put_vectors", [](const Matrix<const float>& vectors, const Matrix<float>& out) {
    const size_t width = vectors.shape(0), rows = vectors.shape(1);
    require(out.shape(0) == rows && out.shape(1) == width, "out", "(rows, width)");
    put_vectors(vectors.data(), rows, width, out.data());
  }, "vectors"_a, "out"_a.noconvert(), "Writes vectors, (width, rows), into out, (rows, width).");

  m.def("stack_vectors", [](const Array<const float, 3>& ring, size_t first, const Matrix<float>& out) {
    const size_t depth = ring.shape(0), rows = ring.shape(1), width = ring.shape(2);
    require(first < depth, "ring", "(more than first, rows, width)");
    require(out.shape(0) == rows && out.shape(1) == depth * width, "out", "(rows, depth * width)");
    stack_vectors(ring.data(), rows, width, depth, first, out.data());
  }, "ring"_a.noconvert(), "first"_a, "out"_a.noconvert(),
     "Writes ring, (depth, rows, width), from vector `first` on and round, into out, (rows, depth * width).");

  m.def("filter_recursively", [](const Vector<double>& values, double first, double second) {
    filter_recursively(values.data(), values.shape(0), first, second);
  }, "values"_a.noconvert(), "first"_a, "second"_a = 0.0,
        "Makes of x, (count,), y[n] = x[n] - first * y[n - 1] - second * y[n - 2], in place.");

  m.def("average_middle", [](const Vector<const double>& values, const Vector<const double>& weights,
                             const Vector<const int64_t>& units, const Matrix<const double>& counts,
                             const Matrix<double>& out) {
    const size_t count = values.shape(0), samples = counts.shape(1);
    require(weights.shape(0) == count, "weights", "(count,)");
    require(units.shape(0) == count, "units", "(count,)");
    require(out.shape(0) == 3 && out.shape(1) == samples, "out", "(3, samples)");
    for (size_t i = 0; i < count; ++i) {
      const int64_t unit = units.data()[i];
      require(unit >= 0 && static_cast<size_t>(unit) < counts.shape(0), "counts", "(more than any unit, samples)");
    }
    double* means = out.data();
    average_middle({values.data(), weights.data(), units.data(), count}, counts.data(), samples, means + samples,
                   means + 2 * samples, means);
  }, "values"_a, "weights"_a, "units"_a, "counts"_a.noconvert(), "out"_a.noconvert(),
        "Writes the weighted means of the middle half of ascending values, of each sample, into out[0]; out[1:] is overwritten.");

  nb::class_<SenderFeatures>(m, "SenderFeatures",
                             "The arithmetic of netbuf_gym.tasks.congestion_window on its tracker's arrays.")
      .def(nb::init<const std::vector<std::string>&, double, const std::vector<double>&, const std::string&,
                    Matrix<float>, Matrix<float>, Vector<double>, Matrix<bool>, Matrix<float>, Matrix<float>,
                    Vector<bool>, Matrix<float>>(),
           "fields"_a, "interval_s"_a, "time_constants_s"_a, "base_rtt"_a, "last"_a.noconvert(), "memory"_a.noconvert(),
           "window"_a.noconvert(), "known"_a.noconvert(), "kept"_a.noconvert(), "means"_a.noconvert(),
           "begun"_a.noconvert(), "path"_a.noconvert(),
           "base_rtt: the field that the least RTT is the least of. memory holds previous cwnd, RTT, throughput, rate; rate, peak"
           " rate, age, least RTT;"
           " known: RTT known, and before. kept: exponents of what is not forgotten, by constant; the highest rate's"
           " first, the caller makes exponentials in place. means, begun: RunningMeans; path: share, base RTT.")
      .def("take_in", &SenderFeatures::take_in, "telemetry"_a,
           "Makes the last interval the previous one, takes in another, and writes the exponents of what is kept.")
      .def("follow", &SenderFeatures::follow, "telemetry"_a,
           "Follows the interval that was taken in; needs the exponentials.")
      .def("scaled", &SenderFeatures::scaled, "columns"_a, "lows"_a, "scales"_a, "out"_a.noconvert(),
           "Writes the measured values of some fields, less their least ones, times their scales, within [0, 1].")
      .def("step", &SenderFeatures::step, "actions"_a, "steps"_a, "low"_a, "high"_a.none(), "most"_a,
           "out"_a.noconvert(),
           "Writes windows that steps[action] * MSS^2 / window are added to, from `low` to `high` (None: to `most`).")
      .def("utility_arguments", &SenderFeatures::utility_arguments, "out"_a.noconvert(),
           "Writes what the signs of changes of utility take the logarithms of, (4, rows).")
      .def("utility_signs", &SenderFeatures::utility_signs, "logs"_a, "weight"_a, "out"_a.noconvert(),
           "Writes the signs of changes of weight * log(throughput) - (1 - weight) * log(RTT), 0 where not known.");

  nb::class_<ReceiverFeatures>(m, "ReceiverFeatures",
                               "The arithmetic of netbuf_gym.tasks.receiver_window on its tracker's arrays.")
      .def(nb::init<const std::vector<std::string>&, double, const Rules&, Matrix<float>, Matrix<float>,
                    Matrix<double>, Vector<float>, Matrix<float>, Vector<bool>, Matrix<float>>(),
           "fields"_a, "interval_s"_a, "rules"_a, "last"_a.noconvert(), "memory"_a.noconvert(), "exact"_a.noconvert(),
           "kept"_a.noconvert(), "means"_a.noconvert(), "begun"_a.noconvert(), "path"_a.noconvert(),
           "rules: constants by name. memory: rate, previous rate, delay and window, peak rate, time since the least delay"
           " was seen, draining; exact: window, k, target, received, resumed; kept: the peak rate's exponents, of which the"
           " caller makes exponentials in place. means, begun: RunningMeans; path: share, base RTT.")
      .def("take_in", &ReceiverFeatures::take_in, "telemetry"_a,
           "Makes the last interval the previous one, takes in another, and writes the exponents of what is kept.")
      .def("follow", &ReceiverFeatures::follow, "telemetry"_a,
           "Follows the interval that was taken in; needs the exponentials.")
      .def("ratios", &ReceiverFeatures::ratios, "out"_a.noconvert(),
           "Writes what the features take the logarithms of, (16, rows).")
      .def("features", &ReceiverFeatures::features, "logs"_a, "scales"_a, "out"_a.noconvert(),
           "Writes the feature vectors, (26, rows), from these logarithms and their scales.");

  nb::class_<SenderPath>(m, "SenderPath",
                         "The arithmetic of netbuf_gym.tasks.congestion_window.path_tracker on its tracker's arrays.")
      .def(nb::init<const SenderFeatures&, const Rules&, Vector<double>, Vector<float>, Matrix<float>, Matrix<float>,
                    Matrix<double>, Matrix<bool>, Matrix<float>>(),
           nb::keep_alive<1, 2>(), "senders"_a, "rules"_a, "lowest_window"_a.noconvert(), "base_ever"_a.noconvert(),
           "path"_a.noconvert(),
           "rounds"_a.noconvert(), "windows"_a.noconvert(), "flags"_a.noconvert(), "logs"_a.noconvert(),
           "senders: with the time constants of the highest rate, of rates, of losses and for long. rules: constants of"
           " the module by name. logs: what the caller makes logarithms of in place, change of the rate and queue.")
      .def("compare_rates", &SenderPath::compare_rates, "Writes the change of the rate, 1 where none was measured.")
      .def("follow", &SenderPath::follow, "telemetry"_a,
           "Follows an interval that the senders have followed; needs log2 of the rate's change.")
      .def("follow_queue", &SenderPath::follow_queue, "telemetry"_a, "Follows what needs the logarithm of the queue.")
      .def("decide", &SenderPath::decide, "factors"_a, "caps"_a.none(), "out"_a.noconvert(),
           "Writes windows for factors of them, NaN where nothing is decided.")
      .def("caps", &SenderPath::caps, "out"_a.noconvert(), "Writes the measured caps of the windows.")
      .def("ratios", &SenderPath::ratios, "out"_a.noconvert(),
           "Writes the ratios whose logarithms are observed, (15, rows).")
      .def("features", &SenderPath::features, "logs"_a, "scales"_a, "out"_a.noconvert(),
           "Writes the feature vectors, (27, rows), from the logarithms of the ratios and their factors.");

  nb::class_<PathEvidence>(m, "PathEvidence",
                           "The arithmetic of netbuf_gym.tasks.congestion_window.evidence_tracker on its tracker's arrays.")
      .def(nb::init<const SenderFeatures&, const SenderPath&, Vector<float>, Matrix<float>>(), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>(), "senders"_a, "path"_a, "base_ever"_a.noconvert(), "memory"_a.noconvert(),
           "memory holds spread, rate for long; weight, means and sums of the regressions; counts and means of losses.")
      .def("follow", &PathEvidence::follow, "telemetry"_a, "Follows an interval that the path has followed.")
      .def("arguments", &PathEvidence::arguments, "out"_a.noconvert(),
           "Writes what the features take the logarithms of, (15, rows).")
      .def("features", &PathEvidence::features, "logs"_a, "scales"_a, "out"_a.noconvert(),
           "Writes the feature vectors, (20, rows), from the logarithms and their factors.");

  nb::class_<SwitchFeatures>(m, "SwitchFeatures",
                             "The arithmetic of netbuf_gym.tasks.queue_threshold on its tracker's arrays.")
      .def(nb::init<const std::vector<std::string>&, size_t, const Rules&, Matrix<float>, Matrix<float>,
                    Array<float, 3>, Array<float, 3>, Matrix<float>, Matrix<float>, Matrix<bool>, Matrix<float>>(),
           "fields"_a, "queues"_a, "rules"_a, "last"_a.noconvert(), "memory"_a.noconvert(), "leasts"_a.noconvert(),
           "since"_a.noconvert(), "world"_a.noconvert(), "betas"_a.noconvert(), "flags"_a.noconvert(),
           "kept"_a.noconvert(),
           "rules: constants of the tracker's module by name. world: rate of the ports, a packet's time, size, ports,"
           " cap; flags: in bytes, flow known; kept: exponents of what is not forgotten, of which the caller makes"
           " exponentials in place.")
      .def("take_in", &SwitchFeatures::take_in, "telemetry"_a,
           "Takes in an interval and writes the exponents of what is kept.")
      .def("follow", &SwitchFeatures::follow, "Follows the interval that was taken in; needs the exponentials.")
      .def("ratios", &SwitchFeatures::ratios, "log_scales"_a, "logs"_a.noconvert(), "log1ps"_a.noconvert(),
           "Writes the arguments of logarithms, (2 + 2 * queues, rows), and of those of 1 + them, (12 * queues, rows)."
           " log_scales, (3, 3): least argument, factor, what is then subtracted; of buffer and packet time, alphas.")
      .def("features", &SwitchFeatures::features, "log_scales"_a, "log1p_scales"_a, "logs"_a, "log1ps"_a,
           "out"_a.noconvert(), "Writes the feature vectors, (5 + 18 * queues, rows), from the logarithms.");
}

}  // namespace netbuf
