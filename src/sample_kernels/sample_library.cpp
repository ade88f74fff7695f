// The list of sample kernels, and the comparison of results.
#include "sample_kernels/sample_library.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "prism/error.h"
#include "sample_kernels/sample_case_tools.h"

namespace prism {
namespace kernels {

uint64_t CaseRandom::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

float CaseRandom::uniform(float low, float high) {
  return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
}

std::vector<float> CaseRandom::floats(size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& v : values) v = uniform(low, high);
  return values;
}

std::vector<uint32_t> CaseRandom::words(size_t count) {
  std::vector<uint32_t> values(count);
  for (uint32_t& v : values) v = static_cast<uint32_t>(next());
  return values;
}

std::vector<uint8_t> CaseRandom::octets(size_t count) {
  std::vector<uint8_t> values(count);
  for (uint8_t& v : values) v = static_cast<uint8_t>(next());
  return values;
}

std::vector<std::byte> poison(size_t elements, DType type) {
  return std::vector<std::byte>(elements * dtype_bytes(type), std::byte{0xff});
}

std::vector<std::byte> stored(const std::vector<float>& values, DType type) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(type));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == DType::f32) {
      std::memcpy(&bytes[i * 4], &values[i], 4);
    } else if (type == DType::f16 || type == DType::bf16) {
      const uint16_t bits = type == DType::f16 ? f16_from_f32(values[i]) : bf16_from_f32(values[i]);
      std::memcpy(&bytes[i * 2], &bits, 2);
    } else {
      const auto number = static_cast<int32_t>(values[i]);
      std::memcpy(&bytes[i * dtype_bytes(type)], &number, dtype_bytes(type));
    }
  }
  return bytes;
}

namespace {

template <class T>
T read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

double element_at(const std::vector<std::byte>& bytes, size_t i, DType type) {
  const std::byte* at = bytes.data() + i * dtype_bytes(type);
  switch (type) {
    case DType::i8:
      return read_as<int8_t>(at);
    case DType::u8:
      return read_as<uint8_t>(at);
    case DType::i16:
      return read_as<int16_t>(at);
    case DType::u16:
      return read_as<uint16_t>(at);
    case DType::i32:
      return read_as<int32_t>(at);
    case DType::b1:
    case DType::u32:
      return read_as<uint32_t>(at);
    case DType::i64:
      return static_cast<double>(read_as<int64_t>(at));
    case DType::u64:
      return static_cast<double>(read_as<uint64_t>(at));
    case DType::f16:
      return f32_from_f16(read_as<uint16_t>(at));
    case DType::bf16:
      return f32_from_bf16(read_as<uint16_t>(at));
    case DType::f32:
      return read_as<float>(at);
    case DType::f64:
      return read_as<double>(at);
  }
  return 0;
}

}  // namespace

std::vector<double> rounded(const std::vector<float>& values, DType type) {
  const std::vector<std::byte> bytes = stored(values, type);
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = element_at(bytes, i, type);
  return result;
}

uint32_t groups_for(uint64_t count, uint32_t each) {
  return static_cast<uint32_t>((count + each - 1) / each);
}

}  // namespace kernels

const std::vector<SampleKernel>& sample_kernels() {
  static const std::vector<SampleKernel> list = [] {
    std::vector<SampleKernel> all;
    kernels::add_elementwise(all);
    kernels::add_rows(all);
    kernels::add_atomics(all);
    kernels::add_matmul(all);
    kernels::add_fragments(all);
    kernels::add_philox(all);
    kernels::add_limits(all);
    return all;
  }();
  return list;
}

const SampleKernel& find_sample_kernel(const std::string& name) {
  std::string names;
  for (const SampleKernel& kernel : sample_kernels()) {
    if (kernel.name == name) return kernel;
    names += (names.empty() ? "" : ", ") + kernel.name;
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("kernel {}: there is no such kernel; valid names: {}", name, names));
}

std::string compare(const KernelCase& expected, const ir::Kernel& kernel,
                    std::span<const std::vector<std::byte>> contents) {
  if (expected.verify)
    if (std::string wrong = expected.verify(contents); !wrong.empty()) return wrong;
  const std::vector<uint32_t> buffers = kernel.buffers();
  for (size_t b = 0; b < expected.expected.size(); ++b) {
    const std::vector<double>& want = expected.expected[b];
    if (want.empty()) continue;
    const ir::Memory& memory = kernel.memories[buffers[b]];
    double error = 0, power = 0, worst = -1;
    size_t worst_at = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double got = kernels::element_at(contents[b], i, memory.element);
      if (got == want[i] || (std::isnan(got) && std::isnan(want[i]))) {
        if (std::isfinite(want[i])) power += want[i] * want[i];
        continue;
      }
      const double off = got - want[i];
      const double size = std::isfinite(off) ? off * off : HUGE_VAL;
      error += size;
      if (std::isfinite(want[i])) power += want[i] * want[i];
      if (size > worst) worst = size, worst_at = i;
    }
    if (worst < 0) continue;
    const double normalised = power > 0 ? error / power : error;
    if (expected.tolerance == 0 || !(normalised <= expected.tolerance))
      return fmt::format("{}[{}] is {}, expected {} (normalised error {:.3g}, allowed {:.3g})",
                         memory.name, worst_at,
                         kernels::element_at(contents[b], worst_at, memory.element), want[worst_at],
                         normalised, expected.tolerance);
  }
  return "";
}

}  // namespace prism
