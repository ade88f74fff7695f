// The speed of a model: times of prompts and decoding, and the limits that the device's memory and
// arithmetic set.
#pragma once

#include <cstdint>

#include "llm/model/model.h"

namespace prism::llm {

// Returns the seconds for a prompt of that many tokens in an empty context, the best of `repeats`,
// without planning. Uses slot 0. Throws kInvalidArgument if the context is too small.
double prompt_seconds(Model& model, int64_t tokens, int repeats = 3);
// Returns the seconds for decoding that many tokens after `depth` others. The device samples them.
double decode_seconds(Model& model, int64_t depth, int64_t tokens, int repeats = 3);

// The least work that one token needs.
struct TokenCost {
  double weight_bytes = 0;         // read once in each step, whatever the batch
  double cache_bytes_a_token = 0;  // read for each earlier token
  double operations = 0;           // of matrix products
};
// Counts only the experts that a token uses, and one row of the embedding.
TokenCost token_cost(const GgufFile& file, const Config& config, ElementType kv_type);

}  // namespace prism::llm
