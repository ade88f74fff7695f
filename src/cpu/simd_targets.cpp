// Highway's list of instruction sets, and switching between them.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include "cpu/simd_targets.h"

#include <hwy/highway.h>

namespace prism::cpu {

std::vector<int64_t> simd_targets() {
  std::vector<int64_t> found;
  // Better sets have lower bits.
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    found.push_back(rest & -rest);
  return found;
}

const char* simd_target_name(int64_t target) { return hwy::TargetName(target); }

const char* simd_target_in_use() { return simd_target_name(simd_targets().front()); }

UseSimdTarget::UseSimdTarget(int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

UseSimdTarget::~UseSimdTarget() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace prism::cpu
