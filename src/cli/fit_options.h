// The options of every command that loads a model: which model, which devices, how much memory.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command_line.h"
#include "prism/llm/fit.h"

namespace prism::cli {

struct FitChoice {
  std::string model;                           // empty: the default model
  std::string default_title = "SmolLM2-135M";  // of that model, for the help
  std::string device = "auto", kv_type, memory_margin;
  int64_t gpu_layers = -1, context = 0, min_context = 0;  // -1 and 0: not given
  bool cpu_experts = false;
  uint32_t threads = 0;  // threads of the CPU's kernels; 0: not given

  // Throws kInvalidArgument for values that mean nothing. Sets PRISM_THREADS if threads were given,
  // so call it before tensors are used.
  llm::FitOptions options() const;
};

// Adds [MODEL] and -m, --device (--backend), --gpu-layers (-ngl, --n-gpu-layers), --threads,
// --context, --min-context, --memory-margin, --kv-type, --cpu-experts. choice must live as long as
// command. With takes_model = false the command has no argument for the model, only -m.
void add_fit_options(const Command& command, FitChoice& choice, bool takes_model = true);

// Returns the bytes of "512M", "1.5G", "2GB" or "100000".
uint64_t parse_size(const std::string& text, const std::string& option);

}  // namespace prism::cli
