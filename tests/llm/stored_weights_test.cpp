// Compares the tiny models of many architectures with files that store their weights in other ways:
// with factors beside the matrices, and quantised.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "llm/model/model.h"
#include "support/models/architecture_files.h"
#include "support/models/variants.h"
#include "support/normalised_error.h"

namespace prism::llm {
namespace {

using test::ArchitectureFile;

std::vector<float> logits_of(const ArchitectureFile& of, const GgufFile& file) {
  Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 128, DType::f32)});
  const auto run = [&](int32_t first, Wanted wanted) {
    const SequencePart part{0, first, of.tokens, wanted};
    return model.forward(std::span(&part, 1));
  };
  const bool encodes = model.config().has_decoder();  // the encoder sees what the decoder reads
  if (encodes) run(0, Wanted::none);
  return run(encodes ? static_cast<int32_t>(of.tokens.size()) : 0, Wanted::all).to_vector<float>();
}

void expect_same(const ArchitectureFile& of, const GgufFile& plain, const GgufFile& stored,
                 double limit) {
  EXPECT_LT(test::normalised_error(logits_of(of, stored), logits_of(of, plain)), limit) << of.name;
}

// The matrices beside which files of llama.cpp can have a factor.
constexpr std::array<std::string_view, 19> kWithFactors = {
    "attn_q",         "attn_k",        "attn_v",      "attn_output",  "attn_qkv",
    "attn_gate",      "ffn_gate",      "ffn_down",    "ffn_up",       "ffn_gate_shexp",
    "ffn_down_shexp", "ffn_up_shexp",  "ssm_in",      "ssm_out",      "ssm_alpha",
    "ssm_beta",       "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};

bool can_have_factor(const std::string& name) {
  if (name == "output.weight") return true;
  const size_t layer = name.find('.', 4);
  if (!name.starts_with("blk.") || layer == name.npos || !name.ends_with(".weight")) return false;
  const std::string_view matrix = std::string_view(name).substr(layer + 1, name.size() - layer - 8);
  return std::ranges::count(kWithFactors, matrix) > 0;
}

// A quarter of each matrix with the factor 4 is the same model.
TEST(StoredWeights, FactorsBesideMatrices) {
  const std::vector<ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  for (const ArchitectureFile& each : files) {
    const GgufFile file = GgufFile::open(each.path);
    test::Variant variant;
    for (const GgufTensor& tensor : file.tensors()) {
      if (!can_have_factor(tensor.name)) continue;
      std::vector<float>& values = variant.values[tensor.name];
      values = file.tensor(tensor).to_vector<float>();
      for (float& value : values) value /= 4;
      const int64_t count = tensor.shape.rank() == 3 ? tensor.shape[0] : 1;
      const std::string name = tensor.name.substr(0, tensor.name.rfind('.'));
      const std::vector<float> fours(static_cast<size_t>(count), 4.f);
      variant.added[name + ".scale"] = variant.added[name + ".input_scale"] = {{count}, fours};
    }
    if (variant.values.empty()) continue;
    EXPECT_NO_THROW(expect_same(each, file, test::Variants(file).open(variant), 1e-10))
        << each.name;
  }
}

}  // namespace
}  // namespace prism::llm
