// BBR version 1, as it stands in Linux: bbr.h says what it does and where it is from.
#include "cc/bbr.h"

namespace netbuf {
namespace {

const Entry<CongestionControlRecord> entry{{
    .name = "bbr",
    .meaning = "BBR version 1: sends at the estimated bandwidth with about two bandwidth-delay products in flight",
    .linux_kernel = make<bbr::Bbr>,
    .ns3 = make<bbr::Bbr>,
    .parameters = bbr::parameters(5),
}};

}  // namespace
}  // namespace netbuf
