// SYCL for the host compiler: the subset that printed text uses.
#pragma once

#include "../../fibers.h"
#include "../../math_names.h"

#define SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(property)

namespace sycl {

using shim::half;
using ::ceil, ::cos, ::exp, ::exp2, ::fabs, ::floor, ::fma, ::log, ::log2, ::rint, ::rsqrt, ::sin, ::sqrt, ::tanh, ::trunc;
using ::clz, ::popcount;
template <class To, class From> To bit_cast(From x) { return std::bit_cast<To>(x); }
template <class T> T mul_hi(T a, T b) { return shim::multiply_high(a, b); }

struct group {};
struct sub_group {
  size_t get_group_linear_id() const { return shim::machine.thread.x / shim::machine.launch.subgroup_size; }
  size_t get_local_linear_id() const { return shim::machine.thread.x % shim::machine.launch.subgroup_size; }
};
template <int dimensions> struct nd_item {
  static unsigned at(const shim::Index& index, int axis) { return axis == 2 ? index.x : axis == 1 ? index.y : index.z; }
  size_t get_group(int axis) const { return at(shim::machine.block, axis); }
  size_t get_group_range(int axis) const { return at(shim::machine.grid, axis); }
  size_t get_local_id(int axis) const { return at(shim::machine.thread, axis); }
  group get_group() const { return {}; }
  sub_group get_sub_group() const { return {}; }
};
inline void group_barrier(group) { shim::barrier(); }
template <class T> T select_from_group(sub_group, T x, unsigned lane) {
  return shim::shuffle(x, lane, shim::machine.launch.subgroup_size);
}
template <class T> T permute_group_by_xor(sub_group own, T x, unsigned mask) {
  return select_from_group(own, x, static_cast<unsigned>(own.get_local_linear_id()) ^ mask);
}

enum class memory_order { relaxed, acq_rel };
enum class memory_scope { device };
inline void atomic_fence(memory_order, memory_scope) {}
template <class T, memory_order, memory_scope> struct atomic_ref {
  T* p;
  explicit atomic_ref(T& x) : p(&x) {}
  T fetch_add(T x) { return shim::atomic_sum<T>(p, x); }
  T fetch_min(T x) { return shim::atomic_smaller<T>(p, x); }
  T fetch_max(T x) { return shim::atomic_larger<T>(p, x); }
  T fetch_and(T x) { return shim::atomic_both<T>(p, x); }
  T fetch_or(T x) { return shim::atomic_either<T>(p, x); }
  T fetch_xor(T x) { return shim::atomic_differing<T>(p, x); }
  T exchange(T x) { return shim::replace<T>(p, x); }
  bool compare_exchange_strong(T& expected, T x) {
    const T old = shim::atomic_compare<T>(p, expected, x);
    const bool same = old == expected;
    expected = old;
    return same;
  }
};

namespace ext::oneapi {
namespace this_work_item {
template <int dimensions> nd_item<dimensions> get_nd_item() { return {}; }
inline sub_group get_sub_group() { return {}; }
}  // namespace this_work_item
namespace experimental {
template <class T> class work_group_static {
 public:
  T* operator&() { return &data_; }

 private:
  T data_;
};
}  // namespace experimental
}  // namespace ext::oneapi
}  // namespace sycl
