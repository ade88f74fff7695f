// Language models over the ROCm double: as one of four kinds of devices, and the default model.
#include <algorithm>
#include <iostream>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "prism/llm/language_model.h"
#include "support/devices/devices.h"
#include "support/doubles/double_models.h"
#include "support/doubles/use_hip_double.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "tensor/storage.h"

namespace prism::llm {
namespace {

using test::greedy;
using test::HipDouble;

TEST(HipModels, SplitOverFourKindsOfDevicesGivesTheSameText) {
  const std::string path = test::shared_model("stories260K");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  // The CPU, devices of two other backends, and the double. Intel's compilers would take minutes.
  std::vector<Device> kinds = {Device::cpu()};
  for (const Device& device : test::every_device()) {
    const DeviceInfo& info = device.info();
    const bool is_known = std::ranges::any_of(
        kinds, [&](const Device& other) { return other.backend() == info.backend; });
    const bool is_intel = info.backend == "sycl" || test::is_intels_opencl(info);
    if (!is_known && !is_intel && info.backend != "hip") kinds.push_back(device);
  }
  if (kinds.size() < 3) GTEST_SKIP() << "needs devices of two backends beside the CPU";
  HipDouble the_double;
  the_double.set("memory=4294967296");
  const Device hip = the_double.device();
  kinds.insert(kinds.begin() + 2, hip);
  {
    const GgufFile file = GgufFile::open(path);
    Placement placement = place_on(file, kinds[0], 64, DType::f32);
    for (size_t i = 0; i < placement.layers.size(); ++i)
      placement.layers[i] = kinds[i % kinds.size()];
    placement.output = kinds.back();
    LanguageModel model = LanguageModel::load(path, placement, {.batch_rows = 16});
    EXPECT_GE(model.memory().size(), 4u);
    for (const ModelMemory& each : model.memory())
      std::cout << each.device.id() << ": " << each.weight_bytes << " bytes of weights\n";
    constexpr int64_t kTokens = 12;
    const std::vector<int32_t> ids =
        test::expected_text("stories260K.once", "stories260K.once.f32").ids;
    EXPECT_EQ(model.generate("Once upon a time", greedy(kTokens)).tokens,
              std::vector<int32_t>(ids.begin() + 5, ids.begin() + 5 + kTokens));
  }
  release_pooled_memory(hip);
}

// Takes half a minute with a double, so only make test-devices runs it, by name.
TEST(HipModels, DISABLED_DefaultModelGivesTheCpusTokens) {
  HipDouble the_double;
  test::expect_default_model_gives_the_cpus_tokens(the_double);
}

}  // namespace
}  // namespace prism::llm
