// Finds the scales of 8-bit weights and multiplies by them.
#include "llm/convert/scaled_weights.h"

#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/system/thread_pool.h"
#include "llm/gguf/tensor_floats.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

// A sign, four bits of exponent, three of mantissa; the largest number is 448, without infinities.
float from_e4m3(unsigned bits) {
  const unsigned exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 127) == 127) return std::numeric_limits<float>::quiet_NaN();
  const float size =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                    : std::ldexp(static_cast<float>(8 + mantissa), static_cast<int>(exponent) - 10);
  return (bits & 128) != 0 ? -size : size;
}

// The part of an axis that one of its scales is for; 0: the scales do not fit. asked: as the
// settings say, 0 if they do not.
int64_t part_of_axis(int64_t length, int64_t scales, int64_t asked) {
  if (scales == 1) return length;
  if (scales == length) return 1;
  constexpr int64_t kUsual = 128;
  for (const int64_t part : {asked, kUsual})
    if (part > 0 && (length + part - 1) / part == scales) return part;
  return asked == 0 && scales > 0 && length % scales == 0 ? length / scales : 0;
}

// Rows and columns of blocks, by the settings; 0 for those they do not state.
std::array<int64_t, 2> asked_block(const JsonView& settings) {
  constexpr int64_t kMost = 1 << 20;
  const auto pair = [](const JsonView& list) -> std::array<int64_t, 2> {
    const std::vector<JsonView> items = list.items();
    if (items.size() != 2) list.fail("must have two numbers");
    return {items[0].integer(1, kMost), items[1].integer(1, kMost)};
  };
  if (const JsonView block = settings["weight_block_size"]) return pair(block);
  if (!settings["config_groups"]) return {0, 0};
  for (const auto& [name, group] : settings["config_groups"].members()) {
    if (const JsonView block = group["weights"]["block_structure"]) return pair(block);
    if (const JsonView size = group["weights"]["group_size"])
      return {1, std::max<int64_t>(0, size.integer(-1, kMost))};
  }
  return {0, 0};
}

}  // namespace

bool is_scaled_weight(const SafetensorsEntry& entry) {
  return entry.f8 == F8Format::e4m3 || entry.type == DType::i8;
}

bool is_scale_name(std::string_view name) {
  for (const std::string_view end : {"_scale_inv", ".weight_scale", "_proj_scale", ".input_scale",
                                     ".activation_scale", ".k_scale", ".v_scale", ".q_scale"})
    if (name.ends_with(end)) return true;
  return false;
}

WeightScales scales_of(const HfFolder& folder, const std::string& name,
                       const SafetensorsEntry& weight, int64_t stacked) {
  const auto& all = folder.tensors();
  auto found = all.find(name + "_scale_inv");
  if (found == all.end()) found = all.find(name + "_scale");
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: tensor {} {} has 8-bit elements, and {}", folder.path(),
                            printable(name), weight.shape.text(), what));
  };
  if (found == all.end()) fail("no scales are beside it");
  const SafetensorsEntry& scales = found->second;
  const bool is_number = is_float(scales.type) || scales.f8 == F8Format::e8m0;
  const Shape& of = scales.shape;
  const int64_t rank = weight.shape.rank(), columns = weight.shape[-1],
                rows = rank > 1 ? weight.shape[-2] : 1;
  const int64_t matrices = weight.shape.elements() / (rows * columns);
  const std::array<int64_t, 2> asked =
      asked_block(JsonView(folder.config())["quantization_config"]);
  WeightScales result{&scales};
  if (of.elements() == 1) {
    result.rows = rows * matrices, result.columns = columns;
  } else if (of.rank() == rank - 1 && of.elements() == rows * matrices) {
    result.rows = 1, result.columns = columns;
  } else if (of.rank() == rank && rank > 1 && (rank == 2 || of[0] == matrices)) {
    result.rows = part_of_axis(rows, of[-2], asked[0]);
    result.columns = part_of_axis(columns, of[-1], asked[1]);
  }
  if (stacked > 1 && rank == 2 && of.rank() == 2 && of.elements() > 1) {
    result.matrix_rows = rows / stacked;
    result.rows =
        of[0] % stacked == 0 ? part_of_axis(result.matrix_rows, of[0] / stacked, asked[0]) : 0;
    result.columns = part_of_axis(columns, of[1], asked[1]);
  }
  if (!is_number || result.rows == 0 || result.columns == 0)
    fail(fmt::format("its scales are {} {}", ElementType(scales.type).name(), of.text()));
  return result;
}

std::vector<float> scaled_weight(const SafetensorsEntry& weight, const WeightScales& scales,
                                 ThreadPool& pool) {
  static const std::array<float, 256> kE4m3 = [] {
    std::array<float, 256> values{};
    for (unsigned i = 0; i < 256; ++i) values[i] = from_e4m3(i);
    return values;
  }();
  const auto bytes_of = [](const SafetensorsEntry& entry) {
    return reinterpret_cast<const std::byte*>(entry.bytes.data());
  };
  std::vector<float> factors(static_cast<size_t>(scales.entry->shape.elements()));
  if (scales.entry->f8 == F8Format::e8m0)
    for (size_t i = 0; i < factors.size(); ++i)
      factors[i] = std::ldexp(1.0f, static_cast<uint8_t>(scales.entry->bytes[i]) - 127);
  else
    to_floats(scales.entry->type, bytes_of(*scales.entry), factors, pool);

  const auto columns = static_cast<uint64_t>(weight.shape[-1]);
  const uint64_t all_rows = static_cast<uint64_t>(weight.shape.elements()) / columns;
  const uint64_t part_rows = static_cast<uint64_t>(scales.rows),
                 part_columns = static_cast<uint64_t>(scales.columns);
  // Blocks begin anew with each matrix.
  const uint64_t matrix_rows = scales.matrix_rows > 0 ? static_cast<uint64_t>(scales.matrix_rows)
                               : part_rows == all_rows || weight.shape.rank() < 2
                                   ? all_rows
                                   : static_cast<uint64_t>(weight.shape[-2]);
  const uint64_t across = (columns + part_columns - 1) / part_columns,
                 down = (matrix_rows + part_rows - 1) / part_rows;
  std::vector<float> values(all_rows * columns);
  const auto* const from = reinterpret_cast<const uint8_t*>(weight.bytes.data());
  const bool is_f8 = weight.f8 == F8Format::e4m3;
  pool.parallel_for(all_rows, 16, [&](uint64_t first, uint64_t last) {
    for (uint64_t row = first; row < last; ++row) {
      const float* const by =
          factors.data() + (row / matrix_rows * down + row % matrix_rows / part_rows) * across;
      for (uint64_t i = 0; i < columns; ++i) {
        const uint8_t byte = from[row * columns + i];
        const float value = is_f8 ? kE4m3[byte] : static_cast<float>(static_cast<int8_t>(byte));
        values[row * columns + i] = value * by[i / part_columns];
      }
    }
  });
  return values;
}

}  // namespace prism::llm
