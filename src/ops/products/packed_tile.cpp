// Copies packed weights plane by plane, and turns two codes at a time into two f16.
#include "ops/products/packed_tile.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/quantise/code_tables.h"
#include "prism/dtype.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kChunk = 16;  // bytes

// The f16 1024.0 twice. A code in the low bits of such a half is the number 1024 + code.
constexpr uint32_t kBias = 0x64006400u;

// Bytes i and i + 1 of a word, i even, as the low bytes of two halves; the high bytes are those of
// `above`: 0 or kBias.
Value two_bytes(Value word, Value i, uint32_t above) {
  return raw("cuda", fmt::format("{{r}} = __byte_perm({{0}}, {}u, {{1}});", above >> 8),
             {word, (i & 2u) * 0x0101u + 0x4140u}, Type{u32, 1}, [&] {
               const Value moved = word >> ((i & 2u) * 8u);
               return (moved & 0xFFu) | ((moved & 0xFF00u) << 8u) | above;
             });
}

// a * b + c for pairs of f16, rounded once.
Value fma_pair(Value a, Value b, Value c) {
  return raw("cuda", "{r} = prism_fma_f16x2({0}, {1}, {2});", {a, b, c}, Type{u32, 1}, [&] {
    const Value x = unpack_f16(a), y = unpack_f16(b), z = unpack_f16(c);
    return pack_f16(vec(fma(x[0], y[0], z[0]), fma(x[1], y[1], z[1])));
  });
}

Value pair_of(float x) { return constant(u32, f16_from_f32(x) * 0x00010001u); }

// Words for the decoded scales of a row: a pair of f16, and a pair of offsets for types with mins.
uint32_t scale_words(ElementType type, uint32_t columns) {
  const PlaneFormat f = plane_format(type.block());
  return columns / (f.scale_elements == 16 ? 16 : 32) * (f.has_min() || f.has_offset() ? 2 : 1);
}

}  // namespace

PackedTile::Planes PackedTile::planes_of(ElementType type, uint32_t columns) {
  const PlaneFormat f = plane_format(type.block());
  Planes planes;
  planes.quants.bytes = f.quant_bits * 32u;
  planes.high.bytes = f.high_bits * 32u;
  if (f.scales == ScaleFormat::header)
    planes.scales.bytes = kChunk;
  else if (f.scales != ScaleFormat::none)
    planes.scales.bytes = 256u / f.scale_elements;
  const uint32_t factor_bytes = f.factors == FactorFormat::pair   ? 4
                                : f.factors == FactorFormat::f16  ? 2
                                : f.factors == FactorFormat::e8m0 ? 1
                                                                  : 0;
  planes.factors.bytes = factor_bytes * 256u / f.factor_elements;
  uint32_t chunks = 0;
  for (Plane* plane : {&planes.quants, &planes.high, &planes.scales, &planes.factors}) {
    plane->at = chunks * (kChunk / 4);
    if (plane->bytes) plane->chunks = std::max(1u, columns * plane->bytes / 256 / kChunk);
    chunks += plane->chunks;
  }
  // An odd number of chunks, so that eight rows read together are in different banks.
  planes.row_words = (chunks | 1u) * (kChunk / 4);
  return planes;
}

uint64_t PackedTile::bytes(ElementType type, uint32_t rows, uint32_t columns, uint32_t stages) {
  return uint64_t(4) * rows *
         (planes_of(type, columns).row_words * stages + 2 * scale_words(type, columns));
}

PackedTile::PackedTile(ElementType type, uint32_t rows, uint32_t columns, uint32_t stages,
                       uint32_t lanes)
    : type_(type),
      format_(plane_format(type.block())),
      rows_(rows),
      columns_(columns),
      lanes_(lanes),
      planes_(planes_of(type, columns)),
      tile_(shared(u32, uint64_t(planes_.row_words) * rows * stages, "packed")),
      scales_(shared(u32, uint64_t(scale_words(type, columns)) * rows * 2, "scales")) {}

Value PackedTile::Plane::first_word(Value start) const {
  return start * bytes / (256 * kChunk) * (kChunk / 4);
}

void PackedTile::copy(const In& weights, const WeightParams& layout, Value slot, Value first_row,
                      Value n, Value start, const std::optional<Value>& k) const {
  const Value zero = constant(u32, 0);
  const Value plane_at[] = {zero, layout.values[1], layout.values[2], layout.values[3]};
  const Plane* planes[] = {&planes_.quants, &planes_.high, &planes_.scales, &planes_.factors};
  for (size_t i = 0; i < 4; ++i) {
    const Plane& plane = *planes[i];
    const uint32_t total = rows_ * plane.chunks;
    for (uint32_t turn = 0; turn * lanes_ < total; ++turn) {
      const Value place = local_id() + turn * lanes_;
      const Value row = place / plane.chunks, chunk = place % plane.chunks;
      const auto one = [&] {
        const Value from = plane.first_word(start) + chunk * (kChunk / 4);
        const Value stored = first_row + row;
        // The chunk's first element: 4 * 256 / bytes of them are in a word.
        const Value inside = k ? stored < n && from * (4 * 256 / plane.bytes) < *k : stored < n;
        async_copy_if(inside, tile_,
                      (slot * rows_ + row) * planes_.row_words + plane.at + chunk * (kChunk / 4),
                      weights, stored * layout.values[0] + plane_at[i] + from, kChunk / 4);
      };
      if ((turn + 1) * lanes_ <= total)
        one();
      else
        if_(place < total, one);
    }
  }
}

void PackedTile::decode_scales(Value slot, Value set, Value start) const {
  const uint32_t each = has_offset() ? 2 : 1, elements = part_elements(), total = rows_ * parts();
  for (uint32_t turn = 0; turn * lanes_ < total; ++turn) {
    const Value item = local_id() + turn * lanes_;
    const auto one = [&] {
      const Value row = item % rows_, element = start + item / rows_ * elements;
      const Value row_start = (slot * rows_ + row) * planes_.row_words;
      const auto place = [&](const Plane& plane, Value word) {
        return row_start + plane.at + word - plane.first_word(start);
      };
      std::vector<Value> words;
      if (format_.scales == ScaleFormat::header) {
        const Value four = tile_.load(place(planes_.scales, element / 256u * 4u), 4);
        for (uint32_t i = 0; i < 4; ++i) words.push_back(four[i]);
      } else {
        for (const Plane* plane : {&planes_.scales, &planes_.factors})
          if (plane->bytes)
            words.push_back(tile_.load(place(*plane, element / (4 * 256 / plane->bytes))));
      }
      PlaneFormat integral = format_;
      integral.exponent = 0;  // pair() applies it to the codes, which stay exact
      const BlockUnit::Part part = block_part(integral, words, element / elements,
                                              element / uint32_t{format_.factor_elements});
      const auto both = [](Value x) { return pack_f16(vec(x, x)); };
      const Value at = set * (total * each) + item * each;
      if (part.minus)
        scales_.store(at, vec(both(part.scale), both(-*part.minus)));
      else
        scales_.store(at, both(part.scale));
    };
    if ((turn + 1) * lanes_ <= total)
      one();
    else
      if_(item < total, one);
  }
}

PackedTile::Codes PackedTile::codes(const Place& place, Value row_start, Value k) const {
  const uint32_t half = place.at / 16 % 2;  // of 32 elements
  const Value quad = k / 4u, none = constant(u32, 0);
  // The word of a plane that has this many elements in a word.
  const auto word = [&](const Plane& plane, uint32_t elements, Value further) {
    return tile_.load(row_start + plane.at + place.column / elements + place.at / elements +
                      further);
  };
  // The bits of the high plane at bit `at`.
  const auto with_high_bits = [&](Value low, uint32_t at) {
    if (format_.high_bits == 0) return low;
    const bool one = format_.high_bits == 1;
    const Value bytes = two_bytes(word(planes_.high, one ? 32 : 16, none), k, 0);
    const Value shift = one ? quad + half * 4u : quad * 2u;
    return low | (((bytes << at) >> shift) & ((one ? 0x00010001u : 0x00030003u) << at));
  };
  const auto signed_bytes = [&](Value four) {
    return Codes{two_bytes(four ^ 0x80808080u, k, kBias), 0, 128};
  };
  if (format_.quant_bits == 8) return signed_bytes(word(planes_.quants, 4, quad));
  if (format_.quant_bits == 2 && format_.values != QuantValues::linear) {
    Value four = (word(planes_.quants, 16, none) >> (quad * 2u)) & 0x03030303u;
    if (format_.high_bits == 1) {
      const Value bits = word(planes_.high, 32, none) >> (quad + half * 4u);
      four = four | ((bits & 0x01010101u) << 2u);
    }
    return signed_bytes(code_values(format_.values, four));
  }
  if (format_.quant_bits == 2) {
    const Value bytes = two_bytes(word(planes_.quants, 16, none), k, 0);
    return {with_high_bits(((bytes >> (quad * 2u)) & 0x00030003u) | kBias, 2), 0, format_.zero};
  }
  // 32 elements in four words: the first 16 in the low nibbles, the others in the high ones.
  const Value stored =
      tile_.load(row_start + planes_.quants.at + place.column / 8u + place.at / 32 * 4 + quad);
  if (format_.values == QuantValues::iq4) {
    const auto [low, high] = iq4_values(stored);
    return signed_bytes(half ? high : low);
  }
  if (format_.values != QuantValues::linear)
    return signed_bytes(code_values(format_.values, (stored >> (half * 4u)) & 0x0F0F0F0Fu));
  // The high nibble stays where it is: 16 times the code.
  const Value bytes = two_bytes(stored, k, kBias);
  return {with_high_bits(bytes & (half ? 0xFFF0FFF0u : 0xFF0FFF0Fu), half ? 8 : 4), half * 4u,
          format_.zero};
}

Value PackedTile::pair(const Place& place, Value row, Value k) const {
  const Value in_tile = place.row + row;
  const Value row_start = (place.slot * rows_ + in_tile) * planes_.row_words;
  const uint32_t each = has_offset() ? 2 : 1;
  const Value part = place.column / part_elements() + place.at / part_elements();
  const Value at = ((place.set * parts() + part) * rows_ + in_tile) * each;
  const Value scale = scales_.load(at, each);
  const Codes found = codes(place, row_start, k);
  const float unit = std::ldexp(1.0f, -static_cast<int>(found.shift));
  const float power = std::ldexp(1.0f, format_.exponent);
  const Value code = fma_pair(found.numbers, pair_of(unit * power),
                              pair_of((-1024.0f * unit - static_cast<float>(found.zero)) * power));
  return fma_pair(code, each == 2 ? scale[0] : scale, each == 2 ? scale[1] : constant(u32, 0));
}

}  // namespace prism::ops
