// Tests importance matrices: their files, what they do to quantised weights, and broken files.
#include "llm/gguf/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "llm/gguf/gguf_writer.h"
#include "llm/gguf/quantise_file.h"
#include "llm/gguf/tensor_floats.h"
#include "support/run_program.h"
#include "support/seed.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {
namespace {

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_says(const std::function<void()>& work, const std::string& part) {
  const std::string message = message_of(work);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

std::vector<float> floats_of(const GgufFile& file, const std::string& name) {
  std::vector<float> values;
  for_each_piece(file, *file.find_tensor(name), cpu_pool(),
                 [&](uint64_t, uint64_t, std::span<const float> piece) {
                   values.insert(values.end(), piece.begin(), piece.end());
                 });
  return values;
}

TEST(Importance, AFileComesBack) {
  const test::TemporaryFolder folder;
  ImportanceMatrix matrix;
  matrix.tensors["blk.0.attn_q.weight"] = {{1, 2, 3, 4}, {2}};
  matrix.tensors["blk.0.ffn_up_exps.weight"] = {{4, 8, 3, 5, 6, 0}, {2, 0, 3}};
  matrix.texts = {"text.txt"};
  matrix.chunks = 7, matrix.chunk_tokens = 512;
  matrix.write(folder / "i.gguf");
  const ImportanceMatrix again = ImportanceMatrix::open(folder / "i.gguf");
  EXPECT_EQ(again.texts, matrix.texts);
  EXPECT_EQ(again.chunks, 7u);
  EXPECT_EQ(again.chunk_tokens, 512u);
  ASSERT_EQ(again.tensors.size(), 2u);
  for (const auto& [name, entry] : matrix.tensors) {
    EXPECT_EQ(again.tensors.at(name).sums, entry.sums);
    EXPECT_EQ(again.tensors.at(name).counts, entry.counts);
  }
  using Lists = std::vector<std::vector<float>>;
  GgufTensor tensor;
  tensor.name = "blk.0.attn_q.weight", tensor.shape = {3, 4};
  EXPECT_EQ(again.weights_of(tensor), (Lists{{0.5f, 1, 1.5f, 2}}));
  tensor.shape = {3, 5};
  expect_says([&] { again.weights_of(tensor); }, "another model");
  tensor.name = "blk.0.ffn_up_exps.weight", tensor.shape = {3, 9, 2};
  EXPECT_EQ(again.weights_of(tensor), (Lists{{2, 4}, {}, {2, 0}}));
  tensor.shape = {4, 9, 2};
  expect_says([&] { again.weights_of(tensor); }, "another model");
  tensor.name = "blk.0.other.weight";
  EXPECT_TRUE(again.weights_of(tensor).empty());
}

TEST(Importance, BrokenFilesAreRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "i.gguf";
  const auto refused = [&](const std::function<void(GgufWriter&)>& fill, const std::string& part,
                           const char* kind = "imatrix") {
    GgufWriter writer;
    if (kind) writer.set("general.type", kind);
    fill(writer);
    writer.write(path);
    expect_says([&] { ImportanceMatrix::open(path); }, part);
  };
  const std::vector<float> two = {1, 2}, three = {1, 2, 3}, bad = {1, NAN}, less = {1, -1};
  const auto add = [](GgufWriter& writer, const char* name, const std::vector<float>& values) {
    writer.add_tensor(name, {static_cast<int64_t>(values.size())}, DType::f32,
                      std::as_bytes(std::span(values)));
  };
  refused([&](GgufWriter& w) { add(w, "t.in_sum2", two); }, "not an importance matrix", nullptr);
  refused([&](GgufWriter& w) { add(w, "t.in_sum2", two); }, "not an importance matrix", "adapter");
  refused([&](GgufWriter& w) { add(w, "t.in_sum2", two); }, "without t.counts");
  refused([&](GgufWriter& w) { add(w, "t.weight", two); }, "has no tensors");
  refused([&](GgufWriter& w) { add(w, "t.in_sum2", bad), add(w, "t.counts", two); }, "holds nan");
  refused([&](GgufWriter& w) { add(w, "t.in_sum2", less), add(w, "t.counts", two); }, "holds -1");
  refused([&](GgufWriter& w) { add(w, "t.in_sum2", two), add(w, "t.counts", bad); }, "t.counts");
  refused([&](GgufWriter& w) { add(w, "t.in_sum2", three), add(w, "t.counts", two); },
          "do not belong to 2 counts");
  refused(
      [&](GgufWriter& w) {
        w.add_tensor("t.in_sum2", {4}, DType::f16, std::as_bytes(std::span(two)));
        add(w, "t.counts", two);
      },
      "is of type f16");
}

// The error of each column, times its importance.
double weighted_error(const std::vector<float>& x, const std::vector<float>& wanted,
                      const std::vector<float>& importance, size_t rows_of_matrix) {
  const size_t columns = 512;
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t matrix = i / columns / rows_of_matrix;
    const double off = static_cast<double>(x[i]) - static_cast<double>(wanted[i]);
    error += off * off * static_cast<double>(importance[matrix * columns + i % columns]);
  }
  return error;
}

TEST(Importance, LowersTheWeightedErrorOfEveryType) {
  const test::TemporaryFolder folder;
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(2 * 8 * 512);
  for (float& value : values) value = normal(random);
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  const auto bytes = std::as_bytes(std::span(values));
  writer.add_tensor("blk.0.a.weight", {16, 512}, DType::f32, bytes);
  writer.add_tensor("blk.0.b_exps.weight", {2, 8, 512}, DType::f32, bytes);
  writer.write(folder / "f32.gguf");
  const GgufFile file = GgufFile::open(folder / "f32.gguf");

  ImportanceMatrix matrix;
  std::vector<float> one(512), experts(1024);
  for (float& each : one) each = std::exp(2 * normal(random));
  for (float& each : experts) each = std::exp(2 * normal(random));
  matrix.tensors["blk.0.a.weight"] = {one, {1}};
  matrix.tensors["blk.0.b_exps.weight"] = {experts, {1, 1}};
  for (const char* name : {"Q8_0", "Q6_K", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_S", "Q4_1", "Q4_0",
                           "Q3_K_S", "Q2_K", "MXFP4"}) {
    quantise_file(file, folder / "plain.gguf", quantise_mix(name));
    QuantiseOptions options;
    options.importance = &matrix;
    options.importance_file = "the matrix";
    const QuantiseResult result =
        quantise_file(file, folder / "weighted.gguf", quantise_mix(name), options);
    EXPECT_EQ(result.weighted, 2u);
    const GgufFile plain = GgufFile::open(folder / "plain.gguf");
    const GgufFile weighted = GgufFile::open(folder / "weighted.gguf");
    EXPECT_EQ(weighted.string("quantize.imatrix.file"), "the matrix");
    for (const bool is_experts : {false, true}) {
      const std::string tensor = is_experts ? "blk.0.b_exps.weight" : "blk.0.a.weight";
      const auto error = [&](const GgufFile& of) {
        return weighted_error(floats_of(of, tensor), values, is_experts ? experts : one,
                              is_experts ? 8 : 16);
      };
      // The scales of mxfp4 are powers of two: most blocks have no better one.
      const double share = name == std::string("MXFP4") ? 1.01 : 0.97;
      EXPECT_LT(error(weighted), share * error(plain)) << name << " " << tensor;
    }
  }
  ImportanceMatrix other;
  other.tensors["blk.9.a.weight"] = {one, {1}};
  QuantiseOptions options;
  options.importance = &other;
  expect_says([&] { quantise_file(file, folder / "x.gguf", quantise_mix("Q4_0"), options); },
              "names no tensor");
}

TEST(TensorTypeRules, TheFirstThatMatchesCounts) {
  const test::TemporaryFolder folder;
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  const std::vector<float> values(256 * 4, 0.5f);
  const auto bytes = std::as_bytes(std::span(values));
  for (const char* name : {"token_embd.weight", "blk.0.ffn_down.weight", "blk.1.ffn_down.weight",
                           "blk.1.ffn_up.weight", "blk.1.attn_q.weight"})
    writer.add_tensor(name, {4, 256}, DType::f32, bytes);
  writer.add_tensor("blk.1.attn_norm.weight", {1024}, DType::f32, bytes);
  writer.add_tensor("blk.1.odd.weight", {32, 32}, DType::f32, bytes);
  writer.write(folder / "f32.gguf");
  const GgufFile file = GgufFile::open(folder / "f32.gguf");
  const auto quantised = [&](const std::vector<const char*>& rules) {
    QuantiseOptions options;
    for (const char* rule : rules) options.types.push_back(tensor_type_rule(rule));
    quantise_file(file, folder / "out.gguf", quantise_mix("Q8_0"), options);
    return GgufFile::open(folder / "out.gguf");
  };
  const GgufFile out = quantised({"blk\\.0\\..*down=Q6_K", "down|up=q4_k", "blk.=bf16"});
  const auto type = [&](const char* name) {
    return std::string(out.find_tensor(name)->type_name());
  };
  EXPECT_EQ(type("blk.0.ffn_down.weight"), "q6_k");
  EXPECT_EQ(type("blk.1.ffn_down.weight"), "q4_k");
  EXPECT_EQ(type("blk.1.ffn_up.weight"), "q4_k");
  EXPECT_EQ(type("blk.1.attn_q.weight"), "bf16");
  EXPECT_EQ(type("blk.1.attn_norm.weight"), "f32");
  EXPECT_EQ(type("token_embd.weight"), "q8_0");

  expect_says([&] { quantised({"ffn_gate=q4_k"}); }, "matches no tensor");
  expect_says([&] { quantised({"attn_norm=q4_k"}); }, "matches no tensor");
  expect_says([&] { quantised({"odd=q4_k"}); }, "rows of 32 elements");
  expect_says([&] { tensor_type_rule("q4_k"); }, "PATTERN=TYPE");
  expect_says([&] { tensor_type_rule("=q4_k"); }, "PATTERN=TYPE");
  expect_says([&] { tensor_type_rule("x=q9"); }, "unknown type \"q9\"");
  expect_says([&] { tensor_type_rule("x=iq2_xxs"); }, "reads but does not write");
  expect_says([&] { tensor_type_rule("x=i8"); }, "reads but does not write");
  expect_says([&] { tensor_type_rule("(=q4_k"); }, "is not valid at character 1");
}

}  // namespace
}  // namespace prism::llm
