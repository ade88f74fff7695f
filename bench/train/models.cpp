// Builds the models of bench_train.
#include "models.h"

#include <fmt/format.h>

#include "llm/train/lora_model.h"

using namespace prism;

namespace {

struct GptSettings {
  int64_t vocabulary, length, layers, width, heads, batch;
  double dropout = 0;
  bool tied = false;
  DType compute = DType::f32;
};

struct Block : nn::Module {
  explicit Block(const GptSettings& s)
      : norm1(s.width),
        norm2(s.width),
        attention(s.width, s.heads, {.dropout = s.dropout}),
        up(s.width, 4 * s.width),
        down(4 * s.width, s.width),
        dropout(s.dropout) {}
  nn::LayerNorm norm1, norm2;
  nn::SelfAttention attention;
  nn::Linear up, down;
  nn::Dropout dropout;
  PRISM_MEMBERS(norm1, attention, norm2, up, down, dropout)
  Tensor operator()(const Tensor& x) {
    const Tensor mixed = x + attention(norm1(x));
    return mixed + dropout(down(gelu(up(norm2(mixed)))));
  }
};

struct Gpt : nn::Module {
  explicit Gpt(const GptSettings& s)
      : tokens(s.vocabulary, s.width),
        positions(s.length, s.width),
        dropout(s.dropout),
        norm(s.width),
        head(s.width, s.tied ? 1 : s.vocabulary, !s.tied) {
    for (int64_t i = 0; i < s.layers; ++i) blocks.emplace_back(s);
    nn::init::normal(tokens.weight, 0, 0.02);
    nn::init::normal(positions.weight, 0, 0.02);
    if (s.tied) head.weight = tokens.weight;
  }
  nn::Embedding tokens, positions;
  nn::Dropout dropout;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  PRISM_MEMBERS(tokens, positions, dropout, blocks, norm, head)
  Tensor operator()(const Tensor& text) {
    Tensor x = dropout(tokens(text) + positions(arange(text.size(1), DType::i32, text.device())));
    for (Block& each : blocks) x = each(x);
    return head(norm(x));
  }
};

Tensor random_tokens(const Shape& shape, int64_t vocabulary) {
  return cast(rand(shape) * static_cast<double>(vocabulary), DType::i32).eval();
}

Training make_mlp() {
  Training work;
  auto model = std::make_unique<nn::Sequential>(
      nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(), nn::Linear(512, 10));
  work.batch = {randn({128, 784}).eval(), random_tokens({128}, 10)};
  work.optimizer = std::make_unique<nn::Adam>(model->parameters());
  work.step = std::make_unique<nn::TrainStep>(*work.optimizer,
                                              [&model = *model](std::span<const Tensor> in) {
                                                return nn::cross_entropy(model(in[0]), in[1]);
                                              });
  work.model = std::move(model);
  return work;
}

Training make_gpt(const GptSettings& s) {
  Training work;
  auto model = std::make_unique<Gpt>(s);
  work.tokens = s.batch * s.length;
  work.batch = {random_tokens({s.batch, s.length}, s.vocabulary),
                random_tokens({s.batch, s.length}, s.vocabulary)};
  work.optimizer = std::make_unique<nn::AdamW>(
      model->parameters(), nn::AdamWSettings{.beta2 = 0.99, .weight_decay = 0.1});
  work.step = std::make_unique<nn::TrainStep>(
      *work.optimizer,
      [&model = *model](std::span<const Tensor> in) {
        return nn::cross_entropy(model(in[0]), in[1]);
      },
      nn::TrainStepOptions{.clip_norm = 1, .compute = s.compute});
  work.model = std::move(model);
  return work;
}

Training make_lora(const std::string& file) {
  constexpr int64_t kLength = 2048;
  Training work;
  auto model = std::make_unique<llm::LoraModel>(llm::GgufFile::open(file), llm::LoraOptions(),
                                                default_device(), kLength);
  const int64_t vocabulary = model->config().vocabulary;
  work.tokens = kLength;
  work.batch = {random_tokens({1, kLength}, vocabulary), random_tokens({kLength}, vocabulary)};
  work.optimizer = std::make_unique<nn::AdamW>(model->parameters());
  work.step = std::make_unique<nn::TrainStep>(
      *work.optimizer,
      [&model = *model](std::span<const Tensor> in) {
        return nn::cross_entropy(model.logits(in[0]), in[1]);
      },
      nn::TrainStepOptions{.clip_norm = 1});
  work.model = std::move(model);
  return work;
}

Training make(const std::string& name, const std::string& file) {
  if (name == "mlp") return make_mlp();
  if (name == "gpt")
    return make_gpt(
        {.vocabulary = 65, .length = 64, .layers = 4, .width = 128, .heads = 4, .batch = 12});
  if (name == "char_gpt")
    return make_gpt({.vocabulary = 65,
                     .length = 256,
                     .layers = 6,
                     .width = 384,
                     .heads = 6,
                     .batch = 64,
                     .dropout = 0.2,
                     .compute = DType::bf16});
  if (name == "gpt2")  // the vocabulary is padded to a multiple of 64, as everyone does
    return make_gpt({.vocabulary = 50304,
                     .length = 1024,
                     .layers = 12,
                     .width = 768,
                     .heads = 12,
                     .batch = 32,
                     .tied = true,
                     .compute = DType::bf16});
  if (name == "lora") return make_lora(file);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--model {}; give mlp, gpt, char_gpt, gpt2 or lora", name));
}

}  // namespace

Training make_training(const std::string& name, const std::string& file) {
  Training work = make(name, file);
  work.name = name;
  return work;
}
