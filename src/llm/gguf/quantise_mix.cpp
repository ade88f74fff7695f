// Chooses a type for each tensor of a model.
#include "llm/gguf/quantise_mix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "llm/gguf/layer_names.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

using B = BlockType;

constexpr std::array kMixes = {
    QuantiseMix{"F32", DType::f32, 0},    QuantiseMix{"F16", DType::f16, 1},
    QuantiseMix{"BF16", DType::bf16, 32}, QuantiseMix{"Q8_0", B::q8_0, 7},
    QuantiseMix{"Q6_K", B::q6_k, 18},     QuantiseMix{"Q5_K_M", B::q5_k, 17},
    QuantiseMix{"Q5_K_S", B::q5_k, 16},   QuantiseMix{"Q5_1", B::q5_1, 9},
    QuantiseMix{"Q5_0", B::q5_0, 8},      QuantiseMix{"Q4_K_M", B::q4_k, 15},
    QuantiseMix{"Q4_K_S", B::q4_k, 14},   QuantiseMix{"Q4_1", B::q4_1, 3},
    QuantiseMix{"Q4_0", B::q4_0, 2},      QuantiseMix{"MXFP4", B::mxfp4, 38},
    QuantiseMix{"Q3_K_L", B::q3_k, 13},   QuantiseMix{"Q3_K_M", B::q3_k, 12},
    QuantiseMix{"Q3_K_S", B::q3_k, 11},   QuantiseMix{"Q2_K", B::q2_k, 10},
};

// The properties of a model that determine the types, besides tensor names.
struct Model {
  int64_t layers = 0;
  int64_t heads_per_kv = 1;
  int64_t experts = 0;
  bool is_output_tied = false;
};

// The first and last eighth of the layers, and every third between: errors cost most there.
bool is_sensitive(int64_t layer, int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

bool is_quantised(const GgufTensor& tensor) {
  const std::string_view name = tensor.name;
  // A vector may have axes of length 1 in front.
  if (tensor.shape.rank() < 2 || tensor.shape.elements() <= tensor.shape[-1] ||
      !name.ends_with(".weight"))
    return false;
  // Tables of integers, such as the experts of each token, are not weights.
  if (!tensor.type.is_block() && !is_float(tensor.type.plain())) return false;
  // Recurrent layers have their large matrices at both ends; the others are small and steer them.
  for (const char* large :
       {"ssm_in.weight", "ssm_out.weight", "conv.in_proj.weight", "conv.out_proj.weight"})
    if (name.ends_with(large)) return true;
  for (const char* kept :
       {"_norm", "ffn_gate_inp", "position_embd", "token_types", "conv", "ssm", "attn_rel_b",
        "compressor_ape", "hc_", "altup", "laurel", "per_layer_model_proj", "indexer.q_proj",
        "indexer.k_proj",
        // RWKV's narrow matrices, which mix rows and make decays.
        "time_mix_first", "time_mix_lerp", "time_mix_decay", "time_mix_w", "time_mix_a",
        "time_mix_v0", "time_mix_v1", "time_mix_v2", "time_mix_g1", "time_mix_g2"})
    if (name.find(kept) != std::string_view::npos) return false;
  return true;
}

ElementType value_type(std::string_view mix, ElementType base, int64_t layer, const Model& model) {
  if (mix == "Q2_K") return model.heads_per_kv >= 4 ? B::q4_k : B::q3_k;
  if (mix == "Q3_K_M") return layer < 2 ? B::q5_k : B::q4_k;
  if (mix == "Q3_K_L") return B::q5_k;
  if (mix == "Q4_K_S") return layer < 4 ? B::q5_k : B::q4_k;
  if (mix == "Q4_K_M" || mix == "Q5_K_M") {
    if (is_sensitive(layer, model.layers)) return B::q6_k;
    // In the largest models eight query heads share one value head, so its tensor is small.
    if (mix == "Q4_K_M" && model.heads_per_kv >= 8 && model.layers >= 80) return B::q5_k;
  }
  return base;
}

ElementType down_type(std::string_view mix, ElementType base, int64_t layer, const Model& model) {
  if (mix == "Q2_K") return B::q3_k;
  if (mix == "Q3_K_M") return layer < model.layers / 16 ? B::q5_k : B::q4_k;
  if (mix == "Q3_K_L") return B::q5_k;
  if (mix == "Q4_K_S") return layer < model.layers / 8 ? B::q5_k : B::q4_k;
  if ((mix == "Q4_K_M" || mix == "Q5_K_M") && is_sensitive(layer, model.layers)) return B::q6_k;
  return base;
}

ElementType mixed_type(std::string_view name, const QuantiseMix& mix, const Model& model) {
  if (!mix.base.is_block()) return mix.base;
  const std::string_view wanted = mix.name;
  const auto has = [&](const char* part) { return name.find(part) != std::string_view::npos; };
  const bool is_output =
      name == "output.weight" || (model.is_output_tied && name == "token_embd.weight");
  if (is_output) return wanted == "Q8_0" ? B::q8_0 : B::q6_k;
  const int64_t layer = std::max<int64_t>(0, layer_of_tensor(name));
  if (has("attn_v.")) {
    if (model.experts >= 8 && mix.base != B::q8_0) return B::q8_0;  // small compared to the experts
    return value_type(wanted, mix.base, layer, model);
  }
  if (has("attn_k.") && model.experts >= 8) return B::q8_0;
  if (has("attn_qkv.")) {
    if (wanted == "Q3_K_M" || wanted == "Q3_K_L") return B::q4_k;
    if (wanted == "Q4_K_M") return B::q5_k;
    if (wanted == "Q5_K_M") return B::q6_k;
  }
  if (has("ffn_down")) return down_type(wanted, mix.base, layer, model);
  if (has("attn_output.")) {
    if (wanted == "Q2_K") return B::q3_k;
    if (wanted == "Q3_K_M") return B::q4_k;
    if (wanted == "Q3_K_L") return B::q5_k;
  }
  return mix.base;
}

// The next larger type whose blocks divide the rows.
ElementType fitting(ElementType type, int64_t row) {
  if (row % type.block_elements() == 0) return type;
  if (row % 32 != 0) return DType::f16;
  switch (type.block()) {
    case B::q2_k:
    case B::q3_k:
      return B::q4_0;
    case B::q4_k:
      return B::q5_0;
    case B::q5_k:
      return B::q5_1;
    default:
      return B::q8_0;
  }
}

std::string upper(std::string_view name) {
  std::string out(name);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

}  // namespace

std::vector<std::string> quantise_mix_names() {
  std::vector<std::string> names;
  for (const QuantiseMix& mix : kMixes) names.emplace_back(mix.name);
  return names;
}

const QuantiseMix& quantise_mix(std::string_view name) {
  std::string wanted = upper(name);
  for (const int bits : {3, 4, 5})
    if (wanted == fmt::format("Q{}_K", bits)) wanted += "_M";
  for (const QuantiseMix& mix : kMixes)
    if (wanted == mix.name) return mix;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("quantise: unknown type \"{}\"; supported are {}", name,
                          fmt::join(quantise_mix_names(), ", ")));
}

std::vector<std::optional<ElementType>> quantised_types(const GgufFile& file,
                                                        const QuantiseMix& mix) {
  Model model;
  const std::string architecture(file.string_or("general.architecture", ""));
  const auto size = [&](const char* key) -> int64_t {
    const GgufValue* const value = file.find(architecture + "." + key);
    return value ? value->integer().value_or(0) : 0;
  };
  model.layers = size("block_count");
  const int64_t heads = size("attention.head_count"), shared = size("attention.head_count_kv");
  if (heads > 0 && shared > 0) model.heads_per_kv = heads / shared;
  model.experts = size("expert_count");
  model.is_output_tied = !file.find_tensor("output.weight");
  std::vector<std::optional<ElementType>> types;
  for (const GgufTensor& tensor : file.tensors()) {
    if (is_quantised(tensor))
      types.emplace_back(fitting(mixed_type(tensor.name, mix, model), tensor.shape[-1]));
    else
      types.emplace_back(std::nullopt);
  }
  return types;
}

}  // namespace prism::llm
