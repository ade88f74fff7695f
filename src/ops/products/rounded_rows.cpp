// The kernel that rounds rows, and loads of rounded rows in products.
#include "ops/products/rounded_rows.h"

#include <fmt/format.h>

#include "ops/products/activation_tile.h"
#include "ops/products/product_kernels.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kLanes = 128, kScaled = 32;

// What stands behind the bytes: of a block by its largest magnitude and the sums of its halves.
Value factors(Value largest, Value first, Value second) {
  const Value scale = largest * kRoundedUnit;
  const auto scaled = [&](Value total) { return bitcast(u32, scale * cast(f32, total)); };
  return vec(bitcast(u32, scale), scaled(first + second), scaled(first), scaled(second));
}

}  // namespace

ir::Kernel round_rows(DType x_type) {
  return kernel(fmt::format("round_rows_{}", dtype_name(x_type)), kLanes, [&] {
    require_subgroup_size(32);
    const In x = in("x", x_type);
    const Array y = out("y", u32);
    const Value k = param("k", u32), x_stride = param("x_stride", u32);
    launch_next();
    wait_previous();
    const Value row = group_id(1), quad = global_id(), wanted = quad < k / 4u;
    const Value four = x.load_if(wanted, row * x_stride + quad * 4u, 4);
    store_rounded(y, wanted, rounded_start(row, k), k, quad, four);
  });
}

void store_rounded(const Array& y, Value wanted, Value start, Value k, Value quad, Value four) {
  const Value largest = largest_of_block(four);
  const std::vector<Value> rounded = round_four(four, largest);
  Value sum = rounded[0] + rounded[1] + rounded[2] + rounded[3];
  for (uint32_t mask = 1; mask < 4; mask *= 2) sum = sum + subgroup_shuffle_xor(sum, mask);
  const Value other = subgroup_shuffle_xor(sum, 4), block = quad / 8u;
  y.store_if(wanted, start + quad / 4u % 2u * (k / 8u) + block * 4u + quad % 4u,
             pack_8(vec(rounded[0], rounded[1], rounded[2], rounded[3])));
  y.store_if(wanted && quad % (kScaled / 4) == 0u, start + k / 4u + block * 4u,
             factors(largest, sum, other));
}

void store_rounded_element(const Array& y, Value wanted, Value start, Value k, Value element,
                           Value value) {
  Value top = bitcast(u32, value) & 0x7FFFFFFFu;
  for (uint32_t mask = 1; mask < kScaled; mask *= 2)
    top = max(top, subgroup_shuffle_xor(top, mask));
  const Value largest = bitcast(f32, top), rounded = round_one(value, largest);
  Value sum = rounded;
  for (uint32_t mask = 1; mask < kScaled / 2; mask *= 2)
    sum = sum + subgroup_shuffle_xor(sum, mask);
  const Value other = subgroup_shuffle_xor(sum, kScaled / 2), block = element / kScaled;
  Value word = (bitcast(u32, rounded) & 0xFFu) << (element % 4u * 8u);
  for (uint32_t mask = 1; mask < 4; mask *= 2) word = word | subgroup_shuffle_xor(word, mask);
  y.store_if(wanted && element % 4u == 0u,
             start + element / 16u % 2u * (k / 8u) + block * 4u + element / 4u % 4u, word);
  y.store_if(wanted && element % kScaled == 0u, start + k / 4u + block * 4u,
             factors(largest, sum, other));
}

Value rounded_start(Value row, Value k) { return row * (k / 8u * 3u); }

ProductLaunch round_rows_launch(uint32_t rows, uint32_t k, uint32_t x_stride) {
  return {{(k / 4 + kLanes - 1) / kLanes, rows, 1}, {k, x_stride}};
}

uint64_t rounded_bytes(uint64_t rows, uint64_t k) { return rows * (k / 8 * 3) * 4; }

uint64_t unscaled_bytes(uint64_t k) { return rounded_bytes(1, k) + k / kScaled * 4; }

RoundedUnit load_rounded(const In& x, Value start, Value k, Value unit, uint32_t elements,
                         uint32_t parts) {
  std::vector<Value> words;
  const auto take = [&](Value at) {
    const Value four = x.load(at, 4);
    for (uint32_t i = 0; i < 4; ++i) words.push_back(four[i]);
  };
  const Value block = elements == 16 ? unit / 2u : unit;
  if (elements == 16) {
    take(start + unit % 2u * (k / 8u) + block * 4u);
  } else {
    take(start + block * 4u);
    take(start + k / 8u + block * 4u);
  }
  const Value meta = start + k / 4u + block * 4u;
  if (parts == 0) return {words, bitcast(f32, x[meta]), {}};
  const Value four = x.load(meta, parts == 1 ? 2 : 4);
  std::vector<Value> sums;
  for (uint32_t part = 0; part < parts; ++part)
    sums.push_back(bitcast(f32, four[parts == 1 ? 1 : 2 + part]));
  return {words, bitcast(f32, four[0]), sums};
}

}  // namespace prism::ops
