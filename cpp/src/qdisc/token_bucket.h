// Tokens that come at a rate, up to a burst: a byte each.
#pragma once
#include <algorithm>
#include <cmath>

#include "netbuf/queue_discipline.h"

namespace netbuf {

class TokenBucket {
 public:
  explicit TokenBucket(const Parameters& given)
      : ns_per_byte_(8e3 / given["rate_mbps"]), burst_(given["burst_bytes"]), tokens_(burst_) {}

  bool holds(uint32_t bytes) const { return bytes <= burst_; }  // ever
  // When there are as many tokens as this.
  Time ready(Time now, uint32_t bytes) {
    fill(now);
    const double missing = bytes - tokens_;
    return missing <= 0 ? now : now + std::max<Time>(1, static_cast<Time>(std::ceil(missing * ns_per_byte_)));
  }
  void take(Time now, uint32_t bytes) {
    fill(now);
    tokens_ -= bytes;
  }
  void refill(Time now) {
    tokens_ = burst_;
    since_ = now;
  }

 private:
  void fill(Time now) {
    tokens_ = std::min(burst_, tokens_ + static_cast<double>(now - since_) / ns_per_byte_);
    since_ = now;
  }

  const double ns_per_byte_, burst_;
  double tokens_;
  Time since_ = 0;
};

inline std::vector<Parameter> token_bucket_parameters() {
  return {real("rate_mbps", 10, 1e-3, 1e6, "tokens in Mbit/s, of bytes on the wire"),
          real("burst_bytes", 15000, 1, 1e12, "most tokens that there are, in bytes: what may pass at once")};
}

}  // namespace netbuf
