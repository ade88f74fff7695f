// Selection of a device by name, preference, memory, self-check and measurement.
#include "runtime/discovery/selection.h"

#include <gtest/gtest.h>

#include <map>

#include "prism/error.h"
#include "runtime/discovery/registry.h"
#include "support/devices/fake_device.h"

namespace prism {
namespace {

using test::FakeDevice;

constexpr uint64_t kGigabyte = 1ull << 30;

class FakeBackend final : public Backend {
 public:
  FakeBackend(std::string name, Discovery discovery)
      : name_(std::move(name)), discovery_(std::move(discovery)) {}
  std::string name() const override { return name_; }
  std::string label() const override {
    static const std::map<std::string, std::string> labels = {
        {"cuda", "CUDA"},     {"hip", "HIP"}, {"metal", "Metal"},
        {"vulkan", "Vulkan"}, {"cpu", "CPU"}, {"null", "Null"}};
    return labels.at(name_);
  }
  Discovery discover() override {
    if (name_ == "metal") throw Error(ErrorCode::kDriver, "the framework said no");
    return discovery_;
  }

 private:
  std::string name_;
  Discovery discovery_;
};

std::shared_ptr<FakeDevice> fake(const std::string& id, uint64_t gigabytes, bool software = false) {
  auto device = std::make_shared<FakeDevice>(id, gigabytes * kGigabyte);
  device->edit().software = software;
  device->edit().is_cpu = device->info().backend == "cpu";
  device->edit().unified = device->info().is_cpu || software;
  return device;
}

// cuda is absent, metal broken, vulkan has a software device and two cards (one with cuda's
// address), and there is the CPU.
std::vector<std::unique_ptr<Backend>> backends() {
  std::vector<std::unique_ptr<Backend>> all;
  Discovery absent;
  absent.reason = "no driver";
  absent.next_step = "install it";
  all.push_back(std::make_unique<FakeBackend>("cuda", absent));
  all.push_back(std::make_unique<FakeBackend>("hip", Discovery()));
  all.push_back(std::make_unique<FakeBackend>("metal", Discovery()));
  Discovery cards;
  cards.devices = {fake("vulkan:0", 4, true), fake("vulkan:1", 8), fake("vulkan:2", 24)};
  all.push_back(std::make_unique<FakeBackend>("vulkan", cards));
  Discovery cpu;
  cpu.devices = {fake("cpu:0", 64)};
  all.push_back(std::make_unique<FakeBackend>("cpu", cpu));
  Discovery null;
  null.devices = {fake("null:0", 1, true)};
  all.push_back(std::make_unique<FakeBackend>("null", null));
  return all;
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct SelectionTest : ::testing::Test {
  std::vector<BackendReport> reports = find_devices(backends(), "");
  Candidates candidates{reports, "", {}, {}};
  std::string choose(const std::string& spelling, uint64_t bytes = 0) {
    return choose_from(candidates, spelling, bytes).device.id();
  }
  std::string error(const std::string& spelling, uint64_t bytes = 0) {
    return message_of([&] { choose_from(candidates, spelling, bytes); });
  }
  static std::string reason(const Choice& choice, const std::string& id) {
    for (const Rejection& rejection : choice.rejected) {
      if (rejection.id == id) return rejection.reason;
    }
    return "not rejected";
  }
};

TEST_F(SelectionTest, ReportsEveryBackendInOrder) {
  ASSERT_EQ(reports.size(), 5u) << "null is for tests only";
  EXPECT_EQ(reports[0].reason, "no driver");
  EXPECT_EQ(reports[1].reason, "no device found");
  EXPECT_EQ(reports[2].reason, "the framework said no");
  EXPECT_TRUE(reports[3].available);
}

TEST_F(SelectionTest, BackendsCanBeLimited) {
  const auto limited = find_devices(backends(), " vulkan , null");
  ASSERT_EQ(limited.size(), 6u);
  EXPECT_TRUE(limited[3].available);
  EXPECT_FALSE(limited[4].available);
  EXPECT_EQ(limited[4].reason, "excluded by PRISM_BACKENDS= vulkan , null");
  EXPECT_TRUE(limited[5].available);
  EXPECT_TRUE(find_devices(backends(), "ROCM,CPU")[4].available) << "aliases and capitals";
  EXPECT_EQ(message_of([] { find_devices(backends(), "vulcan"); }),
            "PRISM_BACKENDS=vulcan: \"vulcan\" is no backend; did you mean \"vulkan\"? Valid "
            "names: cuda, hip, metal, vulkan, cpu, null");
}

TEST_F(SelectionTest, UnmeasuredTheOrderDecides) {
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "vulkan:1") << "not the software device before it";
  EXPECT_EQ(choice.device.why(),
            "first in the order of preference; `prism calibrate` lets measurements decide");
  EXPECT_EQ(reason(choice, "cuda"), "no driver; install it");
  EXPECT_EQ(reason(choice, "vulkan:0"),
            "a software device, no faster than the CPU itself; used only by name");
  EXPECT_EQ(reason(choice, "cpu:0"), "after vulkan:1 in the order of preference");
}

TEST_F(SelectionTest, ASoftwareDeviceIsTakenWhereTheCpuIsLeftOut) {
  for (BackendReport& report : reports) {
    if (report.name == "vulkan") report.devices.resize(1);
    if (report.name != "cpu") continue;
    report.available = false;
    report.devices.clear();
    report.reason = "excluded by PRISM_BACKENDS=vulkan";
  }
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "vulkan:0");
  EXPECT_EQ(choice.device.why(), "a software device, because the CPU itself is excluded");
  EXPECT_EQ(reason(choice, "vulkan:0"), "not rejected");
  EXPECT_NE(error("gpu").find("vulkan:0: a software device"), std::string::npos) << error("gpu");
  const std::string full = message_of([&] { choose_from(candidates, "auto", 100 * kGigabyte); });
  EXPECT_EQ(full.find("vulkan:0"), full.rfind("vulkan:0")) << full;
}

TEST_F(SelectionTest, ASoftwareDeviceIsTakenWhereNoCardWorksAndTheCpuIsLeftOut) {
  candidates.self_check = [](const Device& device) {
    return device.info().software ? "" : "matmul wrong: y[3] is 7, not 8";
  };
  EXPECT_EQ(choose("auto"), "cpu:0");
  reports[4].available = false;
  reports[4].devices.clear();
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "vulkan:0");
  for (const Rejection& rejection : choice.rejected)
    EXPECT_EQ(rejection.failed, rejection.id == "vulkan:1" || rejection.id == "vulkan:2");
  EXPECT_EQ(reason(choice, "vulkan:1"), "failed its self-check: matmul wrong: y[3] is 7, not 8");
  EXPECT_NE(error("gpu").find("vulkan:2: failed its self-check"), std::string::npos);
}

TEST_F(SelectionTest, MeasuredTheFastestIsTaken) {
  std::map<std::string, double> seconds = {{"vulkan:1", 0.5}, {"vulkan:2", 0.2}, {"cpu:0", 0.4}};
  candidates.measured_seconds = [&](const DeviceInfo& info) -> std::optional<double> {
    const auto found = seconds.find(info.id);
    return found == seconds.end() ? std::nullopt : std::optional(found->second);
  };
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "vulkan:2");
  EXPECT_EQ(choice.device.why(), "measured fastest of 3 devices on this machine");
  EXPECT_EQ(reason(choice, "cpu:0"),
            "measured slower than vulkan:2: 400.00 ms against 200.00 ms for the reference work");
  seconds.erase("vulkan:1");
  EXPECT_EQ(choose("auto"), "vulkan:1") << "half a measurement decides nothing";
}

TEST_F(SelectionTest, OneCardIsKnownAsOne) {
  static_cast<FakeDevice&>(*reports[3].devices[1]).edit().card = "0000:65:00.0";
  static_cast<FakeDevice&>(*reports[3].devices[2]).edit().card = "0000:65:00.0";
  EXPECT_EQ(reason(choose_from(candidates, "auto"), "vulkan:2"),
            "the same card as vulkan:1; after vulkan:1 in the order of preference");
}

TEST_F(SelectionTest, OfTheWaysToOneCardTheFastestIsTaken) {
  static_cast<FakeDevice&>(*reports[3].devices[1]).edit().card = "0000:65:00.0";
  static_cast<FakeDevice&>(*reports[3].devices[2]).edit().card = "0000:65:00.0";
  // The CPU was not measured: preference orders the cards, measurements order the devices of a
  // card.
  std::map<std::string, double> seconds = {{"vulkan:1", 0.5}, {"vulkan:2", 0.2}};
  candidates.measured_seconds = [&](const DeviceInfo& info) -> std::optional<double> {
    const auto found = seconds.find(info.id);
    return found == seconds.end() ? std::nullopt : std::optional(found->second);
  };
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "vulkan:2");
  EXPECT_EQ(choice.device.why(), "measured fastest of 2 ways to this card");
  EXPECT_EQ(reason(choice, "vulkan:1"),
            "the same card as vulkan:2; measured slower than vulkan:2: 500.00 ms against 200.00 ms "
            "for the reference work");
  EXPECT_EQ(reason(choice, "cpu:0"), "after vulkan:2 in the order of preference");
  candidates.self_check = [](const Device& device) {
    return std::string(device.id() == "vulkan:2" ? "wrong" : "");
  };
  EXPECT_EQ(choose("auto"), "vulkan:1") << "the fastest that computes right";
  candidates.prism_device = "vulkan:2";
  EXPECT_EQ(choose("auto"), "vulkan:2") << "any way can be named";
}

TEST_F(SelectionTest, ADeviceThatComputesWronglyIsPassedOver) {
  candidates.self_check = [](const Device& device) {
    return device.id() == "vulkan:1" ? std::string("row_sum is wrong") : std::string();
  };
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "vulkan:2");
  EXPECT_EQ(reason(choice, "vulkan:1"), "failed its self-check: row_sum is wrong");
  EXPECT_EQ(choose("vulkan:1"), "vulkan:1") << "asked for by name it is given";
}

TEST_F(SelectionTest, MemoryIsLookedAt) {
  EXPECT_EQ(choose("auto", 4 * kGigabyte), "vulkan:1");
  EXPECT_EQ(choose("auto", 10 * kGigabyte), "vulkan:2");
  EXPECT_EQ(choose("auto", 30 * kGigabyte), "cpu:0");
  const std::string text = error("auto", 100 * kGigabyte);
  EXPECT_NE(text.find("no device has 107374182400 bytes free"), std::string::npos) << text;
  for (const char* part :
       {"vulkan:0: 4294967296 bytes (4.00 GiB) free", "vulkan:1: 8589934592 bytes (8.00 GiB) free",
        "vulkan:2: ", "cpu:0: 68719476736 bytes"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(choose("vulkan", 10 * kGigabyte), "vulkan:2");
  EXPECT_EQ(error("vulkan:1", 10 * kGigabyte),
            "vulkan:1: 10737418240 bytes needed, 8589934592 bytes (8.00 GiB) free");
}

TEST_F(SelectionTest, NamesAndAliases) {
  EXPECT_EQ(choose("cpu"), "cpu:0");
  EXPECT_EQ(choose("gpu"), "vulkan:1");
  EXPECT_EQ(choose("vulkan"), "vulkan:1") << "a card before a software device";
  EXPECT_EQ(choose("Vulkan:0"), "vulkan:0");
  EXPECT_EQ(canonical_backend("rocm"), "hip");
  EXPECT_EQ(canonical_backend("mps"), "metal");
  EXPECT_EQ(canonical_backend("oneapi"), "sycl");
  EXPECT_EQ(canonical_backend("wgpu"), "webgpu");
  EXPECT_EQ(backend_of(BackendPreference::Rocm), "hip");
}

TEST_F(SelectionTest, WhatCannotBeHadIsAnErrorWithItsReason) {
  EXPECT_EQ(error("cuda"), "cuda cannot be used: no driver; install it");
  EXPECT_EQ(error("mps"), "metal cannot be used: the framework said no");
  EXPECT_EQ(error("vulkan:7"),
            "there is no vulkan:7; available: vulkan:0 (Fake vulkan:0), vulkan:1 (Fake vulkan:1), "
            "vulkan:2 (Fake vulkan:2)");
  EXPECT_EQ(error("vulcan"),
            "\"vulcan\" is no device; did you mean \"vulkan\"? Valid names: auto, gpu, cuda, hip, "
            "metal, vulkan, cpu");
  EXPECT_EQ(error("vulkan:x"),
            "\"vulkan:x\" is no device; write a backend and a number, such as vulkan:0");
}

TEST_F(SelectionTest, NoGpuListsTheReasons) {
  for (BackendReport& report : reports) {
    if (report.name == "vulkan") report.devices.resize(1);
  }
  const std::string text = error("gpu");
  EXPECT_NE(text.find("no GPU can be used\n  cuda: no driver; install it"), std::string::npos)
      << text;
  EXPECT_NE(text.find("vulkan:0: a software device"), std::string::npos) << text;
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "cpu:0");
  EXPECT_EQ(choice.device.why(), "no GPU was found that Prism can use");
}

TEST_F(SelectionTest, TheEnvironmentNamesTheDevice) {
  candidates.prism_device = "vulkan:2";
  const Choice choice = choose_from(candidates, "auto");
  EXPECT_EQ(choice.device.id(), "vulkan:2");
  EXPECT_EQ(choice.device.why(), "named by PRISM_DEVICE=vulkan:2");
  EXPECT_EQ(choose("gpu"), "vulkan:2");
  EXPECT_EQ(choose("cpu"), "cpu:0") << "a name in the program comes first";
}

TEST_F(SelectionTest, AnAbsentDeviceInTheEnvironmentIsAnErrorEverywhere) {
  candidates.prism_device = "cuda:0";
  const std::string expected = "PRISM_DEVICE=cuda:0: cuda cannot be used: no driver; install it";
  EXPECT_EQ(error("auto"), expected);
  EXPECT_EQ(error("cpu"), expected);
  EXPECT_EQ(error("gpu"), expected);
  candidates.prism_device = "vulkan:5";
  EXPECT_EQ(error("cpu").find("PRISM_DEVICE=vulkan:5: there is no vulkan:5"), 0u);
  candidates.prism_device = "quantum";
  EXPECT_EQ(error("auto").find("PRISM_DEVICE=quantum: \"quantum\" is no device"), 0u);
}

TEST_F(SelectionTest, SummaryHasItsFormat) {
  static_cast<FakeDevice&>(*reports[3].devices[1]).log.used = kGigabyte / 2;
  EXPECT_EQ(summary_text(reports, choose_from(candidates, "auto")),
            "=== Available Backends ===\n"
            "✗ CUDA (CUDA)\n"
            "    Error: no driver; install it\n"
            "✗ HIP (HIP)\n"
            "    Error: no device found\n"
            "✗ Metal (Metal)\n"
            "    Error: the framework said no\n"
            "✓ Vulkan (Vulkan)\n"
            "    [0] Fake vulkan:0: 4.00 GiB (unified memory)\n"
            "    [1] Fake vulkan:1: 8.00 GiB (7.50 GiB free)\n"
            "    [2] Fake vulkan:2: 24.0 GiB (24.0 GiB free)\n"
            "✓ CPU (CPU)\n"
            "    [0] Fake cpu:0: 64.0 GiB (64.0 GiB free)\n"
            "\n"
            "Recommended backend: Vulkan\n"
            "    first in the order of preference; `prism calibrate` lets measurements decide\n");
  static_cast<FakeDevice&>(*reports[3].devices[1]).log.used = 0;
}

}  // namespace
}  // namespace prism
