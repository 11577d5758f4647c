#include "netbuf/kernel/inet_diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

#include "netbuf/kernel/tcp_info.h"

namespace netbuf {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Of the listing: struct inet_diag_msg.
constexpr const char* kSocket[] = {
    "cookie", "inode", "local_address", "remote_address", "local_port", "remote_port", "receive_queue_bytes", "send_queue_bytes",
};
// struct sk_meminfo, SK_MEMINFO_*: bytes with the kernel's overhead, and packets dropped.
constexpr const char* kMemory[] = {
    "receive_queued_bytes", "receive_buffer_bytes", "send_in_flight_memory_bytes", "send_buffer_bytes", "memory_reserve_bytes",
    "send_queued_bytes",    "option_memory_bytes",  "backlog_bytes",               "drops",
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

void append(const inet_diag_msg& message, int left, std::vector<double>& rows) {
  const auto& id = message.id;
  const size_t start = rows.size(), fields = tcp_info_fields().size();
  rows.resize(start + std::size(kSocket) + std::size(kMemory) + fields, kNaN);
  double* out = &rows[start];
  *out++ = static_cast<double>(uint64_t{id.idiag_cookie[1]} << 32 | id.idiag_cookie[0]);
  *out++ = message.idiag_inode;
  *out++ = address(message.idiag_family, id.idiag_src);
  *out++ = address(message.idiag_family, id.idiag_dst);
  *out++ = ntohs(id.idiag_sport);
  *out++ = ntohs(id.idiag_dport);
  *out++ = message.idiag_rqueue;
  *out++ = message.idiag_wqueue;
  double* memory = out;
  double* info = out + std::size(kMemory);
  read_tcp_info({}, info);
  *info = message.idiag_state;
  for (auto* attribute = reinterpret_cast<const rtattr*>(&message + 1); RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    const auto* data = static_cast<const uint8_t*>(RTA_DATA(attribute));
    const size_t bytes = RTA_PAYLOAD(attribute);
    if (attribute->rta_type == INET_DIAG_SKMEMINFO) {
      for (size_t i = 0; i < std::size(kMemory) && 4 * (i + 1) <= bytes; ++i) {
        uint32_t value;
        std::memcpy(&value, data + 4 * i, sizeof value);
        memory[i] = value;
      }
    } else if (attribute->rta_type == INET_DIAG_INFO) {
      read_tcp_info({data, bytes}, info);
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
  Question question{};
  question.header = {sizeof question, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0};
  question.body.sdiag_family = request.family;
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
  question.body.idiag_states = request.states;
  question.body.id.idiag_sport = htons(request.local_port);
  question.body.id.idiag_dport = htons(request.remote_port);
  question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(netlink, &question, sizeof question, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) < 0) {
    fail(errno, "the kernel cannot be asked for its TCP sockets");
  }
  alignas(nlmsghdr) static thread_local char buffer[64 << 10];
  for (;;) {
    const ssize_t got = recv(netlink, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(got < 0 ? errno : EIO, "the kernel does not list its TCP sockets");
    auto left = static_cast<uint32_t>(got);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) {
        int error = 0;
        if (message->nlmsg_len >= NLMSG_LENGTH(sizeof error)) std::memcpy(&error, NLMSG_DATA(message), sizeof error);
        if (error < 0) fail(-error, "the kernel does not list its TCP sockets");
        return;
      }
      if (message->nlmsg_type == NLMSG_ERROR) {
        const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(message));
        fail(-error->error, "the kernel does not list its TCP sockets");
      }
      const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(message));
      append(*found, static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof *found)), rows);
    }
  }
}

}  // namespace netbuf
