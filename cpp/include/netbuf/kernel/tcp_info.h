// struct tcp_info (uapi/linux/tcp.h) as columns of numbers in SI units. The kernel gives as much of the structure as it
// knows: what came with a later one is NaN.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace netbuf {

struct TcpInfoField {
  enum class Type : uint8_t { u8, u16, u32, u64, low4, high4, bit0 };
  std::string_view name;
  uint16_t offset;          // bytes
  Type type;
  double unit = 1;          // of the kernel's number
  double never = -1;        // the number that stands for none: NaN
};

std::span<const TcpInfoField> tcp_info_fields();
// Which of them it is. Throws std::out_of_range.
size_t tcp_info_index(std::string_view name);
// One number for each field; data: what the kernel gave.
void parse_tcp_info(std::span<const uint8_t> data, double* out);
// Of a descriptor. False, and nothing is written, where it is no TCP socket.
bool read_tcp_info(int fd, double* out);

}  // namespace netbuf
