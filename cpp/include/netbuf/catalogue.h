// What there is by name: congestion controls, queue disciplines, kinds of agents. The file that brings one ends in an
// Entry, and nothing else has to know of it:
//
//   const Entry<CongestionControlRecord> entry{{.name = "mine", ...}};
//
// (The core is an object library: the linker takes every file of it, and so every entry.)
#pragma once
#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netbuf {

// Record: has a name, and calls itself Record::kWhat in messages.
template <class Record>
class Catalogue {
 public:
  // In the order of their names, whatever the linker did.
  static const std::vector<const Record*>& all() { return list(); }

  static const Record* find(std::string_view name) {
    for (const Record* record : list()) {
      if (record->name == name) return record;
    }
    return nullptr;
  }

  // Throws std::invalid_argument "FIELD = name: must be one of ..."
  static const Record& get(std::string_view name, const std::string& field) {
    if (const Record* record = find(name)) return *record;
    std::string message = field + " = " + std::string(name) + ": must be one of";
    for (const Record* record : list()) message.append(" ").append(record->name);
    throw std::invalid_argument(message);
  }

  static void add(const Record* record) {
    auto& records = list();
    const auto at = std::lower_bound(records.begin(), records.end(), record,
                                     [](const Record* a, const Record* b) { return a->name < b->name; });
    if (at != records.end() && (*at)->name == record->name) {
      throw std::logic_error("there are two files for the " + std::string(Record::kWhat) + " " +
                             std::string(record->name));
    }
    records.insert(at, record);
  }

 private:
  static std::vector<const Record*>& list() {
    static std::vector<const Record*> records;  // made by whichever entry comes first
    return records;
  }
};

template <class Record>
class Entry {
 public:
  explicit Entry(Record record) : record_(std::move(record)) { Catalogue<Record>::add(&record_); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  const Record record_;
};

}  // namespace netbuf
