// A trained sender in integers: features, network and window of cpp/policy/policy.h. Its intervals end on a grid from
// the establishment on; the first ACK after an end decides, on what was counted before it. Ends that silence has left
// out count as intervals without ACKs, and those beyond kMostEnds together as one.
#include <cstring>
#include <stdexcept>

#include "../../policy/policy.h"
#include "cc/steered_window.h"
#include "netbuf/compiled_agent.h"

namespace netbuf {
namespace {

constexpr int64_t kMostEnds = 8;

class CompiledAgent final : public SteeredWindow {
 public:
  CompiledAgent(std::shared_ptr<const CompiledPolicy> policy, Stack stack) : policy_(std::move(policy)) {
    const nb_rules& rules = policy_->get()->rules;
    steering_ = {rules.paced != 0, rules.fine && rules.paced && stack_profile(stack).paces, rules.slow_start != 0};
  }

  const Steering* steering() const override { return &steering_; }

  void init(Tcb& tcb) override {
    nb_start(policy_->get(), &state_, tcb.cwnd, tcb.mss);
    end_ = tcb.now + policy_->get()->rules.interval;
    lost_ = tcb.lost;
  }

  void control(Tcb& tcb, const AckEvent& ack) override {
    if (tcb.now >= end_) end_intervals(tcb, ack);
    SteeredWindow::control(tcb, ack);
    count(tcb, ack);
  }

  void on_state(Tcb& tcb, CaState state) override {
    SteeredWindow::on_state(tcb, state);
    if (state == CaState::loss) ++interval_.timeouts;
  }

  void take_in(Tcb& tcb, const AckEvent& ack) override { take(*this, tcb, ack); }

 private:
  void end_intervals(Tcb& tcb, const AckEvent& ack) {
    const Time length = policy_->get()->rules.interval;
    const uint32_t lost = tcb.lost - ack.lost;  // up to this ACK
    interval_.lost = lost - lost_;
    lost_ = lost;
    interval_.in_flight = int64_t{ack.prior_in_flight} * tcb.mss;
    int64_t ends = (tcb.now - end_) / length + 1;
    end_ += ends * length;
    end_interval(tcb, length);
    if (--ends > kMostEnds) {
      end_interval(tcb, (ends - kMostEnds + 1) * length);
      ends = kMostEnds - 1;
    }
    for (; ends > 0; --ends) end_interval(tcb, length);
    interval_.in_flight = 0;
  }

  // What is counted begins anew; what is in flight stays.
  void end_interval(Tcb& tcb, Time length) {
    interval_.elapsed = length;
    interval_.cwnd = tcb.cwnd;
    interval_.mss = tcb.mss;
    interval_.threshold = tcb.ssthresh < kInfiniteWindow;
    uint32_t action = 0;
    const int64_t window = nb_step(policy_->get(), &state_, &interval_, &action);
    if (window > 0) {
      on_decision();
      tcb.set_cwnd_steered(window, steering_.fine);
    }
    const int64_t in_flight = interval_.in_flight;
    interval_ = {};
    interval_.in_flight = in_flight;
  }

  void count(const Tcb& tcb, const AckEvent& ack) {
    interval_.acks += 1;
    interval_.segments += ack.delivered;
    interval_.acked_bytes += int64_t{ack.delivered} * tcb.mss;
    interval_.in_flight_sum += int64_t{tcb.in_flight()} * tcb.mss;
    if (last_ack_ > 0) interval_.span += tcb.now - last_ack_;
    last_ack_ = tcb.now;
    if (ack.rtt <= 0) return;
    interval_.rtt_sum += ack.rtt;
    interval_.rtt_count += 1;
    interval_.rtt_min = interval_.rtt_min ? std::min(interval_.rtt_min, ack.rtt) : ack.rtt;
  }

  std::shared_ptr<const CompiledPolicy> policy_;
  Steering steering_{};
  nb_interval interval_{};
  nb_state state_{};
  Time end_ = kNever, last_ack_ = 0;
  uint32_t lost_ = 0;
};

}  // namespace

CompiledPolicy::CompiledPolicy(const void* bytes, size_t size) : words_((size + 7) / 8) {
  if (size > 0) std::memcpy(words_.data(), bytes, size);
  if (size != sizeof(nb_policy) || !nb_is_policy(get(), size)) {
    throw std::invalid_argument("policy of " + std::to_string(size) +
                                " bytes; valid: what netbuf-gym compile writes, " + std::to_string(sizeof(nb_policy)));
  }
}

const nb_policy* CompiledPolicy::get() const { return reinterpret_cast<const nb_policy*>(words_.data()); }

std::unique_ptr<CongestionControl> make_compiled_agent(std::shared_ptr<const CompiledPolicy> policy, Stack stack) {
  return std::make_unique<CompiledAgent>(std::move(policy), stack);
}

}  // namespace netbuf
