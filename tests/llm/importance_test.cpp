// Tests the measurement of importance matrices against sums in float64, and what must hold for
// experts.
#include <gtest/gtest.h>

#include <cmath>

#include "llm/model/importance_sums.h"
#include "prism/error.h"
#include "support/models/tiny_models.h"

namespace prism::llm {
namespace {

Model load(const GgufFile& file) {
  return Model::load(file, {.placement = place_on(file, Device::cpu(), 64, DType::f32)});
}

TEST(MeasureImportance, SumsTheSquaresOfTheNormedInputs) {
  const auto tiny = test::tiny_model("llama", test::model_seed());
  SCOPED_TRACE("seed " + std::to_string(test::model_seed()));
  Model model = load(tiny->open());
  const std::vector<int32_t> tokens = test::some_tokens(3 * 16 + 4, tiny->reference.vocabulary);
  const ImportanceMatrix matrix = measure_importance(model, tokens, 16, 1);
  EXPECT_EQ(matrix.chunks, 3u);
  EXPECT_EQ(matrix.chunk_tokens, 16u);
  EXPECT_EQ(matrix.tensors.size(), 14u);  // seven matrices in each of two layers

  // The first layer sees the embeddings; token 1 begins each chunk.
  const auto table = tiny->values("token_embd.weight"), by = tiny->values("blk.0.attn_norm.weight");
  const size_t width = by.size();
  std::vector<double> wanted(width);
  for (size_t t = 0; t < 48; ++t) {
    const auto id = static_cast<size_t>(t % 16 == 0 ? 1 : tokens[t]);
    const auto row = table.subspan(id * width, width);
    double square = 0;
    for (const float x : row) square += static_cast<double>(x) * static_cast<double>(x);
    const double scale = 1 / (square / static_cast<double>(width) + tiny->reference.epsilon);
    for (size_t c = 0; c < width; ++c)
      wanted[c] += scale * std::pow(static_cast<double>(row[c]) * static_cast<double>(by[c]), 2);
  }
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"}) {
    const Importance& entry = matrix.tensors.at(name);
    EXPECT_EQ(entry.counts, std::vector<float>{48});
    ASSERT_EQ(entry.sums.size(), width);
    for (size_t c = 0; c < width; ++c)
      EXPECT_NEAR(static_cast<double>(entry.sums[c]), wanted[c], 1e-4 * (1 + wanted[c])) << c;
  }
  // One chunk after the other, or both: the same sums.
  const ImportanceMatrix first = measure_importance(model, std::span(tokens).first(16), 16, 1);
  const ImportanceMatrix some =
      measure_importance(model, tokens, 16, 1, [](int64_t done, int64_t) { return done < 1; });
  EXPECT_EQ(first.tensors.at("blk.1.ffn_down.weight").sums,
            some.tensors.at("blk.1.ffn_down.weight").sums);

  EXPECT_THROW(measure_importance(model, std::span(tokens).first(15), 16, 1), Error);
  EXPECT_THROW(measure_importance(model, tokens, 65, 1), Error);
  EXPECT_THROW(measure_importance(model, tokens, 1, 1), Error);
}

TEST(MeasureImportance, SharesRowsOutAmongExperts) {
  const auto tiny = test::tiny_model("qwen3moe", test::model_seed());
  SCOPED_TRACE("seed " + std::to_string(test::model_seed()));
  Model model = load(tiny->open());
  const std::vector<int32_t> tokens = test::some_tokens(40, tiny->reference.vocabulary);
  const ImportanceMatrix matrix = measure_importance(model, tokens, 20, -1);
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    const Importance& router = matrix.tensors.at(layer + "ffn_gate_inp.weight");
    for (const char* name :
         {"ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"}) {
      const Importance& entry = matrix.tensors.at(layer + name);
      ASSERT_EQ(entry.counts.size(), 4u);
      float rows = 0;
      for (const float count : entry.counts) rows += count;
      EXPECT_EQ(rows, 2 * 40);  // two experts for each token
      ASSERT_EQ(entry.sums.size(), 4u * router.sums.size());
      for (size_t e = 0; e < 4; ++e)
        EXPECT_EQ(entry.counts[e] == 0, entry.sums[e * router.sums.size()] == 0) << e;
    }
    const Importance& gate = matrix.tensors.at(layer + "ffn_gate_exps.weight");
    for (size_t c = 0; c < router.sums.size(); ++c) {
      float all = 0;
      for (size_t e = 0; e < 4; ++e) all += gate.sums[e * router.sums.size() + c];
      EXPECT_NEAR(all, 2 * router.sums[c], 1e-3f * (1 + all)) << layer << c;
    }
  }
}

}  // namespace
}  // namespace prism::llm
