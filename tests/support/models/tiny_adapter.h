// Random LoRA adapters for tiny models, as files and as changes of the float64 reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"
#include "support/models/reference_model.h"

namespace prism::test {

struct TinyAdapter {
  int64_t rank = 3;
  double alpha = 6;
  uint32_t seed = 1;
  std::string architecture = {};          // empty: that of the model
  std::vector<std::string> tensors = {};  // empty: all matrices of the layers and of the output
};

// The matrices of the layers and of the output in a file.
std::vector<std::string> adapted_tensors(const llm::GgufFile& model);
// Writes an adapter for the model, and adds its change times the scale to the reference.
void write_adapter(const llm::GgufFile& model, const TinyAdapter& adapter, const std::string& path,
                   double scale, ReferenceModel& reference);

}  // namespace prism::test
