// The options that control how text is generated: samplers, grammar, and where it stops.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "prism/llm/generation.h"
#include "prism/llm/gguf.h"

namespace prism::cli {

struct SamplingArguments {
  llm::GenerationOptions options;
  std::string stages, grammar, grammar_file, schema, schema_file;
  std::vector<std::string> biases, stops;
  bool has_seed = false, has_temperature = false, has_top_p = false, has_penalty = false;
};

void add_sampling_arguments(const Command& command, SamplingArguments& arguments);

uint64_t random_seed();
// Reads the arguments; without --seed the seed is random. Throws kInvalidArgument.
llm::GenerationOptions generation_options(const SamplingArguments& arguments);

// For every option that was not given, uses the sampling that the makers of a known model recommend
// (llm/generate/known_models.h). Adds no penalty at temperature 0 or with a grammar, because both
// ask for one particular text.
void use_recommended_sampling(const SamplingArguments& arguments, const llm::GgufFile& file,
                              llm::GenerationOptions& options);

// "sampling: temperature 0.2, top-k 40, top-p 0.9, min-p 0.05, seed 7".
std::string sampling_text(const llm::SamplerOptions& options);

}  // namespace prism::cli
