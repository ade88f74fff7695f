// A model file that becomes shorter while the program uses it: an error that names the file, also
// from the threads of the pool, and the kept conversation stays whole.
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/models/chat_model.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

namespace fs = std::filesystem;

#ifdef __linux__

// Chats, runs a command after the first answer, and asks again. The status is that of the chat.
constexpr const char* kScript = R"(
mkfifo in
"$1" chat "$2" -n 4 --temperature 0 -d cpu <in >out 2>err &
chat=$!
exec 3>in
echo 'Once upon a time' >&3
tries=0
while ! ls data/conversations/*.json >/dev/null 2>&1 && [ $tries -lt 600 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
cp data/conversations/*.json kept.json
eval "$3"
echo 'And then' >&3 2>/dev/null
exec 3>&-
wait $chat
)";

class ShrinkingFile : public testing::Test {
 protected:
  void SetUp() override {
    if (source_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    model_ = with_template(source_, folder_.path());
  }
  int chat(const std::string& command, const std::string& threads) {
    const ProcessResult result =
        run_process({"env", "-C", folder_.path().string(), "PRISM_BACKENDS=cpu",
                     "PRISM_DATA_DIR=" + folder_ / "data", "PRISM_THREADS=" + threads, "sh", "-c",
                     kScript, "sh", program().string(), model_, command});
    errors_ = read_file(folder_ / "err") + result.output;
    return result.status;
  }
  void expect_error() {
    EXPECT_NE(errors_.find("error: reading " + model_ + ": the file became shorter"),
              std::string::npos)
        << errors_;
    int kept = 0;
    for (const auto& each : fs::recursive_directory_iterator(folder_ / "data"))
      if (each.is_regular_file()) {
        ++kept;
        EXPECT_EQ(read_file(each.path()), read_file(folder_ / "kept.json"));
      }
    EXPECT_EQ(kept, 1);
  }

  TemporaryFolder folder_;
  const std::string source_ = shared_model("stories260K");
  std::string model_, errors_;
};

TEST_F(ShrinkingFile, IsAnErrorThatNamesTheFile) {
  EXPECT_EQ(chat("truncate -s 4096 \"$2\"", "1"), 1);
  expect_error();
}

TEST_F(ShrinkingFile, IsAnErrorOnTheThreadsOfThePoolToo) {
  EXPECT_EQ(chat("truncate -s 4096 \"$2\"", "4"), 1);
  expect_error();
}

TEST_F(ShrinkingFile, LeavesNoTemporaryFileAndShowsNoEscape) {
  const std::string large = shared_model("stories15M-q8_0");
  if (large.empty()) GTEST_SKIP() << "needs ../shared/models/stories15M-q8_0.gguf";
  const std::string model = folder_ / "m\x1b[31m\xc2\x9b.gguf", output = folder_ / "q.gguf";
  fs::copy_file(large, model);
  // The file is cut as soon as the temporary file is there.
  const ProcessResult result = run_process(
      {"bash", "-c",
       "\"$1\" model quantize \"$2\" \"$3\" Q4_K_M --requantize & child=$!; while ! ls "
       "\"$3\".prism-*.tmp >/dev/null 2>&1; do kill -0 $child 2>/dev/null || break; done; "
       "truncate -s 4096 \"$2\"; wait $child",
       "bash", program().string(), model, output});
  EXPECT_EQ(result.status, 1) << result.output;
  EXPECT_NE(result.output.find(".gguf: the file became shorter"), std::string::npos)
      << result.output;
  EXPECT_EQ(result.output.find_first_of("\x1b\x9b"), std::string::npos) << result.output;
  for (const auto& each : fs::directory_iterator(folder_.path()))
    EXPECT_FALSE(each.path().filename().string().starts_with("q.gguf")) << each.path();
}

TEST_F(ShrinkingFile, OtherBusErrorsKeepTheirAction) {
  EXPECT_EQ(chat("trap '' PIPE; kill -BUS $chat", "1"), 128 + SIGBUS);
  EXPECT_EQ(errors_.find("error: "), std::string::npos) << errors_;
}

#endif

}  // namespace
}  // namespace prism::test
