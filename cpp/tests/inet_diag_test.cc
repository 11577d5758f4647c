// Lists of TCP sockets, as a kernel gives them that a socket pair plays, and where a kernel's tcp_info has its fields.
#include "netbuf/kernel/inet_diag.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <system_error>
#include <thread>

#include "check.h"
#include "netbuf/kernel/tcp_info.h"

namespace {

using namespace netbuf;

size_t column(const std::string& name) {
  const auto names = diag_columns();
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// What follows a message's header.
struct Message {
  uint16_t type;
  std::vector<uint8_t> body;
  uint16_t flags = 0;
  uint32_t off = 0;                      // of the question's number
};

template <class T>
std::vector<uint8_t> bytes(const T& value) {
  const auto* from = reinterpret_cast<const uint8_t*>(&value);
  return {from, from + sizeof value};
}

Message found(uint32_t source, uint32_t other, uint32_t cookie = 7, uint32_t cookie_high = 0) {
  inet_diag_msg message{};
  message.idiag_family = AF_INET;
  message.idiag_state = 1;
  message.id.idiag_src[0] = htonl(source);
  message.id.idiag_dst[0] = htonl(other);
  message.id.idiag_cookie[0] = cookie;
  message.id.idiag_cookie[1] = cookie_high;
  message.idiag_wqueue = 99;
  return {SOCK_DIAG_BY_FAMILY, bytes(message)};
}
Message done(int error = 0, uint16_t flags = 0) { return {NLMSG_DONE, bytes(error), flags}; }

std::vector<uint8_t> packed(const Message& message, uint32_t number) {
  const nlmsghdr header{static_cast<uint32_t>(NLMSG_HDRLEN + message.body.size()), message.type, message.flags,
                        number + message.off, 0};
  auto all = bytes(header);
  all.insert(all.end(), message.body.begin(), message.body.end());
  all.resize(NLMSG_ALIGN(all.size()));
  return all;
}

// A kernel that answers each question with the next of some datagrams, each of some messages.
struct Kernel {
  explicit Kernel(std::vector<std::vector<Message>> answers) {
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    thread = std::thread([this, answers = std::move(answers)] {
      for (const auto& answer : answers) {
        struct { nlmsghdr header; inet_diag_req_v2 body; } question;
        if (read(ends[1], &question, sizeof question) != sizeof question) return;
        ++questions;
        std::vector<uint8_t> datagram;
        for (const Message& message : answer) {
          const auto more = packed(message, question.header.nlmsg_seq);
          datagram.insert(datagram.end(), more.begin(), more.end());
        }
        if (write(ends[1], datagram.data(), datagram.size()) < 0) return;
      }
    });
  }
  ~Kernel() {
    close(ends[0]);
    thread.join();
    close(ends[1]);
  }
  // What was listed, or the error's number.
  int list() {
    rows.clear();
    try {
      list_tcp_sockets(ends[0], {AF_INET, ~0u}, rows);
    } catch (const std::system_error& error) {
      return error.code().value();
    }
    return 0;
  }
  double at(size_t row, const std::string& name) const { return rows.at(row * diag_columns().size() + column(name)); }
  size_t count() const { return rows.size() / diag_columns().size(); }

  std::array<int, 2> ends{};
  std::vector<double> rows;
  std::thread thread;
  int questions = 0;
};

TEST(sockets_are_listed) {
  Kernel kernel(
      {{found(0x0a010001, 0x0a020001), found(0x7f000001, 0x7f000005), found(0x0a010001, 0x0a010001), done()}});
  CHECK_EQ(kernel.list(), 0);
  CHECK_EQ(kernel.count(), 3u);
  CHECK_EQ(kernel.at(0, "local_address"), 0x0a010001);
  CHECK_EQ(kernel.at(0, "send_queue_bytes"), 99);
  CHECK_EQ(kernel.at(0, "state"), 1);
  CHECK_EQ(kernel.at(0, "loopback"), 0);
  CHECK_EQ(kernel.at(1, "loopback"), 1);
  CHECK_EQ(kernel.at(2, "loopback"), 1);
  CHECK(std::isnan(kernel.at(0, "rtt_s")) && std::isnan(kernel.at(0, "send_buffer_bytes")));
}

TEST(cookies_stay_apart) {
  // Of two that the kernel gave from the end of its range; as unsigned doubles they would be one.
  Kernel kernel({{found(1, 2, 0xffffffff, 0xffffffff), found(1, 2, 0xfffffffe, 0xffffffff), done()}});
  CHECK_EQ(kernel.list(), 0);
  CHECK_EQ(kernel.at(0, "cookie"), -1);
  CHECK_EQ(kernel.at(1, "cookie"), -2);
}

TEST(an_error_at_the_end_is_one) {
  Kernel kernel({{done(-ENOENT)}, {{NLMSG_ERROR, bytes(nlmsgerr{-EPERM, {}})}}});
  CHECK_EQ(kernel.list(), ENOENT);
  CHECK_EQ(kernel.list(), EPERM);
}

TEST(what_is_left_of_another_answer_is_passed_over) {
  Message old = found(1, 2), ended = done(-ENOENT);
  old.off = ended.off = ~0u;               // of the question before
  Kernel kernel({{old, ended, found(3, 4), done()}});
  CHECK_EQ(kernel.list(), 0);
  CHECK_EQ(kernel.count(), 1u);
  CHECK_EQ(kernel.at(0, "local_address"), 3);
}

TEST(a_list_that_changed_is_asked_for_again) {
  const std::vector<Message> broken{found(1, 2), done(0, NLM_F_DUMP_INTR)};
  Kernel once({broken, {found(3, 4), done()}}), always({broken, broken, broken, broken});
  CHECK_EQ(once.list(), 0);
  CHECK_EQ(once.count(), 1u);
  CHECK_EQ(once.at(0, "local_address"), 3);
  CHECK_EQ(always.list(), EAGAIN);
  CHECK_EQ(always.questions, 3);
}

TEST(a_short_message_is_refused) {
  Kernel kernel({{{SOCK_DIAG_BY_FAMILY, std::vector<uint8_t>(sizeof(inet_diag_msg) - 4)}, done()}});
  CHECK_EQ(kernel.list(), EBADMSG);
}

TEST(those_that_ended_are_told_once) {
  std::array<int, 2> ends{};
  CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  for (uint32_t cookie : {5u, 6u}) {
    const auto datagram = packed(found(1, 2, cookie), 0);
    CHECK_EQ(write(ends[1], datagram.data(), datagram.size()), static_cast<ssize_t>(datagram.size()));
  }
  std::vector<double> rows;
  list_ended_tcp_sockets(ends[0], rows);
  CHECK_EQ(rows.size(), 2 * diag_columns().size());
  CHECK_EQ(rows.at(diag_columns().size() + column("cookie")), 6);
  rows.clear();
  list_ended_tcp_sockets(ends[0], rows);
  CHECK(rows.empty());
  close(ends[1]);
  CHECK_THROWS(list_ended_tcp_sockets(ends[0], rows), std::system_error);
  close(ends[0]);
}

TEST(fields_of_tcp_info_are_where_the_kernel_has_them) {
  const auto offset = [](const char* name) { return tcp_info_fields()[tcp_info_index(name)].offset; };
#define HAS_FIELD(name, member) CHECK_EQ(offset(name), offsetof(tcp_info, member))
  HAS_FIELD("state", tcpi_state);
  HAS_FIELD("options", tcpi_options);
  HAS_FIELD("rto_s", tcpi_rto);
  HAS_FIELD("ato_s", tcpi_ato);
  HAS_FIELD("mss_bytes", tcpi_snd_mss);
  HAS_FIELD("received_mss_bytes", tcpi_rcv_mss);
  HAS_FIELD("unacked_packets", tcpi_unacked);
  HAS_FIELD("sacked_packets", tcpi_sacked);
  HAS_FIELD("lost_packets", tcpi_lost);
  HAS_FIELD("retransmitting_packets", tcpi_retrans);
  HAS_FIELD("since_data_sent_s", tcpi_last_data_sent);
  HAS_FIELD("since_data_received_s", tcpi_last_data_recv);
  HAS_FIELD("since_ack_received_s", tcpi_last_ack_recv);
  HAS_FIELD("path_mtu_bytes", tcpi_pmtu);
  HAS_FIELD("receive_threshold_bytes", tcpi_rcv_ssthresh);
  HAS_FIELD("rtt_s", tcpi_rtt);
  HAS_FIELD("rtt_deviation_s", tcpi_rttvar);
  HAS_FIELD("ssthresh_packets", tcpi_snd_ssthresh);
  HAS_FIELD("cwnd_packets", tcpi_snd_cwnd);
  HAS_FIELD("advertised_mss_bytes", tcpi_advmss);
  HAS_FIELD("reordering_packets", tcpi_reordering);
  HAS_FIELD("receiver_rtt_s", tcpi_rcv_rtt);
  HAS_FIELD("receive_space_bytes", tcpi_rcv_space);
  HAS_FIELD("retransmitted_packets", tcpi_total_retrans);
  HAS_FIELD("pacing_rate_bytes_per_s", tcpi_pacing_rate);
  HAS_FIELD("acked_bytes", tcpi_bytes_acked);
  HAS_FIELD("received_bytes", tcpi_bytes_received);
  HAS_FIELD("segments_sent", tcpi_segs_out);
  HAS_FIELD("segments_received", tcpi_segs_in);
  HAS_FIELD("unsent_bytes", tcpi_notsent_bytes);
  HAS_FIELD("rtt_min_s", tcpi_min_rtt);
  HAS_FIELD("data_segments_received", tcpi_data_segs_in);
  HAS_FIELD("data_segments_sent", tcpi_data_segs_out);
  HAS_FIELD("delivery_rate_bytes_per_s", tcpi_delivery_rate);
  HAS_FIELD("busy_s", tcpi_busy_time);
  HAS_FIELD("rwnd_limited_s", tcpi_rwnd_limited);
  HAS_FIELD("sndbuf_limited_s", tcpi_sndbuf_limited);
  HAS_FIELD("delivered_packets", tcpi_delivered);
  HAS_FIELD("delivered_marked_packets", tcpi_delivered_ce);
  HAS_FIELD("sent_bytes", tcpi_bytes_sent);
  HAS_FIELD("retransmitted_bytes", tcpi_bytes_retrans);
  HAS_FIELD("duplicate_sacks", tcpi_dsack_dups);
  HAS_FIELD("reorderings", tcpi_reord_seen);
  HAS_FIELD("received_out_of_order_packets", tcpi_rcv_ooopack);
  HAS_FIELD("send_window_bytes", tcpi_snd_wnd);
#undef HAS_FIELD
}

TEST(what_the_kernel_has_no_number_for_is_unknown) {
  std::vector<uint8_t> data(248);
  std::vector<double> info(tcp_info_fields().size());
  parse_tcp_info(data, info.data());
  CHECK(std::isnan(info[tcp_info_index("rtt_s")]) && std::isnan(info[tcp_info_index("receiver_rtt_s")]));
  CHECK_EQ(info[tcp_info_index("pacing_rate_bytes_per_s")], 0);
  std::fill(data.begin(), data.end(), 0xff);
  parse_tcp_info(data, info.data());
  CHECK(std::isnan(info[tcp_info_index("pacing_rate_bytes_per_s")]) && std::isnan(info[tcp_info_index("rtt_min_s")]));
  data.resize(239);                                               // of a kernel before 6.7
  parse_tcp_info(data, info.data());
  CHECK(std::isnan(info[tcp_info_index("timeouts")]) && !std::isnan(info[tcp_info_index("receive_window_bytes")]));
  CHECK_THROWS(tcp_info_index("snd_cwnd"), std::out_of_range);
  CHECK(!read_tcp_info(-1, info.data()));
}

}  // namespace
