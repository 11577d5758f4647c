// What decides in a world. A kind of agent is what it measures, what it may set, and what it waits for; each
// kind is one file of src/agents, which ends in its entry in the catalogue. A batch (batch.h) steps the agents
// of one kind in many worlds.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netbuf/catalogue.h"
#include "netbuf/parameter.h"
#include "netbuf/world.h"

namespace netbuf {

// A number that an agent sets. NaN leaves it as it is.
struct Control {
  std::string name;                          // with its unit
  double low, high;                          // inclusive
  std::string valid;                         // what it is, for messages: "a window in [1, 2^40] bytes"
};

class Agent {
 public:
  virtual ~Agent() = default;
  virtual std::vector<std::string> fields() const = 0;       // of the telemetry, with their units
  virtual std::vector<Control> controls() const = 0;
  virtual std::string_view what() const = 0;                 // what it controls, in the plural

  // The agents of this kind in a world, each by the index of what it controls.
  // std::invalid_argument for one that cannot be.
  virtual std::vector<uint32_t> find(World& world) const = 0;

  // A decision interval of all of them: what they set is in force from now on (or as late as their decisions take), the
  // world runs (to the event that they wait for, or for as long as it may), and what they saw is written. Rows of
  // control and telemetry follow each other.
  struct Advance {
    Time interval;
    uint32_t max_intervals = 1;
    bool to_event = false;
  };
  virtual void step(World& world, std::span<const uint32_t> agents, const Advance& advance, const double* control,
                    double* telemetry) const = 0;
};

// An agent by its parts. Start: what is remembered of the start of an interval.
template <class Start>
class AgentOf : public Agent {
 public:
  void step(World& world, std::span<const uint32_t> agents, const Advance& advance, const double* control,
            double* telemetry) const final {
    static thread_local std::vector<Start> starts;           // kept: a step must not cost an allocation
    if (starts.size() < agents.size()) starts.resize(agents.size());
    for (size_t a = 0; a < agents.size(); ++a) begin(world, agents[a], starts[a]);
    const Time began = world.now();
    if (late_) {
      apply_late(world, agents, control, advance);
    } else {
      for (size_t a = 0; a < agents.size(); ++a) apply(world, agents[a], control + a * controls_);
    }
    if (advance.to_event) {
      run_to_event(world, agents, advance.interval, advance.max_intervals);
    } else {
      world.run(began + advance.interval);
    }
    for (size_t a = 0; a < agents.size(); ++a) write(world, agents[a], starts[a], telemetry + a * fields_);
  }

 protected:
  // late: decisions take time (`delay`).
  AgentOf(size_t fields, size_t controls, bool late = false) : fields_(fields), controls_(controls), late_(late) {}

  virtual void begin(World& world, uint32_t agent, Start& start) const = 0;
  virtual void apply(World& world, uint32_t agent, const double* control) const = 0;
  virtual void write(World& world, uint32_t agent, const Start& start, double* telemetry) const = 0;
  // How long the decision that is made now takes to be in force; at most an interval counts.
  virtual Time delay(const World&, uint32_t) const { return 0; }
  // Until something happened that one of them waits for, at most max_intervals intervals.
  virtual void run_to_event(World& world, std::span<const uint32_t> agents, Time interval,
                            uint32_t max_intervals) const = 0;

 private:
  void apply_late(World& world, std::span<const uint32_t> agents, const double* control, const Advance& advance) const {
    static thread_local std::vector<std::pair<Time, size_t>> due;
    due.clear();
    for (size_t a = 0; a < agents.size(); ++a) {
      due.emplace_back(world.now() + std::clamp<Time>(delay(world, agents[a]), 0, advance.interval), a);
    }
    std::sort(due.begin(), due.end());
    for (const auto& [time, a] : due) {
      if (time > world.now()) world.run(time);
      apply(world, agents[a], control + a * controls_);
    }
  }

  size_t fields_, controls_;
  bool late_;
};

// What the file of a kind ends in: an Entry of one of these.
struct AgentRecord {
  static constexpr std::string_view kWhat = "kind of agent";

  std::string_view name, meaning;
  std::unique_ptr<Agent> (*make)(const Parameters&);
  std::vector<Parameter> parameters = {};
};

// For records.
template <class Kind>
std::unique_ptr<Agent> make_kind(const Parameters& parameters) {
  return std::make_unique<Kind>(parameters);
}

// Throws std::invalid_argument: a kind that is not there, or a parameter that is unknown or out of range.
std::unique_ptr<Agent> make_agent(std::string_view kind, const Given& parameters = {});

}  // namespace netbuf
