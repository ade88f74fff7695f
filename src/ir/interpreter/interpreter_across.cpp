// Cross-lane steps: subgroup reductions, scans and shuffles, and group reductions.
#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "ir/interpreter/interpreter_half.h"
#include "ir/interpreter/interpreter_ops.h"

namespace prism::ir::vm {
namespace {

template <class T, bool half>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return a < b ? b : a;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case ReduceOp::bit_and:
        return a & b;
      case ReduceOp::bit_or:
        return a | b;
      case ReduceOp::bit_xor:
        return a ^ b;
      default:
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    }
  } else if constexpr (half) {
    return round_half(a + b);
  } else {
    return a + b;
  }
}

template <class T, bool half>
T identity(ReduceOp op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case ReduceOp::min:
      return std::is_floating_point_v<T> ? Limits::infinity() : Limits::max();
    case ReduceOp::max:
      return std::is_floating_point_v<T> ? -Limits::infinity() : Limits::lowest();
    case ReduceOp::bit_and:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(~T(0));
      return T(0);
    default:
      return T(0);
  }
}

// A butterfly reduction, as on devices: every lane ends with the same bits.
template <class T, bool half>
T reduce_tree(ReduceOp op, T* values, uint32_t count) {
  while (count > 1) {
    const uint32_t upper = std::bit_ceil(count) / 2;
    for (uint32_t i = 0; i + upper < count; ++i)
      values[i] = combine<T, half>(op, values[i], values[i + upper]);
    count = upper;
  }
  return values[0];
}

template <class T, bool half>
const Step* subgroup_reduce(const Step* s, Frame& f) {
  T* out = f.at<T>(s->args[0]);
  const T* a = f.at<T>(s->args[1]);
  std::array<T, 64> values;
  for (uint32_t first = 0; first < f.lanes; first += f.subgroup) {
    const uint32_t count = std::min(f.subgroup, f.lanes - first);
    std::copy_n(a + first, count, values.begin());
    std::fill_n(out + first, count,
                reduce_tree<T, half>(static_cast<ReduceOp>(s->bits), values.data(), count));
  }
  return s + 1;
}

template <class T, bool half>
const Step* subgroup_scan(const Step* s, Frame& f) {
  T* out = f.at<T>(s->args[0]);
  const T* a = f.at<T>(s->args[1]);
  const ReduceOp op = static_cast<ReduceOp>(s->bits);
  const bool exclusive = s->object == 1;
  T start = identity<T, half>(op);
  if (s->inst->type.element == DType::b1 && op == ReduceOp::bit_and)
    start = T(1);  // true is 1, not all ones
  T running{};
  for (uint32_t i = 0; i < f.lanes; ++i) {
    const bool first = i % f.subgroup == 0;
    if (exclusive) {
      out[i] = first ? start : running;
      running = first ? a[i] : combine<T, half>(op, running, a[i]);
    } else {
      out[i] = running = first ? a[i] : combine<T, half>(op, running, a[i]);
    }
  }
  return s + 1;
}

// The lane number wraps within the subgroup; a lane missing from a partial last subgroup gives the
// reader's own value.
template <class T, bool half>
const Step* subgroup_shuffle(const Step* s, Frame& f) {
  T* out = f.at<T>(s->args[0]);
  const T* a = f.at<T>(s->args[1]);
  const uint32_t* lane = s->inst->op == Op::subgroup_shuffle ? f.at<uint32_t>(s->args[2]) : nullptr;
  for (uint32_t i = 0; i < f.lanes; ++i) {
    const uint32_t within = lane ? lane[i] : i ^ static_cast<uint32_t>(s->bits);
    const uint32_t source = (i & ~(f.subgroup - 1)) | (within & (f.subgroup - 1));
    out[i] = a[source < f.lanes ? source : i];
  }
  return s + 1;
}

// Sixteen partial results, then a tree: the order does not depend on the subgroup size.
template <class T, bool half>
const Step* group_reduce(const Step* s, Frame& f) {
  const T* a = f.at<T>(s->args[1]);
  const ReduceOp op = static_cast<ReduceOp>(s->bits);
  std::array<T, 16> values;
  const uint32_t count = std::min(f.lanes, 16u);
  std::copy_n(a, count, values.begin());
  for (uint32_t i = 16; i < f.lanes; ++i)
    values[i % 16] = combine<T, half>(op, values[i % 16], a[i]);
  *f.at<T>(s->args[0]) = reduce_tree<T, half>(op, values.data(), count);
  return s + 1;
}

template <class T, bool half = false>
Run across(Op op) {
  switch (op) {
    case Op::subgroup_reduce:
      return subgroup_reduce<T, half>;
    case Op::subgroup_scan:
      return subgroup_scan<T, half>;
    case Op::subgroup_shuffle:
    case Op::subgroup_shuffle_xor:
      return subgroup_shuffle<T, half>;
    case Op::group_reduce:
      return group_reduce<T, half>;
    default:
      return nullptr;
  }
}

}  // namespace

Run find_across(Op op, DType type) {
  switch (type) {
    case DType::b1:
    case DType::u32:
      return across<uint32_t>(op);
    case DType::i32:
      return across<int32_t>(op);
    case DType::u64:
      return across<uint64_t>(op);
    case DType::i64:
      return across<int64_t>(op);
    case DType::f16:
      return across<float, true>(op);
    case DType::f32:
      return across<float>(op);
    case DType::f64:
      return across<double>(op);
    default:
      return nullptr;
  }
}

}  // namespace prism::ir::vm
