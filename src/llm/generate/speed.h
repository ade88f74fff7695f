// How fast a model is: prompts and decoding, timed, and what the device's memory and products
// allow.
#pragma once

#include <cstdint>

#include "llm/model/model.h"

namespace prism::llm {

// Seconds for a prompt of so many tokens, from an empty context, the best of `repeats`; plans are
// made before. Uses slot 0. Throws kInvalidArgument for more than the context holds.
double prompt_seconds(Model& model, int64_t tokens, int repeats = 3);
// Seconds for so many tokens, each chosen on the device, after `depth` others.
double decode_seconds(Model& model, int64_t depth, int64_t tokens, int repeats = 3);

// What one token costs at least.
struct TokenCost {
  double weight_bytes = 0;         // read once a step, whatever the batch
  double cache_bytes_a_token = 0;  // read for each token that stands before
  double operations = 0;           // of products
};
// Of a mixture the experts that a token uses; of the embedding one row.
TokenCost token_cost(const GgufFile& file, const Config& config, ElementType kv_type);

}  // namespace prism::llm
