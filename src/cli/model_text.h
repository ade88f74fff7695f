// Sizes, counts and progress bars in the output of commands.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "prism/llm/generation.h"

namespace prism::cli {

std::string count_text(uint64_t number);  // "135 M", "7.24 B"

// "3 s", "4 min", "2 h 5 min", "30 h".
std::string duration_text(double seconds);

// Bytes so far, measured from the first call for a label.
struct Transfer {
  uint64_t done = 0, all = 0;  // all 0: unknown
  double seconds = 0;          // since the first bytes were seen
  uint64_t first = 0;          // bytes already present at the start
};
// "label [####......]  45% of 93.8 MB, 12.3 MB/s, 4 s left", at most 79 columns wide.
std::string transfer_text(const std::string& label, const Transfer& transfer);

// "reading the prompt: 45% of 6,120 tokens, 4 s left".
std::string prompt_text(const llm::PromptProgress& progress);

// Shows prompt_text on standard error until the prompt has been read; only on a terminal.
void prompt_progress(const llm::PromptProgress& progress);

// Shows transfer_text on standard error and rewrites it in place; only on a terminal.
void progress_bar(const std::string& label, uint64_t done, uint64_t all);

}  // namespace prism::cli
