#include "netbuf/live_flows.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "live_sockets.h"
#include "netbuf/reject.h"

namespace netbuf {

namespace {

constexpr uint16_t kPort = 5001;
constexpr Time kLook = 20 * kMillisecond, kLookAtOne = 200 * kMicrosecond;  // TCP_INFO of all flows, or so long a flow
constexpr size_t kRoomForAccepts = 1024;

sockaddr_in address(uint32_t node, uint32_t route, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(10u << 24 | node << 16 | route);
  return at;
}

// Exactly as many bytes as were asked for, whatever net.core says, where the kernel lets us.
void set_buffer(int fd, int forced, int option, int64_t bytes, const char* name) {
  const int half = static_cast<int>(std::min<int64_t>(bytes, INT32_MAX / 2));
  if (setsockopt(fd, SOL_SOCKET, forced, &half, sizeof half) == 0) return;
  set_option(fd, SOL_SOCKET, option, half, std::string(name) + " = " + std::to_string(half));
  int given = 0;
  socklen_t size = sizeof given;
  getsockopt(fd, SOL_SOCKET, option, &given, &size);
  if (given / 2 < half) {
    throw std::runtime_error(std::string(name) + " = " + std::to_string(half) + " is more than net.core." +
                             (option == SO_SNDBUF ? "w" : "r") + "mem_max, which gives " + std::to_string(given / 2) +
                             " and is the whole machine's");
  }
}

}  // namespace

LiveFlows::LiveFlows(const Setting& setting, Emulator& emulator)
    : emulator_(emulator),
      world_(setting.world),
      routes_(emulator.routes()),
      namespaces_(setting.namespaces),
      flow_sockets_(setting.flows),
      sender_sockets_(setting.senders),
      rng_(setting.seed ^ 0x6c697665666c6f77) {
  validate(world_);
  mss_ = stack_profile(world_).mss;
  size_t legs = 0;
  for (const TrafficConfig& traffic : world_.traffic) {
    for (const FlowConfig& sender : traffic.senders) {
      first_leg_.push_back(static_cast<uint32_t>(legs));
      legs += legs_of(sender).size();
    }
  }
  if (flow_sockets_.size() != world_.flows.size()) {
    reject("flows", flow_sockets_.size(), std::to_string(world_.flows.size()));
  }
  if (sender_sockets_.size() != legs) reject("senders", sender_sockets_.size(), std::to_string(legs));
  std::vector<bool> used(routes_.size());
  for (const auto* sockets : {&flow_sockets_, &sender_sockets_}) {
    for (const LiveSocket& socket : *sockets) {
      if (socket.route >= routes_.size() || used[socket.route]) {
        reject("route", socket.route, "the number of a route of its own");
      }
      used[socket.route] = true;
    }
  }
  for (const Route& route : routes_) {
    if (std::max(route.sender_node, route.receiver_node) >= namespaces_.size()) {
      reject("namespaces", namespaces_.size(), "one for each node");
    }
  }
  for (const FlowConfig& flow : world_.flows) {
    const Application& app = application_of(flow);
    if (app.answers) reject("app", flow.app, "bulk, sized or on_off");
  }
  links_.reserve(world_.links.size());
  for (const LinkConfig& link : world_.links) links_.emplace_back(link, &rng_);
  for (const TrafficConfig& traffic : world_.traffic) {
    for (const ArrivalsConfig& arrivals : traffic.arrivals) {
      if (Catalogue<ArrivalsRecord>::find(arrivals.kind)->listens) {
        reject("kind", arrivals.kind, "arrivals that do not wait for flows to end");
      }
    }
  }
  if (legs > 0) {
    ideal_.emplace(world_.traffic.front().senders, links_);
    crossed_ = crossed_switches(world_.traffic.front().senders, world_.switches);
    traffic_.emplace(world_.traffic.front(), setting.seed);
  }
  feeds_.resize(world_.flows.size());
  fed_.resize(world_.flows.size());
  for (uint32_t i = 0; i < world_.flows.size(); ++i) {
    const FlowConfig& flow = world_.flows[i];
    if (flow.relay_from < 0) continue;
    fed_[i] = feeds_[static_cast<uint32_t>(flow.relay_from)] =
        std::make_shared<Joint>(Joint{.buffer = flow.relay_buffer_bytes});
  }
  clamps_.resize(namespaces_.size());
  completed_at_.resize(namespaces_.size());
  place_of_flow_.assign(world_.flows.size(), kNone);
  windows_.assign(world_.flows.size(), std::numeric_limits<double>::infinity());
  for (uint32_t i = 0; i < flow_sockets_.size(); ++i) {
    if (flow_sockets_[i].window_bytes > 0) windows_[i] = static_cast<double>(flow_sockets_[i].window_bytes);
  }
  flow_stats_.resize(world_.flows.size());
  looked_.resize(world_.flows.size());
  switches_.resize(world_.switches.size());
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  timer_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!epoll_ || !timer_) fail_system("epoll");
  watch(timer_.get(), key_of(0, 0, kTimer), EPOLLIN);
  watch(thread_.waker(), key_of(0, 0, kWaker), EPOLLIN);
}

LiveFlows::~LiveFlows() { stop(); }

// ---- life

// In a thread of its own: a thread's network namespace is where its sockets are made.
void LiveFlows::listen() {
  std::exception_ptr error;
  const NoSignals quiet;
  std::thread([&] {
    try {
      for (const auto* sockets : {&flow_sockets_, &sender_sockets_}) {
        for (const LiveSocket& one : *sockets) {
          const Route& route = routes_[one.route];
          enter(route.receiver_node);
          Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
          if (!fd) fail_system("a socket");
          prepare(fd.get(), one, true);
          set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
          const sockaddr_in at = address(route.receiver_node, one.route, kPort);
          if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
            fail_system("binding a listening socket");
          }
          if (::listen(fd.get(), static_cast<int>(kRoomForAccepts)) != 0) fail_system("listening");
          watch(fd.get(), key_of(static_cast<uint32_t>(listeners_.size()), 0, kListener), EPOLLIN);
          listeners_.push_back({std::move(fd), one.route});
        }
      }
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  node_ = kNone;
  if (error) std::rethrow_exception(error);
}

void LiveFlows::start() {
  if (thread_.running()) throw std::logic_error("the flows were started before");
  for (uint32_t i = 0; i < world_.flows.size(); ++i) alarms_.push({world_.flows[i].start_ns, i, 0, Task::open});
  if (!world_.flows.empty()) alarms_.push({0, 0, 0, Task::look});
  thread_.start("nb-flows", emulator_.asks_realtime() ? kFlowsPriority : 0, [this] { run(); });
}

void LiveFlows::stop() {
  thread_.stop();
  const Guard guard = hold();
  places_.clear();
  free_.clear();
  listeners_.clear();
  std::fill(place_of_flow_.begin(), place_of_flow_.end(), kNone);
}

void LiveFlows::enter(uint32_t node) {
  if (node == node_) return;
  if (setns(namespaces_[node], CLONE_NEWNET) != 0) {
    fail_system("entering the network namespace of node " + std::to_string(node));
  }
  node_ = node;
}

void LiveFlows::run() {
  std::array<epoll_event, 256> events;
  while (!thread_.stopping()) {
    bool more;
    {
      const Guard guard = hold();
      run_alarms(now());
      std::vector<uint32_t> ready;
      ready.swap(ready_);
      for (const uint32_t place : ready) {
        if (places_[place].connection) write(place, now());
      }
      set_timer();
      more = !ready_.empty();
    }
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), more ? 0 : -1);
    if (count < 0 && errno != EINTR) fail_system("epoll_wait");
    const Guard guard = hold();
    for (int i = 0; i < count; ++i) {
      handle(events[static_cast<size_t>(i)].data.u64, events[static_cast<size_t>(i)].events);
    }
  }
}

void LiveFlows::handle(uint64_t key, uint32_t events) {
  const auto side = static_cast<Side>(key & 7);
  const auto index = static_cast<uint32_t>(key >> 3);
  switch (side) {
    case kTimer: {
      uint64_t count;
      [[maybe_unused]] const ssize_t read = ::read(timer_.get(), &count, sizeof count);
      return;
    }
    case kWaker: return thread_.woken();
    case kListener: return accept(index);
    default: break;
  }
  Place& place = places_[index];
  if (!place.connection || (place.generation & 0x1fffffff) != key >> 35) return;
  side == kSender ? sender_event(index, events, now()) : read(index, now());
}

void LiveFlows::set_timer() {
  Time next = alarms_.empty() ? kNever : alarms_.top().time;
  if (traffic_) next = std::min(next, traffic_->next());
  itimerspec at{};
  if (next < kNever) {
    const Time absolute = std::max<Time>(1, emulator_.epoch() + next);
    at.it_value = {absolute / kSecond, absolute % kSecond};
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void LiveFlows::run_alarms(Time now) {
  while (traffic_ && traffic_->next() <= now) open_arrival();
  while (!alarms_.empty() && alarms_.top().time <= now) {
    const Alarm due = alarms_.top();
    alarms_.pop();
    if (due.task == Task::open) {
      open_flow(due.place, now);
      continue;
    }
    if (due.task == Task::open_up || due.task == Task::open_down) {
      open_leg(due.place, due.task);
      continue;
    }
    if (due.task == Task::look) {
      look();
      alarms_.push(
          {now + std::max<Time>(kLook, kLookAtOne * static_cast<Time>(world_.flows.size())), 0, 0, Task::look});
      continue;
    }
    const Place& place = places_[due.place];
    if (!place.connection || place.generation != due.generation) continue;
    due.task == Task::read ? read(due.place, now) : write(due.place, now);
  }
}

void LiveFlows::alarm(Time time, uint32_t place, Task task) {
  if (time < kNever) alarms_.push({time, place, places_[place].generation, task});
}

// ---- opening

void LiveFlows::prepare(int fd, const LiveSocket& socket, bool receives) const {
  // Whatever ends this process, its sockets end at once, and so do the connections.
  set_option(fd, SOL_SOCKET, SO_LINGER, linger{1, 0}, "SO_LINGER");
  if (!socket.cc.empty() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, socket.cc.data(),
                                       static_cast<socklen_t>(socket.cc.size())) != 0) {
    fail_system("congestion control " + socket.cc);
  }
  if (receives) {
    if (socket.receive_buffer_bytes > 0) {
      set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, socket.receive_buffer_bytes, "SO_RCVBUF");
    }
    if (socket.window_clamp_bytes > 0) {
      set_option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP,
                 static_cast<int>(std::min<int64_t>(socket.window_clamp_bytes, INT32_MAX)), "TCP_WINDOW_CLAMP");
    }
    return;
  }
  if (socket.send_buffer_bytes > 0) set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, socket.send_buffer_bytes, "SO_SNDBUF");
  if (socket.notsent_lowat_bytes > 0) {
    set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT,
               static_cast<int>(std::min<int64_t>(socket.notsent_lowat_bytes, INT32_MAX)), "TCP_NOTSENT_LOWAT");
  }
  if (socket.pacing_bytes_per_s > 0) {
    set_option(fd, SOL_SOCKET, SO_MAX_PACING_RATE, socket.pacing_bytes_per_s, "SO_MAX_PACING_RATE");
  }
}

void LiveFlows::watch(int fd, uint64_t key, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail_system("epoll_ctl");
}

void LiveFlows::open_flow(uint32_t flow, Time now) {
  const FlowConfig& config = world_.flows[flow];
  flow_stats_[flow].start = config.start_ns;
  const uint32_t place = open(config, flow_sockets_[flow], config.priority);
  if (place == kNone) {
    flow_stats_[flow].failure = trouble_;
    return;
  }
  Connection& connection = *places_[place].connection;
  place_of_flow_[flow] = place;
  connection.flow = flow;
  const Application& app = application_of(config);
  if (app.sized) connection.size_bytes = config.size_bytes;
  connection.source = app.source(config, mss_, &rng_);
  connection.sink = reader_of(config, mss_);
  join(place, feeds_[flow], fed_[flow]);
  if (config.stop_ns > 0) alarm(config.stop_ns, place, Task::offer);
  write(place, now);
}

uint32_t LiveFlows::open(const FlowConfig& config, const LiveSocket& socket, uint32_t priority) {
  const Route& route = routes_[socket.route];
  enter(route.sender_node);
  Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return refused("a socket");
  prepare(fd.get(), socket, false);
  const int tos = static_cast<int>(priority << 2);
  set_option(fd.get(), IPPROTO_IP, IP_TOS, tos, "IP_TOS");
  set_option(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, "IP_BIND_ADDRESS_NO_PORT");
  sockaddr_in own = address(route.sender_node, socket.route, 0);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) return refused("binding a socket");
  const sockaddr_in far = address(route.receiver_node, socket.route, kPort);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&far), sizeof far) != 0 && errno != EINPROGRESS) {
    return refused("connecting");
  }
  socklen_t size = sizeof own;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(places_.size()));
    places_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Place& place = places_[index];
  ++place.generation;
  place.connection.emplace();
  Connection& connection = *place.connection;
  connection.socket = &socket;
  connection.config = &config;
  connection.key = socket.route << 16 | ntohs(own.sin_port);
  awaited_[connection.key] = index;
  watch(fd.get(), key_of(index, place.generation & 0x1fffffff, kSender), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  connection.sender = std::move(fd);
  return index;
}

uint32_t LiveFlows::refused(const char* what) {
  trouble_ = std::string(what) + ": " + std::strerror(errno);
  return kNone;
}

void LiveFlows::accept(uint32_t listener) {
  for (;;) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    Descriptor fd(accept4(listeners_[listener].fd.get(), reinterpret_cast<sockaddr*>(&from), &size,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) fail_system("accepting a connection");
      return;
    }
    const auto found = awaited_.find(listeners_[listener].route << 16 | ntohs(from.sin_port));
    if (found == awaited_.end()) continue;
    const uint32_t index = found->second;
    awaited_.erase(found);
    Connection& connection = *places_[index].connection;
    int tos = 0;
    size = sizeof tos;
    if (getsockopt(connection.sender.get(), IPPROTO_IP, IP_TOS, &tos, &size) == 0) {
      set_option(fd.get(), IPPROTO_IP, IP_TOS, tos, "IP_TOS");
    }
    // What is read at a rate is asked for by the clock while there is something to read.
    const uint32_t mode = connection.sink ? EPOLLONESHOT : EPOLLET;
    watch(fd.get(), key_of(index, places_[index].generation & 0x1fffffff, kReceiver), EPOLLIN | EPOLLRDHUP | mode);
    connection.receiver = std::move(fd);
    {
      const Emulator::Guard guard = emulator_.hold();
      if (ReceiverMeter* meter = emulator_.meter(listeners_[listener].route)) meter->clamp(connection.receiver.get());
    }
    clamp(connection);
    read(index, now());
  }
}

// ---- switches, by what connections tell of them too

SwitchSeen LiveFlows::seen() {
  return {emulator_.advance(), emulator_.counters().data_received, opened_.size(), delivered_};
}

void LiveFlows::begin_switch(uint32_t sw) {
  const Emulator::Guard guard = emulator_.hold();
  switches_.at(sw) = seen();
  emulator_.switches()[sw]->begin_interval(switches_[sw].time);
}

std::vector<double> LiveFlows::observe_switch(uint32_t sw) {
  const Emulator::Guard guard = emulator_.hold();
  const SharedBuffer& buffer = *emulator_.switches().at(sw);
  std::vector<double> row(switch_fields(buffer.queues()).size());
  write_switch(buffer, switches_[sw], seen(), row.data());
  return row;
}

bool LiveFlows::switch_changed(uint32_t sw) {
  const Emulator::Guard guard = emulator_.hold();
  return emulator_.switches().at(sw)->take_change();
}

// ---- ends

// One connection's trouble is not its world's: a static flow remembers it, of the traffic's it is counted.
void LiveFlows::fail(uint32_t index, int error, const char* what) {
  Connection& connection = *places_[index].connection;
  const std::shared_ptr<Joint> feeds = connection.feeds, fed = connection.fed;
  const bool whole = connection.size_bytes > 0 && connection.received == connection.size_bytes;
  if (connection.flow != kNone) {
    LiveFlowStats& stats = flow_stats_[connection.flow];
    stats.failed = now();
    stats.failure = std::string(what) + ": " + std::strerror(error);
    place_of_flow_[connection.flow] = kNone;
  } else if (!whole && !(feeds && feeds->broken) && !(fed && fed->broken)) {
    ++failed_;
  }
  connection.sender.reset();
  connection.receiver.reset();
  connection.finished_writing = true;
  close_if_done(index);
  if (feeds && whole) {
    feeds->over = true;                      // what it was to bring is there
    pass_on(*feeds, now());
  } else if (feeds) {
    break_relay(*feeds, error);
  }
  if (fed) break_relay(*fed, error);
}

void LiveFlows::close_if_done(uint32_t index) {
  Connection& connection = *places_[index].connection;
  if (connection.sender || connection.receiver) return;
  const auto found = awaited_.find(connection.key);
  if (found != awaited_.end() && found->second == index) awaited_.erase(found);
  part(connection);
  places_[index].connection.reset();
  free_.push_back(index);
}

int LiveFlows::sender_fd(uint32_t flow) const {
  const uint32_t place = place_of_flow_.at(flow);
  return place == kNone ? -1 : places_[place].connection->sender.get();
}

int LiveFlows::receiver_fd(uint32_t flow) const {
  const uint32_t place = place_of_flow_.at(flow);
  return place == kNone ? -1 : places_[place].connection->receiver.get();
}

}  // namespace netbuf
