// Converts tiny Hugging Face folders and compares the models with what transformers computes.
#include "llm/convert/convert_folder.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "prism/error.h"
#include "prism/io.h"
#include "prism/llm/gguf.h"
#include "prism/llm/model_store.h"
#include "prism/llm/tokenizer.h"
#include "prism/ops/create.h"
#include "support/models/converted.h"
#include "support/models/hf_files.h"
#include "support/normalised_error.h"
#include "support/scoped_variable.h"

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

TEST(Convert, EveryArchitectureComputesWhatTransformersDoes) {
  const std::vector<HfModel> models = test::hf_models();
  EXPECT_GE(models.size(), 210u);
  for (HfModel model : models) {
    // Contexts below 256 tokens are long for Prism and llama.cpp, transformers counts the text.
    if (model.name == "phi3-long") {
      json config = json::parse(model.config);
      json& rope = config.at("rope_parameters");
      std::swap(rope.at("long_factor"), rope.at("short_factor"));
      model.config = config.dump();
    }
    const HfTestFolder folder(model);
    try {
      std::vector<float> result = result_of(convert(folder), model.tokens);
      result.resize(model.expected.size());  // Chameleon never answers with tokens of images
      EXPECT_LT(normalised_error(result, model.expected), 1e-8) << model.name;
    } catch (const Error& error) {
      ADD_FAILURE() << model.name << ": " << error.what();
    }
  }
}

// Rounding can change the choice of experts, so nothing limits the difference for all of them.
TEST(Convert, QuantisedModelsCompute) {
  for (const HfModel& model : test::hf_models()) {
    const HfTestFolder folder(model);
    try {
      for (const float each : result_of(convert(folder, "Q8_0"), model.tokens))
        ASSERT_TRUE(std::isfinite(each)) << model.name;
    } catch (const Error& error) {
      ADD_FAILURE() << model.name << ": " << error.what();
    }
  }
}

// Layers behind the last one that propose tokens are left out.
TEST(Convert, ProposingLayersAreLeftOut) {
  HfModel model = test::hf_model("glm4moe");
  model.tensors["model.layers.4.eh_proj.weight"] = {32, 64};
  model.tensors["model.layers.4.self_attn.q_proj.weight"] = {64, 32};
  model.tensors["mtp.fc.weight"] = {32, 64};
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
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
  EXPECT_LT(normalised_error(result_of(convert(folder), model.tokens), model.expected), 1e-8);
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
  EXPECT_LT(normalised_error(result_of(file, model.tokens), model.expected), 1e-8);
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
  EXPECT_TRUE(has(with("llama", "architectures", {"ParrotForCausalLM"}), "says how to ask"));
  EXPECT_FALSE(has(with("llama", "architectures", {"ParrotForCausalLM"}), "(but"));
  EXPECT_TRUE(has(with("llama", "architectures", {"Qwen33ForCausalLM"}), "Qwen3ForCausalLM can"));
  EXPECT_TRUE(has(with("llama", "hidden_act", "gelu"), "hidden_act is \"gelu\""));
  EXPECT_TRUE(has(with("llama", "rope_parameters", {{"rope_type", "spiral"}}), "spiral"));
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
  EXPECT_TRUE(has(with("bert-distil", "activation", "relu"), "activation is \"relu\""));
  EXPECT_TRUE(has(with("bert-jina", "feed_forward_type", "reglu"), "feed_forward_type"));
  EXPECT_TRUE(has(with("jina-bert-v3", "emb_pooler", "mean"), "emb_pooler"));
  EXPECT_TRUE(has(with("nomic-bert-moe", "num_shared_experts", 1), "num_shared_experts is 1"));
  EXPECT_TRUE(has(with("neo-bert", "ngpt", true), "ngpt is true"));
  EXPECT_TRUE(has(with("llama-bidirectional", "pooling", "cls"), "pooling is \"cls\""));
}

TEST(Convert, SettingsOfMixturesThatPrismDoesNotHaveAreNamed) {
  const auto with = [](const char* model, const char* key, const json& value) {
    HfModel changed = test::hf_model(model);
    json config = json::parse(changed.config);
    config[key] = value;
    changed.config = config.dump();
    return failure_of(HfTestFolder(changed), ErrorCode::kNotSupported);
  };
  EXPECT_TRUE(has(with("deepseek", "norm_topk_prob", true), "norm_topk_prob is true"));
  EXPECT_TRUE(has(with("llada", "rope", false), "rope is false"));
  EXPECT_TRUE(has(with("llada", "multi_query_attention", true), "multi_query_attention is true"));
  EXPECT_TRUE(has(with("llada-moe", "moe_layer_freq", {1, 0, 1, 1}), "moe_layer_freq"));
  EXPECT_TRUE(has(with("rwkv6", "head_size_divisor", 4), "head_size_divisor is 4"));
  EXPECT_TRUE(has(with("rwkv6", "attention_hidden_size", 64), "attention_hidden_size is 64"));
  EXPECT_TRUE(has(with("rwkv7", "norm_eps", 1e-5), "head_dim times norm_eps is 8e-05"));
  EXPECT_TRUE(has(with("rwkv7", "value_dim", {32, 64, 32, 32}), "value_dim has 64"));
  EXPECT_TRUE(has(with("arwkv7", "wkv_version", 6), "wkv_version is 6"));
  EXPECT_TRUE(has(with("rwkv6qwen2", "head_dim", 16), "4 heads have 16 elements"));
  EXPECT_TRUE(has(with("step35", "yarn_only_types", json::array()), "yarn_only_types"));
  EXPECT_TRUE(has(with("step35", "partial_rotary_factors", {1, 1, 1, 1}), "partial_rotary"));
  EXPECT_TRUE(has(with("step35", "rope_theta", {5e6, 1e4, 1e5, 5e6}), "of layer 2"));
  EXPECT_TRUE(has(with("minimax-01", "mlp_beta_factor", 2), "layernorm_mlp_beta is 2"));
  EXPECT_TRUE(has(with("smallthinker", "rope_layout", {1, 1, 1, 1}), "rope_layout is 1 for layer"));
  EXPECT_TRUE(has(with("smallthinker", "sliding_window_size", 64), "sliding_window_size is 64"));
  EXPECT_TRUE(has(with("dbrx", "ffn_act_fn", {{"name", "gelu"}}), "ffn_act_fn is \"gelu\""));
  EXPECT_TRUE(has(with("solar-open", "use_qk_norm", true), "use_qk_norm is true"));
  EXPECT_TRUE(has(with("sarvam", "score_function", "softmax"), "score_function is \"softmax\""));
  EXPECT_TRUE(has(with("bamba", "rope_parameters", {{"rope_theta", 1e4}}), "rotates half a head"));
  EXPECT_TRUE(has(with("granitemoe-swa", "layer_rope_theta", {1, 2, 3, 4}), "layer_rope_theta"));
  EXPECT_TRUE(has(with("grovemoe", "decoder_sparse_step", 2), "decoder_sparse_step is 2"));
  EXPECT_TRUE(has(with("bailingmoe3", "kda_safe_gate", false), "kda_safe_gate is false"));
  EXPECT_TRUE(
      has(with("dots3note", "shared_experts_intermediate_size", 48), "is 48; Prism's dots"));
  EXPECT_TRUE(has(with("dots3note", "swa_q_lora_rank", 8), "q_lora_rank of layers with windows"));
  EXPECT_TRUE(has(with("arctic", "moe_layer_frequency", 2), "moe_layer_frequency is 2"));
}

// A folder's own names for the settings that transformers has other ones for.
TEST(Convert, OwnNamesOfMixturesMeanTheSame) {
  HfModel model = test::hf_model("minimax-01");
  json config = json::parse(model.config);
  for (const auto& [own, now] :
       {std::pair("layernorm_full_attention_alpha", "full_attn_alpha_factor"),
        {"layernorm_linear_attention_alpha", "linear_attn_alpha_factor"},
        {"layernorm_mlp_alpha", "mlp_alpha_factor"}}) {
    config[own] = config[now];
    config.erase(now);
  }
  config.erase("layer_types");
  config["attn_type_list"] = {0, 1, 0, 0};
  config["architectures"] = {"MiniMaxText01ForCausalLM"};
  model.config = config.dump();
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
  model = test::hf_model("dots3note");
  config = json::parse(model.config);
  config["swa_num_attention_heads"] = 2;
  config["swa_kv_lora_rank"] = 20;
  config["swa_v_head_dim"] = 10;
  config["rope_theta"] = 8e7;
  config["swa_rope_theta"] = 5e4;
  config["sliding_window_size"] = config["sliding_window"];
  config["first_k_dense_replace"] = 1;
  config["layer_types"] = {"full_attention", "sliding_attention", "full_attention",
                           "sliding_attention"};
  for (const char* name :
       {"per_layer_config", "rope_parameters", "sliding_window", "mlp_layer_types"})
    config.erase(name);
  model.config = config.dump();
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
  model = test::hf_model("dbrx");
  config = json::parse(model.config);
  config.erase("rope_parameters");
  config.erase("num_key_value_heads");
  model.config = config.dump();
  const GgufFile file = convert(HfTestFolder(model));
  EXPECT_EQ(file.number("dbrx.rope.freq_base"), 5e5);
  EXPECT_EQ(file.integer("dbrx.attention.head_count_kv"), 2);
}

// RWKV's folders have a list of tokens, of which a text gets the longest that fit.
TEST(Convert, RwkvsVocabularyIsRead) {
  const HfModel model = test::hf_model("rwkv6");
  const HfTestFolder folder(model);
  std::filesystem::remove(folder.path("tokenizer.json"));
  const std::string lines = R"(1 'a' 1
2 'ab' 2
3 'abab' 4
4 '\n' 1
5 '\n\n' 2
6 "'" 1
7 '\'"' 2
8 '\\' 1
9 b'\xe4\xb8' 2
10 '\u2002' 3
11 'é' 2
12 b'\xad' 1
13 'b' 1
)";
  folder.write("rwkv_vocab_v20230424.txt", lines);
  const GgufFile file = convert(folder);
  const Tokenizer tokenizer = Tokenizer::from(file);
  const std::string text = "abababa\n\n\n'\"'\\\xe4\xb8\xad\xe2\x80\x82é";
  const std::vector<int32_t> ids = {3, 2, 1, 5, 4, 7, 6, 8, 9, 12, 10, 11};
  EXPECT_EQ(tokenizer.encode(text), ids);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(file.integer("tokenizer.ggml.eot_token_id"), 5);
  EXPECT_EQ(file.strings("tokenizer.ggml.tokens")[7], R"(\'")");
  std::filesystem::remove(folder.path("out.gguf"));
  folder.write("rwkv_vocab_v20230424.txt", lines + "14 'cd' 3\n");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kCorruptFile), "14 'cd' 3"));
}

// Step 3.5 has the settings of layers that propose tokens behind those of its own.
TEST(Convert, ListsMayGoOnForProposingLayers) {
  HfModel model = test::hf_model("step35");
  json config = json::parse(model.config);
  config["num_nextn_predict_layers"] = 1;
  config["layer_types"].push_back("sliding_attention");
  config["rope_theta"].push_back(1e4);
  config["partial_rotary_factors"].push_back(1.0);
  for (const char* name : {"swiglu_limits", "swiglu_limits_shared"}) config[name].push_back(0.0);
  model.config = config.dump();
  model.tensors["model.layers.4.eh_proj.weight"] = {32, 64};
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
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
  EXPECT_LT(normalised_error(result_of(convert(folder), model.tokens), wanted), 1e-8);
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
  folder.write("1_Pooling/config.json", R"({"pooling_mode":"lasttoken"})");
  EXPECT_EQ(convert(folder).integer("bert.pooling_type"), 3);
  std::filesystem::remove(folder.path("out.gguf"));
  folder.write("1_Pooling/config.json", R"({"pooling_mode":"weightedmean"})");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kNotSupported), "weightedmean"));
  folder.write("modules.json", R"([{"type":"a.Pooling","path":"../../etc"}])");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kCorruptFile), "../../etc"));
  folder.write("modules.json", R"([{"type":"a.LSTM","path":"2_LSTM"}])");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kNotSupported), "a.LSTM"));
}

// A model that sees or hears has a model of text in it, under names of its own.
struct OtherPart {
  const char *text, *whole;           // the model of text, and the class of the whole
  std::vector<const char*> settings;  // where config.json has those of the text
  std::vector<std::pair<const char*, const char*>> prefixes;
  std::vector<const char*> others;  // tensors of other parts
};

// The config.json of the whole.
std::string config_around(const OtherPart& part, const HfModel& model) {
  json config = json::parse(model.config);
  for (auto key = part.settings.rbegin(); key != part.settings.rend(); ++key)
    config = json{{*key, config}};
  config["architectures"] = {part.whole};
  return config.dump();
}

TEST(Convert, TextPartsAreFoundInOtherModels) {
  const std::vector<std::pair<const char*, const char*>> language = {
      {"model.", "language_model.model."}, {"lm_head.", "language_model.lm_head."}};
  const std::vector<std::pair<const char*, const char*>> thinker = {
      {"model.", "thinker.model."}, {"lm_head.", "thinker.lm_head."}};
  const std::vector<std::pair<const char*, const char*>> inner = {
      {"model.", "model.language_model."}};
  const std::vector<OtherPart> parts = {
      {"qwen2",
       "Qwen2_5OmniModel",
       {"thinker_config", "text_config"},
       thinker,
       {"thinker.visual.a", "thinker.audio_tower.a", "talker.a", "token2wav.a"}},
      {"qwen3moe",
       "Qwen3OmniMoeForConditionalGeneration",
       {"thinker_config", "text_config"},
       thinker,
       {"thinker.visual.a", "talker.a", "code2wav.a"}},
      {"qwen3",
       "Qwen3ASRForConditionalGeneration",
       {"thinker_config", "text_config"},
       thinker,
       {"thinker.audio_tower.a"}},
      {"qwen3", "InternVLChatModel", {"llm_config"}, language, {"vision_model.a", "mlp1.a"}},
      {"internlm2",
       "InternVLChatModel",
       {"llm_config"},
       {{"model.", "language_model.model."}, {"output.", "language_model.output."}},
       {"vision_model.a", "mlp1.a"}},
      {"deepseek-v3",
       "KimiVLForConditionalGeneration",
       {"text_config"},
       language,
       {"vision_tower.a", "multi_modal_projector.a"}},
      {"deepseek-v3",
       "KimiK25ForConditionalGeneration",
       {"text_config"},
       language,
       {"vision_tower.a", "mm_projector.a"}},
      {"llama",
       "VoxtralForConditionalGeneration",
       {"text_config"},
       language,
       {"audio_tower.a", "multi_modal_projector.a"}},
      {"granite",
       "GraniteSpeechForConditionalGeneration",
       {"text_config"},
       language,
       {"encoder.a", "projector.a"}},
      {"llama",
       "JanusForConditionalGeneration",
       {"text_config"},
       inner,
       {"model.vision_model.a", "model.aligner.a", "model.vqmodel.a", "model.generation_head.a"}},
      {"qwen3-5",
       "MiniCPMV4_6ForConditionalGeneration",
       {"text_config"},
       inner,
       {"model.vision_tower.a", "model.merger.a"}},
      {"qwen3",
       "LightOnOCRForConditionalGeneration",
       {"text_config"},
       inner,
       {"model.vision_encoder.a", "model.vision_projection.a"}},
      {"qwen2", "DotsOCRForCausalLM", {}, {}, {"vision_tower.a"}},
      {"qwen3",
       "StepVLForConditionalGeneration",
       {"text_config"},
       {},
       {"vision_model.a", "vit_large_projector.a"}},
      {"step35",
       "Step3p7ForConditionalGeneration",
       {"text_config"},
       inner,
       {"vision_model.a", "vit_large_projector.a"}},
      {"dots3note",
       "Dots3NoteForConditionalGeneration",
       {},
       {},
       {"vision_encoder.a", "audio_encoder.a"}},
      {"dots3note", "Dots3NoteForCausalLM", {"text_config"}, {}, {"vision_encoder.a"}},
      {"phi3", "Phi4ForCausalLMV", {}, {}, {"model.vision_tower.a", "model.mm_projector.a"}},
      {"nemotron-h",
       "NemotronH_Nano_VL_V2",
       {"llm_config"},
       {{"backbone.", "language_model.backbone."}, {"lm_head.", "language_model.lm_head."}},
       {"vision_model.a", "mlp1.a", "sound_encoder.a", "sound_projection.a"}},
  };
  for (const OtherPart& part : parts) {
    const HfModel model = test::hf_model(part.text);
    const HfTestFolder folder(model);
    folder.write("config.json", config_around(part, model));
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, tensor] : load_safetensors(folder.path("model.safetensors"))) {
      std::string own = name;
      for (const auto& [from, to] : part.prefixes)
        if (name.starts_with(from)) own = to + name.substr(std::string_view(from).size());
      tensors.emplace(own, tensor);
    }
    for (const char* each : part.others)
      tensors.emplace(each, from_vector(std::vector<float>(4), {2, 2}, Device::cpu()));
    save_safetensors(folder.path("model.safetensors"), tensors);
    try {
      EXPECT_LT(normalised_error(result_of(convert(folder), model.tokens), model.expected), 1e-8)
          << part.whole;
    } catch (const Error& error) {
      ADD_FAILURE() << part.whole << ": " << error.what();
    }
  }
}

// The first files of DeepSeek-OCR have no latent attention, say so by zeros, and leave out what is
// usual.
TEST(Convert, DeepSeekOcrHasDefaults) {
  HfModel model = test::hf_model("deepseek-ocr2");
  json config = json::parse(model.config);
  json text = config["text_config"];
  for (const char* each : {"mlp_layer_types", "rms_norm_eps", "routed_scaling_factor", "head_dim"})
    text.erase(each);
  for (const char* each : {"qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"}) text[each] = 0;
  text["first_k_dense_replace"] = 1;
  config = text;
  config["architectures"] = {"DeepseekOCRForCausalLM"};
  config["language_config"] = text;
  model.config = config.dump();
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
}

TEST(Convert, AnUnknownTextPartIsNamed) {
  HfModel model = test::hf_model("llava");
  json config = json::parse(model.config);
  config["text_config"]["model_type"] = "parrot";
  config["text_config"].erase("architectures");
  model.config = config.dump();
  EXPECT_TRUE(has(failure_of(HfTestFolder(model), ErrorCode::kNotSupported), "parrot"));
}

// A decoder ranks by the logits of two tokens. The file's head has their rows.
TEST(Convert, AnswersOfADecoderAreScores) {
  const HfModel model = test::hf_model("qwen3");
  const HfTestFolder folder(model);
  folder.write("modules.json",
               R"([{"type":"a.Transformer","path":""},{"type":"a.LogitScore","path":"1_Score"}])");
  folder.write("1_Score/config.json", R"({"true_token_id":9,"false_token_id":4})");
  const GgufFile file = convert(folder);
  const double margin =
      static_cast<double>(model.expected[9]) - static_cast<double>(model.expected[4]);
  const std::vector<float> scores = result_of(file, model.tokens);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_NEAR(scores[0], 1 / (1 + std::exp(-margin)), 1e-5);
  EXPECT_TRUE(file.has("tokenizer.chat_template.rerank"));
  std::filesystem::remove(folder.path("out.gguf"));
  folder.write("1_Score/config.json", R"({"true_token_id":9})");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kNotSupported), "false_token_id"));
  folder.write("1_Score/config.json", R"({"true_token_id":9,"false_token_id":64})");
  EXPECT_TRUE(has(failure_of(folder, ErrorCode::kCorruptFile), "tokens 9 and 64"));
  // The first folders of Qwen3-Reranker have a README alone.
  const HfTestFolder first(model);
  std::string tokens = first.read("tokenizer.json");
  tokens.replace(tokens.find(R"("*":9)"), 5, R"("yes":9)");
  tokens.replace(tokens.find(R"("+":10)"), 6, R"("no":10)");
  first.write("tokenizer.json", tokens);
  first.write("README.md", "# Qwen3-Reranker-0.6B\n");
  const double other_margin =
      static_cast<double>(model.expected[9]) - static_cast<double>(model.expected[10]);
  EXPECT_NEAR(result_of(convert(first), model.tokens)[0], 1 / (1 + std::exp(-other_margin)), 1e-5);
  const HfTestFolder other(test::hf_model("llama"));
  other.write("modules.json", R"([{"type":"a.LogitScore","path":"1_Score"}])");
  other.write("1_Score/config.json", R"({"true_token_id":9,"false_token_id":4})");
  EXPECT_TRUE(has(failure_of(other, ErrorCode::kNotSupported), "LlamaForCausalLM"));
}

// Jina 3 has adapters for tasks beside its matrices, which run alone without a task. BERT's first
// files call the weights of norms gamma, and files for masked tokens have a head.
TEST(Convert, WhatEmbeddingsDoNotNeedIsLeftOut) {
  HfModel model = test::hf_model("jina-bert-v3");
  for (const char* each : {"lora_A", "lora_B"}) {
    model.tensors[fmt::format("roberta.encoder.layers.1.mlp.fc1.parametrizations.weight.0.{}",
                              each)] = {5, 4, 32};
    model.tensors[fmt::format("roberta.embeddings.word_embeddings.parametrizations.weight.0.{}",
                              each)] = {5, 4, 32};
  }
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
  model = test::hf_model("bert-masked");
  const HfTestFolder folder(model);
  std::map<std::string, Tensor> renamed;
  for (const auto& [name, tensor] : load_safetensors(folder.path("model.safetensors"))) {
    std::string old = name;
    if (const size_t at = name.find("LayerNorm."); at != name.npos)
      old = name.substr(0, at + 10) + (name.ends_with("weight") ? "gamma" : "beta");
    renamed.emplace(old, tensor);
  }
  save_safetensors(folder.path("model.safetensors"), renamed);
  EXPECT_LT(normalised_error(result_of(convert(folder), model.tokens), model.expected), 1e-8);
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
  EXPECT_LT(normalised_error(result_of(file, model.tokens), model.expected), 1e-8);
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
  EXPECT_LT(normalised_error(result_of(GgufFile::open(path), model.tokens), model.expected), 1e-8);
  for (const char* name : {"tokenizer.model", "qwen.tiktoken", "tokenizer.jsonl", "README.md"}) {
    folder.write(name, "changed");
    EXPECT_EQ(find_model(folder.path()), "") << name;
    std::filesystem::remove(folder.path(name));
    EXPECT_EQ(find_model(folder.path()), path);
  }
  folder.write("config.json", folder.read("config.json") + "\n");
  EXPECT_NE(resolve_model(folder.path(), options), path);
  EXPECT_EQ(notes, 2);
  ASSERT_EQ(stored_models().size(), 2u);
  remove_model(folder.path());
  EXPECT_EQ(stored_models().size(), 1u);
}

}  // namespace
}  // namespace prism::llm
