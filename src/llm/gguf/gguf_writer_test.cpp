// Tests writing GGUF files: streamed tensors, invalid arguments and full disks.
#include "llm/gguf/gguf_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

size_t files_in(const test::TemporaryFolder& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++count;
  return count;
}

TEST(GgufWriter, StreamsTensorsInPieces) {
  const test::TemporaryFolder folder;
  GgufWriter writer;
  writer.set("general.alignment", uint32_t{64});
  writer.add_tensor("t", {3, 5}, DType::i32, [](const GgufWriter::Sink& sink) {
    for (int32_t i = 0; i < 15; ++i) sink(std::as_bytes(std::span(&i, 1)));
  });
  writer.add_tensor("u", {}, DType::f64, [](const GgufWriter::Sink& sink) {
    const double value = 2.5;
    sink(std::as_bytes(std::span(&value, 1)));
  });
  writer.write(folder / "m.gguf");
  const GgufFile file = GgufFile::open(folder / "m.gguf");
  EXPECT_EQ(file.alignment(), 64u);
  EXPECT_EQ(file.find_tensor("u")->offset % 64, 0u);
  const auto values = file.tensor(*file.find_tensor("t")).to_vector<int32_t>();
  for (int32_t i = 0; i < 15; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], i);
  EXPECT_EQ(file.tensor(*file.find_tensor("u")).to_vector<double>(), std::vector<double>{2.5});
}

TEST(GgufWriter, ASetKeyChangesAndARemovedOneIsGone) {
  const test::TemporaryFolder folder;
  GgufWriter writer;
  writer.set("a", 1);
  writer.set("b", 2);
  writer.set("a", "text");
  writer.remove("b");
  writer.write(folder / "m.gguf");
  const GgufFile file = GgufFile::open(folder / "m.gguf");
  EXPECT_EQ(file.metadata().size(), 1u);
  EXPECT_EQ(file.string("a"), "text");
}

TEST(GgufWriter, RefusesWhatNoFileCanHold) {
  const test::TemporaryFolder folder;
  const auto nothing = [](const GgufWriter::Sink&) {};
  GgufWriter writer;
  writer.add_tensor("t", {32}, BlockType::q8_0, nothing);
  EXPECT_THROW(writer.add_tensor("t", {32}, BlockType::q8_0, nothing), Error);
  EXPECT_THROW(writer.add_tensor("u", {33}, BlockType::q8_0, nothing), Error);
  EXPECT_THROW(writer.add_tensor("u", {1, 1, 1, 1, 1}, DType::f32, nothing), Error);
  EXPECT_THROW(writer.add_tensor("u", {1}, DType::u32, nothing), Error);
  EXPECT_THROW(writer.write(folder / "m.gguf"), Error) << "too few bytes";
  GgufWriter odd;
  odd.set("general.alignment", 12);
  EXPECT_THROW(odd.write(folder / "m.gguf"), Error);
  EXPECT_EQ(files_in(folder), 0u);
}

// A file size limit simulates a full disk: both fail a write midway.
TEST(GgufWriterDeathTest, AFullDiskLeavesNothingUnderTheName) {
  const test::TemporaryFolder folder;
  GgufWriter old;
  old.set("version", "old");
  old.write(folder / "m.gguf");
  const auto write_large = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    GgufWriter writer;
    const std::vector<std::byte> bytes(1 << 20);
    writer.add_tensor("t", {1 << 20}, DType::i8, bytes);
    try {
      writer.write(folder / "m.gguf");
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", error_code_name(error.code()), error.what());
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(write_large(), testing::ExitedWithCode(7), "m.gguf: cannot be written");
  EXPECT_EQ(files_in(folder), 1u);
  EXPECT_EQ(GgufFile::open(folder / "m.gguf").string("version"), "old");
}

}  // namespace
}  // namespace prism::llm
