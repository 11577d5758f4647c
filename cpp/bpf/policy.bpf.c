// A trained sender in integers (cpp/policy/policy.h) in the kernel: one decision a call, on an interval that the caller
// has written, so that it can be compared with what the same source decides elsewhere. Weights and rules are in the map
// `policies`; one program runs networks of all kinds and sizes.
#include "integers.h"
#include "../policy/policy.h"

struct decision {
  struct nb_interval interval;
  long long start;           // not 0: the connection begins, with the interval's window and segments
  long long window;          // decided, bytes; 0: none
  u32 action, unused;
  struct nb_state state;
};

struct {
  NUMBER(type, MAP_ARRAY);
  NUMBER(map_flags, MMAPABLE);
  NUMBER(max_entries, 1);
  TYPE(key, u32);
  TYPE(value, struct nb_policy);
} policies SEC(".maps");

struct {
  NUMBER(type, MAP_ARRAY);
  NUMBER(map_flags, MMAPABLE);
  NUMBER(max_entries, 1);
  TYPE(key, u32);
  TYPE(value, struct decision);
} decisions SEC(".maps");

SEC("syscall")
int decide(void *ctx) {
  const u32 first = 0;
  const struct nb_policy *policy = map_lookup(&policies, &first);
  struct decision *made = map_lookup(&decisions, &first);
  if (!policy || !made) return 1;
  if (made->start) {
    made->window = 0;
    made->action = nb_start(policy, &made->state, made->interval.cwnd, made->interval.mss);
    return 0;
  }
  u32 action = 0;
  made->window = nb_step(policy, &made->state, &made->interval, &action);
  made->action = action;
  return 0;
}

char _license[] SEC("license") = "GPL";
