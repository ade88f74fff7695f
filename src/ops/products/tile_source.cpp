// The three ways to fill an operand tile: copied, converted, decoded.
#include "ops/products/tile_source.h"

namespace prism::ops {

using namespace dsl;

TileSource::Place TileSource::place(uint32_t turn) const {
  const uint32_t chunks = inner_ / chunk_, total = outer_ * chunks;
  const Value chunk = local_id() + turn * lanes_;
  const bool whole = (turn + 1) * lanes_ <= total;
  return {chunk / chunks, chunk % chunks * chunk_, whole ? constant(u32, 0) == 0u : chunk < total};
}

void TileSource::store(uint32_t turn, const std::vector<Value>& values, Value slot) const {
  const Place at = place(turn);
  const Value first = slot * elements() + at.row * row_elements(inner_) + at.column;
  const auto write = [&] {
    for (uint32_t i = 0; i < values.size(); i += 4)
      tile_.store(first + i, vec(values[i], values[i + 1], values[i + 2], values[i + 3]));
  };
  if ((turn + 1) * lanes_ <= outer_ * inner_ / chunk_)
    write();
  else
    if_(at.inside, write);
}

namespace {

class CopiedSource : public TileSource {
 public:
  CopiedSource(const Array& tile, uint32_t outer, uint32_t inner, uint32_t lanes, const In& x,
               const StoredMatrix& matrix, const RowMap& rows)
      : TileSource(tile, outer, inner, 8, lanes), x_(x), matrix_(matrix), rows_(rows) {}

  bool runs_ahead() const override { return true; }
  void copy(uint32_t turn, Value wanted, Value slot, Value outer_start,
            Value inner_start) const override {
    const Place at = place(turn);
    const Value row = outer_start + at.row, column = inner_start + at.column;
    const Value to = slot * elements() + at.row * row_elements(inner_) + at.column;
    const auto one = [&] {
      const Value inside = wanted && row < matrix_.outer_limit && column < matrix_.inner_limit;
      const Value stored = rows_ ? rows_(turn) : row;
      async_copy_if(inside, tile_, to, x_, matrix_.start + stored * matrix_.stride + column, 8);
    };
    if ((turn + 1) * lanes_ <= outer_ * inner_ / chunk_)
      one();
    else
      if_(at.inside, one);
  }

 private:
  In x_;
  StoredMatrix matrix_;
  RowMap rows_;
};

class ConvertedSource : public TileSource {
 public:
  ConvertedSource(const Array& tile, uint32_t outer, uint32_t inner, uint32_t lanes, const In& x,
                  const StoredMatrix& matrix, const RowMap& rows, bool aligned)
      : TileSource(tile, outer, inner, 8, lanes),
        x_(x),
        matrix_(matrix),
        rows_(rows),
        aligned_(aligned) {}

  bool runs_ahead() const override { return false; }
  std::vector<Value> load(uint32_t turn, Value wanted, Value outer_start,
                          Value inner_start) const override {
    const Place at = place(turn);
    const Value row = outer_start + at.row, column = inner_start + at.column;
    const Value inside = wanted && at.inside && row < matrix_.outer_limit;
    const Value stored = rows_ ? rows_(turn) : row;
    const Value first = matrix_.start + stored * matrix_.stride + column;
    std::vector<Value> values;
    for (uint32_t i = 0; i < 8; i += aligned_ ? 4 : 1) {
      if (aligned_) {
        const Value four = x_.load_if(inside && column < matrix_.inner_limit, first + i, 4);
        for (uint32_t j = 0; j < 4; ++j) values.push_back(four[j]);
      } else {
        values.push_back(x_.load_if(inside && column + i < matrix_.inner_limit, first + i));
      }
    }
    return values;
  }
  void put(uint32_t turn, const std::vector<Value>& values, Value slot) const override {
    store(turn, values, slot);
  }

 private:
  In x_;
  StoredMatrix matrix_;
  RowMap rows_;
  bool aligned_;
};

class DecodedSource : public TileSource {
 public:
  DecodedSource(const Array& tile, uint32_t outer, uint32_t inner, uint32_t lanes, ElementType type,
                const WeightReader& reader, const StoredMatrix& matrix, Value first_row)
      : TileSource(tile, outer, inner, WeightReader::unit_elements(type), lanes),
        reader_(reader),
        matrix_(matrix),
        first_row_(first_row) {}

  bool runs_ahead() const override { return false; }
  std::vector<Value> load(uint32_t turn, Value wanted, Value outer_start,
                          Value inner_start) const override {
    const Place at = place(turn);
    const Value row = outer_start + at.row, column = inner_start + at.column;
    const Value inside =
        wanted && at.inside && row < matrix_.outer_limit && column < matrix_.inner_limit;
    const Value unit = column / chunk_;
    std::vector<Value> words = reader_.load(inside, first_row_ + row, unit);
    words.push_back(unit);
    return words;
  }
  void put(uint32_t turn, const std::vector<Value>& loaded, Value slot) const override {
    std::vector<Value> words(loaded.begin(), loaded.end() - 1);
    store(turn, reader_.decode(words, loaded.back()), slot);
  }

 private:
  WeightReader reader_;
  StoredMatrix matrix_;
  Value first_row_;
};

}  // namespace

std::unique_ptr<TileSource> copied_source(const Array& tile, uint32_t outer, uint32_t inner,
                                          uint32_t lanes, const In& x, const StoredMatrix& matrix,
                                          const RowMap& rows) {
  return std::make_unique<CopiedSource>(tile, outer, inner, lanes, x, matrix, rows);
}

std::unique_ptr<TileSource> converted_source(const Array& tile, uint32_t outer, uint32_t inner,
                                             uint32_t lanes, const In& x,
                                             const StoredMatrix& matrix, const RowMap& rows,
                                             bool aligned) {
  return std::make_unique<ConvertedSource>(tile, outer, inner, lanes, x, matrix, rows, aligned);
}

std::unique_ptr<TileSource> decoded_source(const Array& tile, uint32_t outer, uint32_t inner,
                                           uint32_t lanes, ElementType type,
                                           const WeightReader& reader, const StoredMatrix& matrix,
                                           Value first_row) {
  return std::make_unique<DecodedSource>(tile, outer, inner, lanes, type, reader, matrix,
                                         first_row);
}

}  // namespace prism::ops
