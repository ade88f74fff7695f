// Small tools for writing the cases of library kernels: random inputs, bytes, expected values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "prism/dtype.h"
#include "sample_kernels/sample_library.h"

namespace prism::kernels {

// splitmix64: small, and good enough for test inputs.
class CaseRandom {
 public:
  explicit CaseRandom(uint64_t seed) : state_(seed) {}
  uint64_t next();
  float uniform(float low, float high);
  std::vector<float> floats(size_t count, float low = -1, float high = 1);
  std::vector<uint32_t> words(size_t count);
  std::vector<uint8_t> octets(size_t count);

 private:
  uint64_t state_;
};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  return std::vector<double>(values.begin(), values.end());
}

// What an output holds before the launch: NaN as float, all ones as integer.
std::vector<std::byte> poison(size_t elements, DType type);

// Values rounded to a stored type, and the bytes that hold them.
std::vector<std::byte> stored(const std::vector<float>& values, DType type);
std::vector<double> rounded(const std::vector<float>& values, DType type);

uint32_t groups_for(uint64_t count, uint32_t each);

// The entries of each file, in the order of the library.
void add_elementwise(std::vector<SampleKernel>& list);
void add_rows(std::vector<SampleKernel>& list);
void add_atomics(std::vector<SampleKernel>& list);
void add_matmul(std::vector<SampleKernel>& list);
void add_fragments(std::vector<SampleKernel>& list);
void add_philox(std::vector<SampleKernel>& list);
void add_limits(std::vector<SampleKernel>& list);

}  // namespace prism::kernels
