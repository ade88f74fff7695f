// The backend list is complete for any build options, and in order of preference.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/unavailable_backend.h"
#include "prism/device.h"
#include "runtime/discovery/backend_list.h"

namespace prism {
namespace {

std::vector<std::string> listed_names() {
  std::vector<std::string> names;
  for (const BackendMaker& maker : backend_makers()) {
    names.emplace_back(maker.name);
    EXPECT_EQ(maker.make()->name(), maker.name);
  }
  return names;
}

TEST(BackendList, HoldsEveryNameOnceInTheOrderOfPreference) {
  const std::vector<std::string> order = {"cuda",   "hip",    "metal", "sycl", "vulkan",
                                          "opencl", "webgpu", "cpu",   "null"};
  EXPECT_EQ(listed_names(), order);
}

TEST(BackendList, AnUnavailableBackendSaysWhyAndWhatToDo) {
  const auto backend = make_unavailable_backend("some", "Some", "was left out", "put it in");
  EXPECT_EQ(backend->name(), "some");
  EXPECT_EQ(backend->label(), "Some");
  const Discovery discovery = backend->discover();
  EXPECT_TRUE(discovery.devices.empty());
  EXPECT_EQ(discovery.reason, "was left out");
  EXPECT_EQ(discovery.next_step, "put it in");
}

}  // namespace
}  // namespace prism
