// Converts tiny folders whose tensors are stored in parts: blocks with scales for each expert,
// shards of ranks, rows of ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "prism/error.h"
#include "prism/io.h"
#include "prism/llm/gguf.h"
#include "prism/ops/create.h"
#include "prism/ops/quantise.h"
#include "support/models/converted.h"
#include "support/models/hf_files.h"
#include "support/normalised_error.h"

namespace prism::llm {
namespace {

using json = nlohmann::json;
using test::convert;
using test::failure_of;
using test::HfModel;
using test::HfTestFolder;
using test::normalised_error;
using test::result_of;
using Tensors = std::map<std::string, Tensor>;

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

void replace_weights(const HfTestFolder& folder, const Tensors& tensors) {
  save_safetensors(folder.path("changed.safetensors"), tensors);
  std::filesystem::rename(folder.path("changed.safetensors"), folder.path("model.safetensors"));
}

std::string failure_with(const char* name, const char* key, const json& value,
                         const char* part = nullptr) {
  HfModel model = test::hf_model(name);
  json config = json::parse(model.config);
  json& own = config.contains("text_config") ? config["text_config"] : config;
  (part ? own[part] : own)[key] = value;
  model.config = config.dump();
  return failure_of(HfTestFolder(model), ErrorCode::kNotSupported);
}

// Replaces a matrix by random blocks of MXFP4, two elements in a byte, with a scale for 32, or by
// the numbers that these mean.
void replace_by_blocks(Tensors& tensors, const std::string& name, bool packs) {
  constexpr float kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const Shape shape = tensors.at(name).shape();
  const auto count = static_cast<size_t>(shape.elements());
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(name)));
  std::vector<uint8_t> bytes(count / 2), scales(count / 32);
  for (uint8_t& each : bytes) each = static_cast<uint8_t>(random());
  for (uint8_t& each : scales) each = static_cast<uint8_t>(120 + random() % 4);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const int bits = bytes[i / 2] >> (i % 2 * 4) & 15;
    values[i] =
        std::ldexp((bits & 8) != 0 ? -kValues[bits & 7] : kValues[bits & 7], scales[i / 32] - 127);
  }
  tensors.erase(name);
  if (!packs) {
    tensors.emplace(name, from_vector(values, shape, Device::cpu()));
    return;
  }
  const int64_t rows = shape[0], columns = shape[1];
  tensors.emplace(name + "_packed", from_vector(bytes, {rows, columns / 2}, Device::cpu()));
  tensors.emplace(name + "_scale", from_vector(scales, {rows, columns / 32}, Device::cpu()));
}

TEST(ConvertStoredParts, BlocksOfEachExpertStayBlocks) {
  HfModel model = test::hf_model("kimi-k3");
  json config = json::parse(model.config);
  config["text_config"]["routed_expert_hidden_size"] = 64;
  config["text_config"]["moe_intermediate_size"] = 32;
  for (auto& [name, shape] : model.tensors)
    if (has(name, "_moe."))
      for (int64_t axis = 0; axis < shape.rank(); ++axis) {
        int64_t& length = shape[axis];
        length = length == 20 ? 64 : length == 24 ? 32 : length == 48 ? 64 : length;
      }
  model.config = config.dump();
  const HfTestFolder plain(model);
  config["text_config"]["quantization_config"] = {{"quant_method", "compressed-tensors"},
                                                  {"format", "mxfp4-pack-quantized"}};
  model.config = config.dump();
  const HfTestFolder packed(model);
  Tensors blocks;
  for (const HfTestFolder* folder : {&plain, &packed}) {
    Tensors all = load_safetensors(folder->path("model.safetensors"));
    for (const auto& [name, shape] : model.tensors)
      if (has(name, ".experts.")) replace_by_blocks(all, name, folder == &packed);
    replace_weights(*folder, all);
    blocks = all;
  }
  const GgufFile wanted = convert(plain), found = convert(packed);
  for (const GgufTensor& each : wanted.tensors()) {
    const bool is_expert = has(each.name, "_exps.weight");
    const GgufTensor& stored = *found.find_tensor(each.name);
    EXPECT_EQ(stored.type.is_block(), is_expert) << each.name;
    const Tensor tensor = found.tensor(stored);
    EXPECT_EQ((is_expert ? dequantise(tensor) : tensor).to_vector<float>(),
              wanted.tensor(each).to_vector<float>())
        << each.name;
  }
  blocks.erase("language_model.model.layers.1.block_sparse_moe.experts.2.w1.weight_scale");
  replace_weights(packed, blocks);
  std::filesystem::remove(packed.path("out.gguf"));
  EXPECT_TRUE(has(failure_of(packed, ErrorCode::kCorruptFile), "experts.2.w1.weight_packed"));
}

TEST(ConvertStoredParts, SettingsOfKimi3ThatPrismDoesNotHaveAreNamed) {
  EXPECT_TRUE(has(failure_with("kimi-k3", "hidden_act", "silu"), "hidden_act is \"silu\""));
  EXPECT_TRUE(has(failure_with("kimi-k3", "mla_use_nope", false), "mla_use_nope is false"));
  EXPECT_TRUE(has(failure_with("kimi-k3", "topk_method", "greedy"), "topk_method is \"greedy\""));
  EXPECT_TRUE(has(failure_with("kimi-k3", "use_full_rank_gate", false, "linear_attn_config"),
                  "use_full_rank_gate is false"));
  EXPECT_TRUE(
      has(failure_with("kimi-k3", "num_heads", 2, "linear_attn_config"), "rule have 2 heads"));
  EXPECT_TRUE(has(failure_with("kimi-k3", "kda_layers", {1, 2, 3}, "linear_attn_config"),
                  "both name layer 3"));
}

// The part of a matrix that this one of `count` ranks has.
Tensor part_of(const Tensor& matrix, int64_t rank, int64_t count, bool of_rows) {
  const int64_t length = matrix.size(of_rows ? 0 : 1) / count;
  const Tensor part = matrix.slice(of_rows ? 0 : 1, rank * length, (rank + 1) * length);
  return from_vector(part.to_vector<float>(), part.shape(), Device::cpu());
}

// Each rank of tensor parallelism has its own file, and one has what all of them share.
TEST(ConvertStoredParts, ShardsOfRanksAreJoined) {
  constexpr int64_t kRanks = 4;
  const HfTestFolder folder(test::hf_model("grok2"));
  convert(folder, "", "whole.gguf");
  Tensors common, own[kRanks];
  for (const auto& [name, tensor] : load_safetensors(folder.path("model.safetensors")))
    if (!has(name, ".experts."))
      common.emplace(name, tensor);
    else
      for (int64_t rank = 0; rank < kRanks; ++rank)
        own[rank].emplace(name, part_of(tensor, rank, kRanks, !has(name, ".w2.")));
  std::filesystem::remove(folder.path("model.safetensors"));
  const auto path = [&](int64_t rank) {
    return folder.path(fmt::format("pytorch_model-{:05}-TP-{:03}.safetensors", rank % 2, rank));
  };
  save_safetensors(folder.path("pytorch_model-00002-TP-common.safetensors"), common);
  for (int64_t rank = 0; rank < kRanks; ++rank) save_safetensors(path(rank), own[rank]);
  convert(folder);
  EXPECT_EQ(folder.read("out.gguf"), folder.read("whole.gguf"));

  const auto failure = [&](ErrorCode code) {
    std::filesystem::remove(folder.path("out.gguf"));
    return failure_of(folder, code);
  };
  std::filesystem::remove(path(3));
  EXPECT_TRUE(has(failure(ErrorCode::kCorruptFile), "have 18 rows, but moe_intermediate_size"));
  save_safetensors(path(3), own[3]);
  std::filesystem::remove(path(1));
  EXPECT_TRUE(has(failure(ErrorCode::kCorruptFile), "has no shard 1 of 4"));
  save_safetensors(path(1), own[1]);
  const std::string lost = "model.layers.1.block_sparse_moe.experts.2.w2.weight";
  const Tensor matrix = own[2].at(lost);
  own[2].erase(lost);
  save_safetensors(path(2), own[2]);
  EXPECT_TRUE(has(failure(ErrorCode::kCorruptFile), "experts.2.w2.weight has no shard 2 of 4"));
  own[2].emplace("model.layers.1.mlp.up_proj.weight",
                 common.at("model.layers.1.mlp.up_proj.weight"));
  save_safetensors(path(2), own[2]);
  EXPECT_TRUE(has(failure(ErrorCode::kCorruptFile), "mlp.up_proj.weight is also in another file"));
  own[2].emplace(lost, matrix);
  common.erase("model.layers.1.mlp.up_proj.weight");
  save_safetensors(folder.path("pytorch_model-00002-TP-common.safetensors"), common);
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    own[rank].insert_or_assign("model.layers.1.mlp.up_proj.weight",
                               from_vector(std::vector<float>(24), {6, 4}, Device::cpu()));
    save_safetensors(path(rank), own[rank]);
  }
  EXPECT_TRUE(has(failure(ErrorCode::kNotSupported), "4 shards, which cannot be joined"));
}

TEST(ConvertStoredParts, SettingsOfGrokThatPrismDoesNotHaveAreNamed) {
  EXPECT_TRUE(has(failure_with("grok2", "residual_moe", false), "residual_moe is false"));
  EXPECT_TRUE(has(failure_with("grok1", "residual_moe", true), "residual_moe is true"));
  EXPECT_TRUE(has(failure_with("grok2", "rope_type", "yarn_log"), "rope_type is \"yarn_log\""));
  EXPECT_TRUE(has(failure_with("grok2", "extrapolation_factor", 2), "extrapolation_factor is 2"));
  EXPECT_TRUE(
      has(failure_with("grok2", "rope_rotate_half_dims", true), "rotate_half_dims is true"));
  EXPECT_TRUE(has(failure_with("grok2", "router_logit_softcapping", 20), "softcapping is 20"));
  const GgufFile file = convert(HfTestFolder(test::hf_model("grok2")));
  EXPECT_EQ(file.integer("grok.context_length"), 48);  // where attention becomes sharper
}

// The rows of q, k and v of each rank have blocks of their own, of which the last one of the first
// layer is not whole.
TEST(ConvertStoredParts, BlocksBeginAnewWithEachRank) {
  constexpr int64_t kRanks = 4, kBlock = 16;
  HfModel model = test::hf_model("mimo-v2-5");
  const HfTestFolder plain(model);
  json config = json::parse(model.config);
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"weight_block_size", {kBlock, kBlock}}};
  model.config = config.dump();
  const HfTestFolder scaled(model);
  Tensors values = load_safetensors(plain.path("model.safetensors")), stored = values;
  std::mt19937 random(5);
  for (const auto& [name, shape] : model.tensors) {
    if (!has(name, "qkv_proj")) continue;
    const int64_t rows = shape[0] / kRanks, columns = shape[1], across = columns / kBlock,
                  down = (rows + kBlock - 1) / kBlock;
    std::vector<int8_t> integers(static_cast<size_t>(shape.elements()));
    std::vector<float> scales(static_cast<size_t>(kRanks * down * across)), numbers;
    for (int8_t& each : integers) each = static_cast<int8_t>(random());
    for (float& each : scales) each = static_cast<float>(1 + random() % 64) / 8192;
    for (int64_t row = 0; row < shape[0]; ++row)
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t block = row / rows * down + row % rows / kBlock;
        numbers.push_back(static_cast<float>(integers[static_cast<size_t>(row * columns + i)]) *
                          scales[static_cast<size_t>(block * across + i / kBlock)]);
      }
    values.insert_or_assign(name, from_vector(numbers, shape, Device::cpu()));
    stored.insert_or_assign(name, from_vector(integers, shape, Device::cpu()));
    stored.emplace(name + "_scale_inv",
                   from_vector(scales, {kRanks * down, across}, Device::cpu()));
  }
  replace_weights(plain, values);
  replace_weights(scaled, stored);
  const GgufFile wanted = convert(plain), found = convert(scaled);
  for (const GgufTensor& each : wanted.tensors())
    EXPECT_EQ(found.tensor(*found.find_tensor(each.name)).to_vector<float>(),
              wanted.tensor(each).to_vector<float>())
        << each.name;
  const std::string scale = "model.layers.1.self_attn.qkv_proj.weight_scale_inv";
  stored.insert_or_assign(scale, from_vector(std::vector<float>(26), {13, 2}, Device::cpu()));
  replace_weights(scaled, stored);
  std::filesystem::remove(scaled.path("out.gguf"));
  EXPECT_TRUE(has(failure_of(scaled, ErrorCode::kCorruptFile), "its scales are f32 [13, 2]"));
}

TEST(ConvertStoredParts, SettingsOfMimoThatPrismDoesNotHaveAreNamed) {
  const auto with = [](const char* key, const json& value) {
    return failure_with("mimo-v2-5", key, value);
  };
  EXPECT_TRUE(has(with("attention_projection_layout", "split"), "the folder has qkv_proj"));
  EXPECT_TRUE(has(with("attention_projection_layout", "pairs"), "layout is \"pairs\""));
  EXPECT_TRUE(has(with("swa_num_attention_heads", 16), "swa_num_attention_heads is 16"));
  EXPECT_TRUE(has(with("topk_method", "greedy"), "topk_method is \"greedy\""));
  EXPECT_TRUE(has(with("swa_v_head_dim", 12), "swa_v_head_dim differs"));
}

}  // namespace
}  // namespace prism::llm
