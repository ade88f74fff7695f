// Indices as ops over them read them: checked on the CPU, clamped to "nothing" in kernels.
#pragma once

#include <cstdint>

#include "prism/kernel.h"
#include "tensor/op.h"

namespace prism::ops {

// Throws kInvalidArgument naming op where indices are no i32 or i64.
void check_index_type(const char* op, const Tensor& indices);

// Throws kInvalidArgument naming op where base cannot be changed in place: it must be a whole
// tensor that has its values and is no input of a compiled function.
void check_changeable(const char* op, const Tensor& base);

// Dense indices in host memory.
class HostIndices {
 public:
  // rows: what an index must be below.
  HostIndices(const char* op, const HostView& view, int64_t rows);
  int64_t count() const { return count_; }
  int64_t operator[](int64_t i) const;  // throws kInvalidArgument for one outside
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

// The buffer of indices is bound as words, whatever their type: devices without 64-bit integers
// read i64 too. Gives u32; an index that is negative or beyond 32 bits is the largest number, so
// that one comparison tells whether it is inside.
dsl::Value load_index(const dsl::In& words, dsl::Value i, bool wide);

inline bool is_wide(ElementType type) { return type == ElementType(DType::i64); }

}  // namespace prism::ops
