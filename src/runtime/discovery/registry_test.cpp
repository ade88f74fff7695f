// Backends discover their devices on demand, once, and no others do.
#include "runtime/discovery/registry.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "runtime/discovery/selection.h"
#include "runtime/discovery/shares_card.h"
#include "support/devices/fake_device.h"

namespace prism {
namespace {

using test::FakeDevice;
using Names = std::set<std::string>;

std::map<std::string, int> made, looked;
std::mutex counting;  // discovery is concurrent

class AskingDevice final : public FakeDevice, public SharesCard {
 public:
  using FakeDevice::FakeDevice;
  void same_card(const std::shared_ptr<DeviceDriver>& other) override { told = other->info().id; }
  std::string told;
};

class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(std::string name) : name_(std::move(name)) { ++made[name_]; }
  std::string name() const override { return name_; }
  std::string label() const override { return "The " + name_; }
  Discovery discover() override {
    {
      const std::scoped_lock lock(counting);
      ++looked[name_];
    }
    Discovery found;
    if (name_ == "webgpu")
      found.devices = {std::make_shared<AskingDevice>(name_ + ":0", 1 << 20)};
    else
      found.devices = {std::make_shared<FakeDevice>(name_ + ":0", 1 << 20)};
    return found;
  }
  bool starts_driver() const override { return name_ != "cpu" && name_ != "null"; }

 private:
  std::string name_;
};

template <char first>
std::unique_ptr<Backend> make() {
  return std::make_unique<CountingBackend>(first == 'v'   ? "vulkan"
                                           : first == 'w' ? "webgpu"
                                           : first == 'n' ? "null"
                                                          : "cpu");
}

const std::vector<BackendMaker> kMakers = {
    {"vulkan", make<'v'>}, {"webgpu", make<'w'>}, {"cpu", make<'c'>}, {"null", make<'n'>}};

struct RegistryTest : ::testing::Test {
  void SetUp() override { made.clear(), looked.clear(); }
};

TEST_F(RegistryTest, OnlyTheNamedBackendIsMadeAndLooks) {
  Registry registry(kMakers, "");
  const auto reports = registry.only({"cpu", "nobody"});
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0].name, "vulkan");
  EXPECT_FALSE(reports[0].available);
  EXPECT_FALSE(reports[0].reason.empty());
  ASSERT_TRUE(reports[2].available);
  EXPECT_EQ(reports[2].label, "The cpu");
  EXPECT_EQ(made, (std::map<std::string, int>{{"cpu", 1}}));
  EXPECT_FALSE(registry.has_all());
}

TEST_F(RegistryTest, DevicesStayTheSameWhenAllAreLookedForLater) {
  Registry registry(kMakers, "");
  const auto first = registry.only({"cpu"});
  const auto& all = registry.all();
  EXPECT_TRUE(registry.has_all());
  EXPECT_EQ(all[2].devices, first[2].devices);
  EXPECT_TRUE(all[0].available && all[1].available);
  EXPECT_EQ(registry.only({"vulkan"})[0].devices, all[0].devices);
  EXPECT_EQ(&registry.all(), &all);
  EXPECT_EQ(looked, (std::map<std::string, int>{{"cpu", 1}, {"vulkan", 1}, {"webgpu", 1}}));
}

TEST_F(RegistryTest, ADeviceThatMustBeToldOfItsCardHasAllLookedFor) {
  Registry registry(kMakers, "");
  registry.only({"webgpu"});
  EXPECT_TRUE(registry.has_all());
}

TEST_F(RegistryTest, WhatIsLeftOutNeverLooks) {
  Registry registry(kMakers, "cpu,null");
  const auto reports = registry.only({"vulkan", "null"});
  ASSERT_EQ(reports.size(), 4u);
  EXPECT_EQ(reports[0].reason, "excluded by PRISM_BACKENDS=cpu,null");
  EXPECT_TRUE(reports[3].available);
  registry.all();
  EXPECT_EQ(looked, (std::map<std::string, int>{{"cpu", 1}, {"null", 1}}));
}

TEST(NamedBackends, AreThoseOfTheSpellingAndOfPrismDevice) {
  EXPECT_EQ(named_backends("cpu", ""), Names{"cpu"});
  EXPECT_EQ(named_backends("ROCm:1", "auto"), Names{"hip"});
  EXPECT_EQ(named_backends("", "vulkan:0"), Names{"vulkan"});
  EXPECT_EQ(named_backends("auto", "wgpu"), Names{"webgpu"});
  EXPECT_EQ(named_backends("cpu", "vulkan"), (Names{"cpu", "vulkan"}))
      << "a PRISM_DEVICE that is absent is an error whatever was asked for";
  for (const char* choice : {"", "auto", "gpu"})
    for (const char* preset : {"", "auto", "gpu"})
      EXPECT_FALSE(named_backends(choice, preset)) << choice << " " << preset;
  EXPECT_FALSE(named_backends("gpu", "cpu"));
}

}  // namespace
}  // namespace prism
