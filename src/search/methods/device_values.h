// Moves the inputs and results of searches between the host and a device.
#pragma once

#include <span>
#include <vector>

#include "prism/device.h"
#include "prism/ops/nearest.h"
#include "prism/tensor.h"
#include "search/methods/searcher.h"

namespace prism::search {

template <class T>
Tensor upload_values(std::span<const T> values, const Shape& shape, const Device& device) {
  return from_bytes(std::as_bytes(values), shape, dtype_of<T>(), device);
}

inline NearestInputs inputs_of(Metric metric, const Tensor& factors, const Tensor& allowed) {
  NearestInputs more;
  if (factors) (metric == Metric::cosine ? more.norms : more.scales) = factors;
  more.allowed = allowed;
  return more;
}

inline Tensor query_tensor(const Wanted& wanted, const Device& device) {
  const std::vector<std::byte> bytes = scan_queries(wanted);
  const auto count = static_cast<int64_t>(wanted.query_count());
  const DType type = wanted.rows.metric == Metric::hamming ? DType::u8 : DType::f32;
  return from_bytes(bytes, {count, static_cast<int64_t>(wanted.rows.width)}, type, device);
}

// The results of rows that begin at `first`. Reading the scores takes a second copy.
inline Found read_results(const std::vector<Tensor>& outputs, uint64_t first,
                          bool has_scores = true) {
  const auto indices = outputs[1].to_vector<int32_t>();
  const auto scores =
      has_scores ? outputs[0].to_vector<float>() : std::vector<float>(indices.size());
  Found found(indices.size());
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] >= 0) found[i] = {first + static_cast<uint64_t>(indices[i]), scores[i]};
  return found;
}

}  // namespace prism::search
