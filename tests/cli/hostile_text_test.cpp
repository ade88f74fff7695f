// Tests that text from model files reaches a terminal only in a harmless form.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "llm/gguf/gguf_writer.h"
#include "prism/llm/gguf.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/terminal_program.h"

namespace prism::test {
namespace {

// Clears the screen, sets the title, hides text, in every way that terminals know.
const std::string kHostile =
    "a\x1b[2J\x1b]0;owned\a\xc2\x9b"
    "31m\xe2\x80\xae\r\b\x7f\xff\nerror: forged";

// The characters that a terminal would not show as themselves.
std::string control_characters(const std::string& text) {
  std::string found;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || byte == 0xff || is_c1 ||
        text.compare(i, 3, "\xe2\x80\xae") == 0)
      found += text[i];
  }
  return found;
}

class HostileText : public testing::Test {
 protected:
  // A copy of a small model with hostile text in the given values.
  std::string model(const std::vector<std::pair<std::string, std::string>>& values) {
    const llm::GgufFile file = llm::GgufFile::open(shared_model("stories260K"));
    llm::GgufWriter writer;
    for (const auto& [key, value] : file.metadata()) writer.set(key, value);
    for (const auto& [key, value] : values) writer.set(key, value);
    for (const llm::GgufTensor& tensor : file.tensors())
      writer.add_tensor(tensor.name, tensor.shape, tensor.type, file.data(tensor));
    const std::vector<float> numbers(4);
    writer.add_tensor(kHostile, {4}, DType::f32, std::as_bytes(std::span(numbers)));
    const std::string path = folder_ / "model.gguf";
    writer.write(path);
    return path;
  }
  void SetUp() override {
    if (shared_model("stories260K").empty())
      GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static ProcessResult prism(std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "PRISM_BACKENDS=cpu", program().string()});
    return run_process(words);
  }
  const TemporaryFolder folder_;
};

TEST_F(HostileText, ValuesOfFilesAreEscaped) {
  using Values = std::vector<std::pair<std::string, std::string>>;
  const std::vector<std::vector<std::string>> commands = {
      {"model", "info", "--tensors", "--metadata"},
      {"model", "info", "--json", "--tensors", "--metadata"},
      {"model", "verify"},
      {"model", "verify", "--json"},
      {"fit"},
      {"tokenize", "-p", "a"},
      {"run", "-n", "2", "-p", "a", "-v"},
      {"run", "-n", "2", "-p", "a", "--json"},
      {"chat", "-n", "2", "-v"},
      {"score", "-p", "a"}};
  for (const Values& values : std::vector<Values>{
           {{"general.name", kHostile}, {kHostile, kHostile}},
           {{"general.architecture", kHostile}},
           {{"tokenizer.ggml.model", kHostile}},
           {{"tokenizer.ggml.pre", kHostile}, {"tokenizer.ggml.model", "gpt2"}},
           {{"tokenizer.chat_template", "{{ raise_exception('" + kHostile + "') }}"}},
           {{"tokenizer.chat_template", "{{ " + kHostile}}}) {
    const std::string path = model(values);
    for (std::vector<std::string> words : commands) {
      words.insert(words.begin() + (words[0] == "model" ? 2 : 1), path);
      const ProcessResult result = prism(words);
      EXPECT_LE(result.status, 2) << words[0] << result.output;
      EXPECT_EQ(control_characters(result.output), "") << words[0] << ": " << result.output;
    }
  }
}

TEST_F(HostileText, LinesCannotBeForged) {
  const std::string path = model({{"general.name", kHostile}, {kHostile, kHostile}});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"model", "info", path, "--tensors", "--metadata"},
                                             {"run", path, "-n", "2", "-p", "a"}}) {
    const ProcessResult result = prism(words);
    EXPECT_NE(result.output.find("\\u001b[2J"), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("\nerror: forged"), std::string::npos) << result.output;
  }
}

TEST_F(HostileText, JsonDenotesTheSameText) {
  const std::string name = "\x1b[2J \xc2\x9b \x7f \xe2\x80\xae \\u0041 \"";
  const auto info = nlohmann::json::parse(
      prism({"model", "info", model({{"general.name", name}}), "--json"}).output);
  EXPECT_EQ(info["name"], name);
}

TEST_F(HostileText, PathsAndWordsAreEscaped) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{kHostile},
                                             {"run", "--" + kHostile},
                                             {"run", "-n", kHostile},
                                             {"tokenize", kHostile},
                                             {"tokenize", folder_ / (kHostile + ".gguf")},
                                             {"run", "-p", "a", "-m", "./" + kHostile},
                                             {"run", "-f", folder_ / kHostile},
                                             {"kernel", "show", kHostile},
                                             {"devices", "--device", kHostile},
                                             {"check", "--device", kHostile}}) {
    const ProcessResult result = prism(words);
    EXPECT_NE(result.status, 0);
    EXPECT_LE(result.status, 2) << result.output;
    EXPECT_EQ(control_characters(result.output), "") << words[0] << ": " << result.output;
  }
}

// The model writes byte tokens: 3 + the byte. A large bias makes it write only that one.
TEST_F(HostileText, GeneratedTextIsEscapedOnATerminalOnly) {
  const std::vector<std::string> words = {program().string(),
                                          "run",
                                          shared_model("stories260K"),
                                          "-p",
                                          "Once",
                                          "--raw",
                                          "-n",
                                          "3",
                                          "-q",
                                          "--temperature",
                                          "0",
                                          "--logit-bias",
                                          "30=1000"};
  const ProcessResult piped = run_process(words);
  EXPECT_EQ(piped.output, "\x1b\x1b\x1b\n") << "in a pipe every byte is kept";
  TerminalProgram shown(words, {"PRISM_BACKENDS=cpu"});
  EXPECT_EQ(shown.wait(), 0);
  EXPECT_NE(shown.screen().find("\\u001b\\u001b\\u001b"), std::string::npos) << shown.screen();
  EXPECT_EQ(shown.screen().find('\x1b'), std::string::npos) << shown.screen();
}

}  // namespace
}  // namespace prism::test
