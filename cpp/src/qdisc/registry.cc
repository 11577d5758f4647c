#include <stdexcept>

#include "netbuf/queue_discipline.h"

namespace netbuf {

Parameters discipline_parameters(std::string_view name, const Given& given, const std::string& field) {
  const DisciplineRecord& record = Catalogue<DisciplineRecord>::get(name, field);
  Parameters parameters(record.parameters, given, field + "_parameters");
  try {
    record.check(parameters);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(field + "_parameters: " + error.what());
  }
  return parameters;
}

std::unique_ptr<QueueDiscipline> make_discipline(std::string_view name, const Given& given, DisciplineSetting setting) {
  setting.parameters = discipline_parameters(name, given, "discipline");
  return Catalogue<DisciplineRecord>::get(name, "discipline").make(setting);
}

}  // namespace netbuf
