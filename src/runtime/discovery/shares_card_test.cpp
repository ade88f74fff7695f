// A device whose interface reports little gets facts from another backend's device of the same
// card.
#include "runtime/discovery/shares_card.h"

#include <gtest/gtest.h>

#include "prism/error.h"
#include "runtime/discovery/registry.h"

namespace prism {
namespace {

class BareDevice : public DeviceDriver {
 public:
  BareDevice(const std::string& id, const std::string& name, const std::string& card) {
    info_.id = id;
    info_.backend = id.substr(0, id.find(':'));
    info_.name = name;
    info_.card = card;
  }
  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override { return 0; }
  std::unique_ptr<MemoryDriver> allocate(uint64_t) override { return nullptr; }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel&) override { return nullptr; }
  std::unique_ptr<QueueDriver> make_queue() override { return nullptr; }

 private:
  DeviceInfo info_;
};

class AskingDevice final : public BareDevice, public SharesCard {
 public:
  using BareDevice::BareDevice;
  void same_card(const std::shared_ptr<DeviceDriver>& other) override { told = other->info().id; }
  std::string told;
};

class ListBackend final : public Backend {
 public:
  ListBackend(std::string name, std::vector<std::shared_ptr<DeviceDriver>> devices)
      : name_(std::move(name)), devices_(std::move(devices)) {}
  std::string name() const override { return name_; }
  std::string label() const override { return name_; }
  Discovery discover() override {
    Discovery found;
    found.devices = devices_;
    return found;
  }

 private:
  std::string name_;
  std::vector<std::shared_ptr<DeviceDriver>> devices_;
};

// The device that each device of backend "asks" was given, when these others are present.
std::vector<std::string> told(const std::vector<std::shared_ptr<AskingDevice>>& asking,
                              std::vector<std::shared_ptr<DeviceDriver>> others) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(std::make_unique<ListBackend>("other", std::move(others)));
  backends.push_back(std::make_unique<ListBackend>(
      "asks", std::vector<std::shared_ptr<DeviceDriver>>(asking.begin(), asking.end())));
  find_devices(std::move(backends), "");
  std::vector<std::string> result;
  for (const auto& device : asking) result.push_back(device->told);
  return result;
}

std::shared_ptr<AskingDevice> asks(const std::string& id, const std::string& card) {
  return std::make_shared<AskingDevice>(id, "Card X", card);
}
std::shared_ptr<DeviceDriver> other(const std::string& id, const std::string& card,
                                    const std::string& name = "Card X") {
  return std::make_shared<BareDevice>(id, name, card);
}

TEST(SharesCard, IsToldByTheCardOrByAnOnlyName) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(told({asks("asks:0", "0:1")}, {other("other:0", "0:2"), other("other:1", "0:1")}),
            Names{"other:1"});
  EXPECT_EQ(
      told({asks("asks:0", "asks:0")}, {other("other:0", "0:2"), other("other:1", "0:3", "Y")}),
      Names{"other:0"});
  EXPECT_EQ(told({asks("asks:0", "asks:0")}, {other("other:0", "0:2"), other("other:1", "0:3")}),
            Names{""})
      << "which of two cannot be known";
  EXPECT_EQ(told({asks("asks:0", "asks:0"), asks("asks:1", "asks:1")}, {other("other:0", "0:2")}),
            (Names{"", ""}))
      << "two for one";
  EXPECT_EQ(told({asks("asks:0", "0:9")}, {other("other:0", "0:2")}), Names{""})
      << "its card is another";
}

}  // namespace
}  // namespace prism
