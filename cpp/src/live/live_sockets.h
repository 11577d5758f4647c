// What the parts of LiveFlows have in common: keys of epoll, options of sockets.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "netbuf/live.h"

namespace netbuf {

enum Side : uint32_t { kSender = 0, kReceiver = 1, kListener = 2, kTimer = 3, kWaker = 4 };

inline uint64_t key_of(uint32_t index, uint32_t generation, Side side) {
  return uint64_t{generation} << 35 | uint64_t{index} << 3 | side;
}

template <class T>
void set_option(int fd, int level, int option, const T& value, const std::string& what) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0) fail_system(what);
}

}  // namespace netbuf
