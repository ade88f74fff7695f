// How fast a model will be on devices that were measured.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prism/llm/fit.h"
#include "prism/llm/memory.h"

namespace prism::llm {

// What a device holds of a model.
struct SpeedPart {
  const FitDevice* device = nullptr;
  uint64_t read_bytes = 0;    // by every token
  uint64_t expert_bytes = 0;  // of which a token reads the experts it uses
};

struct ExpectedSpeed {
  double tokens_per_second = 0, prompt_tokens_per_second = 0;  // 0: some device was not measured
};
ExpectedSpeed expected_speed(const std::vector<SpeedPart>& parts, const ModelSizes& sizes);

// What the native CPU kernels reach (the calibration of the CPU device is that of its interpreter).
struct HostSpeed {
  double bandwidth = 0;       // bytes a second that all threads together read from memory
  double f16_rate = 0;        // operations a second of a product
  double quantised_rate = 0;  // of one with quantised weights
};
std::optional<HostSpeed> known_host_speed(const Device& cpu);  // kept by an earlier measurement
// A third of a second. Kept, and returned, is the best of this and earlier measurements: what a
// machine that was busy reached is not what it allows.
HostSpeed measure_host_speed(const Device& cpu);

}  // namespace prism::llm
