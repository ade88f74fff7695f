// Tests `prism rerank` from outside: the best texts first, and what its errors say.
#include <algorithm>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/models/tiny_encoder.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

using Json = nlohmann::json;

// Runs the command quietly; input is for standard input.
ProcessResult rerank(const std::vector<std::string>& words, const std::string& input = "") {
  const TemporaryFolder folder;
  write_file(folder.path() / "in", input);
  std::string command = "PRISM_BACKENDS=cpu '" + program().string() + "' rerank -q";
  for (const std::string& word : words) command += " '" + word + "'";
  return run_process({"sh", "-c", command + " < '" + (folder / "in") + "'"});
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// [CLS] a [SEP] document [SEP]; the letters begin at token 4.
TEST(RerankProgram, PrintsTheBestTextsFirst) {
  TinyReranker tiny;
  const std::string model = tiny.write();
  const auto score = [&](int32_t letter) {
    return tiny.score(std::vector<int32_t>{2, 4, 3, letter, 3});
  };
  const ProcessResult found = rerank({model, "a", "b", "c", "d", "--json"});
  ASSERT_EQ(found.status, 0) << found.output;
  const Json results = Json::parse(found.output).at("results");
  ASSERT_EQ(results.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto index = results[i].at("index").get<int32_t>();
    EXPECT_EQ(results[i].at("text"), std::string(1, static_cast<char>('b' + index)));
    EXPECT_NEAR(results[i].at("relevance_score").get<double>(), score(5 + index), 0.02);
    if (i > 0) {
      EXPECT_GE(results[i - 1]["relevance_score"], results[i]["relevance_score"]);
    }
  }
  // One text on each line: of a file, of -f and of standard input.
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "texts").string();
  write_file(file, "b\nc\n\nd\n");
  const ProcessResult best = rerank({model, "a", file, "-n", "2"});
  ASSERT_EQ(best.status, 0) << best.output;
  EXPECT_EQ(std::ranges::count(best.output, '\n'), 2);
  EXPECT_TRUE(has(best.output, "  " + results[0]["text"].get<std::string>() + "\n"));
  EXPECT_EQ(rerank({model, "a", "-f", file, "-n", "2"}).output, best.output);
  EXPECT_EQ(rerank({model, "a", "-n", "2"}, "b\nc\nd\n").output, best.output);
}

TEST(RerankProgram, ErrorsSayWhatIsMissing) {
  TinyReranker tiny, plain(false);
  const std::string model = tiny.write();
  const ProcessResult headless = rerank({plain.write(), "a", "b"});
  EXPECT_EQ(headless.status, 1);
  EXPECT_TRUE(has(headless.output, "no classification head")) << headless.output;
  EXPECT_EQ(rerank({model}).status, 2);
  EXPECT_EQ(rerank({model, "a"}).status, 2);  // no text
  const ProcessResult both = rerank({model, "a", "b", "-f", model});
  EXPECT_TRUE(has(both.output, "texts and a file")) << both.output;
}

}  // namespace
}  // namespace prism::test
