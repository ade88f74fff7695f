// The instruction sets this processor supports, so that tests can run on all of them.
#pragma once

#include <cstdint>
#include <vector>

namespace prism::cpu {

std::vector<int64_t> simd_targets();           // best first
const char* simd_target_name(int64_t target);  // "AVX2"
const char* simd_target_in_use();

// Restricts kernels to one instruction set during its lifetime. For tests, before kernels run on
// other threads.
class UseSimdTarget {
 public:
  explicit UseSimdTarget(int64_t target);
  ~UseSimdTarget();
  UseSimdTarget(const UseSimdTarget&) = delete;
  UseSimdTarget& operator=(const UseSimdTarget&) = delete;
};

}  // namespace prism::cpu
