// What the formats of tensor files share: the mapped file and its checks.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/system/mapped_file.h"
#include "prism/tensor.h"

namespace prism {

struct TensorFile {
  std::string path;
  MappedFile mapped;

  std::string_view text() const;  // the whole file
};

// The tensor in these bytes of a file. Checks their number, and that truth values are 0 or 1.
Tensor tensor_from(const TensorFile& file, std::string_view bytes, const Shape& shape, DType type,
                   const Device& device);

Tensor read_npy(const TensorFile& file, const Device& device);
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace prism
