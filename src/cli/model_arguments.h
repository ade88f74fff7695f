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
  std::string speculate;  // "ngram", a model, or empty
  std::vector<std::string> lora;
  int64_t batch = 512;
  bool quiet = false, verbose = false;
  std::string prompt_cache, prompt_cache_size = "8G";
};

// takes_model: see add_fit_options.
void add_model_arguments(const Command& command, ModelArguments& arguments,
                         bool takes_model = true);

// The adapters of --lora.
std::vector<llm::LoraAdapter> adapters(const ModelArguments& arguments);
// For the commands that generate text: --prompt-cache and --prompt-cache-size.
void add_prompt_cache_arguments(const Command& command, ModelArguments& arguments);
void set_prompt_cache(const ModelArguments& arguments, llm::LoadOptions& options);
// --speculate, for commands that generate text.
void add_speculate_argument(const Command& command, ModelArguments& arguments);
// The file of its model is fetched if it is missing; "ngram" and "" stay as they are.
std::string speculate_path(const ModelArguments& arguments);

// Loads the model. Unless quiet, progress and one line on model and device go to standard error;
// verbose adds the reason for the device. slots: number of concurrent texts.
llm::LanguageModel open_model(const ModelArguments& arguments, int64_t slots = 1);

// A chat template that replaces that of the model, from --chat-template or --chat-template-file,
// and variables for it.
struct TemplateArguments {
  std::string text, file, variables;
};
void add_template_arguments(const Command& command, TemplateArguments& arguments);
// Returns the template; empty: the model's own.
std::string template_text(const TemplateArguments& arguments);
// Returns the variables as a JSON object; empty: none. Throws kInvalidArgument for other text.
std::string template_variables(const TemplateArguments& arguments);
// Loads the model as open_model does, and gives it the template.
llm::LanguageModel open_model(const ModelArguments& arguments, const TemplateArguments& chat);

// "memory: cuda:0 4.10 GB (weights 3.90, cache 0.15, work 0.05)", one device after the other.
std::string memory_text(const llm::LanguageModel& model);
// "5 prompt tokens at 120.3/s, first token after 0.05 s; 60 tokens at 45.1/s".
std::string statistics_text(const llm::GenerationStatistics& statistics);

// A text: from -p or a plain argument, from the file of -f ("-": standard input), or else from
// standard input.
struct TextArguments {
  std::string text, file;
  bool has_text = false;
};
// argument: the name of a plain argument that stands for -p; empty: there is none.
void add_text_arguments(const Command& command, TextArguments& arguments, const std::string& what,
                        const std::string& argument = {});
std::string read_text(const TextArguments& arguments);
// Reads a prompt. One newline at the end of a file or of standard input is not part of it. Throws
// kInvalidArgument if there is nothing in it.
std::string read_prompt(const TextArguments& arguments);

}  // namespace prism::cli
