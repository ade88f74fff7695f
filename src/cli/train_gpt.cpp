// `prism train` without --lora: trains all weights of a small GPT.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "base/fast_hash.h"
#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/model_fetch.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/train.h"
#include "llm/train/gpt_file.h"
#include "llm/train/gpt_presets.h"
#include "llm/train/gpt_run.h"
#include "llm/train/trained_vocabulary.h"
#include "nn/train/training_loop.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"

namespace prism::cli {
namespace {

// The defaults for a model that is trained already: fewer and gentler steps than for a new one.
constexpr int64_t kFullContext = 256, kFullSteps = 500;
constexpr double kFullRate = 1e-4;

[[noreturn]] void wrong(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

std::string count_text(int64_t count) { return exact_count_text(static_cast<uint64_t>(count)); }

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

void check_settings(const TrainSettings& s) {
  const auto check = [](const char* option, double value, double most) {
    if (!(value >= 0 && value <= most))
      wrong(fmt::format("{} {}: give a number from 0 to {}", option, value, most));
  };
  check("--lr", static_cast<double>(s.rate), 10);
  check("--clip", static_cast<double>(s.clip), 1e9);
  check("--validation", static_cast<double>(s.validation), 0.9);
  if (s.weight_decay != -1) check("--weight-decay", static_cast<double>(s.weight_decay), 10);
  if (s.dropout != -1) check("--dropout", static_cast<double>(s.dropout), 0.99);
}

llm::GptRunOptions run_options(const TrainSettings& s, const llm::GptPreset& preset) {
  llm::GptRunOptions options;
  const bool is_new = s.full.empty();
  options.batch = s.batch ? s.batch : preset.batch;
  options.steps = s.steps ? s.steps : is_new ? preset.steps : kFullSteps;
  options.accumulate = s.accumulate;
  options.warmup = s.warmup;
  options.rate = s.rate > 0 ? static_cast<double>(s.rate) : is_new ? preset.rate : kFullRate;
  if (s.weight_decay >= 0) options.weight_decay = static_cast<double>(s.weight_decay);
  options.clip = static_cast<double>(s.clip);
  options.seed = s.seed;
  options.detect_anomaly = s.detect_anomaly;
  return options;
}

// What a run must have in common with its checkpoint.
std::vector<std::pair<std::string, int64_t>> identity(const TrainSettings& s,
                                                      const Subject& subject,
                                                      const llm::GptRunOptions& options) {
  const auto hash = [](const std::string& digits) {
    return static_cast<int64_t>(std::stoull(digits.substr(0, 16), nullptr, 16));
  };
  const llm::GptShape& shape = subject.shape;
  return {{"text or tokenizer", hash(fast_hash(std::as_bytes(std::span(subject.tokens))))},
          {"model", hash(fast_hash(std::as_bytes(std::span<const int64_t>(
                        {shape.vocabulary, shape.layers, shape.width, shape.heads, shape.kv_heads,
                         static_cast<int64_t>(shape.tied), shape.feed_forward}))))},
          {"--context", shape.context},
          {"--batch", options.batch},
          {"--accumulate", options.accumulate},
          {"--seed", static_cast<int64_t>(options.seed)},
          {"--dropout", std::llround(shape.dropout * 1e6)},
          {"--validation", std::llround(static_cast<double>(s.validation) * 1e6)}};
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", std::max(1.0, seconds));
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

void say(const TrainSettings& s, const std::string& text) {
  if (!s.quiet) std::cerr << text << "\n";
}

// Throws before anything large is allocated.
void check_memory(uint64_t needed, const Device& device) {
  const uint64_t free = device.free_bytes();
  if (needed <= free) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("train: the run needs about {} of memory, {} has {} free; use a smaller "
                          "--batch (with --accumulate), a shorter --context or a smaller --shape",
                          size_text(needed), device.id(), size_text(free)));
}

void say_estimate(const TrainSettings& s, llm::GptRun& run, const Subject& subject,
                  const llm::TokenSplit& tokens, const nn::LoopSettings& loop,
                  const Device& device) {
  const llm::RunMemory memory = run.estimate_memory();
  check_memory(memory.needed, device);
  if (s.quiet) return;
  const llm::GptShape& shape = subject.shape;
  const double times = static_cast<double>(loop.steps * loop.units_per_step) /
                       static_cast<double>(tokens.training.size());
  const int64_t left = loop.steps - run.parts().optimizers[0]->steps();
  const double seconds = run.estimate_seconds(left, left / loop.validate_every);
  say(s, fmt::format("model: {} layers of {}, {} heads, context {}, {} tokens: {} parameters",
                     shape.layers, shape.width, shape.heads, shape.context,
                     count_text(shape.vocabulary), count_text(run.model().parameter_count())));
  say(s, fmt::format("data: {} tokens to learn from, {} to validate",
                     count_text(static_cast<int64_t>(tokens.training.size())),
                     count_text(static_cast<int64_t>(tokens.validation.size()))));
  say(s, fmt::format("training: {} steps of {} tokens, {:.1f} times the text, on {} ({})",
                     count_text(loop.steps), count_text(loop.units_per_step), times, device.id(),
                     device.name()));
  say(s, fmt::format("needs about {} of memory, of which {} are free, and about {}",
                     size_text(memory.present + memory.needed), size_text(device.free_bytes()),
                     duration_text(seconds)));
}

nn::LoopSettings loop_settings(const TrainSettings& s, const Subject& subject,
                               const llm::GptRunOptions& options) {
  // Ten validations and checkpoints are enough for a curve, and cost little beside training.
  const int64_t often = std::max<int64_t>(1, options.steps / 10);
  return {.steps = options.steps,
          .accumulate = options.accumulate,
          .units_per_step = options.batch * options.accumulate * subject.shape.context,
          .validate_every = s.validate_every ? s.validate_every : often,
          .patience = s.patience,
          .save_every = s.save_every ? s.save_every : often,
          .checkpoint = s.checkpoint,
          .identity = identity(s, subject, options)};
}

// Texts of the finished model, through the engine that `prism run` uses.
void print_samples(const TrainSettings& s, const std::string& text) {
  if (s.samples == 0) return;
  llm::LoadOptions how;
  how.fit.device = s.device;
  llm::LanguageModel model = llm::LanguageModel::load(s.output, how);
  const size_t start = text.find_first_not_of(" \t\r\n");
  const std::string prompt = !s.prompt.empty()
                                 ? s.prompt
                                 : text.substr(start, text.find_first_of(" \t\r\n", start) - start);
  for (int64_t i = 0; i < s.samples; ++i) {
    llm::GenerationOptions options{.max_tokens = s.sample_tokens, .shift_context = true};
    options.sampler.seed = s.seed + static_cast<uint64_t>(i);
    std::cout << "\n" << prompt << model.generate(prompt, options).text << "\n";
  }
}

Subject make_subject(const TrainSettings& s, const llm::GptPreset& preset,
                     const std::string& text) {
  Subject subject = s.full.empty() ? new_subject(s, preset, text) : open_subject(s, text);
  if (s.dropout >= 0) subject.shape.dropout = static_cast<double>(s.dropout);
  subject.shape = llm::checked_shape(subject.shape);
  return subject;
}

nn::LoopEvents loop_events(const TrainSettings& s, llm::GptRun& run, const InterruptGuard& guard,
                           nn::TrainingLog& log) {
  nn::LoopEvents events;
  if (run.has_validation()) events.validate = [&run] { return run.validate(); };
  events.interrupted = [&guard] { return guard.interrupted(); };
  events.log = &log;
  if (s.quiet) return events;
  events.progress = progress;
  events.validated = [](const std::string& line) {
    end_progress();
    std::cerr << line << "\n";
  };
  return events;
}

void print_result(const TrainSettings& s, llm::GptRun& run, const nn::TrainingLoop& loop,
                  nn::LoopEnd end) {
  std::cout << fmt::format(
      "{}: {} parameters, {} steps{}{}\n", s.output, count_text(run.model().parameter_count()),
      count_text(loop.steps()), end == nn::LoopEnd::stopped_early ? " (stopped early)" : "",
      run.has_validation() ? fmt::format(", validation loss {:.4f} of step {}", loop.best_loss(),
                                         count_text(loop.best_step()))
                           : "");
}

}  // namespace

int train_gpt(const TrainSettings& s) {
  check_settings(s);
  const llm::GptPreset& preset = llm::gpt_preset(s.model.shape);
  const llm::GptRunOptions options = run_options(s, preset);
  const Device device = Device::named(s.device);
  set_default_device(device);
  const std::string text = llm::read_training_text(s.data);
  const Subject subject = make_subject(s, preset, text);
  const llm::TokenSplit tokens =
      llm::split_tokens(subject.tokens, static_cast<double>(s.validation), subject.shape.context,
                        options.batch, s.data);
  check_memory(llm::least_run_bytes(subject.shape), device);
  llm::GptRun run(subject.shape, tokens, options, device);
  if (subject.file) llm::load_weights(*subject.file, run.model());

  nn::TrainingLog log(s.log);
  const InterruptGuard guard;
  const nn::LoopSettings settings = loop_settings(s, subject, options);
  nn::TrainingLoop loop(run.parts(), settings, loop_events(s, run, guard, log));
  if (s.resume) loop.resume();
  say_estimate(s, run, subject, tokens, settings, device);
  if (s.resume) say(s, fmt::format("continues after step {}", count_text(loop.steps())));
  const nn::LoopEnd end = loop.run();
  end_progress();
  if (!s.svg.empty()) log.write_svg(s.svg, {"loss", "validation"});
  if (end == nn::LoopEnd::interrupted) {
    std::cerr << fmt::format(
        "stopped after step {}; the same command with --resume continues from {}\n",
        count_text(loop.steps()), s.checkpoint);
    return kInterrupted;
  }
  loop.use_best();
  subject.write(run.model(), s.output);
  print_result(s, run, loop, end);
  print_samples(s, text);
  return kRight;
}

}  // namespace prism::cli
