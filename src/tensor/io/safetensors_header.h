// The header of a .safetensors file: the name, type, shape and place of each tensor.
// https://huggingface.co/docs/safetensors
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "prism/element_type.h"
#include "prism/shape.h"

namespace prism {

// Floats of 8 bits, which tensors do not have; readers that know them convert them.
enum class F8Format : uint8_t { none, e4m3, e8m0 };

struct SafetensorsEntry {
  DType type = DType::f32;  // u8 for floats of 8 bits
  Shape shape;
  std::string_view bytes;  // inside the file
  F8Format f8 = F8Format::none;
};

// Parses a whole file; the path is for messages. Throws kCorruptFile, and kNotSupported for
// elements that neither tensors nor F8Format have. Does not look at the elements.
std::map<std::string, SafetensorsEntry> parse_safetensors(const std::string& path,
                                                          std::string_view file);

// The name of a type in the header. Throws kInvalidArgument if the format lacks it.
std::string_view safetensors_type_name(const std::string& path, ElementType type);

inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";  // not a tensor

}  // namespace prism
