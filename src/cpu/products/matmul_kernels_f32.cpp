// The inner loops of f32 matrix products for every instruction set.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include "cpu/products/matmul_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/products/matmul_kernels_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/products/matmul_kernels_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

MatmulKernels<float> KernelsF32() { return kernels<float>(); }

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(KernelsF32);

template <>
MatmulKernels<float> matmul_kernels<float>() {
  return HWY_DYNAMIC_DISPATCH(KernelsF32)();
}

}  // namespace prism::cpu
#endif
