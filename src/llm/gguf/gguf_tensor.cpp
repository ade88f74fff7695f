// Tensors over the mapping of a GGUF file, apart so that its parsers need nothing of tensors.
#include <fmt/format.h>

#include "prism/llm/gguf.h"
#include "prism/tensor.h"

namespace prism::llm {

Tensor GgufFile::tensor(const GgufTensor& tensor) const {
  if (!tensor.is_supported())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: tensor {} is of type {}, which Prism cannot compute with; take a "
                            "file of another quantisation, such as Q4_K_M",
                            path(), tensor.name, tensor.type_name()));
  const std::shared_ptr<const std::byte> bytes = memory(tensor);
  if (!bytes) return empty(tensor.shape, tensor.type, Device::cpu());
  return from_host_memory(bytes, tensor.shape, tensor.type);
}

}  // namespace prism::llm
