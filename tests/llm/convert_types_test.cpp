// Element types of converted Hugging Face folders: those that are kept, quantised, or unpacked from
// 8-bit weights and blocks.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "llm/gguf/quantise_file.h"
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

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// Weights of 16 bits are copied bit by bit; other types are what quantising the F32 file makes.
TEST(ConvertTypes, TypesAreThoseOfTheFolderOrAsAsked) {
  const HfModel model = test::hf_model("qwen2");
  for (const DType type : {DType::f16, DType::bf16}) {
    const HfTestFolder folder(model, type);
    const GgufFile file = convert(folder);
    EXPECT_EQ(file.find_tensor("blk.1.ffn_up.weight")->type, ElementType(type));
    EXPECT_EQ(file.find_tensor("blk.1.attn_q.bias")->type, ElementType(DType::f32));
    EXPECT_LT(normalised_error(result_of(file, model.tokens), model.expected), 2e-3);
  }
  for (const char* type : {"F16", "Q8_0", "Q4_K_M"}) {
    const HfTestFolder folder(test::hf_model("llama"));
    const GgufFile at_once = convert(folder, type), first = convert(folder, "F32", "first.gguf");
    quantise_file(first, folder.path("then.gguf"), quantise_mix(type));
    const GgufFile then = GgufFile::open(folder.path("then.gguf"));
    ASSERT_EQ(at_once.tensors().size(), then.tensors().size());
    for (const GgufTensor& each : at_once.tensors()) {
      const GgufTensor& other = *then.find_tensor(each.name);
      EXPECT_EQ(each.type, other.type) << each.name;
      const auto a = at_once.data(each), b = then.data(other);
      EXPECT_TRUE(std::ranges::equal(a, b)) << type << " " << each.name;
    }
    EXPECT_EQ(at_once.integer("general.file_type"), then.integer("general.file_type"));
  }
}

// The large matrices of recurrent layers are quantised like others.
TEST(ConvertTypes, RecurrentLayersAreQuantised) {
  for (const auto& [name, tensor] : {std::pair("mamba", "blk.1.ssm_in.weight"),
                                     {"mamba2", "blk.1.ssm_out.weight"},
                                     {"lfm2", "blk.1.shortconv.in_proj.weight"}}) {
    const HfModel model = test::hf_model(name);
    const GgufFile file = convert(HfTestFolder(model), "Q8_0");
    EXPECT_EQ(file.find_tensor(tensor)->type, ElementType(BlockType::q8_0)) << tensor;
    EXPECT_LT(normalised_error(result_of(file, model.tokens), model.expected), 0.05) << name;
  }
}

// Replaces a matrix of experts [experts, in, out] by random blocks [experts, out, in / 32, 16] with
// scales, or by the numbers that these mean.
void replace_experts(std::map<std::string, Tensor>& tensors, const std::string& name, bool packs) {
  constexpr float kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const Shape shape = tensors.at(name).shape();
  const int64_t experts = shape[0], in = shape[1], out = shape[2], blocks = in / 32;
  std::mt19937 random(static_cast<uint32_t>(name.size()) + static_cast<uint8_t>(name[13]));
  std::vector<uint8_t> bytes(static_cast<size_t>(experts * out * blocks * 16)),
      scales(static_cast<size_t>(experts * out * blocks));
  for (uint8_t& each : bytes) each = static_cast<uint8_t>(random());
  for (uint8_t& each : scales) each = static_cast<uint8_t>(120 + random() % 4);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (int64_t row = 0; row < experts * out; ++row)
    for (int64_t i = 0; i < in; ++i) {
      const auto block = static_cast<size_t>(row * blocks + i / 32);
      const auto byte = bytes[block * 16 + static_cast<size_t>(i % 32 / 2)];
      const int bits = i % 2 == 0 ? byte & 15 : byte >> 4;
      const float value = std::ldexp(kValues[bits & 7], scales[block] - 127);
      values[static_cast<size_t>(((row / out) * in + i) * out + row % out)] =
          (bits & 8) != 0 ? -value : value;
    }
  tensors.erase(name);
  if (!packs) {
    tensors.emplace(name, from_vector(values, shape, Device::cpu()));
    return;
  }
  tensors.emplace(name + "_blocks", from_vector(bytes, {experts, out, blocks, 16}, Device::cpu()));
  tensors.emplace(name + "_scales", from_vector(scales, {experts, out, blocks}, Device::cpu()));
}

// The experts of gpt-oss in blocks are those that transformers unpacks, and stay blocks.
TEST(ConvertTypes, BlocksOfExpertsStayBlocks) {
  HfModel model = test::hf_model("gpt-oss");
  json config = json::parse(model.config);
  config["intermediate_size"] = 64;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string experts = fmt::format("model.layers.{}.mlp.experts.", layer);
    model.tensors[experts + "gate_up_proj"] = {4, 32, 128};
    model.tensors[experts + "gate_up_proj_bias"] = {4, 128};
    model.tensors[experts + "down_proj"] = {4, 64, 32};
  }
  model.config = config.dump();
  const HfTestFolder plain(model);
  config["quantization_config"] = {{"quant_method", "mxfp4"}};
  model.config = config.dump();
  const HfTestFolder packed(model);
  for (const HfTestFolder* folder : {&plain, &packed}) {
    std::map<std::string, Tensor> all = load_safetensors(folder->path("model.safetensors"));
    for (int layer = 0; layer < 4; ++layer)
      for (const char* name : {"gate_up_proj", "down_proj"})
        replace_experts(all, fmt::format("model.layers.{}.mlp.experts.{}", layer, name),
                        folder == &packed);
    save_safetensors(folder->path("changed.safetensors"), all);
    std::filesystem::rename(folder->path("changed.safetensors"), folder->path("model.safetensors"));
  }
  const GgufFile wanted = convert(plain), found = convert(packed);
  const GgufFile unpacked = convert(packed, "F32", "f32.gguf");
  for (const GgufTensor& each : wanted.tensors()) {
    const GgufTensor& blocks = *found.find_tensor(each.name);
    const bool is_expert = has(each.name, "_exps.weight");
    EXPECT_EQ(blocks.type.is_block(), is_expert) << each.name;
    const Tensor tensor = found.tensor(blocks);
    EXPECT_EQ((is_expert ? dequantise(tensor) : tensor).to_vector<float>(),
              wanted.tensor(each).to_vector<float>())
        << each.name;
    EXPECT_EQ(unpacked.tensor(*unpacked.find_tensor(each.name)).to_vector<float>(),
              wanted.tensor(each).to_vector<float>())
        << each.name;
  }
  EXPECT_LT(normalised_error(result_of(found, model.tokens), result_of(wanted, model.tokens)),
            1e-2);
  json other = config;
  other["quantization_config"]["quant_method"] = "awq";
  packed.write("config.json", other.dump());
  std::filesystem::remove(packed.path("out.gguf"));
  EXPECT_TRUE(has(failure_of(packed, ErrorCode::kNotSupported), "quantization_config"));
}

// Values of 8 bits by their definition, with a scale.
float f8_value(uint8_t bits, float scale) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double size = exponent == 0 ? mantissa * std::pow(2.0, -9)
                                    : (1 + mantissa / 8.0) * std::pow(2.0, exponent - 7);
  return static_cast<float>((bits & 128) != 0 ? -size : size) * scale;
}

// One .safetensors file from U8 tensors that are meant as another type, and others as they are.
void save_as(const HfTestFolder& folder, const std::map<std::string, Tensor>& tensors,
             const std::string& meant) {
  save_safetensors(folder.path("model.safetensors"), tensors);
  std::string file = folder.read("model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  std::string header = file.substr(8, length);
  const std::string content = file.substr(8 + length);
  for (size_t at = 0; (at = header.find("\"U8\"", at)) != header.npos;)
    header.replace(at, 4, '"' + meant + '"');
  length = header.size();
  folder.write(
      "model.safetensors",
      std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + content);
}

// Weights of 8 bits become the numbers that they mean with their scales: of blocks, whose last ones
// are cut, of rows, or of whole matrices; floats and integers.
TEST(ConvertTypes, WeightsOfEightBitsAreMultipliedByTheirScales) {
  struct Case {
    const char *model, *scale, *type;
    int64_t block;  // 0: a scale for each row, -1: for all
    json settings;
  };
  const json groups = {{"group_0", {{"weights", {{"num_bits", 8}, {"symmetric", true}}}}}};
  const Case cases[] = {{"deepseek-v3",
                         "_scale_inv",
                         "F8_E4M3",
                         5,
                         {{"quant_method", "fp8"}, {"weight_block_size", {5, 5}}}},
                        {"minimax-m2", "_scale_inv", "F8_E4M3", -1, {{"quant_method", "fp8"}}},
                        {"llama",
                         "_scale",
                         "F8_E4M3",
                         0,
                         {{"quant_method", "compressed-tensors"}, {"config_groups", groups}}},
                        {"qwen3moe",
                         "_scale",
                         "I8",
                         0,
                         {{"quant_method", "compressed-tensors"}, {"config_groups", groups}}}};
  for (const Case& each : cases) {
    HfModel model = test::hf_model(each.model);
    const HfTestFolder plain(model);
    json config = json::parse(model.config);
    config["quantization_config"] = each.settings;
    model.config = config.dump();
    const HfTestFolder packed(model);
    std::map<std::string, Tensor> numbers = load_safetensors(plain.path("model.safetensors")),
                                  bytes = numbers;
    std::mt19937 random(7);
    for (const auto& [name, shape] : model.tensors) {
      if (shape.rank() != 2 || !has(name, "_proj.weight")) continue;
      const int64_t rows = shape[0], columns = shape[1];
      const int64_t down = each.block < 0    ? rows
                           : each.block == 0 ? 1
                                             : each.block,
                    across = each.block <= 0 ? columns : each.block;
      const Shape parts = {(rows + down - 1) / down, (columns + across - 1) / across};
      std::vector<uint8_t> codes(static_cast<size_t>(rows * columns));
      std::vector<float> scales(static_cast<size_t>(parts.elements())), values(codes.size());
      for (uint8_t& code : codes) do
          code = static_cast<uint8_t>(random());
        while ((code & 127) == 127);
      for (float& scale : scales) scale = std::ldexp(1.0f + static_cast<float>(random() % 8), -9);
      for (int64_t i = 0; i < rows * columns; ++i) {
        const int64_t part = i / columns / down * parts[1] + i % columns / across;
        const float scale = scales[static_cast<size_t>(part)];
        const uint8_t code = codes[static_cast<size_t>(i)];
        values[static_cast<size_t>(i)] =
            each.type[0] == 'F' ? f8_value(code, scale)
                                : static_cast<float>(static_cast<int8_t>(code)) * scale;
      }
      numbers.insert_or_assign(name, from_vector(values, shape, Device::cpu()));
      bytes.insert_or_assign(name, from_vector(codes, shape, Device::cpu()));
      bytes.emplace(name + each.scale, from_vector(scales, parts, Device::cpu()));
    }
    save_safetensors(plain.path("model.safetensors"), numbers);
    save_as(packed, bytes, each.type);
    const GgufFile wanted = convert(plain), found = convert(packed);
    ASSERT_EQ(found.tensors().size(), wanted.tensors().size()) << each.model;
    for (const GgufTensor& tensor : wanted.tensors())
      EXPECT_EQ(found.tensor(*found.find_tensor(tensor.name)).to_vector<float>(),
                wanted.tensor(tensor).to_vector<float>())
          << each.model << " " << tensor.name;
    // Scales that are missing, or of another number, are named.
    std::filesystem::remove(packed.path("out.gguf"));
    const std::string name = model.name == "deepseek-v3" ? "model.layers.0.self_attn.o_proj.weight"
                                                         : "model.layers.1.self_attn.q_proj.weight";
    bytes.insert_or_assign(name + each.scale,
                           from_vector(std::vector<float>(3), {3, 1}, Device::cpu()));
    save_as(packed, bytes, each.type);
    EXPECT_TRUE(has(failure_of(packed, ErrorCode::kCorruptFile), name)) << each.model;
    bytes.erase(name + each.scale);
    save_as(packed, bytes, each.type);
    EXPECT_TRUE(has(failure_of(packed, ErrorCode::kCorruptFile), "no scales")) << each.model;
  }
}

}  // namespace
}  // namespace prism::llm
