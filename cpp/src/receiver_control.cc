#include "netbuf/receiver_control.h"

#include "netbuf/config.h"
#include "netbuf/reject.h"

namespace netbuf {

namespace {

// TCP_WINDOW_CLAMP.
class FixedClamp final : public ReceiverControl {
 public:
  explicit FixedClamp(int64_t bytes) : bytes_(bytes) {}
  int64_t initial_window() const override { return bytes_; }
  int64_t window(const Arrival&) override { return bytes_; }

 private:
  int64_t bytes_;
};

// A window that never holds a segment stops the flow for good.
void check_segments(const ReceiverControlRecord& record, const Parameters& parameters, uint32_t mss,
                    const std::string& field) {
  for (const Parameter& parameter : record.parameters) {
    const double least = static_cast<double>(parameter.segments) * mss;
    if (parameters[parameter.name] >= least || parameter.segments == 0) continue;
    const std::string at = field + "_parameters[" + std::string(parameter.name) + "]";
    reject(at, parameters[parameter.name],
           "at least " + std::to_string(static_cast<int64_t>(least)) + ", of full segments");
  }
}

Parameters parameters_of(const FlowConfig& config, const std::string& field) {
  const ReceiverControlRecord& record = Catalogue<ReceiverControlRecord>::get(config.receiver, field);
  return Parameters(record.parameters, config.receiver_parameters, field + "_parameters");
}

}  // namespace

void check_receiver_control(const FlowConfig& config, const std::string& field) {
  if (!config.receiver.empty()) parameters_of(config, field);
}

std::unique_ptr<ReceiverControl> make_receiver_control(const FlowConfig& config, uint32_t mss,
                                                       const std::string& field) {
  if (!config.receiver.empty()) {
    const Parameters parameters = parameters_of(config, field);
    const ReceiverControlRecord& record = Catalogue<ReceiverControlRecord>::get(config.receiver, field);
    check_segments(record, parameters, mss, field);
    return record.make({parameters, mss, config.receive_buffer_bytes});
  }
  if (config.window_clamp_bytes > 0) return std::make_unique<FixedClamp>(config.window_clamp_bytes);
  return nullptr;
}

}  // namespace netbuf
