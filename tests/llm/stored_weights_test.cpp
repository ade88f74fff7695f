// Compares the tiny models of many architectures with files that store their weights in other ways:
// with factors beside the matrices, and quantised.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include "llm/gguf/quantise_file.h"
#include "llm/model/model.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/quantise.h"
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

// Whether llama.cpp quantises a tensor: it does so with some that Prism keeps as they are.
bool is_quantised_elsewhere(const GgufTensor& tensor) {
  if (tensor.shape.elements() <= tensor.shape[-1] || !tensor.name.ends_with(".weight") ||
      !(tensor.type == ElementType(DType::f32)))
    return false;
  for (const char* kept : {"_norm.weight",   "ffn_gate_inp.weight",  "altup",
                           "laurel",         "per_layer_model_proj", "position_embd",
                           "token_types",    "ssm_conv1d",           "shortconv.conv.weight",
                           "indexer.k_proj", "indexer.q_proj",       "time_mix_first",
                           "time_mix_w",     "time_mix_v0",          "time_mix_v1",
                           "time_mix_v2",    "time_mix_a",           "time_mix_g1",
                           "time_mix_g2",    "time_mix_decay_w",     "time_mix_lerp_fused",
                           "attn_rel_b"})
    if (tensor.name.find(kept) != tensor.name.npos) return false;
  return true;
}

std::vector<float> floats_of(const GgufFile& file, const GgufTensor& tensor) {
  const Tensor values = file.tensor(tensor);
  return (values.type().is_block() ? dequantise(values) : cast(values, DType::f32))
      .to_vector<float>();
}

// Rounded inputs change the choice of experts, and the 22 layers of gemma3n amplify what they
// round.
TEST(StoredWeights, Quantised) {
  const std::vector<ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "quantised.gguf").string();
  for (const ArchitectureFile& each : files) {
    const GgufFile file = GgufFile::open(each.path);
    const double limit = each.name.starts_with("gemma3n") ? 0.6 : 0.2;
    // What the file says in f32: only inputs of products are rounded besides.
    const auto check = [&](const QuantiseMix* mix, const QuantiseOptions& options) {
      quantise_file(file, path, mix, options);
      const GgufFile stored = GgufFile::open(path);
      test::Variant plain;
      for (const GgufTensor& tensor : stored.tensors())
        if (!(tensor.type == file.find_tensor(tensor.name)->type))
          plain.values[tensor.name] = floats_of(stored, tensor);
      EXPECT_FALSE(plain.values.empty()) << each.name;
      test::Variants variants(file);
      expect_same(each, variants.open(plain), stored, limit);
    };
    for (const char* mix : {"Q8_0", "Q4_K_M"})
      EXPECT_NO_THROW(check(&quantise_mix(mix), {})) << each.name << " as " << mix;
    QuantiseOptions as_elsewhere;
    for (const GgufTensor& tensor : file.tensors())
      if (is_quantised_elsewhere(tensor))
        as_elsewhere.types.push_back(tensor_type_rule(fmt::format(
            "^\\Q{}\\E$={}", tensor.name, tensor.shape[-1] % 32 == 0 ? "q8_0" : "f16")));
    EXPECT_NO_THROW(check(nullptr, as_elsewhere)) << each.name << " as llama.cpp does";
  }
}

// Q2_0 is not written by Prism: random codes with the scale 1/16.
TEST(StoredWeights, ExpandedTypes) {
  const std::vector<ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const ArchitectureFile& of = *std::ranges::find(files, "llama-dense", &ArchitectureFile::name);
  const GgufFile file = GgufFile::open(of.path);
  std::mt19937 random(7);
  std::list<std::vector<uint8_t>> kept;
  GgufWriter to;
  for (const auto& [key, value] : file.metadata()) to.set(key, value);
  for (const GgufTensor& each : file.tensors()) {
    if (each.shape.rank() != 2 || each.shape[1] % 64 != 0) {
      to.add_tensor(each, file.data(each));
      continue;
    }
    GgufTensor like = each;
    like.gguf_type = 42;
    std::vector<uint8_t>& bytes = kept.emplace_back(each.shape.elements() / 64 * 18);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(i % 18 == 0 ? 0 : i % 18 == 1 ? 0x2c : random());
    to.add_tensor(like, std::as_bytes(std::span(bytes)));
  }
  ASSERT_FALSE(kept.empty());
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "q2_0.gguf").string();
  to.write(path);
  const GgufFile stored = GgufFile::open(path);
  test::Variant plain;
  for (const GgufTensor& tensor : stored.tensors())
    plain.values[tensor.name] = floats_of(stored, tensor);
  test::Variants variants(file);
  expect_same(of, variants.open(plain), stored, 1e-2);
}

}  // namespace
}  // namespace prism::llm
