// Tests the program on a terminal: Ctrl-C in a chat, colour, progress.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "llm/store/http.h"
#include "support/http_server.h"
#include "support/models/chat_model.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/terminal_program.h"

namespace prism::test {
namespace {

class ProgramOnTerminal : public testing::Test {
 protected:
  void SetUp() override {
    if (model_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    model_ = with_template(model_, folder_.path());
  }
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {program().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  const TemporaryFolder folder_;
  std::string model_ = shared_model("stories260K");
  const std::vector<std::string> variables_ = {
      "PRISM_BACKENDS=cpu", "PRISM_DATA_DIR=" + (folder_ / "data"),
      "PRISM_CACHE_DIR=" + (folder_ / "cache"), "INPUTRC=/dev/null"};
};

TEST_F(ProgramOnTerminal, CtrlCClearsTheLineAndTwiceLeaves) {
  TerminalProgram chat(words({"chat", model_, "-n", "4", "--temperature", "0"}), variables_);
  ASSERT_TRUE(chat.sees("> ")) << chat.screen();
  chat.type("half a question");
  ASSERT_TRUE(chat.sees("half a question")) << chat.screen();
  chat.type("\x03");
  ASSERT_TRUE(chat.sees("> ")) << "a new line, and the program goes on: " << chat.screen();
  EXPECT_EQ(chat.screen().find("again to leave"), std::string::npos) << chat.screen();
  chat.type("\x03");
  ASSERT_TRUE(chat.sees("press Ctrl-C again to leave")) << chat.screen();
  ASSERT_TRUE(chat.sees("> ")) << chat.screen();
  // After another line the next Ctrl-C counts as the first again.
  chat.type("Once upon a time\r");
  ASSERT_TRUE(chat.sees("\r\n")) << chat.screen();
  ASSERT_TRUE(chat.sees("> ")) << chat.screen();
  chat.type("\x03");
  ASSERT_TRUE(chat.sees("press Ctrl-C again to leave")) << chat.screen();
  ASSERT_TRUE(chat.sees("> ")) << chat.screen();
  chat.type("\x03");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
  EXPECT_TRUE(chat.sees("prism chat --resume ", 0)) << chat.screen();
}

TEST_F(ProgramOnTerminal, CtrlCEndsAnAnswerAndNotTheChat) {
  TerminalProgram chat(
      words({"chat", model_, "--ignore-end", "--context-shift", "--context", "256"}), variables_);
  ASSERT_TRUE(chat.sees("> ")) << chat.screen();
  chat.type("Once upon a time\r");
  ASSERT_TRUE(chat.sees("\r\n")) << chat.screen();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // without Ctrl-C it never ends
  chat.type("\x03");
  chat.type("\x03");  // pressed twice in quick succession
  ASSERT_TRUE(chat.sees("> ")) << chat.screen();
  chat.type("/exit\r");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

TEST_F(ProgramOnTerminal, StatisticsAreDimmed) {
  TerminalProgram run(words({"run", model_, "Once", "-n", "4"}), variables_);
  EXPECT_EQ(run.wait(), 0) << run.screen();
  EXPECT_TRUE(run.sees("llama on cpu:0 (")) << run.screen();
  EXPECT_TRUE(run.sees("\033[2m")) << run.screen();
  EXPECT_TRUE(run.sees("tokens/s")) << run.screen();
}

TEST_F(ProgramOnTerminal, ADownloadHasABarWithSpeedAndTimeLeft) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  HttpServer server;
  std::string content = read_file(model_) + std::string(400000, 'x');
  // Cut connections make the download last longer than the first second, which shows no bar.
  server.serve("/m.gguf", {.content = content, .etag = "\"one\"", .cut_after = {100000, 200000}});
  TerminalProgram fetch(words({"model", "fetch", server.url("/m.gguf")}), variables_);
  EXPECT_EQ(fetch.wait(60), 0) << fetch.screen();
  EXPECT_TRUE(fetch.sees("m.gguf [")) << fetch.screen();
  EXPECT_TRUE(fetch.sees("/s")) << fetch.screen();
}

}  // namespace
}  // namespace prism::test
