// Types of a kernel as it describes them itself (BTF, /sys/kernel/btf/vmlinux): where the members of a structure lie.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace netbuf {

struct BtfStruct {
  struct Member {
    std::string name;
    uint32_t type, bit_offset;
  };
  uint32_t id = 0;       // number of the type
  uint32_t bytes = 0;
  std::vector<Member> members;
};

// The structures of these names, in their order; id 0: there is none.
// Throws std::runtime_error: the file cannot be read, or is none.
std::vector<BtfStruct> find_structs(const std::string& path, const std::vector<std::string>& names);

}  // namespace netbuf
