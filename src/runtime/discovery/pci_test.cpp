// PCI cards, and the machine's fingerprint.
#include "runtime/discovery/pci.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include <fmt/format.h>

#include "runtime/discovery/device_surroundings.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(PciCards, AreDisplaysAndAcceleratorsByAddress) {
  const fs::path bus = fs::path(::testing::TempDir()) / fmt::format("prism-pci-{}", getpid());
  const auto add = [&](const char* address, const char* kind, const char* vendor,
                       const char* device) {
    fs::create_directories(bus / address);
    std::ofstream(bus / address / "class") << kind << "\n";
    std::ofstream(bus / address / "vendor") << vendor << "\n";
    std::ofstream(bus / address / "device") << device << "\n";
  };
  add("0000:65:00.0", "0x030200", "0x10de", "0x2335");
  add("0000:00:1f.0", "0x060100", "0x8086", "0x7a04");
  add("0000:02:00.0", "0x120000", "0x1002", "0x74a1");
  fs::create_symlink("../drivers/nouveau", bus / "0000:65:00.0" / "driver");
  const auto cards = pci_cards(bus);
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].address, "0000:02:00.0");
  EXPECT_EQ(cards[0].kernel_driver, "");
  EXPECT_EQ(cards[1].vendor, 0x10deu);
  EXPECT_EQ(cards[1].device, 0x2335u);
  EXPECT_EQ(cards[1].kernel_driver, "nouveau");
  fs::remove_all(bus);
  EXPECT_TRUE(pci_cards(bus).empty()) << "no bus to be seen";
}

TEST(DeviceSurroundings, StayTheSameAndTellOfWhatDriversListenTo) {
  const std::string before = device_surroundings({});
  EXPECT_EQ(before, device_surroundings({}));
  setenv("SOME_VISIBLE_DEVICES", "1", 1);
  const std::string hidden = device_surroundings({});
  unsetenv("SOME_VISIBLE_DEVICES");
  EXPECT_NE(before, hidden);
  setenv("SOMETHING_ELSE_ENTIRELY", "1", 1);
  EXPECT_EQ(before, device_surroundings({}));
  unsetenv("SOMETHING_ELSE_ENTIRELY");
  EXPECT_NE(before, device_surroundings({::testing::TempDir()}));
  EXPECT_EQ(before, device_surroundings({"/no/such/folder"}));
}

}  // namespace
}  // namespace prism
