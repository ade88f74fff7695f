// Tests how the memory that a model leaves free is divided among texts.
#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/llm/fit.h"
#include "runtime/counted_device.h"
#include "support/devices/fake_device.h"

namespace prism::llm {
namespace {

constexpr uint64_t kMb = 1 << 20;
constexpr int64_t kContext = 8192;
constexpr uint64_t kPositions = kContext + 128;  // with the block for padding

// One device with ten layers, whose cache takes 1 KB for a layer and token.
DeviceShare share(const Device& device, uint64_t free_bytes) {
  DeviceShare share;
  share.device = device;
  share.layers = 10;
  share.weight_bytes = 100 * kMb;
  share.kv_bytes = 10 * 1024 * kPositions;
  share.free_bytes = free_bytes;
  return share;
}

Device fake(const std::string& id) {
  return Device(std::make_shared<test::FakeDevice>(id, uint64_t{1} << 40), "");
}

Fit fit(std::vector<DeviceShare> shares, int64_t context = kContext) {
  Fit fit;
  fit.placement.context = context;
  fit.placement.kv_type = DType::f16;
  fit.shares = std::move(shares);
  return fit;
}

// What the model and one context take.
constexpr uint64_t kUsed = 100 * kMb + 10 * 1024 * kPositions;

TEST(SharedCache, OneContextIsTheLeast) {
  for (const uint64_t left : {uint64_t{0}, 100 * uint64_t{1024}}) {
    const SharedCache cache = fit_shared_cache(fit({share(Device::cpu(), kUsed + left)}));
    EXPECT_EQ(cache.tokens, kContext);
    EXPECT_EQ(cache.slots, 4);  // texts of 2,048 tokens
  }
  EXPECT_EQ(fit_shared_cache(fit({share(Device::cpu(), kUsed)}), 9).slots, 9);
}

TEST(SharedCache, TakesAPartOfWhatIsLeft) {
  const uint64_t left = 4 * 10240 * uint64_t{8192};  // cache of 4 contexts
  const SharedCache host = fit_shared_cache(fit({share(Device::cpu(), kUsed + left)}));
  EXPECT_EQ(host.tokens, 2 * kContext);
  EXPECT_EQ(host.slots, 8);
  const SharedCache card = fit_shared_cache(fit({share(fake("gpu:0"), kUsed + left)}));
  EXPECT_EQ(card.tokens, 3 * kContext);
  EXPECT_EQ(card.slots, 12);
  DeviceShare with_margin = share(Device::cpu(), kUsed + left + 5000);
  with_margin.margin_bytes = 5000;
  EXPECT_EQ(fit_shared_cache(fit({with_margin})).tokens, host.tokens);
}

TEST(SharedCache, TheScarcerMemoryDecides) {
  const uint64_t left = 4 * 10240 * uint64_t{8192};
  const SharedCache both = fit_shared_cache(
      fit({share(fake("gpu:0"), kUsed + left), share(Device::cpu(), kUsed + left / 4)}));
  EXPECT_EQ(both.tokens, kContext + kContext / 4);
}

TEST(SharedCache, HasBounds) {
  const uint64_t plenty = uint64_t{1} << 42;
  EXPECT_EQ(fit_shared_cache(fit({share(Device::cpu(), plenty)})).slots, 64);
  EXPECT_EQ(fit_shared_cache(fit({share(Device::cpu(), plenty)})).tokens, 64 * kContext);
  EXPECT_EQ(fit_shared_cache(fit({share(Device::cpu(), plenty)}), 3).tokens, 3 * kContext);
  // A layer's keys have fewer than 2^32 elements; 256 of them belong to a token.
  DeviceShare wide = share(Device::cpu(), plenty);
  const int64_t long_context = 1 << 20;
  wide.kv_bytes = 10 * 1024 * static_cast<uint64_t>(long_context + 128);
  const SharedCache cut = fit_shared_cache(fit({wide}, long_context));
  EXPECT_LT((cut.tokens + 128) * 256, int64_t{1} << 32);
  EXPECT_GT(cut.tokens * 256, (int64_t{1} << 32) - (1 << 18));
}

TEST(SharedCache, UnknownMemoryHasFourContexts) {
  EXPECT_EQ(fit_shared_cache(fit({share(fake("gpu:0"), kUnknownBytes)})).tokens, 4 * kContext);
  EXPECT_EQ(fit_shared_cache(fit({})).tokens, 4 * kContext);
  EXPECT_THROW(fit_shared_cache(fit({}), -1), Error);
}

}  // namespace
}  // namespace prism::llm
