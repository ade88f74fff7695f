// `prism train --lora`: trains an adapter for a model that exists.
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "cli/model_fetch.h"
#include "cli/terminal.h"
#include "cli/train.h"
#include "cli/train_session.h"
#include "llm/train/lora_training.h"
#include "prism/error.h"
#include "prism/ops/create.h"

namespace prism::cli {
namespace {

llm::LoraTrainingOptions training_options(const TrainSettings& s) {
  llm::LoraTrainingOptions options;
  options.lora.rank = s.lora.rank;
  options.lora.alpha = static_cast<double>(s.lora.alpha);
  if (s.dropout >= 0) options.lora.dropout = static_cast<double>(s.dropout);
  options.lora.recompute = s.recompute;
  if (!s.lora.matrices.empty()) options.lora.matrices = s.lora.matrices;
  if (s.context > 0) options.context = s.context;
  options.run = run_options(s, options.run);
  return options;
}

// Writes the adapter. Returns the exit status if a signal came before that.
std::optional<int> train_adapter(const TrainSettings& s, const llm::GgufFile& file,
                                 const Device& device) {
  llm::LoraTraining training(file, s.data, training_options(s), device);
  llm::LoraModel& model = training.model();
  const int64_t count = training.training_samples(), of_step = training.samples_per_step();
  const nn::LoopSettings loop = training.loop();
  const SessionEnd end = run_session(s, training.run(), loop, [&] {
    say(s, fmt::format("adapter: rank {} for {} matrices, {} parameters, on {} ({})",
                       training.options().lora.rank, model.matrices(),
                       exact_text(model.parameter_count()), device.id(), device.name()));
    say(s, fmt::format("data: {} samples to learn from, {} to validate; {} tokens, of which {} are "
                       "learned",
                       exact_text(count), training.validation_samples(),
                       exact_text(training.tokens()), exact_text(training.learned_tokens())));
    say(s, fmt::format("training: {} steps of {} samples, {:.1f} times the data",
                       exact_text(loop.steps), of_step,
                       static_cast<double>(loop.steps * of_step) / static_cast<double>(count)));
    say_estimate(s, training.run(), loop, device);
  });
  if (end.interrupted) return end.interrupted;
  model.write(s.output);
  std::cout << fmt::format("{}: adapter with {} parameters, {}\n", s.output,
                           exact_text(model.parameter_count()), end.summary);
  return {};
}

}  // namespace

void add_lora_options(const Command& command, LoraSettings& s) {
  const Command group = command.group("Train an adapter (LoRA)");
  group.option("--lora", s.model, "a GGUF file or the name of a model to train an adapter for");
  group.option("--rank", s.rank, "the rank of the change of a matrix")
      .positive()
      .shows_default()
      .sets(s.has_rank);
  group.option("--alpha", s.alpha, "the change is multiplied by alpha / rank (default: 2 rank)")
      .positive();
  group
      .option("--matrices", s.matrices,
              "the matrices to change, by the beginning of their names: attn, ffn, attn_q, output "
              "(default: ffn, or attn if experts take its place)")
      .separated_by(',');
}

int train_lora(const TrainSettings& s) {
  check_settings(s);
  if (!s.full.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "train: --lora and --full are different kinds of training; leave one of them out");
  const llm::GgufFile file = llm::GgufFile::open(model_path(s.lora.model));
  end_progress();
  const Device device = Device::named(s.device);
  set_default_device(device);
  seed(s.seed);
  if (const std::optional<int> status = train_adapter(s, file, device)) return *status;
  if (!s.prompt.empty()) print_samples(s, file.path(), {{.path = s.output}}, s.prompt);
  return kRight;
}

}  // namespace prism::cli
