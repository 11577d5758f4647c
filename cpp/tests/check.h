// A unit-test header of one page. A test file includes it, writes
//
//   TEST(ring_grows_on_demand) { CHECK(ring.empty()); CHECK_EQ(ring.size(), 0u); }
//
// and is an executable: it runs every TEST in order (or those whose name contains argv[1]),
// prints each failed check with its values, and exits with 1 if any failed.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Case {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline int failures = 0;

struct Register {
  Register(const char* name, std::function<void()> body) { cases().push_back({name, body}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  ++failures;
  std::printf("%s:%d: %s\n", file, line, what.c_str());
}

template <class A, class B>
void compare(bool held, const A& a, const B& b, const char* text, const char* file, int line) {
  if (held) return;
  std::ostringstream out;
  out.precision(17);
  out << "failed: " << text << "   (" << a << " against " << b << ")";
  fail(file, line, out.str());
}

}  // namespace check

#define TEST(name)                                            \
  static void check_body_##name();                            \
  static check::Register check_case_##name(#name, check_body_##name); \
  static void check_body_##name()

#define CHECK(condition) \
  do { if (!(condition)) check::fail(__FILE__, __LINE__, "failed: " #condition); } while (0)

#define CHECK_OP(a, op, b)                                                             \
  do {                                                                                 \
    const auto& check_a = (a);                                                         \
    const auto& check_b = (b);                                                         \
    check::compare(check_a op check_b, check_a, check_b, #a " " #op " " #b, __FILE__, __LINE__); \
  } while (0)

#define CHECK_EQ(a, b) CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) CHECK_OP(a, <, b)
#define CHECK_LE(a, b) CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) CHECK_OP(a, >, b)
#define CHECK_GE(a, b) CHECK_OP(a, >=, b)

// |a - b| <= tolerance; false for NaN.
#define CHECK_NEAR(a, b, tolerance)                                                      \
  do {                                                                                   \
    const double check_a = (a), check_b = (b);                                           \
    check::compare(std::fabs(check_a - check_b) <= (tolerance), check_a, check_b,        \
                   #a " near " #b " within " #tolerance, __FILE__, __LINE__);            \
  } while (0)

#define CHECK_THROWS(statement, exception_type)                                          \
  do {                                                                                   \
    bool check_thrown = false;                                                           \
    try { statement; } catch (const exception_type&) { check_thrown = true; }            \
    if (!check_thrown)                                                                   \
      check::fail(__FILE__, __LINE__, #statement " did not throw " #exception_type);     \
  } while (0)

int main(int argc, char** argv) {
  int ran = 0;
  for (const auto& test : check::cases()) {
    if (argc > 1 && !std::strstr(test.name, argv[1])) continue;
    const int before = check::failures;
    try {
      test.body();
    } catch (const std::exception& error) {
      check::fail(__FILE__, __LINE__, std::string("uncaught: ") + error.what());
    }
    std::printf("%s %s\n", check::failures == before ? "ok  " : "FAIL", test.name);
    ++ran;
  }
  std::printf("%d tests, %d failed checks\n", ran, check::failures);
  return check::failures || !ran ? 1 : 0;
}
