// What marks a congestion control as one of ns-3's CongControl kind (HasCongControl): it is called once, after all that
// an ACK does, with ns-3's own rate samples. Other controls that want rates are called as those that do not.
#pragma once

namespace netbuf {

class ControlsByNs3Rate {
 protected:
  ~ControlsByNs3Rate() = default;
};

}  // namespace netbuf
