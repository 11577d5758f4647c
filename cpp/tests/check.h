// A unit-test header of one page. A test file keeps its helpers in an anonymous namespace and writes
//
//   TEST(ring_grows_on_demand) { CHECK(ring.empty()); CHECK_EQ(ring.size(), 0u); }
//
// All test files are one executable (main.cc): netbuf_tests [FILE [NAME]] runs every TEST in order, or those of one
// file, or of these the ones whose name contains NAME. ctest has an entry for each file.
#pragma once

#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Case {
  const char* file;
  const char* name;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline int failures = 0;

struct Register {
  Register(const char* file, const char* name, std::function<void()> body) { cases().push_back({file, name, body}); }
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
  static check::Register check_case_##name(__FILE__, #name, check_body_##name); \
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
