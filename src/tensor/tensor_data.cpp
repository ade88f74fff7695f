// Conversion of tensors to and from numbers, mapped files and readable text.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

#include <fmt/format.h>

#include "base/system/mapped_file.h"
#include "prism/error.h"
#include "prism/tensor.h"
#include "tensor/chain/chain_op.h"

namespace prism {

namespace {

double element_at(const std::byte* data, size_t i, DType type) {
  const auto get = [&]<class T>(T) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (type) {
    case DType::f32:
      return static_cast<double>(get(float{}));
    case DType::f64:
      return get(double{});
    case DType::f16:
      return static_cast<double>(f32_from_f16(get(uint16_t{})));
    case DType::bf16:
      return static_cast<double>(f32_from_bf16(get(uint16_t{})));
    case DType::i8:
      return get(int8_t{});
    case DType::i16:
      return get(int16_t{});
    case DType::i32:
      return get(int32_t{});
    case DType::i64:
      return static_cast<double>(get(int64_t{}));
    default:
      return get(uint8_t{});
  }
}

void set_element(std::byte* data, size_t i, DType type, double value) {
  const auto put = [&]<class T>(T converted) {
    std::memcpy(data + i * sizeof(T), &converted, sizeof(T));
  };
  // Integers saturate; NaN becomes 0.
  const auto whole = [&]<class T>(T) {
    constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(value)) return T{0};
    if (value <= low) return std::numeric_limits<T>::min();
    return value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value);
  };
  switch (type) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(value);
    case DType::f16:
      return put(f16_from_f32(static_cast<float>(value)));
    case DType::bf16:
      return put(bf16_from_f32(static_cast<float>(value)));
    case DType::i8:
      return put(whole(int8_t{}));
    case DType::i16:
      return put(whole(int16_t{}));
    case DType::i32:
      return put(whole(int32_t{}));
    case DType::i64:
      return put(whole(int64_t{}));
    case DType::b1:
      return put(static_cast<uint8_t>(value != 0));
    default:
      return put(whole(uint8_t{}));
  }
}

std::string number_text(double value, DType type) {
  if (type == DType::b1) return value != 0 ? "true" : "false";
  if (!is_float(type)) return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{:.5g}", value);
}

// One axis in brackets; with more than eight elements only the first and last three.
void write_axis(std::string& text, const Shape& shape, int axis, size_t first,
                const std::vector<double>& values, DType type, size_t width) {
  if (axis == shape.rank()) {
    text += fmt::format("{:>{}}", number_text(values[first], type), width);
    return;
  }
  int64_t step = 1;
  for (int inner = axis + 1; inner < shape.rank(); ++inner) step *= shape[inner];
  const int64_t length = shape[axis];
  const bool innermost = axis + 1 == shape.rank();
  const std::string gap =
      innermost ? ", " : ",\n" + std::string(static_cast<size_t>(axis + 1), ' ');
  text += '[';
  for (int64_t i = 0; i < length; ++i) {
    if (i > 0) text += gap;
    if (length > 8 && i == 3) {
      text += "...";
      i = length - 4;
      continue;
    }
    write_axis(text, shape, axis + 1, first + static_cast<size_t>(i * step), values, type, width);
  }
  text += ']';
}

}  // namespace

std::vector<std::byte> Tensor::to_bytes() const {
  if (dtype().is_block()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("reading a tensor of type {}: its elements are in blocks; dequantise() "
                            "it first",
                            dtype().name()));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(elements()) * dtype().block_bytes());
  read(bytes, dtype().plain());
  return bytes;
}

std::vector<double> Tensor::to_doubles() const {
  const std::vector<std::byte> bytes = to_bytes();
  const DType plain = dtype().plain();
  std::vector<double> values(static_cast<size_t>(elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = element_at(bytes.data(), i, plain);
  return values;
}

Tensor from_doubles(std::span<const double> values, const Shape& shape, ElementType type,
                    const Device& device) {
  if (type.is_block()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("tensor: numbers given for type {}; quantise() a tensor", type.name()));
  }
  std::vector<std::byte> bytes(values.size() * type.block_bytes());
  for (size_t i = 0; i < values.size(); ++i) set_element(bytes.data(), i, type.plain(), values[i]);
  return from_bytes(bytes, shape, type, device);
}

Tensor from_file(const std::string& path, uint64_t offset, const Shape& shape, ElementType type) {
  const MappedFile file = map_file(path, MapAccess::write);
  const uint64_t bytes =
      static_cast<uint64_t>(shape.elements()) / type.block_elements() * type.block_bytes();
  if (offset > file.bytes || bytes > file.bytes - offset) {
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("{}: a tensor {} of type {} at byte {} takes {} bytes, the file has {}; "
                    "was it cut short?",
                    path, shape.text(), type.name(), offset, bytes, file.bytes));
  }
  const std::shared_ptr<std::byte> part(file.data, file.data.get() + offset);
  return from_host_memory(part, shape, type);
}

std::string Tensor::text() const {
  if (!node_) return "Tensor()";
  const std::string facts = fmt::format("{}{} on {}", type().name(), shape().text(), device().id());
  if (type().is_block()) return "Tensor " + facts;
  const std::vector<double> values = to_doubles();
  size_t width = 0;
  if (values.size() <= 4096)
    for (const double value : values)
      width = std::max(width, number_text(value, type().plain()).size());
  std::string text;
  write_axis(text, shape(), 0, 0, values, type().plain(), width);
  return text + "\n" + facts;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << (tensor ? tensor.text() : "an empty Tensor");
}

}  // namespace prism
