// Compiles the file named by PRISM_OPS once for every instruction set that benefits from its own
// code.
//
// The file puts its functions into `namespace PRISM_ISA`. No include guard: each op family includes
// this once, after all other headers, because headers included under the target pragma would be
// compiled for that target too.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define PRISM_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PRISM_LOOP _Pragma("GCC ivdep")
#else
#define PRISM_LOOP
#endif

#define PRISM_ISA plain
#include PRISM_OPS
#undef PRISM_ISA

#if defined(__x86_64__) && defined(__GNUC__)
#define PRISM_HAS_AVX2 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#define PRISM_ISA avx2
#include PRISM_OPS
#undef PRISM_ISA
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

#if defined(PRISM_HAS_AVX2)
#define PRISM_DISPATCH(call) (::prism::ir::vm::use_avx2() ? avx2::call : plain::call)
#else
#define PRISM_DISPATCH(call) (plain::call)
#endif
