// A cell: a base station gives its time, in TTIs, to users whose channels fade.
//
// Sources: 3GPP TS 36.213, Table 7.2.3-1 (CQI and efficiency), 10.1.5 (scheduling requests); TS 36.321, 5.3.2 and 5.4
// (HARQ, scheduling requests); TS 36.322 (RLC, delivery in order). From SNR to CQI: Piro, Baldo and Miozzo, "An LTE
// module for the ns-3 network simulator", 2011, efficiency log2(1 + SNR / G), G = -ln(5 BER) / 1.5, BER = 5e-5.
// Proportional fairness: Kelly, Maulloo and Tan, 1998; Viswanath, Tse and Laroia, "Opportunistic beamforming using dumb
// antennas", IEEE Trans. Inf. Theory 48(6), 2002, which also has the gain over round robin: with n users alike, whose
// rate is proportional to a Rayleigh channel's power, 1 + 1/2 + ... + 1/n.
//
// Each link is a user; both directions have a scheduler and spectrum of their own (FDD). Further users without links
// always have something to send or receive. Each TTI goes whole to one user, by its own rate over the mean of what it
// has had (or in turn), and carries as many bytes as its channel allows now, of one packet or several. A block fails with
// probability bler and is sent again a HARQ round trip later, in a TTI that is then nobody else's; what came after it
// waits for it (RLC). After harq_retries it is lost, with all packets that it has a part of. Before a user sends after a
// silence it asks at its next turn to do so (sr_ms), and may send grant_ms later; then it goes on until its queue is empty.
// A channel's amplitude is a complex Gaussian first-order process (Rayleigh), shadowing one in dB; channels are known at once.
#include <algorithm>
#include <array>
#include <cmath>

#include "netbuf/medium.h"

namespace netbuf {
namespace {

constexpr std::array<double, 15> kEfficiency{0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141,
                                             2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547};  // bits a symbol
constexpr double kElements = 168;              // 12 subcarriers of 14 symbols: of a resource block in a TTI
const double kGap = -std::log(5 * 5e-5) / 1.5;

// What a TTI carries of a user's channel.
class Rates {
 public:
  Rates(const Parameters& p, bool up)
      : elements_(p[up ? "uplink_blocks" : "blocks"] * p["layers"] * kElements * (1 - p["overhead"])),
        snr_(std::pow(10, p["snr_db"] / 10)),
        linear_(p.is("linear")) {}

  // power: of the channel, 1 in the mean; gain: of its user.
  double bits(double power, double gain) const {
    if (linear_) return elements_ * std::log2(1 + snr_ * gain / kGap) * power;
    const double efficiency = std::log2(1 + snr_ * gain * power / kGap);
    const auto cqi = std::upper_bound(kEfficiency.begin(), kEfficiency.end(), efficiency) - kEfficiency.begin();
    return cqi == 0 ? 0 : elements_ * kEfficiency[static_cast<size_t>(cqi - 1)];
  }

 private:
  double elements_, snr_;
  bool linear_;
};

double factor_of(double db) { return std::pow(10, db / 10); }

class Channel {
 public:
  Channel(const Parameters& p, double tti_ms, Rng& rng)
      : fading_rate_(p["fading_ms"] > 0 ? tti_ms / p["fading_ms"] : 0),
        shadow_rate_(tti_ms / p["shadow_ms"]),
        shadow_db_(p["shadow_db"]) {
    draw(rng);
    if (fading_rate_ > 0) re_ = std::sqrt(0.5) * a_, im_ = std::sqrt(0.5) * b_;
    if (shadow_db_ > 0) draw(rng), shadow_ = a_;
  }

  double power(uint64_t tti, Rng& rng) {       // later and later
    if (tti == at_) return power_;
    const auto steps = static_cast<double>(tti - at_);
    at_ = tti;
    if (fading_rate_ > 0) {
      const double rho = std::exp(-steps * fading_rate_), fresh = std::sqrt((1 - rho * rho) / 2);
      draw(rng);
      re_ = rho * re_ + fresh * a_;
      im_ = rho * im_ + fresh * b_;
    }
    power_ = fading_rate_ > 0 ? re_ * re_ + im_ * im_ : 1;
    if (shadow_db_ > 0) {
      const double rho = std::exp(-steps * shadow_rate_);
      draw(rng);
      shadow_ = rho * shadow_ + std::sqrt(1 - rho * rho) * a_;
      power_ *= factor_of(shadow_db_ * shadow_);
    }
    return power_;
  }

 private:
  void draw(Rng& rng) {                        // two normal variables (Box and Muller)
    const double radius = std::sqrt(rng.exponential(2)), angle = 2 * M_PI * rng.uniform();
    a_ = radius * std::cos(angle);
    b_ = radius * std::sin(angle);
  }

  double fading_rate_, shadow_rate_, shadow_db_, re_ = 1, im_ = 0, shadow_ = 0, power_ = 1, a_ = 0, b_ = 0;
  uint64_t at_ = UINT64_MAX;                   // the first time is a step too, which leaves the distribution
};

struct User {
  Link* link;                                  // null: a further user
  double gain;
  Channel channel;
  double average = 0;                          // bits a TTI that it has had
  Time may_send = 0;                           // from its grant on; kNever: it has to ask
  Time last_arrival = 0;                       // nothing comes before what was sent before
  Time phase = 0;                              // of its turns to ask
  Queued item{};                               // that is sent in part
  int64_t left = 0;                            // bytes of it
  bool damaged = false;                        // a part of it was lost
};

// One direction of a cell.
class Direction {
 public:
  Direction(const Parameters& p, bool up)
      : up_(up),
        rates_(p, up),
        tti_(static_cast<Time>(p["tti_ms"] * 1e6 + 0.5)),
        harq_ttis_(std::max<uint64_t>(1, static_cast<uint64_t>(p["harq_ms"] / p["tti_ms"] + 0.5))),
        retries_(p.as<uint32_t>("harq_retries")),
        bler_(p["bler"]),
        forget_(std::min(1.0, p["tti_ms"] / p["pf_ms"])),
        request_(static_cast<Time>(p["sr_ms"] * 1e6 + 0.5)),
        grant_(static_cast<Time>(p["grant_ms"] * 1e6 + 0.5)),
        in_turn_(p.is("round_robin")),
        reserved_(harq_ttis_ * retries_ + 1, UINT64_MAX) {}

  void add(const Parameters& p, Link* link, double gain_db, Rng& rng) {
    User& user = users_.emplace_back(User{link, factor_of(gain_db), Channel(p, p["tti_ms"], rng)});
    user.average = rates_.bits(1, user.gain);
    if (link && up_) user.may_send = kNever, user.phase = static_cast<Time>(rng.uniform() * static_cast<double>(request_));
    if (link) ++linked_;
  }
  uint32_t last() const { return static_cast<uint32_t>(users_.size() - 1); }

  // Something waits in a user's queue.
  void wake(uint32_t index, Time now) {
    User& user = users_[index];
    if (user.may_send < kNever) return;
    const Time turns = request_ > 0 ? (now - user.phase + request_ - 1) / request_ : 0;
    user.may_send = (request_ > 0 ? user.phase + std::max<Time>(0, turns) * request_ : now) + grant_;
  }

  // The next TTI in which a user with a link may have something to send.
  Time next(Time now) const {
    Time at = kNever;
    for (uint32_t i = 0; i < linked_; ++i) at = std::min(at, ready(users_[i], now));
    if (at >= kNever) return kNever;
    return std::max((at + tti_ - 1) / tti_, following_) * tti_;
  }

  void run(Time now, Rng& rng) {
    const auto tti = static_cast<uint64_t>(now / tti_);
    if (now % tti_ != 0 || static_cast<Time>(tti) < following_) return;
    const auto missed = static_cast<double>(static_cast<Time>(tti) - following_);
    following_ = static_cast<Time>(tti) + 1;
    if (missed > 0) {
      for (uint32_t i = 0; i < linked_; ++i) users_[i].average *= std::pow(1 - forget_, missed);
    }
    const bool taken = reserved(tti);
    User* chosen = taken ? nullptr : choose(now, tti, rng);
    const double bits = chosen ? rates_.bits(chosen->channel.power(tti, rng), chosen->gain) : 0;
    for (User& user : users_) user.average += forget_ * ((&user == chosen ? bits : 0) - user.average);
    if (chosen) send(*chosen, now, tti, static_cast<int64_t>(bits / 8), rng);
    if (up_) {
      for (uint32_t i = 0; i < linked_; ++i) {
        User& user = users_[i];
        if (user.may_send <= now && ready(user, now) >= kNever) user.may_send = kNever;
      }
    }
  }

  size_t memory_bytes() const { return users_.capacity() * sizeof(User) + reserved_.capacity() * sizeof(uint64_t); }

 private:
  static Time ready(const User& user, Time now) {
    return user.left > 0 ? std::max(now, user.may_send) : std::max(user.link->sendable(now), user.may_send);
  }
  uint64_t& place(uint64_t tti) { return reserved_[tti % reserved_.size()]; }
  bool reserved(uint64_t tti) { return place(tti) == tti; }

  User* choose(Time now, uint64_t tti, Rng& rng) {
    User* best = nullptr;
    double most = 0;
    const auto count = static_cast<uint32_t>(users_.size());
    for (uint32_t k = 0; k < count; ++k) {
      User& user = users_[in_turn_ ? (turn_ + k) % count : k];
      const double bits = rates_.bits(user.channel.power(tti, rng), user.gain);
      if (bits < 8 || (user.link && ready(user, now) > now)) continue;
      const double metric = bits / std::max(user.average, 1e-9);
      if (in_turn_ && best) continue;
      if (!best || metric > most) best = &user, most = metric;
    }
    if (best && in_turn_) turn_ = static_cast<uint32_t>(best - users_.data()) + 1;
    return best;
  }

  // A block of so many bytes.
  void send(User& user, Time now, uint64_t tti, int64_t bytes, Rng& rng) {
    uint32_t failures = 0;
    while (failures <= retries_ && bler_ > 0 && rng.uniform() < bler_) ++failures;
    const bool lost = failures > retries_;
    const uint64_t repeats = lost ? retries_ : failures;
    for (uint64_t i = 1; i <= repeats; ++i) place(tti + i * harq_ttis_) = tti + i * harq_ttis_;
    if (!user.link) return;
    user.link->occupy(now, now + tti_);
    user.last_arrival = std::max(user.last_arrival, now + tti_ * static_cast<Time>(1 + repeats * harq_ttis_));
    while (bytes > 0) {
      if (user.left == 0) {
        if (user.link->sendable(now) > now || !user.link->draw(now, user.item)) break;
        user.left = user.item.bytes;
        user.damaged = false;
      }
      user.damaged |= lost;
      const int64_t part = std::min(bytes, user.left);
      bytes -= part;
      user.left -= part;
      if (user.left > 0) break;
      if (user.damaged) {
        user.link->abandon(user.item);
      } else {
        user.link->deliver(user.item, now, user.last_arrival);
      }
    }
  }

  const bool up_;
  const Rates rates_;
  const Time tti_;
  const uint64_t harq_ttis_;
  const uint32_t retries_;
  const double bler_, forget_;
  const Time request_, grant_;
  const bool in_turn_;
  std::vector<uint64_t> reserved_;             // TTIs for what is sent again
  std::vector<User> users_;                    // those with links first
  uint32_t linked_ = 0, turn_ = 0;
  Time following_ = 0;                         // number of the TTI after the last that was given away
};

class Cellular final : public Medium {
 public:
  explicit Cellular(MediumSetting setting)
      : rng_(setting.seed), down_(setting.parameters, false), up_(setting.parameters, true) {
    for (const MediumPort& port : setting.ports) {
      Direction& direction = port.up ? up_ : down_;
      direction.add(setting.parameters, port.link, port.gain_db, rng_);
      users_.push_back({&direction, direction.last()});
    }
    for (double i = 0; i < setting.parameters["users"]; ++i) {
      for (Direction* direction : {&down_, &up_}) direction->add(setting.parameters, nullptr, 0, rng_);
    }
  }

  Time next() const override { return next_; }
  bool offered(Time now, uint32_t port) override {
    users_[port].direction->wake(users_[port].index, now);
    return plan(now);
  }
  void run(Time now) override {
    down_.run(now, rng_);
    up_.run(now, rng_);
    plan(now);
  }
  size_t memory_bytes() const override { return sizeof *this + down_.memory_bytes() + up_.memory_bytes(); }

 private:
  struct Place {
    Direction* direction;
    uint32_t index;
  };
  bool plan(Time now) {
    const Time before = next_;
    next_ = std::min(down_.next(now), up_.next(now));
    return next_ != before;
  }

  Rng rng_;
  Direction down_, up_;
  std::vector<Place> users_;                   // by port
  Time next_ = kNever;
};

// Of a user whose channel fades like those of all others: each TTI goes to the best of them, or to each in turn.
double capacity_bps(const Parameters& p, bool up, double gain_db) {
  const Rates rates(p, up);
  const double users = 1 + p["users"], best_of = p.is("round_robin") ? 1 : users, gain = factor_of(gain_db);
  double bits = rates.bits(1, gain);
  if (p["fading_ms"] > 0) {
    constexpr int kPoints = 4096;
    bits = 0;
    for (int i = 0; i < kPoints; ++i) {        // quantiles of the largest of so many exponential variables
      const double u = std::pow((i + 0.5) / kPoints, 1 / best_of);
      bits += rates.bits(-std::log1p(-u), gain) / kPoints;
    }
  }
  const double tries = (1 - std::pow(p["bler"], p["harq_retries"] + 1)) / (1 - p["bler"]);
  return std::max(1.0, bits * 1e3 / p["tti_ms"] / users / tries);
}

const Entry<MediumRecord> entry{{
    .name = "cellular",
    .meaning = "a cell (LTE, 5G): a base station gives its TTIs to users by proportional fairness, over channels that fade, "
               "with HARQ, delivery in order, and grants before users may send",
    .make = [](MediumSetting setting) -> std::unique_ptr<Medium> {
      return std::make_unique<Cellular>(std::move(setting));
    },
    .capacity_bps = capacity_bps,
    .has_gains = true,
    .parameters =
        {
            real("tti_ms", 1, 0.0625, 1, "time that is given away at once (TTI), ms: 1 in LTE, 0.5 in 5G at 30 kHz"),
            whole("blocks", 50, 1, 275, "resource blocks of the downlink: 50 are 10 MHz in LTE"),
            whole("uplink_blocks", 50, 1, 275, "resource blocks of the uplink"),
            whole("layers", 1, 1, 8, "streams that are sent at once (MIMO)"),
            real("overhead", 0.25, 0, 0.9, "share of the resource elements that control channels and reference signals take"),
            real("snr_db", 15, -20, 60, "mean signal-to-noise ratio, dB; Link.gain_db adds to it"),
            real("fading_ms", 30, 0, 1e6, "time in which a channel's Rayleigh fading loses its memory, ms; 0: no fading"),
            real("shadow_db", 0, 0, 20, "standard deviation of shadowing, dB"),
            real("shadow_ms", 1000, 1, 1e7, "time in which shadowing loses its memory, ms"),
            truth("linear", false, "rates are proportional to a channel's power, not those of the CQI table"),
            whole("users", 0, 0, 200, "further users that always have something to send and to receive"),
            real("pf_ms", 100, 1, 1e5, "time over which proportional fairness averages what a user has had, ms"),
            truth("round_robin", false, "users are served in turn"),
            real("bler", 0.1, 0, 0.9, "probability that a block fails, each time it is sent"),
            real("harq_ms", 8, 0.0625, 100, "time from a block to its being sent again, ms"),
            whole("harq_retries", 3, 0, 20, "how often a block is sent again before it is lost"),
            real("sr_ms", 10, 0, 1000, "time between a user's turns to ask for the uplink (scheduling request), ms"),
            real("grant_ms", 8, 0, 1000, "time from asking to sending, ms"),
            whole("channel", 0, 0, 1'000'000, "number of the cell: links whose media are equal share one"),
        },
}};

}  // namespace
}  // namespace netbuf
