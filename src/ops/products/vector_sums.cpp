// The loop over the weights of few-row products.
//
// A subgroup takes a few weight rows (several subgroups share them if there are few), and its lanes
// take the units of each row in turn. The next batch of units is prefetched while one is used, and
// the first is requested before the launch waits for its activations.
#include "ops/products/vector_sums.h"

#include "ops/products/activation_tile.h"
#include "ops/products/rounded_rows.h"

namespace prism::ops {

using namespace dsl;

namespace {

// A unit of each stream, raw words; and those of one batch.
using Streams = std::vector<std::vector<Value>>;
using Batch = std::vector<Streams>;

struct Writer {
  const VectorProduct& p;
  std::vector<WeightReader> readers;  // gate and up, or one
  Value base, first_row, n;           // of the matrix, of the first turn; rows of the matrix
  Value units, lane_unit;             // in a row; the first of this lane
  std::vector<Value> rows = {};       // those of the first turn

  uint32_t streams() const { return static_cast<uint32_t>(readers.size() * p.rows_each); }
  uint32_t step() const {
    return VectorProduct::kWarp * p.split;
  }  // units from one of a lane to its next

  // Unit j of the batch.
  Streams load_unit(Value batch, uint32_t j, std::optional<Value> turn = {}) const {
    Streams result;
    const Value unit = unit_of(batch, j);
    for (const WeightReader& reader : readers)
      for (uint32_t r = 0; r < p.rows_each; ++r) {
        const Value row =
            turn ? base + min(first_row + r + *turn * p.rows_of_turn(), n - 1u) : rows[r];
        result.push_back(reader.load(unit < units, row, unit));
      }
    return result;
  }
  Batch load(Value batch) const {
    Batch result;
    for (uint32_t j = 0; j < p.units_ahead; ++j) result.push_back(load_unit(batch, j));
    return result;
  }
  Value unit_of(Value batch, uint32_t j) const {
    return batch * (p.units_ahead * step()) + (lane_unit + j * step());
  }
};

// Keeps a batch in variables, so that it lives from one turn of the loop to the next.
class Held {
 public:
  explicit Held(const Batch& first) {
    for (const Streams& unit : first) {
      vars_.emplace_back();
      for (const auto& stream : unit)
        for (const Value& word : stream) vars_.back().emplace_back(word, "held");
    }
    shape_ = first;
  }
  Streams read(uint32_t j) const {
    Streams result = shape_[j];
    size_t at = 0;
    for (auto& stream : result)
      for (Value& word : stream) word = vars_[j][at++];
    return result;
  }
  void set(uint32_t j, const Streams& unit) {
    size_t at = 0;
    for (const auto& stream : unit)
      for (const Value& word : stream) vars_[j][at++] = word;
  }

 private:
  std::vector<std::vector<Var>> vars_;
  Batch shape_;
};

// What is done with unit j of a lane: its words, and which unit of the row it is.
using Use = std::function<void(const Streams&, Value unit, uint32_t j)>;

// The units of a lane, a batch at a time, the first of which was asked for.
class Batches {
 public:
  Batches(const Writer& w, const Batch& first, Value k) : w_(w), p_(w.p), first_(first), k_(k) {
    if (!p_.at_once || p_.turns > 1) held_.emplace(first);
  }
  uint32_t elements() const {
    return w_.step() * p_.units_ahead * WeightReader::unit_elements(p_.weight);
  }
  Value count() const { return (k_ + (elements() - 1)) / elements(); }

  // While a batch is used the next is under way.
  void between(Value first, Value last, const Use& use) {
    for_(first, last, 1u, [&](Value number) {
      const Batch next = w_.load(number + 1u);
      for (uint32_t j = 0; j < p_.units_ahead; ++j) use(held_->read(j), w_.unit_of(number, j), j);
      for (uint32_t j = 0; j < p_.units_ahead; ++j) held_->set(j, next[j]);
    });
  }

  // All units of the rows, in one turn.
  void all(const Use& use, Value row_count) {
    if (held_) return between(constant(u32, 0), count(), use);
    const auto at_once = [&] {
      for (uint32_t j = 0; j < p_.units_ahead; ++j)
        use(first_[j], w_.unit_of(constant(u32, 0), j), j);
    };
    // A branch, always taken, where no wait stands between: in one piece with the loads a compiler
    // that saves registers uses up the first of them before it asks for the last.
    if (p_.x_first)
      if_(row_count > 0u, at_once);
    else
      at_once();
  }

  // All units of the rows of one turn after the other.
  void turns(const Use& use, std::vector<Var>& sums, const std::function<void(Value)>& after_turn) {
    const Value batches = count();
    for_(constant(u32, p_.turns), [&](Value turn) {
      for (Var& sum : sums) sum = constant(f32, 0.0);
      const Value again = turn + 1u < p_.turns;
      const auto batch = [&](Value number) {
        const Value ends = p_.at_once ? again : again && number + 1u == batches;
        const Value next = select(ends, 0u, number + 1u), next_turn = turn + select(ends, 1u, 0u);
        // The registers of a unit take the next as soon as it is used: groups of so many rows must
        // leave room for others.
        for (uint32_t j = 0; j < p_.units_ahead; ++j) {
          use(held_->read(j), w_.unit_of(number, j), j);
          held_->set(j, w_.load_unit(next, j, next_turn));
        }
      };
      if (p_.at_once)
        batch(constant(u32, 0));
      else
        for_(batches, batch);
      after_turn(turn);
    });
  }

 private:
  const Writer& w_;
  const VectorProduct& p_;
  const Batch& first_;
  Value k_;
  std::optional<Held> held_;
};

// The activations of row i for a unit.
using Activations = std::function<RoundedUnit(uint32_t i, Value unit)>;

// sums[stream * x_rows + i] += a unit of block weights by rounded activations.
void use_block(const Writer& w, const Activations& activations, const Streams& words, Value unit,
               std::vector<Var>& sums) {
  // Beyond the last unit the weights are zeros, and any x will do.
  const Value there = min(unit, w.units - 1u);
  // Asked for before the weights are looked at, which may still be under way.
  std::optional<RoundedUnit> only;
  if (w.p.x_rows == 1) only = activations(0, there);
  std::vector<BlockUnit> weights;
  for (uint32_t s = 0; s < w.streams(); ++s)
    weights.push_back(w.readers[s / w.p.rows_each].decode_block(words[s], unit));
  for (uint32_t i = 0; i < w.p.x_rows; ++i) {
    const RoundedUnit x = only ? *only : activations(i, there);
    for (uint32_t s = 0; s < w.streams(); ++s) {
      const BlockUnit& unit_weights = weights[s];
      Var& sum = sums[s * w.p.x_rows + i];
      const size_t each = x.quads.size() / unit_weights.parts.size();
      for (size_t part = 0; part < unit_weights.parts.size(); ++part) {
        Value dot = constant(i32, 0);
        for (size_t q = part * each; q < (part + 1) * each; ++q)
          dot = dot4_i8(unit_weights.quads[q], x.quads[q], dot);
        const auto& [scale, minus] = unit_weights.parts[part];
        sum = fma(scale * x.scale, cast(f32, dot), sum);
        if (minus) sum = fma(-*minus, x.sums[part], sum);
      }
    }
  }
}

// The same for plain weights, with x from the cache.
void use_plain(const Writer& w, const In& x, const Streams& words, Value unit, Value k,
               const std::vector<Value>& x_starts, std::vector<Var>& sums) {
  const uint32_t elements = WeightReader::unit_elements(w.p.weight);
  const Value column = unit * elements;
  std::vector<std::vector<Value>> weights;
  for (uint32_t s = 0; s < w.streams(); ++s)
    weights.push_back(w.readers[s / w.p.rows_each].decode_plain(words[s]));
  for (uint32_t i = 0; i < w.p.x_rows; ++i) {
    std::vector<Value> values;
    for (uint32_t e = 0; e < elements; e += 4) {
      if (w.p.aligned) {
        const Value four = x.load_if(unit < w.units, x_starts[i] + column + e, 4);
        for (uint32_t c = 0; c < 4; ++c) values.push_back(four[c]);
      } else {
        for (uint32_t c = e; c < e + 4; ++c)
          values.push_back(x.load_if(column + c < k, x_starts[i] + column + c));
      }
    }
    for (uint32_t s = 0; s < w.streams(); ++s) {
      Var& sum = sums[s * w.p.x_rows + i];
      for (uint32_t e = 0; e < elements; ++e) sum = fma(weights[s][e], values[e], sum);
    }
  }
}

Writer writer_of(const VectorProduct& p, const Operands& o, Value group) {
  const uint32_t elements = WeightReader::unit_elements(p.weight);
  const Value first_row = first_row_of(p, group);
  Value base = constant(u32, 0);
  if (p.experts) base = select(*expert_is_known(o), o.ids->load(group_id(1)), 0u) * o.n;
  Writer w{p,
           {},
           base,
           first_row,
           o.n,
           p.weight.is_block() ? o.k / elements : (o.k + (elements - 1)) / elements,
           subgroup_id() % p.split * VectorProduct::kWarp + subgroup_lane()};
  for (const In& matrix : o.matrices)
    w.readers.emplace_back(p.weight, matrix, o.layout, o.k, p.aligned);
  for (uint32_t r = 0; r < p.rows_each; ++r) {
    if (!o.rotates()) {
      w.rows.push_back(base + min(first_row + r, o.n - 1u));
    } else if (r % 2 == 0) {
      const auto [one, other] = o.cache->rows(min(first_row + r, o.n - 2u));
      w.rows.insert(w.rows.end(), {one, other});
    }
  }
  return w;
}

// Where the sums of squares of a row start (rounded_rows.h).
Value squares_at(Value k) { return k / 8u * 3u; }

}  // namespace

RowScales::RowScales(const VectorProduct& p) : epsilon_(p.scale_epsilon) {
  for (uint32_t i = 0; epsilon_ && i < 4; ++i) squares_.emplace_back(f32, 0.0f, "squares");
}

void RowScales::ask(const In& x, Value k) {
  if (!epsilon_) return;
  const Value at = subgroup_lane() * 4u;
  const Value four = x.load_if(at < k / 32u, squares_at(k) + at, 4);
  // Not added to anything before they are needed: that would be to wait for them.
  for (uint32_t i = 0; i < 4; ++i) squares_[i] = bitcast(f32, four[i]);
}

std::optional<Value> RowScales::scale(const In& x, Value k) {
  if (!epsilon_) return std::nullopt;
  const uint32_t step = 4 * VectorProduct::kWarp;
  for_(subgroup_lane() * 4u + step, k / 32u, step, [&](Value at) {
    const Value four = x.load(squares_at(k) + at, 4);
    for (uint32_t i = 0; i < 4; ++i) squares_[i] += bitcast(f32, four[i]);
  });
  const Value own = (Value(squares_[0]) + squares_[1]) + (Value(squares_[2]) + squares_[3]);
  return 1.0f / sqrt(subgroup_sum(own) / cast(f32, k) + *epsilon_);
}

uint32_t sums_of(const VectorProduct& p) { return (p.pair ? 2 : 1) * p.rows_each * p.x_rows; }

std::vector<Var> zero_sums(uint32_t count) {
  std::vector<Var> sums;
  for (uint32_t i = 0; i < count; ++i) sums.emplace_back(f32, 0.0f, "sum");
  return sums;
}

// The first weight row of a subgroup; group: of those that this product has. Written so because
// ptxas takes 65 registers for q4_k beside q6_k then, and 120 for a sum of two products.
Value first_row_of(const VectorProduct& p, Value group) {
  return (group * (p.rows_of_group() / p.rows_each) + subgroup_id() / p.split) * p.rows_each;
}

std::optional<Value> expert_is_known(const Operands& o) {
  if (!o.ids) return std::nullopt;
  return o.ids->load(group_id(1)) < *o.experts;
}

void add_up(const VectorProduct& p, const Operands& o, Value group, std::vector<Var>& sums,
            RowScales& scales, const std::function<void(Value turn)>& after_turn) {
  const bool block = p.weight.is_block();
  const Value &k = o.k, &row_count = o.row_count, &x_stride = o.x_stride;
  const In& x = o.x;
  if (p.experts) wait_previous();
  const uint32_t elements = WeightReader::unit_elements(p.weight);
  const Writer w = writer_of(p, o, group);
  const uint32_t parts =
      block && WeightReader::has_minus(p.weight) ? WeightReader::parts_of_unit(p.weight) : 0;
  const auto rounded_x = [&](uint32_t i, Value unit) {
    const Value row = p.experts ? group_id(1) / row_count : min(constant(u32, i), row_count - 1u);
    return load_rounded(x, row * (k / 8u * 3u), k, unit, elements, parts);
  };
  // What one row of x has for the units that are read at once: the same in every turn.
  std::vector<RoundedUnit> own_x;
  const auto ask_x = [&] {
    for (uint32_t j = 0; block && p.at_once && p.x_rows == 1 && j < p.units_ahead; ++j)
      own_x.push_back(rounded_x(0, min(w.unit_of(constant(u32, 0), j), w.units - 1u)));
  };
  if (p.x_first) {
    if (!p.experts) wait_previous();
    ask_x();
  }
  launch_next();
  const Batch first_batch = w.load(constant(u32, 0));
  if (!p.x_first) {
    if (!p.experts) wait_previous();
    ask_x();
  }
  scales.ask(x, k);
  const auto ask = [&] {
    const Value lane = subgroup_lane();
    if (o.cache)
      o.cache->ask(o.number, min(lane % p.x_rows, row_count - 1u),
                   w.first_row + lane / p.x_rows * 2u);
  };
  // Plain weights need all the registers until they are used up.
  if (block) ask();

  const auto x_start = [&](Value i) {
    if (p.experts) return group_id(1) / row_count * x_stride;
    const Value start = min(i, row_count - 1u) * x_stride;
    return o.x_from ? *o.x_from + start : start;
  };
  Batches batches(w, first_batch, k);
  const auto each_batch = [&](const Use& use) {
    if (after_turn && (p.turns > 1 || (!p.at_once && p.units_ahead > 1)))
      return batches.turns(use, sums, after_turn);
    batches.all(use, row_count);
    if (after_turn) after_turn(constant(u32, 0));
  };
  if (block && p.rounded) {
    each_batch([&](const Streams& words, Value unit, uint32_t j) {
      const auto activations = [&](uint32_t i, Value there) {
        return own_x.empty() ? rounded_x(i, there) : own_x[j];
      };
      use_block(w, activations, words, unit, sums);
    });
  } else if (block) {
    const uint32_t part_elements = elements / WeightReader::parts_of_unit(p.weight);
    const ActivationTile tile(p.x_rows, p.k_tile, elements, parts ? part_elements : 0, p.shuffles);
    const uint32_t in_tile = p.k_tile / batches.elements();
    const Value in_row = batches.count();
    for_(0u, k, p.k_tile, [&](Value start) {
      tile.fill(x, p.subgroups * VectorProduct::kWarp, start, k,
                p.experts ? constant(u32, 1) : row_count, x_start);
      barrier();
      const Value first = start / batches.elements();
      const Value last = min(in_row, first + in_tile);
      const auto activations = [&](uint32_t i, Value unit) {
        const Value place = unit - start / elements;
        return RoundedUnit{tile.quads(i, place), tile.scale(i, place),
                           parts ? tile.sums(i, place) : std::vector<Value>{}};
      };
      batches.between(first, last, [&](const Streams& words, Value unit, uint32_t) {
        use_block(w, activations, words, unit, sums);
      });
      barrier();
    });
  } else {
    std::vector<Value> starts;
    for (uint32_t i = 0; i < p.x_rows; ++i) starts.push_back(x_start(constant(u32, i)));
    each_batch([&](const Streams& words, Value unit, uint32_t) {
      use_plain(w, x, words, unit, k, starts, sums);
    });
    ask();
  }
}

}  // namespace prism::ops
