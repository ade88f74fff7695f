// Tests `prism tokenize` from outside with a small vocabulary.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "llm/gguf/gguf_writer.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

class TokenizeCommand : public testing::Test {
 protected:
  TokenizeCommand() {
    llm::GgufWriter writer;
    writer.set("general.architecture", "llama");
    writer.set("tokenizer.ggml.model", "llama");
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types = {2, 3, 3};
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      tokens.push_back(name);
      types.push_back(6);
    }
    for (const char* piece : {"▁", "a", "▁a"}) {
      tokens.push_back(piece);
      types.push_back(1);
    }
    writer.set("tokenizer.ggml.scores", std::vector<float>(tokens.size(), 0.0f));
    writer.set("tokenizer.ggml.tokens", tokens);
    writer.set("tokenizer.ggml.token_type", types);
    model_ = (folder_.path() / "model.gguf").string();
    writer.write(model_);
  }

  // text: the input as a format for printf; words: the arguments after the model.
  std::string output(const std::string& text, const std::string& words) {
    const ProcessResult result = run_process({"sh", "-c",
                                              "printf '" + text + "' | '" + program().string() +
                                                  "' tokenize '" + model_ + "' " + words});
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
  nlohmann::json ids(const std::string& text, const std::string& words) {
    return nlohmann::json::parse(output(text, "--json " + words))["ids"];
  }

  TemporaryFolder folder_;
  std::string model_;
};

using Ids = std::vector<int>;

TEST_F(TokenizeCommand, GivesIdsAsJson) {
  EXPECT_EQ(ids("a</s>", ""), (Ids{1, 261, 2}));
  EXPECT_EQ(ids("a</s>", "--no-bos"), (Ids{261, 2}));
  EXPECT_EQ(ids("", "'a</s>'"), (Ids{1, 261, 2})) << "a plain argument, as in prism run";
  EXPECT_EQ(ids("a", "''"), Ids{1}) << "an empty one is a text, too";
  EXPECT_EQ(ids("a</s>", "--no-bos --no-special"), (Ids{261, 3 + '<', 3 + '/', 3 + 's', 3 + '>'}));
  EXPECT_EQ(ids("", ""), Ids{1});
  EXPECT_EQ(ids("\\377", "--no-bos"), (Ids{259, 3 + 0xff})) << "bytes that are no text";
}

TEST_F(TokenizeCommand, ShowsALineAToken) {
  EXPECT_EQ(output("a\\n", ""), "      1 <s>\n    261  a\n     13 \\n\n");
}

TEST_F(TokenizeCommand, SaysWhatIsWrong) {
  const ProcessResult result =
      run_process({program().string(), "tokenize", (folder_.path() / "none.gguf").string()});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("none.gguf"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace prism::test
