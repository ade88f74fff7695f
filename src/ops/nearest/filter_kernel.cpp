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

// Candidates of each lane in shared memory, for sums that are visited one by one: no lane waits or
// branches for another one's. Few lanes find more than there is room for.
class LaneCandidates {
 public:
  LaneCandidates(uint32_t lanes, uint32_t room)
      : lanes_(lanes),
        room_(room),
        scores_(shared(f32, uint64_t{room + kSumsOfLane} * lanes, "candidate_scores")),
        places_(shared(u32, uint64_t{room + kSumsOfLane} * lanes, "candidate_places")),
        end_(local_id(), "candidates_end"),
        is_full_(u32, 0u, "is_full") {}

  Value end() const { return end_; }
  // Forgets what was added since then.
  void go_back(Value end) {
    end_ = end;
    is_full_ = 0u;
  }
  // Makes room for the sums of one fragment. Where there is none, the last ones are written over.
  void make_room() {
    const Value last = local_id() + room_ * lanes_, end = end_;
    is_full_ = select(end > last, 1u, is_full_);
    end_ = min(end, last);
  }
  // row: of the group; column: of the tile, below 256.
  void add(Value row, Value column, Value score) {
    const Value end = end_;
    scores_[end] = score;
    places_[end] = row << 8u | column;
    end_ = end + lanes_;
  }
  // The same in the whole group.
  Value overflow() {
    make_room();
    return group_max(is_full_) != 0u;
  }
  Value is_half_full() const { return group_max(end_) >= room_ / 2 * lanes_; }
  // append: row, column, score.
  void append_all(const std::function<void(Value, Value, Value)>& append) {
    for_(local_id(), end_, lanes_, [&](Value at) {
      const Value place = places_.load(at);
      append(place >> 8u, place & 255u, scores_.load(at));
    });
    end_ = local_id();
  }

 private:
  uint32_t lanes_, room_;
  Array scores_, places_;
  Var end_, is_full_;
};

// Candidates of a group in shared memory. A lane would wait for each atomic operation on a buffer;
// at the end all lanes wait for theirs together.
class Candidates {
 public:
  using Append = std::function<void(Value query, Value score, Value row)>;

  explicit Candidates(uint32_t room)
      : room_(room),
        length_(shared(u32, 1, "length")),
        queries_(shared(u32, room, "candidate_queries")),
        scores_(shared(f32, room, "candidate_scores")),
        rows_(shared(u32, room, "candidate_rows")) {
    if_(local_id() == 0u, [&] { length_[0u] = 0u; });
    barrier();
  }
  // append: for a candidate without room.
  void add(Value query, Value score, Value row, const Append& append) const {
    const Value at = length_.atomic_add(0u, 1u);
    if_(
        at < room_,
        [&] {
          queries_[at] = query;
          scores_[at] = score;
          rows_[at] = row;
        },
        [&] { append(query, score, row); });
  }
  void finish(uint32_t lanes, const Append& append) const {
    barrier();
    for_(local_id(), min(length_.load(0u), room_), lanes,
         [&](Value i) { append(queries_.load(i), scores_.load(i), rows_.load(i)); });
  }

 private:
  uint32_t room_;
  Array length_, queries_, scores_, rows_;
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

ir::Kernel nearest_inverse_kernel() {
  return kernel("nearest_inverse", kNearestGroup, [] {
    const In norms = in("norms", f32);
    const Array inverses = out("inverses", f32);
    const Value count = param("count", u32), padded = param("padded", u32), row = global_id();
    if_(row < padded, [&] {
      const Value norm = norms.load_if(row < count, row);
      inverses[row] = select(norm == 0.0f, constant(f32, 0.0), 1.0f / norm);
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

// Group x: the tile of queries within the rows of the group, which are those of one tile unless
// sums are visited one by one.
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
                room = param("room", u32), spacing = param("spacing", u32),
                rows_of_group = param("rows_of_group", u32);
    const FragmentTiles tiles(p);
    const Value first_row = group_id(0) / query_tiles * rows_of_group,
                first_query = group_id(0) % query_tiles * p.tile_n, k = padded * p.repeat_a,
                zero = constant(u32, 0);
    auto a = copied_source(tiles.a, tiles.a_outer, tiles.a_inner, lanes, matrix,
                           {count, width, form.sampled ? width * spacing : width, zero}, {});
    auto b = copied_source(tiles.b, tiles.b_outer, tiles.b_inner, lanes, queries,
                           {query_tiles * p.tile_n, k, k, zero}, {});
    const auto scores_of = [&](const std::vector<Value>& sums, Value row, Value inside) {
      std::vector<Value> scores = sums;
      if (factors) {
        const Value factor = factors->load_if(inside, row);
        for (Value& score : scores) score = score * factor;
      }
      return scores;
    };
    const Value row_end = min(first_row + rows_of_group, count);
    if (form.sampled) {
      const auto store = [&](Value in_row, Value in_column, const std::vector<Value>& sums) {
        const Value place = first_row + in_row, query = first_query + in_column;
        if_(place < count, [&] {
          const Value row = place * spacing, is_wanted = is_allowed(allowed, place < count, row);
          const std::vector<Value> scores = scores_of(sums, row, place < count);
          for (uint32_t i = 0; i < scores.size(); ++i)
            keys[(query + i) * count + place] =
                select(is_wanted, nearest_key(scores[i], form.metric), constant(u32, kNoKey));
        });
      };
      if (form.one_by_one) {
        const auto store_one = [&](Value row, Value column, Value sum, Value) {
          store(row, column, {sum});
        };
        visit_tile(p, tiles, std::move(a), std::move(b), first_row, first_query, k, {},
                   [&](const TileVisit& visit) { visit(store_one, [] {}); });
      } else {
        multiply_tile(p, tiles, std::move(a), std::move(b), first_row, first_query, k, store);
      }
      return;
    }
    const auto append = [&](Value query, Value score, Value row) {
      const Value key = nearest_key(score, form.metric);
      if_(key != kNoKey && is_allowed(allowed, row < count, row), [&] {
        const Value at = found->atomic_add(query, 1u);
        if_(at < room, [&] {
          keys[query * room + at] = key;
          (*rows)[query * room + at] = row;
        });
      });
    };
    if (form.one_by_one) {
      LaneCandidates candidates(lanes, form.in_turn ? 12 : 4);
      const auto append_from = [&](Value first, Value row, Value column, Value score) {
        append(first_query + column, score, first + row);
      };
      const auto append_all = [&] {
        candidates.append_all([&](Value row, Value column, Value score) {
          append_from(first_row, row, column, score);
        });
      };
      const auto finish = [&](Value at, const TileVisit& visit) {
        const Value before = candidates.end(), offset = at - first_row;
        visit(
            [&](Value row, Value column, Value score, Value limit) {
              if_(score >= limit, [&] { candidates.add(offset + row, column, score); });
            },
            [&] { candidates.make_room(); });
        if_(
            candidates.overflow(),
            [&] {
              candidates.go_back(before);
              // Another condition than above, except for NaN: otherwise a compiler keeps the
              // results of the one above for this one.
              visit(
                  [&](Value row, Value column, Value score, Value limit) {
                    if_(!(score < limit), [&] { append_from(at, row, column, score); });
                  },
                  [] {});
            },
            [&] {
              if (form.in_turn) if_(candidates.is_half_full(), append_all);
            });
      };
      const TileValues values{factors ? &*factors : nullptr, &*limits};
      if (form.in_turn)
        visit_tiles(p, tiles, std::move(a), std::move(b), first_row, row_end, first_query, k,
                    values, finish);
      else
        visit_tile(p, tiles, std::move(a), std::move(b), first_row, first_query, k, values,
                   [&](const TileVisit& visit) { finish(first_row, visit); });
      append_all();
      return;
    }
    Candidates candidates(4 * lanes);
    const auto compare = [&](Value in_row, Value in_column, const std::vector<Value>& sums) {
      const Value row = first_row + in_row, query = first_query + in_column;
      const std::vector<Value> scores = scores_of(sums, row, row < count);
      const Value limit = limits->load(query, 4);
      const auto reaches = [&](uint32_t i) { return scores[i] >= limit[i]; };
      if_(reaches(0) || reaches(1) || reaches(2) || reaches(3), [&] {
        for (uint32_t i = 0; i < 4; ++i)
          if_(reaches(i), [&] { candidates.add(query + i, scores[i], row, append); });
      });
    };
    multiply_tile(p, tiles, std::move(a), std::move(b), first_row, first_query, k, compare);
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
