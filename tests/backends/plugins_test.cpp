// Backends in shared libraries: the null backend built as one, and files that are not plug-ins.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "runtime/discovery/plugins.h"
#include "runtime/discovery/registry.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using namespace dsl;

class NamedBackend final : public Backend {
 public:
  explicit NamedBackend(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string label() const override { return name_; }
  Discovery discover() override { return {}; }

 private:
  std::string name_;
};

class Plugins : public testing::Test {
 protected:
  void copy_null(const std::string& as) {
    fs::copy_file(test::binary_dir() / "plugins" / "null.so", folder_.path() / as);
  }
  std::vector<std::unique_ptr<Backend>> with_plugins(const std::vector<std::string>& names) {
    std::vector<std::unique_ptr<Backend>> backends;
    for (const std::string& name : names) backends.push_back(std::make_unique<NamedBackend>(name));
    add_plugins(backends, folder_.path().string());
    return backends;
  }
  test::TemporaryFolder folder_;
};

TEST_F(Plugins, ABackendRunsFromItsLibrary) {
  copy_null("null.so");
  auto backends = with_plugins({"some", "cpu"});
  ASSERT_EQ(backends.size(), 3u);
  EXPECT_EQ(backends[1]->name(), "null") << "before the CPU's";
  const auto reports = find_devices(std::move(backends), "null");
  const auto report =
      std::ranges::find_if(reports, [](const BackendReport& r) { return r.name == "null"; });
  ASSERT_NE(report, reports.end());
  EXPECT_NE(report->found.find("plug-in " + (folder_.path() / "null.so").string()),
            std::string::npos)
      << report->found;
  ASSERT_EQ(report->devices.size(), 1u);
  const Device device(report->devices[0], "a test");
  const Buffer buffer = device.allocate(64);
  const Program program = device.compile(kernel("k", 32, [] {
    auto y = out("y", u32);
    y[local_id()] = 1u;
  }));
  device.queue().launch(program, 1, {buffer}, {});
  device.queue().wait();
  // Thrown in the library, caught here.
  try {
    device.allocate(uint64_t{1} << 60);
    FAIL() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  }
}

TEST_F(Plugins, TakesThePlaceOfItsName) {
  copy_null("another_name.so");
  const auto backends = with_plugins({"null", "cpu"});
  ASSERT_EQ(backends.size(), 2u);
  EXPECT_EQ(backends[0]->name(), "null");
  EXPECT_EQ(backends[0]->discover().devices.size(), 1u) << "still the one that was there";
}

TEST_F(Plugins, WhatIsNoneIsListedWithTheReason) {
  test::write_file(folder_.path() / "empty.so", "");
  test::write_file(folder_.path() / "readme.txt", "left alone");
  test::write_file(folder_.path() / "other.cpp", "extern \"C\" int answer() { return 42; }\n");
  test::write_file(folder_.path() / "crash.cpp",
                   "extern \"C\" void* prism_backend(unsigned long) { return *(void**)8; }\n");
  test::write_file(folder_.path() / "old.cpp",
                   "extern \"C\" void* prism_backend(unsigned long) { return nullptr; }\n");
  for (const std::string name : {"other", "crash", "old"}) {
    const std::string path = (folder_.path() / name).string();
    const auto built = test::run_process(
        {test::host_compiler(), "-shared", "-fPIC", "-o", path + ".so", path + ".cpp"});
    ASSERT_EQ(built.status, 0) << built.output;
  }
  auto backends = with_plugins({"cpu"});
  ASSERT_EQ(backends.size(), 5u);
  const std::pair<const char*, const char*> expected[] = {
      {"crash", "crashed"},
      {"empty", "empty.so"},
      {"old", "another version"},
      {"other", "has no function prism_backend"}};
  for (size_t i = 0; i < 4; ++i) {
    const Discovery found = backends[i]->discover();
    EXPECT_EQ(backends[i]->name(), expected[i].first);
    EXPECT_TRUE(found.devices.empty());
    EXPECT_NE(found.reason.find(expected[i].second), std::string::npos) << found.reason;
    EXPECT_FALSE(found.next_step.empty());
  }
}

TEST_F(Plugins, AFolderThatIsNotThereIsAnError) {
  std::vector<std::unique_ptr<Backend>> backends;
  EXPECT_THROW(add_plugins(backends, (folder_.path() / "none").string()), Error);
  EXPECT_NO_THROW(add_plugins(backends, ""));
}

TEST_F(Plugins, TheProgramTakesThem) {
  copy_null("null.so");
  const auto result = test::run_process({"env", "PRISM_PLUGINS=" + folder_.path().string(),
                                         "PRISM_BACKENDS=null,cpu", test::program().string(),
                                         "devices", "--verbose"});
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("null:0"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("plug-in"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace prism
