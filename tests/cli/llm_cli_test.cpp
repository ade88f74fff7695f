// The program's commands on language models, from outside: text on one stream, the rest on the
// other, the fields of the JSON.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "llm/gguf/gguf_writer.h"
#include "prism/llm/gguf.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

using Json = nlohmann::json;

struct Result {
  int status;
  std::string output, errors;
};

// words go through a shell, quoted; input is a file for standard input.
Result prism_program(const std::vector<std::string>& words, const std::string& input = "") {
  const TemporaryFolder folder;
  const auto out = folder.path() / "out", err = folder.path() / "err", in = folder.path() / "in";
  write_file(in, input);
  std::string command = "PRISM_BACKENDS=cpu '" + program().string() + "'";
  for (const std::string& word : words) command += " '" + word + "'";
  command += " < '" + in.string() + "' > '" + out.string() + "' 2> '" + err.string() + "'";
  const ProcessResult result = run_process({"sh", "-c", command});
  return {result.status, read_file(out), read_file(err)};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class LlmProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (model_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  const std::string model_ = shared_model("stories260K");
};

constexpr const char* kTale = ", there was a little girl named Lily.";

TEST_F(LlmProgram, RunWritesTheTextAlone) {
  const std::vector<std::string> words = {"run", model_, "--raw", "-n", "60", "--temperature", "0"};
  std::vector<std::string> with_prompt = words;
  with_prompt.insert(with_prompt.end(), {"-p", "Once upon a time"});
  const Result result = prism_program(with_prompt);
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output.find(kTale), 0u) << result.output;
  EXPECT_TRUE(has(result.errors, "cpu")) << result.errors;
  EXPECT_TRUE(has(result.errors, "tokens/s")) << result.errors;
  EXPECT_TRUE(has(result.errors, "memory:")) << result.errors;
  // The same from standard input and from a file, quietly.
  std::vector<std::string> quiet = words;
  quiet.push_back("-q");
  const Result piped = prism_program(quiet, "Once upon a time");
  EXPECT_EQ(piped.output, result.output);
  EXPECT_EQ(piped.errors, "");
  const TemporaryFolder folder;
  write_file(folder.path() / "prompt", "Once upon a time");
  quiet.insert(quiet.end(), {"-f", (folder.path() / "prompt").string()});
  EXPECT_EQ(prism_program(quiet).output, result.output);
  // -m, and the old spellings.
  const Result old = prism_program({"run", "-m", model_, "--raw", "-n", "60", "--temp", "0", "-p",
                                    "Once upon a time", "-ngl", "99", "--backend", "cpu", "-q"});
  EXPECT_EQ(old.output, result.output) << old.errors;
}

TEST_F(LlmProgram, RunRemembersWhichDeviceItChose) {
  const TemporaryFolder cache;
  const char* const given = std::getenv("PRISM_CACHE_DIR");
  const std::string before = given ? given : "";
  setenv("PRISM_CACHE_DIR", cache.path().c_str(), 1);
  const std::vector<std::string> words = {"run", model_, "--raw", "-n", "2", "-p", "Once"};
  const std::string first = prism_program(words).errors, second = prism_program(words).errors;
  setenv("SOME_VISIBLE_DEVICES", "0", 1);
  const std::string hidden = prism_program(words).errors;
  unsetenv("SOME_VISIBLE_DEVICES");
  before.empty() ? unsetenv("PRISM_CACHE_DIR") : setenv("PRISM_CACHE_DIR", before.c_str(), 1);
  EXPECT_TRUE(has(first, "no GPU was found that Prism can use")) << first;
  EXPECT_FALSE(has(first, "remembered")) << first;
  EXPECT_TRUE(has(second, "remembered: no GPU was found that Prism can use")) << second;
  EXPECT_FALSE(has(hidden, "remembered")) << "drivers may show other devices now: " << hidden;
}

TEST_F(LlmProgram, RunHoldsToSeedStopGrammarAndSchema) {
  const std::vector<std::string> words = {"run", model_, "--raw", "-q", "-p", "Once upon a time"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return prism_program(all);
  };
  EXPECT_EQ(with({"-n", "30", "--seed", "5"}).output, with({"-n", "30", "--seed", "5"}).output);
  EXPECT_EQ(with({"--temperature", "0", "--stop", " girl", "--stop", "xyz"}).output,
            ", there was a little");
  EXPECT_EQ(with({"--temperature", "0", "--grammar", "root ::= \" cat\" | \" dog\""}).output.size(),
            4u);
  const Result json = with(
      {"--seed", "1", "--json-schema",
       R"({"type": "object", "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 12}}, "required": ["n"]})"});
  ASSERT_EQ(json.status, 0) << json.errors;
  const int64_t number = Json::parse(json.output).at("n").get<int64_t>();
  EXPECT_TRUE(number >= 10 && number <= 12) << json.output;
}

TEST_F(LlmProgram, WrongOptionsAreTold) {
  const auto error = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"run", model_, "--raw", "-p", "x"};
    all.insert(all.end(), more.begin(), more.end());
    const Result result = prism_program(all);
    EXPECT_EQ(result.status, 2) << result.errors;
    EXPECT_EQ(result.output, "");
    return result.errors;
  };
  EXPECT_TRUE(has(error({"--top-p", "2"}), "top-p is 2"));
  EXPECT_TRUE(has(error({"--grammar", "root ::= \"a"}), "line 1 column 10"));
  EXPECT_TRUE(has(error({"--json-schema", "{"}), "not valid JSON"));
  EXPECT_TRUE(has(error({"--samplers", "top_q"}), "did you mean"));
  EXPECT_TRUE(has(error({"--logit-bias", "x=1"}), "TOKEN=NUMBER"));
  EXPECT_TRUE(has(error({"--kv-type", "q9"}), "q8_0"));
  EXPECT_TRUE(has(error({"--grammar", "root ::= \"a\"", "--json-schema", "{}"}), "several"));
  const Result absent = prism_program({"run", "/nowhere/model.gguf", "-p", "x"});
  EXPECT_EQ(absent.status, 2);
  EXPECT_TRUE(has(absent.errors, "/nowhere/model.gguf")) << absent.errors;
}

TEST_F(LlmProgram, ScoreAsJson) {
  const Result result =
      prism_program({"score", model_, "-p", "Once upon a time", "--top", "3", "--json", "-q"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json tokens = Json::parse(result.output).at("tokens");
  ASSERT_EQ(tokens.size(), 4u);
  for (const Json& token : tokens) {
    EXPECT_TRUE(token.at("id").is_number_integer());
    EXPECT_TRUE(token.at("text").is_string());
    EXPECT_LT(token.at("logprob").get<double>(), 0);
    ASSERT_EQ(token.at("top").size(), 3u);
    EXPECT_GE(token["top"][0].at("logprob").get<double>(), token["logprob"].get<double>());
    EXPECT_TRUE(token["top"][0].at("text").is_string());
  }
  const Result table = prism_program({"score", model_, "-p", "Once upon a time", "-q"});
  EXPECT_TRUE(has(table.output, "over 4 tokens")) << table.output;
}

TEST_F(LlmProgram, PerplexityAndEmbeddings) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "Once upon a time, there was a little girl named Lily. ";
  const Result result =
      prism_program({"perplexity", model_, "--context", "64", "--json", "-q"}, text);
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json perplexity = Json::parse(result.output);
  EXPECT_GT(perplexity.at("perplexity").get<double>(), 1);
  EXPECT_LT(perplexity["perplexity"].get<double>(), 3);  // a text that repeats itself
  EXPECT_GT(perplexity.at("tokens").get<int64_t>(), 300);
  const Result embed =
      prism_program({"embed", model_, "-p", "a cat", "-p", "a dog", "--json", "-q"});
  ASSERT_EQ(embed.status, 0) << embed.errors;
  const Json all = Json::parse(embed.output).at("embeddings");
  ASSERT_EQ(all.size(), 2u);
  double square = 0;
  for (const Json& each : all[0].at("embedding")) square += each.get<double>() * each.get<double>();
  EXPECT_NEAR(square, 1, 1e-4);
}

TEST_F(LlmProgram, BenchTellsSpeedAndAdvice) {
  const TemporaryFolder folder;
  const auto svg = folder.path() / "bench.svg";
  const Result result = prism_program({"bench", model_, "-p", "16,32", "-n", "8", "--depth", "0,16",
                                       "--repeats", "1", "--json", "--svg", svg.string()});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json bench = Json::parse(result.output);
  ASSERT_EQ(bench.at("results").size(), 4u);
  for (const Json& row : bench["results"]) {
    EXPECT_GT(row.at("tokens_per_second").get<double>(), 0);
    EXPECT_GT(row.at("limit_tokens_per_second").get<double>(), 0);
  }
  EXPECT_TRUE(has(bench.at("advice").get<std::string>(), "advice:"));
  EXPECT_EQ(read_file(svg).find("<svg"), 0u);
}

// The small model with a chat template: what is said, between the words of a story.
std::string with_template(const std::string& path, const std::filesystem::path& folder) {
  const llm::GgufFile file = llm::GgufFile::open(path);
  llm::GgufWriter writer;
  for (const auto& [key, value] : file.metadata()) writer.set(key, value);
  writer.set("tokenizer.chat_template",
             "{% for m in messages %}{{ m.content }}{% if m.role == 'system' %}: {% endif %}"
             "{% endfor %}");
  for (const llm::GgufTensor& tensor : file.tensors())
    writer.add_tensor(tensor.name, tensor.shape, tensor.type, file.data(tensor));
  const std::string to = (folder / "chat.gguf").string();
  writer.write(to);
  return to;
}

TEST_F(LlmProgram, RunAppliesTheChatTemplate) {
  const TemporaryFolder folder;
  const std::string model = with_template(model_, folder.path());
  const Result plain = prism_program({"run", model, "-q", "--raw", "-n", "20", "--temperature", "0",
                                      "-p", "A tale: Once upon a time"});
  const Result chat = prism_program({"run", model, "-q", "-n", "20", "--temperature", "0",
                                     "--system", "A tale", "-p", "Once upon a time"});
  ASSERT_EQ(chat.status, 0) << chat.errors;
  EXPECT_EQ(chat.output, plain.output);
}

TEST_F(LlmProgram, ChatKeepsAConversation) {
  const TemporaryFolder folder;
  const std::string model = with_template(model_, folder.path());
  write_file(folder.path() / "part", "upon a time");
  const std::string saved = (folder.path() / "saved.json").string();
  const Result result =
      prism_program({"chat", model, "-q", "-n", "8", "--temperature", "0"},
                    "/help\nOnce \\\n@" + (folder.path() / "part").string() + "\n/stats\n/save " +
                        saved + "\n/nonsense\n\"\"\"\nLily\nran\n\"\"\"\n/retry\n/clear\n/load " +
                        saved + "\n/device\n/exit\nnever\n");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(has(result.errors, "/clear")) << result.errors;
  EXPECT_TRUE(has(result.errors, "tokens/s")) << result.errors;
  EXPECT_TRUE(has(result.errors, "\"/nonsense\" is no command here")) << result.errors;
  EXPECT_TRUE(has(result.errors, "2 messages")) << result.errors;
  const Json messages = Json::parse(read_file(saved));
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].at("role"), "user");
  EXPECT_TRUE(has(messages[0].at("content").get<std::string>(), "Once \n")) << messages;
  EXPECT_TRUE(has(messages[0].at("content").get<std::string>(), "upon a time")) << messages;
  // Three answers, a line each; the second and third to the same question.
  EXPECT_TRUE(has(result.output, messages[1].at("content").get<std::string>() + "\n"));
}

TEST_F(LlmProgram, ChatNeedsATemplate) {
  const Result result = prism_program({"chat", model_, "-q"}, "Hello\n");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(has(result.errors, "no chat template")) << result.errors;
}

TEST_F(LlmProgram, HelpGroupsTheOptions) {
  const Result help = prism_program({"run", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* part : {"Model:", "Generation:", "Sampling:", "--json-schema", "--mirostat",
                           "--gpu-layers", "--kv-type", "Examples:"})
    EXPECT_TRUE(has(help.output, part)) << part;
}

}  // namespace
}  // namespace prism::test
