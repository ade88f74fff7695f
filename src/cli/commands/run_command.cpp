// `prism run`: text from a model.
#include <iostream>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/model_arguments.h"
#include "cli/sampling_arguments.h"
#include "cli/terminal.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  TextArguments text;
  std::string system;
  bool raw = false;
};

constexpr int kInterrupted = 130;  // as shells report a program that Ctrl-C ended

int generate(const Options& o) {
  const llm::GenerationOptions options = generation_options(o.sampling);
  const std::string text = read_text(o.text);
  llm::LanguageModel model = open_model(o.model);
  const InterruptGuard guard(model);
  const llm::TextCallback write = [](std::string_view piece) {
    std::cout << piece << std::flush;
    return std::cout.good();  // nobody reads any more
  };
  llm::Generation result;
  if (o.raw || !model.has_chat_template()) {
    if (!o.raw && !o.model.quiet)
      std::cerr << "the model has no chat template: the text is continued as it stands\n";
    result = model.generate(text, options, write);
  } else {
    std::vector<llm::ChatMessage> messages;
    if (!o.system.empty()) messages.push_back({.role = "system", .content = o.system});
    messages.push_back({.role = "user", .content = text});
    result = model.chat(messages, options, write);
  }
  if (is_terminal(Stream::output)) std::cout << "\n";
  if (!o.model.quiet) {
    std::cerr << statistics_text(result.statistics) << "; ended by "
              << llm::stop_reason_name(result.reason) << "\n"
              << memory_text(model) << "\n";
    if (result.reason == llm::StopReason::context)
      std::cerr << fmt::format(
          "the context of {} tokens is full; --context gives more, "
          "--context-shift goes on without it\n",
          model.context());
  }
  return guard.interrupted() ? kInterrupted : kRight;
}

}  // namespace

void add_run_command(const Command& program) {
  const Command command = program.subcommand("run", "text from a model");
  auto options = std::make_shared<Options>();
  add_text_arguments(command, options->text, "the prompt");
  command.flag("--raw", options->raw,
               "continue the text as it stands, without the model's chat template");
  command.option("--system", options->system, "what the model is told before the prompt");
  add_model_arguments(command, options->model);
  add_sampling_arguments(command, options->sampling);
  command.footer(
      "The text alone goes to standard output; device, progress and statistics to standard error. "
      "Ctrl-C ends the answer.\nExamples:\n  prism run -p 'Why is the sky blue?'\n  prism run "
      "model.gguf -p 'Once upon a time' --raw -n 100 --temperature 0\n  prism run model.gguf -f "
      "question.txt --json-schema '{\"type\": \"object\"}' --seed 7\n");
  command.run([options] { return generate(*options); });
}

}  // namespace prism::cli
