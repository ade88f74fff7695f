// Tests the training of adapters: gradients against float64, logits against inference, and loss
// curves on every device against each other.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "llm/gguf/quantise_file.h"
#include "llm/model/model.h"
#include "llm/train/lora_run.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops/create.h"
#include "support/devices/devices.h"
#include "support/models/tiny_adapter.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

using test::ReferenceModel;
using test::some_tokens;
using test::TinyModel;

constexpr int64_t kContext = 24;
const LoraOptions kLora = {.rank = 2, .alpha = 3};

// Gives all factors random values, so that both have gradients.
void set_random(LoraModel& model, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.15f);
  nn::StateDict state;
  for (auto& [name, tensor] : model.named_parameters()) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    for (float& each : values) each = normal(random);
    state[name] = from_vector(values, tensor.shape(), tensor.device());
  }
  model.load_state_dict(state);
}

// The matrices of the reference changed by factors in float64.
class Changed {
 public:
  Changed(const ReferenceModel& plain, LoraModel& model) : plain_(plain) {
    for (auto& [name, tensor] : model.named_parameters()) {
      factors_[name] = tensor.to_doubles();
      if (name.ends_with(".lora_a")) columns_[stem(name)] = tensor.size(1);
    }
  }
  std::vector<double>& factor(const std::string& name) { return factors_.at(name); }

  // The mean loss of the tokens that are learned.
  double loss(const std::vector<LoraSample>& samples) const {
    ReferenceModel model = plain_;
    const auto rank = static_cast<size_t>(kLora.rank);
    for (const auto& [name, count] : columns_) {
      const std::vector<double>&a = factors_.at(name + ".lora_a"),
            &b = factors_.at(name + ".lora_b");
      const auto columns = static_cast<size_t>(count);
      std::vector<double>& matrix = model.tensors.at(name);
      for (size_t i = 0; i < matrix.size(); ++i)
        for (size_t k = 0; k < rank; ++k)
          matrix[i] += kLora.alpha / static_cast<double>(rank) * b[i / columns * rank + k] *
                       a[k * columns + i % columns];
    }
    double sum = 0;
    size_t learned = 0;
    const auto vocabulary = static_cast<size_t>(model.vocabulary);
    for (const LoraSample& each : samples) {
      const std::vector<double> logits = model.logits(each.tokens);
      for (size_t i = 1; i < each.tokens.size(); ++i) {
        if (!each.is_learned[i]) continue;
        const double* const row = &logits[(i - 1) * vocabulary];
        double whole = 0;
        for (size_t v = 0; v < vocabulary; ++v) whole += std::exp(row[v]);
        sum += std::log(whole) - row[each.tokens[i]];
        ++learned;
      }
    }
    return sum / static_cast<double>(learned);
  }

 private:
  static std::string stem(const std::string& name) { return name.substr(0, name.rfind('.')); }
  ReferenceModel plain_;
  std::map<std::string, std::vector<double>> factors_;
  std::map<std::string, int64_t> columns_;
};

// Samples of different lengths whose second half is learned.
std::vector<LoraSample> some_samples(int count, int vocabulary) {
  std::vector<LoraSample> samples;
  std::mt19937 random(test::model_seed());
  for (int s = 0; s < count; ++s) {
    LoraSample sample;
    for (int i = 0; i < 6 + 5 * (s % 3); ++i) {
      sample.tokens.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(vocabulary)));
      sample.is_learned.push_back(i >= 3);
    }
    samples.push_back(sample);
  }
  return samples;
}

std::vector<Tensor> whole_batch(const std::vector<LoraSample>& samples, const Device& device) {
  std::vector<int64_t> all(samples.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  std::vector<Tensor> batch = lora_source(samples)->batch(all);
  for (Tensor& each : batch) each = each.to(device);
  return batch;
}

// On the CPU; the curves below compare the other devices with it.
void check_gradients(TinyModel& tiny, const std::vector<std::string>& matrices) {
  const GgufFile file = tiny.open();
  const std::vector<LoraSample> samples = some_samples(3, tiny.reference.vocabulary);
  LoraOptions options = kLora;
  options.matrices = matrices;
  LoraModel model(file, options, Device::cpu(), kContext);
  set_random(model, test::model_seed());
  Changed changed(tiny.reference, model);
  const Tensor loss = lora_loss(model, whole_batch(samples, Device::cpu()));
  EXPECT_NEAR(loss.item(), changed.loss(samples), 1e-4);
  {
    const NoGrad off;  // as in validation, with other kernels
    EXPECT_NEAR(lora_loss(model, whole_batch(samples, Device::cpu())).item(), loss.item(), 1e-4);
  }
  const nn::NamedTensors parameters = model.named_parameters();
  const std::vector<Tensor> slopes = gradients(loss, model.parameters());
  eval(slopes);
  std::mt19937 random(test::model_seed());
  for (size_t i = 0; i < slopes.size(); ++i) {
    const std::vector<double> found = slopes[i].to_doubles();
    std::vector<double>& values = changed.factor(parameters[i].first);
    const size_t at = random() % values.size();
    constexpr double kStep = 1e-4;
    const double before = values[at];
    values[at] = before + kStep;
    const double above = changed.loss(samples);
    values[at] = before - kStep;
    const double below = changed.loss(samples);
    values[at] = before;
    EXPECT_NEAR(found[at], (above - below) / (2 * kStep), 2e-4)
        << parameters[i].first << " at " << at << ", seed " << test::model_seed();
  }
}

TEST(LoraTraining, GradientsOfLlama) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  check_gradients(tiny, {"attn", "ffn", "output"});
}

TEST(LoraTraining, GradientsOfJoinedMatrices) {
  TinyModel tiny("phi3");
  tiny.finish({.joined = true});
  check_gradients(tiny, {"attn", "ffn"});
}

// Also with weights in blocks.
TEST(LoraTraining, WrittenAdaptersGiveTheLogitsOfTraining) {
  const test::TemporaryFolder folder;
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  const GgufFile plain = tiny.open();
  quantise_file(plain, folder / "q8.gguf", quantise_mix("Q8_0"));
  const std::vector<int32_t> tokens = some_tokens(13, tiny.reference.vocabulary);
  const Device cpu = Device::cpu();
  for (const std::string& path : {plain.path(), folder / "q8.gguf"}) {
    const GgufFile file = GgufFile::open(path);
    LoraModel model(file, kLora, cpu, kContext);
    set_random(model, 7);
    model.write(folder / "adapter.gguf");
    const std::vector<float> trained =
        model.logits(from_vector(tokens, {1, 13}, cpu)).to_vector<float>();
    Model inference = Model::load(file, {.placement = place_on(file, cpu, kContext, DType::f32),
                                         .adapters = {{folder / "adapter.gguf", 1}}});
    const SequencePart all{0, 0, tokens, Wanted::all};
    const std::vector<float> wanted = inference.forward(std::span(&all, 1)).to_vector<float>();
    test::expect_close(trained, std::vector<double>(wanted.begin(), wanted.end()), 1e-4, path);
  }
}

// The loss of each of 20 steps, without dropout.
std::vector<double> curve(const GgufFile& file, const std::vector<LoraSample>& samples,
                          const Device& device) {
  seed(5);
  LoraModel model(file, kLora, device, kContext);
  set_random(model, 5);
  ModelRun run = lora_run(model, {samples, {}},
                          {.batch = 4, .steps = 20, .rate = 1e-2, .weight_decay = 0}, device);
  const nn::TrainingRun parts = run.parts();
  std::vector<double> losses;
  for (int i = 0; i < 20; ++i) losses.push_back((*parts.step)(parts.loader->next()).item());
  return losses;
}

TEST(LoraTraining, CurvesAgreeOnAllDevices) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  const GgufFile file = tiny.open();
  const std::vector<LoraSample> samples = some_samples(8, tiny.reference.vocabulary);
  const std::vector<double> wanted = curve(file, samples, Device::cpu());
  EXPECT_LT(wanted.back(), wanted.front() - 0.2);
  for (const Device& device : test::every_device()) {
    const bool is_tried = device.backend() == "vulkan" || device.backend() == "opencl";
    if (device.info().is_cpu) continue;  // that is the one above
    if (device.info().software && (!is_tried || test::is_intels_opencl(device.info()))) {
      test::left_out(device.id(), "its compiler takes minutes for these kernels");
      continue;
    }
    const std::vector<double> losses = curve(file, samples, device);
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], wanted[i], 1e-3) << device.id() << " step " << i;
  }
}

// A plan of validation reads the parameters as they are.
TEST(LoraTraining, ValidationFollowsTraining) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  const GgufFile file = tiny.open();
  const std::vector<LoraSample> samples = some_samples(4, tiny.reference.vocabulary);
  LoraModel model(file, kLora, Device::cpu(), kContext);
  ModelRun run =
      lora_run(model, {samples, samples}, {.batch = 4, .steps = 20, .rate = 1e-2}, Device::cpu());
  const nn::TrainingRun parts = run.parts();
  const std::vector<Tensor> batch = whole_batch(samples, Device::cpu());
  double before = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double loss = run.validate();
    EXPECT_NEAR(loss, lora_loss(model, batch).item(), 1e-4);
    EXPECT_LT(loss, before - 0.01);
    before = loss;
    for (int step = 0; step < 4; ++step) (*parts.step)(parts.loader->next());
  }
}

// With dropout, so that its random numbers continue, too.
TEST(LoraTraining, ResumedRunsHaveTheSameBits) {
  const test::TemporaryFolder folder;
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  const GgufFile file = tiny.open();
  const std::vector<LoraSample> samples = some_samples(8, tiny.reference.vocabulary);
  const auto losses = [&](int first, int last) {
    seed(5);
    LoraOptions options = kLora;
    options.dropout = 0.2;
    LoraModel model(file, options, Device::cpu(), kContext);
    ModelRun run =
        lora_run(model, {samples, {}}, {.batch = 4, .steps = 8, .rate = 1e-2}, Device::cpu());
    const nn::TrainingRun parts = run.parts();
    if (first > 0) nn::load_checkpoint(folder / "run", parts);
    std::vector<double> result;
    for (int i = first; i < last; ++i) result.push_back((*parts.step)(parts.loader->next()).item());
    if (first == 0) nn::save_checkpoint(folder / "run", parts);
    return result;
  };
  const std::vector<double> whole = losses(0, 8);
  losses(0, 3);
  EXPECT_EQ(losses(3, 8), std::vector<double>(whole.begin() + 3, whole.end()));
}

TEST(LoraTraining, NamesOfMatricesAndArchitecturesAreChecked) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  const GgufFile file = tiny.open();
  const auto message = [&](const LoraOptions& options) -> std::string {
    try {
      LoraModel model(file, options, Device::cpu(), kContext);
      return std::to_string(model.matrices());
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto layers = static_cast<size_t>(tiny.reference.layers);
  EXPECT_EQ(message(kLora), std::to_string(7 * layers));
  EXPECT_EQ(message({.rank = 2, .matrices = {}}), std::to_string(3 * layers)) << "ffn";
  EXPECT_EQ(message({.rank = 2, .matrices = {"attn_q", "output"}}), std::to_string(layers + 1));
  EXPECT_NE(message({.rank = 2, .matrices = {"conv"}}).find("it has attn_k, "), std::string::npos);
  EXPECT_NE(message({.rank = 0}).find("rank"), std::string::npos);
  EXPECT_NE(message({.rank = 4096}).find("rank 4096 exceeds"), std::string::npos);
}

TEST(LoraTraining, ModelsOfExpertsTrainAttentionByDefault) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.use_experts(5, 2);
  tiny.finish({});
  const GgufFile file = tiny.open();
  const LoraModel model(file, {.rank = 2, .matrices = {}}, Device::cpu(), kContext);
  EXPECT_EQ(model.matrices(), 4 * static_cast<size_t>(tiny.reference.layers));
}

}  // namespace
}  // namespace prism::llm
