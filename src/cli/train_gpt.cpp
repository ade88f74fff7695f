// `prism train` without --lora: trains all weights of a small GPT.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "cli/model_fetch.h"
#include "cli/train.h"
#include "cli/train_session.h"
#include "llm/train/gpt_file.h"
#include "llm/train/gpt_presets.h"
#include "llm/train/gpt_run.h"
#include "llm/train/trained_vocabulary.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

// The defaults for a model that is trained already: fewer and gentler steps than for a new one.
constexpr int64_t kFullContext = 256, kFullSteps = 500;
constexpr double kFullRate = 1e-4;

[[noreturn]] void wrong(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

DType compute_type(const std::string& name) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    if (name == dtype_name(type)) return type;
  wrong(fmt::format("--precision {}: give f32, bf16 or f16", name));
}

// What is trained: a new model with a vocabulary of its own, or the model of a file.
struct Subject {
  llm::GptShape shape;
  std::optional<llm::TrainedVocabulary> vocabulary;
  std::optional<llm::GgufFile> file;
  std::vector<int32_t> tokens;  // of the text

  // Writes the model as a GGUF file.
  void write(llm::Gpt& model, const std::string& path) const {
    llm::GgufWriter writer;
    if (file) {
      for (const auto& [key, value] : file->metadata())
        if (!key.starts_with("split.")) writer.set(key, value);
      writer.set("general.file_type", uint32_t{0});
      writer.remove("general.quantization_version");
    } else {
      llm::write_shape(shape, std::filesystem::path(path).stem().string(), writer);
      vocabulary->write(writer);
    }
    llm::add_weights(model, writer);
    writer.write(path);
  }
};

Subject open_subject(const TrainSettings& s, const std::string& text) {
  Subject subject;
  subject.file = llm::GgufFile::open(model_path(s.full));
  subject.shape = llm::shape_of(*subject.file);
  if (s.context > subject.shape.context)
    wrong(fmt::format("--context {}: the model was made for {}", s.context, subject.shape.context));
  // What the file says of its context stays as it is.
  subject.shape.context = s.context ? s.context : std::min(subject.shape.context, kFullContext);
  subject.tokens = llm::Tokenizer::from(*subject.file).encode(text);
  return subject;
}

Subject new_subject(const TrainSettings& s, const llm::GptPreset& preset, const std::string& text) {
  Subject subject;
  const int64_t tokens = s.model.vocabulary ? s.model.vocabulary : preset.shape.vocabulary;
  if (s.model.tokenizer != "bpe" && s.model.tokenizer != "chars")
    wrong(fmt::format("--tokenizer {}: give bpe or chars", s.model.tokenizer));
  subject.vocabulary = s.model.tokenizer == "bpe" ? llm::TrainedVocabulary::of_words(text, tokens)
                                                  : llm::TrainedVocabulary::of_characters(text);
  subject.tokens = subject.vocabulary->tokenizer().encode(text);
  llm::GptShape& shape = subject.shape;
  const auto take = [](int64_t given, int64_t& value) {
    if (given > 0) value = given;
  };
  shape = preset.shape;
  shape.vocabulary = subject.vocabulary->size();
  take(s.model.layers, shape.layers);
  take(s.model.width, shape.width);
  take(s.model.heads, shape.heads);
  take(s.model.kv_heads, shape.kv_heads);
  take(s.context, shape.context);
  shape.tied = !s.model.untied;
  return subject;
}

// What a run must have in common with its checkpoint.
void add_identity(const Subject& subject, nn::LoopSettings& loop) {
  const llm::GptShape& shape = subject.shape;
  const std::array<int64_t, 7> sizes = {shape.vocabulary,  shape.layers,   shape.width,
                                        shape.heads,       shape.kv_heads, shape.tied ? 1 : 0,
                                        shape.feed_forward};
  loop.identity.insert(
      loop.identity.end(),
      {{"text or tokenizer", llm::identity_of(std::as_bytes(std::span(subject.tokens)))},
       {"model", llm::identity_of(std::as_bytes(std::span(sizes)))},
       {"--context", shape.context},
       {"--dropout", std::llround(shape.dropout * 1e6)}});
}

void say_run(const TrainSettings& s, llm::Gpt& model, const llm::TokenSplit& tokens,
             const nn::LoopSettings& loop, const Device& device) {
  const llm::GptShape& shape = model.shape();
  const double times = static_cast<double>(loop.steps * loop.units_per_step) /
                       static_cast<double>(tokens.training.size());
  say(s, fmt::format("model: {} layers of {}, {} heads, context {}, {} tokens: {} parameters",
                     shape.layers, shape.width, shape.heads, shape.context,
                     exact_text(shape.vocabulary), exact_text(model.parameter_count())));
  say(s, fmt::format("data: {} tokens to learn from, {} to validate",
                     exact_text(static_cast<int64_t>(tokens.training.size())),
                     exact_text(static_cast<int64_t>(tokens.validation.size()))));
  say(s, fmt::format("training: {} steps of {} tokens, {:.1f} times the text, on {} ({})",
                     exact_text(loop.steps), exact_text(loop.units_per_step), times, device.id(),
                     device.name()));
}

std::string first_word(const std::string& text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  return text.substr(start, text.find_first_of(" \t\r\n", start) - start);
}

}  // namespace

int train_gpt(const TrainSettings& s) {
  check_settings(s);
  const llm::GptPreset& preset = llm::gpt_preset(s.model.shape);
  const Device device = Device::named(s.device);
  set_default_device(device);
  const bool is_new = s.full.empty();
  llm::ModelRunOptions options = run_options(s, {.batch = preset.batch,
                                                 .steps = is_new ? preset.steps : kFullSteps,
                                                 .rate = is_new ? preset.rate : kFullRate});
  options.compute = compute_type(s.precision);
  const std::string text = llm::read_training_text(s.data);
  Subject subject = is_new ? new_subject(s, preset, text) : open_subject(s, text);
  if (s.dropout >= 0) subject.shape.dropout = static_cast<double>(s.dropout);
  subject.shape = llm::checked_shape(subject.shape);
  const llm::TokenSplit tokens =
      llm::split_tokens(subject.tokens, static_cast<double>(s.validation), subject.shape.context,
                        options.batch, s.data);
  llm::check_memory(llm::least_run_bytes(subject.shape), device);
  llm::GptRun run(subject.shape, tokens, options, device);
  if (subject.file) llm::load_weights(*subject.file, run.model());
  nn::LoopSettings loop =
      llm::loop_settings(options, options.batch * options.accumulate * subject.shape.context);
  add_identity(subject, loop);
  loop.identity.emplace_back("--precision", static_cast<int64_t>(options.compute));
  const SessionEnd end = run_session(s, run, loop, [&] {
    say_run(s, run.model(), tokens, loop, device);
    say_estimate(s, run, loop, device);
  });
  if (end.interrupted) return *end.interrupted;
  subject.write(run.model(), s.output);
  std::cout << fmt::format("{}: {} parameters, {}\n", s.output,
                           exact_text(run.model().parameter_count()), end.summary);
  print_samples(s, s.output, {}, s.prompt.empty() ? first_word(text) : s.prompt);
  return kRight;
}

}  // namespace prism::cli
