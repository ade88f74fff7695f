// The .safetensors format: a header, then all tensors' bytes.
#include <fmt/format.h>

#include "base/system/output_file.h"
#include "prism/error.h"
#include "prism/io.h"
#include "tensor/io/header_text.h"
#include "tensor/io/safetensors_header.h"
#include "tensor/io/tensor_file.h"

namespace prism {

namespace {

constexpr size_t kAlignment = 8;  // of the first tensor's bytes

}  // namespace

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  std::string header = "{";
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor || name == kSafetensorsMetadata) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("saving {}: \"{}\" {}", path, name,
                              tensor ? "is a reserved name" : "is an empty Tensor"));
    }
    std::string shape;
    for (const int64_t length : tensor.shape())
      shape += fmt::format("{}{}", shape.empty() ? "" : ",", length);
    const uint64_t end =
        offset + static_cast<uint64_t>(tensor.size()) * tensor.dtype().block_bytes();
    header += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", json_quoted(name),
                          safetensors_type_name(path, tensor.dtype()), shape, offset, end);
    offset = end;
  }
  header += '}';
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = header.size();
  OutputFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const auto& [name, tensor] : tensors) file.write(tensor.to_bytes());
  file.commit();
}

std::map<std::string, Tensor> load_safetensors(const std::string& path, const Device& device) {
  const TensorFile file{path, map_file(path, MapAccess::read)};
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : parse_safetensors(path, file.text())) {
    if (entry.f8 != F8Format::none)
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("{}: \"{}\" has floats of 8 bits, which tensors do not have; "
                              "`prism model convert` reads them",
                              path, name));
    tensors.emplace(name, tensor_from(file, entry.bytes, entry.shape, entry.type, device));
  }
  return tensors;
}

}  // namespace prism
