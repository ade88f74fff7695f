// One tile of a product with fragments: operand tiles that run ahead through shared memory, and the
// sums.
#include "ops/products/fragment_tile.h"

namespace prism::ops {

using namespace dsl;

namespace {

// Both operands' tiles, through all stages.
class Operands {
 public:
  Operands(const FragmentProduct& p, std::unique_ptr<TileSource> a, std::unique_ptr<TileSource> b,
           Value row, Value column, Value k)
      : p_(p), a_(std::move(a)), b_(std::move(b)), row_(row), column_(column), k_(k) {}

  bool copies() const { return a_->runs_ahead() || b_->runs_ahead(); }
  uint32_t turns() const {
    return (a_->runs_ahead() ? a_->turns() : 0) + (b_->runs_ahead() ? b_->turns() : 0);
  }
  // The turns [first, last) of those copies that run ahead, for one step along k.
  void copy(Value step, Value slot, uint32_t first, uint32_t last) const {
    copy(row_, step, step * p_.tile_k < k_, slot, first, last);
  }
  // The same of the tile at another row.
  void copy(Value row, Value step, Value wanted, Value slot, uint32_t first, uint32_t last) const {
    const uint32_t of_a = a_->runs_ahead() ? a_->turns() : 0;
    const Value start = step * p_.tile_k, a_start = start_of_a(step);
    for (uint32_t t = first; t < last; ++t) {
      if (t < of_a)
        a_->copy(t, wanted, slot, p_.a_transposed ? a_start : row, p_.a_transposed ? row : a_start);
      else
        b_->copy(t - of_a, wanted, slot, p_.b_transposed ? column_ : start,
                 p_.b_transposed ? start : column_);
    }
  }
  using Loaded = std::vector<std::vector<Value>>;
  Loaded load(Value step) const {
    const Value start = step * p_.tile_k, wanted = start < k_, a_start = start_of_a(step);
    Loaded loaded;
    for (uint32_t t = 0; !a_->runs_ahead() && t < a_->turns(); ++t)
      loaded.push_back(
          a_->load(t, wanted, p_.a_transposed ? a_start : row_, p_.a_transposed ? row_ : a_start));
    for (uint32_t t = 0; !b_->runs_ahead() && t < b_->turns(); ++t)
      loaded.push_back(b_->load(t, wanted, p_.b_transposed ? column_ : start,
                                p_.b_transposed ? start : column_));
    return loaded;
  }
  void put(const Loaded& loaded, Value slot) const {
    size_t at = 0;
    for (uint32_t t = 0; !a_->runs_ahead() && t < a_->turns(); ++t) a_->put(t, loaded[at++], slot);
    for (uint32_t t = 0; !b_->runs_ahead() && t < b_->turns(); ++t) b_->put(t, loaded[at++], slot);
  }

 private:
  Value start_of_a(Value step) const {
    return (p_.repeat_a > 1 ? step / p_.repeat_a : step) * p_.tile_k;
  }

  const FragmentProduct& p_;
  std::unique_ptr<TileSource> a_, b_;
  Value row_, column_, k_;
};

// The accumulators of one subgroup and the operands it multiplies.
class Sums {
 public:
  Sums(const FragmentProduct& p, const Array& a_tile, const Array& b_tile)
      : p_(p),
        a_tile_(a_tile),
        b_tile_(b_tile),
        own_m_(p.tile_m / p.warps_m / 16),
        own_n_(p.tile_n / p.warps_n / 16),
        sets_(p.run_ahead ? 2 : 1),
        warp_row_(subgroup_id() / p.warps_n * (own_m_ * 16)),
        warp_column_(subgroup_id() % p.warps_n * (own_n_ * 16)) {
    for (uint32_t i = 0; i < own_m_ * own_n_; ++i) sums_.push_back(accumulator(f32));
    clear();
    for (uint32_t i = 0; i < sets_ * own_m_; ++i) rows_.push_back(fragment_a(p.operand));
    for (uint32_t j = 0; j < sets_ * own_n_; ++j) columns_.push_back(fragment_b(p.operand));
  }

  uint32_t inners() const { return p_.tile_k / 16; }

  void clear() const {
    for (const Fragment& sum : sums_) sum.fill(0);
  }

  void load(Value slot, uint32_t inner) const {
    const uint32_t set = inner % sets_, step = inner % inners() * 16;
    const uint32_t a_row = TileSource::row_elements(p_.a_transposed ? p_.tile_m : p_.tile_k);
    const uint32_t b_row = TileSource::row_elements(p_.b_transposed ? p_.tile_k : p_.tile_n);
    const uint32_t a_size = (p_.a_transposed ? p_.tile_k : p_.tile_m) * a_row;
    const uint32_t b_size = (p_.b_transposed ? p_.tile_n : p_.tile_k) * b_row;
    for (uint32_t i = 0; i < own_m_; ++i) {
      const Fragment& to = rows_[set * own_m_ + i];
      if (p_.a_transposed)
        to.load(a_tile_, slot * a_size + warp_row_ + (step * a_row + i * 16), a_row,
                dsl::Layout::column_major);
      else
        to.load(a_tile_, slot * a_size + warp_row_ * a_row + (i * 16 * a_row + step), a_row);
    }
    for (uint32_t j = 0; j < own_n_; ++j) {
      const Fragment& to = columns_[set * own_n_ + j];
      if (p_.b_transposed)
        to.load(b_tile_, slot * b_size + warp_column_ * b_row + (j * 16 * b_row + step), b_row,
                dsl::Layout::column_major);
      else
        to.load(b_tile_, slot * b_size + warp_column_ + (step * b_row + j * 16), b_row);
    }
  }

  void multiply(uint32_t inner) const {
    const uint32_t set = inner % sets_;
    for (uint32_t i = 0; i < own_m_; ++i)
      for (uint32_t j = 0; j < own_n_; ++j)
        sums_[i * own_n_ + j].multiply(rows_[set * own_m_ + i], columns_[set * own_n_ + j]);
  }

  // first: the place of the tile in columns.
  TileVisit visits(const In* columns, Value first) const {
    std::vector<Fragment> values;
    for (uint32_t j = 0; columns && j < own_n_; ++j) {
      values.push_back(accumulator(f32));
      values.back().load(*columns, first + warp_column_ + j * 16, 0u);  // the same in every row
    }
    return [this, values](const SumVisitor& visit, const std::function<void()>& before) {
      for (uint32_t i = 0; i < own_m_; ++i)
        for (uint32_t j = 0; j < own_n_; ++j) {
          before();
          const Fragment& sums = sums_[i * own_n_ + j];
          const Fragment& beside = values.empty() ? sums : values[j];
          sums.map({sums, beside}, [&](const std::vector<Value>& both, Value row, Value column) {
            visit(warp_row_ + i * 16 + row, warp_column_ + j * 16 + column, both[0], both[1]);
            return both[0];
          });
        }
    };
  }

  // write(row, column, four values side by side) for the whole tile, through a strip of shared
  // memory: not every device knows which lane of a fragment holds what.
  void finish(const TileWriter& write) const {
    const uint32_t width = own_n_ * 16, stride = width + 4;
    const Array strip = shared(f32, uint64_t(16) * stride * p_.warps_m * p_.warps_n, "strip");
    const Value start = subgroup_id() * (16 * stride);
    for (uint32_t i = 0; i < own_m_; ++i) {
      for (uint32_t j = 0; j < own_n_; ++j)
        sums_[i * own_n_ + j].store(strip, start + j * 16, stride);
      barrier();
      for (uint32_t turn = 0; turn < own_n_ * 64 / p_.subgroup; ++turn) {
        const Value quad = subgroup_lane() + turn * p_.subgroup;
        const Value row = quad / (width / 4), column = quad % (width / 4) * 4u;
        const Value four = strip.load(start + row * stride + column, 4);
        write(warp_row_ + i * 16 + row, warp_column_ + column,
              {four[0], four[1], four[2], four[3]});
      }
      if (i + 1 < own_m_) barrier();
    }
  }

 private:
  const FragmentProduct& p_;
  const Array &a_tile_, &b_tile_;
  uint32_t own_m_, own_n_, sets_;
  Value warp_row_, warp_column_;
  std::vector<Fragment> sums_, rows_, columns_;
};

// The loop over k. A step's tiles that are copied run stages - 1 ahead; those that are loaded and
// put travel through registers while the step before is multiplied.
void multiply_all(const FragmentProduct& p, const Operands& operands, const Sums& sums, Value k) {
  const Value steps = (k + (p.tile_k - 1)) / p.tile_k;
  const bool copies = operands.copies();
  const uint32_t turns = operands.turns(), inners = sums.inners();
  for (uint32_t s = 0; copies && s + 1 < p.stages; ++s) {
    operands.copy(constant(u32, s), constant(u32, s), 0, turns);
    async_commit();
  }
  operands.put(operands.load(constant(u32, 0)), constant(u32, 0));
  Var slot(u32, 0u, "slot");
  Var copy_slot(u32, p.stages - 1, "copy_slot");
  const auto following = [&](const Var& s) { return select(s == p.stages - 1, 0u, s + 1u); };
  const auto arrive = [&] {
    if (copies) async_wait(p.stages - 2);
    barrier();
  };
  const auto copy_ahead = [&](Value step, uint32_t part, uint32_t parts) {
    if (!copies) return;
    operands.copy(step + (p.stages - 1), copy_slot, turns * part / parts,
                  turns * (part + 1) / parts);
    if (part + 1 < parts) return;
    async_commit();
    copy_slot = following(copy_slot);
  };
  if (p.run_ahead) {
    arrive();
    sums.load(slot, 0);
    for_(steps, [&](Value step) {
      const Operands::Loaded loaded = operands.load(step + 1u);
      for (uint32_t inner = 0; inner < inners; ++inner) {
        if (inner + 1 < inners) {
          sums.load(slot, inner + 1);
          copy_ahead(step, inner, inners - 1);
        } else {
          operands.put(loaded, following(slot));
          arrive();
          // After the last step there is no next tile: this one is read again, and not used.
          slot = select(step + 1u < steps, following(slot), slot);
          sums.load(slot, inners);
        }
        sums.multiply(inner);
      }
    });
    return;
  }
  for_(steps, [&](Value step) {
    arrive();
    const Operands::Loaded loaded = operands.load(step + 1u);
    copy_ahead(step, 0, 1);
    for (uint32_t inner = 0; inner < inners; ++inner) {
      sums.load(slot, inner);
      sums.multiply(inner);
    }
    operands.put(loaded, following(slot));
    slot = following(slot);
  });
}

}  // namespace

FragmentTiles::FragmentTiles(const FragmentProduct& p)
    : a_outer(p.a_transposed ? p.tile_k : p.tile_m),
      a_inner(p.a_transposed ? p.tile_m : p.tile_k),
      b_outer(p.b_transposed ? p.tile_n : p.tile_k),
      b_inner(p.b_transposed ? p.tile_k : p.tile_n),
      a(shared(p.operand, uint64_t(p.stages) * a_outer * TileSource::row_elements(a_inner),
               "a_tile")),
      b(shared(p.operand, uint64_t(p.stages) * b_outer * TileSource::row_elements(b_inner),
               "b_tile")) {}

void multiply_tile(const FragmentProduct& p, const FragmentTiles& tiles,
                   std::unique_ptr<TileSource> a, std::unique_ptr<TileSource> b, Value row,
                   Value column, Value k, const TileWriter& write) {
  const Operands operands(p, std::move(a), std::move(b), row, column, k);
  const Sums sums(p, tiles.a, tiles.b);
  multiply_all(p, operands, sums, k);
  sums.finish(write);
}

void visit_tile(const FragmentProduct& p, const FragmentTiles& tiles, std::unique_ptr<TileSource> a,
                std::unique_ptr<TileSource> b, Value row, Value column, Value k, const In* columns,
                const std::function<void(const TileVisit&)>& finish) {
  const Operands operands(p, std::move(a), std::move(b), row, column, k);
  const Sums sums(p, tiles.a, tiles.b);
  multiply_all(p, operands, sums, k);
  finish(sums.visits(columns, column));
}

void visit_tiles(const FragmentProduct& p, const FragmentTiles& tiles,
                 std::unique_ptr<TileSource> a, std::unique_ptr<TileSource> b, Value row,
                 Value row_end, Value column, Value k, const In* columns,
                 const std::function<void(Value, const TileVisit&)>& finish) {
  const Operands operands(p, std::move(a), std::move(b), row, column, k);
  const Sums sums(p, tiles.a, tiles.b);
  const uint32_t turns = operands.turns(), inners = sums.inners();
  const Value steps = (k + (p.tile_k - 1)) / p.tile_k;
  const auto following = [&](const Var& s) { return select(s == p.stages - 1, 0u, s + 1u); };
  // What is copied next, and to where.
  Var copy_row(u32, row, "copy_row"), copy_step(u32, 0u, "copy_step"),
      copy_slot(u32, 0u, "copy_slot");
  const auto copy = [&](uint32_t part, uint32_t parts) {
    operands.copy(copy_row, copy_step, Value(copy_row) < row_end, copy_slot, turns * part / parts,
                  turns * (part + 1) / parts);
    if (part + 1 < parts) return;
    async_commit();
    const Value next = copy_step + 1u, is_next_tile = next == steps;
    copy_row = copy_row + select(is_next_tile, p.tile_m, 0u);
    copy_step = select(is_next_tile, 0u, next);
    copy_slot = following(copy_slot);
  };
  const auto arrive = [&] {
    async_wait(p.stages - 2);
    barrier();
  };
  for (uint32_t s = 0; s + 1 < p.stages; ++s) copy(0, 1);
  Var slot(u32, 0u, "slot");
  arrive();
  sums.load(slot, 0);
  for_(row, row_end, p.tile_m, [&](Value at) {
    for_(steps, [&](Value step) {
      for (uint32_t inner = 0; inner + 1 < inners; ++inner) {
        sums.load(slot, inner + 1);
        copy(inner, inners - 1);
        sums.multiply(inner);
      }
      arrive();
      // After the very last step there is no next tile: this one is read again, and not used.
      const Value has_next = step + 1u < steps || at + p.tile_m < row_end;
      slot = select(has_next, following(slot), slot);
      sums.load(slot, inners);
      sums.multiply(inners - 1);
    });
    finish(at, sums.visits(columns, column));
    sums.clear();
  });
}

}  // namespace prism::ops
