// The TCP sockets of a network namespace, as the kernel lists them (uapi/linux/{inet,sock}_diag.h):
// one row of numbers a socket.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace netbuf {

struct DiagRequest {
  uint8_t family;           // AF_INET, AF_INET6
  uint32_t states;          // bits of TCP_ESTABLISHED and so on
  uint16_t local_port = 0, remote_port = 0;  // 0: any
};

// The columns: of the listing itself, of the socket's memory, and those of tcp_info. `cookie`: unique to a socket, as a
// signed number, which a double holds; `loopback`: 1 where both ends are on the loopback device, else 0.
std::vector<std::string> diag_columns();
// Asks a netlink socket (NETLINK_SOCK_DIAG) that was opened in the namespace, and appends the rows. What is left
// of an answer to another question is passed over; a listing that changed while it was made is asked for again.
// Throws std::system_error.
void list_tcp_sockets(int netlink, const DiagRequest& request, std::vector<double>& rows);
// What a non-blocking netlink socket, a member of SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY, has been
// told of since it was last asked: sockets that ended, with their last counters, without their memory. Where too
// many ended some are missing.
void list_ended_tcp_sockets(int netlink, std::vector<double>& rows);

}  // namespace netbuf
