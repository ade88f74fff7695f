// Reads weights in kernels: a row of any element type in units of a few words, decoded to packed
// bytes with scales or to floats.
//
// A unit is what one lane loads at once: 16 bytes of a row, or as close as the type allows. Block
// types are read from planes (base/types/gpu_block_layout.h), plain types directly. Loading and
// decoding are separate, so that many loads can be in flight before the first is used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types/gpu_block_layout.h"
#include "prism/element_type.h"
#include "prism/kernel.h"

namespace prism::ops {

// The params that describe a weight matrix, in 32-bit words. They depend only on type and width, so
// two such matrices of a kernel share them.
struct WeightParams {
  // Declares the params: block types row_words, high_at, scales_at, factors_at; plain types none.
  // suffix: appended to the names if a kernel has weights of several types.
  explicit WeightParams(ElementType type, const std::string& suffix = {});
  std::vector<dsl::Value> values;
  // The values that a launch passes, in the same order; k: elements per row.
  static std::vector<uint32_t> for_launch(ElementType type, uint64_t k);
};

// One unit of a block type: element 4q + b is byte b of quads[q], and its value is scale * byte -
// minus, with the scale and minus of its part.
struct BlockUnit {
  struct Part {
    dsl::Value scale;
    std::optional<dsl::Value> minus;
  };
  std::vector<dsl::Value> quads;  // signed bytes
  std::vector<Part> parts;        // each covers the same number of quads
};

// The scale and minus (without the zero of the format) of one part. words: of the scales plane,
// then of the factors plane; for headers all four words. Indices: of the part's scale and of its
// factor in the row.
BlockUnit::Part block_part(const PlaneFormat& format, const std::vector<dsl::Value>& words,
                           dsl::Value scale_index, dsl::Value factor_index);

class WeightReader {
 public:
  // The buffer's element is u32 for block types and the type itself for plain ones. aligned: for
  // plain types, rows start at multiples of 16 bytes and k is a multiple of the unit.
  WeightReader(ElementType type, const dsl::In& buffer, const WeightParams& params, dsl::Value k,
               bool aligned = true);

  static uint32_t unit_elements(ElementType type);
  static uint32_t parts_of_unit(ElementType type);  // block types
  static bool has_minus(ElementType type);          // block types
  // The registers, in words, that a unit takes between load and decode.
  static uint32_t unit_words(ElementType type, bool aligned = true);

  // The raw words of one unit; zeros if not wanted, which decode to zero.
  std::vector<dsl::Value> load(dsl::Value wanted, dsl::Value row, dsl::Value unit) const;
  BlockUnit decode_block(const std::vector<dsl::Value>& words, dsl::Value unit) const;
  std::vector<dsl::Value> decode_plain(const std::vector<dsl::Value>& words) const;
  // The unit's elements as f32, for any type.
  std::vector<dsl::Value> decode(const std::vector<dsl::Value>& words, dsl::Value unit) const;

 private:
  ElementType type_;
  dsl::In buffer_;
  std::vector<dsl::Value> params_;
  dsl::Value k_;
  bool aligned_;
};

}  // namespace prism::ops
