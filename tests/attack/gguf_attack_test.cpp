// Attacks everything that reads a model file with mutated files. Each run must end with finite
// results or with an Error; never with a crash, a hang, NaN or a large allocation.
//
// PRISM_ATTACK_START=N begins with round N, and PRISM_ATTACK_ONLY=NAME takes one file: for a long
// attack in parts, and to see one failure again.
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
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
#include "support/models/architecture_files.h"
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

// Ends the process with a message if a round uses too much processor time.
class Watch {
 public:
  explicit Watch(const std::string& what) {
    std::strncpy(what_, what.c_str(), sizeof(what_) - 2);
    what_[std::strlen(what_)] = '\n';
    signal(SIGPROF, [](int) {
      (void)!write(STDERR_FILENO, what_, std::strlen(what_));
      _exit(1);
    });
    set(kLongestSeconds);
  }
  ~Watch() { set(0); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  static constexpr int kLongestSeconds = 30;
  static void set(int seconds) {
    const itimerval timer = {{0, 0}, {seconds, 0}};
    setitimer(ITIMER_PROF, &timer, nullptr);
  }
  static inline char what_[256] = {};
};

class GgufAttack : public testing::Test {
 protected:
  bool step(const char* what, const std::function<void()>& work) {
    step_ = what;
    try {
      work();
      return true;
    } catch (const Error& error) {
      ++refused_;
      EXPECT_GT(std::string(error.what()).size(), 10u);
      return false;
    }
  }

  // Uses a file in every way that reads it. Those without a vocabulary get the tokens.
  void use(const std::string& path, std::span<const int32_t> tokens) {
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
    if (tokens.empty())
      use_texts(*model);
    else
      use_tokens(*model, tokens);
    ++accepted_;
  }

  void use_texts(LanguageModel& model) {
    GenerationOptions on_host = test::greedy(2);
    on_host.sampler.temperature = 0.8f;
    on_host.sampler.penalties.presence = 0.5f;
    step("generate", [&] { model.generate("a b", test::greedy(3)); });
    step("generate on the host", [&] { model.generate("a b", on_host); });
    step("score", [&] { expect_numbers(model.score("ab a", 2)); });
    step("embed", [&] {
      for (const auto& vector : model.embed(std::vector<std::string>{"ab"}))
        for (const float value : vector) EXPECT_TRUE(std::isfinite(value));
    });
  }

  void use_tokens(LanguageModel& model, std::span<const int32_t> tokens) {
    const auto at_once = tokens.first(std::min<size_t>(tokens.size(), 7));
    step("score", [&] { expect_numbers(model.score(at_once, 2)); });
    step("generate", [&] { model.generate(at_once, test::greedy(2)); });
  }

  static void expect_numbers(const std::vector<TokenScore>& scores) {
    for (const TokenScore& score : scores) EXPECT_FALSE(std::isnan(score.logprob.value_or(0)));
  }

  void attack(const std::string& name, const std::string& original, int64_t rounds,
              std::span<const int32_t> tokens = {}) {
    const char* const only = std::getenv("PRISM_ATTACK_ONLY");
    if (only && name != only) return;
    const std::string text = test::read_file(original);
    const auto bytes = std::as_bytes(std::span(text));
    const std::string path = folder_ / "mutated.gguf";
    const int64_t first = test::attack_start();
    for (int64_t round = first; round < first + rounds; ++round) {
      const auto seed = static_cast<uint64_t>(round) * 1000003 + name.size();
      const std::vector<std::byte> made = test::GgufMutator(seed).mutate(bytes);
      test::write_file(path, std::string(reinterpret_cast<const char*>(made.data()), made.size()));
      const std::string which = name + ", round " + std::to_string(round);
      const Watch watch(which + ": takes too long");
      try {
        use(path, tokens);
      } catch (const std::exception& error) {
        ADD_FAILURE() << step_ << ": " << error.what();
      }
      if (HasFailure()) FAIL() << which << ", seed " << seed;
    }
  }

  // The most memory that the process has had.
  static int64_t peak_bytes() {
    rusage use = {};
    getrusage(RUSAGE_SELF, &use);
    return int64_t{use.ru_maxrss} * 1024;
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

// The files of the archive have one architecture each, random weights and no vocabulary.
TEST_F(GgufAttack, FilesOfOtherEngines) {
  const std::vector<test::ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  const std::vector<std::string_view> known = known_architectures();
  const int64_t before = peak_bytes();
  for (const test::ArchitectureFile& each : files) {
    const std::string name(GgufFile::open(each.path).string("general.architecture"));
    if (std::ranges::count(known, name) == 0) continue;
    attack(each.name, each.path, test::attack_rounds(6), each.tokens);
    if (HasFatalFailure()) return;
  }
  std::cout << accepted_ << " files loaded, " << refused_ << " errors, " << (peak_bytes() >> 20)
            << " MiB at most" << std::endl;
  EXPECT_GT(refused_, 0);
  EXPECT_GT(accepted_, 0);
  EXPECT_LT(peak_bytes() - before, int64_t{1} << 30);
}

}  // namespace
}  // namespace prism::llm
