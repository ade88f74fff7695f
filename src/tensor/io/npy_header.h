// The header of a .npy file: element type, order and shape.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <string>
#include <string_view>

#include "prism/element_type.h"
#include "prism/shape.h"

namespace prism {

struct NpyHeader {
  DType type = DType::f32;
  bool fortran_order = false;  // the first axis varies fastest
  Shape shape;
  size_t elements_at = 0;  // where the elements begin, in bytes
};

bool is_npy(std::string_view file);
// Parses a whole file; the path is for messages. Throws kCorruptFile, and kNotSupported for
// elements that tensors do not have. Does not look at the elements.
NpyHeader parse_npy(const std::string& path, std::string_view file);
// The header as text for these elements: all bytes of a file before its elements. Throws
// kInvalidArgument if the format lacks the type.
std::string npy_header_text(const std::string& path, ElementType type, const Shape& shape);

}  // namespace prism
