// The examples of README and docs, run as a user would, on every device found.
#include <gtest/gtest.h>

#include "prism/device.h"
#include "runtime/driver.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

ProcessResult run_example(const std::string& name, const std::string& device) {
  return run_process({(binary_dir() / ("example_" + name)).string(), device});
}

TEST(Examples, RunOnEveryDevice) {
  int devices = 0;
  for (const BackendReport& report : discover_backends()) {
    for (const auto& device : report.devices) {
      const std::string id = device->info().id;
      const ProcessResult add = run_example("vector_add", id);
      EXPECT_EQ(add.status, 0) << add.output;
      EXPECT_EQ(add.output, "11 22 33 on " + id + "\n");
      const ProcessResult own = run_example("own_kernel", id);
      EXPECT_EQ(own.status, 0) << own.output;
      EXPECT_NE(own.output.find("device: " + id), std::string::npos) << own.output;
      const ProcessResult tensors = run_example("tensors", id);
      EXPECT_EQ(tensors.status, 0) << tensors.output;
      EXPECT_EQ(tensors.output.find("loss 3.25, gradient\n"), 0u) << tensors.output;
      EXPECT_NE(tensors.output.find("f32[2, 2] on " + id), std::string::npos) << tensors.output;
      ++devices;
    }
  }
  EXPECT_GT(devices, 0);
}

// It succeeds only if the network learned the spirals.
TEST(Examples, SpiralLearnsOnEveryDevice) {
  for (const BackendReport& report : discover_backends()) {
    for (const auto& device : report.devices) {
      const std::string id = device->info().id;
      const ProcessResult spiral = run_example("spiral", id);
      EXPECT_EQ(spiral.status, 0) << spiral.output;
      EXPECT_NE(spiral.output.find(" on " + id + "\n"), std::string::npos) << spiral.output;
    }
  }
}

TEST(Examples, GenerateContinuesATale) {
  const std::string model = shared_model("stories260K");
  if (model.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  const ProcessResult tale =
      run_process({(binary_dir() / "example_generate").string(), model, "Once upon a time"});
  EXPECT_EQ(tale.status, 0) << tale.output;
  EXPECT_EQ(tale.output.find(", there was a little girl named Lily. She loved to play outside"), 0u)
      << tale.output;
}

TEST(Examples, AnAbsentDeviceIsTold) {
  const ProcessResult result = run_example("own_kernel", "cpu:9");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output,
            "error: there is no cpu:9; available: cpu:0 (" + Device::cpu().name() + ")\n");
}

}  // namespace
}  // namespace prism::test
