// What the live plant asks of the kernel natively.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "netbuf/kernel/btf.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace netbuf {

void bind_kernel(nb::module_& m) {
  m.def("btf_structs", [](const std::string& path, const std::vector<std::string>& names) {
    nb::list all;
    for (const BtfStruct& s : find_structs(path, names)) {
      if (s.id == 0) {
        all.append(nb::none());
        continue;
      }
      nb::dict d, members;
      uint32_t index = 0;
      for (const BtfStruct::Member& member : s.members) {
        if (!member.name.empty()) members[member.name.c_str()] = nb::make_tuple(index, member.bit_offset / 8);
        ++index;
      }
      d["id"] = s.id;
      d["bytes"] = s.bytes;
      d["members"] = members;
      all.append(d);
    }
    return all;
  }, "path"_a, "names"_a, "Structures by name in a file of BTF, a dict each or None: id, bytes, members (name: number and offset in bytes).");
}

}  // namespace netbuf
