// The header of a .safetensors file: the name, type, shape and place of each tensor.
// https://huggingface.co/docs/safetensors
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "prism/element_type.h"
#include "prism/shape.h"

namespace prism {

struct SafetensorsEntry {
  DType type = DType::f32;
  Shape shape;
  std::string_view bytes;  // inside the file
};

// Parses a whole file; the path is for messages. Throws kCorruptFile, and kNotSupported for
// elements that tensors do not have. Does not look at the elements.
std::map<std::string, SafetensorsEntry> parse_safetensors(const std::string& path,
                                                          std::string_view file);

// The name of a type in the header. Throws kInvalidArgument if the format lacks it.
std::string_view safetensors_type_name(const std::string& path, ElementType type);

inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";  // not a tensor

}  // namespace prism
