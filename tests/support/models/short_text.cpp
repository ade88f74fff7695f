// Generates the text twice: with a lost device, and with a full device.
#include "support/models/short_text.h"

#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "prism/llm/language_model.h"
#include "prism/warning.h"
#include "support/devices/failing_device.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"

namespace prism::test {
namespace {

constexpr const char* kPrompt = "Once upon a time";
constexpr int64_t kTokens = 6;

// Collects the warnings raised during its lifetime.
class Warnings {
 public:
  Warnings()
      : before_(set_warning_handler([this](const std::string& text) { told_.push_back(text); })) {}
  ~Warnings() { set_warning_handler(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  void expect_one(const std::string& part, const Device& device) {
    ASSERT_EQ(told_.size(), 1u) << device.id();
    for (const std::string& wanted : {part, device.id()})
      EXPECT_NE(told_[0].find(wanted), std::string::npos) << told_[0];
    told_.clear();
  }

 private:
  std::vector<std::string> told_;
  WarningHandler before_;
};

}  // namespace

void expect_short_text_survives(const std::shared_ptr<DeviceDriver>& driver,
                                std::mt19937_64& engine) {
  const std::string path = shared_model("stories260K");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  const llm::GgufFile file = llm::GgufFile::open(path);
  const auto load = [&](const Device& device) {
    return llm::LanguageModel::load(path, llm::place_on(file, device, 64, DType::f32),
                                    {.batch_rows = 16});
  };
  const auto draw = [&](int last) { return std::uniform_int_distribution(1, last)(engine); };
  const std::string wanted = load(Device::cpu()).generate(kPrompt, greedy(kTokens)).text;
  Warnings warnings;
  auto faults = std::make_shared<Faults>();
  const Device lost = Device(failing_device(driver, faults), "a test").as_automatic();
  {
    llm::LanguageModel model = load(lost);
    EXPECT_EQ(model.device(), lost);
    std::string shown;
    int left = draw(4);
    std::cout << lost.id() << " is lost after " << left << " pieces of text" << std::endl;
    const llm::Generation result =
        model.generate(kPrompt, greedy(kTokens), [&](std::string_view text) {
          shown += text;
          if (--left == 0) faults->lose_at_submit = 1;
          return true;
        });
    EXPECT_EQ(result.text, wanted) << lost.id();
    EXPECT_EQ(shown, wanted) << lost.id();
    EXPECT_NE(model.device(), lost);
    warnings.expect_one("was lost", lost);
  }
  faults = std::make_shared<Faults>();
  const Device full = Device(failing_device(driver, faults), "a test").as_automatic();
  faults->full_at_allocation = draw(20);
  llm::LanguageModel model = load(full);
  EXPECT_NE(model.device(), full);
  warnings.expect_one("ran out of memory", full);
  EXPECT_EQ(model.generate(kPrompt, greedy(kTokens)).text, wanted) << full.id();
}

}  // namespace prism::test
