// Access to indices: the CPU checks them, kernels ignore those out of range.
#pragma once

#include <cstdint>

#include "prism/kernel.h"
#include "tensor/op.h"

namespace prism::ops {

// Throws kInvalidArgument naming op unless indices are i32 or i64.
void check_index_type(const char* op, const Tensor& indices);

// Throws kInvalidArgument naming op if base cannot be changed in place: it must be an evaluated
// whole tensor and no input of a compiled function.
void check_changeable(const char* op, const Tensor& base);

// Dense indices in host memory.
class HostIndices {
 public:
  // rows: the bound of valid indices.
  HostIndices(const char* op, const HostView& view, int64_t rows);
  int64_t count() const { return count_; }
  int64_t operator[](int64_t i) const;  // throws kInvalidArgument if out of range
  bool is_none(int64_t i) const { return raw(i) == -1; }

 private:
  int64_t raw(int64_t i) const {
    return wide_ ? reinterpret_cast<const int64_t*>(first_)[i]
                 : reinterpret_cast<const int32_t*>(first_)[i];
  }

  const char* op_;
  const std::byte* first_;
  bool wide_;
  int64_t count_, rows_;
};

// Reads an index as u32. The buffer is bound as words for both types, so that devices without
// 64-bit integers read i64 too. A negative index or one beyond 32 bits becomes the largest u32, so
// that one comparison tests the range.
dsl::Value load_index(const dsl::In& words, dsl::Value i, bool wide);

inline bool is_wide(ElementType type) { return type == ElementType(DType::i64); }

}  // namespace prism::ops
