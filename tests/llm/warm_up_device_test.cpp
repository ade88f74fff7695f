// Tests the texts that make plans before the first real ones: the plans are there, nothing else is
// left, and a device that fails meanwhile does not move the model.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "llm/generate/prompt_cache.h"
#include "llm/generate/scheduler.h"
#include "prism/warning.h"
#include "runtime/fallback.h"
#include "support/devices/devices.h"
#include "support/devices/failing_device.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

namespace fs = std::filesystem;
using test::greedy;

const auto kToTheEnd = [] { return true; };

class WarmUpDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static std::string path() { return test::shared_model("stories260K"); }
  static const GgufFile& file() {
    static const GgufFile opened = GgufFile::open(path());
    return opened;
  }
  // A device beside the CPU: what is tested here is the same for all of them.
  static std::vector<std::shared_ptr<DeviceDriver>> drivers() {
    for (const BackendReport& report : discover_backends())
      for (const auto& driver : report.devices)
        if (!driver->info().is_cpu) return {driver};
    return {};
  }
  static Model load(const Device& device, int64_t slots) {
    return Model::load(file(), {.placement = place_on(file(), device, 128, DType::f32),
                                .slots = slots,
                                .cache_block = 8,
                                .batch_rows = 16});
  }
  static std::vector<Generation> texts(Scheduler& scheduler, const Tokenizer& tokenizer,
                                       size_t count) {
    static const std::vector<std::string> prompts = {"Once upon a time", "Lily and Tom", "The dog"};
    std::vector<int64_t> ids;
    for (size_t i = 0; i < count; ++i) {
      GenerationOptions options = greedy(20 + 3 * static_cast<int64_t>(i));
      options.ignore_end = true;
      ids.push_back(scheduler.add({tokenizer.encode(prompts.at(i)), options, {}}));
    }
    scheduler.run();
    std::vector<Generation> made;
    for (const int64_t id : ids) made.push_back(scheduler.take(id));
    return made;
  }
};

TEST_F(WarmUpDevice, TheFirstTextsNeedNoNewPlanAndAreWhatTheyWouldBe) {
  const Tokenizer tokenizer = Tokenizer::from(file());
  if (drivers().empty()) GTEST_SKIP() << "needs a device beside the CPU";
  // The CPU plans for each number of rows.
  for (const std::shared_ptr<DeviceDriver>& driver : drivers()) {
    const Device device(driver, "a test");
    SCOPED_TRACE(device.id());
    Model cold_model = load(device, 3), model = load(device, 3);
    Scheduler cold(cold_model, tokenizer), scheduler(model, tokenizer);
    const std::vector<Generation> expected = texts(cold, tokenizer, 3);
    const int64_t free = model.cache().blocks(0).free();

    scheduler.warm_up(greedy(1), kToTheEnd);
    EXPECT_EQ(model.cache().blocks(0).free(), free);
    EXPECT_EQ(scheduler.unfinished(), 0u);

    const size_t plans = model.plans();
    const std::vector<Generation> made = texts(scheduler, tokenizer, 3);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(made[i].tokens, expected[i].tokens) << i;
      EXPECT_EQ(made[i].statistics.reused_tokens, 0) << i;
    }
    // The decoding steps of 1, 2 and 3 texts; that of the short prompts may be another one.
    EXPECT_LE(model.plans(), plans + 1);
    EXPECT_GE(cold_model.plans(), 4u);
  }
}

TEST_F(WarmUpDevice, KeepsNothingOnDisk) {
  const Tokenizer tokenizer = Tokenizer::from(file());
  const test::TemporaryFolder folder;
  Model model = load(Device::cpu(), 2);
  Scheduler scheduler(model, tokenizer);
  auto made = std::make_unique<PromptCache>(folder / "cache", uint64_t{1} << 30, file(), model);
  PromptCache& cache = *made;
  scheduler.set_prompt_cache(std::move(made));
  const auto kept = [&] {
    cache.wait();
    return std::ranges::count_if(fs::recursive_directory_iterator(folder / "cache"),
                                 [](const auto& each) { return each.is_regular_file(); });
  };
  const auto before = kept();
  scheduler.warm_up(greedy(1), kToTheEnd);
  EXPECT_EQ(kept(), before);
  texts(scheduler, tokenizer, 1);
  texts(scheduler, tokenizer, 1);
  EXPECT_GT(kept(), before) << "texts are kept again";
}

TEST_F(WarmUpDevice, EndsWhenItsTimeIsOver) {
  const Tokenizer tokenizer = Tokenizer::from(file());
  Model model = load(Device::cpu(), 3);
  Scheduler scheduler(model, tokenizer);
  scheduler.warm_up(greedy(1), [] { return false; });
  EXPECT_EQ(scheduler.unfinished(), 0u);
  EXPECT_LE(model.plans(), 1u);  // that of the first step
  EXPECT_EQ(texts(scheduler, tokenizer, 1)[0].statistics.generated_tokens, 20);
}

TEST_F(WarmUpDevice, AFullDeviceKeepsTheModel) {
  if (drivers().empty()) GTEST_SKIP() << "needs a device beside the CPU";
  const Tokenizer tokenizer = Tokenizer::from(file());
  std::vector<std::string> warnings;
  const WarningHandler before =
      set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  for (const std::shared_ptr<DeviceDriver>& driver : drivers()) {
    SCOPED_TRACE(driver->info().id);
    const auto faults = std::make_shared<test::Faults>();
    const Device device = Device(test::failing_device(driver, faults), "a test").as_automatic();
    Model model = load(device, 2);
    int moves = 0;
    Scheduler scheduler(model, tokenizer, [&](const DeviceFailure&) { return ++moves, false; });
    faults->full_at_allocation = 3;
    scheduler.warm_up(greedy(1), kToTheEnd);
    EXPECT_TRUE(faults->is_full);
    *faults = {};
    EXPECT_EQ(moves, 0);
    EXPECT_EQ(model.placement().output, device);
    const Generation made = texts(scheduler, tokenizer, 1)[0];
    EXPECT_FALSE(made.failure);
    EXPECT_EQ(made.statistics.generated_tokens, 20);
  }
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  set_warning_handler(before);
}

}  // namespace
}  // namespace prism::llm
