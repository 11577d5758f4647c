// Documentation/bpf/btf.rst: a header, types of lengths that depend on their kinds, and strings.
#include "netbuf/kernel/btf.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace netbuf {

namespace {

struct Header {
  uint16_t magic;
  uint8_t version, flags;
  uint32_t header_bytes, type_offset, type_bytes, string_offset, string_bytes;
};

struct Type {
  uint32_t name, info, size;
  uint32_t kind() const { return info >> 24 & 0x1f; }
  uint32_t count() const { return info & 0xffff; }
  bool bitfields() const { return info >> 31; }
};

struct RawMember {
  uint32_t name, type, offset;
};

enum Kind {
  kInt = 1, kArray = 3, kStruct, kUnion, kEnum, kFuncProto = 13, kVar, kDatasec, kDeclTag = 17, kEnum64 = 19
};

// What follows a type, in bytes.
size_t tail(const Type& type) {
  switch (type.kind()) {
    case kInt: case kVar: case kDeclTag: return 4;
    case kArray: return 12;
    case kStruct: case kUnion: case kDatasec: case kEnum64: return 12 * type.count();
    case kEnum: case kFuncProto: return 8 * type.count();
    default: return 0;
  }
}

}  // namespace

std::vector<BtfStruct> find_structs(const std::string& path, const std::vector<std::string>& names) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  const std::vector<char> data(std::istreambuf_iterator<char>(file), {});
  Header header{};
  if (data.size() >= sizeof header) std::memcpy(&header, data.data(), sizeof header);
  const size_t types = size_t{header.header_bytes} + header.type_offset,
               strings = size_t{header.header_bytes} + header.string_offset;
  const size_t types_end = types + header.type_bytes, strings_end = strings + header.string_bytes;
  if (header.magic != 0xeb9f || types_end > data.size() || strings_end > data.size() || header.string_bytes == 0 ||
      data[strings_end - 1] != 0) {
    throw std::runtime_error(path + " holds no BTF");
  }
  const auto text = [&](uint32_t offset) {
    return std::string_view(offset < header.string_bytes ? &data[strings + offset] : "");
  };

  std::vector<BtfStruct> found(names.size());
  uint32_t id = 1;
  for (size_t at = types; at + sizeof(Type) <= types_end; ++id) {
    Type type;
    std::memcpy(&type, &data[at], sizeof type);
    at += sizeof type;
    const size_t next = at + tail(type);
    if (next > types_end) break;
    if (type.kind() == kStruct) {
      const auto name = std::find(names.begin(), names.end(), text(type.name));
      if (name != names.end() && found[static_cast<size_t>(name - names.begin())].id == 0) {
        BtfStruct& s = found[static_cast<size_t>(name - names.begin())];
        s.id = id;
        s.bytes = type.size;
        for (uint32_t i = 0; i < type.count(); ++i) {
          RawMember member;
          std::memcpy(&member, &data[at + i * sizeof member], sizeof member);
          s.members.push_back({std::string(text(member.name)), member.type,
                               type.bitfields() ? member.offset & 0xffffff : member.offset});
        }
      }
    }
    at = next;
  }
  return found;
}

}  // namespace netbuf
