// Models that Prism knows by name: their short names, and the sampling that their makers recommend.
#pragma once

#include <string>

#include "prism/llm/gguf.h"
#include "prism/llm/sampler.h"

namespace prism::llm {

// The values that a model needs for good answers. All others keep the defaults of SamplerOptions.
struct RecommendedSampling {
  float temperature = 0.8f;
  float top_p = 0.95f;
  float dry_multiplier = 0;  // above 0: the model repeats itself without it
};

// Returns the row of the table for this file, or null if the model is unknown.
const RecommendedSampling* recommended_sampling(const GgufFile& file);

// Returns a short name for people, such as "SmolLM2 135M"; general.name for unknown models, or the
// file's name if it has none.
std::string model_title(const GgufFile& file);

}  // namespace prism::llm
