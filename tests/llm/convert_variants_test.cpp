// Converts tiny Hugging Face folders of models whose code is in their folders: other names of known
// architectures, what config.json decides, and what is refused.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "llm/convert/hf_architectures.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "support/models/converted.h"
#include "support/models/hf_files.h"
#include "support/normalised_error.h"
#include "support/paths.h"

namespace prism::llm {
namespace {

using json = nlohmann::json;
using test::convert;
using test::failure_of;
using test::HfModel;
using test::HfTestFolder;
using test::normalised_error;
using test::result_of;

// The model with other values in config.json; null removes one.
HfModel changed(const char* name, const json& values) {
  HfModel model = test::hf_model(name);
  json config = json::parse(model.config);
  config.merge_patch(values);
  model.config = config.dump();
  return model;
}

HfModel renamed(const char* name, const char* architecture) {
  return changed(name, {{"architectures", {architecture}}});
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(ConvertVariants, OtherNamesMeanTheSameLayers) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"llama", "LLaMAForCausalLM"},
      {"llama", "IQuestCoderForCausalLM"},
      {"bloom", "BloomModel"},
      {"mpt", "MPTForCausalLM"},
      {"ernie4-5", "Ernie4_5_ForCausalLM"},
      {"lfm2", "LFM2ForCausalLM"},
      {"kimi-linear", "KimiLinearModel"},
      {"phimoe", "PhiMoEForCausalLM"},
      {"exaone-moe", "ExaoneMoEForCausalLM"},
      {"t5", "T5WithLMHeadModel"},
      {"umt5", "UMT5Model"},
      {"chatglm", "ChatGLMForConditionalGeneration"},
      {"plamo2", "PLaMo2ForCausalLM"},
      {"plamo3", "PLaMo3ForCausalLM"},
      {"bitnet", "BitNetForCausalLM"},
      {"baichuan-7b", "BaichuanForCausalLM"},
  };
  for (const auto& [name, architecture] : kNames) {
    const HfModel model = renamed(name, architecture);
    EXPECT_LT(
        normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
        1e-8)
        << architecture;
  }
}

// Youtu's layers are DeepSeek's without experts.
TEST(ConvertVariants, DeepSeekWithoutExperts) {
  HfModel model = changed("deepseek-v3", {{"first_k_dense_replace", 4}});
  std::erase_if(model.tensors, [](const auto& each) { return has(each.first, ".mlp."); });
  for (int layer = 0; layer < 4; ++layer) {
    const std::string mlp = "model.layers." + std::to_string(layer) + ".mlp.";
    model.tensors[mlp + "gate_proj.weight"] = model.tensors[mlp + "up_proj.weight"] = {48, 32};
    model.tensors[mlp + "down_proj.weight"] = {32, 48};
  }
  const std::vector<float> expected = result_of(convert(HfTestFolder(model)), model.tokens);
  json config = json::parse(model.config);
  for (const char* key : {"first_k_dense_replace", "n_routed_experts", "n_shared_experts",
                          "num_experts_per_tok", "moe_intermediate_size", "n_group", "topk_group",
                          "routed_scaling_factor", "norm_topk_prob"})
    config.erase(key);
  for (const char* name : {"YoutuForCausalLM", "YoutuVLForConditionalGeneration"}) {
    config["architectures"] = {name};
    model.config = config.dump();
    EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), expected),
              1e-12);
  }
}

// docs/models.md lists every architecture, without "ForCausalLM".
TEST(ConvertVariants, TheManualNamesEveryArchitecture) {
  std::ifstream in(test::source_dir() / "docs" / "models.md");
  const std::string manual{std::istreambuf_iterator<char>(in), {}};
  const std::string section = manual.substr(manual.find("## Convert a Hugging Face folder"));
  for (const std::string_view name : hf_architecture_names()) {
    constexpr std::string_view kEnding = "ForCausalLM";
    const std::string shown(name.ends_with(kEnding) ? name.substr(0, name.size() - kEnding.size())
                                                    : name);
    const bool is_there = has(section, " " + shown + ",") || has(section, " " + shown + " |");
    EXPECT_TRUE(is_there) << shown;
  }
}

// The first LLaVA of StableLM has the names of its text part beside those of its eyes.
TEST(ConvertVariants, EyesOfStableLmAreLeftOut) {
  HfModel model = renamed("stablelm-epoch", "LlavaStableLMEpochForCausalLM");
  model.tensors["model.mm_projector.0.weight"] = {32, 8};
  model.tensors["model.vision_tower.vision_tower.vision_model.embeddings.weight"] = {4, 8};
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
}

// The head of Baichuan 2, which the size of its vocabulary tells, has rows of length 1.
TEST(ConvertVariants, TheHeadOfBaichuan2HasUnitRows) {
  const HfModel model = test::hf_model("baichuan-7b");
  const HfTestFolder folder(model);  // with a tokenizer of the size that the tensors have
  json config = json::parse(model.config);
  config["vocab_size"] = 125696;
  folder.write("config.json", config.dump());
  const std::vector<float> head = test::hf_values("lm_head.weight", {64, 32});
  std::vector<float> wanted = model.expected;
  for (size_t row = 0; row < wanted.size(); ++row) {
    double squares = 0;
    for (size_t i = 0; i < 32; ++i) squares += std::pow(static_cast<double>(head[row * 32 + i]), 2);
    wanted[row] = static_cast<float>(static_cast<double>(wanted[row]) / std::sqrt(squares));
  }
  EXPECT_LT(normalised_error(result_of(convert(folder), model.tokens), wanted), 1e-8);
}

// BitNet's folders say that their weights are quantised when they are loaded.
TEST(ConvertVariants, TernaryWeightsAreMadeOnlyFromWholeOnes) {
  const json online = {{"quant_method", "bitnet"}, {"quantization_mode", "online"}};
  const HfModel model = changed("bitnet-2b", {{"quantization_config", online}});
  EXPECT_LT(normalised_error(result_of(convert(HfTestFolder(model)), model.tokens), model.expected),
            1e-8);
  const json packed = {{"quant_method", "bitnet"}, {"quantization_mode", "offline"}};
  const auto refused = [](const HfModel& other) {
    return failure_of(HfTestFolder(other), ErrorCode::kNotSupported);
  };
  EXPECT_TRUE(has(refused(changed("bitnet-2b", {{"quantization_config", packed}})), "offline"));
  EXPECT_TRUE(has(refused(changed("llama", {{"quantization_config", online}})), "online"));
}

// An output that is not the embedding has a tensor of its own; Mamba's package names that
// otherwise.
TEST(ConvertVariants, TiedOutputsHaveOtherNames) {
  HfModel model =
      changed("mamba-package", {{"tie_embeddings", false}, {"tie_word_embeddings", nullptr}});
  model.tensors["lm_head.weight"] = {64, 32};
  const HfTestFolder folder(model);
  EXPECT_TRUE(convert(folder).find_tensor("output.weight"));
  folder.write("config.json", test::hf_model("mamba-package").config);
  std::filesystem::remove(folder.path("out.gguf"));
  EXPECT_FALSE(convert(folder).find_tensor("output.weight"));
}

// Layers that change beyond some position are right up to it.
TEST(ConvertVariants, TheContextEndsWhereLayersChange) {
  const auto context = [](const char* name, const json& values, const char* architecture) {
    return convert(HfTestFolder(changed(name, values)))
        .integer(std::string(architecture) + ".context_length");
  };
  EXPECT_EQ(context("qwen", {{"seq_length", 48}}, "qwen"), 48);
  EXPECT_EQ(
      context("qwen", {{"seq_length", 48}, {"use_dynamic_ntk", false}, {"use_logn_attn", false}},
              "qwen"),
      64);
  EXPECT_EQ(context("plamo2", {{"attention_window_size", 24}}, "plamo2"), 24);
  EXPECT_EQ(
      context("plamo2", {{"attention_window_size", 24}, {"full_attention_idx", {1, 3}}}, "plamo2"),
      64);
  EXPECT_EQ(context("rugpt3xl", json::object(), "gpt2"), 32);
  EXPECT_EQ(context("rugpt3xl", {{"sparse_mode", "none"}}, "gpt2"), 64);
}

TEST(ConvertVariants, SettingsThatPrismDoesNotHaveAreNamed) {
  const auto with = [](const char* name, const char* key, const json& value) {
    return failure_of(HfTestFolder(changed(name, {{key, value}})), ErrorCode::kNotSupported);
  };
  const auto block = [](const char* part, const char* key, const json& value) {
    json blocks = json::parse(test::hf_model("nemotron-nas").config)["block_configs"];
    blocks[0][part][key] = value;
    return blocks;
  };
  EXPECT_TRUE(has(with("baichuan-7b", "num_hidden_layers", 12), "num_hidden_layers is 12"));
  EXPECT_TRUE(has(with("maincoder", "use_qk_norm", false), "use_qk_norm is false"));
  EXPECT_TRUE(has(with("nemotron-nas", "block_configs", block("attention", "window_length", 8)),
                  "window_length"));
  EXPECT_TRUE(has(with("nemotron-nas", "block_configs", block("ffn", "replace_with_linear", true)),
                  "block_configs[0]"));
  EXPECT_TRUE(has(with("nemotron-nas", "block_configs", block("ffn", "no_op", true)),
                  "no attention in layers without a feed-forward block"));
  EXPECT_TRUE(has(with("nanbeige", "loop_share_kv", true), "loop_share_kv is true"));
  EXPECT_TRUE(has(with("nanbeige", "loop_loss_weights", {0.5, 0.5}), "loop_loss_weights"));
  EXPECT_TRUE(has(with("plm", "q_lora_rank", 8), "q_lora_rank is 8"));
  EXPECT_TRUE(has(with("bitnet", "hidden_act", "gelu"), "hidden_act"));
  EXPECT_TRUE(has(with("plamo", "n_shared_head", 3), "n_shared_head is 3"));
  EXPECT_TRUE(has(with("plamo2", "rms_norm_eps", 1e-5), "rms_norm_eps"));
  EXPECT_TRUE(has(with("plamo3", "linear_type", "fp8"), "linear_type"));
  EXPECT_TRUE(has(with("qwen", "no_bias", false), "no_bias is false"));
  EXPECT_TRUE(has(with("codeshell", "position_embedding_type", "learned_absolute"), "learned"));
  EXPECT_TRUE(has(with("refact", "multi_query", false), "multi_query is false"));
  EXPECT_TRUE(has(with("jais", "mup_scale_qk_dot_by_d", false), "scale_qk_dot_by_d"));
  EXPECT_TRUE(has(with("jais", "alibi_scaling", {{"factor", 2}}), "alibi_scaling"));
  EXPECT_TRUE(has(with("chatglm", "post_layer_norm", false), "post_layer_norm is false"));
  EXPECT_TRUE(has(with("chatglm", "quantization_bit", 4), "quantization_bit is 4"));
  EXPECT_TRUE(has(with("olmo-first", "norm_after", true), "norm_after is true"));
  EXPECT_TRUE(has(with("openelm", "normalize_qk_projections", false), "normalize_qk"));
  EXPECT_TRUE(has(with("olmo-first", "block_type", "parallel"), "block_type"));
  EXPECT_TRUE(has(with("olmo-first", "n_kv_heads", 2), "n_kv_heads"));
  EXPECT_TRUE(has(with("mamba-package", "ssm_cfg", {{"layer", "Mamba2"}}), "Mamba2"));
  EXPECT_TRUE(has(with("falcon-rw", "alibi", true), "alibi is true"));
  EXPECT_TRUE(has(with("mpt", "norm_type", "rmsnorm"), "norm_type"));
}

}  // namespace
}  // namespace prism::llm
