#include "cli/model_arguments.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "cli/model_text.h"
#include "cli/terminal.h"
#include "llm/model/config.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"

namespace prism::cli {
namespace {

std::atomic<llm::LanguageModel*> interrupted_model = nullptr;
std::atomic<bool> was_interrupted = false;

void on_interrupt(int) {
  if (llm::LanguageModel* model = interrupted_model.load()) model->cancel();
  was_interrupted = true;
  std::signal(SIGINT, SIG_DFL);  // the next one ends the program
}

}  // namespace

void add_model_arguments(const Command& command, ModelArguments& a) {
  const Command model = command.group("Model");
  add_fit_options(model, a.choice);
  model.option("--batch", a.batch, "tokens of a prompt that are worked on at once")
      .shows_default()
      .positive();
  command.flag("-q,--quiet", a.quiet, "nothing on standard error but errors");
}

llm::LanguageModel open_model(const ModelArguments& a, int64_t slots) {
  llm::LoadOptions options;
  options.fit = a.choice.options();
  options.slots = slots;
  options.batch_rows = a.batch;
  llm::FetchOptions fetch;
  if (!a.quiet) {
    options.progress = [](const llm::LoadProgress& at) {
      progress_bar("loading", at.bytes_done, at.bytes_total);
      return true;
    };
    fetch.note = [](const std::string& line) { std::cerr << line << "\n"; };
    fetch.progress = progress_bar;
  }
  llm::LanguageModel model =
      llm::LanguageModel::load(llm::resolve_model(a.choice.model, fetch), options);
  end_progress();
  if (!a.quiet) {
    const llm::Config& config = model.config();
    const Device& device = model.device();
    std::cerr << fmt::format(
        "{} on {} ({}): {}{}\n", config.name.empty() ? config.architecture : config.name,
        device.id(), device.name(), device.is_automatic() ? device.why() + "; " : "", model.why());
  }
  return model;
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
  if (s.reused_tokens > 0) reused = fmt::format(" ({} of them kept from before)", s.reused_tokens);
  std::string recomputed;
  if (s.recomputed_tokens > 0)
    recomputed = fmt::format(", with a device that failed and {} tokens computed again after it",
                             s.recomputed_tokens);
  return fmt::format(
      "{} prompt tokens{} at {:.1f} tokens/s, first token after {:.3f} s; {} tokens at {:.1f} "
      "tokens/s{}",
      s.prompt_tokens, reused, s.prompt_rate(), s.first_token_seconds, s.generated_tokens,
      s.generation_rate(), recomputed);
}

void add_text_arguments(const Command& command, TextArguments& a, const std::string& what) {
  Option text = command.option("-p,--prompt", a.text, what).sets(a.has_text);
  text.excludes(command.option("-f,--file", a.file, what + ", from a file (-: standard input)"));
}

std::string read_file_or_input(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw Error(ErrorCode::kNotFound,
                fmt::format("\"{}\" cannot be read; is the path right?", path));
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string read_text(const TextArguments& a) {
  if (a.has_text) return a.text;
  if (a.file.empty() && is_terminal(Stream::input))
    std::cerr << "type the text; Ctrl-D at the start of a line ends it\n";
  return read_file_or_input(a.file.empty() ? "-" : a.file);
}

InterruptGuard::InterruptGuard(llm::LanguageModel& model) {
  was_interrupted = false;
  interrupted_model = &model;
  std::signal(SIGINT, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  interrupted_model = nullptr;
}

bool InterruptGuard::interrupted() const { return was_interrupted; }

}  // namespace prism::cli
