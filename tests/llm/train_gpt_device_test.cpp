// Trains small GPTs on every device, and compares the files they become with the trained models.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "llm/train/gpt_file.h"
#include "llm/train/gpt_run.h"
#include "llm/train/trained_vocabulary.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/nn.h"
#include "prism/ops/create.h"
#include "support/devices/devices.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

std::string some_text() {
  const std::filesystem::path shakespeare = test::shared_dir() / "data/tinyshakespeare.txt";
  if (std::filesystem::exists(shakespeare))
    return nn::load_text(shakespeare.string()).substr(0, 60000);
  std::string text;  // sums, for machines without the file
  for (int a = 0; a < 60; ++a)
    for (int b = 0; b < 60; ++b) text += fmt::format("{} + {} = {}.\n", a, b, a + b);
  return text;
}

struct Trained {
  Trained(GptShape shape, const Device& device, int64_t steps, bool recompute = false)
      : vocabulary(TrainedVocabulary::of_words(some_text(), 300)) {
    shape.vocabulary = vocabulary.size();
    GptRunOptions options;
    options.batch = 4, options.steps = steps, options.rate = 1e-2, options.seed = 3;
    options.recompute = recompute;
    const TokenSplit split = split_tokens(vocabulary.tokenizer().encode(some_text()), 0.1,
                                          shape.context, options.batch, "text");
    run.emplace(shape, split, options, device);
    for (int64_t i = 0; i < steps; ++i)
      losses.push_back((*run->parts().step)(run->loader().next()).item());
  }
  void write(const std::string& path) {
    GgufWriter writer;
    write_shape(run->model().shape(), "trained", writer);
    vocabulary.write(writer);
    add_weights(run->model(), writer);
    writer.write(path);
  }
  // [length, vocabulary]
  std::vector<float> logits(const std::vector<int32_t>& ids) {
    const NoGrad off;
    run->model().eval();
    const Device device = run->model().tokens.weight.device();
    const Tensor batch = from_vector(ids, {1, static_cast<int64_t>(ids.size())}, device);
    return run->model()(batch).to_vector<float>();
  }
  TrainedVocabulary vocabulary;
  std::optional<GptRun> run;
  std::vector<double> losses;
};

std::vector<float> logits_of_file(const std::string& path, const std::vector<int32_t>& ids,
                                  const Device& device) {
  const GgufFile file = GgufFile::open(path);
  Model model = Model::load(file, {.placement = place_on(file, device, 0, DType::f32)});
  const SequencePart part{0, 0, ids, Wanted::all};
  return model.forward(std::span(&part, 1)).to_vector<float>();
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

TEST(TrainGpt, FilesGiveTheLogitsOfTheModel) {
  set_default_device(Device::cpu());
  const test::TemporaryFolder folder;
  // Grouped heads and an output of its own; heads of 10 elements; dropout, which must be off.
  const GptShape shapes[] = {
      {.context = 32, .layers = 2, .width = 32, .heads = 4, .kv_heads = 2, .tied = false},
      {.context = 24, .layers = 3, .width = 40, .heads = 4, .dropout = 0.2},
      {.context = 16,
       .layers = 1,
       .width = 16,
       .heads = 1,
       .rope_base = 500,
       .norm_epsilon = 1e-2}};
  for (const GptShape& shape : shapes) {
    Trained trained(shape, Device::cpu(), 20);
    EXPECT_LT(trained.losses.back(), trained.losses.front() - 0.5) << "it learns";
    const std::string path = folder / "trained.gguf";
    trained.write(path);
    std::vector<int32_t> ids = trained.vocabulary.tokenizer().encode(some_text().substr(5000, 200));
    ids.resize(static_cast<size_t>(shape.context));
    const std::vector<float> wanted = trained.logits(ids);
    EXPECT_LT(largest_difference(logits_of_file(path, ids, Device::cpu()), wanted), 1e-4)
        << shape.width;

    // Read back, it is the same model.
    const GgufFile file = GgufFile::open(path);
    Gpt again(shape_of(file), Device::cpu());
    load_weights(file, again);
    again.eval();
    const NoGrad off;
    const Tensor batch = from_vector(ids, {1, shape.context}, Device::cpu());
    EXPECT_LT(largest_difference(again(batch).to_vector<float>(), wanted), 1e-5)
        << "only the file's numbers are rounded to f32";
  }
}

TEST(TrainGpt, DevicesAgree) {
  const GptShape shape{.context = 32, .layers = 2, .width = 32, .heads = 4, .kv_heads = 2};
  set_default_device(Device::cpu());
  const Trained wanted(shape, Device::cpu(), 20);
  const test::TemporaryFolder folder;
  for (const Device& device : test::every_device()) {
    set_default_device(device);
    Trained trained(shape, device, 20);
    for (size_t i = 0; i < wanted.losses.size(); ++i)
      EXPECT_NEAR(trained.losses[i], wanted.losses[i], 1e-3) << device.id() << " step " << i;
    const std::string path = folder / "trained.gguf";
    trained.write(path);
    const std::vector<int32_t> ids = {'T', 'h', 'e', ' ', 't'};
    EXPECT_LT(largest_difference(logits_of_file(path, ids, device), trained.logits(ids)), 2e-4)
        << device.id();
  }
  set_default_device(Device::cpu());
}

TEST(TrainGpt, ReadsFilesOfOthers) {
  set_default_device(Device::cpu());
  for (const char* name : {"stories260K", "stories15M-q8_0"}) {
    const std::string path = test::shared_model(name);
    if (path.empty()) GTEST_SKIP() << "needs ../shared/models";
    const GgufFile file = GgufFile::open(path);
    Gpt model(shape_of(file), Device::cpu());
    load_weights(file, model);
    model.eval();
    const NoGrad off;
    const std::vector<int32_t> ids = {1, 403, 407, 261, 378};
    const std::vector<float> got =
        model(from_vector(ids, {1, 5}, Device::cpu())).to_vector<float>();
    const std::vector<float> wanted = logits_of_file(path, ids, Device::cpu());
    ASSERT_EQ(got.size(), wanted.size());
    double error = 0, square = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const auto value = static_cast<double>(wanted[i]);
      error += std::pow(static_cast<double>(got[i]) - value, 2), square += value * value;
    }
    // The engine rounds activations to 8 bits for quantised weights.
    EXPECT_LT(error / square, std::string(name) == "stories260K" ? 1e-10 : 1e-3) << name;
  }
}

TEST(TrainGpt, RefusesShapesThatMakeNoModel) {
  const GptShape good{.vocabulary = 300, .context = 32, .layers = 2, .width = 32, .heads = 4};
  EXPECT_EQ(checked_shape(good).feed_forward, 96);
  EXPECT_EQ(Gpt(good, Device::cpu()).parameter_count(), parameter_count(checked_shape(good)));
  const auto changed = [&](int64_t GptShape::*size, int64_t value) {
    GptShape shape = good;
    shape.*size = value;
    return shape;
  };
  for (const GptShape& bad :
       {changed(&GptShape::width, 36), changed(&GptShape::heads, 5), changed(&GptShape::heads, 0),
        changed(&GptShape::heads, 32), changed(&GptShape::layers, -1),
        changed(&GptShape::layers, int64_t{1} << 40), changed(&GptShape::width, int64_t{1} << 40),
        changed(&GptShape::kv_heads, 3), changed(&GptShape::context, 0)})
    EXPECT_THROW(checked_shape(bad), Error);
}

TEST(TrainGpt, RecomputedLayersGiveTheSameBits) {
  set_default_device(Device::cpu());
  const GptShape shape{.context = 32, .layers = 6, .width = 64, .heads = 4, .dropout = 0.1};
  Trained kept(shape, Device::cpu(), 6), again(shape, Device::cpu(), 6, true);
  EXPECT_EQ(kept.losses, again.losses);
  EXPECT_LT(again.run->estimate_memory().needed * 10, kept.run->estimate_memory().needed * 7);
}

TEST(TrainGpt, TheEstimateOfMemoryHolds) {
  set_default_device(Device::cpu());
  Trained trained({.context = 32, .layers = 2, .width = 32, .heads = 4}, Device::cpu(), 1);
  const RunMemory memory = trained.run->estimate_memory();
  const auto parameters = static_cast<uint64_t>(trained.run->model().parameter_count());
  EXPECT_GE(memory.present, parameters * 12) << "weights and two moments";
  EXPECT_LE(memory.present, parameters * 13 + 100000);
  EXPECT_GE(memory.needed, 4u * 4 * 32 * 300) << "the logits of 4 sequences";
  EXPECT_GT(trained.run->estimate_seconds(10, 1), 0);
}

}  // namespace
}  // namespace prism::llm
