// A device that is lost at its n-th submit while a model is loaded and generates: the text goes on
// on another device or ends with an error that names the device, and the next model works.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/llm/language_model.h"
#include "prism/warning.h"
#include "support/attack_rounds.h"
#include "support/devices/failing_device.h"
#include "support/devices/interpreted_device.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"

namespace prism::llm {
namespace {

constexpr int kNever = 1 << 30;

class LossAttack : public testing::Test {
 protected:
  LossAttack() {
    before_ = set_warning_handler([this](const std::string& text) { warnings_.push_back(text); });
  }
  ~LossAttack() override { set_warning_handler(before_); }
  void SetUp() override {
    if (path_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    wanted_ = text_on(Device::cpu());
    shown_.clear();
    (void)text_on(device(kNever));
    submits_ = kNever - faults_->lose_at_submit;
    ASSERT_GT(submits_, 0);
  }

  // A device that runs kernels in the interpreter and is lost at this submit.
  Device device(int lose_at_submit) {
    faults_ = std::make_shared<test::Faults>();
    faults_->lose_at_submit = lose_at_submit;
    return Device(test::failing_device(test::interpreted_driver(2), faults_), "a test");
  }

  // Loads the model, generates, and keeps the text that was shown on the way.
  std::string text_on(const Device& device) {
    LoadOptions options;
    options.batch_rows = 16;
    const GgufFile file = GgufFile::open(path_);
    LanguageModel model =
        LanguageModel::load(path_, place_on(file, device, 32, DType::f32), options);
    return model
        .generate("Once upon a time", test::greedy(4),
                  [this](std::string_view text) {
                    shown_ += text;
                    return true;
                  })
        .text;
  }

  // The submits to hit: a few at random, all of them in a long attack.
  std::vector<int> numbers() {
    const int64_t wanted = test::attack_rounds(3);
    std::vector<int> all;
    for (int i = 0; i < std::min<int64_t>(wanted, submits_); ++i)
      all.push_back(wanted >= submits_ ? i + 1
                                       : std::uniform_int_distribution<int>(1, submits_)(random_));
    return all;
  }

  void expect_next_start_works() {
    warnings_.clear();
    EXPECT_EQ(text_on(device(kNever)), wanted_);
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
  }

  const std::string path_ = test::shared_model("stories260K");
  std::string wanted_, shown_;
  int submits_ = 0;
  std::shared_ptr<test::Faults> faults_;
  std::vector<std::string> warnings_;
  std::mt19937 random_{20260101};
  WarningHandler before_;
};

TEST_F(LossAttack, TheTextGoesOnOnAnotherDevice) {
  for (const int number : numbers()) {
    SCOPED_TRACE("lost at submit " + std::to_string(number) + " of " + std::to_string(submits_));
    shown_.clear();
    warnings_.clear();
    const Device lost = device(number).as_automatic();
    EXPECT_EQ(text_on(lost), wanted_);
    EXPECT_EQ(shown_, wanted_);
    EXPECT_TRUE(faults_->is_lost);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find(lost.id()), std::string::npos) << warnings_[0];
    expect_next_start_works();
  }
}

TEST_F(LossAttack, ADeviceByNameIsAnErrorThatNamesIt) {
  for (const int number : numbers()) {
    SCOPED_TRACE("lost at submit " + std::to_string(number) + " of " + std::to_string(submits_));
    shown_.clear();
    warnings_.clear();
    const Device lost = device(number);
    try {
      (void)text_on(lost);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDeviceLost);
      EXPECT_NE(std::string(error.what()).find(lost.id()), std::string::npos) << error.what();
    }
    EXPECT_TRUE(wanted_.starts_with(shown_)) << shown_;
    EXPECT_TRUE(warnings_.empty()) << warnings_.front();
    expect_next_start_works();
  }
}

}  // namespace
}  // namespace prism::llm
