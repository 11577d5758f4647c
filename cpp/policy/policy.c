// The integer policy as a shared library: cc -O2 -shared -fPIC policy.c -o policy.so
#include "policy.h"

uint64_t netbuf_policy_bytes(void) { return sizeof(struct nb_policy); }
uint64_t netbuf_state_bytes(void) { return sizeof(struct nb_state); }

// Begins a connection, with a window and segments of so many bytes; `state` is zeroed memory of netbuf_state_bytes().
// Returns the action that is decided on, while there is nothing to decide.
uint32_t netbuf_policy_start(const struct nb_policy *policy, struct nb_state *state, int64_t cwnd, int64_t mss) {
  return nb_start(policy, state, cwnd, mss);
}

// Decides at the end of an interval: the window in bytes, 0 where it stays as it is. `action`: written.
int64_t netbuf_policy_step(const struct nb_policy *policy, struct nb_state *state, const struct nb_interval *interval,
                           uint32_t *action) {
  return nb_step(policy, state, interval, action);
}

// The network alone, on features that stand in `x`, in 2^-20, those of the oldest interval first.
uint32_t netbuf_policy_infer(const struct nb_policy *policy, struct nb_state *state, const int32_t *x) {
  for (uint32_t i = 0; i < policy->inputs && i < NB_INPUTS; ++i) state->x[i] = x[i];
  return nb_infer(policy, state);
}
