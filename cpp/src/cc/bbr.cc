// BBR version 1: bbr.h and bbr_ns3.h say what it does in each stack and where it is from.
#include "cc/bbr.h"

#include "cc/bbr_ns3.h"

namespace netbuf {
namespace {

std::vector<Parameter> both_stacks() {
  std::vector<Parameter> all = bbr::parameters(5);
  for (Parameter& one : all) {
    if (one.name == "high_gain" || one.name == "drain_gain" || one.name == "policer_detection") {
      one = one.only(Stack::linux_kernel);
    }
  }
  all.push_back(real("high_gain", 2.89, 1, 10, "of pacing and window in STARTUP, and 1 over that of pacing in DRAIN")
                    .only(Stack::ns3));
  return all;
}

const Entry<CongestionControlRecord> entry{{
    .name = "bbr",
    .meaning = "BBR version 1: sends at the estimated bandwidth with about two bandwidth-delay products in flight",
    .linux_kernel = make<bbr::Bbr>,
    .ns3 = make<bbr::Ns3Bbr>,
    .parameters = both_stacks(),
}};

}  // namespace
}  // namespace netbuf
