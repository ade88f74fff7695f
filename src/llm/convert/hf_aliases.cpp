// Other names of known Hugging Face architectures: earlier ones, and those of classes without the
// output that makes logits.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

std::span<const HfAlias> hf_aliases() {
  static constexpr HfAlias kAliases[] = {
      {"BaiChuanForCausalLM", "BaichuanForCausalLM"},
      {"BitNetForCausalLM", "BitnetForCausalLM"},
      {"BloomModel", "BloomForCausalLM"},
      {"ChatGLMForConditionalGeneration", "ChatGLMModel"},
      {"Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM"},
      {"ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"},
      {"LFM2ForCausalLM", "Lfm2ForCausalLM"},
      {"LLaMAForCausalLM", "LlamaForCausalLM"},
      {"MPTForCausalLM", "MptForCausalLM"},
      {"PLaMo2ForCausalLM", "Plamo2ForCausalLM"},
      {"PLaMo3ForCausalLM", "Plamo3ForCausalLM"},
      {"PhiMoEForCausalLM", "PhimoeForCausalLM"},
      {"RWForCausalLM", "FalconForCausalLM"},
      {"T5WithLMHeadModel", "T5ForConditionalGeneration"},
      {"UMT5Model", "UMT5ForConditionalGeneration"},
  };
  return kAliases;
}

}  // namespace prism::llm
