// Tests models whose tensors have the types that Prism reads but does not write: the same model in
// F32, made from the decoded weights, must give the same logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <random>

#include "base/system/thread_pool.h"
#include "base/types/block_factors.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/gguf/tensor_floats.h"
#include "llm/model/model.h"
#include "support/devices/devices.h"
#include "support/normalised_error.h"
#include "support/run_program.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

constexpr int64_t kWidth = 256, kWide = 512, kHeads = 4, kLayers = 1, kVocabulary = 37;

// One llama, written twice.
class TypedModel {
 public:
  // with_scales: matrices of the layers have factors beside them.
  TypedModel(ElementType type, bool with_scales, uint32_t seed)
      : type_(type), with_scales_(with_scales), random_(seed) {
    for (GgufWriter* writer : {&typed_, &plain_}) {
      writer->set("general.architecture", "llama");
      writer->set("llama.context_length", uint32_t{64});
      writer->set("llama.block_count", static_cast<uint32_t>(kLayers));
      writer->set("llama.embedding_length", static_cast<uint32_t>(kWidth));
      writer->set("llama.feed_forward_length", static_cast<uint32_t>(kWide));
      writer->set("llama.attention.head_count", static_cast<uint32_t>(kHeads));
      writer->set("llama.attention.head_count_kv", static_cast<uint32_t>(kHeads / 2));
      writer->set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
      writer->set("tokenizer.ggml.model", "no_vocab");
      writer->set("llama.vocab_size", static_cast<uint32_t>(kVocabulary));
    }
    matrix("token_embd", kVocabulary, kWidth);
    matrix("output", kVocabulary, kWidth);
    norm("output_norm");
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string layer = "blk." + std::to_string(i) + ".";
      norm(layer + "attn_norm");
      norm(layer + "ffn_norm");
      matrix(layer + "attn_q", kWidth, kWidth);
      matrix(layer + "attn_k", kWidth / 2, kWidth);
      matrix(layer + "attn_v", kWidth / 2, kWidth);
      matrix(layer + "attn_output", kWidth, kWidth);
      matrix(layer + "ffn_gate", kWide, kWidth);
      matrix(layer + "ffn_up", kWide, kWidth);
      matrix(layer + "ffn_down", kWidth, kWide);
    }
    typed_.write(folder_ / "typed.gguf");
    plain_.write(folder_ / "plain.gguf");
  }

  GgufFile typed() const { return GgufFile::open(folder_ / "typed.gguf"); }
  GgufFile plain() const { return GgufFile::open(folder_ / "plain.gguf"); }

 private:
  std::vector<std::byte> random_bytes(int64_t rows, int64_t columns) {
    const auto elements = static_cast<uint64_t>(rows * columns);
    std::vector<std::byte> bytes(type_.row_bytes(elements));
    if (type_ == DType::f64) {
      std::normal_distribution<double> normal(0, 0.06);
      for (size_t i = 0; i < bytes.size(); i += 8) {
        const double value = normal(random_);
        std::memcpy(&bytes[i], &value, 8);
      }
      return bytes;
    }
    if (!type_.is_block()) {  // integers from -2 to 2
      for (size_t i = 0; i < bytes.size(); i += type_.block_bytes()) {
        const int64_t value = static_cast<int64_t>(random_() % 5) - 2;
        std::memcpy(&bytes[i], &value, type_.block_bytes());
      }
      return bytes;
    }
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    for (size_t i = 0; i < bytes.size(); i += type_.block_bytes())
      set_block_factors(type_.block(), &bytes[i], random_() % 4 == 0 ? -0.2f : 0.2f);
    return bytes;
  }
  void matrix(const std::string& name, int64_t rows, int64_t columns) {
    const auto& bytes = kept_.emplace_back(random_bytes(rows, columns));
    typed_.add_tensor(name + ".weight", {rows, columns}, type_, bytes);
    std::vector<float> values(static_cast<size_t>(rows * columns));
    ThreadPool pool(2);
    to_floats(type_, bytes.data(), values, pool);
    if (with_scales_ && name.starts_with("blk.")) {
      // The elements of nvfp4 are near 1: scores as large as they make would hang on few digits.
      const float scale = (0.5f + static_cast<float>(random_() % 64) / 64) *
                          (type_ == BlockType::nvfp4 ? 0.03f : 1.0f);
      for (float& value : values) value *= scale;
      floats(typed_, name + ".scale", {1}, {scale});
    }
    floats(plain_, name + ".weight", {rows, columns}, values);
  }
  void norm(const std::string& name) {
    std::normal_distribution<float> normal(1, 0.2f);
    std::vector<float> values(kWidth);
    for (float& value : values) value = normal(random_);
    for (GgufWriter* writer : {&typed_, &plain_})
      floats(*writer, name + ".weight", {kWidth}, values);
  }
  void floats(GgufWriter& writer, const std::string& name, const Shape& shape,
              const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    writer.add_tensor(name, shape, DType::f32, kept_.emplace_back(bytes.begin(), bytes.end()));
  }

  const ElementType type_;
  const bool with_scales_;
  std::mt19937 random_;
  std::list<std::vector<std::byte>> kept_;
  GgufWriter typed_, plain_;
  test::TemporaryFolder folder_;
};

// A prompt at once, then two tokens one by one; or all of them one by one.
std::vector<float> logits(const GgufFile& file, const Device& device, bool with_prompt) {
  Model model = Model::load(file, {.placement = place_on(file, device, 64, DType::f32)});
  const std::vector<int32_t> ids = {3, 36, 0, 11, 5, 29, 8, 21, 14, 2, 30, 1};
  std::vector<float> all;
  for (size_t at = 0; at < ids.size();) {
    const size_t count = with_prompt && at == 0 ? ids.size() - 2 : 1;
    const SequencePart part{0, static_cast<int32_t>(at), std::span(ids).subspan(at, count),
                            Wanted::all};
    const std::vector<float> some = model.forward(std::span(&part, 1)).to_vector<float>();
    all.insert(all.end(), some.begin(), some.end());
    at += count;
  }
  return all;
}

TEST(TensorTypes, GiveTheLogitsOfTheirDecodedWeights) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<ElementType> types = {DType::i8, DType::i16, DType::i32, DType::f64};
  for (int i = static_cast<int>(BlockType::mxfp4) + 1; i < kBlockTypeCount; ++i)
    types.emplace_back(static_cast<BlockType>(i));
  for (const Device& device : test::every_device()) {
    // Devices compile kernels for each type, those of prompts for a minute: one type in a run,
    // token by token. The tests of products cover the others.
    std::vector<ElementType> drawn = types;
    std::ranges::shuffle(drawn, random);
    const bool is_cpu = device.info().is_cpu;
    if (!is_cpu) drawn.erase(drawn.begin() + 1, drawn.end());
    for (const ElementType type : drawn) {
      const TypedModel model(type, type == BlockType::nvfp4 || type == BlockType::tq2_0,
                             static_cast<uint32_t>(random()));
      const std::vector<float> wanted = logits(model.plain(), Device::cpu(), true);
      const std::vector<float> found = logits(model.typed(), device, is_cpu);
      ASSERT_EQ(found.size(), wanted.size());
      // Inputs of quantised matrices are rounded to 8 bits.
      EXPECT_LT(test::normalised_error(found, wanted), type.is_block() ? 2e-3 : 1e-9)
          << type.name() << " on " << device.id();
    }
  }
}

}  // namespace
}  // namespace prism::llm
