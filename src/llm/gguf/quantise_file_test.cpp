// Tests quantising files: the type chosen per tensor, the precision kept, and rejected input.
#include "llm/gguf/quantise_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "base/system/thread_pool.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/gguf/tensor_floats.h"
#include "llm/gguf/verify_file.h"
#include "support/run_program.h"
#include "support/seed.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {
namespace {

// A llama with eight layers and special cases: rows of 96 and of 50, a router, norms.
struct Model {
  std::map<std::string, std::vector<float>> values;
  GgufWriter writer;

  Model(uint32_t seed, bool is_tied) : random_(seed) {
    writer.set("general.architecture", "llama");
    writer.set("llama.block_count", 8u);
    writer.set("llama.embedding_length", 256u);
    writer.set("llama.attention.head_count", 8u);
    writer.set("llama.attention.head_count_kv", 2u);
    writer.set("split.count", uint16_t{1});
    add("token_embd.weight", {40, 256});
    if (!is_tied) add("output.weight", {40, 256});
    for (int i = 0; i < 8; ++i) {
      const std::string layer = "blk." + std::to_string(i) + ".";
      add(layer + "attn_norm.weight", {256});
      add(layer + "attn_q.weight", {16, 256});
      add(layer + "attn_v.weight", {8, 256});
      add(layer + "attn_output.weight", {16, 256});
      add(layer + "ffn_down.weight", {7, 512});
    }
    add("blk.0.ffn_gate_inp.weight", {4, 256});
    add("odd96.weight", {5, 96});
    add("odd50.weight", {3, 50});
  }

 private:
  void add(const std::string& name, const Shape& shape) {
    std::vector<float>& to = values[name];
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < shape.elements(); ++i) to.push_back(normal(random_));
    writer.add_tensor(name, shape, DType::f32, std::as_bytes(std::span(to)));
  }
  std::mt19937 random_;
};

std::string type_of(const GgufFile& file, const std::string& name) {
  return file.find_tensor(name)->type_name();
}

std::vector<float> floats(const GgufFile& file, const std::string& name) {
  std::vector<float> out;
  for_each_piece(file, *file.find_tensor(name), cpu_pool(),
                 [&](uint64_t, uint64_t, std::span<const float> piece) {
                   out.insert(out.end(), piece.begin(), piece.end());
                 });
  return out;
}

TEST(QuantiseFile, MixesGiveTheCustomaryTypes) {
  const test::TemporaryFolder folder;
  Model(1, false).writer.write(folder / "f32.gguf");
  const GgufFile file = GgufFile::open(folder / "f32.gguf");
  quantise_file(file, folder / "m.gguf", quantise_mix("q4_k_m"));
  const GgufFile m = GgufFile::open(folder / "m.gguf");
  EXPECT_EQ(m.integer("general.file_type"), 15);
  EXPECT_EQ(m.integer("general.quantization_version"), 2);
  EXPECT_FALSE(m.has("split.count"));
  EXPECT_EQ(type_of(m, "output.weight"), "q6_k");
  EXPECT_EQ(type_of(m, "token_embd.weight"), "q4_k");
  EXPECT_EQ(type_of(m, "blk.0.attn_norm.weight"), "f32");
  EXPECT_EQ(type_of(m, "blk.0.ffn_gate_inp.weight"), "f32");
  EXPECT_EQ(type_of(m, "blk.3.attn_q.weight"), "q4_k");
  // Of eight layers: the first, the last, and every third between.
  const std::string expected[8] = {"q6_k", "q4_k", "q4_k", "q6_k", "q4_k", "q4_k", "q6_k", "q6_k"};
  for (int i = 0; i < 8; ++i)
    for (const char* name : {".attn_v.weight", ".ffn_down.weight"})
      EXPECT_EQ(type_of(m, "blk." + std::to_string(i) + name), expected[i]) << i << name;
  EXPECT_EQ(type_of(m, "odd96.weight"), "q5_0");
  EXPECT_EQ(type_of(m, "odd50.weight"), "f16");

  quantise_file(file, folder / "m.gguf", quantise_mix("Q2_K"));
  const GgufFile k2 = GgufFile::open(folder / "m.gguf");
  EXPECT_EQ(type_of(k2, "blk.3.attn_v.weight"), "q4_k");
  EXPECT_EQ(type_of(k2, "blk.3.ffn_down.weight"), "q3_k");
  EXPECT_EQ(type_of(k2, "odd96.weight"), "q4_0");

  Model(1, true).writer.write(folder / "tied.gguf");
  quantise_file(GgufFile::open(folder / "tied.gguf"), folder / "m.gguf", quantise_mix("Q4_K_S"));
  EXPECT_EQ(type_of(GgufFile::open(folder / "m.gguf"), "token_embd.weight"), "q6_k");
}

TEST(QuantiseFile, IntegersStayAsTheyAre) {
  const test::TemporaryFolder folder;
  std::vector<int32_t> table(4 * 64);
  std::iota(table.begin(), table.end(), 1 << 20);
  Model model(1, false);
  model.writer.add_tensor("blk.0.ffn_gate_tid2eid.weight", {4, 64}, DType::i32,
                          std::as_bytes(std::span(table)));
  model.writer.write(folder / "f32.gguf");
  for (const char* mix : {"Q4_0", "F16"}) {
    quantise_file(GgufFile::open(folder / "f32.gguf"), folder / "m.gguf", quantise_mix(mix));
    const GgufFile m = GgufFile::open(folder / "m.gguf");
    const GgufTensor& found = *m.find_tensor("blk.0.ffn_gate_tid2eid.weight");
    EXPECT_EQ(found.type, DType::i32) << mix;
    EXPECT_TRUE(std::ranges::equal(m.data(found), std::as_bytes(std::span(table)))) << mix;
  }
}

TEST(QuantiseFile, EveryMixKeepsTheValuesNear) {
  // Relative RMS error of normally distributed weights, and the largest error of one element: about
  // three times what the block search leaves.
  const std::map<std::string, std::pair<double, double>> bounds = {
      {"F32", {0, 0}},         {"F16", {5e-4, 4e-3}},  {"BF16", {4e-3, 2e-2}},
      {"Q8_0", {1e-2, 0.05}},  {"Q6_K", {0.03, 0.2}},  {"Q5_K_M", {0.05, 0.4}},
      {"Q5_K_S", {0.05, 0.4}}, {"Q5_1", {0.05, 0.4}},  {"Q5_0", {0.06, 0.4}},
      {"Q4_K_M", {0.1, 0.7}},  {"Q4_K_S", {0.1, 0.7}}, {"Q4_1", {0.1, 0.7}},
      {"Q4_0", {0.12, 0.8}},   {"MXFP4", {0.2, 1.5}},  {"Q3_K_L", {0.2, 1.3}},
      {"Q3_K_M", {0.2, 1.3}},  {"Q3_K_S", {0.2, 1.3}}, {"Q2_K", {0.4, 2.5}},
  };
  const test::TemporaryFolder folder;
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Model model(seed, false);
  model.writer.write(folder / "f32.gguf");
  const GgufFile file = GgufFile::open(folder / "f32.gguf");
  ThreadPool pool(3);
  for (const std::string& name : quantise_mix_names()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(bounds.contains(name));
    QuantiseOptions options;
    options.pool = &pool;
    const QuantiseResult result =
        quantise_file(file, folder / "m.gguf", quantise_mix(name), options);
    const GgufFile out = GgufFile::open(folder / "m.gguf");
    uint64_t bytes = 0;
    for (const GgufTensor& tensor : out.tensors()) bytes += tensor.bytes;
    EXPECT_EQ(bytes, result.output_bytes);
    EXPECT_TRUE(verify_file(out).problems.empty());
    for (const auto& [tensor, wanted] : model.values) {
      const std::vector<float> got = floats(out, tensor);
      ASSERT_EQ(got.size(), wanted.size());
      double sum = 0, square = 0, worst = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const double error = static_cast<double>(got[i]) - wanted[i];
        sum += error * error;
        square += static_cast<double>(wanted[i]) * wanted[i];
        worst = std::max(worst, std::abs(error));
      }
      EXPECT_LE(std::sqrt(sum / square), bounds.at(name).first) << tensor;
      EXPECT_LE(worst, bounds.at(name).second) << tensor;
    }
  }
}

TEST(QuantiseFile, RefusesToQuantiseAgainUnlessAsked) {
  const test::TemporaryFolder folder;
  Model(2, false).writer.write(folder / "f32.gguf");
  quantise_file(GgufFile::open(folder / "f32.gguf"), folder / "q4.gguf", quantise_mix("Q4_0"));
  const GgufFile q4 = GgufFile::open(folder / "q4.gguf");
  EXPECT_THROW(quantise_file(q4, folder / "q8.gguf", quantise_mix("Q8_0")), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "q8.gguf"));
  QuantiseOptions options;
  options.requantise = true;
  quantise_file(q4, folder / "q8.gguf", quantise_mix("Q8_0"), options);
  EXPECT_EQ(type_of(GgufFile::open(folder / "q8.gguf"), "blk.0.attn_q.weight"), "q8_0");
  EXPECT_THROW(quantise_mix("Q9_K"), Error);
}

TEST(QuantiseFile, AWeightThatIsNotFiniteIsNamedAndLeavesNothing) {
  const test::TemporaryFolder folder;
  Model model(3, false);
  model.values["blk.2.attn_q.weight"][300] = std::numeric_limits<float>::infinity();
  model.writer.write(folder / "f32.gguf");
  const GgufFile file = GgufFile::open(folder / "f32.gguf");
  for (const char* type : {"Q4_K_M", "F16"}) {
    try {
      quantise_file(file, folder / "m.gguf", quantise_mix(type));
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("blk.2.attn_q.weight"), std::string::npos)
          << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "m.gguf"));
  }
  const VerifyResult result = verify_file(file);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0], "tensor blk.2.attn_q.weight (f32): row 1, column 44 is inf");
}

// Rounded to f16 it would be infinite.
TEST(QuantiseFile, AWeightThatTheTypeCannotHoldIsNamedAndLeavesNothing) {
  const test::TemporaryFolder folder;
  for (const float value : {65519.0f, -65520.0f}) {
    Model model(3, false);
    model.values["blk.2.attn_q.weight"][300] = value;
    model.writer.write(folder / "f32.gguf");
    const GgufFile file = GgufFile::open(folder / "f32.gguf");
    std::string message;
    try {
      quantise_file(file, folder / "m.gguf", quantise_mix("F16"));
    } catch (const Error& error) {
      message = error.what();
    }
    const bool fits = value > 0;
    EXPECT_EQ(message.empty(), fits) << message;
    EXPECT_EQ(message.find("blk.2.attn_q.weight") == message.npos, fits) << message;
    EXPECT_EQ(std::filesystem::exists(folder / "m.gguf"), fits);
    std::filesystem::remove(folder / "m.gguf");
    quantise_file(file, folder / "m.gguf", quantise_mix("BF16"));
    EXPECT_TRUE(verify_file(GgufFile::open(folder / "m.gguf")).problems.empty());
    std::filesystem::remove(folder / "m.gguf");
  }
}

// A finite weight, with which every text would be infinite.
TEST(Verify, FindsAWeightThatIsTooLarge) {
  const test::TemporaryFolder folder;
  Model model(3, false);
  model.values["blk.2.attn_q.weight"][300] = -3e38f;
  model.writer.write(folder / "f32.gguf");
  const VerifyResult result = verify_file(GgufFile::open(folder / "f32.gguf"));
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0], "tensor blk.2.attn_q.weight (f32): row 1, column 44 is -3e+38");
}

TEST(Verify, FindsAScaleThatIsNotFinite) {
  const test::TemporaryFolder folder;
  std::vector<std::byte> blocks(34 * 8);
  blocks[34 * 5 + 1] = std::byte{0x7e};  // the half-precision scale of block 5: NaN
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  writer.set("llama.block_count", 2u);
  writer.set("llama.embedding_length", 64u);
  writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
  writer.set("tokenizer.ggml.scores", std::vector<float>{1, 2});
  writer.add_tensor("token_embd.weight", {2, 64}, BlockType::q8_0, std::span(blocks).first(34 * 4));
  writer.add_tensor("blk.0.w.weight", {4, 64}, BlockType::q8_0, blocks);
  writer.write(folder / "m.gguf");
  const VerifyResult result = verify_file(GgufFile::open(folder / "m.gguf"));
  ASSERT_EQ(result.problems.size(), 3u);
  EXPECT_EQ(result.problems[0], "tokenizer.ggml.scores has 2 entries for 3 tokens");
  EXPECT_EQ(result.problems[1], "token_embd.weight has 2 rows for 3 tokens");
  EXPECT_EQ(result.problems[2], "tensor blk.0.w.weight (q8_0): row 2, column 32 is nan");
}

}  // namespace
}  // namespace prism::llm
