// The gradient of attention in plain f32: 32 own and 32 other rows at a time, of which each lane
// has 4 x 4 pairs; heads pass through shared memory 32 elements at a time.
#include <functional>

#include <fmt/format.h>

#include "ops/attention/attention_gradient_parts.h"
#include "ops/attention/attention_parts.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kRows = kPlainGradientRows, kChunk = 32;
constexpr uint32_t kSide = 8, kOwn = kRows / kSide;  // lanes along a side, rows of a lane
constexpr uint32_t kRowLength = kChunk + 1;          // avoids bank conflicts

uint32_t chunks_of(uint32_t dim) { return (dim + kChunk - 1) / kChunk; }

// Loads a chunk of 32 rows as f32; zeros beyond the rows and the head.
void fetch(const Array& tile, const GradientRows& rows, Value first, uint32_t chunk) {
  for_(local_id(), kRows * kChunk, kSide * kSide, [&](Value index) {
    const Value row = first + index / kChunk, d = index % kChunk + chunk * kChunk;
    Value wanted = row < rows.count;
    if ((chunk + 1) * kChunk > rows.dim) wanted = wanted && d < rows.dim;
    const Value one = rows.from.load_if(wanted, rows.element(row) + d);
    tile[index / kChunk * kRowLength + index % kChunk] =
        one.element() == f32 ? one : cast(f32, one);
  });
}

// 4 x 4 sums of a lane: rows y + 8 i of the left side, x + 8 j of the right one.
struct Sums {
  Sums() {
    for (uint32_t i = 0; i < kOwn * kOwn; ++i) values.emplace_back(f32, 0.0f, "sum");
  }
  // Adds left(i) * right(j) for each n of a chunk.
  void add(const std::function<Value(Value n, uint32_t i)>& left,
           const std::function<Value(Value n, uint32_t j)>& right) {
    for_(kChunk, [&](Value n) {
      std::vector<Value> a, b;
      for (uint32_t i = 0; i < kOwn; ++i) a.push_back(left(n, i));
      for (uint32_t j = 0; j < kOwn; ++j) b.push_back(right(n, j));
      for (uint32_t i = 0; i < kOwn; ++i)
        for (uint32_t j = 0; j < kOwn; ++j) (*this)(i, j) = fma(a[i], b[j], (*this)(i, j));
    });
  }
  Var& operator()(uint32_t i, uint32_t j) { return values[i * kOwn + j]; }
  std::vector<Var> values;
};

}  // namespace

ir::Kernel attention_gradient_plain(const AttentionGradientOptions& options, GradientSide own) {
  const bool by_keys = own == GradientSide::keys;
  return kernel("attention_gradient_plain_" + gradient_name(options, own), kSide * kSide, [&] {
    const GradientArguments arguments(options, own);
    auto left = shared(f32, kRows * kRowLength, "left");
    auto right = shared(f32, kRows * kRowLength, "right");
    auto weights = shared(f32, kRows * kRowLength, "weights");
    const Value y = local_id() / kSide, x = local_id() % kSide;
    const Value sequence = group_id(2), first_own = group_id(1) * kRows;
    const Value heads = by_keys ? group_count(0) * options.group : group_count(0);
    const auto chunk_of = [&](const Array& tile, Value at) {
      return
          [&tile, at](Value n, uint32_t i) { return tile.load((at + i * kSide) * kRowLength + n); };
    };
    std::vector<Sums> first(chunks_of(options.head_dim)),
        second(by_keys ? chunks_of(options.value_dim) : 0);

    const GradientRange range = arguments.seen_by(first_own, kRows);
    const Value tiles = range.tiles(kRows);
    for_(by_keys ? tiles * options.group : tiles, [&](Value turn) {
      const Value head = by_keys ? group_id(0) * options.group + turn / tiles : group_id(0);
      const Value first_other = range.first + turn % tiles * kRows;
      const GradientPair of_queries = arguments.queries_of(sequence, head),
                         of_keys = arguments.keys_of(sequence, head / options.group);
      const GradientPair &own_rows = by_keys ? of_keys : of_queries,
                         &other_rows = by_keys ? of_queries : of_keys;
      const auto multiply = [&](Sums& sums, const GradientRows& a, const GradientRows& b) {
        for (uint32_t chunk = 0; chunk < chunks_of(a.dim); ++chunk) {
          barrier();
          fetch(left, a, first_own, chunk);
          fetch(right, b, first_other, chunk);
          barrier();
          sums.add(chunk_of(left, y), chunk_of(right, x));
        }
      };
      Sums scores, slopes;
      multiply(scores, own_rows.one, other_rows.one);
      multiply(slopes, own_rows.two, other_rows.two);

      // Scores become weights, and slopes of weights become slopes of scores.
      const auto for_each_query = [&](const In& from, Value query) {
        return from.load_if(query < arguments.queries,
                            arguments.place(sequence, query, head, heads));
      };
      std::vector<Value> query_sums, query_products;
      for (uint32_t n = 0; n < kOwn; ++n) {
        const Value query = by_keys ? first_other + x + n * kSide : first_own + y + n * kSide;
        query_sums.push_back(for_each_query(arguments.sums, query));
        query_products.push_back(for_each_query(arguments.products, query));
      }
      const Value factor = arguments.scale * kLog2E;
      for (uint32_t i = 0; i < kOwn; ++i)
        for (uint32_t j = 0; j < kOwn; ++j) {
          const Value own_row = first_own + y + i * kSide, other = first_other + x + j * kSide;
          const Value query = by_keys ? other : own_row, key = by_keys ? own_row : other;
          const uint32_t n = by_keys ? j : i;
          const Value seen =
              query < arguments.queries && key < arguments.keys && arguments.sees(query, key);
          scores(i, j) = select(seen, fast_exp2(fma(scores(i, j), factor, -query_sums[n])), 0.0f);
          slopes(i, j) = scores(i, j) * (slopes(i, j) - query_products[n]);
        }
      const auto add_rows = [&](Sums& pairs, std::vector<Sums>& sums, const GradientRows& rows) {
        barrier();
        for (uint32_t i = 0; i < kOwn; ++i)
          for (uint32_t j = 0; j < kOwn; ++j)
            weights[(y + i * kSide) * kRowLength + x + j * kSide] = pairs(i, j);
        for (uint32_t chunk = 0; chunk < sums.size(); ++chunk) {
          barrier();
          fetch(right, rows, first_other, chunk);
          barrier();
          sums[chunk].add(chunk_of(weights, y), [&](Value n, uint32_t j) {
            return right.load(n * kRowLength + x + j * kSide);
          });
        }
      };
      if (by_keys) add_rows(scores, second, other_rows.two);
      add_rows(slopes, first, other_rows.one);
    });

    const auto store = [&](const Array& to, std::vector<Sums>& sums, uint32_t dim,
                           const std::optional<Value>& factor) {
      for (uint32_t chunk = 0; chunk < sums.size(); ++chunk)
        for (uint32_t i = 0; i < kOwn; ++i)
          for (uint32_t j = 0; j < kOwn; ++j) {
            const Value row = first_own + y + i * kSide, d = x + (chunk * kChunk + j * kSide);
            const Value place = (sequence * arguments.own_count() + row) * group_count(0);
            const Value value = sums[chunk](i, j);
            to.store_if(row < arguments.own_count() && d < dim, (place + group_id(0)) * dim + d,
                        factor ? value * *factor : value);
          }
    };
    store(arguments.first, first, options.head_dim, arguments.scale);
    if (by_keys) store(*arguments.second, second, options.value_dim, std::nullopt);
  });
}

}  // namespace prism::ops
