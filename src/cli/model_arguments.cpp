// Adds the options for running a model, loads the model and reads prompts.
#include "cli/model_arguments.h"

#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/printable.h"
#include "cli/input.h"
#include "cli/model_fetch.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "llm/generate/known_models.h"
#include "llm/model/config.h"
#include "prism/error.h"
#include "prism/warning.h"
#include "runtime/compile_watch.h"

namespace prism::cli {
namespace {

void describe(const llm::LanguageModel& model, bool verbose) {
  const Device& device = model.device();
  std::cerr << fmt::format("{} on {} ({})\n", printable(llm::model_title(model.file())),
                           device.id(), printable(device.name()));
  if (!verbose) return;
  if (device.is_automatic()) std::cerr << fmt::format("device: {}\n", device.why());
  std::cerr << fmt::format("placement: {}\n", model.why())
            << fmt::format("file: {}; loaded in {:.2f} s; a context of {} tokens\n",
                           model.file().path(), model.load_seconds(), model.context());
}

}  // namespace

void add_model_arguments(const Command& command, ModelArguments& a, bool takes_model) {
  const Command model = command.group("Model");
  add_fit_options(model, a.choice, takes_model);
  model.option("--batch", a.batch, "the number of prompt tokens to process at once")
      .shows_default()
      .positive();
  model
      .option("--lora", a.lora,
              "a LoRA adapter that changes the model: FILE.gguf or FILE.gguf:SCALE; may be given "
              "several times")
      .one_word();
  command.flag("-q,--quiet", a.quiet, "print nothing but errors on standard error");
  command.flag("-v,--verbose", a.verbose,
               "also print why the device was chosen, the sampling, and the memory used");
}

std::vector<llm::LoraAdapter> adapters(const ModelArguments& a) {
  std::vector<llm::LoraAdapter> result;
  for (const std::string& each : a.lora) result.push_back(llm::parse_adapter(each));
  return result;
}

void add_prompt_cache_arguments(const Command& command, ModelArguments& a) {
  command.option("--prompt-cache", a.prompt_cache,
                 "a folder that keeps computed prompts for later runs");
  command
      .option("--prompt-cache-size", a.prompt_cache_size,
              "the size of that folder; beyond it the least recently used prompts are removed")
      .shows_default();
}

void set_prompt_cache(const ModelArguments& a, llm::LoadOptions& options) {
  options.prompt_cache = a.prompt_cache;
  options.prompt_cache_bytes = parse_size(a.prompt_cache_size, "--prompt-cache-size");
}

void add_speculate_argument(const Command& command, ModelArguments& a) {
  command.group("Model").option(
      "--speculate", a.speculate,
      "propose tokens and check several in one batch: ngram (what followed the last words earlier "
      "in the text) or a smaller MODEL with the same vocabulary; the text stays the same");
}

std::string speculate_path(const ModelArguments& a) {
  if (a.speculate.empty() || a.speculate == "ngram") return a.speculate;
  std::string path =
      llm::resolve_model(a.speculate, a.quiet ? llm::FetchOptions{} : fetch_options());
  end_progress();
  return path;
}

llm::LanguageModel open_model(const ModelArguments& a, int64_t slots) {
  llm::LoadOptions options;
  options.fit = a.choice.options();
  options.slots = slots;
  options.batch_rows = a.batch;
  options.adapters = adapters(a);
  set_prompt_cache(a, options);
  options.speculate = speculate_path(a);
  if (a.quiet)
    set_compile_watch({});
  else
    options.progress = [](const llm::LoadProgress& at) {
      progress_bar("loading", at.bytes_done, at.bytes_total);
      return true;
    };
  const llm::FetchOptions fetch = a.quiet ? llm::FetchOptions{} : fetch_options();
  const std::string path = llm::resolve_model(a.choice.model, fetch);
  end_progress();
  llm::LanguageModel model = llm::LanguageModel::load(path, options);
  end_progress();
  if (a.quiet) return model;
  describe(model, a.verbose);
  const int64_t trained = model.config().context;
  if (trained > 0 && model.context() > trained)
    warn(
        fmt::format("the context of {} tokens exceeds the {} that the model was trained for; text "
                    "beyond that is likely to be poor",
                    model.context(), trained));
  return model;
}

llm::LanguageModel open_model(const ModelArguments& arguments, const TemplateArguments& chat) {
  const std::string text = template_text(chat);
  // Mistakes show before the model is loaded.
  if (!text.empty()) llm::ChatTemplate{text};
  template_variables(chat);
  llm::LanguageModel model = open_model(arguments);
  if (!text.empty()) model.set_chat_template(text);
  return model;
}

void add_template_arguments(const Command& command, TemplateArguments& a) {
  Option text =
      command.option("--chat-template", a.text, "a chat template (Jinja) instead of the model's");
  text.excludes(command.option("--chat-template-file", a.file,
                               "a file with the chat template (-: standard input)"));
  command.option("--chat-template-kwargs", a.variables,
                 "variables of the chat template as JSON: {\"enable_thinking\": false}");
}

std::string template_text(const TemplateArguments& a) {
  // The name of a template or of a file would be the whole prompt.
  if (!a.text.empty() && a.text.find("{{") == a.text.npos && a.text.find("{%") == a.text.npos)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--chat-template \"{}\": this is no template, because it has neither "
                            "{{{{ nor {{%; a file with one is given by --chat-template-file",
                            a.text));
  if (a.file.empty()) return a.text;
  std::string text = read_file_or_input(a.file);
  if (text.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the file of the chat template, \"{}\", is empty", a.file));
  return text;
}

std::string template_variables(const TemplateArguments& a) {
  if (a.variables.empty()) return {};
  std::string what = "the text is no JSON object";
  try {
    if (Json::parse(a.variables).is_object()) return a.variables;
  } catch (const Error& error) {
    what = error.what();
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--chat-template-kwargs: {}; write an object such as "
                          "{{\"enable_thinking\": false}}",
                          what));
}

std::string memory_text(const llm::LanguageModel& model) {
  std::string text = "memory:";
  for (const llm::ModelMemory& each : model.memory())
    text += fmt::format(
        "{} {} {} (weights {}, cache {}, work {})", text.back() == ':' ? "" : ",", each.device.id(),
        size_text(each.weight_bytes + each.cache_bytes + each.work_bytes),
        size_text(each.weight_bytes), size_text(each.cache_bytes), size_text(each.work_bytes));
  return text;
}

std::string statistics_text(const llm::GenerationStatistics& s) {
  std::string reused;
  if (s.reused_tokens > 0)
    reused = fmt::format(" ({} from the cache{})", s.reused_tokens,
                         s.restored_tokens > 0 ? " on disk" : "");
  std::string recomputed;
  if (s.recomputed_tokens > 0)
    recomputed = fmt::format(", with {} tokens computed again", s.recomputed_tokens);
  std::string proposed;
  if (s.proposed_tokens > 0)
    proposed =
        fmt::format(" ({} of {} proposed tokens accepted)", s.accepted_tokens, s.proposed_tokens);
  return fmt::format(
      "{} prompt tokens{} at {:.1f} tokens/s, first token after {:.3f} s; {} tokens at {:.1f} "
      "tokens/s{}{}",
      s.prompt_tokens, reused, s.prompt_rate(), s.first_token_seconds, s.generated_tokens,
      s.generation_rate(), proposed, recomputed);
}

void add_text_arguments(const Command& command, TextArguments& a, const std::string& what,
                        const std::string& argument) {
  const std::string names = "-p,--prompt" + (argument.empty() ? "" : "," + argument);
  Option text = command.option(names, a.text, what).sets(a.has_text);
  text.excludes(
      command.option("-f,--file", a.file, "a file with " + what + " (-: standard input)"));
}

std::string read_text(const TextArguments& a) {
  if (a.has_text) return a.text;
  if (a.file.empty() && is_terminal(Stream::input))
    std::cerr << "type the text; Ctrl-D on an empty line ends it\n";
  return read_file_or_input(a.file.empty() ? "-" : a.file);
}

std::string read_prompt(const TextArguments& a) {
  std::string text = read_text(a);
  if (!a.has_text && text.ends_with("\n")) {
    text.pop_back();
    if (text.ends_with("\r")) text.pop_back();
  }
  if (text.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the prompt is empty, so there is nothing to do; write it as an "
                            "argument: prism run 'Why is the sky blue?'"));
  return text;
}

}  // namespace prism::cli
