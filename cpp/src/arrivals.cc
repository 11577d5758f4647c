// The kinds of arrivals: each with what its configuration may be.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "netbuf/law.h"
#include "netbuf/reject.h"
#include "netbuf/traffic.h"

namespace netbuf {

namespace {

// Exponentially distributed; the longest there is when it would be longer.
Time random_gap(Rng& rng, double mean_ns) {
  const double gap = rng.exponential(mean_ns);
  return gap < static_cast<double>(kNever) ? static_cast<Time>(gap) : kNever;
}

void check_laws(const ArrivalsConfig& arrivals, const std::string& at, size_t count) {
  if (arrivals.laws.size() != count) reject(at + ".laws", arrivals.laws.size(), std::to_string(count));
  for (const LawConfig& law : arrivals.laws) Law::check(law, at + ".laws");
}

// Flows whose priority follows from their size.
class Drawn : public Arrivals {
 public:
  Drawn(const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed)
      : rng_(seed),
        senders_(static_cast<uint32_t>(traffic.senders.size())),
        stop_(config.stop_ns),
        priority_below_(traffic.priority_below) {}

  static uint32_t highest_priority(const ArrivalsConfig&, const TrafficConfig& traffic) {
    return static_cast<uint32_t>(traffic.priority_below.size());
  }

 protected:
  void schedule(Time at) { next_ = is_over(at) ? kNever : at; }
  bool is_over(Time at) const { return at >= kNever || (stop_ > 0 && at >= stop_); }
  FlowArrival drawn(Time start, uint32_t sender, int64_t size_bytes) const {
    uint32_t priority = 0;
    while (priority < priority_below_.size() && size_bytes >= priority_below_[priority]) ++priority;
    return {start, sender, priority, size_bytes};
  }

  Rng rng_;
  uint32_t senders_;

 private:
  Time stop_;
  std::vector<int64_t> priority_below_;
};

// Independently of each other, at any sender, of sizes from a distribution.
class Poisson final : public Drawn {
 public:
  Poisson(const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed)
      : Drawn(config, traffic, seed),
        mean_gap_(1e9 / config.rate_per_s),
        size_(config.size_bytes),
        p_(config.cumulative) {
    schedule(config.start_ns + random_gap(rng_, mean_gap_));
  }

  FlowArrival pop() override {
    const Time start = next_;
    const uint32_t sender = rng_.below(senders_);
    const int64_t size_bytes = draw_size();
    schedule(start + random_gap(rng_, mean_gap_));
    return drawn(start, sender, size_bytes);
  }

  static void check(const ArrivalsConfig& arrivals, const std::string& at, size_t) {
    if (!(arrivals.rate_per_s >= 1e-9 && arrivals.rate_per_s <= 1e9)) {
      reject(at + ".rate_per_s", arrivals.rate_per_s, "in [1e-9, 1e9]");
    }
    if (arrivals.size_bytes.empty() || arrivals.size_bytes.size() != arrivals.cumulative.size()) {
      reject(at + ".cumulative", arrivals.cumulative.size(), "as long as size_bytes, and not empty");
    }
    for (size_t i = 0; i < arrivals.size_bytes.size(); ++i) {
      const double size = arrivals.size_bytes[i], p = arrivals.cumulative[i];
      if (!(size > 0 && size <= static_cast<double>(kLargest)) || (i > 0 && size < arrivals.size_bytes[i - 1])) {
        reject(at + ".size_bytes", size, "above 0, at most 2^40, in ascending order");
      }
      if (!(p >= 0 && p <= 1) || (i > 0 && p < arrivals.cumulative[i - 1])) {
        reject(at + ".cumulative", p, "in [0, 1], in ascending order");
      }
    }
    if (arrivals.cumulative.back() != 1) reject(at + ".cumulative", arrivals.cumulative.back(), "1 at its end");
  }

 private:
  int64_t draw_size() {
    const double u = rng_.uniform();
    const size_t i = static_cast<size_t>(std::upper_bound(p_.begin(), p_.end() - 1, u) - p_.begin());
    if (i == 0) return std::max<int64_t>(1, std::llround(size_[0]));
    const double share = (u - p_[i - 1]) / (p_[i] - p_[i - 1]);
    return std::max<int64_t>(1, std::llround(size_[i - 1] + share * (size_[i] - size_[i - 1])));
  }

  double mean_gap_;
  std::vector<double> size_, p_;
};

// Bursts: several senders, drawn anew each time, start a flow each at once.
class Incast final : public Drawn {
 public:
  Incast(const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed)
      : Drawn(config, traffic, seed),
        interval_(config.interval_ns),
        random_(config.random),
        fan_in_(config.fan_in),
        size_bytes_(std::llround(config.size_bytes[0])),
        burst_(senders_) {
    std::iota(burst_.begin(), burst_.end(), 0u);
    schedule(config.start_ns + (random_ ? random_gap(rng_, static_cast<double>(interval_)) : 0));
  }

  FlowArrival pop() override {
    const Time start = next_;
    const size_t chosen = position_ + rng_.below(static_cast<uint32_t>(senders_ - position_));
    std::swap(burst_[position_], burst_[chosen]);
    const uint32_t sender = burst_[position_];
    if (++position_ == fan_in_) {
      position_ = 0;
      schedule(start + (random_ ? std::max<Time>(1, random_gap(rng_, static_cast<double>(interval_))) : interval_));
    }
    return drawn(start, sender, size_bytes_);
  }

  static void check(const ArrivalsConfig& arrivals, const std::string& at, size_t senders) {
    if (arrivals.interval_ns <= 0 || arrivals.interval_ns > kLongest) {
      reject(at + ".interval_ns", arrivals.interval_ns, "in [1, 1e16]");
    }
    if (arrivals.fan_in < 1 || arrivals.fan_in > senders) {
      reject(at + ".fan_in", arrivals.fan_in, "in [1, number of senders]");
    }
    if (arrivals.size_bytes.size() != 1 ||
        !(arrivals.size_bytes[0] >= 1 && arrivals.size_bytes[0] <= static_cast<double>(kLargest))) {
      reject(at + ".size_bytes", arrivals.size_bytes.size(), "one size in [1, 2^40]");
    }
  }

 private:
  Time interval_;
  bool random_;
  uint32_t fan_in_;
  int64_t size_bytes_;
  size_t position_ = 0;                  // in the burst
  std::vector<uint32_t> burst_;          // senders, the first fan_in of which take part
};

// Flows as they are written down.
class List final : public Arrivals {
 public:
  List(const ArrivalsConfig& config, const TrafficConfig&, uint64_t)
      : start_(config.list_start_ns),
        sender_(config.list_sender),
        priority_(config.list_priority),
        size_(config.list_size) {
    if (!start_.empty()) next_ = start_.front();
  }

  FlowArrival pop() override {
    const size_t i = position_++;
    const FlowArrival flow{next_, sender_[i], priority_[i], size_[i]};
    next_ = position_ < start_.size() ? start_[position_] : kNever;
    return flow;
  }

  static void check(const ArrivalsConfig& arrivals, const std::string& at, size_t senders) {
    const size_t n = arrivals.list_start_ns.size();
    if (arrivals.list_sender.size() != n || arrivals.list_size.size() != n || arrivals.list_priority.size() != n) {
      reject(at + ".list_size", arrivals.list_size.size(),
             "as long as list_start_ns, as are list_sender and list_priority");
    }
    for (size_t i = 0; i < n; ++i) {
      const std::string entry = std::string("[") + std::to_string(i) + "]";
      if (arrivals.list_start_ns[i] < (i ? arrivals.list_start_ns[i - 1] : 0) || arrivals.list_start_ns[i] > kLongest) {
        reject(at + ".list_start_ns" + entry, arrivals.list_start_ns[i], "in [0, 1e16], in ascending order");
      }
      if (arrivals.list_sender[i] >= senders) {
        reject(at + ".list_sender" + entry, arrivals.list_sender[i], "below the number of senders");
      }
      if (arrivals.list_size[i] < 1 || arrivals.list_size[i] > kLargest) {
        reject(at + ".list_size" + entry, arrivals.list_size[i], "in [1, 2^40]");
      }
      if (arrivals.list_priority[i] >= kMaxQueues) {
        reject(at + ".list_priority" + entry, arrivals.list_priority[i], "below 64");
      }
    }
  }
  static uint32_t highest_priority(const ArrivalsConfig& arrivals, const TrafficConfig&) {
    const std::vector<uint32_t>& given = arrivals.list_priority;
    return given.empty() ? 0 : *std::max_element(given.begin(), given.end());
  }

 private:
  std::vector<Time> start_;
  std::vector<uint32_t> sender_, priority_;
  std::vector<int64_t> size_;
  size_t position_ = 0;
};

// Gaps and sizes of laws, at any sender.
class Renewal final : public Drawn {
 public:
  Renewal(const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed)
      : Drawn(config, traffic, seed), gap_(config.laws[0]), size_(config.laws[1]) {
    schedule(config.start_ns + gap_.draw_rest_time(rng_));
  }

  FlowArrival pop() override {
    const Time start = next_;
    const uint32_t sender = rng_.below(senders_);
    const int64_t size_bytes = size_.draw_bytes(rng_);
    schedule(start + gap_.draw_time(rng_));
    return drawn(start, sender, size_bytes);
  }

  static void check(const ArrivalsConfig& arrivals, const std::string& at, size_t) {
    check_laws(arrivals, at, 2);
    if (const double mean = Law(arrivals.laws[0]).mean(); !(mean >= 1e-9 && mean <= 1e9)) {
      reject(at + ".laws", mean, "gaps whose mean is in [1e-9, 1e9] seconds");
    }
  }

 private:
  Law gap_, size_;
};

// Users who read pages, one after the other: a main object, what it refers to, and time to read. A user stays with one
// sender, the server. A request takes the propagation of the way to it, and each of the connections, opened by the server
// here, begins then: its first byte comes after two round trips, as of a client who opens it and asks.
class Web final : public Drawn {
 public:
  Web(const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed, const std::vector<Time>& delays)
      : Drawn(config, traffic, seed),
        laws_(config.laws.begin(), config.laws.end()),
        most_(config.connections),
        delays_(delays),
        users_(config.users) {
    for (uint32_t user = 0; user < config.users; ++user) {
      users_[user].rng = Rng(rng_.next());
      begin(user, config.start_ns + law(WebLaw::reading_s).draw_rest_time(users_[user].rng));
    }
    refresh();
  }

  FlowArrival pop() override {
    const Request request = requests_.top();
    requests_.pop();
    refresh();
    FlowArrival flow = drawn(request.time, server(request.user), request.bytes);
    flow.user = request.user;
    return flow;
  }

  void ended(uint32_t user, Time now, bool failed) override {
    Page& page = users_[user];
    --page.under_way;
    page.failed |= failed;
    if (!page.parsed) {
      page.parsed = true;
      if (!failed) ask_for_objects(user, now + law(WebLaw::parsing_s).draw_time(page.rng));
    } else if (!page.failed && page.waiting > 0) {
      --page.waiting;
      ask(user, now, law(WebLaw::object_bytes).draw_bytes(page.rng));
    }
    if (page.under_way == 0) finish(user, now);
    refresh();
  }

  const std::vector<PageLoad>* pages() const override { return &pages_; }

  static void check(const ArrivalsConfig& arrivals, const std::string& at, size_t) {
    check_laws(arrivals, at, static_cast<size_t>(WebLaw::count));
    if (arrivals.users < 1 || arrivals.users > 1'000'000) reject(at + ".users", arrivals.users, "in [1, 1000000]");
    for (const WebLaw times : {WebLaw::reading_s, WebLaw::parsing_s}) {
      if (const double mean = Law(arrivals.laws[static_cast<size_t>(times)]).mean(); !(mean <= seconds(kLongest))) {
        reject(at + ".laws", mean, "times whose mean is 1e7 seconds at most");
      }
    }
  }

  struct Page {                            // of a user
    Rng rng;
    Time start = 0;
    uint32_t objects = 0, waiting = 0, under_way = 0;  // all of them; of those, not asked for yet; asked for, not there
    int64_t bytes = 0;
    bool parsed = false, failed = false;   // parsed: the main object is there, or all in one
  };

 private:
  struct Request {
    Time time;
    uint64_t number;
    uint32_t user;
    int64_t bytes;
    bool operator>(const Request& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  const Law& law(WebLaw which) const { return laws_[static_cast<size_t>(which)]; }
  uint32_t server(uint32_t user) const { return user % senders_; }
  void refresh() { next_ = requests_.empty() ? kNever : requests_.top().time; }

  void begin(uint32_t user, Time at) {
    if (is_over(at)) return;
    Page& page = users_[user];
    page.start = at;
    page.bytes = 0;
    page.under_way = 0;
    page.failed = false;
    page.waiting = static_cast<uint32_t>(std::min(kMostObjects, law(WebLaw::objects).draw(page.rng)) + 0.5);
    page.objects = 1 + page.waiting;
    int64_t bytes = law(WebLaw::main_bytes).draw_bytes(page.rng);
    page.parsed = most_ == 0;
    if (page.parsed) {
      for (; page.waiting > 0; --page.waiting) bytes += law(WebLaw::object_bytes).draw_bytes(page.rng);
    }
    ask(user, at, std::min(bytes, kLargest));
  }
  void ask_for_objects(uint32_t user, Time at) {
    Page& page = users_[user];
    const uint32_t first = std::min(page.waiting, most_);
    page.waiting -= first;
    for (uint32_t i = 0; i < first; ++i) ask(user, at, law(WebLaw::object_bytes).draw_bytes(page.rng));
  }
  void ask(uint32_t user, Time at, int64_t bytes) {
    Page& page = users_[user];
    ++page.under_way;
    page.bytes += bytes;
    requests_.push({at + delays_[server(user)], asked_++, user, bytes});
  }
  void finish(uint32_t user, Time now) {
    const Page& page = users_[user];
    if (!page.failed) pages_.push_back({page.start, now - page.start, user, server(user), page.objects, page.bytes});
    begin(user, now + law(WebLaw::reading_s).draw_time(users_[user].rng));
  }

  static constexpr double kMostObjects = 10'000;

  std::vector<Law> laws_;
  const uint32_t most_;                    // connections of a page at once; 0: one for all of it
  const std::vector<Time> delays_;
  std::vector<Page> users_;
  std::priority_queue<Request, std::vector<Request>, std::greater<>> requests_;
  uint64_t asked_ = 0;
  std::vector<PageLoad> pages_;
};

template <class Kind>
ArrivalsRecord record(std::string_view name) {
  return {name, Kind::check, requires { typename Kind::Page; }, Kind::highest_priority,
          [](const ArrivalsConfig& config, const TrafficConfig& traffic, uint64_t seed,
             const std::vector<Time>& delays) -> std::unique_ptr<Arrivals> {
            if constexpr (requires { typename Kind::Page; }) {
              return std::make_unique<Kind>(config, traffic, seed, delays);
            } else {
              return std::make_unique<Kind>(config, traffic, seed);
            }
          }};
}

const Entry<ArrivalsRecord> poisson{record<Poisson>("poisson")}, incast{record<Incast>("incast")},
    list{record<List>("list")}, renewal{record<Renewal>("renewal")}, web{record<Web>("web")};

}  // namespace

}  // namespace netbuf
