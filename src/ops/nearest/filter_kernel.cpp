// The filter of nearest_rows: a product with matrix fragments whose sums become candidates where
// they reach a limit, and what prepares and ends it.
#include "ops/nearest/nearest_kernels.h"
#include "ops/products/fragment_tile.h"

namespace prism::ops {

using namespace dsl;

namespace {

Value infinity() { return constant_bits(f32, 0x7f800000u); }

// A power of two that brings the largest element of a query to between 256 and 512: far from both
// ends of f16, with bits left for the parts that follow the first. 1 for a query of zeros.
Value query_scale(Value largest) {
  const Value exponent = bitcast(u32, largest) >> 23u;
  return select(exponent == 0u, constant(f32, 1.0),
                bitcast(f32, min(262u - min(exponent, 255u), 254u) << 23u));
}

// The nearest number that the type has, ties to even.
Value rounded_to(DType type, Value x) {
  if (type == f16) return unpack_f16(pack_f16(vec(x, x)))[0];
  const Value bits = bitcast(u32, x);
  return bitcast(f32, (bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u);
}

// Candidates of a group in shared memory. A lane would wait for each atomic operation on a buffer;
// at the end all lanes wait for theirs together.
class Candidates {
 public:
  using Append = std::function<void(Value query, Value key, Value row)>;

  explicit Candidates(uint32_t room)
      : room_(room),
        length_(shared(u32, 1, "length")),
        queries_(shared(u32, room, "candidate_queries")),
        keys_(shared(u32, room, "candidate_keys")),
        rows_(shared(u32, room, "candidate_rows")) {
    if_(local_id() == 0u, [&] { length_[0u] = 0u; });
    barrier();
  }
  // append: for a candidate without room.
  void add(Value query, Value key, Value row, const Append& append) const {
    const Value at = length_.atomic_add(0u, 1u);
    if_(
        at < room_,
        [&] {
          queries_[at] = query;
          keys_[at] = key;
          rows_[at] = row;
        },
        [&] { append(query, key, row); });
  }
  void finish(uint32_t lanes, const Append& append) const {
    barrier();
    for_(local_id(), min(length_.load(0u), room_), lanes,
         [&](Value i) { append(queries_.load(i), keys_.load(i), rows_.load(i)); });
  }

 private:
  uint32_t room_;
  Array length_, queries_, keys_, rows_;
};

}  // namespace

uint32_t nearest_query_parts(DType query, DType row) {
  if (query == row) return 1;
  return row == DType::f16 ? 2 : 3;
}

Value FilterRoom::overflows(Value first, uint32_t count, Value queries) const {
  const Value query = min(first + local_id() % count, queries - 1u);
  return group_max(select(found[query] > capacity, constant(u32, 1), constant(u32, 0))) != 0u;
}

// Group x: the query; those beyond the last fill the last tile with zeros.
ir::Kernel nearest_prepare_kernel(const FragmentProduct& p) {
  return kernel("nearest_prepare", kNearestGroup, [&] {
    const In queries = in("queries", f32);
    const Array parts = out("parts", p.operand);
    const Value count = param("count", u32), width = param("width", u32),
                padded = param("padded", u32);
    const Value query = group_id(0), is_query = query < count;
    Var largest(f32, 0.0f, "largest");
    for_(local_id(), width, kNearestGroup, [&](Value i) {
      largest = max(Value(largest), abs(queries.load_if(is_query, query * width + i)));
    });
    const Value scale = p.repeat_a == 1 ? constant(f32, 1.0) : query_scale(group_max(largest));
    for_(local_id(), padded, kNearestGroup, [&](Value i) {
      Value rest = queries.load_if(is_query && i < width, query * width + i) * scale;
      for (uint32_t part = 0; part < p.repeat_a; ++part) {
        const Value rounded = rounded_to(p.operand, rest);
        const Value block = i / p.tile_k * p.repeat_a + part;
        parts[query * padded * p.repeat_a + block * p.tile_k + i % p.tile_k] = rounded;
        rest = rest - rounded;
      }
    });
  });
}

// Group x: the query; nothing reaches the limit of those beyond the last.
ir::Kernel nearest_limit_kernel(Metric metric, uint32_t lanes) {
  return kernel("nearest_limit", lanes, [&] {
    const In sample = in("sample", u32);
    const Array limits = out("limits", f32), found = out("found", u32);
    const Value count = param("count", u32), rows = param("rows", u32), kept = param("kept", u32);
    const Value query = group_id(0), start = query * rows;
    // kNoKey if the sample has fewer rows: then every row is a candidate.
    const Value worst = select_key(
        SelectSpace(lanes), [&](Value i) { return sample[start + i]; }, rows, kept);
    const Value limit = score_of_key(worst, metric);
    if_(local_id() == 0u, [&] {
      // Lower by more than sums in another order can differ.
      limits[query] = select(query < count, limit - abs(limit) * 1e-5f, infinity());
      found[query] = 0u;
    });
  });
}

// Group x: the tile of queries within the tile of rows.
ir::Kernel nearest_filter_kernel(const NearestForm& form, const FragmentProduct& p) {
  const uint32_t lanes = p.warps_m * p.warps_n * p.subgroup;
  return kernel("nearest_filter", lanes, [&] {
    require_subgroup_size(p.subgroup);
    const In matrix = in("matrix", p.a), queries = in("queries", p.operand);
    std::optional<In> factors, allowed, limits;
    std::optional<Array> found, rows;
    if (form.has_factors) factors = in("factors", f32);
    if (form.has_allowed) allowed = in("allowed", u32);
    if (!form.sampled) {
      limits = in("limits", f32);
      found = inout("found", u32);
      rows = out("rows", u32);
    }
    const Array keys = out("keys", u32);
    const Value count = param("count", u32), width = param("width", u32),
                padded = param("padded", u32), query_tiles = param("query_tiles", u32),
                room = param("room", u32), spacing = param("spacing", u32);
    const FragmentTiles tiles(p);
    const Value first_row = group_id(0) / query_tiles * p.tile_m,
                first_query = group_id(0) % query_tiles * p.tile_n, k = padded * p.repeat_a,
                zero = constant(u32, 0);
    auto a = copied_source(tiles.a, tiles.a_outer, tiles.a_inner, lanes, matrix,
                           {count, width, form.sampled ? width * spacing : width, zero}, {});
    auto b = copied_source(tiles.b, tiles.b_outer, tiles.b_inner, lanes, queries,
                           {query_tiles * p.tile_n, k, k, zero}, {});
    const auto is_allowed = [&](Value row, Value inside) {
      if (!allowed) return inside;
      return inside && ((allowed->load_if(inside, row / 32u) >> (row % 32u)) & 1u) == 1u;
    };
    const auto scores_of = [&](const std::vector<Value>& sums, Value row, Value inside) {
      std::vector<Value> scores = sums;
      if (factors) {
        const Value norm = factors->load_if(inside, row);
        const Value factor = select(norm == 0.0f, constant(f32, 0.0), 1.0f / norm);
        for (Value& score : scores) score = score * factor;
      }
      return scores;
    };
    if (form.sampled) {
      const auto store = [&](Value in_row, Value in_column, const std::vector<Value>& sums) {
        const Value place = first_row + in_row, query = first_query + in_column;
        if_(place < count, [&] {
          const Value row = place * spacing, is_wanted = is_allowed(row, place < count);
          const std::vector<Value> scores = scores_of(sums, row, place < count);
          for (uint32_t i = 0; i < scores.size(); ++i)
            keys[(query + i) * count + place] =
                select(is_wanted, nearest_key(scores[i], form.metric), constant(u32, kNoKey));
        });
      };
      multiply_tile(p, tiles, std::move(a), std::move(b), first_row, first_query, k, store);
      return;
    }
    Candidates candidates(4 * lanes);
    const auto append = [&](Value query, Value key, Value row) {
      const Value at = found->atomic_add(query, 1u);
      if_(at < room, [&] {
        keys[query * room + at] = key;
        (*rows)[query * room + at] = row;
      });
    };
    const auto compare = [&](Value in_row, Value in_column, const std::vector<Value>& sums) {
      const Value row = first_row + in_row, query = first_query + in_column;
      const std::vector<Value> scores = scores_of(sums, row, row < count);
      const auto many = static_cast<uint32_t>(scores.size());
      const Value limit = limits->load(query, many);
      const auto reaches = [&](uint32_t i) {
        return many == 1 ? scores[i] >= limit : scores[i] >= limit[i];
      };
      Value any = reaches(0);
      for (uint32_t i = 1; i < many; ++i) any = any || reaches(i);
      if_(any, [&] {
        const Value is_wanted = is_allowed(row, row < count);
        for (uint32_t i = 0; i < many; ++i) {
          const Value key = nearest_key(scores[i], form.metric);
          if_(is_wanted && reaches(i) && key != kNoKey,
              [&] { candidates.add(query + i, key, row, append); });
        }
      });
    };
    multiply_tile(p, tiles, std::move(a), std::move(b), first_row, first_query, k, compare,
                  form.one_by_one);
    candidates.finish(lanes, append);
  });
}

// Group x: the query. Writes the best of its candidates; where there was no room for all of them,
// the list that a scan made.
ir::Kernel nearest_choose_kernel(uint32_t lanes) {
  return kernel("nearest_choose", lanes, [&] {
    const In keys = in("keys", u32), rows = in("rows", u32), found = in("found", u32),
             scanned_keys = in("scanned_keys", u32), scanned_rows = in("scanned_rows", u32);
    const Array keys_out = out("keys_out", u32), rows_out = out("rows_out", u32);
    const Value room = param("room", u32), kept = param("kept", u32);
    const SelectSpace space(lanes);
    const Array taken = shared(u32, 1, "taken");
    const Value query = group_id(0), start = query * room, to = query * kept;
    const Value length = found[query], is_whole = length <= room,
                count = select(is_whole, length, constant(u32, 0));
    if_(local_id() == 0u, [&] { taken[0u] = 0u; });
    const Bound bound = select_bound(
        space, {[&](Value i) { return keys[start + i]; }, [&](Value i) { return rows[start + i]; }},
        count, kept);
    for_(local_id(), count, lanes, [&](Value i) {
      const Value key = keys[start + i], row = rows[start + i];
      if_(count <= kept || bound.holds(key, row), [&] {
        const Value at = to + taken.atomic_add(0u, 1u);
        keys_out[at] = key;
        rows_out[at] = row;
      });
    });
    barrier();
    const Value none = constant(u32, kNoKey);
    for_(taken.load(0u) + local_id(), kept, lanes, [&](Value i) {
      keys_out[to + i] = select(is_whole, none, scanned_keys.load_if(!is_whole, to + i));
      rows_out[to + i] = select(is_whole, none, scanned_rows.load_if(!is_whole, to + i));
    });
  });
}

}  // namespace prism::ops
