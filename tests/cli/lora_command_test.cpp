// Tests `prism train --lora`, `--lora` and `prism model merge` from outside.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/models/tiny_models.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m['content'] }}{% if m['role'] == 'assistant' %}{{ eos_token }}"
    "{% else %} {% endif %}{% endfor %}";

class LoraCommands : public testing::Test {
 protected:
  void SetUp() override {
    setenv("PRISM_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    setenv("PRISM_BACKENDS", "cpu", 1);
    const auto tiny = tiny_model("llama");
    tiny->file.set("tokenizer.chat_template", kTemplate);
    tiny->file.write(model_);
    std::string lines;
    for (const char* pair : {"a 1", "b 2", "c 3", "d 4", "e 5", "f 6", "g 7", "h 8"})
      lines += Json{{"messages",
                     {{{"role", "user"}, {"content", std::string("say ") + pair[0]}},
                      {{"role", "assistant"}, {"content", std::string(1, pair[2])}}}}}
                   .dump() +
               "\n";
    write_file(folder_.path() / "chats.jsonl", lines);
  }
  static ProcessResult prism(std::vector<std::string> words) {
    words.insert(words.begin(), program().string());
    return run_process(words);
  }
  ProcessResult train(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "train", "--lora",  model_,   "--data", folder_ / "chats.jsonl",
        "-o",    adapter_,  "--rank", "2",      "--lr",
        "0.02",  "--batch", "4",      "-q"};
    words.insert(words.end(), more.begin(), more.end());
    return prism(words);
  }
  std::vector<double> scores(const std::vector<std::string>& model) const {
    std::vector<std::string> words = {"score",     "-p", "say a 1 say b", "--json", "-q",
                                      "--kv-type", "f32"};
    words.insert(words.end(), model.begin(), model.end());
    const ProcessResult result = prism(words);
    EXPECT_EQ(result.status, 0) << result.output;
    const Json json = Json::parse(result.output, nullptr, false);
    std::vector<double> values;
    for (const Json& each : json["tokens"])
      if (each["logprob"].is_number()) values.push_back(each["logprob"]);
    EXPECT_GT(values.size(), 5u);
    return values;
  }
  static double apart(const std::vector<double>& a, const std::vector<double>& b) {
    double most = 0;
    for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return a.size() == b.size() ? most : INFINITY;
  }
  void expect_error(const std::vector<std::string>& words, const char* part) {
    const ProcessResult result = prism(words);
    EXPECT_NE(result.status, 0);
    EXPECT_NE(result.output.find(part), std::string::npos) << result.output;
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_ / "m.gguf", adapter_ = folder_ / "a.gguf";
};

TEST_F(LoraCommands, TrainedAdaptersRunAndMerge) {
  const ProcessResult trained = train({"--steps", "40", "--validation", "0", "--prompt", "say b",
                                       "--samples", "2", "--sample-tokens", "3"});
  ASSERT_EQ(trained.status, 0) << trained.output;
  EXPECT_TRUE(trained.output.ends_with("\n\n2\n\n2\n")) << trained.output;
  const ProcessResult answer = prism(
      {"run", model_, "-p", "say c", "-q", "--temperature", "0", "-n", "3", "--lora", adapter_});
  EXPECT_EQ(answer.output, "3\n");
  EXPECT_NE(prism({"run", model_, "-p", "say c", "-q", "--temperature", "0", "-n", "3"}).output,
            "3\n");

  const std::vector<double> with = scores({model_, "--lora", adapter_});
  EXPECT_GT(apart(with, scores({model_})), 0.1);
  EXPECT_LT(apart(scores({model_, "--lora", adapter_ + ":0"}), scores({model_})), 1e-6);
  // Twice half of it is the whole.
  EXPECT_LT(
      apart(scores({model_, "--lora", adapter_ + ":0.25", "--lora", adapter_ + ":0.75"}), with),
      1e-5);
  const std::string merged = folder_ / "merged.gguf";
  ASSERT_EQ(prism({"model", "merge", model_, adapter_, merged}).status, 0);
  EXPECT_LT(apart(scores({merged}), with), 1e-5);
  EXPECT_EQ(prism({"model", "merge", model_, adapter_, merged}).status, 2) << "it is there already";
  EXPECT_EQ(prism({"model", "merge", model_, adapter_, model_, "--overwrite"}).status, 2);
  ASSERT_EQ(
      prism({"model", "merge", model_, adapter_, merged, "--type", "Q8_0", "--overwrite"}).status,
      0);
  EXPECT_LT(apart(scores({merged}), with), 0.2);
}

TEST_F(LoraCommands, MistakesAreNamed) {
  ASSERT_EQ(train({"--steps", "1"}).status, 0);
  expect_error({"run", model_, "-p", "x", "--lora", adapter_ + ":nan"}, "no finite number");
  expect_error({"run", model_, "-p", "x", "--lora", folder_ / "none.gguf"}, "none.gguf");
  expect_error({"run", model_, "-p", "x", "--lora", model_}, "is it a whole model?");
  expect_error({"run", adapter_, "-p", "x"}, "is an adapter and not a model");
  expect_error({"model", "merge", model_, adapter_}, "an adapter and the file to write are needed");
  std::filesystem::copy_file(model_, folder_ / "n.gguf");
  expect_error({"serve", model_, folder_ / "n.gguf", "--lora", adapter_}, "--lora with 2 models");

  const auto with_data = [&](const std::string& text, const char* part) {
    write_file(folder_.path() / "wrong.jsonl", text);
    expect_error({"train", "--lora", model_, "--data", folder_ / "wrong.jsonl", "-o",
                  folder_ / "b.gguf", "-q"},
                 part);
  };
  with_data("", "empty");
  with_data("{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"x\": 1}\n", "line 2: ");
  with_data("{\"prompt\": \"a\", \"completion\": 5}\n", "line 1: ");
  with_data("{\"prompt\": \"a\", \n", "line 1: ");
  with_data("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n", "has an answer within");
  EXPECT_NE(train({"--overwrite", "--samples", "2"}).output.find("--samples needs --prompt"),
            std::string::npos);
  const ProcessResult unknown = train({"--overwrite", "--matrices", "conv"});
  EXPECT_NE(unknown.output.find("it has attn_k"), std::string::npos) << unknown.output;
}

}  // namespace
}  // namespace prism::test
