// Knows where models that see images have their text part.
#include "llm/convert/hf_text_part.h"

#include <utility>

namespace prism::llm {

namespace {

using Names = std::pair<std::string_view, std::string_view>;

// By architecture, and the one of text alone.
constexpr Names kArchitectures[] = {
    {"Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"},
    {"Gemma3nForConditionalGeneration", "Gemma3nForCausalLM"},
    {"Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"},
    {"KimiK3ForConditionalGeneration", "KimiK3ForCausalLM"},
    {"Lfm2VlForConditionalGeneration", "Lfm2ForCausalLM"},
    {"Llama4ForConditionalGeneration", "Llama4ForCausalLM"},
    {"MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3SparseForCausalLM"},
    {"MiMoV2ForCausalLM", "MiMoV2ForCausalLM"},
    {"Mistral3ForConditionalGeneration", "MistralForCausalLM"},
    {"Qwen2VLForConditionalGeneration", "Qwen2ForCausalLM"},
    {"Qwen2_5_VLForConditionalGeneration", "Qwen2ForCausalLM"},
    {"Qwen3VLForConditionalGeneration", "Qwen3ForCausalLM"},
    {"Qwen3VLMoeForConditionalGeneration", "Qwen3MoeForCausalLM"},
    {"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
    {"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"},
    {"SmolVLMForConditionalGeneration", "LlamaForCausalLM"},
};

// Prefixes of tensors, and what takes their place.
constexpr Names kPrefixes[] = {
    {"model.language_model.", "model."},     {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."}, {"model.text_model.", "model."},
    {"model.layers.", "model.layers."},      {"model.embed_tokens.", "model.embed_tokens."},
    {"model.norm.", "model.norm."},          {"lm_head.", "lm_head."},
};
constexpr std::string_view kOtherParts[] = {"vision_tower.",
                                            "model.vision_tower.",
                                            "multi_modal_projector.",
                                            "mm_projector.",
                                            "model.multi_modal_projector.",
                                            "patch_merge_mlp.",
                                            "visual.",
                                            "model.visual.",
                                            "model.vision_model.",
                                            "vision_model.",
                                            "model.audio_tower.",
                                            "model.embed_vision.",
                                            "model.embed_audio.",
                                            "audio_encoder.",
                                            "speech_embeddings.",
                                            "model.vision_embedder.",
                                            "model.connector.",
                                            "mtp."};

// What Gemma 3's files leave out.
constexpr const char* kGemma3 = R"({"num_attention_heads": 8, "num_key_value_heads": 4,
  "head_dim": 256, "rms_norm_eps": 1e-6, "max_position_embeddings": 131072, "rope_theta": 1e6,
  "query_pre_attn_scalar": 256})";

}  // namespace

bool keep_text_part(Json& config) {
  const JsonView view(config);
  std::string_view text;
  for (const JsonView& each : view["architectures"].items())
    for (const auto& [whole, part] : kArchitectures)
      if (each.json().is_string() && each.string() == whole) text = part;
  if (text.empty()) return false;
  // One class of models with images has text parts of several kinds.
  const std::string kind =
      view["text_config"] ? view["text_config"]["model_type"].string_or("") : "";
  if (text == "MistralForCausalLM" && kind == "ministral3") text = "Ministral3ForCausalLM";
  if (text == "MistralForCausalLM" && kind == "mistral4") text = "Mistral4ForCausalLM";
  Json merged = config;
  if (const Json* own = config.find("text_config"); own && own->is_object())
    for (const Json::Member& each : own->members())
      // Whether the output is the embedding is decided for the whole model.
      if (!each.value.is_null() && !(each.key == "tie_word_embeddings" && config.find(each.key)))
        merged[each.key] = each.value;
  merged["architectures"] = Json::array();
  merged["architectures"].push_back(Json(text));
  if (text == "Gemma3ForCausalLM") {
    const Json defaults = Json::parse(kGemma3);
    for (const Json::Member& each : defaults.members())
      if (!JsonView(merged)[each.key]) merged[each.key] = each.value;
  }
  config = std::move(merged);
  return true;
}

std::optional<std::string> text_tensor_name(std::string_view name) {
  for (const std::string_view other : kOtherParts)
    if (name.starts_with(other)) return std::nullopt;
  for (const auto& [from, to] : kPrefixes)
    if (name.starts_with(from)) return std::string(to) + std::string(name.substr(from.size()));
  return std::string(name);
}

}  // namespace prism::llm
