// Turns valgrind's counting on and off, for benchmarks/instructions.cc and, as a shared library, for Python.
#include <valgrind/callgrind.h>

extern "C" {
void start_counting() {
  CALLGRIND_START_INSTRUMENTATION;
}
void stop_counting() {
  CALLGRIND_STOP_INSTRUMENTATION;
}
}
