// Tests the chat templates of real models against the output of Python's jinja2
// (tests/data/templates/make_expected.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "llm/chat_format/chat_format.h"
#include "prism/error.h"
#include "prism/llm/chat_template.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

using Json = nlohmann::ordered_json;

TEST(ChatTemplates, AreWhatPythonMakesOfThem) {
  const std::filesystem::path folder = test::source_dir() / "tests/data/templates";
  const Json cases = Json::parse(test::read_file(folder / "cases.json"));
  const Json expected = Json::parse(test::read_file(folder / "expected.json"));
  ASSERT_GE(expected.size(), 25u);
  ChatOptions options;
  options.now = std::tm{};
  options.now->tm_year = 126;
  options.now->tm_mon = 10;
  options.now->tm_mday = 15;
  options.now->tm_hour = 12;
  for (const auto& [name, texts] : expected.items()) {
    const ChatTemplate chat(test::read_file(folder / (name + ".jinja")));
    for (const auto& [which, variables] : cases.items()) {
      SCOPED_TRACE(name + ", " + which);
      if (texts.at(which).is_null()) {
        EXPECT_THROW(chat.render_json(variables.dump(), options), Error);
      } else {
        EXPECT_EQ(chat.render_json(variables.dump(), options), texts.at(which).get<std::string>());
      }
    }
  }
}

TEST(ChatTemplates, EveryTemplateHasExpectedTexts) {
  const std::filesystem::path folder = test::source_dir() / "tests/data/templates";
  const Json expected = Json::parse(test::read_file(folder / "expected.json"));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jinja") {
      EXPECT_TRUE(expected.contains(entry.path().stem().string())) << entry.path();
    }
  }
}

TEST(ChatTemplates, FormatsAreRecognised) {
  struct Row {
    CallFormat calls;
    bool thinks = false, shows_calls = false;
  };
  const std::map<std::string, Row> rows = {
      {"chatglm4", {CallFormat::json}},
      {"chatml", {CallFormat::json}},
      {"deepseek-coder", {CallFormat::json}},
      {"deepseek-r1", {CallFormat::deepseek, true, true}},
      {"deepseek-v2", {CallFormat::json}},
      {"gemma", {CallFormat::json}},
      {"gemma-2", {CallFormat::json}},
      {"gemma-3", {CallFormat::json}},
      {"gpt-oss", {CallFormat::harmony, true, true}},
      {"granite-3.0", {CallFormat::granite}},
      {"granite-3.3", {CallFormat::granite, true}},
      {"granite-4.0", {CallFormat::hermes, false, true}},
      {"llama-3", {CallFormat::json}},
      {"llama-3.1", {CallFormat::json, false, true}},
      {"llama-3.2", {CallFormat::json, false, true}},
      {"mistral-nemo", {CallFormat::mistral, false, true}},
      {"mistral-v0.1", {CallFormat::json}},
      {"mistral-v1", {CallFormat::json}},
      {"mistral-v3", {CallFormat::mistral, false, true}},
      {"mistral-v7", {CallFormat::json}},
      {"phi-3", {CallFormat::json}},
      {"phi-3.5", {CallFormat::json}},
      {"phi-4", {CallFormat::json}},
      {"qwen2.5", {CallFormat::hermes, false, true}},
      {"qwen3", {CallFormat::hermes, true, true}},
      {"qwen3-coder", {CallFormat::xml, false, true}},
      {"smollm2", {CallFormat::json}},
      {"smollm3", {CallFormat::json, true}},
      {"smollm3-tools", {CallFormat::hermes, true}},
  };
  const std::filesystem::path folder = test::source_dir() / "tests/data/templates";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    ASSERT_TRUE(rows.contains(name));
    const ChatFormat format = ChatFormat::of(test::read_file(entry.path()));
    EXPECT_EQ(format.calls, rows.at(name).calls);
    EXPECT_EQ(format.thinks, rows.at(name).thinks);
    EXPECT_EQ(format.shows_calls, rows.at(name).shows_calls);
    EXPECT_EQ(format.call_id_length, name == "mistral-nemo" || name == "mistral-v3" ? 9u : 0u);
    EXPECT_EQ(format.result_role, name == "granite-3.0" ? "tool_response" : "tool");
    EXPECT_EQ(format.has_single_calls,
              name == "gpt-oss" || name == "llama-3.1" || name == "llama-3.2");
  }
}

}  // namespace
}  // namespace prism::llm
