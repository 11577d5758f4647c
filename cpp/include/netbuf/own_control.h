// A congestion control in a file of the user's, compiled to a shared object
// (netbuf_gym/scenarios/compiled_control.py). The file is what one in cpp/src/cc/ is, and includes netbuf/tcp.h alone;
// the compiler puts this header in front of it.
#pragma once
#include <vector>

#include "netbuf/tcp.h"

#define NETBUF_AS_TEXT_(what) #what
#define NETBUF_AS_TEXT(what) NETBUF_AS_TEXT_(what)

namespace netbuf {

// What both sides have to be made of: these headers (NETBUF_HEADERS: their digest, given by the build),
// one standard library.
inline constexpr char kOwnControlBuild[] = NETBUF_HEADERS "-" NETBUF_AS_TEXT(_GLIBCXX_USE_CXX11_ABI);

// What a shared object says of itself. The first two mean the same in every version.
struct OwnControls {
  static constexpr uint32_t kAbi = 1;
  uint32_t abi;
  const char* build;
  const std::vector<const CongestionControlRecord*>* records;
};

inline constexpr char kOwnControlsName[] = "netbuf_own_controls";

}  // namespace netbuf

#ifdef NETBUF_OWN_CONTROL
// Not inline: what is static in it is this shared object's own then.
extern "C" __attribute__((visibility("default"))) const netbuf::OwnControls* netbuf_own_controls() {
  static const netbuf::OwnControls own{netbuf::OwnControls::kAbi, netbuf::kOwnControlBuild,
                                       &netbuf::Catalogue<netbuf::CongestionControlRecord>::all()};
  return &own;
}
#endif
