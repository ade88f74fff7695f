// The kernel that rotates q and k and writes k and v in the layout of the caches.
#include "ops/attention/rope_to_cache_kernel.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "ops/attention/rope_angle.h"
#include "ops/index/index_reading.h"
#include "prism/kernel.h"
#include "tensor/chain/chain_kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kLanes = 64;

// Stores blocks of 32 as planes. Each lane stores two blocks, because their factors share a word.
void store_blocks(const Array& cache, Value row_word, uint32_t factors_at, const Array& turned,
                  uint32_t dim) {
  const uint32_t blocks = dim / 32;
  for_(local_id(), (blocks + 1) / 2, kLanes, [&](Value pair) {
    Value factors = constant(u32, 0);
    for (uint32_t half = 0; half < 2; ++half) {
      const Value block = pair * 2u + half;
      const Value there = block < blocks;
      const Value first = select(there, block, 0u) * 32u;
      Var largest(f32, 0.0f, "largest");
      for_(32u, [&](Value i) { largest = max(largest, abs(turned.load(first + i))); });
      const Value bits = pack_f16(vec(largest * (1.0f / 127), constant(f32, 0))) & 0xFFFFu;
      const Value scale = unpack_f16(bits)[0];
      const auto code = [&](Value x) {
        const Value q = round_even(x / select(scale > 0.0f, scale, 1.0f));
        return cast(i32, min(max(q, -127.0f), 127.0f));
      };
      for_(8u, [&](Value word) {
        std::vector<Value> four;
        for (uint32_t i = 0; i < 4; ++i) four.push_back(code(turned.load(first + word * 4u + i)));
        if_(there, [&] {
          cache[row_word + block * 8u + word] = pack_8(vec(four[0], four[1], four[2], four[3]));
        });
      });
      factors = factors | (select(there, bits, 0u) << (16 * half));
    }
    cache[row_word + factors_at / 4 + pair] = factors;
  });
}

// The state of the kernel. Heads of a row are numbered through q, then k, then v.
struct CacheWriter {
  const CacheKernel& p;
  std::vector<Array> caches;  // of k, and of v if there is one
  std::vector<In> x;          // q, k, v
  In places;
  std::optional<In> frequencies;
  Array rotated;
  Value heads, kv_heads, cache_rows, magnitude;
  std::vector<Value> row_steps = {}, head_steps = {}, offsets = {};  // of q, k, v

  static CacheWriter declare(const CacheKernel& p) {
    const DType stored = p.cache.is_block() ? u32 : kernel_type(p.cache.plain());
    std::vector<Array> caches = {inout("k_cache", stored)};
    if (p.value_dim) caches.push_back(inout("v_cache", stored));
    std::vector<In> x = {in("q", p.x), in("k", p.x)};
    if (p.value_dim) x.push_back(in("v", p.x));
    const In places = in("places", u32);
    std::optional<In> frequencies;
    if (p.pairs) frequencies = in("frequencies", f32);
    const Array rotated = out("rotated", p.x);
    const Value heads = param("heads", u32), kv_heads = param("kv_heads", u32),
                cache_rows = param("cache_rows", u32), magnitude = param("magnitude", f32);
    const size_t count = x.size();
    CacheWriter w{p,     std::move(caches), std::move(x), places,   frequencies, rotated,
                  heads, kv_heads,          cache_rows,   magnitude};
    constexpr std::array<const char*, 3> kNames = {"q", "k", "v"};
    for (const char* name : std::span(kNames).first(count)) {
      w.row_steps.push_back(param(fmt::format("{}_row", name), u32));
      w.head_steps.push_back(param(fmt::format("{}_head", name), u32));
      w.offsets.push_back(param(fmt::format("{}_offset", name), u32));
    }
    return w;
  }

  Value position() const { return places[row() * 2u]; }
  Value place() const { return load_index(places, row() * 2u + 1u, false); }
  static Value row() { return group_id(1); }

  // Calls use(0, 1 or 2 for q, k or v; head within it). The choice is uniform in the group.
  void each_kind(Value head, const std::function<void(uint32_t, Value)>& use) const {
    if_(
        head < heads, [&] { use(0, head); },
        [&] {
          if (!p.value_dim) return use(1, head - heads);
          if_(
              head < heads + kv_heads, [&] { use(1, head - heads); },
              [&] { use(2, head - heads - kv_heads); });
        });
  }
  uint32_t dim(uint32_t which) const { return which == 2 ? p.value_dim : p.dim; }
  Value all_heads() const { return heads + kv_heads * (p.value_dim ? 2u : 1u); }
  Value element(uint32_t which, Value own, Value i) const {
    const Value from = offsets[which] + row() * row_steps[which] + own * head_steps[which];
    return load_element(x[which], from + i, p.x);
  }
  std::pair<Value, Value> places_of(Value pair) const {
    const bool adjacent = p.pairing == RopePairing::adjacent;
    const Value first = adjacent ? pair * 2u : pair;
    return {first, adjacent ? first + 1u : pair + p.pairs};
  }
  std::pair<Value, Value> cos_and_sin(Value pair) const {
    return turn_of(cast(f32, bitcast(i32, position())), (*frequencies)[pair], magnitude);
  }
};

// Float caches: a group handles several heads of a row; a lane handles the same pair in each and
// computes its angle once.
void write_floats(const CacheWriter& w) {
  const CacheKernel& p = w.p;
  const Value each = p.one_head ? constant(u32, 1) : param("heads_each", u32), lane = local_id();
  const Value first = group_id(0) * each;
  const Value last = min(first + each, w.all_heads());
  const Value place = w.place(), there = place < w.cache_rows;
  const auto store = [&](uint32_t which, Value own, Value i, Value value) {
    if (which == 0) {
      w.rotated[(w.row() * w.heads + own) * p.dim + i] = to_stored(value, p.x);
      return;
    }
    if_(there, [&] {
      w.caches[which - 1][(place * w.kv_heads + own) * w.dim(which) + i] =
          to_stored(value, p.cache.plain());
    });
  };
  // Issue the loads before computing the angle, to hide their latency.
  const auto turn = [&](uint32_t which, Value own, Value pair,
                        const std::function<std::pair<Value, Value>()>& angle) {
    const auto [i, j] = w.places_of(pair);
    const Value a = w.element(which, own, i), b = w.element(which, own, j);
    const auto [c, s] = angle();
    store(which, own, i, a * c - b * s);
    store(which, own, j, a * s + b * c);
  };
  if (p.pairs)
    for_(lane, p.pairs, kLanes, [&](Value pair) {
      if (p.one_head) {
        w.each_kind(first, [&](uint32_t which, Value own) {
          if (which < 2) turn(which, own, pair, [&] { return w.cos_and_sin(pair); });
        });
        return;
      }
      const std::pair<Value, Value> angle = w.cos_and_sin(pair);
      const auto known = [&] { return angle; };
      for_(first, min(last, w.heads), 1u, [&](Value head) { turn(0, head, pair, known); });
      for_(max(first, w.heads), min(last, w.heads + w.kv_heads), 1u,
           [&](Value head) { turn(1, head - w.heads, pair, known); });
    });
  // Copy the elements that are not rotated: v, and the tail of q and k.
  const bool all_turn = 2 * p.pairs == p.dim;
  for_(all_turn ? max(first, w.heads + w.kv_heads) : first, last, 1u, [&](Value head) {
    w.each_kind(head, [&](uint32_t which, Value own) {
      for_(lane + (which < 2 ? 2 * p.pairs : 0u), w.dim(which), kLanes,
           [&](Value i) { store(which, own, i, w.element(which, own, i)); });
    });
  });
}

// Block caches: one group per head. The elements go through shared memory, because the two elements
// of a pair may be in different blocks.
void write_blocks(const CacheWriter& w) {
  const CacheKernel& p = w.p;
  const Array turned = shared(f32, std::max(p.dim, p.value_dim), "turned");
  const Value head = group_id(0), lane = local_id(), place = w.place();
  w.each_kind(head, [&](uint32_t which, Value own) {
    const uint32_t pairs = which < 2 ? p.pairs : 0;
    if (pairs)
      for_(lane, pairs, kLanes, [&](Value pair) {
        const auto [c, s] = w.cos_and_sin(pair);
        const auto [first, second] = w.places_of(pair);
        const Value a = w.element(which, own, first), b = w.element(which, own, second);
        turned[first] = a * c - b * s;
        turned[second] = a * s + b * c;
      });
    for_(lane + 2 * pairs, w.dim(which), kLanes,
         [&](Value i) { turned[i] = w.element(which, own, i); });
  });
  barrier();
  w.each_kind(head, [&](uint32_t which, Value own) {
    if (which == 0) {
      for_(lane, p.dim, kLanes, [&](Value i) {
        w.rotated[(w.row() * w.heads + own) * p.dim + i] = to_stored(turned.load(i), p.x);
      });
      return;
    }
    if_(place < w.cache_rows, [&] {
      const GpuBlockLayout planes = gpu_block_layout(p.cache.block(), 1, w.dim(which));
      store_blocks(w.caches[which - 1],
                   (place * w.kv_heads + own) * static_cast<uint32_t>(planes.row_bytes / 4),
                   static_cast<uint32_t>(planes.factors.offset), turned, w.dim(which));
    });
  });
}

}  // namespace

std::string CacheKernel::key() const {
  return fmt::format("rope_to_cache {} {} {} {} {} {}{}", dtype_name(x), cache.name(), dim,
                     value_dim, pairs, static_cast<int>(pairing), one_head ? " one head" : "");
}

ir::Kernel cache_kernel(const CacheKernel& p) {
  return kernel("rope_to_cache", kLanes, [&] {
    const CacheWriter w = CacheWriter::declare(p);
    p.cache.is_block() ? write_blocks(w) : write_floats(w);
  });
}

uint32_t heads_of_group(int64_t heads, int64_t rows, uint32_t compute_units) {
  const int64_t groups = int64_t(std::max(1u, compute_units)) * 64;
  return static_cast<uint32_t>(std::clamp<int64_t>(heads * rows / groups, 1, 32));
}

}  // namespace prism::ops
