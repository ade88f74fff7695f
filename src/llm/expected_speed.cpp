// Bytes over bandwidth, operations over rate.
#include "llm/expected_speed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "cpu/matmul.h"
#include "runtime/device_records.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {

namespace {

// The share of a copy's bandwidth that decoding is taken to reach, and of a product's rate that a
// prompt is. Assumed, not fitted: 0.4 and 0.8 of an H200's copy are the 450 and 850 tokens/s of a
// 7B model in Q4_K_M that are its floor and its aim.
constexpr double kDecodeShare = 0.7, kPromptShare = 0.4;

double seconds_of(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

double measure_bandwidth() {
  constexpr uint64_t kWords = 16 << 20;  // 128 MB: beyond any cache but the largest servers'
  const std::vector<uint64_t> words(kWords, 1);
  std::atomic<uint64_t> sum{0};
  double best = 1e9;
  for (int i = 0; i < 3; ++i)
    best = std::min(best, seconds_of([&] {
                      cpu_pool().parallel_for(kWords, 1 << 18, [&](uint64_t first, uint64_t last) {
                        uint64_t part = 0;
                        for (uint64_t w = first; w < last; ++w) part += words[w];
                        sum += part;
                      });
                    }));
  return sum > 0 ? kWords * sizeof(uint64_t) / best : 0;
}

double measure_rate() {
  constexpr size_t kSide = 512;
  const std::vector<float> a(kSide * kSide, 1.0f), b = a;
  std::vector<float> c(kSide * kSide);
  double best = 1e9;
  for (int i = 0; i < 3; ++i)
    best = std::min(best, seconds_of([&] {
                      cpu::matmul_f32(cpu_pool(), kSide, kSide, kSide, a.data(), kSide, false,
                                      b.data(), kSide, true, c.data(), kSide);
                    }));
  return 2.0 * kSide * kSide * kSide / best;
}

}  // namespace

ExpectedSpeed expected_speed(const std::vector<SpeedPart>& parts, const ModelSizes& sizes) {
  const double used = sizes.experts > 0 ? static_cast<double>(sizes.experts_used) /
                                              static_cast<double>(sizes.experts)
                                        : 1.0;
  uint64_t bytes = 0;
  for (const SpeedPart& part : parts) bytes += part.read_bytes + part.expert_bytes;
  double decode = 0, prompt = 0;  // seconds a token
  for (const SpeedPart& part : parts) {
    const double active =
        static_cast<double>(part.read_bytes) + used * static_cast<double>(part.expert_bytes);
    if (active == 0) continue;
    if (part.device->bandwidth <= 0) return {};
    decode += active / (part.device->bandwidth * kDecodeShare);
    if (part.device->f16_rate > 0)
      prompt += 2 * static_cast<double>(sizes.parameters) * active / static_cast<double>(bytes) /
                (part.device->f16_rate * kPromptShare);
  }
  return {decode > 0 ? 1 / decode : 0, prompt > 0 ? 1 / prompt : 0};
}

std::optional<HostSpeed> known_host_speed(const Device& cpu) {
  const auto record = read_device_record("host-speed", cpu.info());
  if (!record || !record->contains("bandwidth") || !record->contains("f16_rate"))
    return std::nullopt;
  const HostSpeed speed{std::strtod(record->at("bandwidth").c_str(), nullptr),
                        std::strtod(record->at("f16_rate").c_str(), nullptr)};
  if (speed.bandwidth <= 0) return std::nullopt;
  return speed;
}

HostSpeed measure_host_speed(const Device& cpu) {
  const HostSpeed speed{measure_bandwidth(), measure_rate()};
  write_device_record("host-speed", cpu.info(),
                      {{"bandwidth", std::to_string(speed.bandwidth)},
                       {"f16_rate", std::to_string(speed.f16_rate)}});
  return speed;
}

}  // namespace prism::llm
