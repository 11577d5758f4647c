// A congestion control that is a trained sender in integers (cpp/policy/policy.h), as the kernel runs it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "netbuf/stack.h"

struct nb_policy;

namespace netbuf {

// A policy's bytes, which connections share.
class CompiledPolicy {
 public:
  // Raises std::invalid_argument unless the bytes are a policy.
  CompiledPolicy(const void* bytes, size_t size);
  const nb_policy* get() const;

 private:
  std::vector<uint64_t> words_;
};

// Of one connection.
std::unique_ptr<CongestionControl> make_compiled_agent(std::shared_ptr<const CompiledPolicy> policy, Stack stack);

}  // namespace netbuf
