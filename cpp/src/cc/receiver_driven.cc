// The sender that Nuwa's receiver steers: CUBIC's slow start, and after it a congestion window that never binds, so
// that what the receiver advertises is the window. While losses are repaired as much leaves as arrives; a time-out
// starts anew. Where the receiver limits nothing, the window stays what slow start came to.
//
// Source: Jiang, Gong and Jin, "Combining heuristic and reinforcement learning to achieve the low-latency and
// high-throughput receiver-side congestion control", section IV-A.
#include "netbuf/tcp.h"

namespace netbuf {
namespace {

constexpr int64_t kNeverBinds = int64_t{1} << 31;   // twice the largest window that can be advertised

class ReceiverDriven final : public CongestionControl {
 public:
  explicit ReceiverDriven(Stack stack) : cubic_(make_congestion_control("cubic", stack)) { owns_window_ = true; }

  void init(Tcb& tcb) override { cubic_->init(tcb); }

  void on_ack(Tcb& tcb, const AckEvent& ack) override {
    if (tcb.in_slow_start()) cubic_->on_ack(tcb, ack);
  }

  void control(Tcb& tcb, const AckEvent& ack) override {
    if (tcb.state >= CaState::recovery && !tcb.in_slow_start()) {
      return tcb.set_cwnd_packets(tcb.in_flight() + std::max(ack.delivered, 1u));
    }
    if (tcb.in_slow_start()) cubic_->increase_window(tcb, ack);
    if (!tcb.in_slow_start()) {
      tcb.set_cwnd(receiver_limits_ ? kNeverBinds : std::max<int64_t>(tcb.ssthresh, 2 * tcb.mss));
    }
  }

  void on_receiver_limit() override { receiver_limits_ = true; }

  // What is in flight, not the window, which means nothing here.
  int64_t ssthresh(Tcb& tcb) override { return std::max<int64_t>(2 * tcb.mss, tcb.bytes_in_flight() / 2); }

  void on_state(Tcb& tcb, CaState next) override {
    if (next == CaState::loss) cubic_->on_state(tcb, next);
    if (next == CaState::recovery) tcb.set_cwnd_packets(tcb.in_flight() + 1);
  }

  int64_t undo_window(Tcb& tcb, int64_t) override { return tcb.cwnd; }

 private:
  const std::unique_ptr<CongestionControl> cubic_;
  bool receiver_limits_ = false;
};

template <Stack stack>
std::unique_ptr<CongestionControl> make_for(const Parameters&) {
  return std::make_unique<ReceiverDriven>(stack);
}

const Entry<CongestionControlRecord> entry{{
    .name = "receiver_driven",
    .meaning = "CUBIC's slow start, and after it the receiver's window alone (Nuwa's sender)",
    .linux_kernel = make_for<Stack::linux_kernel>,
    .ns3 = make_for<Stack::ns3>,
}};

}  // namespace
}  // namespace netbuf
