// The options of a command on how text is generated: samplers, grammar, where it stops.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "prism/llm/generation.h"

namespace prism::cli {

struct SamplingArguments {
  llm::GenerationOptions options;
  std::string stages, grammar, grammar_file, schema, schema_file;
  std::vector<std::string> biases, stops;
  bool has_seed = false, keeps_greedy = false;
};

void add_sampling_arguments(const Command& command, SamplingArguments& arguments);

// What they say; without --seed a new one each time. Throws kInvalidArgument.
llm::GenerationOptions generation_options(const SamplingArguments& arguments);

}  // namespace prism::cli
