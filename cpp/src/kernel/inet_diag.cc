#include "netbuf/kernel/inet_diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <system_error>

#include "netbuf/kernel/tcp_info.h"

namespace netbuf {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kTries = 3;
constexpr const char* kUnlisted = "the kernel does not list its TCP sockets";
constexpr const char* kUnreadable = "a TCP socket of the kernel's list cannot be read";

// Of the listing: struct inet_diag_msg.
constexpr const char* kSocket[] = {
    "cookie",      "inode",               "local_address",    "remote_address", "local_port",
    "remote_port", "receive_queue_bytes", "send_queue_bytes", "loopback",
};
// struct sk_meminfo, SK_MEMINFO_*: bytes with the kernel's overhead, and packets dropped.
constexpr const char* kMemory[] = {
    "receive_queued_bytes", "receive_buffer_bytes", "send_in_flight_memory_bytes", "send_buffer_bytes",
    "memory_reserve_bytes", "send_queued_bytes",    "option_memory_bytes",         "backlog_bytes",
    "drops",
};

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

[[noreturn]] void fail(int number, const char* what) { throw std::system_error(number, std::generic_category(), what); }

// An IPv4 address as a number; of IPv6 only those that stand for one.
double address(uint8_t family, const uint32_t* words) {
  if (family == AF_INET) return ntohl(words[0]);
  const bool mapped = words[0] == 0 && words[1] == 0 && words[2] == htonl(0xffff);
  return mapped ? ntohl(words[3]) : kNaN;
}

// Whether both ends are on the loopback device: 127/8, ::1, 127/8 as IPv6 writes it, or one address at both ends.
bool on_loopback(uint8_t family, const uint32_t* source, const uint32_t* other) {
  const size_t words = family == AF_INET ? 1 : 4;
  if (std::equal(source, source + words, other)) return true;
  const double number = address(family, source);
  if (!std::isnan(number)) return static_cast<uint32_t>(number) >> 24 == 127;
  return source[0] == 0 && source[1] == 0 && source[2] == 0 && source[3] == htonl(1);
}

void append(const nlmsghdr& header, std::vector<double>& rows) {
  if (header.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) fail(EBADMSG, kUnreadable);
  const auto& message = *static_cast<const inet_diag_msg*>(NLMSG_DATA(&header));
  int left = static_cast<int>(header.nlmsg_len - NLMSG_LENGTH(sizeof message));
  const auto& id = message.id;
  const size_t start = rows.size(), fields = tcp_info_fields().size();
  rows.resize(start + std::size(kSocket) + std::size(kMemory) + fields, kNaN);
  double* out = &rows[start];
  *out++ = static_cast<double>(static_cast<int64_t>(uint64_t{id.idiag_cookie[1]} << 32 | id.idiag_cookie[0]));
  *out++ = message.idiag_inode;
  *out++ = address(message.idiag_family, id.idiag_src);
  *out++ = address(message.idiag_family, id.idiag_dst);
  *out++ = ntohs(id.idiag_sport);
  *out++ = ntohs(id.idiag_dport);
  *out++ = message.idiag_rqueue;
  *out++ = message.idiag_wqueue;
  *out++ = on_loopback(message.idiag_family, id.idiag_src, id.idiag_dst);
  double* memory = out;
  double* info = out + std::size(kMemory);
  parse_tcp_info({}, info);
  for (auto* attribute = reinterpret_cast<const rtattr*>(&message + 1); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    const auto* data = static_cast<const uint8_t*>(RTA_DATA(attribute));
    const size_t bytes = RTA_PAYLOAD(attribute);
    if (attribute->rta_type == INET_DIAG_SKMEMINFO) {
      for (size_t i = 0; i < std::size(kMemory) && 4 * (i + 1) <= bytes; ++i) {
        uint32_t value;
        std::memcpy(&value, data + 4 * i, sizeof value);
        memory[i] = value;
      }
    } else if (attribute->rta_type == INET_DIAG_INFO) {
      parse_tcp_info({data, bytes}, info);
    }
  }
  *info = message.idiag_state;
}

// Throws what the last message of an answer says is wrong.
void require_success(const nlmsghdr& message) {
  int error = 0;
  if (message.nlmsg_len >= NLMSG_LENGTH(sizeof error)) std::memcpy(&error, NLMSG_DATA(&message), sizeof error);
  if (error < 0) fail(-error, kUnlisted);
}

// As recv.
ssize_t receive(int netlink, std::span<char> buffer) {
  for (;;) {
    const ssize_t got = recv(netlink, buffer.data(), buffer.size(), 0);
    if (got >= 0 || errno != EINTR) return got;
  }
}

std::span<char> buffer() {
  alignas(nlmsghdr) static thread_local char bytes[64 << 10];
  return bytes;
}

// Of the answer to the question of this number; false: the sockets changed meanwhile,
// and the answer does not hold together.
bool answered(int netlink, uint32_t number, std::vector<double>& rows) {
  bool whole = true;
  for (;;) {
    const ssize_t got = receive(netlink, buffer());
    if (got <= 0) fail(got < 0 ? errno : EIO, kUnlisted);
    auto left = static_cast<uint32_t>(got);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer().data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_seq != number) continue;
      if (message->nlmsg_flags & NLM_F_DUMP_INTR) whole = false;
      if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
        require_success(*message);
        return whole;
      }
      if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY) append(*message, rows);
    }
  }
}

}  // namespace

std::vector<std::string> diag_columns() {
  std::vector<std::string> names(std::begin(kSocket), std::end(kSocket));
  names.insert(names.end(), std::begin(kMemory), std::end(kMemory));
  for (const TcpInfoField& field : tcp_info_fields()) names.emplace_back(field.name);
  return names;
}

void list_tcp_sockets(int netlink, const DiagRequest& request, std::vector<double>& rows) {
  static std::atomic<uint32_t> asked{0};
  Question question{};
  question.body.sdiag_family = request.family;
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
  question.body.idiag_states = request.states;
  question.body.id.idiag_sport = htons(request.local_port);
  question.body.id.idiag_dport = htons(request.remote_port);
  question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const size_t before = rows.size();
  for (int tries = 0; tries < kTries; ++tries) {
    const uint32_t number = ++asked;
    question.header = {sizeof question, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, number, 0};
    // Without an address: to the kernel.
    if (send(netlink, &question, sizeof question, 0) < 0) fail(errno, "the kernel cannot be asked for its TCP sockets");
    if (answered(netlink, number, rows)) return;
    rows.resize(before);
  }
  fail(EAGAIN, "the TCP sockets change while the kernel lists them");
}

void list_ended_tcp_sockets(int netlink, std::vector<double>& rows) {
  for (;;) {
    const ssize_t got = receive(netlink, buffer());
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0 && errno == ENOBUFS) continue;
    if (got <= 0) fail(got < 0 ? errno : EIO, "the kernel does not tell of TCP sockets that end");
    auto left = static_cast<uint32_t>(got);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer().data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY) append(*message, rows);
    }
  }
}

}  // namespace netbuf
