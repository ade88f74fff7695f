// The gradient of attention with matrix fragments: a subgroup has 16 own rows, whose scores and
// sums stay in registers; other rows run ahead through shared memory.
#include <fmt/format.h>

#include "ops/attention/attention_gradient_parts.h"
#include "ops/attention/attention_parts.h"
#include "ops/products/product_kernels.h"

namespace prism::ops {

using namespace dsl;

namespace {

constexpr uint32_t kSide = 16, kCopied = 8;  // elements of 16 bits in a copy
constexpr uint32_t kPadding = 8;             // avoids bank conflicts among eight rows
constexpr uint32_t kStages = 2;
constexpr float kNoWeight = 1e30f;  // the sum of a query that does not exist: weights are 0

uint32_t width_of(uint32_t dim) { return (dim + kSide - 1) / kSide * kSide; }
uint32_t row_length(uint32_t dim) { return width_of(dim) + kPadding; }

// Rows of two heads in shared memory, padded with zeros to whole fragments.
struct PairTiles {
  PairTiles(const AttentionGradientOptions& options, uint32_t tile_rows, uint32_t slots,
            const std::string& name)
      : rows(tile_rows),
        lengths{row_length(options.head_dim), row_length(options.value_dim)},
        tiles{shared(options.type, uint64_t{slots} * rows * lengths[0], name + "_one"),
              shared(options.type, uint64_t{slots} * rows * lengths[1], name + "_two")} {}

  void fetch(const GradientPair& from, Value slot, Value first, uint32_t lanes) const {
    fetch_one(0, from.one, slot, first, lanes);
    fetch_one(1, from.two, slot, first, lanes);
  }
  Value at(uint32_t which, Value slot, Value row, uint32_t column) const {
    return (slot * rows + row) * lengths[which] + column;
  }

  uint32_t rows;
  uint32_t lengths[2];
  Array tiles[2];

 private:
  void fetch_one(uint32_t which, const GradientRows& from, Value slot, Value first,
                 uint32_t lanes) const {
    const uint32_t chunks = width_of(from.dim) / kCopied, used = from.dim / kCopied;
    for (uint32_t turn = 0; turn * lanes < rows * chunks; ++turn) {
      const Value index = local_id() + turn * lanes;
      const Value row = index / chunks, chunk = index % chunks;
      Value wanted = first + row < from.count;
      if (used != chunks) wanted = wanted && chunk < used;
      const auto copy = [&] {
        async_copy_if(wanted, tiles[which], at(which, slot, row, 0) + chunk * kCopied, from.from,
                      from.element(first + row) + chunk * kCopied, kCopied);
      };
      if ((turn + 1) * lanes <= rows * chunks)
        copy();
      else
        if_(index < rows * chunks, copy);
    }
  }
};

// The sums and products of queries, in shared memory.
struct QueryNumbers {
  QueryNumbers(uint32_t count, uint32_t slots)
      : rows(count),
        sums(shared(f32, uint64_t{slots} * count, "sums_tile")),
        products(shared(f32, uint64_t{slots} * count, "products_tile")) {}
  void fetch(const GradientArguments& from, Value slot, Value sequence, Value head, Value heads,
             Value first) const {
    if_(local_id() < rows, [&] {
      const Value query = first + local_id(), exists = query < from.queries;
      const Value place = from.place(sequence, query, head, heads);
      sums[slot * rows + local_id()] = select(exists, from.sums.load_if(exists, place), kNoWeight);
      products[slot * rows + local_id()] = from.products.load_if(exists, place);
    });
  }
  uint32_t rows;
  Array sums, products;
};

std::vector<Fragment> cleared(uint32_t count) {
  std::vector<Fragment> result;
  for (uint32_t i = 0; i < count; ++i) {
    result.push_back(accumulator(f32));
    result.back().fill(0.0f);
  }
  return result;
}

}  // namespace

GradientTile gradient_tile(const AttentionGradientOptions& options) {
  GradientTile tile;
  if (options.head_dim > 64 || options.value_dim > 64) {
    tile.rows = 32;  // the sums alone take half of the registers
    tile.in_registers = false;
  }
  return tile;
}

bool suits_gradient_fragments(const AttentionGradientOptions& options, const GradientTile& tile,
                              const ir::Capabilities& device) {
  const uint64_t lengths = row_length(options.head_dim) + row_length(options.value_dim);
  const uint64_t bytes =
      2 * lengths * (tile.own_rows() + kStages * tile.rows) + 8 * (kStages + 1) * tile.own_rows();
  return options.type != f32 && has_fragments(device, options.type) &&
         options.head_dim % kCopied == 0 && options.value_dim % kCopied == 0 &&
         options.head_dim <= 128 && options.value_dim <= 128 && bytes <= device.shared_bytes;
}

ir::Kernel attention_gradient_fragments(const AttentionGradientOptions& options, GradientSide own,
                                        const GradientTile& tile) {
  const bool by_keys = own == GradientSide::keys;
  const uint32_t lanes = tile.warps * tile.subgroup, columns = tile.rows / kSide;
  const uint32_t steps[2] = {width_of(options.head_dim) / kSide,
                             width_of(options.value_dim) / kSide};
  const std::string name =
      fmt::format("attention_gradient_{}_{}x{}{}", gradient_name(options, own), tile.warps,
                  tile.rows, tile.subgroup == 32 ? "" : fmt::format("_of{}", tile.subgroup));
  return kernel(name, lanes, [&] {
    require_subgroup_size(tile.subgroup);
    const GradientArguments arguments(options, own);
    const PairTiles own_tiles(options, tile.own_rows(), 1, "own"),
        other_tiles(options, tile.rows, kStages, "other");
    const QueryNumbers numbers(by_keys ? tile.rows : tile.own_rows(), by_keys ? kStages : 1);
    const Value sequence = group_id(2), none = constant(u32, 0);
    const Value heads = by_keys ? group_count(0) * options.group : group_count(0);
    // The blocks that see the most rows come first, so that no long group runs last.
    const Value block =
        by_keys || !options.causal ? group_id(1) : group_count(1) - 1u - group_id(1);
    const Value first_own = block * tile.own_rows();
    const GradientRange range = arguments.seen_by(first_own, tile.own_rows());
    const Value tiles = range.tiles(tile.rows);
    const Value turns = by_keys ? tiles * options.group : tiles;
    const auto head_of = [&](Value turn) {
      return by_keys ? group_id(0) * options.group + turn / tiles : group_id(0);
    };
    const auto pair_of = [&](bool of_keys, Value head) {
      return of_keys ? arguments.keys_of(sequence, head / options.group)
                     : arguments.queries_of(sequence, head);
    };
    const auto fetch_other = [&](Value slot, Value turn) {
      const Value head = head_of(turn), first = range.first + turn % tiles * tile.rows;
      // After the last turn there is nothing to fetch.
      const Value from = select(turn < turns, first, max(arguments.queries, arguments.keys));
      other_tiles.fetch(pair_of(!by_keys, head), slot, from, lanes);
      if (by_keys) numbers.fetch(arguments, slot, sequence, head, heads, from);
      async_commit();
    };

    own_tiles.fetch(pair_of(by_keys, head_of(none)), none, first_own, lanes);
    if (!by_keys) numbers.fetch(arguments, none, sequence, head_of(none), heads, first_own);
    fetch_other(none, none);
    async_wait(0);
    barrier();
    const Value own_row = subgroup_id() * kSide;
    std::vector<Fragment> own_operands[2];
    const auto load_own = [&](uint32_t which, uint32_t step) {
      own_operands[which][tile.in_registers ? step : 0].load(
          own_tiles.tiles[which], own_tiles.at(which, none, own_row, step * kSide),
          own_tiles.lengths[which]);
    };
    for (uint32_t which = 0; which < 2; ++which)
      for (uint32_t s = 0; s < (tile.in_registers ? steps[which] : 1); ++s) {
        own_operands[which].push_back(fragment_a(options.type));
        if (tile.in_registers) load_own(which, s);
      }
    const std::vector<Fragment> first = cleared(steps[0]), second = cleared(by_keys ? steps[1] : 0);
    std::vector<Fragment> scores = cleared(columns), slopes = cleared(columns);
    const Fragment operand = fragment_b(options.type), weights = fragment_a(options.type);
    const Value factor = arguments.scale * kLog2E;

    Var slot(u32, 0u, "slot");
    for_(turns, [&](Value turn) {
      async_wait(0);
      barrier();
      fetch_other(1u - slot, turn + 1u);
      const Value first_other = range.first + turn % tiles * tile.rows;
      const auto multiply = [&](uint32_t which, const std::vector<Fragment>& to) {
        for (const Fragment& each : to) each.fill(0.0f);
        for (uint32_t s = 0; s < steps[which]; ++s) {
          if (!tile.in_registers) load_own(which, s);
          for (uint32_t c = 0; c < columns; ++c) {
            operand.load(other_tiles.tiles[which],
                         other_tiles.at(which, slot, constant(u32, c * kSide), s * kSide),
                         other_tiles.lengths[which], Layout::column_major);
            to[c].multiply(own_operands[which][tile.in_registers ? s : 0], operand);
          }
        }
      };
      multiply(0, scores);
      multiply(1, slopes);

      // The place of a query in numbers, from the row and the column of a score.
      const auto number_of = [&](Value row, Value column, uint32_t c) {
        return by_keys ? slot * tile.rows + column + c * kSide : own_row + row;
      };
      const auto weigh = [&](bool some_hidden) {
        for (uint32_t c = 0; c < columns; ++c)
          scores[c].map([&](Value score, Value row, Value column) {
            const Value sum = numbers.sums.load(number_of(row, column, c));
            const Value weight = fast_exp2(fma(score, factor, -sum));
            if (!some_hidden) return weight;
            const Value mine = first_own + own_row + row, other = first_other + column + c * kSide;
            const Value query = by_keys ? other : mine, key = by_keys ? mine : other;
            return select(key < arguments.keys && arguments.sees(query, key), weight, 0.0f);
          });
      };
      if_(
          arguments.hides(first_own, tile.own_rows(), first_other, tile.rows), [&] { weigh(true); },
          [&] { weigh(false); });
      for (uint32_t c = 0; c < columns; ++c)
        slopes[c].map({slopes[c], scores[c]},
                      [&](const std::vector<Value>& e, Value row, Value column) {
                        const Value product = numbers.products.load(number_of(row, column, c));
                        return e[1] * (e[0] - product);
                      });
      const auto add_rows = [&](uint32_t which, const std::vector<Fragment>& to,
                                const std::vector<Fragment>& by) {
        for (uint32_t c = 0; c < columns; ++c) {
          weights.convert(by[c]);
          for (uint32_t s = 0; s < steps[which]; ++s) {
            operand.load(other_tiles.tiles[which],
                         other_tiles.at(which, slot, constant(u32, c * kSide), s * kSide),
                         other_tiles.lengths[which]);
            to[s].multiply(weights, operand);
          }
        }
      };
      if (by_keys) add_rows(1, second, scores);
      add_rows(0, first, slopes);
      slot = 1u - slot;
    });
    async_wait(0);

    const auto store = [&](const Array& to, const std::vector<Fragment>& sums, uint32_t dim,
                           const std::optional<Value>& times) {
      for (uint32_t s = 0; s < sums.size(); ++s)
        sums[s].map([&](Value value, Value row, Value column) {
          const Value mine = first_own + own_row + row, d = column + s * kSide;
          const Value place = (sequence * arguments.own_count() + mine) * group_count(0);
          Value inside = mine < arguments.own_count();
          if ((s + 1) * kSide > dim) inside = inside && d < dim;
          to.store_if(inside, (place + group_id(0)) * dim + d, times ? value * *times : value);
          return value;
        });
    };
    store(arguments.first, first, options.head_dim, arguments.scale);
    if (by_keys) store(*arguments.second, second, options.value_dim, std::nullopt);
  });
}

}  // namespace prism::ops
