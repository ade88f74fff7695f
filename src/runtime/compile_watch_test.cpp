#include "runtime/compile_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "prism/device.h"
#include "prism/kernel.h"
#include "support/devices/fake_device.h"

namespace prism {
namespace {

Kernel fill(const char* name) {
  using namespace dsl;
  return kernel(name, 64, [] {
    auto y = out("y", f32);
    y[global_id()] = 1.0f;
  });
}

TEST(CompileWatchTest, ReportsEachCompilationOnce) {
  const auto driver = std::make_shared<test::FakeDevice>("fake:0");
  const Device device(driver, "test");
  std::vector<std::string> seen;
  set_compile_watch({.begins = [&](const std::string& id) { seen.push_back("begin " + id); },
                     .ends = [&] { seen.push_back("end"); }});
  const std::vector<std::string> once = {"begin fake:0", "end"};
  device.compile(fill("one"));
  EXPECT_EQ(seen, once);
  device.compile(fill("one"));
  EXPECT_EQ(seen, once) << "a known kernel is not compiled again";
  seen.clear();
  const std::vector<ir::Kernel> two = {fill("two"), fill("three")};
  device.compile_together(two);
  EXPECT_EQ(seen, once) << "kernels that are compiled together are one compilation";
  set_compile_watch({});
  device.compile(fill("four"));
  EXPECT_EQ(seen, once);
}

}  // namespace
}  // namespace prism
