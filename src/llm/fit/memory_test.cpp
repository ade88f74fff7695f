// Tests memory estimates for Mistral 7B, and computed sizes against the tensors of small files.
#include "prism/llm/memory.h"

#include <gtest/gtest.h>

#include "llm/gguf/gguf_writer.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

TEST(Memory, OfMistral7BInF32) {
  const auto memory = estimate_inference_memory(4096, 14336, 32, 32000, 32, 8, 4096, 4);
  EXPECT_EQ(memory.model_bytes, 28'966'928'384u);
  EXPECT_EQ(memory.kv_cache_bytes, 1'073'741'824u);
  EXPECT_GT(memory.activation_bytes, 0u);
  EXPECT_EQ(memory.total_bytes,
            memory.model_bytes + memory.kv_cache_bytes + memory.activation_bytes);
  EXPECT_NEAR(memory.total_gb(), 27.98, 0.2798);
  EXPECT_THROW(estimate_inference_memory(4096, 14336, 0, 32000, 32, 8, 4096, 4), Error);
  EXPECT_THROW(estimate_inference_memory(4096, 14336, 32, 32000, 32, 7, 4096, 4), Error);
}

// A model with two layers whose bytes can be counted by hand: 4 heads of 32, 2 of them KV heads.
GgufFile small_model(const std::string& path, bool is_tied) {
  static const std::vector<std::byte> zeros(1 << 20);
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  writer.set("llama.block_count", 2u);
  writer.set("llama.embedding_length", 128u);
  writer.set("llama.feed_forward_length", 256u);
  writer.set("llama.attention.head_count", 4u);
  writer.set("llama.attention.head_count_kv", std::vector<int32_t>{2, 1});
  writer.set("llama.context_length", 1024u);
  const auto add = [&](const std::string& name, const Shape& shape, ElementType type) {
    writer.add_tensor(
        name, shape, type,
        std::span(zeros).first(type.row_bytes(static_cast<uint64_t>(shape.elements()))));
  };
  add("token_embd.weight", {100, 128}, BlockType::q8_0);
  for (int i = 0; i < 2; ++i) {
    add("blk." + std::to_string(i) + ".attn_q.weight", {128, 128}, DType::f16);
    add("blk." + std::to_string(i) + ".ffn_up_exps.weight", {4, 64, 128}, BlockType::q4_0);
  }
  add("output_norm.weight", {128}, DType::f32);
  if (!is_tied) add("output.weight", {100, 128}, DType::f16);
  writer.write(path);
  return GgufFile::open(path);
}

TEST(Memory, OfAFileIsExact) {
  const test::TemporaryFolder folder;
  const GgufFile file = small_model(folder / "m.gguf", false);
  const ModelSizes sizes = model_sizes(file);
  EXPECT_EQ(sizes.layers, 2);
  EXPECT_EQ(sizes.key_length, 32);
  EXPECT_EQ(sizes.parameters, 2u * 12800 + 2 * (16384 + 4 * 64 * 128) + 128);
  const MemoryNeed memory = memory_need(file, sizes, DType::f16, 1000, Device::cpu());
  EXPECT_EQ(memory.embedding_bytes, 12800u / 32 * 34);
  EXPECT_EQ(memory.output_bytes, 12800u * 2 + 512);
  EXPECT_EQ(memory.layers[1].weight_bytes, 32768u);
  EXPECT_EQ(memory.layers[1].expert_bytes, 4u * 64 * 128 / 32 * 18);
  EXPECT_EQ(memory.layers[0].kv_bytes, 2u * 2 * 1152 * 32 * 2);
  EXPECT_EQ(memory.layers[1].kv_bytes, 2u * 1 * 1152 * 32 * 2);
  EXPECT_EQ(memory.total_bytes(),
            memory.weight_bytes() + memory.kv_bytes() + memory.activation_bytes);
  const MemoryNeed packed = memory_need(file, sizes, BlockType::q8_0, 1000, Device::cpu());
  EXPECT_EQ(packed.kv_bytes(), 2u * 3 * 1152 * 34);
  EXPECT_THROW(memory_need(file, sizes, BlockType::q4_0, 1000, Device::cpu()), Error);
}

TEST(Memory, ATiedOutputCountsOnce) {
  const test::TemporaryFolder folder;
  const GgufFile file = small_model(folder / "m.gguf", true);
  const MemoryNeed memory = memory_need(file, model_sizes(file), DType::f16, 10, Device::cpu());
  EXPECT_TRUE(memory.is_output_tied);
  uint64_t all = 0;
  for (const GgufTensor& tensor : file.tensors()) all += tensor.bytes;
  EXPECT_EQ(memory.weight_bytes(), all);
}

TEST(Memory, AbsurdSizesAreErrors) {
  const test::TemporaryFolder folder;
  const auto with = [&](auto value, const char* key) {
    GgufWriter writer;
    writer.set("general.architecture", "llama");
    writer.set("llama.block_count", 2u);
    writer.set("llama.embedding_length", 128u);
    writer.set("llama.attention.head_count", 4u);
    writer.set(key, value);
    writer.write(folder / "m.gguf");
    return model_sizes(GgufFile::open(folder / "m.gguf"));
  };
  EXPECT_NO_THROW(with(2u, "llama.block_count"));
  EXPECT_THROW(with(4000000000u, "llama.block_count"), Error);
  EXPECT_THROW(with(0u, "llama.block_count"), Error);
  EXPECT_THROW(with(-1, "llama.embedding_length"), Error);
  EXPECT_THROW(with("many", "llama.embedding_length"), Error);
  EXPECT_THROW(with(std::vector<int32_t>{1}, "llama.attention.head_count_kv"), Error);
  EXPECT_NO_THROW(with(int64_t{128}, "llama.expert_count"));
  EXPECT_THROW(with(INT64_MAX, "llama.expert_count"), Error);
  EXPECT_THROW(with(int64_t{-1}, "llama.expert_count"), Error);
}

TEST(Memory, FilesOfOtherKindsSayWhatTheyAre) {
  const test::TemporaryFolder folder;
  const auto message = [&](const char* architecture) -> std::string {
    GgufWriter writer;
    writer.set("general.architecture", architecture);
    writer.write(folder / "m.gguf");
    const GgufFile file = GgufFile::open(folder / "m.gguf");
    for (const bool loads : {false, true}) {
      try {
        if (loads)
          LanguageModel::load(folder / "m.gguf");
        else
          model_sizes(file);
      } catch (const Error& error) {
        if (!loads) continue;
        EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
        return error.what();
      }
      ADD_FAILURE() << architecture << " has sizes";
    }
    return "";
  };
  EXPECT_NE(message("clip").find("name the GGUF file of its language model"), std::string::npos);
  EXPECT_NE(message("flux").find("makes pictures"), std::string::npos);
  EXPECT_NE(message("parrot").find("\"parrot\" is not supported; supported are llama, "),
            std::string::npos);
  EXPECT_NE(message("parrot").find("docs/models.md tells how to ask"), std::string::npos);
}

// No size wraps: it is exact, or there is an error.
TEST(Memory, SizesThatExceed64BitsAreErrors) {
  const test::TemporaryFolder folder;
  const GgufFile file = small_model(folder / "m.gguf", false);
  const ModelSizes sizes = model_sizes(file);
  const auto need = [&](const ModelSizes& of, int64_t context, int64_t batch = 512) {
    return memory_need(file, of, DType::f16, context, Device::cpu(), batch).total_bytes();
  };
  EXPECT_GT(need(sizes, 1 << 30), uint64_t{1} << 30);
  for (const int64_t context :
       {INT64_MAX, INT64_MAX - 1, int64_t{1} << 62, int64_t{1} << 32, int64_t{0}, int64_t{-1}})
    EXPECT_THROW(need(sizes, context), Error) << context;
  EXPECT_THROW(need(sizes, 8, 0), Error);
  for (int64_t ModelSizes::*const member :
       {&ModelSizes::hidden, &ModelSizes::feed_forward, &ModelSizes::vocabulary}) {
    ModelSizes large = sizes;
    large.*member = INT64_MAX / 2;
    EXPECT_THROW(need(large, 8), Error);
  }
  ModelSizes wide = sizes;
  wide.architecture = "other";  // of one that Prism knows, the file says what the cache holds
  wide.key_length = wide.value_length = int64_t{1} << 40;
  EXPECT_THROW(need(wide, 1 << 20), Error);
  const int64_t big = int64_t{1} << 40;
  EXPECT_THROW(estimate_inference_memory(big, big, 1, 1, 1, 1, 1, 1), Error);
  EXPECT_THROW(estimate_inference_memory(64, 64, 1, 1, 1, 1, INT64_MAX, 4), Error);
  EXPECT_THROW(estimate_inference_memory(64, 64, INT64_MAX, 1, 1, 1, 1, 4), Error);
  EXPECT_THROW(estimate_inference_memory(64, 64, 1, INT64_MAX, 1, 1, 1, 4), Error);
}

}  // namespace
}  // namespace prism::llm
