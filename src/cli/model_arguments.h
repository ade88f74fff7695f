// The options of every command that runs a model: which model, on which device, with what limits,
// and the text that the command works on.
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
  bool quiet = false, verbose = false;
};

// takes_model: see add_fit_options.
void add_model_arguments(const Command& command, ModelArguments& arguments,
                         bool takes_model = true);

// Loads the model. Unless quiet, progress and one line on model and device go to standard error;
// verbose adds the reason for the device. slots: number of concurrent texts.
llm::LanguageModel open_model(const ModelArguments& arguments, int64_t slots = 1);

// "memory: cuda:0 4.10 GB (weights 3.90, cache 0.15, work 0.05)", one device after the other.
std::string memory_text(const llm::LanguageModel& model);
// "5 prompt tokens at 120.3/s, first token after 0.05 s; 60 tokens at 45.1/s".
std::string statistics_text(const llm::GenerationStatistics& statistics);

// A text: from -p, from the file of -f ("-": standard input), or else from standard input.
struct TextArguments {
  std::string text, file;
  bool has_text = false;
};
void add_text_arguments(const Command& command, TextArguments& arguments, const std::string& what);
std::string read_text(const TextArguments& arguments);
// Reads a prompt. One newline at the end of a file or of standard input is not part of it. Throws
// kInvalidArgument if there is nothing in it.
std::string read_prompt(const TextArguments& arguments);
std::string read_file_or_input(const std::string& path);  // "-": standard input

}  // namespace prism::cli
