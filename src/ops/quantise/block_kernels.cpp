// Decodes quantised planes, eight elements per lane: the fewest with which neighbouring lanes still
// write whole 32-byte sectors.
#include "ops/quantise/block_kernels.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/units.h"
#include "ops/products/weight_units.h"
#include "ops/quantise/code_tables.h"
#include "prism/error.h"
#include "prism/kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kGroup = 256;
constexpr uint32_t kPiece = 8;  // elements per lane

// Two runs of four elements of a row: their columns, and their values as vectors of four.
struct Piece {
  Value first_column, second_column;
  Value first, second;
};

class PieceReader {
 public:
  PieceReader(BlockType type, const In& planes, const WeightParams& params)
      : format_(plane_format(type)), planes_(planes), params_(params.values) {}

  Piece read(Value row, Value piece) const {
    const Value start = row * params_[0];
    // Word k of the 4-bit quants of 32 elements holds elements 4k..4k+3 and 16+4k..16+4k+3; other
    // quants are in order.
    const bool nibbles = format_.quant_bits == 4;
    const Value column = nibbles ? piece / 4u * 32u + piece % 4u * 4u : piece * kPiece;
    const Two quads = codes(start, piece), factor = factors(start, column);
    const auto decode = [&](Value quad, uint32_t which) {
      const Value scale_index = column / (format_.scale_elements ? format_.scale_elements : 32u) +
                                (nibbles && format_.scale_elements == 16 ? which : 0u);
      return elements(quad, start, scale_index, factor.first, factor.second);
    };
    return {column, column + (nibbles ? 16u : 4u), decode(quads.first, 0), decode(quads.second, 1)};
  }

 private:
  struct Two {
    Value first, second;
  };

  // The codes of both runs as bytes, signed if the type has signed values.
  Two codes(Value start, Value piece) const {
    if (format_.quant_bits == 8) {
      const Value words = planes_.load_words(start + piece * 2u, 2, 2);
      return {words[0], words[1]};
    }
    if (format_.quant_bits == 2) {
      const Value word = planes_.load_words(start + piece / 2u) >> (piece % 2u * 4u);
      const Two low = {word & 0x03030303u, (word >> 2u) & 0x03030303u};
      if (format_.high_bits == 0) return by_table(low);
      const Value bits = planes_.load_words(start + params_[1] + piece / 4u) >> (piece % 4u * 2u);
      return by_table({low.first | ((bits & 0x01010101u) << 2u),
                       low.second | (((bits >> 1u) & 0x01010101u) << 2u)});
    }
    const Value word = planes_.load_words(start + piece), k = piece % 4u;
    if (format_.values == QuantValues::iq4) {
      const auto [low, high] = iq4_values(word);
      return {low, high};
    }
    const Two low = {word & 0x0F0F0F0Fu, (word >> 4u) & 0x0F0F0F0Fu};
    if (format_.high_bits == 1) {
      const Value bits = planes_.load_words(start + params_[1] + piece / 4u) >> k;
      return {low.first | ((bits & 0x01010101u) << 4u), low.second | (bits & 0x10101010u)};
    }
    if (format_.high_bits == 2) {
      const Value words = planes_.load_words(start + params_[1] + piece / 4u * 2u, 2, 2);
      const auto above = [&](uint32_t i) { return ((words[i] >> (k * 2u)) & 0x03030303u) << 4u; };
      return {low.first | above(0), low.second | above(1)};
    }
    return by_table(low);
  }

  Two by_table(const Two& codes) const {
    return {code_values(format_.values, codes.first), code_values(format_.values, codes.second)};
  }

  // d, and m or dmin (zero if the type has neither).
  Two factors(Value start, Value column) const {
    const Value index = column / static_cast<uint32_t>(format_.factor_elements);
    const Value none = constant(f32, 0.0);
    switch (format_.factors) {
      case FactorFormat::f16: {
        const Value both = unpack_f16(planes_.load_words(start + params_[3] + index / 2u));
        const Value d = select(index % 2u == 0u, both[0], both[1]);
        return {format_.exponent ? d * std::ldexp(1.0f, format_.exponent) : d, none};
      }
      case FactorFormat::none:
        return {constant(f32, 1.0), none};
      case FactorFormat::e8m0: {
        const Value word = planes_.load_words(start + params_[3] + index / 4u);
        const Value e = extract_bits(word, index % 4u * 8u, 8u);
        return {bitcast(f32, select(e < 2u, constant(u32, 0x00200000u) << e, (e - 1u) << 23u)),
                none};
      }
      case FactorFormat::pair:
      case FactorFormat::in_header:
        break;
    }
    const bool header = format_.factors == FactorFormat::in_header;
    const Value at = header ? params_[2] + index * 4u : params_[3] + index;
    const Value pair = unpack_f16(planes_.load_words(start + at));
    return {pair[0], pair[1]};
  }

  // Decodes four elements; each operation rounds as on the CPU.
  Value elements(Value quad, Value start, Value scale_index, Value d, Value second) const {
    std::vector<Value> values;
    const Value bytes = unpack_i8(quad);
    for (uint32_t i = 0; i < 4; ++i) {
      const Value code = cast(f32, bytes[i]);
      values.push_back(format_.zero ? code - static_cast<float>(format_.zero) : code);
    }
    const Value four = vec(values[0], values[1], values[2], values[3]);
    const auto times = [&](Value scale) { return four * splat(scale, 4); };
    const auto as_float = [](Value small) { return cast(f32, bitcast(i32, small)); };
    const Value at = start + params_[2];
    switch (format_.scales) {
      case ScaleFormat::none:
        return format_.has_offset() ? times(d) + splat(second, 4) : times(d);
      case ScaleFormat::i8: {
        const Value word = planes_.load_words(at + scale_index / 4u);
        const Value scale = extract_bits(bitcast(i32, word), scale_index % 4u * 8u, 8u);
        return times(d * cast(f32, scale));
      }
      case ScaleFormat::ue4m3: {
        const Value word = planes_.load_words(at + scale_index / 4u);
        return times(nvfp4_scale(extract_bits(word, scale_index % 4u * 8u, 8u)));
      }
      case ScaleFormat::pair4: {
        const Value word = planes_.load_words(at + scale_index / 4u);
        const Value both = extract_bits(word, scale_index % 4u * 8u, 8u);
        return times(d * as_float(both & 15u)) - splat(second * as_float(both >> 4u), 4);
      }
      case ScaleFormat::header: {
        const Value words = planes_.load_words(at + scale_index / 8u * 4u, 4, 4);
        const Value shift = scale_index % 8u * 4u, high = words[3] >> shift;
        const Value scale = ((words[1] >> shift) & 15u) | ((high & 3u) << 4u);
        const Value min = ((words[2] >> shift) & 15u) | ((high & 12u) << 2u);
        return times(d * as_float(scale)) - splat(second * as_float(min), 4);
      }
    }
    return four;
  }

  PlaneFormat format_;
  In planes_;
  std::vector<Value> params_;
};

void check_result(const char* what, BlockType type, DType y) {
  if (y != DType::f32 && y != DType::f16 && y != DType::bf16)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} of {}: the result is {}; it must be f32, f16 or bf16", what,
                            block_info(type).name, dtype_name(y)));
}

BlockLaunch launch_of(const char* what, const GpuBlockLayout& layout, uint64_t rows) {
  const uint64_t pieces = layout.columns / kPiece, count = rows * pieces;
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (count * kPiece > kMost || layout.bytes() / 4 > kMost)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} of {}: {} rows of {} elements from {}; one launch handles up to {} "
                            "elements and words; decode fewer rows at a time",
                            what, block_info(layout.type).name, rows, layout.columns,
                            size_text(layout.bytes()), kMost));
  BlockLaunch launch;
  launch.groups = {static_cast<uint32_t>((count + kGroup - 1) / kGroup), 1, 1};
  launch.params = {static_cast<uint32_t>(count), static_cast<uint32_t>(pieces)};
  return launch;
}

void add_plane_params(const GpuBlockLayout& layout, BlockLaunch& launch) {
  const auto planes = WeightParams::for_launch(layout.type, layout.columns);
  launch.params.insert(launch.params.end(), planes.begin(), planes.end());
}

}  // namespace

ir::Kernel dequantise_gpu_blocks(BlockType type, DType to) {
  check_result("dequantise", type, to);
  const auto name = fmt::format("dequantise_{}_{}", block_info(type).name, dtype_name(to));
  return kernel(name, kGroup, [&] {
    auto planes = in("planes", u32);
    auto y = out("y", to);
    auto count = param("count", u32), pieces = param("pieces", u32);
    const PieceReader reader(type, planes, WeightParams(type));
    const Value i = global_id();
    if_(i < count, [&] {
      const Value row = i / pieces;
      const Piece piece = reader.read(row, i % pieces);
      const Value at = row * pieces * kPiece;
      y.store(at + piece.first_column, piece.first);
      y.store(at + piece.second_column, piece.second);
    });
  });
}

BlockLaunch dequantise_gpu_blocks_launch(const GpuBlockLayout& layout) {
  BlockLaunch launch = launch_of("dequantise", layout, layout.rows);
  add_plane_params(layout, launch);
  return launch;
}

ir::Kernel gather_gpu_blocks(BlockType type, DType to) {
  check_result("gather", type, to);
  const auto name = fmt::format("gather_{}_{}", block_info(type).name, dtype_name(to));
  return kernel(name, kGroup, [&] {
    auto planes = in("planes", u32), indices = in("indices", i32);
    auto y = out("y", to);
    auto count = param("count", u32), pieces = param("pieces", u32), rows = param("rows", u32);
    const PieceReader reader(type, planes, WeightParams(type));
    const Value i = global_id();
    if_(i < count, [&] {
      const Value to_row = i / pieces, row = bitcast(u32, indices[to_row]);
      const Value at = to_row * pieces * kPiece;
      if_(
          row < rows,
          [&] {
            const Piece piece = reader.read(row, i % pieces);
            y.store(at + piece.first_column, piece.first);
            y.store(at + piece.second_column, piece.second);
          },
          [&] {
            const Value nan = splat(constant_bits(f32, 0x7fc00000u), 4);
            y.store(at + i % pieces * kPiece, nan);
            y.store(at + i % pieces * kPiece + 4u, nan);
          });
    });
  });
}

BlockLaunch gather_gpu_blocks_launch(const GpuBlockLayout& layout, uint64_t indices) {
  BlockLaunch launch = launch_of("gather", layout, indices);
  launch.params.push_back(static_cast<uint32_t>(layout.rows));
  add_plane_params(layout, launch);
  return launch;
}

}  // namespace prism::ops
