// Attacks everything that reads a model file with mutated files. Each run must end with finite
// results or with an Error; never with a crash, a hang, NaN or a large allocation.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <new>

#include <gtest/gtest.h>

#include "llm/architectures/architecture.h"
#include "llm/gguf/quantise_file.h"
#include "llm/gguf/quantise_mix.h"
#include "llm/model/verify_model.h"
#include "prism/error.h"
#include "prism/llm/fit.h"
#include "prism/llm/language_model.h"
#include "prism/llm/memory.h"
#include "support/attack_rounds.h"
#include "support/models/expected_text.h"
#include "support/models/gguf_mutator.h"
#include "support/models/greedy.h"
#include "support/models/tiny_models.h"
#include "support/run_program.h"

namespace {

// The files have less than 4 MB, so nothing should need much more at once.
constexpr size_t kMostAtOnce = size_t{256} << 20;

}  // namespace

void* operator new(size_t bytes) {
  if (bytes <= kMostAtOnce)
    if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();  // not an Error, so the attack fails
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace prism::llm {
namespace {

class GgufAttack : public testing::Test {
 protected:
  // Uses a file in every way that reads it.
  void use(const std::string& path) {
    const auto step = [&](const char* what, const auto& work) {
      step_ = what;
      try {
        work();
        return true;
      } catch (const Error& error) {
        ++refused_;
        EXPECT_GT(std::string(error.what()).size(), 10u);
        return false;
      }
    };
    std::optional<GgufFile> file;
    if (!step("open", [&] { file = GgufFile::open(path); })) return;
    step("verify", [&] { verify_model(*file); });
    step("memory", [&] {
      const ModelSizes sizes = model_sizes(*file);
      memory_need(*file, sizes, DType::f16, 64, Device::cpu()).total_bytes();
    });
    std::optional<LanguageModel> model;
    LoadOptions options;
    options.fit.device = "cpu";
    options.fit.context = 24;
    if (!step("load", [&] { model = LanguageModel::load(path, options); })) return;
    GenerationOptions on_host = test::greedy(2);
    on_host.sampler.temperature = 0.8f;
    on_host.sampler.penalties.presence = 0.5f;
    step("generate", [&] { model->generate("a b", test::greedy(3)); });
    step("generate on the host", [&] { model->generate("a b", on_host); });
    step("score", [&] {
      for (const TokenScore& score : model->score("ab a", 2))
        EXPECT_FALSE(std::isnan(score.logprob.value_or(0)));
    });
    step("embed", [&] {
      for (const auto& vector : model->embed(std::vector<std::string>{"ab"}))
        for (const float value : vector) EXPECT_TRUE(std::isfinite(value));
    });
    ++accepted_;
  }

  void attack(const std::string& name, const std::string& original, int64_t rounds) {
    const std::string text = test::read_file(original);
    const auto bytes = std::as_bytes(std::span(text));
    const std::string path = folder_ / "mutated.gguf";
    for (int64_t round = 0; round < rounds; ++round) {
      const auto seed = static_cast<uint64_t>(round) * 1000003 + name.size();
      const std::vector<std::byte> made = test::GgufMutator(seed).mutate(bytes);
      test::write_file(path, std::string(reinterpret_cast<const char*>(made.data()), made.size()));
      try {
        use(path);
      } catch (const std::exception& error) {
        ADD_FAILURE() << step_ << ": " << error.what();
      }
      if (HasFailure()) FAIL() << name << ", round " << round << ", seed " << seed;
    }
  }

  test::TemporaryFolder folder_;
  const char* step_ = "";
  int64_t refused_ = 0, accepted_ = 0;
};

TEST_F(GgufAttack, EveryArchitecture) {
  for (const std::string& architecture : test::tiny_architectures()) {
    const auto tiny = test::tiny_model(architecture);
    attack(architecture, tiny->open().path(), test::attack_rounds(12));
  }
  // The mutations must neither be refused at once nor be harmless.
  EXPECT_GT(refused_, 0);
  EXPECT_GT(accepted_, 0);
}

TEST_F(GgufAttack, QuantisedWeights) {
  const auto tiny = test::tiny_model("llama");
  const GgufFile file = tiny->open();
  for (const char* mix : {"Q8_0", "Q4_K_M", "Q2_K"}) {
    quantise_file(file, folder_ / "q.gguf", quantise_mix(mix));
    attack(mix, folder_ / "q.gguf", test::attack_rounds(20));
  }
}

TEST_F(GgufAttack, ATrainedModel) {
  const std::string path = test::shared_model("stories260K");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  attack("stories260K", path, test::attack_rounds(60));
}

}  // namespace
}  // namespace prism::llm
