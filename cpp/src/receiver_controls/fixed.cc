// A window of a fixed size, as an application gets by TCP_WINDOW_CLAMP or by a small receive buffer.
#include "netbuf/receiver_control.h"

namespace netbuf {
namespace {

class Fixed final : public ReceiverControl {
 public:
  explicit Fixed(const ReceiverSetting& setting) : bytes_(setting.parameters.as<int64_t>("window_bytes")) {}
  int64_t initial_window() const override { return bytes_; }
  int64_t window(const Arrival&) override { return bytes_; }

 private:
  const int64_t bytes_;
};

const Entry<ReceiverControlRecord> entry{{
    .name = "fixed",
    .meaning = "a window of a fixed size",
    .make = make_receiver<Fixed>,
    .parameters = {whole("window_bytes", 65'535, 100, 1 << 30, "the window, bytes, a full segment at least")
                       .at_least_segments(1)},
}};

}  // namespace
}  // namespace netbuf
