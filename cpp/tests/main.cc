#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>

#include "check.h"

int main(int argc, char** argv) {
  auto& cases = check::cases();
  // In the order of the files' names, whatever the linker's was.
  std::stable_sort(cases.begin(), cases.end(),
                   [](const auto& a, const auto& b) { return std::strcmp(a.file, b.file) < 0; });
  int ran = 0;
  for (const auto& test : cases) {
    if (argc > 1 && std::filesystem::path(test.file).stem() != argv[1]) continue;
    if (argc > 2 && !std::strstr(test.name, argv[2])) continue;
    const int before = check::failures;
    try {
      test.body();
    } catch (const std::exception& error) {
      check::fail(test.file, 0, std::string("uncaught: ") + error.what());
    }
    std::printf("%s %s\n", check::failures == before ? "ok  " : "FAIL", test.name);
    std::fflush(stdout);
    ++ran;
  }
  std::printf("%d tests, %d failed checks\n", ran, check::failures);
  return check::failures || !ran ? 1 : 0;
}
