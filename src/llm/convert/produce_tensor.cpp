// Moves and changes the rows of tensors on their way into a file.
#include "llm/convert/produce_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "llm/gguf/tensor_floats.h"

namespace prism::llm {

namespace {

constexpr uint64_t kPieceElements = uint64_t{4} << 20;

bool moves_rows(TensorChange change) {
  return change == TensorChange::rotary || change == TensorChange::index_halves ||
         change == TensorChange::rotary_elements || change == TensorChange::fused_rotary ||
         change == TensorChange::split_heads || change == TensorChange::split_groups ||
         change == TensorChange::rotary_groups || change == TensorChange::tiled ||
         change == TensorChange::tiled_negative_exp || change == TensorChange::by_rank;
}

// The place in the source of what has this place among tiles.
uint64_t source_place(const Tiles& tiles, uint64_t place) {
  const auto first = static_cast<uint64_t>(tiles.first), unit = static_cast<uint64_t>(tiles.unit),
             keys = static_cast<uint64_t>(tiles.keys);
  if (place < first) return place;
  const uint64_t head = (place - first) / unit;
  const uint64_t from = head % keys * static_cast<uint64_t>(tiles.shared_by) + head / keys;
  return first + from * unit + (place - first) % unit;
}

// The row among those of all ranks that becomes this row of the matrices.
uint64_t source_row_of_ranks(const Ranks& ranks, uint64_t row) {
  const auto count = static_cast<uint64_t>(ranks.count);
  uint64_t of_rank = 0, before = 0;
  for (const int64_t rows : ranks.rows) of_rank += static_cast<uint64_t>(rows);
  for (const int64_t rows : ranks.rows) {
    const auto own = static_cast<uint64_t>(rows);
    if (row < own * count) return row / own * of_rank + before + row % own;
    row -= own * count;
    before += own;
  }
  return row;
}

// The row of the source that becomes this row. Rotary: halves of a head become adjacent elements.
uint64_t source_row(const PlannedTensor& tensor, uint64_t row) {
  if (tensor.tiles) return source_place(*tensor.tiles, row);
  if (tensor.ranks) return source_row_of_ranks(*tensor.ranks, row);
  const auto length = static_cast<uint64_t>(tensor.head_length);
  const bool is_plain = row >= static_cast<uint64_t>(tensor.shape[0] - tensor.plain_rows);
  const bool is_whole =
      tensor.change == TensorChange::rotary || tensor.change == TensorChange::rotary_elements;
  const bool rotates = is_whole || tensor.change == TensorChange::fused_rotary ||
                       tensor.change == TensorChange::rotary_groups;
  uint64_t in_head = row % length;
  const uint64_t first = row - in_head;
  if (tensor.change == TensorChange::index_halves) {
    const auto count = static_cast<uint64_t>(tensor.rotated), half = count / 2;
    return first + (in_head < count ? in_head % half * 2 + in_head / half : in_head);
  }
  const uint64_t turned = is_whole ? static_cast<uint64_t>(tensor.rotated) : length;
  if (rotates && (is_whole || !is_plain) && in_head < turned)
    in_head = in_head % 2 * (turned / 2) + in_head / 2;
  if (is_whole || tensor.change == TensorChange::fused_rotary) return first + in_head;
  // A group has some heads of q, one of k and one of v.
  const auto shared = static_cast<uint64_t>(tensor.shared_by);
  const uint64_t groups = static_cast<uint64_t>(tensor.shape[0]) / ((shared + 2) * length);
  const uint64_t head = row / length, other = head - groups * shared;
  const uint64_t from = head < groups * shared
                            ? head / shared * (shared + 2) + head % shared
                            : other % groups * (shared + 2) + shared + other / groups;
  return from * length + in_head;
}

// What the weights of a norm are differences from; 0 for other tensors.
float offset_of(TensorChange change) {
  if (change == TensorChange::add_one) return 1;
  if (change == TensorChange::add_fifth) return 1.0f / 5;
  return change == TensorChange::add_small ? 0.08944272f : 0;  // 5 to the power of -1.5
}

// The value that becomes of a source's.
float changed(TensorChange change, float value) {
  if (const float offset = offset_of(change); offset > 0) return value + offset;
  if (change == TensorChange::positive_exp) return std::exp(value);
  const bool is_rate =
      change == TensorChange::negative_exp || change == TensorChange::tiled_negative_exp;
  return is_rate ? -std::exp(value) : value;
}

// Calls `use` with the values of a source, a few megabytes at a time.
void for_each_piece(const PlannedTensor& tensor, const SafetensorsEntry& source, ThreadPool& pool,
                    const std::function<void(std::span<const float>)>& use) {
  const auto elements = static_cast<uint64_t>(source.shape.elements());
  const auto* const bytes = reinterpret_cast<const std::byte*>(source.bytes.data());
  std::vector<float> values;
  for (uint64_t at = 0; at < elements; at += values.size()) {
    values.resize(std::min(kPieceElements, elements - at));
    to_floats(tensor.type, bytes + tensor.type.row_bytes(at), values, pool);
    use(values);
  }
}

float mean_size(const PlannedTensor& tensor, const SafetensorsEntry& source, ThreadPool& pool) {
  double sum = 0;
  for_each_piece(tensor, source, pool, [&](std::span<const float> values) {
    for (const float each : values) sum += std::abs(static_cast<double>(each));
  });
  return static_cast<float>(sum / static_cast<double>(source.shape.elements()));
}

// -1, 0 or 1 times the scale; halves become even numbers, as transformers rounds them.
float ternary(float value, float scale) {
  return std::clamp(std::nearbyint(value / scale), -1.0f, 1.0f) * scale;
}

void divide_by_length(std::span<float> row) {
  double squares = 0;
  for (const float each : row) squares += static_cast<double>(each) * static_cast<double>(each);
  constexpr double kLeast = 1e-12;  // as torch's normalize has it
  const auto length = static_cast<float>(std::max(std::sqrt(squares), kLeast));
  for (float& each : row) each /= length;
}

// Streams the rows of one source.
class Stream {
 public:
  Stream(const PlannedTensor& tensor, ElementType type, ThreadPool& pool,
         const std::function<void(std::span<const std::byte>)>& sink)
      : tensor_(tensor), type_(type), pool_(pool), sink_(sink) {}

  void put(const SafetensorsEntry& source, uint64_t rows, uint64_t columns,
           const SafetensorsEntry* scales = nullptr) {
    scales_ = scales;
    constexpr float kLeastScale = 1e-5f;  // as BitNet has it
    if (tensor_.change == TensorChange::ternary)
      ternary_scale_ = std::max(mean_size(tensor_, source, pool_), kLeastScale);
    const uint64_t row_bytes = tensor_.type.row_bytes(columns);
    const uint64_t at_once = std::max<uint64_t>(1, kPieceElements / columns);
    const auto* const bytes = reinterpret_cast<const std::byte*>(source.bytes.data());
    for (uint64_t row = 0; row < rows; row += at_once) {
      const uint64_t count = std::min(at_once, rows - row);
      const std::byte* from =
          bytes + (static_cast<uint64_t>(tensor_.skipped_rows) + row) * row_bytes;
      if (moves_rows(tensor_.change) || tensor_.tiles || tensor_.strides || scales_) {
        moved_.resize(count * row_bytes);
        for (uint64_t i = 0; i < count; ++i)
          move_row(bytes, row + i, columns, moved_.data() + i * row_bytes);
        from = moved_.data();
      }
      put_rows(from, row, count, columns);
    }
  }

 private:
  void move_row(const std::byte* bytes, uint64_t row, uint64_t columns, std::byte* to) const {
    const uint64_t row_bytes = tensor_.type.row_bytes(columns);
    if (scales_) return pack_row(bytes, row, columns / 32, to);
    if (tensor_.change == TensorChange::tiled_columns ||
        tensor_.change == TensorChange::by_turns_columns) {
      const uint64_t size = tensor_.type.row_bytes(1);
      for (uint64_t i = 0; i < columns; ++i)
        std::memcpy(to + i * size, bytes + row * row_bytes + source_place(*tensor_.tiles, i) * size,
                    size);
      return;
    }
    if (!tensor_.strides) {
      std::memcpy(to, bytes + source_row(tensor_, row) * row_bytes, row_bytes);
      return;
    }
    const Strides& by = *tensor_.strides;
    const uint64_t size = tensor_.type.row_bytes(1), rows = static_cast<uint64_t>(by.rows);
    const uint64_t place = row / rows,
                   matrix = by.order.empty() ? place : static_cast<uint64_t>(by.order[place]);
    const std::byte* const from =
        bytes + (static_cast<uint64_t>(by.first) + matrix * static_cast<uint64_t>(by.matrix) +
                 row % rows * static_cast<uint64_t>(by.row)) *
                    size;
    if (by.column == 1) {
      std::memcpy(to, from, row_bytes);
      return;
    }
    for (uint64_t i = 0; i < columns; ++i)
      std::memcpy(to + i * size, from + i * static_cast<uint64_t>(by.column) * size, size);
  }

  // In the folder a byte has two neighbours; in GGUF the second half of a block is in the high
  // bits, behind the scale.
  void pack_row(const std::byte* bytes, uint64_t row, uint64_t blocks, std::byte* to) const {
    const bool is_half =
        tensor_.change == TensorChange::even_mxfp4 || tensor_.change == TensorChange::odd_mxfp4;
    const uint64_t from = is_half ? 2 * row + (tensor_.change == TensorChange::odd_mxfp4) : row;
    const auto* const scales =
        reinterpret_cast<const std::byte*>(scales_->bytes.data()) + from * blocks;
    const auto nibble = [](const std::byte* block, uint64_t i) {
      return (block[i / 2] >> (i % 2 * 4)) & std::byte{15};
    };
    for (uint64_t b = 0; b < blocks; ++b) {
      const std::byte* const block = bytes + (from * blocks + b) * 16;
      *to++ = scales[b];
      for (uint64_t i = 0; i < 16; ++i) *to++ = nibble(block, i) | nibble(block, i + 16) << 4;
    }
  }

  void put_rows(const std::byte* from, uint64_t first, uint64_t rows, uint64_t columns) {
    const bool is_ternary = tensor_.change == TensorChange::ternary,
               has_unit_rows = tensor_.change == TensorChange::unit_rows;
    const bool is_same = offset_of(tensor_.change) == 0 &&
                         tensor_.change != TensorChange::negative_exp &&
                         tensor_.change != TensorChange::positive_exp &&
                         tensor_.change != TensorChange::tiled_negative_exp && !is_ternary &&
                         !has_unit_rows && tensor_.factors.empty();
    if (tensor_.type == type_ && is_same) {
      sink_({from, tensor_.type.row_bytes(columns) * rows});
      return;
    }
    values_.resize(rows * columns);
    to_floats(tensor_.type, from, values_, pool_);
    if (is_ternary) {
      for (float& each : values_) each = ternary(each, ternary_scale_);
    } else if (has_unit_rows) {
      for (uint64_t row = 0; row < rows; ++row)
        divide_by_length(std::span(values_).subspan(row * columns, columns));
    } else if (!is_same) {
      for (uint64_t row = 0; row < rows; ++row) {
        const auto factor = static_cast<float>(factor_of(first + row));
        for (uint64_t i = row * columns; i < (row + 1) * columns; ++i)
          values_[i] = changed(tensor_.change, values_[i]) * factor;
      }
    }
    encoded_.resize(type_.row_bytes(values_.size()));
    from_floats(type_, values_, rows, encoded_, pool_);
    sink_(encoded_);
  }

  double factor_of(uint64_t row) const {
    for (const RowFactor& each : tensor_.factors) {
      if (row < static_cast<uint64_t>(each.rows)) return each.factor;
      row -= static_cast<uint64_t>(each.rows);
    }
    return 1;
  }

  const PlannedTensor& tensor_;
  const SafetensorsEntry* scales_ = nullptr;  // of the source's blocks
  ElementType type_;
  ThreadPool& pool_;
  const std::function<void(std::span<const std::byte>)>& sink_;
  std::vector<std::byte> moved_, encoded_;
  std::vector<float> values_;
  float ternary_scale_ = 1;
};

// The bytes of a matrix of which each shard has some rows, or some columns.
std::string joined(const std::vector<const SafetensorsEntry*>& shards, TensorChange change) {
  std::string all;
  if (change == TensorChange::sharded_rows) {
    for (const SafetensorsEntry* each : shards) all += each->bytes;
    return all;
  }
  const auto rows = static_cast<uint64_t>(shards[0]->shape[0]);
  const uint64_t row_bytes = shards[0]->bytes.size() / rows;
  all.reserve(rows * row_bytes * shards.size());
  for (uint64_t row = 0; row < rows; ++row)
    for (const SafetensorsEntry* each : shards)
      all += each->bytes.substr(row * row_bytes, row_bytes);
  return all;
}

void put_product(const PlannedTensor& tensor, ElementType type, ThreadPool& pool,
                 const std::function<void(std::span<const std::byte>)>& sink) {
  const auto count = static_cast<size_t>(tensor.shape.elements());
  std::vector<float> values(count, 1.0f), factors(count);
  for (const SafetensorsEntry* source : tensor.sources) {
    to_floats(source->type, reinterpret_cast<const std::byte*>(source->bytes.data()), factors,
              pool);
    for (size_t i = 0; i < count; ++i) values[i] *= factors[i];
  }
  std::vector<std::byte> encoded(type.row_bytes(count));
  from_floats(type, values, 1, encoded, pool);
  sink(encoded);
}

}  // namespace

void produce(const PlannedTensor& tensor, ElementType type, ThreadPool& pool,
             const std::function<void(std::span<const std::byte>)>& sink) {
  if (tensor.sources.empty()) return sink(std::as_bytes(std::span(tensor.computed)));
  const auto elements = static_cast<uint64_t>(tensor.shape.elements()) / tensor.sources.size();
  if (tensor.change == TensorChange::product) return put_product(tensor, type, pool, sink);
  // The elements of a vector move by themselves.
  const bool is_flat = tensor.shape.rank() == 1 || tensor.change == TensorChange::rotary_elements;
  const bool by_element =
      is_flat && (moves_rows(tensor.change) || tensor.change == TensorChange::joined);
  const uint64_t columns = by_element ? 1 : static_cast<uint64_t>(tensor.shape[-1]);
  Stream stream(tensor, type, pool, sink);
  for (size_t i = 0; i < tensor.sources.size(); ++i) {
    const SafetensorsEntry& source = *tensor.sources[i];
    if (tensor.change == TensorChange::padded) {
      const auto own = static_cast<uint64_t>(source.shape.elements());
      stream.put(source, own / columns, columns);
      const std::vector<std::byte> zeros(type.row_bytes(columns));
      for (uint64_t row = own / columns; row < elements / columns; ++row) sink(zeros);
      continue;
    }
    if (!tensor.shards.empty() && !tensor.shards[i].empty()) {
      const std::string bytes = joined(tensor.shards[i], tensor.change);
      SafetensorsEntry whole = source;
      whole.bytes = bytes;
      stream.put(whole, elements / columns, columns);
      continue;
    }
    if (tensor.source_scales.empty()) {
      stream.put(source, elements / columns, columns,
                 tensor.block_scales.empty() ? nullptr : tensor.block_scales[i]);
      continue;
    }
    const std::vector<float> values = scaled_weight(source, tensor.source_scales[i], pool);
    const SafetensorsEntry unpacked{
        DType::f32,
        source.shape,
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}};
    stream.put(unpacked, elements / columns, columns);
  }
}

}  // namespace prism::llm
