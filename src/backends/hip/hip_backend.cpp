// Finds the ROCm runtime, its compiler and the cards, and reports what is missing.
#include "backends/hip/hip_backend.h"

#include <fmt/format.h>

#include "backends/hip/hip_cards.h"
#include "backends/hip/hip_device.h"

namespace prism {
namespace {

using namespace hip;

class HipBackend final : public Backend {
 public:
  std::string name() const override { return "hip"; }
  std::string label() const override { return "HIP"; }
  Discovery discover() override;
};

Discovery HipBackend::discover() {
  Discovery discovery;
  Absence absence;
  const std::shared_ptr<Api> api = open_api(&absence);
  if (!api) {
    discovery.reason = absence.reason;
    discovery.next_step = absence.next_step;
    return discovery;
  }
  discovery.found = fmt::format("{} HIP {}", api->library.name(), api->version_text());
  int count = 0;
  const Result counted = api->device_count(&count);
  if (counted != kSuccess && counted != kNoDevice && counted != kNoBinaryForGpu) {
    discovery.reason = "ROCm cannot count its devices: " + api->words(counted);
    discovery.next_step = "see what rocminfo says";
    return discovery;
  }
  if (counted != kSuccess || count == 0) {
    const Absence unknown = no_known_card(api->version_text());
    discovery.reason = unknown.reason;
    discovery.next_step = unknown.next_step;
    return discovery;
  }
  std::string no_compiler;
  const std::shared_ptr<Hiprtc> compiler = Hiprtc::open(api->library, &no_compiler);
  if (compiler)
    discovery.found += fmt::format(", {} {}", compiler->library(), compiler->version_text());

  for (int index = 0; index < count; ++index) {
    const std::string gfx = api->gfx(index);
    DeviceInfo info = describe_device(*api, index, gfx);
    std::string why, next_step;
    if (!compiler) {
      why = no_compiler;
      next_step =
          "install ROCm's hiprtc; until then the card is used through Vulkan where it can be";
    } else if (gfx.empty()) {
      why = "ROCm does not report the chip's gfx number";
      next_step = "update ROCm, or use the card through Vulkan";
    } else if (const std::string refusal = compiler->refusal_of(gfx); !refusal.empty()) {
      why = fmt::format("hiprtc {} does not compile for {} ({})", compiler->version_text(), gfx,
                        refusal);
      next_step = other_ways(gfx);
    } else {
      info.driver += ", hiprtc " + compiler->version_text();
      discovery.devices.push_back(
          std::make_shared<HipDevice>(api, index, std::move(info), compiler, gfx));
      continue;
    }
    discovery.reason += (discovery.reason.empty() ? "" : "; ") + info.name + ": " + why;
    if (discovery.next_step.empty()) discovery.next_step = next_step;
  }
  return discovery;
}

}  // namespace

std::unique_ptr<Backend> make_hip_backend() { return std::make_unique<HipBackend>(); }

}  // namespace prism
