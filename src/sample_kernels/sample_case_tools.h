// Helpers to write the cases of sample kernels: random inputs, bytes, expected values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "prism/dtype.h"
#include "sample_kernels/sample_library.h"

namespace prism::kernels {

// splitmix64: small, and sufficient for test inputs.
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

// The initial contents of an output: NaN for floats, all ones for integers.
std::vector<std::byte> poison(size_t elements, DType type);

// Values rounded to a stored type, and their bytes.
std::vector<std::byte> stored(const std::vector<float>& values, DType type);
std::vector<double> rounded(const std::vector<float>& values, DType type);

uint32_t groups_for(uint64_t count, uint32_t each);

// The entries of each file, in library order.
void add_elementwise(std::vector<SampleKernel>& list);
void add_rows(std::vector<SampleKernel>& list);
void add_atomics(std::vector<SampleKernel>& list);
void add_matmul(std::vector<SampleKernel>& list);
void add_fragments(std::vector<SampleKernel>& list);
void add_philox(std::vector<SampleKernel>& list);
void add_limits(std::vector<SampleKernel>& list);

}  // namespace prism::kernels
