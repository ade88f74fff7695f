// Unified memory without copies: the Metal backend over its double reads mapped files in place.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <random>

#include <unistd.h>

#include "base/system/mapped_file.h"
#include "llm/model/model.h"
#include "prism/llm/language_model.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "support/doubles/double_cases.h"
#include "support/doubles/use_metal_double.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/seed.h"
#include "tensor/plan/device_fallback.h"
#include "tensor/storage.h"

namespace prism {
namespace {

using test::add_one_kernel;
using test::contains;
using test::error_of;
using test::MetalDouble;
using test::scale_kernel;

constexpr const char* kWrap = "newBufferWithBytesNoCopy:length:options:deallocator:";

// A file of random numbers, mapped read-only.
class MetalMemoryTest : public testing::Test {
 protected:
  MetalMemoryTest() {
    const uint32_t seed = test_seed();
    std::cout << "seed " << seed << '\n';
    std::mt19937 random(seed);
    for (float& value : values_) value = static_cast<float>(random() % 2000) - 1000;
    path_ = (double_.folder() / "numbers").string();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(values_.data()),
               static_cast<std::streamsize>(values_.size() * 4));
    file_ = map_file(path_, MapAccess::read);
  }
  void TearDown() override { double_.expect_clean(); }

  std::shared_ptr<std::byte> at(size_t offset) { return {file_.data, file_.data.get() + offset}; }
  Tensor tensor(size_t offset, const Shape& shape, ElementType type = DType::f32) {
    return from_host_memory(std::shared_ptr<const std::byte>(at(offset)), shape, type);
  }
  // Whether this process has the file mapped.
  static bool is_mapped(const std::string& path) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (contains(line, std::filesystem::canonical(path).string())) return true;
    return false;
  }

  MetalDouble double_;
  std::vector<float> values_ = std::vector<float>(5003);  // neither whole pages nor whole vectors
  std::string path_;
  MappedFile file_;
};

TEST_F(MetalMemoryTest, WrappedBufferIsTheMappedFileAndKeepsIt) {
  const Device device = double_.device();
  const std::byte* const address = file_.data.get();
  // Across pages, up to the end of the file, inside one page.
  for (const auto& [offset, count] :
       {std::pair<size_t, size_t>{0, 5003}, {4064, 1031}, {16 * 1250, 3}, {32, 1}}) {
    const Buffer shared = device.wrap(at(offset), count * 4);
    ASSERT_TRUE(shared) << offset;
    EXPECT_EQ(device.driver().host_pointer(shared.driver()), address + offset);
    EXPECT_EQ(shared.bytes(), count * 4);
    const std::vector<float> poison(count, NAN);
    const Buffer to = device.upload(poison);
    device.queue().launch(device.compile(scale_kernel()), static_cast<uint32_t>(count / 64 + 1),
                          {shared, to}, {static_cast<uint32_t>(count), 2.0f});
    const auto scaled = device.download<float>(to), read = device.download<float>(shared);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(scaled[i], 2 * values_[offset / 4 + i]) << i;
      ASSERT_EQ(read[i], values_[offset / 4 + i]) << i;
    }
  }
  EXPECT_EQ(double_.count("allocations"), 4);  // only the output buffers
  EXPECT_EQ(double_.count("shared_bytes"), 0);

  Buffer shared = device.wrap(at(64), 64);
  file_ = {};
  EXPECT_TRUE(is_mapped(path_));
  EXPECT_EQ(device.download<float>(shared)[0], values_[16]);
  shared = {};
  EXPECT_FALSE(is_mapped(path_));
}

TEST_F(MetalMemoryTest, WrappedBufferIsOnlyRead) {
  const Device device = double_.device();
  const Buffer shared = device.wrap(at(0), 256);
  const std::vector<std::byte> bytes(16);
  for (const auto& change : std::vector<std::function<void()>>{
           [&] { device.queue().write(shared, bytes); },
           [&] { device.queue().copy(shared, device.allocate(16), 16); },
           [&] { device.queue().launch(device.compile(add_one_kernel()), 1, {shared}, {64u}); }})
    EXPECT_TRUE(contains(error_of(change).what(), "read-only")) << error_of(change).what();
}

TEST_F(MetalMemoryTest, WhatCannotBeWrappedIsNot) {
  {
    const Device device = double_.device();
    EXPECT_FALSE(device.wrap(at(8), 64));  // kernels load vectors of 16 bytes
    EXPECT_FALSE(device.wrap(at(0), 0));
    EXPECT_FALSE(Device::cpu().wrap(at(0), 64));
    double_.set(std::string("fail=") + kWrap + "/1");
    EXPECT_FALSE(device.wrap(at(0), 64));
    EXPECT_TRUE(device.wrap(at(0), 64));
  }
  for (const char* told : {"family=2002,unified=0", "memory=8192", "max_buffer=16384"}) {
    double_.set(told);
    EXPECT_FALSE(double_.device().wrap(at(0), 5003 * 4)) << told;
  }
}

TEST_F(MetalMemoryTest, TensorsOfPlainTypesAreSharedAndOthersCopied) {
  const Device device = double_.device();
  {
    const uint64_t before = memory_stats(device).in_use_bytes;
    const long long wraps = double_.count("wraps");
    const Tensor shared = share(tensor(64, {7, 11}), device);
    EXPECT_EQ(shared.device(), device);
    EXPECT_EQ(device.driver().host_pointer(values_of(shared)->buffer.driver()),
              file_.data.get() + 64);
    const Tensor half = share(tensor(32, {3, 5}, DType::f16), device);
    EXPECT_EQ(double_.count("wraps"), wraps + 2);
    EXPECT_EQ(memory_stats(device).in_use_bytes, before);
    EXPECT_EQ(double_.count("allocations"), 0);
    const auto sums = (shared + shared).to_vector<float>();
    for (size_t i = 0; i < 77; ++i) ASSERT_EQ(sums[i], 2 * values_[16 + i]) << i;
    EXPECT_EQ((half.to(Device::cpu())).to_doubles(), tensor(32, {3, 5}, DType::f16).to_doubles());

    // Device blocks are stored as planes, so they are copied, and so is data misaligned for vector
    // loads.
    const Tensor blocks = share(tensor(0, {4, 64}, BlockType::q8_0), device);
    const Tensor odd = share(tensor(4, {9}), device);
    EXPECT_EQ(double_.count("wraps"), wraps + 2);
    EXPECT_GT(memory_stats(device).in_use_bytes, before);
    EXPECT_EQ(odd.to_vector<float>()[8], values_[9]);

    const Error error = error_of([&] {
      write_rows(shared, from_vector<int32_t>({3}, {1}, device),
                 from_vector(std::vector<float>(11), {1, 11}, device))
          .eval();
    });
    EXPECT_TRUE(contains(error.what(), "constant memory")) << error.what();
  }
  release_pooled_memory(device);
}

// Reads every weight of an f32 file in place, with the same text as on the CPU; then with a failing
// wrap.
TEST_F(MetalMemoryTest, ModelReadsItsWeightsFromTheFile) {
  const std::string path = test::shared_model("stories260K");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  const auto expected = test::expected_text("stories260K.once", "stories260K.once.f32");
  const auto first = expected.ids.begin() + static_cast<ptrdiff_t>(expected.prompt);
  uint64_t weights = 0;
  {
    const llm::GgufFile file = llm::GgufFile::open(path);
    for (const llm::GgufTensor& each : file.tensors()) weights += each.bytes;
  }
  ASSERT_FALSE(is_mapped(path));
  for (const int failing : {0, 1}) {
    double_.set("memory=4294967296" +
                (failing ? std::string(",fail=") + kWrap + "/1" : std::string()));
    const Device device = double_.device();
    const long long allocated = double_.count("live_bytes");
    {
      llm::Placement placement;
      {
        const llm::GgufFile file = llm::GgufFile::open(path);
        placement = llm::place_on(file, device, 64, DType::f32);
      }
      llm::LanguageModel model = llm::LanguageModel::load(path, placement, {.batch_rows = 16});
      const auto shared = static_cast<uint64_t>(double_.count("shared_bytes"));
      const uint64_t own = static_cast<uint64_t>(double_.count("live_bytes") - allocated) - shared;
      // The token embedding, the first tensor, is the one that was copied.
      const uint64_t copied = failing ? 512 * 64 * 4 : 0;
      EXPECT_GE(shared, weights - copied);
      EXPECT_LT(own, weights / 2 + copied);
      const llm::Generation text = model.generate("Once upon a time", test::greedy(8));
      EXPECT_EQ(text.tokens, std::vector<int32_t>(first, first + 8));
      EXPECT_EQ(double_.count("misuses"), 0);
      EXPECT_TRUE(is_mapped(path));
    }
    device.queue().wait();  // the last launches keep their buffers alive
    release_pooled_memory(device);
    EXPECT_EQ(double_.count("shared_bytes"), 0);
    EXPECT_FALSE(is_mapped(path));
  }
}

}  // namespace
}  // namespace prism
