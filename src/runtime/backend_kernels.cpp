// Builds the kernels that backends run for themselves.
#include "runtime/backend_kernels.h"

#include <vector>

#include "prism/kernel.h"

namespace prism {

ir::Kernel fma_probe() {
  using namespace dsl;
  return kernel("check_fma", 32, [] {
    auto x = inout("x", f32);
    if_(local_id() == 0u, [&] { x[3u] = fma(x[0u], x[1u], x[2u]); });
  });
}

ir::Kernel copy_units() {
  using namespace dsl;
  return kernel("copy_units", kCopyLanes, [] {
    auto from = in("from", u32);
    auto to = out("to", u32);
    auto count = param("count", u32);
    const Value first = group_id() * (kCopyLanes * kCopyUnits) + local_id();
    std::vector<Value> place, unit;
    for (uint32_t k = 0; k < kCopyUnits; ++k) {
      place.push_back(first + k * kCopyLanes);
      unit.push_back(from.load_words_if(place[k] < count, place[k] * 4u, 4, 4));
    }
    for (uint32_t k = 0; k < kCopyUnits; ++k)
      if_(place[k] < count, [&] { to.store_words(place[k] * 4u, unit[k], 4); });
  });
}

ir::Kernel move_bytes() {
  using namespace dsl;
  return kernel("move_bytes", kMoveLanes, [] {
    auto from = in("from", u32);
    auto to = inout("to", u32);
    auto from_byte = param("from_byte", u32), to_byte = param("to_byte", u32);
    auto bytes = param("bytes", u32);
    const Value at = global_id(), end = to_byte + bytes;
    if_((at * 4u < end) & (at * 4u + 4u > to_byte), [&] {
      Value word = to[at];
      for (uint32_t i = 0; i < 4; ++i) {
        const Value place = at * 4u + i;
        const Value inside = (place >= to_byte) & (place < end);
        const Value source = select(inside, place - to_byte + from_byte, from_byte);
        const Value byte = (from[source >> 2u] >> ((source & 3u) * 8u)) & 255u;
        word = select(inside, (word & ~(255u << (i * 8))) | (byte << (i * 8)), word);
      }
      to[at] = word;
    });
  });
}

}  // namespace prism
