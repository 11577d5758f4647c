// What connections carry: the sending end, and the receiving one.

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "live_sockets.h"
#include "netbuf/kernel/tcp_info.h"
#include "netbuf/live_flows.h"
#include "netbuf/socket_buffer.h"

namespace netbuf {

namespace {

constexpr int kWritesInTurn = 32;             // of one connection before others have theirs
constexpr int64_t kRead = 1 << 20;
constexpr Time kWindowLook = 500 * kMicrosecond;
std::array<char, kWriteBytes> zeros{};

}  // namespace

// ---- the sending end

void LiveFlows::sender_event(uint32_t index, uint32_t events, Time now) {
  Connection& connection = *places_[index].connection;
  if (events & EPOLLERR) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connection.sender.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return fail(index, error, "the sender's connection");
  }
  if (!connection.connected && (events & EPOLLOUT)) {
    connection.connected = true;
    connection.flow == kNone ? ++connected_ : flow_stats_[connection.flow].connected = true;
  }
  if (events & EPOLLOUT) write(index, now);
  if (!places_[index].connection) return;   // writing has failed
  if ((events & (EPOLLRDHUP | EPOLLHUP)) && connection.finished_writing) {
    connection.sender.reset();
    if (connection.flow != kNone) place_of_flow_[connection.flow] = kNone;
    close_if_done(index);
  }
}

void LiveFlows::write(uint32_t index, Time now) {
  Connection& connection = *places_[index].connection;
  if (!connection.sender || connection.finished_writing) return;
  const int fd = connection.sender.get();
  int64_t upto = connection.size_bytes > 0 ? connection.size_bytes : kEndless;
  bool closed = connection.size_bytes > 0;
  if (connection.fed) {
    upto = connection.fed->read;
    closed = connection.fed->over;
  } else if (connection.source) {
    if (!connection.connected) return;       // it begins to write when the connection stands
    const Source::Offer offer = connection.source->offer(now, connection.written);
    upto = offer.written;
    closed = offer.closed;
    if (offer.next != connection.offer_at) {
      connection.offer_at = offer.next;
      alarm(offer.next, index, Task::offer);
    }
  }
  const Time stop = connection.config->stop_ns;
  if (connection.flow != kNone && stop > 0 && now >= stop) upto = connection.written, closed = true;
  int64_t room = kEndless;
  if (connection.socket->limited && connection.flow != kNone && connection.connected) {
    int outstanding = 0;
    ioctl(fd, SIOCOUTQ, &outstanding);
    const double window = std::min(windows_[connection.flow], 1e15);
    room = std::max<int64_t>(0, static_cast<int64_t>(window) - outstanding) / mss_ * mss_;
    if (outstanding == 0) room = std::max<int64_t>(room, mss_);
    if (connection.look_at <= now) alarm(connection.look_at = now + kWindowLook, index, Task::window);
  }
  for (int writes = 0; connection.written < upto && room > 0; ++writes) {
    if (writes == kWritesInTurn) {
      ready_.push_back(index);
      break;
    }
    // Whole segments: what is appended to a rest that Nagle's algorithm holds back is not asked for room in SO_SNDBUF.
    const int64_t length = std::min({kWriteBytes / mss_ * mss_, upto - connection.written, room});
    const ssize_t sent = send(fd, zeros.data(), static_cast<size_t>(length), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) return fail(index, errno, "writing");
      break;
    }
    connection.written += sent;
    room -= sent;
    // The kernel counts a connection as limited by its send buffer where something leaves after somebody found no room:
    // of what a device takes as it is written nothing is left to leave once write() finds none.
    if (connection.socket->polls) {
      pollfd asks{fd, POLLOUT, 0};
      poll(&asks, 1, 0);
    }
  }
  if (connection.flow != kNone) flow_stats_[connection.flow].written_bytes = connection.written;
  if (closed && connection.written >= upto && connection.connected) {
    connection.finished_writing = true;
    shutdown(fd, SHUT_WR);
  }
  if (const std::shared_ptr<Joint> joint = connection.fed; joint && joint->written < connection.written) {
    joint->written = connection.written;
    pass_on(*joint, now);
  }
}

void LiveFlows::cap_buffers(uint32_t node, int64_t bytes) {
  for (std::vector<LiveSocket>* sockets : {&flow_sockets_, &sender_sockets_}) {
    for (LiveSocket& socket : *sockets) {
      if (socket.asked_send_bytes > 0 && routes_[socket.route].sender_node == node) {
        socket.send_buffer_bytes = std::min(socket.asked_send_bytes, bytes);
      }
    }
  }
}

size_t LiveFlows::clamp_windows(uint32_t node, int64_t bytes) {
  clamps_.at(node) = bytes;
  size_t count = 0;
  for (const Place& place : places_) {
    if (!place.connection || !place.connection->receiver ||
        routes_[place.connection->socket->route].receiver_node != node) {
      continue;
    }
    clamp(*place.connection);
    ++count;
  }
  return count;
}

size_t LiveFlows::set_congestion_control(uint32_t node, const std::string& control) {
  for (std::vector<LiveSocket>* sockets : {&flow_sockets_, &sender_sockets_}) {
    for (LiveSocket& socket : *sockets) {
      if (routes_[socket.route].sender_node == node) socket.cc = control;
    }
  }
  size_t count = 0;
  for (const Place& place : places_) {
    if (!place.connection || !place.connection->sender || routes_[place.connection->socket->route].sender_node != node) {
      continue;
    }
    if (setsockopt(place.connection->sender.get(), IPPROTO_TCP, TCP_CONGESTION, control.data(),
                   static_cast<socklen_t>(control.size())) != 0) {
      fail_system("congestion control " + control);
    }
    ++count;
  }
  return count;
}

// Again after each read, in which autotuning may have set it to what the buffer has grown to.
void LiveFlows::clamp(const Connection& connection) const {
  const uint32_t route = connection.socket->route;
  const int64_t bytes = clamps_[routes_[route].receiver_node];
  if (bytes <= 0 || !connection.config->receiver.empty()) return;
  const int size = static_cast<int>(std::min<int64_t>(bytes, INT32_MAX));
  setsockopt(connection.receiver.get(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &size, sizeof size);
}

void LiveFlows::set_window(uint32_t flow, double bytes) {
  windows_.at(flow) = bytes;
  if (place_of_flow_[flow] == kNone) return;
  ready_.push_back(place_of_flow_[flow]);
  thread_.wake();
}

void LiveFlows::look() {
  for (uint32_t flow = 0; flow < place_of_flow_.size(); ++flow) look(flow);
}

void LiveFlows::look(uint32_t flow) {
  static const size_t cwnd = tcp_info_index("cwnd_packets"), mss = tcp_info_index("mss_bytes");
  const Time at = now(), since = at - looked_[flow];
  looked_[flow] = at;
  LiveFlowStats& stats = flow_stats_[flow];
  if (!stats.info.empty() && stats.connected) {
    stats.cwnd_integral_byte_s += stats.info[cwnd] * stats.info[mss] * seconds(since);
  }
  const int fd = sender_fd(flow);
  if (fd < 0) return;
  std::vector<double> info(tcp_info_fields().size());
  if (read_tcp_info(fd, info.data())) stats.info = std::move(info);
}

// ---- the receiving end

void LiveFlows::read(uint32_t index, Time now) {
  Connection& connection = *places_[index].connection;
  if (!connection.receiver) return;
  const int fd = connection.receiver.get();
  const std::shared_ptr<Joint> joint = connection.feeds;
  int64_t most = kEndless;
  if (joint) most = joint->written + joint->buffer - joint->read;
  if (connection.sink) {
    int waiting = 0;
    ioctl(fd, FIONREAD, &waiting);
    most = connection.sink->read(now, connection.received + waiting) - connection.received;
  }
  bool over = false;
  while (most > 0) {
    const ssize_t got = recv(fd, nullptr, static_cast<size_t>(std::min(kRead, most)), MSG_DONTWAIT | MSG_TRUNC);
    if (got > 0) {
      note_received(connection, got, now);
      clamp(connection);
      if (joint) joint->read += got;
      most -= got;
      continue;
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR) return fail(index, errno, "reading");
    over = got == 0;
    break;
  }
  if (connection.sink && !over) {
    const Time next = connection.sink->next(now);
    if (next < kNever) {
      if (next != connection.read_at) alarm(connection.read_at = next, index, Task::read);
      return;
    }
    char byte;
    if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) {
      over = true;
    } else {
      epoll_event event{};
      event.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;
      event.data.u64 = key_of(index, places_[index].generation & 0x1fffffff, kReceiver);
      epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
    }
  }
  if (over) {
    set_option(fd, SOL_SOCKET, SO_LINGER, linger{0, 0}, "SO_LINGER");  // everything has been read: a FIN, not a reset
    shutdown(fd, SHUT_WR);                     // now: duplicates of it may be about
    connection.receiver.reset();
    if (joint) joint->over = true;
    close_if_done(index);
  }
  if (joint) pass_on(*joint, now);
}

void LiveFlows::note_received(Connection& connection, int64_t bytes, Time now) {
  connection.received += bytes;
  delivered_ += bytes;
  const bool complete = connection.size_bytes > 0 && connection.received == connection.size_bytes;
  if (complete) {
    const Route& route = routes_[connection.socket->route];
    ++completed_at_[route.sender_node];
    if (route.receiver_node != route.sender_node) ++completed_at_[route.receiver_node];
  }
  if (connection.flow != kNone) {
    LiveFlowStats& stats = flow_stats_[connection.flow];
    stats.delivered_bytes = connection.received;
    if (complete) stats.completed = now;
    return;
  }
  if (connection.feeds) return;              // what comes of it is told of the leg from the relay
  traffic_delivered_ += bytes;
  OpenedFlow& opened = opened_[connection.opened];
  opened.received_bytes = connection.received;
  if (!complete) return;
  const double ideal = ideal_->seconds_of(opened.sender, opened.size_bytes, opened.start);
  completions_.push_back({connection.opened, now - opened.start, ideal});
  const Emulator::Guard guard = emulator_.hold();
  for (const uint32_t sw : crossed_[opened.sender]) {
    emulator_.switches()[sw]->note_completion(now, opened.priority, seconds(now - opened.start), ideal);
  }
}

}  // namespace netbuf
