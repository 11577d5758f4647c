// The one-flow scenario of benchmarks/simulator.py in two simulators that do as little as they can, to see what the package's
// completeness costs: CUBIC's window with NewReno's recovery; no SACK, RTO, HyStart, handshake, time stamps or telemetry.
//
//   minimal arithmetic|events RATE_MBPS RTT_MS BUFFER_PACKETS DURATION_S
//
// `arithmetic` computes when a packet leaves the queue as it enters it, and keeps a ring of packets and one of ACKs on their
// ways. `events` is built as htsim is: packets are objects that visit a route of virtual sinks, and every end of a service and
// of a propagation is an entry of a sorted list. Prints data packets sent, seconds of processor time, and Mbit/s of goodput.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace {

using Time = int64_t;                                    // nanoseconds
constexpr int kWire = 1500, kPayload = 1448;

struct Setting {
  Time service, delay;
  int64_t buffer;
};

// What is sent into the network.
struct Network {
  virtual ~Network() = default;
  virtual void send_data(int64_t number) = 0;
  virtual void send_ack(int64_t next) = 0;
};

struct Sender {
  double window = 10, threshold, most = 0, epoch_k = 0;
  Time epoch = -1;
  int64_t next = 0, acked = 0, recover = -1, duplicates = 0, sent = 0;

  // Slow start ends with a queue that is half full, since nothing here repairs the loss of half a window.
  explicit Sender(const Setting& setting)
      : threshold(static_cast<double>(2 * setting.delay / setting.service + setting.buffer / 2)) {}

  template <class Net>
  void fill(Net& net) {
    const double room = window + static_cast<double>(recover >= 0 ? duplicates : 0);
    while (static_cast<double>(next - acked) < room) ++sent, net.send_data(next++);
  }

  template <class Net>
  void receive(int64_t ack, Time now, Net& net) {
    if (ack > acked) {
      const int64_t fresh = ack - acked;
      acked = ack;
      if (recover >= 0 && ack <= recover) {              // a partial ACK: the next hole
        duplicates = std::max<int64_t>(0, duplicates - fresh + 1);
        ++sent, net.send_data(ack);
      } else {
        recover = -1, duplicates = 0;
        grow(static_cast<double>(fresh), now);
      }
    } else if (++duplicates == 3 && recover < 0) {
      most = window, window = threshold = std::max(2.0, window * 0.7), epoch = -1, recover = next - 1;
      ++sent, net.send_data(acked);
    }
    fill(net);
  }

  void grow(double fresh, Time now) {
    if (window < threshold) {
      window += fresh;
      return;
    }
    if (epoch < 0) epoch = now, epoch_k = std::cbrt(std::max(0.0, most - window) / 0.4);
    const double t = static_cast<double>(now - epoch) * 1e-9 - epoch_k;
    const double target = most + 0.4 * t * t * t;
    window += fresh * (target > window ? (target - window) / window : 0.01 / window);
  }
};

struct Receiver {
  int64_t next = 0, held = 0;
  std::vector<bool> there = std::vector<bool>(1 << 16);  // of packets beyond a hole, by number modulo its size

  template <class Net>
  void receive(int64_t number, Net& net) {
    const auto at = [&](int64_t n) { return there[static_cast<size_t>(n) & 0xffff]; };
    if (number == next) {
      bool filled = false;
      for (++next; at(next); ++next, filled = true) at(next) = false;
      if (++held == 2 || filled) held = 0, net.send_ack(next);
    } else {
      if (number > next) at(number) = true;
      held = 0, net.send_ack(next);
    }
  }
};

struct Result {
  int64_t sent, received;
};

struct Way {
  Time at;
  int64_t number;
};

class Arithmetic {
 public:
  explicit Arithmetic(const Setting& setting) : s_(setting), sender_(setting) {}
  void send_data(int64_t number) {
    const Time free = std::max(free_, now_);
    if (free - now_ > (s_.buffer + 1) * s_.service) return;
    free_ = free + s_.service;
    data_.push(free_ + s_.delay, number);
  }
  void send_ack(int64_t next) { acks_.push(now_ + s_.delay, next); }
  Result run(Time end) {
    sender_.fill(*this);
    while (true) {
      const bool data = data_.front().at <= acks_.front().at;
      const Way way = (data ? data_ : acks_).front();
      if (way.at > end) return {sender_.sent, receiver_.next};
      now_ = way.at;
      (data ? data_ : acks_).pop();
      if (data) {
        receiver_.receive(way.number, *this);
      } else {
        sender_.receive(way.number, now_, *this);
      }
    }
  }

 private:
  // First in, first out; the front of an empty one is never.
  struct Ring {
    std::vector<Way> ways = std::vector<Way>(1 << 14, Way{INT64_MAX, 0});
    size_t first = 0, last = 0;
    const Way& front() const { return ways[first & 0x3fff]; }
    void push(Time at, int64_t number) { ways[last++ & 0x3fff] = {at, number}; }
    void pop() { ways[first++ & 0x3fff].at = INT64_MAX; }
  };
  Setting s_;
  Time now_ = 0, free_ = 0;
  Ring data_, acks_;
  Sender sender_;
  Receiver receiver_;
};

struct Packet;
struct Sink {
  virtual ~Sink() = default;
  virtual void receive(Packet& packet) = 0;
};
struct Packet {
  int64_t number;
  const std::vector<Sink*>* route;
  size_t hop;
  void go_on() { (*route)[hop++]->receive(*this); }
};
struct Source {
  virtual ~Source() = default;
  virtual void act() = 0;
};
struct EventList {
  std::multimap<Time, Source*> pending;
  Time now = 0;
  void plan(Time at, Source& source) { pending.emplace(at, &source); }
};

class Queue final : public Sink, Source {
 public:
  Queue(EventList& events, const Setting& setting, std::vector<Packet*>& free) : events_(events), s_(setting), free_(free) {}
  void receive(Packet& packet) override {
    if (static_cast<int64_t>(held_.size()) > s_.buffer) return free_.push_back(&packet);
    held_.push_back(&packet);
    if (held_.size() == 1) events_.plan(events_.now + s_.service, *this);
  }
  void act() override {
    Packet& packet = *held_.front();
    held_.pop_front();
    if (!held_.empty()) events_.plan(events_.now + s_.service, *this);
    packet.go_on();
  }

 private:
  EventList& events_;
  const Setting& s_;
  std::vector<Packet*>& free_;
  std::deque<Packet*> held_;
};

class Pipe final : public Sink, Source {
 public:
  Pipe(EventList& events, Time delay) : events_(events), delay_(delay) {}
  void receive(Packet& packet) override {
    held_.push_back({events_.now + delay_, &packet});
    if (held_.size() == 1) events_.plan(held_.front().first, *this);
  }
  void act() override {
    Packet& packet = *held_.front().second;
    held_.pop_front();
    if (!held_.empty()) events_.plan(held_.front().first, *this);
    packet.go_on();
  }

 private:
  EventList& events_;
  Time delay_;
  std::deque<std::pair<Time, Packet*>> held_;
};

class Events final : Network {
 public:
  explicit Events(const Setting& setting)
      : s_(setting),
        queue_(events_, s_, free_),
        there_(events_, s_.delay),
        back_(events_, s_.delay),
        data_(*this),
        acks_(*this),
        sender_(setting) {}
  void send_data(int64_t number) override { make(number, way_).go_on(); }
  void send_ack(int64_t next) override { make(next, way_back_).go_on(); }
  Result run(Time end) {
    sender_.fill<Network>(*this);
    while (!events_.pending.empty() && events_.pending.begin()->first <= end) {
      const auto first = events_.pending.begin();
      events_.now = first->first;
      Source& source = *first->second;
      events_.pending.erase(first);
      source.act();
    }
    return {sender_.sent, receiver_.next};
  }

 private:
  struct DataSink final : Sink {
    explicit DataSink(Events& all) : all(all) {}
    void receive(Packet& packet) override {
      all.free_.push_back(&packet);
      all.receiver_.receive<Network>(packet.number, all);
    }
    Events& all;
  };
  struct AckSink final : Sink {
    explicit AckSink(Events& all) : all(all) {}
    void receive(Packet& packet) override {
      all.free_.push_back(&packet);
      all.sender_.receive<Network>(packet.number, all.events_.now, all);
    }
    Events& all;
  };
  Packet& make(int64_t number, const std::vector<Sink*>& route) {
    if (free_.empty()) free_.push_back(&made_.emplace_back());
    Packet& packet = *free_.back();
    free_.pop_back();
    return packet = {number, &route, 0}, packet;
  }
  Setting s_;
  EventList events_;
  std::deque<Packet> made_;
  std::vector<Packet*> free_;
  Queue queue_;
  Pipe there_, back_;
  DataSink data_;
  AckSink acks_;
  std::vector<Sink*> way_{&queue_, &there_, &data_}, way_back_{&back_, &acks_};
  Sender sender_;
  Receiver receiver_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const double rate = std::atof(argv[2]) * 1e6, duration_s = std::atof(argv[5]);
  const Setting setting{std::llround(kWire * 8e9 / rate), std::llround(std::atof(argv[3]) * 5e5), std::atoll(argv[4])};
  const auto end = static_cast<Time>(duration_s * 1e9);
  const std::clock_t began = std::clock();
  const Result result = std::string(argv[1]) == "events" ? Events(setting).run(end) : Arithmetic(setting).run(end);
  const double spent = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  std::printf("{\"data_packets\": %lld, \"cpu_s\": %.6f, \"goodput_mbps\": %.3f}\n", static_cast<long long>(result.sent), spent,
              static_cast<double>(result.received) * kPayload * 8e-6 / duration_s);
}
