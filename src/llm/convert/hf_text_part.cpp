// Knows where models that see images or hear sounds have their text part.
#include "llm/convert/hf_text_part.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace prism::llm {

namespace {

using Names = std::pair<std::string_view, std::string_view>;

// The text part of a model: the architecture of text alone, or nothing where that follows from the
// kind of the text part, and where config.json has its settings.
struct TextPart {
  std::string_view whole, text;
  std::vector<std::string_view> settings = {"text_config"};
};

const std::vector<TextPart>& text_parts() {
  const std::vector<std::string_view> thinker = {"thinker_config", "text_config"};
  static const std::vector<TextPart> parts = {
      {"AudioFlamingo3ForConditionalGeneration", ""},
      {"AyaVisionForConditionalGeneration", ""},
      {"ChameleonForCausalLM", "ChameleonForCausalLM", {}},
      {"ChameleonForConditionalGeneration", "ChameleonForCausalLM", {}},
      {"CogVLMForCausalLM", "CogVLMForCausalLM", {}},
      {"Cohere2VisionForConditionalGeneration", ""},
      {"DeepseekOCRForCausalLM", "DeepseekOCRForCausalLM", {"language_config"}},
      {"DeepseekOCR2ForCausalLM", "DeepseekOCRForCausalLM", {"language_config"}},
      {"DeepseekOcr2ForConditionalGeneration", "DeepseekOCRForCausalLM"},
      {"Dots3NoteForCausalLM", "Dots3NoteForCausalLM"},
      {"Dots3NoteForConditionalGeneration", "Dots3NoteForCausalLM"},
      {"DotsOCRForCausalLM", "Qwen2ForCausalLM", {}},
      {"Exaone4_5_ForConditionalGeneration", "Exaone4ForCausalLM"},
      {"Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"},
      {"Gemma3nForConditionalGeneration", "Gemma3nForCausalLM"},
      {"Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"},
      {"Gemma4UnifiedForConditionalGeneration", "Gemma4ForCausalLM"},
      {"Glm4vForConditionalGeneration", "Glm4ForCausalLM"},
      {"Glm4vMoeForConditionalGeneration", "Glm4MoeForCausalLM"},
      {"Glm46VForConditionalGeneration", ""},
      {"GlmOcrForConditionalGeneration", "Glm4ForCausalLM"},
      {"GotOcr2ForConditionalGeneration", ""},
      {"Granite4VisionForConditionalGeneration", ""},
      {"GraniteSpeechForConditionalGeneration", ""},
      {"GraniteSpeechPlusForConditionalGeneration", ""},
      {"HunYuanVLForConditionalGeneration", "HunYuanDenseV1ForCausalLM"},
      {"Idefics3ForConditionalGeneration", "LlamaForCausalLM"},
      {"InternVLChatModel", "", {"llm_config"}},
      {"InternVLForConditionalGeneration", ""},
      {"JanusForConditionalGeneration", "LlamaForCausalLM"},
      {"KimiK25ForConditionalGeneration", "DeepseekV3ForCausalLM"},
      {"Kimi_K25ForConditionalGeneration", "DeepseekV3ForCausalLM"},
      {"KimiK3ForConditionalGeneration", "KimiK3ForCausalLM"},
      {"KimiVLForConditionalGeneration", "DeepseekV3ForCausalLM"},
      {"Lfm2VlForConditionalGeneration", "Lfm2ForCausalLM"},
      {"LightOnOCRForConditionalGeneration", "Qwen3ForCausalLM"},
      {"LightOnOcrForConditionalGeneration", "Qwen3ForCausalLM"},
      {"Llama4ForConditionalGeneration", "Llama4ForCausalLM"},
      {"LlavaForConditionalGeneration", ""},
      {"LlavaNextForConditionalGeneration", ""},
      {"LlavaOnevisionForConditionalGeneration", ""},
      {"LlavaStableLMEpochForCausalLM", "StableLMEpochForCausalLM", {}},
      {"MiMoV2ForCausalLM", "MiMoV2ForCausalLM", {}},
      {"MiniCPMV4_6ForConditionalGeneration", "Qwen3_5ForCausalLM"},
      {"MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3SparseForCausalLM"},
      {"Mistral3ForConditionalGeneration", ""},
      {"MuseGlimmerForConditionalGeneration", "MuseGlimmerForCausalLM"},
      {"NemotronH_Nano_VL_V2", "NemotronHForCausalLM", {"llm_config"}},
      {"PaddleOCRVLForConditionalGeneration", "PaddleOCRVLForCausalLM"},
      {"Phi4ForCausalLMV", "Phi3ForCausalLM", {}},
      {"Qwen2AudioForConditionalGeneration", "Qwen2ForCausalLM"},
      {"Qwen2VLForConditionalGeneration", "Qwen2ForCausalLM"},
      {"Qwen2_5_VLForConditionalGeneration", "Qwen2ForCausalLM"},
      {"Qwen2_5OmniModel", "Qwen2ForCausalLM", thinker},
      {"Qwen2_5OmniForConditionalGeneration", "Qwen2ForCausalLM", thinker},
      {"Qwen2_5OmniThinkerForConditionalGeneration", "Qwen2ForCausalLM"},
      {"Qwen3ASRForConditionalGeneration", "Qwen3ForCausalLM", thinker},
      {"Qwen3OmniMoeForConditionalGeneration", "Qwen3MoeForCausalLM", thinker},
      {"Qwen3OmniMoeThinkerForConditionalGeneration", "Qwen3MoeForCausalLM"},
      {"Qwen3VLForConditionalGeneration", "Qwen3ForCausalLM"},
      {"Qwen3VLMoeForConditionalGeneration", "Qwen3MoeForCausalLM"},
      {"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
      {"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"},
      {"SmolVLMForConditionalGeneration", "LlamaForCausalLM"},
      {"Step3p7ForConditionalGeneration", "Step3p5ForCausalLM"},
      {"StepVLForConditionalGeneration", "Qwen3ForCausalLM"},
      {"VoxtralForConditionalGeneration", "LlamaForCausalLM"},
      {"YoutuVLForConditionalGeneration", "YoutuForCausalLM"},
  };
  return parts;
}

// The architecture of text parts by their model_type.
constexpr Names kKinds[] = {
    {"cohere", "CohereForCausalLM"},
    {"cohere2", "Cohere2ForCausalLM"},
    {"gemma", "GemmaForCausalLM"},
    {"gemma2", "Gemma2ForCausalLM"},
    {"glm4v_text", "Glm4ForCausalLM"},
    {"glm4v_moe_text", "Glm4MoeForCausalLM"},
    {"gpt_oss", "GptOssForCausalLM"},
    {"granite", "GraniteForCausalLM"},
    {"granite4_vision_text", "GraniteForCausalLM"},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM"},
    {"internlm2", "InternLM2ForCausalLM"},
    {"llama", "LlamaForCausalLM"},
    {"ministral3", "Ministral3ForCausalLM"},
    {"mistral", "MistralForCausalLM"},
    {"mistral4", "Mistral4ForCausalLM"},
    {"phi3", "Phi3ForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"},
    {"qwen3", "Qwen3ForCausalLM"},
    {"qwen3_moe", "Qwen3MoeForCausalLM"},
};

// Prefixes of tensors, and what takes their place.
constexpr Names kPrefixes[] = {
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    {"language_model.output.", "output."},
    {"language_model.backbone.", "backbone."},
    {"model.text_model.", "model."},
    {"thinker.model.", "model."},
    {"thinker.lm_head.", "lm_head."},
    {"model.layers.", "model.layers."},
    {"model.embed_tokens.", "model.embed_tokens."},
    {"model.norm.", "model.norm."},
    {"lm_head.", "lm_head."},
};
constexpr std::string_view kOtherParts[] = {
    // --- images
    "vision_tower.",
    "model.vision_tower.",
    "vision_model.",
    "vision_encoder.",
    "model.vision_model.",
    "visual.",
    "model.visual.",
    "vit.",
    "model.vit.",
    "siglip2.",
    "model.vision_encoder.",
    "model.vision_embedder.",
    "model.embed_vision.",
    "model.vqmodel.",
    "model.vision.",
    "model.sam_model.",
    "model.qwen2_model.",
    "model.view_seperator",
    "model.vision_adapter.",
    "thinker.visual.",
    // --- sounds
    "audio_encoder.",
    "sound_encoder.",
    "audio_tower.",
    "model.audio_tower.",
    "model.embed_audio.",
    "encoder.",
    "speech_embeddings.",
    "thinker.audio_tower.",
    // --- between them and the text
    "multi_modal_projector.",
    "model.multi_modal_projector.",
    "patch_merge_mlp.",
    "model.connector.",
    "model.aligner.",
    "model.merger.",
    "merger.",
    "mlp1.",
    "sound_projection.",
    "mlp_AR.",
    "model.mlp_AR.",
    "mm_projector.",
    "model.mm_projector.",
    "model.projector.",
    "projector.",
    "model.vision_projection.",
    "vit_large_projector.",
    "model.layerwise_projectors.",
    "model.spatial_projectors.",
    "image_newline",
    "model.image_newline",
    // --- answers in images and sounds
    "model.generation_embeddings.",
    "model.generation_aligner.",
    "model.generation_head.",
    "talker.",
    "token2wav.",
    "code2wav.",
    // --- speculation
    "mtp.",
};

// What files of text parts leave out, by their architecture.
constexpr Names kDefaults[] = {
    {"DeepseekOCRForCausalLM", R"({"rms_norm_eps": 1e-6, "routed_scaling_factor": 1})"},
    {"Gemma3ForCausalLM", R"({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
      "rms_norm_eps": 1e-6, "max_position_embeddings": 131072, "rope_theta": 1e6,
      "query_pre_attn_scalar": 256})"},
    {"LlamaForCausalLM", R"({"hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "rms_norm_eps": 1e-6,
      "max_position_embeddings": 2048})"},
    {"MistralForCausalLM", R"({"hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "rms_norm_eps": 1e-6, "max_position_embeddings": 131072})"},
};

const TextPart* text_part_of(const JsonView& config) {
  for (const JsonView& each : config["architectures"].items())
    for (const TextPart& part : text_parts())
      if (each.json().is_string() && each.string() == part.whole) return &part;
  return nullptr;
}

// The settings of the text part; the whole config.json where it has none of its own.
JsonView settings_of(const JsonView& config, const TextPart& part) {
  JsonView found = config;
  for (const std::string_view key : part.settings) {
    const JsonView inner = found[std::string(key).c_str()];
    if (inner && inner.json().is_object()) found = inner;
  }
  return found;
}

// The architecture of the text part; of a kind that is not known, what an error should name.
std::string architecture_of(const JsonView& settings, const TextPart& part) {
  if (!part.text.empty()) return std::string(part.text);
  const std::string kind = settings["model_type"].string_or("");
  for (const auto& [name, text] : kKinds)
    if (name == kind) return std::string(text);
  const std::vector<JsonView> own = settings["architectures"].items();
  if (!own.empty() && own[0].is_string() && own[0].string() != part.whole) return own[0].string();
  return fmt::format("{} with a text part of the kind \"{}\"", part.whole, kind);
}

}  // namespace

bool keep_text_part(Json& config) {
  const JsonView view(config);
  const TextPart* const part = text_part_of(view);
  if (!part) return false;
  const JsonView settings = settings_of(view, *part);
  const std::string text = architecture_of(settings, *part);
  Json merged = config;
  for (const Json::Member& each : settings.json().members())
    // Whether the output is the embedding is decided for the whole model.
    if (!each.value.is_null() && !(each.key == "tie_word_embeddings" && config.find(each.key)))
      merged[each.key] = each.value;
  merged["architectures"] = Json::array();
  merged["architectures"].push_back(Json(text));
  for (const auto& [name, values] : kDefaults)
    if (name == text) {
      const Json defaults = Json::parse(std::string(values));
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
