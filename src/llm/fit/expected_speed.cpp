// Estimates speed as bytes over bandwidth and operations over throughput.
#include "llm/fit/expected_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "base/types/block_formats.h"
#include "cpu/products/matmul.h"
#include "cpu/products/quantised_product.h"
#include "runtime/device_records.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {

namespace {

// The fraction of copy bandwidth that decoding is assumed to reach, and of matmul throughput that
// prefill is. Assumed, not fitted: on an H200, 0.4 and 0.8 of copy bandwidth give 450 and 850
// tokens/s for a 7B model in Q4_K_M, the minimum and the goal.
constexpr double kDecodeShare = 0.7, kPromptShare = 0.4;

uint64_t row_bytes(BlockType type, uint64_t k) {
  return k / block_info(type).elements * block_info(type).bytes;
}

double seconds_of(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// Matmuls with one-byte weights: with a single row they are limited by memory bandwidth.
double quantised_seconds(uint64_t weight_rows, uint64_t k, uint64_t rows) {
  const std::vector<uint8_t> weights(weight_rows * row_bytes(BlockType::q8_0, k));
  const std::vector<float> x(rows * k, 1.0f);
  std::vector<float> y(rows * weight_rows);
  const ThreadPool::Busy busy(cpu_pool());
  double best = 1e9;
  for (int i = 0; i < 12; ++i)
    best =
        std::min(best, seconds_of([&] {
                   cpu::quantised_product(cpu_pool(), BlockType::q8_0, weights.data(), weight_rows,
                                          k, x.data(), rows, k, y.data(), weight_rows);
                 }));
  return best;
}

double measure_bandwidth() {
  constexpr uint64_t kRows = 32 << 10, kLength = 4096;  // 143 MB: larger than most caches
  const auto bytes = static_cast<double>(kRows * row_bytes(BlockType::q8_0, kLength));
  return bytes / quantised_seconds(kRows, kLength, 1);
}

double measure_quantised_rate() {
  constexpr uint64_t kRows = 4096, kLength = 2048, kBatch = 512;
  return 2.0 * kRows * kLength * kBatch / quantised_seconds(kRows, kLength, kBatch);
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
  double decode = 0, prompt = 0;  // seconds per token
  for (const SpeedPart& part : parts) {
    const double active =
        static_cast<double>(part.read_bytes) + used * static_cast<double>(part.expert_bytes);
    if (active == 0) continue;
    if (part.device->bandwidth <= 0) return {};
    decode += active / (part.device->bandwidth * kDecodeShare);
    const bool is_quantised =
        static_cast<double>(bytes) < 1.5 * static_cast<double>(sizes.parameters);
    const double rate = is_quantised ? std::max(part.device->quantised_rate, part.device->f16_rate)
                                     : part.device->f16_rate;
    if (rate > 0)
      prompt += 2 * static_cast<double>(sizes.parameters) * active / static_cast<double>(bytes) /
                (rate * kPromptShare);
  }
  return {decode > 0 ? 1 / decode : 0, prompt > 0 ? 1 / prompt : 0};
}

std::optional<HostSpeed> known_host_speed(const Device& cpu) {
  const auto record = read_device_record("host-speed", cpu.info());
  if (!record) return std::nullopt;
  const auto number = [&](const char* key) {
    const auto at = record->find(key);
    return at == record->end() ? 0.0 : std::strtod(at->second.c_str(), nullptr);
  };
  const HostSpeed speed{number("bandwidth"), number("f16_rate"), number("quantised_rate")};
  if (!(speed.bandwidth > 0 && speed.f16_rate > 0 && speed.quantised_rate > 0)) return std::nullopt;
  return speed;
}

HostSpeed measure_host_speed(const Device& cpu) {
  const HostSpeed before = known_host_speed(cpu).value_or(HostSpeed{});
  const HostSpeed speed{std::max(before.bandwidth, measure_bandwidth()),
                        std::max(before.f16_rate, measure_rate()),
                        std::max(before.quantised_rate, measure_quantised_rate())};
  write_device_record("host-speed", cpu.info(),
                      {{"bandwidth", std::to_string(speed.bandwidth)},
                       {"f16_rate", std::to_string(speed.f16_rate)},
                       {"quantised_rate", std::to_string(speed.quantised_rate)}});
  return speed;
}

}  // namespace prism::llm
