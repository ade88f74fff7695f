// Transposing copies on the CPU and on devices.
#include "tensor/transpose.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "prism/kernel.h"

namespace prism {

namespace {

// Below this a tile is mostly edge, and a strided copy is as fast.
constexpr int64_t kLeast = 8;

// Tiles of 16 rows of 64 bytes on either side: 2 KiB, which stays in the L1 cache at any stride.
template <class T>
void transpose_block(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t a,
                     int64_t b) {
  constexpr int64_t kTile = 64 / sizeof(T) < 16 ? 16 : 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t a0 = 0; a0 < a; a0 += kTile) {
    const int64_t a1 = std::min(a, a0 + kTile);
    for (int64_t b0 = 0; b0 < b; b0 += kTile) {
      const int64_t b1 = std::min(b, b0 + kTile);
      for (int64_t i = a0; i < a1; ++i)
        for (int64_t j = b0; j < b1; ++j) to[i * to_step + j] = from[i + j * from_step];
    }
  }
}

// The type that a kernel copies elements as; 64-bit elements are two words.
DType unit_of(uint32_t bytes) {
  return bytes == 1 ? DType::u8 : bytes == 2 ? DType::u16 : DType::u32;
}

// Tiles of at most 16 KiB, the smallest shared memory of supported devices: rows of 256 bytes on
// either side, and 16 loads in flight per lane.
constexpr uint32_t tile_of(uint32_t bytes) { return bytes <= 4 ? 64 : 32; }

constexpr uint32_t kAbreast = 8;  // input tiles that neighbouring groups take

ir::Kernel transpose_kernel(uint32_t bytes) {
  using namespace dsl;
  const uint32_t tile = tile_of(bytes), words = bytes == 8 ? 2 : 1;
  return kernel("transpose", 256, [&] {
    auto x = in("x", unit_of(bytes));
    auto y = out("y", unit_of(bytes));
    const Value a_length = param("a", u32), b_length = param("b", u32),
                from_step = param("from_step", u32), to_step = param("to_step", u32),
                b_tiles = param("b_tiles", u32), from_offset = param("from_offset", u32);
    std::vector<Value> lengths, from_outer, to_outer;
    for (int i = 1; i < TransposedCopy::kOuter; ++i)
      lengths.push_back(param(fmt::format("outer{}", i), u32));
    for (int i = 0; i < TransposedCopy::kOuter; ++i)
      from_outer.push_back(param(fmt::format("from_outer{}", i), u32));
    for (int i = 0; i < TransposedCopy::kOuter; ++i)
      to_outer.push_back(param(fmt::format("to_outer{}", i), u32));
    auto kept = shared(u32, uint64_t{tile} * tile * words);
    // XOR the column with the row, so that lanes reading a column hit different banks.
    const auto place_of = [&](Value row, Value column) {
      return row * tile + (column ^ (row % 32u));
    };

    Value rest = group_id(1), source = from_offset, target = constant(u32, int64_t{0});
    for (int i = TransposedCopy::kOuter - 1; i >= 0; --i) {
      Value place = rest;
      if (i > 0) {
        const Value length = lengths[static_cast<size_t>(i - 1)], quotient = rest / length;
        place = rest - quotient * length;
        rest = quotient;
      }
      source = source + place * from_outer[static_cast<size_t>(i)];
      target = target + place * to_outer[static_cast<size_t>(i)];
    }
    // Concurrent groups cover a strip of eight input tiles and neighbouring output tiles, so that
    // both sides touch the same memory pages.
    const Value a_tiles = (a_length + (tile - 1)) / tile;
    const Value strip = group_id(0) / (b_tiles * kAbreast),
                in_strip = group_id(0) % (b_tiles * kAbreast);
    const Value width = min(constant(u32, kAbreast), a_tiles - strip * kAbreast);
    const Value b_tile = in_strip / width, a_tile = strip * kAbreast + (in_strip - b_tile * width);
    const Value along = local_id() % tile, across = local_id() / tile;
    const uint32_t step = 256 / tile;
    const auto at = [&](Value index) { return words == 2 ? index * 2u : index; };
    std::vector<Value> loaded;
    for (uint32_t turn = 0; turn < tile; turn += step) {
      const Value a = a_tile * tile + along, b = b_tile * tile + across + turn;
      loaded.push_back(
          x.load_if(a < a_length && b < b_length, at(source + a + b * from_step), words));
    }
    for (uint32_t turn = 0; turn < tile; turn += step) {
      const Value place = at(place_of(across + turn, along)), value = loaded[turn / step];
      for (uint32_t word = 0; word < words; ++word)
        kept[place + word] = words == 1 ? value : value[word];
    }
    barrier();
    for (uint32_t turn = 0; turn < tile; turn += step) {
      const Value row = across + turn;
      const Value a = a_tile * tile + row, b = b_tile * tile + along;
      if_(a < a_length && b < b_length, [&] {
        const Value place = at(place_of(along, row)), index = at(target + a * to_step + b);
        if (words == 2)
          y.store(index, vec(Value(kept[place]), Value(kept[place + 1u])));
        else
          y[index] = Value(kept[place]);
      });
    }
  });
}

}  // namespace

std::optional<TransposedCopy> as_transposed(const Layout& from) {
  std::array<Layout, 2> both = {from, Layout::dense(from.shape)};
  collapse(both);
  const Layout &source = both[0], &target = both[1];
  const int rank = source.shape.rank();
  if (rank < 2 || rank > TransposedCopy::kOuter + 2 || source.stride(-1) <= 1) return std::nullopt;
  int along = -1;  // the axis that is contiguous in the input
  for (int axis = 0; axis + 1 < rank; ++axis)
    if (source.stride(axis) == 1 && source.shape[axis] >= kLeast) along = axis;
  if (along < 0 || source.shape[-1] < kLeast) return std::nullopt;
  TransposedCopy copy;
  copy.a = source.shape[along];
  copy.b = source.shape[-1];
  copy.from_step = source.stride(-1);
  copy.to_step = target.stride(along);
  copy.from_offset = source.offset;
  int next = TransposedCopy::kOuter;
  for (int axis = rank - 2; axis >= 0; --axis) {
    if (axis == along) continue;
    --next;
    copy.outer[next] = source.shape[axis];
    copy.from_outer[next] = source.stride(axis);
    copy.to_outer[next] = target.stride(axis);
  }
  return copy;
}

void transpose_cpu(const TransposedCopy& copy, const std::byte* from, std::byte* to,
                   uint32_t element_bytes, ThreadPool& pool) {
  // Process the output in strips of rows, sized so that their pages fit a second-level cache.
  constexpr int64_t kStrip = 64;
  const int64_t strips = (copy.a + kStrip - 1) / kStrip;
  const int64_t matrices = copy.outer[0] * copy.outer[1] * copy.outer[2];
  const auto run = [&]<class T>(T) {
    pool.parallel_for(static_cast<uint64_t>(matrices * strips), 1,
                      [&](uint64_t first, uint64_t last) {
                        for (uint64_t p = first; p < last; ++p) {
                          const int64_t strip = static_cast<int64_t>(p) % strips * kStrip;
                          int64_t rest = static_cast<int64_t>(p) / strips;
                          int64_t source = copy.from_offset + strip, target = strip * copy.to_step;
                          for (int i = TransposedCopy::kOuter - 1; i >= 0; --i) {
                            const int64_t place = rest % copy.outer[i];
                            rest /= copy.outer[i];
                            source += place * copy.from_outer[i];
                            target += place * copy.to_outer[i];
                          }
                          transpose_block(reinterpret_cast<const T*>(from) + source, copy.from_step,
                                          reinterpret_cast<T*>(to) + target, copy.to_step,
                                          std::min(kStrip, copy.a - strip), copy.b);
                        }
                      });
  };
  switch (element_bytes) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    default:
      return run(uint64_t{});
  }
}

void launch_transpose(DeviceCall& call, const TransposedCopy& copy, const DeviceView& from,
                      const DeviceView& to) {
  const uint32_t bytes = from.type.block_bytes(), tile = tile_of(bytes);
  // Negative steps wrap around in 32 bits, like the kernel's sums.
  const auto word = [](int64_t value) { return ParamValue(static_cast<uint32_t>(value)); };
  const uint32_t a_tiles = groups_for(copy.a, tile), b_tiles = groups_for(copy.b, tile);
  std::vector<ParamValue> params = {word(copy.a),       word(copy.b), word(copy.from_step),
                                    word(copy.to_step), b_tiles,      word(copy.from_offset)};
  for (int i = 1; i < TransposedCopy::kOuter; ++i) params.push_back(word(copy.outer[i]));
  for (const int64_t each : copy.from_outer) params.push_back(word(each));
  for (const int64_t each : copy.to_outer) params.push_back(word(each));
  DeviceView source = from;
  source.layout.offset = 0;  // passed as a parameter
  const int64_t matrices = copy.outer[0] * copy.outer[1] * copy.outer[2];
  call.launch(
      fmt::format("transpose {}", bytes), [&] { return transpose_kernel(bytes); },
      {a_tiles * b_tiles, static_cast<uint32_t>(matrices), 1}, {source, to}, std::move(params));
}

}  // namespace prism
