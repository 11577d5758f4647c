#include "netbuf/receiver_control.h"

namespace netbuf {

namespace {

// TCP_WINDOW_CLAMP.
class FixedClamp final : public ReceiverControl {
 public:
  explicit FixedClamp(int64_t bytes) : bytes_(bytes) {}
  int64_t initial_window() const override { return bytes_; }
  int64_t window(const ReceiverView&, const Packet&) override { return bytes_; }

 private:
  int64_t bytes_;
};

}  // namespace

std::unique_ptr<ReceiverControl> make_receiver_control(const FlowConfig& config) {
  if (config.window_clamp_bytes > 0) return std::make_unique<FixedClamp>(config.window_clamp_bytes);
  return nullptr;
}

}  // namespace netbuf
