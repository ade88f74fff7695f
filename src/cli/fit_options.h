// The options of every command that loads a model: which one, where it goes, and how much memory it
// may have.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command_line.h"
#include "prism/llm/fit.h"

namespace prism::cli {

struct FitChoice {
  std::string model;  // empty: the default one
  std::string device = "auto", kv_type, memory_margin;
  int64_t gpu_layers = -1, context = 0, min_context = 0;  // -1 and 0: not said
  bool cpu_experts = false;
  uint32_t threads = 0;  // of the CPU's kernels; 0: not said

  // Throws kInvalidArgument for words that mean nothing. Sets PRISM_THREADS where threads were
  // said, so call it before tensors are used.
  llm::FitOptions options() const;
};

// [MODEL] and -m, --device (--backend), --gpu-layers (-ngl, --n-gpu-layers), --threads, --context,
// --min-context, --memory-margin, --kv-type, --cpu-experts. choice must live as long as command.
void add_fit_options(const Command& command, FitChoice& choice);

// Bytes of "512M", "1.5G", "2GB", "100000".
uint64_t parse_size(const std::string& text, const std::string& option);

}  // namespace prism::cli
