// Tests that `verify` finds what is wrong with a file, in every place where it can be: about 300
// files, each with one mistake.
#include "llm/model/verify_model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "llm/architectures/architecture.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/gguf/quantise_file.h"
#include "llm/gguf/quantise_mix.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "support/models/architecture_files.h"
#include "support/models/tiny_models.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Verify : public testing::Test {
 protected:
  // A valid file of each architecture.
  const GgufFile& valid(const std::string& architecture) {
    std::optional<GgufFile>& file = files_[architecture];
    if (!file) {
      models_.push_back(test::tiny_model(architecture));
      file = models_.back()->open();
    }
    return *file;
  }
  // A writer with the contents of a file, except for a tensor.
  static GgufWriter copy_of(const GgufFile& file, const std::string& without = "") {
    GgufWriter writer;
    for (const auto& [key, value] : file.metadata()) writer.set(key, value);
    for (const GgufTensor& tensor : file.tensors())
      if (tensor.name != without) writer.add_tensor(tensor, file.data(tensor));
    return writer;
  }
  GgufFile written(const GgufWriter& writer) {
    writer.write(folder_ / "m.gguf");
    return GgufFile::open(folder_ / "m.gguf");
  }
  // A copy of the file with these bytes at an offset in a tensor.
  template <class T>
  GgufFile patched(const GgufFile& file, const GgufTensor& tensor, uint64_t offset, T value) {
    std::string bytes = test::read_file(file.path());
    std::memcpy(bytes.data() + tensor.offset + offset, &value, sizeof(value));
    test::write_file(folder_ / "m.gguf", bytes);
    return GgufFile::open(folder_ / "m.gguf");
  }
  // Expects a problem that contains these words.
  static void expect_found(const GgufFile& file, const std::string& words) {
    const VerifyResult result = verify_model(file);
    for (const std::string& problem : result.problems)
      if (problem.find(words) != problem.npos) return;
    ADD_FAILURE() << "no problem with " << words << "; there are " << result.problems.size()
                  << (result.problems.empty() ? "" : ": " + result.problems[0]);
  }
  static void expect_refused(const GgufFile& file, const std::string& words) {
    try {
      Model::load(file, {.placement = place_on(file, Device::cpu(), 40)});
      ADD_FAILURE() << "loaded in spite of " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  test::TemporaryFolder folder_;
  std::vector<std::unique_ptr<test::TinyModel>> models_;
  std::map<std::string, std::optional<GgufFile>> files_;
};

TEST_F(Verify, FindsNothingInValidFiles) {
  for (const std::string& architecture : test::tiny_architectures()) {
    const VerifyResult result = verify_model(valid(architecture));
    EXPECT_EQ(result.problems, std::vector<std::string>{}) << architecture;
    EXPECT_EQ(result.notes, std::vector<std::string>{}) << architecture;
  }
}

TEST_F(Verify, FindsNothingInFilesOfAnotherEngine) {
  if (test::architecture_files().empty())
    GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const std::vector<std::string_view> known = known_architectures();
  for (const test::ArchitectureFile& each : test::architecture_files()) {
    const GgufFile file = GgufFile::open(each.path);
    if (!std::ranges::count(known, file.string("general.architecture"))) continue;
    EXPECT_EQ(verify_model(file).problems, std::vector<std::string>{}) << each.name;
  }
}

TEST_F(Verify, FindsWeightsThatAreNotFinite) {
  for (const char* architecture : {"llama", "qwen3", "gpt-oss", "bert"}) {
    const GgufFile& file = valid(architecture);
    for (const GgufTensor& tensor : file.tensors()) {
      const float bad = std::vector{kNan, kInfinity, -kInfinity}[tensor.name.size() % 3];
      expect_found(patched(file, tensor, tensor.bytes - 4, bad), "tensor " + tensor.name);
    }
  }
}

TEST_F(Verify, FindsScalesThatAreNotFinite) {
  // The offsets of the half-precision scales in a block.
  const std::map<std::string, std::vector<uint64_t>> scales = {
      {"q8_0", {0}},      {"q4_0", {0}},   {"q5_0", {0}},    {"q4_1", {0, 2}}, {"q5_1", {0, 2}},
      {"q2_k", {80, 82}}, {"q3_k", {108}}, {"q4_k", {0, 2}}, {"q5_k", {0, 2}}, {"q6_k", {208}}};
  std::map<std::string, int> seen;
  for (const std::string& mix : quantise_mix_names()) {
    quantise_file(valid("llama"), folder_ / "q.gguf", quantise_mix(mix));
    const GgufFile file = GgufFile::open(folder_ / "q.gguf");
    for (const GgufTensor& tensor : file.tensors()) {
      const auto known = scales.find(tensor.type_name());
      if (known == scales.end() || seen[tensor.type_name()]++ > 0) continue;
      for (const uint64_t at : known->second)
        for (const uint16_t bad : {0x7e00, 0x7c00, 0xfc00})
          expect_found(patched(file, tensor, tensor.type.block_bytes() + at, bad),
                       "tensor " + tensor.name);
    }
  }
  EXPECT_GE(seen.size(), 6u);
}

TEST_F(Verify, LayersThatOnlyProposeTokensAreLeftOut) {
  const auto& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const GgufFile original =
      GgufFile::open(std::ranges::find(files, "glm4moe-moe", &test::ArchitectureFile::name)->path);
  GgufWriter writer = copy_of(original);
  writer.set("glm4moe.block_count", uint32_t{3});
  writer.set("glm4moe.nextn_predict_layers", uint32_t{1});
  const std::vector<float> values(64);
  writer.add_tensor("blk.2.nextn.enorm.weight", {64}, DType::f32, std::as_bytes(std::span(values)));
  const GgufFile file = written(writer);
  EXPECT_EQ(verify_model(file).problems, std::vector<std::string>{});
  const Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 40)});
  EXPECT_EQ(model.config().layers, 2);
}

// A layer that the metadata does not count is no such layer, and frequencies of single layers are
// not applied.
TEST_F(Verify, TensorsThatNothingUsesAreErrors) {
  const std::vector<float> values(16, 1);
  for (const char* name :
       {"blk.99.attn_norm.weight", "blk.0.rope_freqs.weight", "blk.0.attn_q.other"}) {
    GgufWriter writer = copy_of(valid("llama"));
    writer.add_tensor(name, {16}, DType::f32, std::as_bytes(std::span(values)));
    expect_refused(written(writer), name);
  }
}

// Some architectures divide by hyperparameters, or compute with ones that have no limits.
TEST_F(Verify, FindsHyperparametersThatGiveInfinities) {
  if (test::architecture_files().empty())
    GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const auto found = [&](const std::string& name, const char* key, auto value, const char* words) {
    const auto& files = test::architecture_files();
    const GgufFile original =
        GgufFile::open(std::ranges::find(files, name, &test::ArchitectureFile::name)->path);
    GgufWriter writer = copy_of(original);
    writer.set(key, value);
    const GgufFile file = written(writer);
    SCOPED_TRACE(name);
    expect_found(file, words);
    expect_refused(file, words);
  };
  found("bailingmoe-moe", "bailingmoe.rope.dimension_count", uint32_t{0}, "scale of attention");
  for (const float bad : {kNan, kInfinity})
    for (const char* key : {"xielu.alpha_n", "xielu.beta", "xielu.eps"})
      found("apertus-dense", key, bad, "xIELU");
}

TEST_F(Verify, FindsHyperparametersWithoutSense) {
  struct Key {
    const char* architecture;
    const char* name;
    bool zero = false;  // whether 0 means that there is none
  };
  const Key reals[] = {{"llama", "attention.layer_norm_rms_epsilon"},
                       {"llama", "rope.freq_base"},
                       {"llama", "rope.scaling.factor", true},
                       {"llama", "rope.scale_linear", true},
                       {"bert", "attention.layer_norm_epsilon"},
                       {"granite", "embedding_scale", true},
                       {"granite", "residual_scale", true},
                       {"granite", "attention.scale", true},
                       {"granite", "logit_scale", true},
                       {"gemma2", "attn_logit_softcapping", true},
                       {"gemma2", "final_logit_softcapping", true},
                       {"gemma3", "rope.freq_base_swa"},
                       {"gpt-oss", "rope.scaling.factor", true},
                       {"gpt-oss", "rope.scaling.yarn_beta_fast"},
                       {"gpt-oss", "rope.scaling.yarn_beta_slow"},
                       {"gpt-oss", "rope.scaling.attn_factor", true},
                       {"phi3", "rope.scaling.attn_factor", true}};
  for (const Key& key : reals) {
    for (const float bad : {kNan, kInfinity, -kInfinity, -1.f, 0.f}) {
      if (bad == 0 && key.zero) continue;
      GgufWriter writer = copy_of(valid(key.architecture));
      writer.set(std::string(key.architecture) + "." + key.name, bad);
      const GgufFile file = written(writer);
      SCOPED_TRACE(std::string(key.architecture) + " " + key.name + " " + std::to_string(bad));
      expect_found(file, key.name);
      expect_refused(file, key.name);
    }
  }
  const Key integers[] = {{"llama", "block_count"},
                          {"llama", "embedding_length"},
                          {"llama", "context_length"},
                          {"llama", "feed_forward_length"},
                          {"llama", "attention.head_count"},
                          {"llama", "attention.head_count_kv"},
                          {"llama", "attention.key_length"},
                          {"llama", "expert_count", true},
                          {"llama", "rope.dimension_count", true},
                          {"llama", "rope.scaling.original_context_length", true},
                          {"qwen3moe", "expert_count"},
                          {"qwen3moe", "expert_used_count"},
                          {"qwen3moe", "expert_feed_forward_length", true},
                          {"gpt-oss", "attention.sliding_window"},
                          {"gemma2", "attention.sliding_window"},
                          {"phi3", "attention.sliding_window", true},
                          {"bert", "pooling_type", true}};
  for (const Key& key : integers) {
    for (const int64_t bad : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
      if (bad == 0 && key.zero) continue;
      GgufWriter writer = copy_of(valid(key.architecture));
      writer.set(std::string(key.architecture) + "." + key.name, bad);
      SCOPED_TRACE(std::string(key.architecture) + " " + key.name + " " + std::to_string(bad));
      expect_found(written(writer), key.name);
    }
  }
}

TEST_F(Verify, FindsDivisorsOfFrequenciesThatAreNotPositive) {
  for (const auto& [architecture, name] :
       std::vector<std::pair<const char*, const char*>>{{"llama", "rope_freqs.weight"},
                                                        {"phi3", "rope_factors_long.weight"},
                                                        {"phi3", "rope_factors_short.weight"}}) {
    const GgufFile& file = valid(architecture);
    for (const float bad : {0.f, -0.f, -1.f, kNan, kInfinity, -kInfinity}) {
      const GgufFile changed = patched(file, *file.find_tensor(name), 8, bad);
      expect_found(changed, std::string("element 2 of tensor ") + name);
      expect_refused(changed, name);
    }
  }
}

TEST_F(Verify, FindsEveryMissingTensor) {
  // An architecture does without these.
  const auto is_optional = [](const std::string& architecture, const std::string& name) {
    return name.starts_with("rope_") || name == "token_types.weight" ||
           (name == "output.weight" && architecture != "bert");
  };
  for (const std::string& architecture : test::tiny_architectures()) {
    const GgufFile& file = valid(architecture);
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.name.starts_with("blk.1.") || is_optional(architecture, tensor.name)) continue;
      SCOPED_TRACE(architecture + " without " + tensor.name);
      const GgufFile changed = written(copy_of(file, tensor.name));
      // Without attn_qkv, the file should have separate matrices; without ffn_up, a gate.
      const bool is_joined = architecture == "phi3" && (tensor.name == "blk.0.attn_qkv.weight" ||
                                                        tensor.name == "blk.0.ffn_up.weight");
      expect_found(changed, is_joined ? "has no tensor blk.0." : "has no tensor " + tensor.name);
    }
  }
}

TEST_F(Verify, FindsEveryMisshapenTensor) {
  for (const char* architecture : {"llama", "qwen2", "qwen3moe", "gpt-oss", "bert"}) {
    const GgufFile& file = valid(architecture);
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.name.starts_with("blk.1.")) continue;
      // The last of the outermost rows is missing.
      Shape shape = tensor.shape;
      shape[0] -= 1;
      GgufWriter writer = copy_of(file, tensor.name);
      writer.add_tensor(tensor.name, shape, tensor.type,
                        file.data(tensor).first(tensor.bytes / static_cast<uint64_t>(shape[0] + 1) *
                                                static_cast<uint64_t>(shape[0])));
      SCOPED_TRACE(std::string(architecture) + " " + tensor.name);
      // A smaller embedding is a smaller vocabulary, which the tokenizer and the output exceed.
      if (tensor.name == "token_types.weight") continue;  // any number of types is valid
      expect_found(written(writer), tensor.name == "token_embd.weight" ? "token" : tensor.name);
    }
  }
}

TEST_F(Verify, FindsScoresThatAreNotFinite) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    GgufWriter writer = copy_of(valid("llama"));
    std::vector<float> scores(40, -1);
    scores[7] = bad;
    writer.set("tokenizer.ggml.scores", scores);
    expect_found(written(writer), "the score of token 7 is not finite");
  }
}

TEST_F(Verify, AnUnknownArchitectureIsANoteAndTheRestIsChecked) {
  GgufWriter writer = copy_of(valid("llama"));
  writer.set("general.architecture", "parrot");
  for (const char* key : {"embedding_length", "attention.head_count"})
    writer.set(std::string("parrot.") + key, 2);
  writer.set("parrot.block_count", 3);
  const VerifyResult result = verify_model(written(writer));
  EXPECT_EQ(result.problems, std::vector<std::string>{"layer 2 of 3 has no tensors"});
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("\"parrot\" is not supported"), std::string::npos);
}

}  // namespace
}  // namespace prism::llm
