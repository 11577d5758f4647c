// What cpp/policy/policy.h, which is included after this, asks of its compiler so that the verifier accepts it.
#pragma once
#include "kernel.h"

static long (*const loop)(u32 count, void *callback, void *argument, u64 flags) = (void *)181;

#define NB_INLINE inline_always
#define NB_SHARED __attribute__((noinline))
#define NB_EACH(count, function, argument) loop(count, function, argument, 0)
#define NB_UNROLL _Pragma("clang loop unroll(full)")
#define NB_FENCE asm volatile("" : : : "memory");
#define NB_HIDE(pointer) asm volatile("" : "+r"(pointer))
#define NB_IN_ORDER(sum) asm volatile("" : "+r"(sum) : : "memory")
