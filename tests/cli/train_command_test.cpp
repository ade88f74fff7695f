// Tests `prism train` end to end: what it writes, how it resumes, and what it says to bad input.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class TrainCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int a = 0; a < 40; ++a)
      for (int b = 0; b < 12; ++b) text += fmt::format("{} und {} wären {}.\n", a, b, a + b);
    write_file(data_, text);
  }
  // Trains a very small model, unless `more` says otherwise. before: what the shell does first.
  ProcessResult train(const std::string& output, std::string more, const std::string& before = "",
                      const std::string& after = "") const {
    std::vector<std::string> sizes = {"--shape nano", "--context 16", "--batch 4"};
    if (!contains(more, "--full"))
      sizes.insert(sizes.end(), {"--layers 1", "--width 16", "--heads 2", "--vocab 280"});
    for (const std::string& usual : sizes)
      if (!contains(more, usual.substr(0, usual.find(' ') + 1))) more += " " + usual;
    return run_process(
        {"bash", "-c",
         fmt::format(
             "{} PRISM_BACKENDS=cpu PRISM_CACHE_DIR='{}' '{}' train --data '{}' -o '{}' {} {}",
             before, folder_ / "cache", program().string(), data_, folder_ / output, more, after)});
  }
  // What the shell does after the start: waits for the first line of the log, then does `work`.
  std::string once_logged(const std::string& work) const {
    return "& child=$!; while [ ! -s '" + log_ +
           "' ]; do kill -0 $child || break; sleep 0.01; done; " + work + "; wait $child";
  }
  void expect_error(const ProcessResult& result, int status, const std::string& part) const {
    EXPECT_EQ(result.status, status) << result.output;
    EXPECT_TRUE(contains(result.output, "error: ") && contains(result.output, part))
        << "wanted \"" << part << "\" in " << result.output;
  }

  const TemporaryFolder folder_;
  std::string data_ = folder_ / "sums.txt", log_ = folder_ / "log.jsonl";
};

TEST_F(TrainCommand, WritesAModelThatRuns) {
  const ProcessResult result =
      train("my.gguf", "--steps 30 --log '" + folder_ / "log.jsonl" + "' --svg '" +
                           folder_ / "curve.svg" + "' --prompt 12 --sample-tokens 20");
  ASSERT_EQ(result.status, 0) << result.output;
  for (const char* part : {"parameters", "of memory", "tokens/s", "validation loss", "\n12"})
    EXPECT_TRUE(contains(result.output, part)) << part << ": " << result.output;
  EXPECT_TRUE(contains(read_file(folder_ / "curve.svg"), "<polyline"));
  const std::string log = read_file(folder_ / "log.jsonl");
  EXPECT_EQ(nlohmann::json::parse(log.substr(log.rfind('{')))["step"], 30);
  const llm::GgufFile file = llm::GgufFile::open(folder_ / "my.gguf");
  EXPECT_EQ(file.string("general.architecture"), "llama");
  EXPECT_EQ(llm::Tokenizer::from(file).size(), 280u);
  const ProcessResult run = run_process({program().string(), "run", folder_ / "my.gguf", "-p", "1",
                                         "-n", "5", "-q", "--device", "cpu"});
  EXPECT_EQ(run.status, 0) << run.output;

  expect_error(train("my.gguf", "--steps 30"), 2, "--overwrite");
  fs::remove(folder_ / "my.gguf");
  expect_error(train("my.gguf", "--steps 30"), 2, "--resume continues that run");
  // Trains on from the file, with its own tokenizer.
  const ProcessResult half = train("my.gguf", "--steps 3 --overwrite --samples 0 --precision bf16");
  ASSERT_EQ(half.status, 0) << half.output;
  const ProcessResult full =
      train("more.gguf", "--steps 5 --samples 0 --full '" + folder_ / "my.gguf" + "'");
  EXPECT_EQ(full.status, 0) << full.output;
  EXPECT_EQ(llm::Tokenizer::from(llm::GgufFile::open(folder_ / "more.gguf")).size(), 280u);
}

TEST_F(TrainCommand, AnInterruptedRunGivesTheSameBits) {
  const std::string how =
      "--steps 400 --validate-every 50 --samples 0 --dropout 0.1 --accumulate 2";
  ASSERT_EQ(train("whole.gguf", how).status, 0);
  // Ctrl-C as soon as there is a checkpoint, then again while it runs on.
  const std::string wait = "& child=$!; while [ ! -s '" + folder_ / "part.gguf.checkpoint" +
                           "' ]; do kill -0 $child || break; sleep 0.01; done; kill -INT $child; "
                           "wait $child";
  const ProcessResult stopped = train("part.gguf", how + " --save-every 7", "set -m;", wait);
  EXPECT_EQ(stopped.status, 130) << stopped.output;
  EXPECT_TRUE(contains(stopped.output, "--resume continues")) << stopped.output;
  EXPECT_FALSE(fs::exists(folder_ / "part.gguf"));
  // A service manager's signal. Only the end of the run and the signal write a checkpoint here.
  const std::string before = read_file(folder_ / "part.gguf.checkpoint");
  const ProcessResult ended =
      train("part.gguf", how + " --resume --save-every 400 --log '" + log_ + "'", "set -m;",
            once_logged("kill -TERM $child"));
  EXPECT_EQ(ended.status, 143) << ended.output;
  EXPECT_TRUE(contains(ended.output, "--resume continues")) << ended.output;
  EXPECT_NE(read_file(folder_ / "part.gguf.checkpoint"), before);
  // Killed without warning: the checkpoint on the disk is whole.
  train("part.gguf", how + " --resume", "set -m;",
        "& child=$!; sleep 0.3; kill -KILL $child; wait $child");
  const ProcessResult resumed = train("part.gguf", how + " --resume");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  fs::rename(folder_ / "part.gguf", folder_ / "again.gguf");
  // Only the names differ.
  const llm::GgufFile whole = llm::GgufFile::open(folder_ / "whole.gguf"),
                      again = llm::GgufFile::open(folder_ / "again.gguf");
  ASSERT_EQ(whole.tensors().size(), again.tensors().size());
  for (const llm::GgufTensor& each : whole.tensors()) {
    const auto a = whole.data(each), b = again.data(*again.find_tensor(each.name));
    EXPECT_TRUE(std::ranges::equal(a, b)) << each.name;
  }
  expect_error(train("part.gguf", how + " --resume --seed 2"), 2, "another --seed");
  expect_error(train("part.gguf", how + " --resume --width 32"), 2, "another model");
  expect_error(train("none.gguf", how + " --resume"), 2, "no checkpoint to resume from");
  write_file(folder_ / "part.gguf.checkpoint", "not a checkpoint");
  EXPECT_NE(train("part.gguf", how + " --resume").status, 0);
}

TEST_F(TrainCommand, ASecondSignalEndsAtOnce) {
  // Both arrive within one step, which takes long enough that nothing can be saved between them.
  const ProcessResult ended = train(
      "slow.gguf",
      "--steps 400 --layers 8 --width 128 --batch 16 --context 64 --samples 0 --log '" + log_ + "'",
      "set -m;",
      once_logged("kill -STOP $child; kill -INT $child; kill -TERM $child; kill -CONT $child"));
  EXPECT_TRUE(ended.status == 130 || ended.status == 143) << ended.status << ended.output;
  EXPECT_FALSE(contains(ended.output, "--resume continues")) << ended.output;
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_FALSE(contains(entry.path().string(), "slow.gguf")) << entry.path();
}

TEST_F(TrainCommand, BadDataIsExplained) {
  const auto with_data = [&](const std::string& content) {
    write_file(data_, content);
    return train("bad.gguf", "--steps 5");
  };
  expect_error(with_data(""), 2, "the file is empty");
  expect_error(with_data(" \n\n"), 2, "the file is empty");
  expect_error(with_data("too short"), 2, "tokens are too few");
  expect_error(with_data(std::string(120, 'a') + "bcdefghijkl"), 2, "too few");
  expect_error(with_data("\xff\xfe" + std::string(200, '\0')), 2, "UTF-16");
  expect_error(with_data(std::string(5000, '\0')), 2, "no UTF-8 text");
  std::string latin;
  for (int i = 0; i < 3000; ++i) latin += fmt::format("{} ", i * i);
  const ProcessResult repaired = with_data(latin + "caf\xe9 " + latin);
  EXPECT_EQ(repaired.status, 0) << repaired.output;
  EXPECT_TRUE(contains(repaired.output, "warning: ") && contains(repaired.output, "U+FFFD"))
      << repaired.output;
  data_ = folder_ / "missing.txt";
  EXPECT_EQ(train("bad2.gguf", "").status, 2);
}

TEST_F(TrainCommand, BadSettingsAreExplained) {
  const auto expect = [&](const std::string& options, const std::string& part, int status = 2) {
    expect_error(train("bad.gguf", "--steps 5 " + options), status, part);
  };
  expect("--shape huge", "is not a shape");
  expect("--heads 3", "multiple of twice the heads");
  expect("--width 1000000 --layers 4000 --heads 1000", "more than any machine");
  expect("--width 16384 --layers 100 --heads 64", "of memory", 1);
  expect("--vocab 100", "257");
  expect("--tokenizer words", "bpe or chars");
  expect("--validation 1.5", "--validation");
  expect("--dropout 1", "--dropout");
  expect("--lr -1", "--lr");
  expect("--precision f64", "f32, bf16 or f16");
  expect("--batch 100000", "too few for batches");
  expect("--context 100000", "too few");
  expect("--full '" + data_ + "'", "", 1);
  EXPECT_NE(train("no/such/folder.gguf", "--steps 5").status, 0);
  EXPECT_FALSE(fs::exists(folder_ / "bad.gguf"));
  EXPECT_FALSE(fs::exists(folder_ / "bad.gguf.checkpoint"));
}

TEST_F(TrainCommand, ALossThatIsNotFiniteKeepsTheCheckpoint) {
  ASSERT_EQ(train("a.gguf", "--steps 20 --samples 0").status, 0);
  const std::string wild = "--steps 200 --resume --lr 10 --clip 0 --weight-decay 10 --warmup 0";
  const ProcessResult plain = train("a.gguf", wild + " --batch 4");
  EXPECT_NE(plain.status, 0) << plain.output;
  EXPECT_TRUE(contains(plain.output, "is good")) << plain.output;
  const ProcessResult watched = train("a.gguf", wild + " --detect-anomaly");
  EXPECT_NE(watched.status, 0) << watched.output;
  EXPECT_TRUE(contains(watched.output, "began in")) << watched.output;
  EXPECT_EQ(train("a.gguf", "--steps 24 --resume --samples 0").status, 0)
      << "the last good checkpoint is there";
}

TEST_F(TrainCommand, AFullDiskKeepsTheCheckpoint) {
  ASSERT_EQ(train("a.gguf", "--steps 20 --samples 0").status, 0);
  const std::string good = read_file(folder_ / "a.gguf.checkpoint");
  // A limit for the size of files stands for a disk that fills up.
  const ProcessResult full =
      train("a.gguf", "--steps 40 --resume --samples 0", "trap '' XFSZ; ulimit -f 20;");
  EXPECT_EQ(full.status, 1) << full.output;
  EXPECT_TRUE(contains(full.output, "a.gguf.checkpoint")) << full.output;
  EXPECT_EQ(read_file(folder_ / "a.gguf.checkpoint"), good);
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

}  // namespace
}  // namespace prism::test
