// Compares tiny models without some keys, and with 0 in their place, with what they then mean.
#include <algorithm>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "llm/architectures/model_config.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/model/model.h"
#include "support/models/architecture_files.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

// A copy of the file with other metadata.
class Changed {
 public:
  using Change = std::function<void(GgufWriter& to, const std::string& prefix)>;

  GgufFile open(const GgufFile& file, const Change& change) {
    GgufWriter to;
    for (const auto& [key, value] : file.metadata()) to.set(key, value);
    change(to, std::string(file.string("general.architecture")) + ".");
    for (const GgufTensor& each : file.tensors()) to.add_tensor(each, file.data(each));
    const std::string path = folder_ / "changed.gguf";
    to.write(path);
    return GgufFile::open(path);
  }

 private:
  test::TemporaryFolder folder_;
};

std::vector<float> logits_of(const GgufFile& file, std::span<const int32_t> tokens) {
  Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 0, DType::f32)});
  const SequencePart part{0, 0, tokens, Wanted::all};
  return model.forward(std::span(&part, 1)).to_vector<float>();
}

// In files without their width, the experts of a token share that of a feed-forward block, or each
// is as wide.
TEST(AbsentKeys, WidthOfExperts) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const std::set<std::string> shared = {"glm4moe",   "grovemoe",   "hy_v3",     "llada-moe",
                                        "mellum",    "qwen2moe",   "qwen35moe", "qwen3moe",
                                        "qwen3next", "qwen3vlmoe", "rnd1",      "nemotron_h_moe"};
  size_t seen = 0;
  for (const test::ArchitectureFile& each : files) {
    const GgufFile file = GgufFile::open(each.path);
    const std::string name(file.string("general.architecture"));
    const auto architecture = make_architecture(name);
    const Config all = model_config(file, *architecture);
    if (all.experts == 0) continue;
    const bool is_shared = shared.contains(name);
    seen += is_shared;
    for (const bool zero : {false, true}) {
      Changed changed;
      const GgufFile without = changed.open(file, [&](GgufWriter& to, const std::string& prefix) {
        to.remove(prefix + "expert_feed_forward_length");
        if (zero) to.set(prefix + "expert_feed_forward_length", uint32_t{0});
      });
      EXPECT_EQ(model_config(without, *architecture).expert_feed_forward,
                is_shared ? all.feed_forward / all.experts_used : all.feed_forward)
          << each.name;
    }
  }
  EXPECT_GE(seen, shared.size() - 1);
}

// Factors of 0 are none, and a context of 0 is below every other.
TEST(AbsentKeys, ZeroIsNone) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  struct Zero {
    const char *name, *key;
    double same_as;
  };
  for (const auto& [name, key, same_as] :
       {Zero{"granite-dense", "embedding_scale", 1}, Zero{"granite-dense", "residual_scale", 1},
        Zero{"granite-dense", "logit_scale", 1},
        Zero{"granite-dense", "attention.scale", 0.1767767},
        Zero{"granite_swa-dense", "embedding_scale", 1},
        Zero{"minicpm-dense", "embedding_scale", 1}, Zero{"minicpm-dense", "residual_scale", 1},
        Zero{"command-r-dense", "logit_scale", 1}, Zero{"cohere2-dense", "logit_scale", 1},
        Zero{"cohere2moe-moe", "logit_scale", 1}, Zero{"grok-moe", "embedding_scale", 1},
        Zero{"mimo2-moe", "attention.value_scale", 1},
        Zero{"phi3-dense", "rope.scaling.original_context_length", 1}}) {
    const auto found = std::ranges::find(files, name, &test::ArchitectureFile::name);
    ASSERT_NE(found, files.end()) << name;
    const GgufFile file = GgufFile::open(found->path);
    const auto with = [&, name_of = std::string(key)](double value) {
      Changed changed;
      const GgufFile other = changed.open(file, [&](GgufWriter& to, const std::string& prefix) {
        if (name_of.ends_with("length"))
          to.set(prefix + name_of, static_cast<uint32_t>(value));
        else
          to.set(prefix + name_of, static_cast<float>(value));
      });
      return logits_of(other, found->tokens);
    };
    const std::vector<float> zero = with(0), same = with(same_as), other = with(500);
    ASSERT_EQ(zero.size(), same.size());
    for (size_t i = 0; i < zero.size(); ++i) ASSERT_NEAR(zero[i], same[i], 1e-4) << name << key;
    EXPECT_NE(zero, other) << name << " " << key;
  }
}

// dbrx limits heads to 8 unless its files say otherwise.
TEST(AbsentKeys, ZeroIsNoLimit) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const auto found = std::ranges::find(files, "dbrx-moe", &test::ArchitectureFile::name);
  ASSERT_NE(found, files.end());
  const GgufFile file = GgufFile::open(found->path);
  const auto with = [&](float limit) {
    Changed changed;
    const GgufFile other = changed.open(file, [&](GgufWriter& to, const std::string& prefix) {
      to.set(prefix + "attention.clamp_kqv", limit);
    });
    return logits_of(other, found->tokens);
  };
  EXPECT_EQ(with(0), with(1e6f));
  EXPECT_NE(with(0), with(0.1f));
}

}  // namespace
}  // namespace prism::llm
