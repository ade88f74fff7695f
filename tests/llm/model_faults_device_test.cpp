// Tests that a device failure during generation keeps the text and gives one warning.
#include <algorithm>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "llm/generate/scheduler.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "prism/warning.h"
#include "runtime/fallback.h"
#include "support/devices/devices.h"
#include "support/devices/failing_device.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/models/short_text.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

using test::Faults;
using test::greedy;

constexpr const char* kPrompt = "Once upon a time";

class ModelFaults : public testing::Test {
 protected:
  ModelFaults() {
    before_ = set_warning_handler([this](const std::string& text) { warnings_.push_back(text); });
    const uint64_t seed = test_seed();
    std::cout << "seed " << seed << std::endl;
    engine_.seed(seed);
  }
  ~ModelFaults() override { set_warning_handler(before_); }
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    if (drivers().empty()) GTEST_SKIP() << "needs a device beside the CPU";
  }
  static std::string path() { return test::shared_model("stories260K"); }
  static const GgufFile& file() {
    static const GgufFile opened = GgufFile::open(path());
    return opened;
  }
  // The devices other than the CPU, wrapped so that they fail on demand. Intel's compilers would
  // take minutes for every test, so their devices have a separate one.
  static std::vector<std::shared_ptr<DeviceDriver>> drivers(bool slow_compilers = false) {
    std::vector<std::shared_ptr<DeviceDriver>> all;
    for (const BackendReport& report : discover_backends())
      for (const auto& driver : report.devices) {
        const DeviceInfo& info = driver->info();
        const bool is_intel = info.backend == "sycl" || test::is_intels_opencl(info);
        if (!info.is_cpu && is_intel == slow_compilers) all.push_back(driver);
      }
    return all;
  }
  Device failing(const std::shared_ptr<DeviceDriver>& driver) {
    faults_ = std::make_shared<Faults>();
    return Device(test::failing_device(driver, faults_), "a test").as_automatic();
  }
  static LanguageModel load(const Device& device, int64_t slots = 1) {
    LoadOptions options;
    options.slots = slots;
    options.batch_rows = 16;
    return LanguageModel::load(path(), place_on(file(), device, 128, DType::f32), options);
  }
  int draw(int first, int last) { return std::uniform_int_distribution(first, last)(engine_); }
  static LanguageModel& reference() {
    static LanguageModel model = load(Device::cpu(), 3);
    return model;
  }
  // Loses the device after this many tokens.
  TextCallback lose_after(int tokens, std::string* shown, int submits = 1) {
    return [=, this](std::string_view text) mutable {
      *shown += text;
      if (--tokens == 0) faults_->lose_at_submit = submits;
      return true;
    };
  }
  void expect_one_warning(const std::string& part, const Device& device) {
    ASSERT_EQ(warnings_.size(), 1u) << device.id();
    EXPECT_NE(warnings_[0].find(part), std::string::npos) << warnings_[0];
    EXPECT_NE(warnings_[0].find(device.id()), std::string::npos) << warnings_[0];
    warnings_.clear();
  }

  std::shared_ptr<Faults> faults_;
  std::vector<std::string> warnings_;
  std::mt19937_64 engine_;
  WarningHandler before_;
};

TEST_F(ModelFaults, LostInTheMiddleOfAText) {
  const Generation wanted = reference().generate(kPrompt, greedy(60));
  for (const auto& driver : drivers()) {
    const Device device = failing(driver);
    LanguageModel model = load(device);
    EXPECT_EQ(model.device(), device);
    std::string shown;
    const int after = draw(1, 40);
    std::cout << device.id() << " is lost after " << after << " pieces of text\n";
    const Generation result =
        model.generate(kPrompt, greedy(60), lose_after(after, &shown, draw(1, 3)));
    EXPECT_EQ(result.text, wanted.text) << device.id();
    EXPECT_EQ(shown, wanted.text) << device.id();
    EXPECT_EQ(result.tokens, wanted.tokens);
    EXPECT_EQ(result.statistics.prompt_tokens, 5);
    EXPECT_EQ(result.statistics.generated_tokens, 60);
    EXPECT_GE(result.statistics.recomputed_tokens, 5);
    EXPECT_LT(result.statistics.recomputed_tokens, 65);
    EXPECT_TRUE(faults_->is_lost);
    expect_one_warning("was lost", device);
    EXPECT_NE(model.device(), device);
    EXPECT_FALSE(model.why().empty());
    for (const ModelMemory& each : model.memory()) EXPECT_NE(each.device, device);
    // The model stays where it is.
    EXPECT_EQ(model.generate(kPrompt, greedy(60)).text, wanted.text);
    EXPECT_TRUE(warnings_.empty());
  }
}

TEST_F(ModelFaults, LostInThePromptOrWhileScoring) {
  const Generation wanted = reference().generate(kPrompt, greedy(8));
  const std::vector<TokenScore> scores = reference().score(kPrompt);
  for (const auto& driver : drivers()) {
    for (const bool scoring : {false, true}) {
      const Device device = failing(driver);
      LanguageModel model = load(device);
      faults_->lose_at_submit = draw(1, 30);
      if (scoring) {
        const std::vector<TokenScore> got = model.score(kPrompt);
        ASSERT_EQ(got.size(), scores.size());
        for (size_t i = 1; i < got.size(); ++i)
          EXPECT_NEAR(*got[i].logprob, *scores[i].logprob, 1e-3) << device.id();
      } else {
        EXPECT_EQ(model.generate(kPrompt, greedy(8)).text, wanted.text) << device.id();
      }
      expect_one_warning("was lost", device);
    }
  }
}

// SYCL devices are tested in sycl_device_test.
TEST_F(ModelFaults, SlowCompilersLoseTheirDevicesToo) {
  if (drivers(true).empty()) GTEST_SKIP() << "needs Intel's OpenCL runtime";
  for (const auto& driver : drivers(true)) test::expect_short_text_survives(driver, engine_);
}

// Every kind of sampling state survives: seeds and positions, penalties, a grammar, a stop text.
TEST_F(ModelFaults, SeveralTextsKeepTheirSamplers) {
  std::vector<TextRequest> requests(4);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = std::vector<std::string>{kPrompt, "Lily and Tom", "The dog", "A"}[i];
    requests[i].options = greedy(24);
  }
  requests[1].options.sampler.temperature = 0.9f;
  requests[1].options.sampler.seed = 7;
  requests[2].options.sampler.penalties.presence = 0.5f;
  requests[2].options.sampler.mirostat = 2;
  requests[2].options.sampler.temperature = 0.8f;
  requests[3].options.grammar = Grammar::parse(R"(root ::= " " [a-z]{2,9} (" " [a-z]+){9})");
  const std::vector<Generation> wanted = reference().generate_all(requests);
  for (const auto& driver : drivers()) {
    const Device device = failing(driver);
    LanguageModel model = load(device, 3);
    std::vector<TextRequest> copies = requests;
    std::vector<std::string> shown(copies.size());
    const int after = draw(1, 20);
    for (size_t i = 0; i < copies.size(); ++i)
      copies[i].on_text = lose_after(i == 1 ? after : 0, &shown[i], draw(1, 40));
    const std::vector<Generation> results = model.generate_all(std::move(copies));
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].text, wanted[i].text) << device.id() << ", text " << i;
      EXPECT_EQ(shown[i], results[i].text) << device.id();
    }
    expect_one_warning("was lost", device);
  }
}

TEST_F(ModelFaults, OutOfMemoryWhileLoadingAndLater) {
  const Generation wanted = reference().generate(kPrompt, greedy(12));
  for (const auto& driver : drivers()) {
    for (const int allocation : {1, draw(2, 40)}) {
      const Device device = failing(driver);
      faults_->full_at_allocation = allocation;
      LanguageModel model = load(device);
      expect_one_warning("ran out of memory", device);
      EXPECT_NE(model.device(), device);
      EXPECT_EQ(model.generate(kPrompt, greedy(12)).text, wanted.text) << device.id();
    }
    const Device device = failing(driver);
    LanguageModel model = load(device);
    std::string shown;
    const Generation result = model.generate(kPrompt, greedy(12), [&](std::string_view text) {
      shown += text;
      if (shown == text) faults_->full_at_allocation = 1;
      return true;
    });
    EXPECT_EQ(result.text, wanted.text) << device.id();
    EXPECT_EQ(shown, wanted.text) << device.id();
    if (faults_->is_full) expect_one_warning("ran out of memory", device);
  }
}

TEST_F(ModelFaults, ADeviceOfSeveralIsLost) {
  const Generation wanted = reference().generate(kPrompt, greedy(20));
  for (const auto& driver : drivers()) {
    const Device device = failing(driver);
    Placement placement = place_on(file(), Device::cpu(), 128, DType::f32);
    placement.layers[2] = placement.layers[3] = device;
    LanguageModel model = LanguageModel::load(path(), placement, {});
    std::string shown;
    EXPECT_EQ(model.generate(kPrompt, greedy(20), lose_after(draw(1, 10), &shown)).text,
              wanted.text)
        << device.id();
    EXPECT_EQ(shown, wanted.text);
    expect_one_warning("was lost", device);
  }
}

// Other work abandons the device: the model moves with its cached tokens, without another warning.
TEST_F(ModelFaults, GivenUpByOtherWork) {
  const Generation wanted = reference().generate(kPrompt, greedy(20));
  for (const auto& driver : drivers()) {
    const Device device = failing(driver);
    LanguageModel model = load(device);
    const std::string first = model.generate(kPrompt, greedy(10)).text;
    faults_->full_at_allocation = 1;
    empty({1 << 20}, DType::f32, device);  // more than the pool has left
    expect_one_warning("ran out of memory", device);
    EXPECT_EQ(first + model.generate(kPrompt + first, greedy(10)).text, wanted.text) << device.id();
    EXPECT_NE(model.device(), device);
    EXPECT_TRUE(warnings_.empty());
  }
}

TEST_F(ModelFaults, DevicesByNameRaise) {
  for (const auto& driver : drivers()) {
    faults_ = std::make_shared<Faults>();
    const Device device(test::failing_device(driver, faults_), "named");
    LanguageModel model = load(device);
    std::string shown;
    try {
      model.generate(kPrompt, greedy(30), lose_after(5, &shown));
      ADD_FAILURE() << device.id() << ": nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDeviceLost);
      EXPECT_NE(std::string(error.what()).find("PRISM_FALLBACK=1"), std::string::npos)
          << error.what();
    }
    EXPECT_TRUE(warnings_.empty());
    EXPECT_EQ(model.device(), device);
  }
}

// An exception from a callback reaches the caller and does not move the model.
TEST_F(ModelFaults, ACallbacksOwnFailureComesOut) {
  const Error error(ErrorCode::kDeviceLost, "mine");
  EXPECT_THROW(reference().generate(
                   kPrompt, greedy(9),
                   [&](std::string_view) -> bool { throw DeviceFailure(error, Device::cpu()); }),
               DeviceFailure);
  EXPECT_EQ(reference().generate(kPrompt, greedy(9)).tokens.size(), 9u);
}

}  // namespace
}  // namespace prism::llm
