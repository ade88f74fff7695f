// Devices that run out of memory or are lost during tensor work: what continues on another device
// with the same result, and what is an error. The failing device is the double of NVIDIA's driver.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include "prism/compile.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/reduce.h"
#include "prism/warning.h"
#include "runtime/fallback.h"
#include "support/doubles/double_faults.h"
#include "support/doubles/use_cuda_double.h"
#include "support/seed.h"
#include "tensor/storage.h"

namespace prism {
namespace {

using test::CudaDouble;

constexpr int64_t kRows = 7, kColumns = 13;

class CudaFallbackTest : public testing::Test {
 protected:
  CudaFallbackTest() {
    before_ = set_warning_handler([this](const std::string& text) { warnings_.push_back(text); });
    const uint64_t seed = test_seed();
    std::cout << "seed " << seed << std::endl;
    engine_.seed(seed);
  }
  void TearDown() override {
    set_warning_handler(before_);
    release_pooled_memory(device_);
    device_ = {};
    double_.expect_clean();
  }
  void use(bool automatic) {
    device_ = double_.device();
    if (automatic) device_ = device_.as_automatic();
  }
  std::vector<float> values(int64_t count = kRows * kColumns) {
    std::uniform_real_distribution<float> draw(-2, 2);
    std::vector<float> all(static_cast<size_t>(count));
    for (float& each : all) each = draw(engine_);
    return all;
  }
  Tensor on_double(const std::vector<float>& from) {
    return from_vector(from, {kRows, kColumns}, device_);
  }
  // Several launches: two reductions and the chains around them.
  static Tensor work(const Tensor& x) {
    const Tensor centred = x - mean(x, {-1}, true);
    return tanh(centred) * 2.0 + sum(centred * centred, {0}, true);
  }
  static void expect_near(const Tensor& got, const std::vector<float>& from) {
    const auto wanted =
        work(from_vector(from, {kRows, kColumns}, Device::cpu())).to_vector<float>();
    const auto values = got.to_vector<float>();
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(values[i], wanted[i], 1e-5f * (1 + std::abs(wanted[i]))) << i;
  }
  void expect_one_warning(const std::string& part) {
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find(part), std::string::npos) << warnings_[0];
    EXPECT_NE(warnings_[0].find("cuda:0"), std::string::npos) << warnings_[0];
  }

  CudaDouble double_;
  Device device_;
  std::vector<std::string> warnings_;
  std::mt19937_64 engine_;
  WarningHandler before_;
};

ErrorCode code_of(const std::function<void()>& body, const std::string& part = "") {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kIo;
}

TEST_F(CudaFallbackTest, OutOfMemoryWhenAPlanIsMade) {
  use(true);
  const auto data = values();
  const Tensor x = on_double(data);
  double_.set("memory=600");
  const Tensor y = work(x);
  expect_near(y, data);
  expect_one_warning("ran out of memory");
  EXPECT_NE(y.device(), device_);
  // Everything from Auto is now on the other device, so that devices do not mix.
  EXPECT_EQ(x.device(), y.device());
  EXPECT_EQ(x.to_vector<float>(), data);
  expect_near(work(x) + zeros(x.shape(), DType::f32, device_), data);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(CudaFallbackTest, OutOfMemoryWhenATensorIsMade) {
  use(true);
  double_.set("memory=100");
  const auto data = values();
  const Tensor x = on_double(data);
  EXPECT_NE(x.device(), device_);
  EXPECT_EQ(x.to_vector<float>(), data);
  expect_one_warning("ran out of memory");
}

TEST_F(CudaFallbackTest, AMemoryLimitCountsToo) {
  use(true);
  const auto data = values();
  const Tensor x = on_double(data);
  set_memory_limit(device_, memory_stats(device_).in_use_bytes);
  const Tensor y = work(x);
  expect_near(y, data);
  expect_one_warning("limit");
  set_memory_limit(device_, 0);
}

TEST_F(CudaFallbackTest, LostInTheMiddleOfAPlan) {
  for (int launch = 1; launch <= 3; ++launch) {
    use(true);
    const auto data = values();
    const Tensor x = on_double(data);
    double_.set("lose_launch=" + std::to_string(launch));
    const Tensor y = work(x);
    expect_near(y, data);
    expect_one_warning("was lost");
    EXPECT_NE(y.device(), device_);
    EXPECT_EQ(x.to_vector<float>(), data);  // from the host's copy
    warnings_.clear();
    release_pooled_memory(device_);
  }
}

TEST_F(CudaFallbackTest, NamedDevicesRaise) {
  use(false);
  const auto data = values();
  {
    const Tensor x = on_double(data);
    double_.set("memory=600");
    EXPECT_EQ(code_of([&] { work(x).eval(); }, "PRISM_FALLBACK=1"), ErrorCode::kOutOfMemory);
    double_.set("");
    expect_near(work(x), data);  // the failure left everything usable
    double_.set("lose_launch=2");
    EXPECT_EQ(code_of([&] { work(x).to_vector<float>(); }), ErrorCode::kDeviceLost);
    EXPECT_EQ(x.device(), device_);
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CudaFallbackTest, TheVariableForbids) {
  const auto set = double_.variable("PRISM_FALLBACK", "0");
  use(true);
  double_.set("memory=100");
  EXPECT_EQ(code_of([&] { on_double(values()); }), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CudaFallbackTest, TheVariableAllows) {
  const auto set = double_.variable("PRISM_FALLBACK", "1");
  use(false);
  const auto data = values();
  const Tensor x = on_double(data);
  double_.set("lose_launch=2");
  expect_near(work(x), data);
  expect_one_warning("was lost");
}

TEST_F(CudaFallbackTest, TheVariableMustBeOneOfTwo) {
  const auto set = double_.variable("PRISM_FALLBACK", "yes");
  use(true);
  EXPECT_EQ(code_of([&] { on_double(values()); }, "PRISM_FALLBACK=yes"),
            ErrorCode::kInvalidArgument);
}

TEST_F(CudaFallbackTest, CompiledFunctionsReplayElsewhere) {
  for (const char* failure : {"lose_launch=1", "memory=600"}) {
    use(true);
    CompiledFunction f =
        compile([](std::span<const Tensor> in) { return std::vector{work(in[0])}; });
    auto data = values();
    {
      const Tensor first = on_double(data);
      for (int run = 0; run < 3; ++run) expect_near(f({first})[0], data);  // recorded by now
      EXPECT_EQ(f({first})[0].device(), device_);
      double_.set(failure);
      // Results that are kept force the next run to allocate.
      const Tensor held = f({first})[0], next = f({first})[0];
      expect_near(held, data);
      expect_near(next, data);
    }
    ASSERT_EQ(warnings_.size(), 1u) << failure;
    for (int run = 0; run < 3; ++run) {
      data = values();
      const Tensor result = f({on_double(data)})[0];
      EXPECT_NE(result.device(), device_);
      expect_near(result, data);
    }
    EXPECT_EQ(warnings_.size(), 1u);
    warnings_.clear();
    double_.set("");
    f = compile({});
    release_pooled_memory(device_);
  }
}

TEST_F(CudaFallbackTest, WhatWasComputedThereAlone) {
  use(true);
  const auto data = values();
  Tensor x = on_double(data);
  Tensor alone = x * 2.0;
  alone.eval();
  x.set_requires_grad();
  const Tensor again = x * 3.0;  // its graph is still known
  again.eval();
  double_.set("lose_launch=1");
  expect_near(work(x), data);
  expect_one_warning("was lost");
  EXPECT_EQ(code_of([&] { alone.to_vector<float>(); }, "f32[7, 13] were on cuda:0 alone"),
            ErrorCode::kDeviceLost);
  const auto thrice = again.to_vector<float>();
  for (size_t i = 0; i < data.size(); ++i) EXPECT_EQ(thrice[i], data[i] * 3.0f) << i;
}

TEST_F(CudaFallbackTest, TensorsMovedFromTheHostAreMovedAgain) {
  use(true);
  const auto data = values();
  const Tensor on_host = from_vector(data, {kRows, kColumns}, Device::cpu());
  const Tensor x = on_host.slice(0, 2, 6).to(device_);
  x.eval();
  double_.set("lose_launch=1");
  (x * 2.0).eval();
  expect_one_warning("was lost");
  const auto got = x.to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], data[2 * kColumns + i]) << i;
}

TEST_F(CudaFallbackTest, MemoryChangedInPlace) {
  use(true);
  const auto data = values();
  const Tensor row = from_vector<float>(values(kColumns), {1, kColumns}, device_);
  const Tensor index = from_vector<int32_t>({3}, {1}, device_);
  Tensor cache = on_double(data);
  write_rows(cache, index, row).eval();
  auto wanted = data;
  const auto written = row.to_vector<float>();
  std::copy(written.begin(), written.end(), wanted.begin() + 3 * kColumns);
  // Out of memory: existing data moves along in its current state, not as first computed.
  double_.set("memory=700");
  const Tensor held = work(cache);
  held.eval();
  expect_one_warning("ran out of memory");
  EXPECT_EQ(cache.to_vector<float>(), wanted);
  expect_near(held, wanted);
  // In-place updates still work there.
  write_rows(cache, from_vector<int32_t>({0}, {1}, device_), row).eval();
  std::copy(written.begin(), written.end(), wanted.begin());
  EXPECT_EQ(cache.to_vector<float>(), wanted);
}

TEST_F(CudaFallbackTest, LostMemoryChangedInPlaceIsLost) {
  use(true);
  Tensor cache = on_double(values());
  const Tensor row = from_vector<float>(values(kColumns), {1, kColumns}, device_);
  const Tensor index = from_vector<int32_t>({3}, {1}, device_);
  double_.set("lose_launch=1");
  const auto write_and_read = [&] {
    write_rows(cache, index, row).eval();
    cache.to_vector<float>();
  };
  EXPECT_EQ(code_of(write_and_read), ErrorCode::kDeviceLost);
}

TEST_F(CudaFallbackTest, ARefusedAllocationEmptiesThePoolFirst) {
  use(true);
  double_.set("memory=1048576");
  { const auto pooled = allocate_storage(device_, 600'000); }
  EXPECT_GT(memory_stats(device_).pooled_bytes, 500'000u);
  const auto larger = allocate_storage(device_, 800'000);
  EXPECT_EQ(memory_stats(device_).pooled_bytes, 0u);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CudaFallbackTest, AutoNoLongerGivesADeviceThatFailed) {
  use(true);
  set_default_device(device_);
  double_.set("memory=100");
  const Tensor x = ones({64, 64});
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(64 * 64, 1.0f));
  EXPECT_NE(default_device(), device_);
  EXPECT_EQ(default_device(), x.device());
  set_default_device({});
}

// A card without matrix instructions, because the host has no assembler for them.
constexpr const char* kPlain = "capability=61";

// Generated text survives device failures in the middle.
TEST(CudaFaults, TextSurvives) {
  CudaDouble the_double;
  test::expect_text_survives(the_double, std::string("memory=4294967296,") + kPlain,
                             "lose_launch=2", "memory=300000");
}

TEST(CudaFaults, WrongDeviceIsNotChosen) {
  CudaDouble the_double;
  test::expect_wrong_device_is_not_chosen(the_double, "cuda",
                                          std::string("wrong_results=1,") + kPlain);
}

}  // namespace
}  // namespace prism
