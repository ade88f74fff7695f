// Chooses tokens by rows of logits, each as its sequence samples: on the device or on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "llm/generate/sequence.h"
#include "prism/tensor.h"

namespace prism::llm {

class RowChooser {
 public:
  struct Row {
    Sequence* sequence = nullptr;
    int32_t position = 0;  // of the token that produced the logits
  };
  // logits: [rows, vocabulary]. Throws ModelFailure.
  RowChooser(const Tensor& logits, std::vector<Row> rows);
  // The token of a row, or kNoToken (finite.h). The sequence must have all tokens before it. Throws
  // ModelFailure, and what the sampler throws.
  int32_t token(size_t row);

 private:
  Tensor logits_;
  std::vector<Row> rows_;
  std::vector<Sampling> samplings_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> chosen_;  // if the device samples all rows
  std::vector<float> values_;    // otherwise
};

}  // namespace prism::llm
