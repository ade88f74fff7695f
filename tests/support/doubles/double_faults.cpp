// Text generation on doubles that fail.
#include "support/doubles/double_faults.h"

#include <algorithm>
#include <cctype>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "prism/llm/language_model.h"
#include "prism/warning.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/paths.h"
#include "tensor/storage.h"

namespace prism::test {
namespace {

constexpr const char* kModel = "stories260K";
constexpr const char* kPrompt = "Once upon a time";
constexpr int64_t kTokens = 14;

std::vector<int32_t> wanted_tokens() {
  const ExpectedText expected = expected_text("stories260K.once", "stories260K.once.f32");
  const auto first = expected.ids.begin() + static_cast<ptrdiff_t>(expected.prompt);
  return {first, first + kTokens};
}

llm::LanguageModel load_on(const Device& device) {
  const std::string path = shared_model(kModel);
  llm::LoadOptions options;
  options.batch_rows = 16;
  return llm::LanguageModel::load(
      path, llm::place_on(llm::GgufFile::open(path), device, 64, DType::f32), options);
}

}  // namespace

void expect_text_survives(DriverDouble& the_double, const std::string& healthy,
                          const std::string& lose, const std::string& little_memory) {
  if (shared_model(kModel).empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  std::vector<std::string> warnings;
  const WarningHandler before =
      set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  for (const std::string& fault : {lose, little_memory}) {
    const bool at_load = fault == little_memory;
    the_double.set(healthy);
    const Device device = the_double.device().as_automatic();
    {
      if (at_load) the_double.set(fault);
      llm::LanguageModel model = load_on(device);
      EXPECT_EQ(model.device() == device, !at_load) << fault;
      std::string shown;
      int pieces = 0;
      const llm::Generation result =
          model.generate(kPrompt, greedy(kTokens), [&](std::string_view text) {
            shown += text;
            if (++pieces == 4 && !at_load) the_double.set(healthy + "," + fault);
            return true;
          });
      EXPECT_EQ(result.tokens, wanted_tokens()) << fault;
      EXPECT_EQ(shown, result.text) << fault;
      EXPECT_EQ(result.statistics.recomputed_tokens > 5, !at_load) << fault;
      EXPECT_NE(model.device(), device) << fault;
    }
    ASSERT_EQ(warnings.size(), 1u) << fault;
    EXPECT_NE(warnings[0].find(at_load ? "ran out of memory" : "was lost"), std::string::npos)
        << warnings[0];
    warnings.clear();
    release_pooled_memory(device);
  }
  set_warning_handler(before);
  the_double.set("");
}

void expect_wrong_device_is_not_chosen(DriverDouble& the_double, const std::string& name,
                                       const std::string& settings) {
  if (shared_model(kModel).empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  std::string variable = "PRISM_" + name + "_DOUBLE";
  std::ranges::transform(variable, variable.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const ScopedVariable wrong = the_double.variable(variable, settings);
  const ScopedVariable backends = the_double.variable("PRISM_BACKENDS", name + ",cpu");
  const ProcessResult run = run_process({program().string(), "run", shared_model(kModel), "--raw",
                                         "-n", "30", "--temperature", "0", "-p", kPrompt});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_NE(run.output.find(" on cpu:0"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find(", there was a little girl named Lily."), std::string::npos)
      << run.output;
}

}  // namespace prism::test
