// What every command that runs a model asks for: which model, on which device, with what limits.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command_line.h"
#include "cli/fit_options.h"
#include "prism/llm/language_model.h"

namespace prism::cli {

struct ModelArguments {
  FitChoice choice;
  int64_t batch = 512;
  bool quiet = false;
};

void add_model_arguments(const Command& command, ModelArguments& arguments);

// Loads the model, with progress and the line on device and reason on standard error (nothing if
// quiet). slots: texts at once.
llm::LanguageModel open_model(const ModelArguments& arguments, int64_t slots = 1);

// "memory: cuda:0 4.10 GB (weights 3.90, cache 0.15, work 0.05)", a device after the other.
std::string memory_text(const llm::LanguageModel& model);
// "5 prompt tokens at 120.3/s, first token after 0.05 s; 60 tokens at 45.1/s".
std::string statistics_text(const llm::GenerationStatistics& statistics);

// The text of -p, of the file of -f ("-": standard input), or of standard input where neither was
// given.
struct TextArguments {
  std::string text, file;
  bool has_text = false;
};
void add_text_arguments(const Command& command, TextArguments& arguments, const std::string& what);
std::string read_text(const TextArguments& arguments);
std::string read_file_or_input(const std::string& path);  // "-": standard input

// While it lives, an interrupt (Ctrl-C) ends what the model generates; a second one before the
// text has ended ends the program.
class InterruptGuard {
 public:
  explicit InterruptGuard(llm::LanguageModel& model);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool interrupted() const;
};

}  // namespace prism::cli
