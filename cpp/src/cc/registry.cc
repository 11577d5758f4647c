#include <stdexcept>

#include "netbuf/tcp.h"

namespace netbuf {

namespace {

const CongestionControlRecord& record_in(Stack stack, std::string_view name, const std::string& field) {
  const CongestionControlRecord& record = Catalogue<CongestionControlRecord>::get(name, field);
  if (record.in(stack)) return record;
  std::string message =
      field + " = " + std::string(name) + ": must be one of the " + std::string(name_of(stack)) + " stack:";
  for (const CongestionControlRecord* other : Catalogue<CongestionControlRecord>::all()) {
    if (other->in(stack)) message.append(" ").append(other->name);
  }
  throw std::invalid_argument(message);
}

}  // namespace

std::unique_ptr<CongestionControl> make_congestion_control(std::string_view name, Stack stack, const Given& parameters,
                                                           const std::string& field) {
  const CongestionControlRecord& record = record_in(stack, name, field);
  return record.in(stack)(Parameters(record.parameters, parameters, field + "_parameters", stack));
}

std::function<std::unique_ptr<CongestionControl>()> prepare_congestion_control(std::string_view name, Stack stack,
                                                                               const Given& parameters,
                                                                               const std::string& field) {
  const CongestionControlRecord& record = record_in(stack, name, field);
  const auto make = record.in(stack);
  Parameters taken(record.parameters, parameters, field + "_parameters", stack);
  std::shared_ptr<const CongestionControl> first = make(taken);
  if (first->copy()) return [first = std::move(first)] { return first->copy(); };
  return [make, taken = std::move(taken)] { return make(taken); };
}

void check_congestion_control(std::string_view name, Stack stack, const Given& parameters, const std::string& field) {
  Parameters(record_in(stack, name, field).parameters, parameters, field + "_parameters", stack);
}

}  // namespace netbuf
