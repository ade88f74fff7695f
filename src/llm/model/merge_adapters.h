// Writes a model with LoRA adapters added to its weights.
#pragma once

#include <span>
#include <string>

#include "llm/gguf/quantise_file.h"
#include "prism/llm/adapter.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

// Tensors that the adapters change are unpacked, changed and rounded to their type again; all
// others are copied. mix: the types of the result; null: those of the file. Throws as Adapters and
// quantise_file do, and kNotSupported for a type that Prism cannot write.
QuantiseResult merge_adapters(const GgufFile& file, std::span<const LoraAdapter> adapters,
                              const std::string& to, const QuantiseMix* mix,
                              QuantiseOptions options = {});

}  // namespace prism::llm
