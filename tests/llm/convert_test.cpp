// Converts tiny Hugging Face folders and compares the models with what transformers computes.
#include "llm/convert/convert_folder.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "llm/gguf/quantise_file.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/io.h"
#include "prism/llm/gguf.h"
#include "prism/llm/model_store.h"
#include "prism/llm/tokenizer.h"
#include "prism/ops/create.h"
#include "prism/ops/quantise.h"
#include "support/models/hf_files.h"
#include "support/scoped_variable.h"

namespace prism::llm {
namespace {

using json = nlohmann::json;
using test::HfModel;
using test::HfTestFolder;

double error_of(std::span<const float> found, std::span<const float> wanted) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double by = static_cast<double>(found[i]) - static_cast<double>(wanted[i]);
    difference += by * by;
    size += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
  }
  return found.size() == wanted.size() ? difference / size : 1e30;
}

// The last logits, those of a classifier's labels, or the mean hidden state of another encoder.
std::vector<float> result_of(const GgufFile& file, const std::vector<int32_t>& tokens) {
  Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 32, DType::f32)});
  if (model.classifies()) return model.classify(std::span(&tokens, 1))[0];
  if (!model.config().causal) return model.embed(std::span(&tokens, 1))[0];
  return model.prefill(0, 0, tokens).to_vector<float>();
}

GgufFile convert(const HfTestFolder& folder, const std::string& type = "",
                 const std::string& to = "out.gguf") {
  convert_folder(folder.path(), folder.path(to), {.type = type, .name = "tiny"});
  return GgufFile::open(folder.path(to));
}

std::string failure_of(const HfTestFolder& folder, ErrorCode code) {
  try {
    convert(folder);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_FALSE(std::filesystem::exists(folder.path("out.gguf")));
    return error.what();
  }
  ADD_FAILURE() << "the folder was converted";
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(Convert, EveryArchitectureComputesWhatTransformersDoes) {
  const std::vector<HfModel> models = test::hf_models();
  EXPECT_GE(models.size(), 118u);
  for (const HfModel& model : models) {
    const HfTestFolder folder(model);
    try {
      EXPECT_LT(error_of(result_of(convert(folder), model.tokens), model.expected), 1e-8)
          << model.name;
    } catch (const Error& error) {
      ADD_FAILURE() << model.name << ": " << error.what();
    }
  }
}

// Weights of 16 bits are copied bit by bit; other types are what quantising the F32 file makes.
TEST(Convert, TypesAreThoseOfTheFolderOrAsAsked) {
  const HfModel model = test::hf_model("qwen2");
  for (const DType type : {DType::f16, DType::bf16}) {
    const HfTestFolder folder(model, type);
    const GgufFile file = convert(folder);
    EXPECT_EQ(file.find_tensor("blk.1.ffn_up.weight")->type, ElementType(type));
    EXPECT_EQ(file.find_tensor("blk.1.attn_q.bias")->type, ElementType(DType::f32));
    EXPECT_LT(error_of(result_of(file, model.tokens), model.expected), 2e-3);
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
TEST(Convert, RecurrentLayersAreQuantised) {
  for (const auto& [name, tensor] : {std::pair("mamba", "blk.1.ssm_in.weight"),
                                     {"mamba2", "blk.1.ssm_out.weight"},
                                     {"lfm2", "blk.1.shortconv.in_proj.weight"}}) {
    const HfModel model = test::hf_model(name);
    const GgufFile file = convert(HfTestFolder(model), "Q8_0");
    EXPECT_EQ(file.find_tensor(tensor)->type, ElementType(BlockType::q8_0)) << tensor;
    EXPECT_LT(error_of(result_of(file, model.tokens), model.expected), 0.05) << name;
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
TEST(Convert, BlocksOfExpertsStayBlocks) {
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
  EXPECT_LT(error_of(result_of(found, model.tokens), result_of(wanted, model.tokens)), 1e-2);
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
TEST(Convert, WeightsOfEightBitsAreMultipliedByTheirScales) {
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

// Layers behind the last one that propose tokens are left out.
TEST(Convert, ProposingLayersAreLeftOut) {
  HfModel model = test::hf_model("glm4moe");
  model.tensors["model.layers.4.eh_proj.weight"] = {32, 64};
  model.tensors["model.layers.4.self_attn.q_proj.weight"] = {64, 32};
  model.tensors["mtp.fc.weight"] = {32, 64};
  EXPECT_LT(error_of(result_of(convert(HfTestFolder(model)), model.tokens), model.expected), 1e-8);
}

// Python writes an infinite limit of Mamba's steps as a word.
TEST(Convert, InfiniteNumbersAreLeftOut) {
  const HfModel model = test::hf_model("mamba2");
  const HfTestFolder folder(model);
  json config = json::parse(model.config);
  config["time_step_limit"] = "HERE";
  std::string text = config.dump();
  text.replace(text.find("\"HERE\""), 6, "[0.0, Infinity]");
  folder.write("config.json", text);
  EXPECT_LT(error_of(result_of(convert(folder), model.tokens), model.expected), 1e-8);
}

// Files of Gemma 3 with eyes leave out what Gemma3TextConfig has by default.
TEST(Convert, TextPartsHaveDefaults) {
  HfModel model = test::hf_model("gemma3-seeing");
  json config = json::parse(model.config);
  config["text_config"].erase("rms_norm_eps");
  config["text_config"].erase("max_position_embeddings");
  model.config = config.dump();
  const GgufFile file = convert(HfTestFolder(model));
  EXPECT_EQ(file.integer("gemma3.context_length"), 131072);
  EXPECT_LT(error_of(result_of(file, model.tokens), model.expected), 1e-8);
}

// The parts of a model in several files make the same file.
TEST(Convert, SeveralFilesAreOneModel) {
  const HfModel model = test::hf_model("llama");
  const HfTestFolder folder(model);
  convert(folder, "", "whole.gguf");
  const std::map<std::string, Tensor> all = load_safetensors(folder.path("model.safetensors"));
  std::map<std::string, Tensor> halves[2];
  json map = json::object();
  for (const auto& [name, tensor] : all) {
    const size_t half = map.size() % 2;
    halves[half].emplace(name, tensor);
    map[name] = "part-" + std::to_string(half) + ".safetensors";
  }
  for (int half = 0; half < 2; ++half)
    save_safetensors(folder.path("part-" + std::to_string(half) + ".safetensors"), halves[half]);
  std::filesystem::remove(folder.path("model.safetensors"));
  folder.write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  convert(folder);
  EXPECT_EQ(folder.read("out.gguf"), folder.read("whole.gguf"));

  map["model.nowhere.weight"] = "part-0.safetensors";
  folder.write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  std::filesystem::remove(folder.path("out.gguf"));
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kCorruptFile), "model.nowhere.weight"));
  for (const std::string& name :
       {std::string("../outside.safetensors"), std::string("part-0.safetensors\0.x", 21)}) {
    map["model.nowhere.weight"] = name;
    folder.write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
    EXPECT_TRUE(has(failure_of(folder, ErrorCode::kCorruptFile), "is not inside the folder"));
  }
}

TEST(Convert, TensorsThatNothingUsesOrThatAreMissingAreErrors) {
  HfModel model = test::hf_model("llama");
  model.tensors["model.layers.0.self_attn.extra.weight"] = {4, 4};
  EXPECT_TRUE(has(failure_of(HfTestFolder(model), ErrorCode::kNotSupported),
                  "model.layers.0.self_attn.extra.weight"));
  model = test::hf_model("llama");
  model.tensors["model.layers.9.mlp.up_proj.weight"] = {48, 32};  // beyond the last layer
  EXPECT_TRUE(has(failure_of(HfTestFolder(model), ErrorCode::kNotSupported), "layers.9"));
  model = test::hf_model("llama");
  model.tensors.erase("model.layers.2.mlp.up_proj.weight");
  EXPECT_TRUE(has(failure_of(HfTestFolder(model), ErrorCode::kNotFound), "blk.2.ffn_up.weight"));
  model = test::hf_model("llama");
  model.tensors["model.layers.2.mlp.up_proj.weight"] = {47, 32};
  EXPECT_TRUE(has(failure_of(HfTestFolder(model), ErrorCode::kCorruptFile), "blk.2.ffn_up.weight"));
  model = test::hf_model("mixtral");
  model.tensors.erase("model.layers.1.block_sparse_moe.experts.3.w2.weight");
  EXPECT_TRUE(has(failure_of(HfTestFolder(model), ErrorCode::kCorruptFile), "expert 3"));
}

TEST(Convert, SettingsThatPrismDoesNotHaveAreNamed) {
  const auto with = [](const char* model, const char* key, const json& value) {
    HfModel changed = test::hf_model(model);
    json config = json::parse(changed.config);
    config[key] = value;
    changed.config = config.dump();
    return failure_of(HfTestFolder(changed), ErrorCode::kNotSupported);
  };
  EXPECT_TRUE(has(with("llama", "architectures", {"ParrotForCausalLM"}), "ParrotForCausalLM"));
  EXPECT_TRUE(has(with("llama", "architectures", {"ParrotForCausalLM"}), "Qwen3ForCausalLM"));
  EXPECT_TRUE(has(with("llama", "hidden_act", "gelu"), "hidden_act is \"gelu\""));
  EXPECT_TRUE(has(with("llama", "rope_parameters", {{"rope_type", "dynamic"}}), "dynamic"));
  EXPECT_TRUE(has(with("llama", "quantization_config", {{"bits", 4}}), "quantization_config"));
  EXPECT_TRUE(has(with("gemma2", "query_pre_attn_scalar", 99), "query_pre_attn_scalar"));
  EXPECT_TRUE(has(with("smollm3", "no_rope_layer_interval", 3), "no_rope_layer_interval"));
  EXPECT_TRUE(has(with("bert", "position_embedding_type", "relative_key"), "relative_key"));
  EXPECT_TRUE(has(with("stablelm", "qk_layernorm", true), "qk_layernorm is true"));
  EXPECT_TRUE(has(with("phi", "rope_parameters", {{"rope_theta", 1e4}}), "partial_rotary_factor"));
  EXPECT_TRUE(has(with("modern-bert-ranker", "classifier_pooling", "cls"), "classifier_pooling"));
  EXPECT_TRUE(has(with("modern-bert", "global_attn_every_n_layers", 2), "global_attn_every_n"));
  EXPECT_TRUE(has(with("exaone4", "sliding_window", 8), "sliding_window is 8 for 4 layers"));
  EXPECT_TRUE(has(with("cohere2", "sliding_window_pattern", 2), "sliding_window_pattern is 2"));
}

// A model with a window that Prism's layers lack is right up to that window.
TEST(Convert, AWindowLimitsTheContext) {
  HfModel model = test::hf_model("mistral");
  json config = json::parse(model.config);
  config["sliding_window"] = 24;
  model.config = config.dump();
  EXPECT_EQ(convert(HfTestFolder(model)).integer("llama.context_length"), 24);
}

// EmbeddingGemma multiplies the mean of its states by two matrices.
TEST(Convert, MatricesBehindThePoolingAreKept) {
  const HfModel model = test::hf_model("gemma-embedding");
  const HfTestFolder folder(model);
  folder.write("modules.json",
               R"([{"type":"a.Transformer","path":""},{"type":"a.Pooling","path":"1_Pooling"},
                   {"type":"a.Dense","path":"2_Dense"},{"type":"a.Dense","path":"3_Dense"}])");
  folder.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens":true})");
  std::vector<float> wanted = model.expected;
  for (const auto& [path, out] : {std::pair("2_Dense", 48), {"3_Dense", 24}}) {
    folder.write(std::string(path) + "/config.json",
                 R"({"activation_function":"torch.nn.modules.linear.Identity","bias":false})");
    const Shape shape = {out, static_cast<int64_t>(wanted.size())};
    const std::vector<float> matrix = test::hf_values(path, shape);
    save_safetensors(folder.path(std::string(path) + "/model.safetensors"),
                     {{"linear.weight", from_vector(matrix, shape, Device::cpu())}});
    std::vector<float> product;
    for (int row = 0; row < out; ++row) {
      double sum = 0;
      for (size_t i = 0; i < wanted.size(); ++i)
        sum += static_cast<double>(matrix[static_cast<size_t>(row) * wanted.size() + i]) *
               static_cast<double>(wanted[i]);
      product.push_back(static_cast<float>(sum));
    }
    wanted = product;
  }
  EXPECT_LT(error_of(result_of(convert(folder), model.tokens), wanted), 1e-8);
  std::filesystem::remove(folder.path("out.gguf"));
  folder.write("3_Dense/config.json",
               R"({"activation_function":"torch.nn.modules.activation.Tanh"})");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kNotSupported), "activation.Tanh"));
}

TEST(Convert, SentenceSettingsGivePoolingAndLength) {
  HfModel model = test::hf_model("bert");
  const HfTestFolder folder(model);
  folder.write("modules.json",
               R"([{"type":"a.Transformer","path":""},{"type":"a.Pooling","path":"1_Pooling"}])");
  folder.write("1_Pooling/config.json", R"({"pooling_mode_cls_token":true})");
  folder.write("sentence_bert_config.json", R"({"max_seq_length":40})");
  const GgufFile file = convert(folder);
  EXPECT_EQ(file.integer("bert.pooling_type"), 2);
  EXPECT_EQ(file.integer("bert.context_length"), 40);
  EXPECT_EQ(file.find_tensor("position_embd.weight")->shape, (Shape{40, 32}));
  std::filesystem::remove(folder.path("out.gguf"));
  folder.write("modules.json", R"([{"type":"a.Pooling","path":"../../etc"}])");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kCorruptFile), "../../etc"));
  folder.write("modules.json", R"([{"type":"a.LSTM","path":"2_LSTM"}])");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kNotSupported), "a.LSTM"));
}

// RoBERTa's first position is the one after its padding token's id, here 4.
TEST(Convert, PositionsOfPaddingAreLeftOut) {
  const GgufFile file = convert(HfTestFolder(test::hf_model("xlm-roberta")));
  EXPECT_EQ(file.integer("bert.context_length"), 59);
  EXPECT_EQ(file.find_tensor("position_embd.weight")->shape, (Shape{59, 32}));
}

// Published files of nomic-bert have the names of GPT-2.
TEST(Convert, OldNamesOfSettingsMeanTheSame) {
  HfModel model = test::hf_model("nomic-bert");
  json config = json::parse(model.config);
  for (const auto& [old, now] : {std::pair("n_embd", "hidden_size"),
                                 {"n_layer", "num_hidden_layers"},
                                 {"n_head", "num_attention_heads"},
                                 {"n_inner", "intermediate_size"},
                                 {"layer_norm_epsilon", "layer_norm_eps"},
                                 {"max_trained_positions", "max_position_embeddings"}}) {
    config[old] = config[now];
    config.erase(now);
  }
  config["rotary_emb_base"] = config["rope_parameters"]["rope_theta"];
  for (const char* name : {"rope_parameters", "head_dim", "hidden_act"}) config.erase(name);
  config["n_positions"] = 256;
  model.config = config.dump();
  const GgufFile file = convert(HfTestFolder(model));
  EXPECT_EQ(file.integer("nomic-bert.context_length"), 64);
  EXPECT_LT(error_of(result_of(file, model.tokens), model.expected), 1e-8);
}

// A folder is a model's name. It is converted once, and again when it changes.
TEST(Convert, AFolderIsAModelsName) {
  const HfModel model = test::hf_model("llama");
  const HfTestFolder folder(model), cache(model);
  const test::ScopedVariable variable("PRISM_CACHE_DIR", cache.path("cache"));
  EXPECT_EQ(find_model(folder.path()), "");
  int notes = 0;
  FetchOptions options;
  options.note = [&](const std::string& line) { notes += has(line, "converting"); };
  const std::string path = resolve_model(folder.path(), options);
  EXPECT_TRUE(path.starts_with(cache.path("cache"))) << path;
  EXPECT_EQ(resolve_model(folder.path(), options), path);
  EXPECT_EQ(find_model(folder.path()), path);
  EXPECT_EQ(notes, 1);
  EXPECT_LT(error_of(result_of(GgufFile::open(path), model.tokens), model.expected), 1e-8);
  folder.write("config.json", folder.read("config.json") + "\n");
  EXPECT_NE(resolve_model(folder.path(), options), path);
  EXPECT_EQ(notes, 2);
  ASSERT_EQ(stored_models().size(), 2u);
  remove_model(folder.path());
  EXPECT_EQ(stored_models().size(), 1u);
}

}  // namespace
}  // namespace prism::llm
