// Reading weights inside kernels: a row of any element type in units of a few words, decoded into
// packed bytes with scales or into floats.
//
// A unit is what one lane loads at once: 16 bytes of a row, or as near as the type allows. Block
// types are read from planes (base/types/gpu_block_layout.h), plain types as they are. Loading and
// decoding are apart, so that many loads can be under way before the first is used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types/gpu_block_layout.h"
#include "prism/element_type.h"
#include "prism/kernel.h"

namespace prism::ops {

// What the kernel's params say about a weight matrix, in words of 32 bits. The same for every
// matrix of one type and width, so two matrices of a kernel share them.
struct WeightParams {
  // Declares the params: block types row_words, high_at, scales_at, factors_at; plain types none.
  // suffix: of their names, where a kernel has those of several types.
  explicit WeightParams(ElementType type, const std::string& suffix = {});
  std::vector<dsl::Value> values;
  // What a launch passes for them, in the same order; k: elements of a row.
  static std::vector<uint32_t> for_launch(ElementType type, uint64_t k);
};

// One unit of a block type: element 4q + b is byte b of quads[q], and its value is
// scale * byte - minus, of the part that it lies in.
struct BlockUnit {
  struct Part {
    dsl::Value scale;
    std::optional<dsl::Value> minus;
  };
  std::vector<dsl::Value> quads;  // signed bytes
  std::vector<Part> parts;        // each of as many quads
};

class WeightReader {
 public:
  // The buffer's element is u32 for block types and the type itself for plain ones. aligned: of
  // plain types, rows begin at multiples of 16 bytes and k is a multiple of the unit.
  WeightReader(ElementType type, const dsl::In& buffer, const WeightParams& params, dsl::Value k,
               bool aligned = true);

  static uint32_t unit_elements(ElementType type);
  static uint32_t parts_of_unit(ElementType type);  // block types
  static bool has_minus(ElementType type);          // block types
  // The words that a unit takes in registers between load and decode.
  static uint32_t unit_words(ElementType type, bool aligned = true);

  // The raw words of one unit; zeros where wanted is false, which decode to the value zero.
  std::vector<dsl::Value> load(dsl::Value wanted, dsl::Value row, dsl::Value unit) const;
  BlockUnit decode_block(const std::vector<dsl::Value>& words, dsl::Value unit) const;
  std::vector<dsl::Value> decode_plain(const std::vector<dsl::Value>& words) const;
  // The unit's elements as f32, whatever the type.
  std::vector<dsl::Value> decode(const std::vector<dsl::Value>& words, dsl::Value unit) const;

 private:
  ElementType type_;
  dsl::In buffer_;
  std::vector<dsl::Value> params_;
  dsl::Value k_;
  bool aligned_;
};

}  // namespace prism::ops
