// Decodes and encodes the elements of tensors piece by piece.
#include "llm/gguf/tensor_floats.h"

#include "llm/gguf/expanded_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/system/thread_pool.h"
#include "cpu/quantise/dequantise.h"
#include "cpu/quantise/quantise.h"

namespace prism::llm {

namespace {

constexpr uint64_t kPieceElements = 4
                                    << 20;  // 16 MB of floats: large for threads, small for memory

template <class T, class Convert>
void convert(const std::byte* from, std::span<float> to, ThreadPool& pool,
             const Convert& as_float) {
  pool.parallel_for(to.size(), 1 << 16, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      T value;
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      to[i] = as_float(value);
    }
  });
}

// The least number that becomes infinite when it is rounded to the type.
float rounds_to_infinity(DType type) {
  if (type == DType::f16) return 65520;
  return type == DType::bf16 ? 0x1.ffp127f : std::numeric_limits<float>::infinity();
}

}  // namespace

void to_floats(ElementType type, const std::byte* from, std::span<float> to, ThreadPool& pool) {
  const auto plainly = [](auto value) { return static_cast<float>(value); };
  if (type.is_block()) {
    cpu::dequantise(type.block(), from, to.data(), to.size(), pool);
    return;
  }
  switch (type.plain()) {
    case DType::f32:
      std::memcpy(to.data(), from, to.size() * sizeof(float));
      return;
    case DType::f16:
      return convert<uint16_t>(from, to, pool, f32_from_f16);
    case DType::bf16:
      return convert<uint16_t>(from, to, pool, f32_from_bf16);
    case DType::f64:
      return convert<double>(from, to, pool, plainly);
    case DType::i8:
      return convert<int8_t>(from, to, pool, plainly);
    case DType::i16:
      return convert<int16_t>(from, to, pool, plainly);
    case DType::i32:
      return convert<int32_t>(from, to, pool, plainly);
    default:
      return convert<int64_t>(from, to, pool, plainly);
  }
}

void from_floats(ElementType type, std::span<const float> values, uint64_t rows,
                 std::span<std::byte> to, ThreadPool& pool, const float* importance) {
  const uint64_t columns = values.size() / rows;
  if (type.is_block()) {
    cpu::quantise(type.block(), values.data(), to.data(), rows, columns, importance, pool);
    return;
  }
  const float too_large = rounds_to_infinity(type.plain());
  for (size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i]) < too_large))
      throw Error(ErrorCode::kInvalidArgument,
                  std::isfinite(values[i])
                      ? fmt::format("element {} is {}, which {} cannot hold; use bf16 or f32", i,
                                    values[i], type.name())
                      : fmt::format("element {} is {}", i, values[i]));
  if (type == DType::f32) {
    std::memcpy(to.data(), values.data(), values.size_bytes());
    return;
  }
  const auto round = type == DType::f16 ? f16_from_f32 : bf16_from_f32;
  auto* const halves = reinterpret_cast<uint16_t*>(to.data());
  pool.parallel_for(values.size(), 1 << 16, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) halves[i] = round(values[i]);
  });
}

void for_each_piece(
    const GgufFile& file, const GgufTensor& tensor, ThreadPool& pool,
    const std::function<void(uint64_t first_row, uint64_t rows, std::span<const float>)>& use) {
  const std::optional<ElementType> expands = expanded_type(tensor.gguf_type);
  if (!tensor.is_supported() && !expands)
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{}: tensor {} is of type {}, which Prism cannot read", file.path(),
                            tensor.name, tensor.type_name()));
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  if (elements == 0) return;
  const uint64_t columns = tensor.shape.rank() == 0 ? 1 : static_cast<uint64_t>(tensor.shape[-1]);
  const uint64_t rows = elements / columns,
                 at_once = std::max<uint64_t>(1, kPieceElements / columns);
  const std::byte* const from = file.data(tensor).data();
  std::vector<float> piece(std::min(rows, at_once) * columns);
  for (uint64_t row = 0; row < rows; row += at_once) {
    const uint64_t count = std::min(at_once, rows - row);
    const std::span<float> to = std::span(piece).first(count * columns);
    const std::byte* const rows_from = from + row * (tensor.bytes / rows);
    if (expands)
      to_floats(*expands, expanded(tensor.gguf_type, rows_from, count * columns, pool).get(), to,
                pool);
    else
      to_floats(tensor.type, rows_from, to, pool);
    use(row, count, to);
  }
}

}  // namespace prism::llm
