#include "netbuf/agent.h"

namespace netbuf {

std::unique_ptr<Agent> make_agent(std::string_view kind, const Given& parameters) {
  const AgentRecord& record = Catalogue<AgentRecord>::get(kind, "kind");
  return record.make(Parameters(record.parameters, parameters, std::string(kind)));
}

}  // namespace netbuf
