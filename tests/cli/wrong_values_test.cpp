// Tests that a wrong value of an option, a variable or a file is an error, and what it ends.
#include <gtest/gtest.h>

#include <filesystem>

#include "prism/io.h"
#include "support/models/chat_model.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

using Words = std::vector<std::string>;

class WrongValues : public testing::Test {
 protected:
  void SetUp() override {
    if (model_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    model_ = with_template(model_, folder_.path());
  }
  // input: the lines of standard input; settings: variables as in a shell.
  ProcessResult prism(const Words& words, const std::string& input = "",
                      const std::string& settings = "") const {
    write_file(folder_ / "input", input);
    std::string command = "cd '" + folder_.path().string() +
                          "' && PRISM_BACKENDS=cpu PRISM_DATA_DIR=data " + settings + " '" +
                          program().string() + "'";
    for (const std::string& word : words) command += " '" + word + "'";
    return run_process({"sh", "-c", command + " < input"});
  }

  const TemporaryFolder folder_;
  std::string model_ = shared_model("stories260K");
};

TEST_F(WrongValues, OfOptionsAreWrongCalls) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--logit-bias", "5="}, "TOKEN=NUMBER"},
      {{"--logit-bias", "5"}, "TOKEN=NUMBER"},
      {{"--logit-bias", "=5"}, "TOKEN=NUMBER"},
      {{"--logit-bias", "5=1x"}, "TOKEN=NUMBER"},
      {{"--logit-bias", "99999999999=1"}, "TOKEN=NUMBER"},
      {{"--logit-bias", "5=nan"}, "a logit bias is nan"},
      {{"--logit-bias", "5=inf"}, "a logit bias is inf"},
      {{"--logit-bias", "-1=1"}, "must be 0 or more"},
      {{"--logit-bias", "99999999=1"}, "names token 99999999; the model has 512 tokens"},
      {{"--temperature", "nan"}, "\"nan\" is not a number"},
      {{"--repeat-penalty", "nan"}, "\"nan\" is not a number"},
      {{"--presence-penalty", "inf"}, "\"inf\" is not a number"},
      {{"--seed", "18446744073709551616"}, "is not a number from 0 to 18446744073709551615"},
      {{"--seed", "-1"}, "is not a number of at least 0"},
      {{"-n", "1e3"}, "is not a whole number"},
      {{"-f", "."}, "Is a directory"},
      {{"--grammar-file", "/dev/zero"}, "more than"}};
  for (const auto& [words, wanted] : cases) {
    Words all = {"run", "-m", model_, "-n", "1"};
    if (words[0] != "-f") all.insert(all.end(), {"-p", "a"});
    if (words[0] == "-n") all.resize(3), all.insert(all.end(), {"-p", "a"});
    all.insert(all.end(), words.begin(), words.end());
    const ProcessResult result = prism(all);
    EXPECT_EQ(result.status, 2) << words[1] << ": " << result.output;
    EXPECT_NE(result.output.find(wanted), std::string::npos) << words[1] << ": " << result.output;
  }
  EXPECT_EQ(prism({"run", model_, "-n", "1", "-p", "a", "--logit-bias", "5=-inf", "--logit-bias",
                   "7+2", "--seed", "18446744073709551615", "--temperature", "1e-39"})
                .status,
            0);
}

TEST_F(WrongValues, OfVectorsAreWrongCalls) {
  const auto run = [&](Words words, const std::string& wanted) {
    words.insert(words.begin(), "vectors");
    const ProcessResult result = prism(words);
    EXPECT_EQ(result.status, wanted.empty() ? 0 : 2) << words[1] << ": " << result.output;
    EXPECT_NE(result.output.find(wanted), std::string::npos) << words[1] << ": " << result.output;
    return result.output;
  };
  save(folder_ / "data.npy", from_vector<float>({1, 2, 3, 4}, {2, 2}));
  save(folder_ / "query.npy", from_vector<float>({1, 2}, {1, 2}));
  std::filesystem::create_directory(folder_.path() / "set");
  save(folder_ / "set/embeddings.npy", from_vector<float>({1, 2, 3, 4}, {2, 2}));
  write_file(folder_ / "set/embeddings_meta.json",
             R"([{"id": 7, "year": 1999}, {"id": 18446744073709551615}])");
  // Options that the method has no use for.
  for (const Words& words : std::vector<Words>{
           {"--lists", "5"}, {"--device", "nonsense"}, {"--links", "16"}, {"--effort", "50"}})
    run({"build", "data.npy", "a.index", words[0], words[1]}, words[0] + " needs --method");
  // Files that an index would replace.
  run({"build", "data.npy", "data.npy"}, "is not a sound index");
  run({"build", "data.npy", "a.index"}, "");
  run({"build", "set", "a.index"}, "");
  run({"search", "a.index", "query.npy", "--effort", "5"}, "--effort needs --method");
  // Fields that no vector has.
  run({"search", "a.index", "query.npy", "--filter", "not (yaer == 1)"}, "has a field yaer");
  run({"search", "a.index", "query.npy", "--group-by", "yaer"}, "the fields are: year");
  run({"search", "a.index", "query.npy", "--filter", "year == 1999", "--group-by", "year"}, "");
  // Ids that would become others: new vectors behind the last number would replace the first.
  run({"add", "a.index", "data.npy"}, "no ids are left");
  for (const char* id : {"-1", "+7", " 7", "7x", "18446744073709551616"})
    run({"remove", "a.index", "--", id}, "is not a number from 0");
  const std::string removed = run({"remove", "a.index", "18446744073709551615"}, "");
  EXPECT_NE(removed.find("1 of 1 removed, 1 vector\n"), std::string::npos) << removed;
}

TEST_F(WrongValues, OfTrainingAreWrongCalls) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + "\n";
  write_file(folder_ / "text.txt", text);
  const auto expect_wrong = [&](Words words, const std::string& wanted) {
    const Words usual = {"train", "--data", "text.txt", "--steps", "1"};
    words.insert(words.begin(), usual.begin(), usual.end());
    const ProcessResult result = prism(words);
    EXPECT_EQ(result.status, 2) << words[5] << ": " << result.output;
    EXPECT_NE(result.output.find(wanted), std::string::npos) << words[5] << ": " << result.output;
  };
  for (const Words& words : std::vector<Words>{
           {"--lr", "0"}, {"--dropout", "-1"}, {"--weight-decay", "-1"}, {"--alpha", "0"}})
    expect_wrong({words[0], words[1], "-o", "x.gguf"}, words[0] + ": " + words[1] + " is not");
  // Options of another kind of training.
  for (const Words& words :
       std::vector<Words>{{"--rank", "16"}, {"--alpha", "3"}, {"--matrices", "ffn"}})
    expect_wrong({words[0], words[1], "-o", "x.gguf"}, words[0] + " needs --lora");
  for (const Words& words : std::vector<Words>{{"--lora", model_}, {"--full", model_}})
    expect_wrong({words[0], words[1], "-o", "x.gguf", "--layers", "2"},
                 "--layers is for new models");
  expect_wrong({"--lora", model_, "-o", "x.gguf", "--shape", "tiny"}, "--shape is for new models");
  expect_wrong({"--lora", model_, "-o", "x.gguf", "--sample-tokens", "9"},
               "--sample-tokens needs --prompt");
  // Files that another would replace.
  expect_wrong({"-o", "text.txt", "--overwrite"}, "--data and --output are both text.txt");
  expect_wrong({"-o", "x.gguf", "--svg", "./text.txt"}, "--data and --svg are both ./text.txt");
  expect_wrong({"-o", "x.gguf", "--log", "x.gguf"}, "--output and --log are both x.gguf");
  expect_wrong({"-o", model_, "--lora", model_, "--overwrite"}, "--lora and --output are both");
  EXPECT_EQ(read_file(folder_ / "text.txt"), text);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "x.gguf"));
}

TEST_F(WrongValues, OfVariablesAreWrongCalls) {
  for (const char* setting :
       {"PRISM_FALLBACK=abc", "PRISM_FALLBACK=2", "PRISM_THREADS=0", "PRISM_THREADS=many",
        "PRISM_CHECKED=yes", "PRISM_DEVICE=nonsense", "PRISM_BACKENDS=nonsense"}) {
    const ProcessResult result = prism({"run", model_, "-n", "1", "-p", "a"}, "", setting);
    EXPECT_EQ(result.status, 2) << setting << ": " << result.output;
    const std::string name = std::string(setting).substr(0, std::string(setting).find('='));
    EXPECT_NE(result.output.find(name), std::string::npos) << setting << ": " << result.output;
    EXPECT_EQ(prism({"help", "run"}, "", setting).status, 0) << setting;
  }
}

TEST_F(WrongValues, AFolderDoesNotEndAConversation) {
  const ProcessResult result =
      prism({"chat", model_, "-n", "2", "--temperature", "0", "--no-save"},
            "/load .\n/load /dev/zero\n/save .\nread @. now\n/load absent\nOnce upon a time\n");
  EXPECT_EQ(result.status, 0) << result.output;
  for (const char* wanted :
       {"\".\" cannot be read: Is a directory", "\"/dev/zero\" cannot be read: it has more than",
        "\"absent\" cannot", "conversation cannot be written"})
    EXPECT_NE(result.output.find(wanted), std::string::npos) << wanted << ": " << result.output;
  EXPECT_NE(result.output.find(", there"), std::string::npos)
      << "the chat went on: " << result.output;
}

// Without a home folder, conversations of another user must not be found in a shared folder.
TEST_F(WrongValues, WithoutAHomeThereAreNoConversations) {
  const ProcessResult result =
      prism({"chat", "--list"}, "", "env -u HOME -u XDG_DATA_HOME -u PRISM_DATA_DIR");
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_NE(result.output.find("PRISM_DATA_DIR"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace prism::test
