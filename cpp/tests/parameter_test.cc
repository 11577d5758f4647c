#include "netbuf/parameter.h"

#include <cmath>
#include <stdexcept>

#include "check.h"

using namespace netbuf;

namespace {

const std::vector<Parameter> kKnown{real("gain", 0.5, 0.1, 2, "a gain"), whole("count", 3, 1, 9, "a count"),
                                    truth("on", true, "whether"),
                                    real("limit", kAutomatic, 1, 100, "a limit"),
                                    whole("odd", 7, 0, 10, "there only").only(Stack::ns3)};

std::string refusal(const Given& given, std::optional<Stack> stack = {}) {
  try {
    Parameters(kKnown, given, "it", stack);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(what_is_given_replaces_the_defaults) {
  const Parameters none(kKnown, {}, "it");
  CHECK_EQ(none["gain"], 0.5);
  CHECK_EQ(none.as<uint32_t>("count"), 3u);
  CHECK(none.is("on"));
  CHECK(none.automatic("limit"));
  CHECK_EQ(none.or_else("limit", 42), 42);
  const Parameters some(kKnown, {{"gain", 2}, {"on", 0}, {"limit", 5}}, "it");
  CHECK_EQ(some["gain"], 2.0);
  CHECK_EQ(some["count"], 3.0);
  CHECK(!some.is("on"));
  CHECK_EQ(some.or_else("limit", 42), 5.0);
}

TEST(what_a_record_does_not_have_is_named_with_what_it_has) {
  const auto lack = [](const Parameters& parameters) -> std::string {
    try {
      parameters["colour"];
    } catch (const std::out_of_range& error) {
      return error.what();
    }
    return "";
  };
  CHECK_EQ(lack(Parameters(kKnown, {}, "it")), "no parameter colour; valid: gain, count, on, limit, odd");
  CHECK_EQ(lack(Parameters()), "no parameter colour; valid: none, the record has no parameters");
}

TEST(a_default_is_of_its_own_range) {
  const auto refused = [](const Parameter& parameter) -> std::string {
    try {
      check_defaults({parameter}, "its");
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  for (const Parameter& parameter : kKnown) CHECK_EQ(refused(parameter), "");
  CHECK_EQ(refused(real("gain", 0.1, 0.5, 1000, "a gain")), "its[gain]: its default 0.1 must be in [0.5, 1000]");
  CHECK_EQ(refused(whole("count", 1.5, 1, 9, "a count")),
           "its[count]: its default 1.5 must be a whole number in [1, 9]");
}

TEST(what_cannot_be_is_named_with_what_can) {
  CHECK_EQ(refusal({{"gain", 2.5}}), "it[gain] = 2.5: must be in [0.1, 2]");
  CHECK_EQ(refusal({{"gain", NAN}}), "it[gain] = nan: must be in [0.1, 2]");
  CHECK_EQ(refusal({{"count", 2.5}}), "it[count] = 2.5: must be a whole number in [1, 9]");
  CHECK_EQ(refusal({{"on", 2}}), "it[on] = 2: must be 0 or 1");
  CHECK_EQ(refusal({{"limit", NAN}}), "it[limit] = nan: must be in [1, 100]");
  CHECK_EQ(refusal({{"colour", 1}}), "it[colour] = 1: must be one of gain count on limit odd");
  CHECK_THROWS(Parameters({}, {{"colour", 1}}, "it"), std::invalid_argument);
}

TEST(a_stack_has_its_own) {
  CHECK_EQ(refusal({{"odd", 1}}, Stack::linux_kernel), "it[odd] = 1: must be one of gain count on limit");
  CHECK_EQ(refusal({{"odd", 1}}, Stack::ns3), "");
  CHECK_THROWS(Parameters(kKnown, {}, "it", Stack::linux_kernel)["odd"], std::out_of_range);
  CHECK(stack_of("ns3") == Stack::ns3);
  CHECK_EQ(name_of(Stack::linux_kernel), "linux");
  CHECK_THROWS(stack_of("bsd"), std::invalid_argument);
}
