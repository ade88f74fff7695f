// Estimates how fast a model will run on calibrated devices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prism/llm/fit.h"
#include "prism/llm/memory.h"

namespace prism::llm {

// The part of a model that one device holds.
struct SpeedPart {
  const FitDevice* device = nullptr;
  uint64_t read_bytes = 0;    // read for every token
  uint64_t expert_bytes = 0;  // of these, experts: a token reads only those it uses
};

struct ExpectedSpeed {
  double tokens_per_second = 0, prompt_tokens_per_second = 0;  // 0: some device is not calibrated
};
ExpectedSpeed expected_speed(const std::vector<SpeedPart>& parts, const ModelSizes& sizes);

// Throughput of the native CPU kernels (the CPU device's calibration is for its interpreter).
struct HostSpeed {
  double bandwidth = 0;       // bytes per second, all threads reading memory
  double f16_rate = 0;        // matmul operations per second
  double quantised_rate = 0;  // the same with quantised weights
};
std::optional<HostSpeed> known_host_speed(const Device& cpu);  // from an earlier measurement
// Takes a third of a second. Stores and returns the best of this and earlier measurements, because
// a busy machine measures too low.
HostSpeed measure_host_speed(const Device& cpu);

}  // namespace prism::llm
