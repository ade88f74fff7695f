// Creates tensors over a mapped GGUF file; separate, so that the parsers do not depend on tensors.
#include <fmt/format.h>

#include "llm/gguf/expanded_types.h"
#include "prism/llm/gguf.h"
#include "prism/tensor.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {

Tensor GgufFile::tensor(const GgufTensor& tensor) const {
  const std::optional<ElementType> expands = expanded_type(tensor.gguf_type);
  if (!tensor.is_supported() && !expands)
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: tensor {} is of type {}, which Prism cannot compute with; use a "
                            "file with another quantisation, such as Q4_K_M",
                            path(), tensor.name, tensor.type_name()));
  const ElementType type = expands.value_or(tensor.type);
  std::shared_ptr<const std::byte> bytes = memory(tensor);
  if (!bytes) return empty(tensor.shape, type, Device::cpu());
  if (expands)
    bytes = expanded(tensor.gguf_type, bytes.get(), static_cast<uint64_t>(tensor.shape.elements()),
                     cpu_pool());
  return from_host_memory(bytes, tensor.shape, type);
}

}  // namespace prism::llm
