// The tensors of a converted file: which tensors of the folder each is made of, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llm/convert/hf_architectures.h"
#include "llm/convert/hf_folder.h"
#include "llm/convert/scaled_weights.h"
#include "prism/element_type.h"
#include "prism/shape.h"

namespace prism::llm {

// Where the element [matrix, row, column] of a tensor is in its source, counted in elements.
struct Strides {
  int64_t first = 0, matrix = 0, row = 0, column = 1;
  int64_t rows = 1;                 // of a matrix of the tensor
  std::vector<int64_t> order = {};  // of the matrices in the source; empty: they keep theirs
};

// Value heads that are reordered: from key by key to one of each key at a time.
struct Tiles {
  int64_t first = 0, unit = 1;      // rows before them, rows of a head
  int64_t keys = 1, shared_by = 1;  // heads of keys, and of values for each
};

// The rows of each rank, which has some of several matrices.
struct Ranks {
  int64_t count = 1;
  std::vector<int64_t> rows = {};  // of each matrix
};

struct PlannedTensor {
  std::string name;
  Shape shape;
  ElementType type = DType::f32;                 // in the folder; f32 for 8 bits with scales
  std::vector<const SafetensorsEntry*> sources;  // stacked in this order; empty: computed
  std::vector<WeightScales> source_scales;       // of sources with 8 bits; empty: they have more
  TensorChange change = TensorChange::none;
  int64_t head_length = 0;  // for TensorChange::rotary, split_heads and split_groups
  int64_t rotated = 0;      // elements of a head, for TensorChange::rotary
  int64_t plain_rows = 0;   // at the end, for fused_rotary and rotary_groups
  int64_t shared_by = 1;    // heads of q for each of k and v, for split_groups
  std::optional<Tiles> tiles;
  std::optional<Ranks> ranks;
  std::optional<Strides> strides;                     // for changes that take a part of a source
  std::vector<const SafetensorsEntry*> block_scales;  // of MXFP4, for each source
  std::vector<std::vector<const SafetensorsEntry*>> shards;  // of each source; empty: whole
  std::vector<RowFactor> factors;                            // empty: none
  int64_t skipped_rows = 0;                                  // of the source, for TensorChange::cut
  std::vector<float> computed;                               // the elements, if there is no source
};

// Assigns the tensors of the folder to those of the file, in the order of its layers. context: the
// rows of position tables that are kept. Throws kNotSupported naming a tensor that no rule
// mentions.
std::vector<PlannedTensor> plan_tensors(const HfArchitecture& architecture, const HfFolder& folder,
                                        int64_t context);

}  // namespace prism::llm
