// Grouping of devices by card.
#include "runtime/discovery/cards.h"

#include <gtest/gtest.h>

#include <map>

#include "support/devices/fake_device.h"

namespace prism {
namespace {

using test::FakeDevice;

struct Made {
  std::string id, name, card;  // an empty card means unknown
  bool software = false;
};

std::vector<BackendReport> reports_of(const std::vector<Made>& devices) {
  std::vector<BackendReport> reports;
  for (const Made& made : devices) {
    auto device = std::make_shared<FakeDevice>(made.id, 1 << 20);
    device->edit().name = made.name;
    device->edit().card = made.card.empty() ? made.id : made.card;
    device->edit().software = made.software;
    device->edit().is_cpu = made.id == "cpu:0";
    if (reports.empty() || reports.back().name != device->info().backend) {
      reports.emplace_back().name = device->info().backend;
      reports.back().available = true;
    }
    reports.back().devices.push_back(device);
  }
  return reports;
}

// "cuda:0 vulkan:0 | cpu:0"
std::string grouped(const std::vector<Made>& devices) {
  std::string text;
  for (const Card& card : group_by_card(reports_of(devices))) {
    if (!text.empty()) text += " |";
    for (const auto& way : card.ways) text += (text.empty() ? "" : " ") + way->info().id;
  }
  return text;
}

const std::string kA = "0000:65:00.0", kB = "0000:66:00.0";

TEST(Cards, TheSameAddressIsOneCardWhateverItIsCalled) {
  EXPECT_EQ(grouped({{"cuda:0", "H200", kA},
                     {"vulkan:0", "NVIDIA H200", kA},
                     {"opencl:0", "NVIDIA H200", kA},
                     {"cpu:0", "EPYC", ""}}),
            "cuda:0 vulkan:0 opencl:0 | cpu:0");
}

TEST(Cards, TwoOfOneKindStayTwo) {
  EXPECT_EQ(grouped({{"cuda:0", "H200", kA},
                     {"cuda:1", "H200", kB},
                     {"vulkan:0", "H200", kB},
                     {"vulkan:1", "H200", kA}}),
            "cuda:0 vulkan:1 | cuda:1 vulkan:0");
}

TEST(Cards, WithoutAddressTheOnlyOneOfItsNameBelongsToTheOnlyCardOfIt) {
  EXPECT_EQ(grouped({{"hip:0", "AMD Radeon RX 6800", kA},
                     {"vulkan:0", "AMD Radeon RX 6800 (RADV NAVI21)", kA},
                     {"webgpu:0", "AMD Radeon(TM) RX 6800", ""}}),
            "hip:0 vulkan:0 webgpu:0");
  EXPECT_EQ(grouped({{"vulkan:0", "X", ""}, {"opencl:0", "X", ""}}), "vulkan:0 opencl:0");
  EXPECT_EQ(grouped({{"vulkan:0", "X", kA}, {"opencl:0", "Y", ""}}), "vulkan:0 | opencl:0");
}

TEST(Cards, TwoOfOneNameInOneBackendAreNeverMergedByName) {
  EXPECT_EQ(grouped({{"opencl:0", "X", ""}, {"opencl:1", "X", ""}}), "opencl:0 | opencl:1");
  EXPECT_EQ(grouped({{"vulkan:0", "X", kA}, {"opencl:0", "X", ""}, {"opencl:1", "X", ""}}),
            "vulkan:0 | opencl:0 | opencl:1");
  EXPECT_EQ(grouped({{"cuda:0", "X", kA}, {"cuda:1", "X", kB}, {"webgpu:0", "X", ""}}),
            "cuda:0 | cuda:1 | webgpu:0")
      << "which of the two it is cannot be known";
}

TEST(Cards, AUuidMeetsAnAddressByTheNameButNeverAnotherUuid) {
  EXPECT_EQ(grouped({{"vulkan:0", "X", kA}, {"sycl:0", "X", "uuid:1"}}), "vulkan:0 sycl:0");
  EXPECT_EQ(grouped({{"vulkan:0", "X", "uuid:2"}, {"sycl:0", "X", "uuid:1"}}), "vulkan:0 | sycl:0");
  EXPECT_EQ(grouped({{"vulkan:0", "X", kA}, {"sycl:0", "X", kB}}), "vulkan:0 | sycl:0");
}

TEST(Cards, WhatRunsOnTheHostIsItsProcessor) {
  const std::vector<Made> devices = {{"vulkan:0", "llvmpipe", "uuid:1", true},
                                     {"opencl:0", "pthread-EPYC", "", true},
                                     {"opencl:1", "EPYC", "", true},
                                     {"webgpu:0", "llvmpipe", "", true},
                                     {"cpu:0", "EPYC", ""}};
  EXPECT_EQ(grouped(devices), "vulkan:0 opencl:0 opencl:1 webgpu:0 cpu:0");
  const auto cards = group_by_card(reports_of(devices));
  EXPECT_TRUE(cards[0].is_processor);
  EXPECT_EQ(cards[0].name, "EPYC");
  EXPECT_TRUE(group_by_card({}).empty());
}

}  // namespace
}  // namespace prism
