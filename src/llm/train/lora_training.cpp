// Decides the options that depend on the data, and puts samples, model and run together.
#include "llm/train/lora_training.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace prism::llm {
namespace {

constexpr int64_t kEpochs = 3;

int64_t identity_of_samples(const std::vector<LoraSample>& samples) {
  std::vector<int32_t> tokens;
  for (const LoraSample& each : samples) {
    tokens.insert(tokens.end(), each.tokens.begin(), each.tokens.end());
    tokens.push_back(-1);
  }
  return identity_of(std::as_bytes(std::span(tokens)));
}

}  // namespace

LoraTraining::LoraTraining(const GgufFile& file, const std::string& data,
                           const LoraTrainingOptions& given, const Device& device)
    : options_(given) {
  if (options_.lora.alpha == 0) options_.lora.alpha = 2 * static_cast<double>(options_.lora.rank);
  ModelRunOptions& run = options_.run;
  std::vector<LoraSample> samples = read_lora_samples(data, file, options_.context);
  for (const LoraSample& each : samples) {
    tokens_ += static_cast<int64_t>(each.tokens.size());
    learned_tokens_ += std::ranges::count(each.is_learned, true);
  }
  data_identity_ = identity_of_samples(samples);
  const std::string model = fmt::format("{} {}", file.file_bytes(), file.tensors().size());
  model_identity_ = identity_of(std::as_bytes(std::span(model)));

  const LoraSplit split = split_samples(std::move(samples), run.validation, run.seed);
  training_samples_ = static_cast<int64_t>(split.training.size());
  validation_samples_ = static_cast<int64_t>(split.validation.size());
  run.batch = std::min(run.batch, training_samples_);
  if (run.steps == 0)
    run.steps = std::max<int64_t>(1, kEpochs * training_samples_ / samples_per_step());

  check_memory(file.file_bytes(), device);
  model_ = std::make_unique<LoraModel>(file, options_.lora, device, options_.context);
  run_.reset(new ModelRun(lora_run(*model_, split, run, device)));  // cannot be moved
}

nn::LoopSettings LoraTraining::loop() const {
  const int64_t samples = training_samples_ + validation_samples_;
  nn::LoopSettings loop = loop_settings(options_.run, samples_per_step() * tokens_ / samples);
  const auto millionths = [](double value) { return std::llround(value * 1e6); };
  loop.identity.insert(loop.identity.end(), {{"data or tokenizer", data_identity_},
                                             {"model", model_identity_},
                                             {"--context", options_.context},
                                             {"--rank", options_.lora.rank},
                                             {"--alpha", millionths(options_.lora.alpha)},
                                             {"--dropout", millionths(options_.lora.dropout)}});
  return loop;
}

}  // namespace prism::llm
