// Atomic steps and async copies. Threads that run other groups share the buffers, but not shared
// memory.
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "ir/interpreter/interpreter_ops.h"

namespace prism::ir::vm {
namespace {

template <class T>
T combined(AtomicOp op, T old, T value) {
  switch (op) {
    case AtomicOp::min:
      return value < old ? value : old;
    case AtomicOp::max:
      return old < value ? value : old;
    case AtomicOp::exchange:
      return value;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case AtomicOp::bit_and:
        return old & value;
      case AtomicOp::bit_or:
        return old | value;
      case AtomicOp::bit_xor:
        return old ^ value;
      default:
        return static_cast<T>(static_cast<uint32_t>(old) + static_cast<uint32_t>(value));
    }
  } else {
    return old + value;
  }
}

// Returns true if target was old and is now value; otherwise sets old to target's value. Compares
// bits, as devices do.
template <class T>
bool exchange_if(T& target, T& old, T value) {
#if defined(__cpp_lib_atomic_ref)
  return std::atomic_ref<T>(target).compare_exchange_strong(old, value);
#else  // standard libraries without atomic_ref belong to compilers with this builtin
  return __atomic_compare_exchange(&target, &old, &value, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST);
#endif
}

template <class T>
T apply_between_threads(T& target, AtomicOp op, T value, T expected) {
  T old = expected;
  if (op == AtomicOp::compare_exchange) {
    exchange_if(target, old, value);
    return old;
  }
  while (!exchange_if(target, old, combined(op, old, value))) {
  }
  return old;
}

template <class T, bool shared>
const Step* atomic_step(const Step* s, Frame& f) {
  const MemoryView& memory = f.memories[s->object];
  T* data = reinterpret_cast<T*>(memory.data);
  T* out = f.at<T>(s->args[0]);
  const uint32_t* index = f.at<uint32_t>(s->args[1]);
  const T* value = f.at<T>(s->args[2]);
  const AtomicOp op = static_cast<AtomicOp>(s->bits);
  const T* expected = op == AtomicOp::compare_exchange ? f.at<T>(s->args[3]) : value;
  const Active active = active_lanes(*s, f);
  for (uint32_t i = 0; i < active.end; ++i) {
    if (!active.has(i)) continue;
    if (index[i] >= memory.length)
      fail_bounds(f, *s, s->object, index, 1, 1, memory.length, "elements");
    T& target = data[index[i]];
    if constexpr (shared) {
      const T old = target;
      if (op == AtomicOp::compare_exchange)
        target = old == expected[i] ? value[i] : old;
      else
        target = combined(op, old, value[i]);
      out[i] = old;
    } else {
      out[i] = apply_between_threads(target, op, value[i], expected[i]);
    }
  }
  return s + 1;
}

// With a size known at compile time a copy is one or two instructions.
void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      std::memcpy(to, from, bytes);
      return;
  }
}

// args: shared index, buffer index[, predicate]; bits: elements; object: shared, object2: buffer.
const Step* async_copy_step(const Step* s, Frame& f) {
  const MemoryView& to = f.memories[s->object];
  const MemoryView& from = f.memories[s->object2];
  const uint32_t* to_index = f.at<uint32_t>(s->args[0]);
  const uint32_t* from_index = f.at<uint32_t>(s->args[1]);
  const uint32_t* predicate = s->arg_count > 2 ? f.at<uint32_t>(s->args[2]) : nullptr;
  const size_t size = dtype_bytes(f.program->kernel.memories[s->object].element);
  const uint32_t elements = static_cast<uint32_t>(s->bits);
  const Active active = active_lanes(*s, f);
  for (uint32_t i = 0; i < active.end; ++i) {
    if (!active.has(i)) continue;
    if (uint64_t{to_index[i]} + elements > to.length)
      fail_bounds(f, *s, s->object, to_index, 1, elements, to.length, "elements");
    std::byte* target = to.data + to_index[i] * size;
    if (predicate && !predicate[i]) {
      std::memset(target, 0, elements * size);
      continue;
    }
    if (uint64_t{from_index[i]} + elements > from.length)
      fail(f, *s,
           fmt::format(
               "async_copy in lane {} reads {} elements at index {} of buffer {}, which has {}", i,
               elements, from_index[i], f.program->kernel.memories[s->object2].name, from.length));
    copy_bytes(target, from.data + from_index[i] * size, elements * size);
  }
  return s + 1;
}

}  // namespace

Run find_atomic(DType element, bool shared) {
  switch (element) {
    case DType::i32:
      return shared ? atomic_step<int32_t, true> : atomic_step<int32_t, false>;
    case DType::u32:
      return shared ? atomic_step<uint32_t, true> : atomic_step<uint32_t, false>;
    case DType::f32:
      return shared ? atomic_step<float, true> : atomic_step<float, false>;
    default:
      return nullptr;
  }
}

Run find_async_copy() { return async_copy_step; }

}  // namespace prism::ir::vm
