// The tensors of a converted file: which tensors of the folder each is made of, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "llm/convert/hf_architectures.h"
#include "llm/convert/hf_folder.h"
#include "prism/element_type.h"
#include "prism/shape.h"

namespace prism {
class ThreadPool;
}

namespace prism::llm {

struct PlannedTensor {
  std::string name;
  Shape shape;
  ElementType type = DType::f32;                 // in the folder
  std::vector<const SafetensorsEntry*> sources;  // stacked in this order; empty: computed
  TensorChange change = TensorChange::none;
  int64_t head_length = 0;      // for TensorChange::rotary and split_heads
  int64_t skipped_rows = 0;     // of the source, for TensorChange::cut
  std::vector<float> computed;  // the elements, if there is no source
};

// Assigns the tensors of the folder to those of the file, in the order of its layers. context: the
// rows of position tables that are kept. Throws kNotSupported naming a tensor that no rule
// mentions.
std::vector<PlannedTensor> plan_tensors(const HfArchitecture& architecture, const HfFolder& folder,
                                        int64_t context);

// Gives the elements, encoded as `type`, to the sink in order, some megabytes at a time.
void produce(const PlannedTensor& tensor, ElementType type, ThreadPool& pool,
             const std::function<void(std::span<const std::byte>)>& sink);

}  // namespace prism::llm
