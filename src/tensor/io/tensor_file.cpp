// save() and load(): the choice of the format, and the checks that all formats share.
#include "tensor/io/tensor_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/io.h"
#include "tensor/io/header_text.h"
#include "tensor/io/npy_header.h"

namespace prism {

std::string_view TensorFile::text() const {
  return {reinterpret_cast<const char*>(mapped.data.get()), static_cast<size_t>(mapped.bytes)};
}

Tensor tensor_from(const TensorFile& file, std::string_view bytes, const Shape& shape, DType type,
                   const Device& device) {
  const uint64_t needed = static_cast<uint64_t>(shape.elements()) * ElementType(type).block_bytes();
  if (bytes.size() != needed) {
    fail_loading(file.path,
                 fmt::format("{} bytes of elements, shape {} of type {} takes {}", bytes.size(),
                             shape.text(), ElementType(type).name(), needed));
  }
  if (type == DType::b1 &&
      std::ranges::any_of(bytes, [](char c) { return static_cast<uint8_t>(c) > 1; }))
    fail_loading(file.path, "a truth value that is neither 0 nor 1");
  return from_bytes(std::as_bytes(std::span(bytes)), shape, type, device);
}

void save(const std::string& path, const Tensor& tensor) {
  if (!tensor)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("saving {}: an empty Tensor", path));
  if (path.ends_with(".npy")) return write_npy(path, tensor);
  if (path.ends_with(".safetensors")) return save_safetensors(path, {{"tensor", tensor}});
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("saving {}: the path must end in .npy or .safetensors", path));
}

Tensor load(const std::string& path, const Device& device) {
  {
    const TensorFile file{path, map_file(path, MapAccess::read)};
    if (is_npy(file.text())) return read_npy(file, device);
  }
  const std::map<std::string, Tensor> tensors = load_safetensors(path, device);
  if (tensors.size() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("loading {}: it holds {} tensors, not one; use load_safetensors()",
                            path, tensors.size()));
  }
  return tensors.begin()->second;
}

}  // namespace prism
