// Other names of known Hugging Face architectures: earlier ones, and those of classes without the
// output that makes logits.
#include "llm/convert/hf_rules.h"

namespace prism::llm {

std::span<const HfAlias> hf_aliases() {
  static constexpr HfAlias kAliases[] = {
      {"BaiChuanForCausalLM", "BaichuanForCausalLM"},
      {"BailingHybridForCausalLM", "BailingMoeV3ForCausalLM"},  // in transformers
      {"BitNetForCausalLM", "BitnetForCausalLM"},
      {"BloomModel", "BloomForCausalLM"},
      {"ChatGLMForConditionalGeneration", "ChatGLMModel"},
      {"Dots3NoteTextForCausalLM", "Dots3NoteForCausalLM"},
      {"Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM"},
      {"ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"},
      {"KimiLinearModel", "KimiLinearForCausalLM"},
      {"LFM2ForCausalLM", "Lfm2ForCausalLM"},
      {"LLaDAMoEModel", "LLaDAMoEModelLM"},
      {"LLaMAForCausalLM", "LlamaForCausalLM"},
      {"MPTForCausalLM", "MptForCausalLM"},
      {"MiniMaxM1ForCausalLM", "MiniMaxText01ForCausalLM"},
      {"PLaMo2ForCausalLM", "Plamo2ForCausalLM"},
      {"PLaMo3ForCausalLM", "Plamo3ForCausalLM"},
      {"PhiMoEForCausalLM", "PhimoeForCausalLM"},
      {"RWForCausalLM", "FalconForCausalLM"},
      {"Rwkv7ForCausalLM", "RWKV7ForCausalLM"},
      {"T5WithLMHeadModel", "T5ForConditionalGeneration"},
      {"UMT5Model", "UMT5ForConditionalGeneration"},
  };
  return kAliases;
}

}  // namespace prism::llm
