// Tests the chat templates of real models against the output of Python's jinja2
// (tests/data/templates/make_expected.py).
#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace prism::llm
