// Tests that output which cannot be written is an error of every command, and that files are
// written whole or not at all.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>

#include "llm/gguf/gguf_writer.h"
#include "prism/io.h"
#include "support/models/chat_model.h"
#include "support/models/expected_text.h"
#include "support/models/tiny_encoder.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

namespace fs = std::filesystem;

class OutputErrors : public testing::Test {
 protected:
  void SetUp() override {
    if (model_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    model_ = with_template(model_, folder_.path());
  }
  // redirection: as in a shell, such as "> /dev/full". Without programs in PATH nothing is fetched.
  ProcessResult prism(const std::vector<std::string>& words, const std::string& redirection) const {
    std::string command = "echo 'Once' | PATH=/var/empty PRISM_BACKENDS=cpu PRISM_DATA_DIR='" +
                          (folder_ / "data") + "' PRISM_CACHE_DIR='" + (folder_ / "cache") + "' '" +
                          program().string() + "'";
    for (const std::string& word : words) command += " '" + word + "'";
    return run_process({"sh", "-c", command + " " + redirection});
  }
  std::vector<std::vector<std::string>> printing_commands() const {
    return {{},
            {"--help"},
            {"--version"},
            {"version"},
            {"help", "run"},
            {"run", model_, "-n", "4", "-q"},
            {"run", model_, "-n", "4", "-q", "--json"},
            {"chat", model_, "-n", "4", "-q", "--no-save"},
            {"chat", "--list"},
            {"model", "info", model_},
            {"model", "info", model_, "--json"},
            {"model", "verify", model_},
            {"model", "list"},
            {"model", "quantize", model_, folder_ / "q8.gguf", "Q8_0", "--overwrite"},
            {"model", "imatrix", model_, "-q", "-c", "2", "-o", folder_ / "i.gguf", "--overwrite"},
            {"model", "merge", model_, adapter_, folder_ / "merged.gguf", "--overwrite"},
            {"fit", model_},
            {"fit", model_, "--json"},
            {"tokenize", model_},
            {"tokenize", model_, "--json"},
            {"train", "--data", folder_ / "text.txt", "-o", folder_ / "new.gguf", "--steps", "1",
             "--shape", "nano", "--device", "cpu", "--overwrite"},
            {"train", "--lora", model_, "--data", folder_ / "text.txt", "-o", adapter_, "--steps",
             "1", "--context", "32", "--device", "cpu", "--overwrite"},
            {"embed", model_, "-q"},
            {"rerank", reranker_.write(), "a", "b", "c", "-q"},
            {"score", model_, "-q"},
            {"perplexity", model_, "-q", "-c", "3"},
            {"devices"},
            {"devices", "--json"},
            {"calibrate", "--device", "cpu"},
            {"check", "--device", "cpu", "--ops", "--op", "abs", "--cases", "1"},
            {"bench", model_, "-n", "1", "--prompt-tokens", "1", "-r", "1"},
            {"kernel", "list"},
            {"kernel", "show", "vector_add"},
            {"kernel", "run", "vector_add", "--device", "cpu"},
            {"report", "--no-check"},
            {"vectors", "build", folder_ / "vectors.npy", folder_ / "second.index"},
            {"vectors", "search", index_, folder_ / "vectors.npy"},
            {"vectors", "add", index_, folder_ / "vectors.npy"},
            {"vectors", "remove", index_, "1"},
            {"vectors", "info", index_},
            {"vectors", "verify", index_},
            {"vectors", "compact", index_},
            {"vectors", "export", index_, folder_ / "exported.npy"},
            {"index", folder_ / "notes"},
            {"search", "eggs", folder_ / "notes"},
            {"completion", "bash"}};
  }

  const TemporaryFolder folder_;
  std::string model_ = shared_model("stories260K");
  const std::string index_ = folder_ / "vectors.index", adapter_ = folder_ / "adapter.gguf";
  mutable TinyReranker reranker_;
};

TEST_F(OutputErrors, AnIndexReplacesOnlyAnIndex) {
  const std::string data = folder_ / "data.npy", other = folder_ / "other.npy";
  for (const std::string& path : {data, other})
    save(path, from_vector<float>({1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(prism({"vectors", "build", data, data}, "").status, 2);
  EXPECT_EQ(prism({"vectors", "build", data, other}, "").status, 2);
  EXPECT_EQ(prism({"vectors", "build", data, index_}, "").status, 0);
  EXPECT_EQ(prism({"vectors", "build", other, index_, "--metric", "l2"}, "").status, 0);
  EXPECT_EQ(load(data, Device::cpu()).numel(), 4);
  const ProcessResult typo = prism({"vectors", "search", index_, data, "--filter", "yeer > 3"}, "");
  EXPECT_EQ(typo.status, 2);
  EXPECT_NE(typo.output.find("has a field yeer"), std::string::npos) << typo.output;
}

TEST_F(OutputErrors, AFullDiskIsAnErrorOfEveryCommand) {
  // setup needs the network, serve runs until it is ended.
  std::set<std::string> covered = {"setup", "help", "serve"};
  save(folder_ / "vectors.npy", from_vector<float>({1, 2, 3, 4}, {2, 2}));
  ASSERT_EQ(prism({"vectors", "build", folder_ / "vectors.npy", index_}, "").status, 0);
  std::filesystem::create_directory(folder_.path() / "notes");
  write_file(folder_.path() / "notes" / "cake.md", "A cake without eggs.\n");
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + "\n";
  write_file(folder_ / "text.txt", text);
  ASSERT_EQ(prism({"train", "--lora", model_, "--data", folder_ / "text.txt", "-o", adapter_,
                   "--steps", "1", "--context", "32", "-q"},
                  "")
                .status,
            0);
  for (const std::vector<std::string>& words : printing_commands()) {
    if (!words.empty()) covered.insert(words[0]);
    std::string shown;
    for (const std::string& word : words) shown += word + " ";
    const ProcessResult result = prism(words, "> /dev/full");
    EXPECT_EQ(result.status, 1) << shown << result.output;
    EXPECT_NE(result.output.find("standard output cannot be written: No space left on device"),
              std::string::npos)
        << shown << result.output;
  }
  std::istringstream help(prism({"--help"}, "").output);
  size_t commands = 0;
  for (std::string line; std::getline(help, line);) {
    const size_t end = line.find(' ', 2);
    if (!line.starts_with("  ") || end == line.npos || line[end + 1] != ' ') continue;
    const std::string name = line.substr(2, end - 2);
    if (name.empty() || name.find_first_of("-,") != name.npos) continue;
    ++commands;
    EXPECT_TRUE(covered.contains(name)) << "no case for the command " << name;
  }
  EXPECT_GT(commands, 10u) << "the commands were not found in the help";
}

TEST_F(OutputErrors, AClosedPipeOrStreamIsNeverSuccess) {
  const std::string status_file = folder_ / "status";
  for (const std::string words :
       {"--help", "kernel show vector_add", "run -n 30 -q -p x -m \"$MODEL\""}) {
    const std::string command = "MODEL='" + model_ + "'; { sleep 0.2; PRISM_BACKENDS=cpu '" +
                                program().string() + "' " + words + "; echo $? > '" + status_file +
                                "'; } | true";
    run_process({"sh", "-c", command});  // the reader is gone before anything is written
    const int status = std::stoi(read_file(status_file));
    EXPECT_TRUE(status == 1 || status == 128 + SIGPIPE) << words << " ended with " << status;
  }
  const ProcessResult closed =
      run_process({"sh", "-c", "'" + program().string() + "' --version >&-"});
  EXPECT_EQ(closed.status, 1) << closed.output;
}

// With standard output closed, the file to write gets its number.
TEST_F(OutputErrors, ClosedStreamsDoNotReachFiles) {
  const std::string output = folder_ / "q8.gguf";
  EXPECT_EQ(prism({"model", "quantize", model_, output, "Q8_0"}, "< /dev/null >&- 2>&-").status, 1);
  EXPECT_EQ(prism({"model", "verify", output}, "").status, 0);
}

TEST_F(OutputErrors, FilesAreWrittenWholeOrNotAtAll) {
  EXPECT_EQ(prism({"kernel", "show", "vector_add", "-o", "/dev/full"}, "").status, 1);
  EXPECT_EQ(prism({"model", "quantize", model_, "/dev/full", "Q8_0", "--overwrite"}, "").status, 1);
  const std::vector<std::string> chart = {"bench", model_, "-n", "1",     "--prompt-tokens",
                                          "1",     "-r",   "1",  "--svg", "/dev/full"};
  EXPECT_EQ(prism(chart, "").status, 1);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  // A limit for the size of files stands for a disk that fills up.
  const std::string old = folder_ / "old.gguf";
  write_file(old, "old");
  const ProcessResult limited =
      run_process({"sh", "-c",
                   "trap '' XFSZ; ulimit -f 100; '" + program().string() + "' model quantize '" +
                       model_ + "' '" + old + "' Q8_0 --overwrite"});
  EXPECT_EQ(limited.status, 1) << limited.output;
  EXPECT_EQ(read_file(old), "old");
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

TEST_F(OutputErrors, AnInterruptedQuantizeLeavesNothing) {
  const std::string model = shared_model("stories15M-q8_0");
  if (model.empty()) GTEST_SKIP() << "needs ../shared/models/stories15M-q8_0.gguf";
  const std::string output = folder_ / "q.gguf";
  for (const char* signal : {"INT", "TERM"}) {
    // The signal comes as soon as the temporary file is there.
    const ProcessResult result = run_process(
        {"bash", "-c",
         "set -m; '" + program().string() + "' model quantize '" + model + "' '" + output +
             "' Q4_K_M --requantize & child=$!; while ! ls '" + output +
             "'.prism-*.tmp >/dev/null 2>&1; do kill -0 $child 2>/dev/null || break; done; kill -" +
             signal + " $child; wait $child"});
    EXPECT_GT(result.status, 128) << result.output;
    EXPECT_TRUE(fs::directory_iterator(folder_.path()) != fs::directory_iterator());
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with("q.gguf")) << entry.path();
  }
}

}  // namespace
}  // namespace prism::test
