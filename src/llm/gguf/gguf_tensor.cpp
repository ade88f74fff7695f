// Creates tensors over a mapped GGUF file; separate, so that the parsers do not depend on tensors.
#include <fmt/format.h>

#include "prism/llm/gguf.h"
#include "prism/tensor.h"

namespace prism::llm {

Tensor GgufFile::tensor(const GgufTensor& tensor) const {
  if (!tensor.is_supported())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: tensor {} is of type {}, which Prism cannot compute with; use a "
                            "file with another quantisation, such as Q4_K_M",
                            path(), tensor.name, tensor.type_name()));
  const std::shared_ptr<const std::byte> bytes = memory(tensor);
  if (!bytes) return empty(tensor.shape, tensor.type, Device::cpu());
  return from_host_memory(bytes, tensor.shape, tensor.type);
}

}  // namespace prism::llm
