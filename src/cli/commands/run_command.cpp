// `prism run`: generates text with a model.
#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_arguments.h"
#include "cli/model_text.h"
#include "cli/output.h"
#include "cli/sampling_arguments.h"
#include "cli/terminal.h"
#include "llm/generate/known_models.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  TextArguments text;
  TemplateArguments chat_template;
  std::string first, second;  // positional arguments: [MODEL] [PROMPT]
  std::string system;
  bool raw = false, json = false;
};

// Returns whether the only positional argument is a model and not a prompt.
bool names_model(const std::string& word) {
  if (llm::is_model_name(word) || !llm::find_model(word).empty()) return true;
  if (word.find_first_of(" \n") != word.npos) return false;
  std::vector<std::string> names = {llm::kDefaultModel};
  for (const llm::StoredModel& model : llm::stored_models()) names.push_back(model.name);
  if (const std::string near = nearest_name(word, names); !near.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is not a model; did you mean \"{}\"? To use the word as the "
                            "prompt, write: prism run -p {}",
                            word, near, word));
  return false;
}

// Sorts the positional arguments into model and prompt.
void sort_words(Options& o) {
  const bool has_prompt = o.text.has_text || !o.text.file.empty();
  if (o.first.empty()) return;
  std::string prompt = o.second;
  if (!o.model.choice.model.empty()) {  // -m
    if (!o.second.empty())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("two models: \"{}\" and \"{}\"; leave one of them out",
                              o.model.choice.model, o.first));
    prompt = o.first;
  } else if (!o.second.empty() || has_prompt || names_model(o.first)) {
    o.model.choice.model = o.first;
  } else {
    prompt = o.first;
  }
  if (prompt.empty()) return;
  if (has_prompt)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("two prompts: \"{}\" and that of {}; leave one of them out", prompt,
                            o.text.has_text ? "-p" : "-f"));
  o.text.text = prompt;
  o.text.has_text = true;
}

llm::Generation answer(const Options& o, llm::LanguageModel& model, const std::string& text,
                       const llm::GenerationOptions& options, const llm::TextCallback& write) {
  if (o.raw || !model.has_chat_template()) {
    if (!o.raw && !o.model.quiet)
      std::cerr << "the model has no chat template, so it gets the text as it stands\n";
    return model.generate(text, options, write);
  }
  std::vector<llm::ChatMessage> messages;
  if (!o.system.empty()) messages.push_back({.role = "system", .content = o.system});
  messages.push_back({.role = "user", .content = text});
  return model.chat(messages, options, write, {.extra = template_variables(o.chat_template)});
}

void print_json(const llm::LanguageModel& model, const llm::Generation& result) {
  const llm::GenerationStatistics& s = result.statistics;
  const Json statistics = {
      {"prompt_tokens", s.prompt_tokens},           {"reused_tokens", s.reused_tokens},
      {"restored_tokens", s.restored_tokens},       {"generated_tokens", s.generated_tokens},
      {"recomputed_tokens", s.recomputed_tokens},   {"proposed_tokens", s.proposed_tokens},
      {"accepted_tokens", s.accepted_tokens},       {"load_seconds", model.load_seconds()},
      {"prompt_seconds", s.prompt_seconds},         {"first_token_seconds", s.first_token_seconds},
      {"generation_seconds", s.generation_seconds}, {"prompt_tokens_per_second", s.prompt_rate()},
      {"tokens_per_second", s.generation_rate()}};
  std::cout << Json{{"model", llm::model_title(model.file())},
                    {"text", result.text},
                    {"tokens", result.tokens},
                    {"stop_reason", llm::stop_reason_name(result.reason)},
                    {"stop_text", result.stop},
                    {"statistics", statistics},
                    {"device", Json{{"id", model.device().id()}, {"name", model.device().name()}}}}
                   .dump(2)
            << "\n";
}

void print_statistics(const Options& o, const llm::LanguageModel& model,
                      const llm::Generation& result) {
  const auto dim = [](const std::string& text) {
    std::cerr << paint(Colour::dim, text, Stream::error) << "\n";
  };
  dim(fmt::format("{}; ended by {}", statistics_text(result.statistics),
                  llm::stop_reason_name(result.reason)));
  if (o.model.verbose) dim(memory_text(model));
  if (result.reason == llm::StopReason::context)
    std::cerr << fmt::format(
        "the context of {} tokens is full; --context gives more room, --context-shift goes on "
        "without the oldest tokens\n",
        model.context());
}

int run(Options o) {
  llm::GenerationOptions options = generation_options(o.sampling);
  sort_words(o);
  const std::string text = read_prompt(o.text);
  llm::LanguageModel model = open_model(o.model, o.chat_template);
  use_recommended_sampling(o.sampling, model.file(), options);
  if (o.model.verbose && !o.model.quiet) std::cerr << sampling_text(options.sampler) << "\n";
  if (!o.model.quiet) options.on_prompt = prompt_progress;
  const InterruptGuard guard(model);
  const llm::TextCallback write = [&](std::string_view piece) {
    return o.json || write_generated(piece);  // false: the reader has closed the pipe
  };
  const llm::Generation result = answer(o, model, text, options, write);
  end_progress();
  if (o.json)
    print_json(model, result);
  else if (!result.text.ends_with("\n"))
    std::cout << "\n";
  std::cout << std::flush;
  if (!o.model.quiet) print_statistics(o, model, result);
  return guard.interrupted() ? kInterrupted : kRight;
}

}  // namespace

void add_run_command(const Command& program) {
  const Command command = program.subcommand("run", "answer a prompt");
  auto options = std::make_shared<Options>();
  command.option("MODEL", options->first,
                 "a GGUF file, a Hugging Face folder, hf:user/repo:file.gguf, an address, or the "
                 "name of a fetched "
                 "model; may be left out");
  command.option("PROMPT", options->second, "the prompt; a prompt alone goes to the default model");
  add_text_arguments(command, options->text, "the prompt");
  command.option("--system", options->system, "instructions that precede the prompt");
  add_template_arguments(command, options->chat_template);
  command.flag("--raw", options->raw, "continue the prompt as it stands, without a chat template");
  command.flag("--json", options->json,
               "print one JSON object: text, tokens, stop_reason, statistics, device");
  add_model_arguments(command, options->model, false);
  add_prompt_cache_arguments(command, options->model);
  add_speculate_argument(command, options->model);
  add_sampling_arguments(command, options->sampling);
  command.footer(
      "Only the text goes to standard output, and it always ends with a newline. Everything else "
      "goes to standard error. Ctrl-C ends the answer.\nExamples:\n  prism run 'Why is the sky "
      "blue?'\n  prism run model.gguf 'Write a haiku about rain.' --temperature 0.7\n  prism run "
      "model.gguf -p 'Once upon a time' --raw -n 100 --temperature 0\n  prism run -f question.txt "
      "--json-schema '{\"type\": \"object\"}' --seed 7");
  command.run([options] { return run(*options); });
}

}  // namespace prism::cli
