// `prism train --lora`: trains an adapter for a model that exists.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <fmt/format.h>

#include "cli/model_fetch.h"
#include "cli/terminal.h"
#include "cli/train.h"
#include "cli/train_session.h"
#include "llm/train/lora_run.h"
#include "prism/error.h"
#include "prism/ops/create.h"

namespace prism::cli {
namespace {

constexpr int64_t kDefaultContext = 512, kDefaultEpochs = 3;

void count_tokens(const std::vector<llm::LoraSample>& samples, int64_t& all, int64_t& learned) {
  for (const llm::LoraSample& each : samples) {
    all += static_cast<int64_t>(each.tokens.size());
    learned += std::ranges::count(each.is_learned, true);
  }
}

// What a run must have in common with its checkpoint.
void add_identity(const TrainSettings& s, const llm::GgufFile& file, int64_t context,
                  const std::vector<llm::LoraSample>& samples, nn::LoopSettings& loop) {
  std::vector<int32_t> tokens;
  for (const llm::LoraSample& each : samples) {
    tokens.insert(tokens.end(), each.tokens.begin(), each.tokens.end());
    tokens.push_back(-1);
  }
  const std::string model = fmt::format("{} {}", file.file_bytes(), file.tensors().size());
  const auto millionths = [](float value) {
    return std::llround(static_cast<double>(value) * 1e6);
  };
  loop.identity.insert(loop.identity.end(),
                       {{"data or tokenizer", identity_of(std::as_bytes(std::span(tokens)))},
                        {"model", identity_of(std::as_bytes(std::span(model)))},
                        {"--context", context},
                        {"--rank", s.lora.rank},
                        {"--alpha", millionths(s.lora.alpha)},
                        {"--dropout", millionths(s.dropout)}});
}

}  // namespace

void add_lora_options(const Command& command, LoraSettings& s) {
  const Command group = command.group("Train an adapter (LoRA)");
  group.option("--lora", s.model, "a GGUF file or the name of a model to train an adapter for");
  group.option("--rank", s.rank, "the rank of the change of a matrix").positive().shows_default();
  group.option("--alpha", s.alpha, "the change is multiplied by alpha / rank (default: 2 rank)");
  group
      .option("--matrices", s.matrices,
              "the matrices to change, by the beginning of their names: attn, ffn, attn_q, output "
              "(default: attn,ffn)")
      .separated_by(',');
}

int train_lora(const TrainSettings& given) {
  TrainSettings s = given;
  check_settings(s);
  if (!s.full.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "train: --lora and --full are different kinds of training; leave one of them out");
  if (s.lora.alpha == 0) s.lora.alpha = 2 * static_cast<float>(s.lora.rank);
  const llm::GgufFile file = llm::GgufFile::open(model_path(s.lora.model));
  end_progress();
  const Device device = Device::named(s.device);
  set_default_device(device);
  seed(s.seed);

  llm::LoraOptions lora{.rank = s.lora.rank, .alpha = static_cast<double>(s.lora.alpha)};
  if (s.dropout >= 0) lora.dropout = static_cast<double>(s.dropout);
  lora.recompute = s.recompute;
  if (!s.lora.matrices.empty()) lora.matrices = s.lora.matrices;
  const int64_t context = s.context > 0 ? s.context : kDefaultContext;
  const std::vector<llm::LoraSample> samples = llm::read_lora_samples(s.data, file, context);
  const llm::LoraSplit split =
      llm::split_samples(samples, static_cast<double>(s.validation), s.seed);
  const auto count = static_cast<int64_t>(split.training.size());
  llm::ModelRunOptions options =
      run_options(s, {.batch = 4, .steps = 0, .rate = 2e-4, .weight_decay = 0});
  options.batch = std::min(options.batch, count);
  const int64_t of_step = options.batch * options.accumulate;
  if (options.steps == 0) options.steps = std::max<int64_t>(1, kDefaultEpochs * count / of_step);

  check_memory(file.file_bytes(), device);
  llm::LoraModel model(file, lora, device, context);
  llm::ModelRun run = llm::lora_run(model, split, options, device);
  int64_t all = 0, learned = 0;
  count_tokens(samples, all, learned);
  nn::LoopSettings loop =
      loop_settings(s, options, of_step * all / static_cast<int64_t>(samples.size()));
  add_identity(s, file, context, samples, loop);
  const SessionEnd end = run_session(s, run, loop, [&] {
    say(s, fmt::format("adapter: rank {} for {} matrices, {} parameters, on {} ({})", lora.rank,
                       model.matrices(), exact_text(model.parameter_count()), device.id(),
                       device.name()));
    say(s, fmt::format("data: {} samples to learn from, {} to validate; {} tokens, of which {} are "
                       "learned",
                       exact_text(count), split.validation.size(), exact_text(all),
                       exact_text(learned)));
    say(s, fmt::format("training: {} steps of {} samples, {:.1f} times the data",
                       exact_text(options.steps), of_step,
                       static_cast<double>(options.steps * of_step) / static_cast<double>(count)));
    say_estimate(s, run, loop, device);
  });
  if (end.is_interrupted) return kInterrupted;
  model.write(s.output);
  std::cout << fmt::format("{}: adapter with {} parameters, {}\n", s.output,
                           exact_text(model.parameter_count()), end.summary);
  return kRight;
}

}  // namespace prism::cli
