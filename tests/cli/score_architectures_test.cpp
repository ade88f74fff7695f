// Compares what `prism score --ids` prints for tiny models of many architectures with the logits of
// an independent engine.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/models/architecture_files.h"
#include "support/normalised_error.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism {
namespace {

using test::ArchitectureFile;

// Logits and their log-probabilities differ by a constant.
void centre(std::span<float> row) {
  double sum = 0;
  for (const float each : row) sum += each;
  for (float& each : row) each -= static_cast<float>(sum / static_cast<double>(row.size()));
}

// The error of the logits after each token but the last.
double error_of(const ArchitectureFile& file) {
  const size_t rows = file.tokens.size(), vocabulary = file.logits.size() / rows;
  const test::ProcessResult result = test::run_process(
      {"env", "PRISM_BACKENDS=cpu", test::program(), "score", "-q", file.path, "--json", "--top",
       std::to_string(vocabulary), "--ids", fmt::format("{}", fmt::join(file.tokens, ","))});
  EXPECT_EQ(result.status, 0) << result.output;
  if (result.status != 0) return 0;
  const nlohmann::json tokens = nlohmann::json::parse(result.output).at("tokens");
  EXPECT_EQ(tokens.size(), rows);
  std::vector<float> ours, expected;
  for (size_t i = 1; i < tokens.size(); ++i) {
    const nlohmann::json& top = tokens[i].at("top");
    EXPECT_EQ(top.size(), vocabulary);
    const auto place = static_cast<ptrdiff_t>(ours.size());
    ours.resize(ours.size() + vocabulary);
    for (const nlohmann::json& each : top)
      ours.at(static_cast<size_t>(place) + each.at("id").get<size_t>()) = each.at("logprob");
    expected.insert(expected.end(), file.logits.begin() + place,
                    file.logits.begin() + place + static_cast<ptrdiff_t>(vocabulary));
    centre(std::span(ours).last(vocabulary));
    centre(std::span(expected).last(vocabulary));
  }
  return test::normalised_error(ours, expected);
}

// The engine had a cache of f32; the default rounds keys and values to f16. The layers of gemma3n
// and t5 amplify that (see expected_architectures_device_test).
double limit_of(const std::string& name) {
  if (name.starts_with("gemma3n")) return 2e-2;
  return name.starts_with("t5") ? 5e-4 : 5e-6;
}

TEST(ScoreArchitectures, AgreeWithTheKnownLogitsByDefault) {
  const std::vector<ArchitectureFile>& files = test::architecture_files();
  if (files.empty()) GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
  for (const ArchitectureFile& each : files) {
    if (each.name == "rwkv7-dense") continue;  // see expected_architectures_device_test
    SCOPED_TRACE(each.name);
    EXPECT_LT(error_of(each), limit_of(each.name));
  }
}

}  // namespace
}  // namespace prism
