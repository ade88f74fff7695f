// What the recurrent ops share: the rows of the texts of a batch, on the host and in kernels.
#pragma once

#include <span>
#include <vector>

#include "prism/kernel.h"
#include "prism/tensor.h"
#include "tensor/op.h"

namespace prism::ops {

// Throws kInvalidArgument naming the op unless the state can be changed in place and texts are i32
// [texts, 4].
void check_texts(const char* op, const Tensor& state, const Tensor& texts);
// Throws kInvalidArgument naming the op if an input is not f32.
void check_all_f32(const char* op, std::span<const Tensor> inputs);

struct TextRows {
  int64_t first = 0, count = 0, state = 0;
};
// The texts that have rows. Throws kInvalidArgument naming the op if one is out of range.
std::vector<TextRows> read_texts(const char* op, const HostView& texts, int64_t rows,
                                 int64_t states);
// Makes the rows of y after those of all texts zero.
void clear_other_rows(const HostView& y, std::span<const TextRows> texts);

// --- in a kernel: the rows of an input, which may be parts of longer ones; two parameters
struct RowPlaces {
  dsl::Value stride = dsl::param("stride", dsl::u32), start = dsl::param("start", dsl::u32);
  dsl::Value at(const dsl::Value& row) const { return start + row * stride; }
};

// --- in a kernel: the text of this group along axis 1
struct KernelTexts {
  dsl::In texts;
  dsl::Value first() const { return word(0); }
  dsl::Value count() const { return word(1); }
  dsl::Value state() const { return word(3); }
  dsl::Value word(uint32_t i) const { return texts[dsl::group_id(1) * 4u + i]; }
  // Calls clear(row) for each row after those of all texts, in the groups of the first text.
  void for_other_rows(const dsl::Value& count, const dsl::Value& rows,
                      const std::function<void(dsl::Value)>& clear) const;
};

}  // namespace prism::ops
