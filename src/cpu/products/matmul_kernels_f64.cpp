// The inner loops of f64 matrix products for every instruction set.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include "cpu/products/matmul_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/products/matmul_kernels_f64.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/products/matmul_kernels_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

MatmulKernels<double> KernelsF64() { return kernels<double>(); }

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(KernelsF64);

template <>
MatmulKernels<double> matmul_kernels<double>() {
  return HWY_DYNAMIC_DISPATCH(KernelsF64)();
}

}  // namespace prism::cpu
#endif
