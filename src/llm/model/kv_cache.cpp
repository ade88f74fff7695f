// Allocates the blocks of each layer on that layer's device, and keeps the tables of texts.
#include "llm/model/kv_cache.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "llm/model/copy_range.h"
#include "prism/error.h"
#include "tensor/op.h"
#include "tensor/relayout.h"
#include "tensor/storage.h"

namespace prism::llm {
namespace {

// A table look-up costs little if an iteration of a kernel stays within a block: kernels take up to
// 128 keys at once. A text wastes half a block on average.
constexpr int64_t kBlock = 128;

int64_t entries_for(int64_t positions, int64_t block) {
  return positions / block + (positions % block != 0);
}

// A windowed text needs its window, the rows of a batch, parts of a block at both ends, and the
// block that decoding reserves ahead.
int64_t windowed_entries(int64_t window, int64_t batch_rows, int64_t block) {
  return entries_for(window + batch_rows, block) + 3;
}

void check_type(const Config& config, ElementType type) {
  if (!(type == ElementType(DType::f32)) && !(type == ElementType(DType::f16)) &&
      !(type == ElementType(BlockType::q8_0)))
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("model: KV cache type {} is not supported; use f32, f16 or q8_0", type.name()));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const CachedPosition each = config.cached(layer);
    for (const int64_t length : {each.keys, each.values})
      if (length % type.block_elements() != 0)
        throw Error(
            ErrorCode::kNotSupported,
            fmt::format(
                "model: a {} KV cache needs a head size that is a multiple of {}, this model has "
                "{}; use f16",
                type.name(), type.block_elements(), length));
  }
}

// One block of a layer's keys or values, on its device and in the layout of files.
struct BlockLayout {
  DeviceView view;
  uint64_t device_bytes = 0, file_bytes = 0;
};

BlockLayout block_layout(const Tensor& blocks) {
  const Shape& shape = blocks.shape();
  BlockLayout of;
  of.view = {0, blocks.type(), Layout::dense(Shape({shape[1], shape[2], shape[3]}))};
  of.device_bytes = storage_bytes(of.view.layout.shape, blocks.type(), blocks.device());
  of.file_bytes = storage_bytes(of.view.layout.shape, blocks.type(), Device::cpu());
  return of;
}

std::shared_ptr<Storage> borrowed(std::span<std::byte> memory) {
  const std::shared_ptr<std::byte> bytes(memory.data(), [](std::byte*) {});
  return borrow_storage(Device::cpu(), bytes, memory.size(), false);
}

}  // namespace

ElementType indexer_type(ElementType cache) { return cache.is_block() ? DType::f16 : cache; }

int64_t cache_block(int64_t context) {
  if (context >= kBlock) return kBlock;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(context, 1))));
}

int64_t whole_blocks(int64_t context) {
  const int64_t block = cache_block(context);
  // Far beyond any memory, and sums still fit 64 bits.
  return entries_for(std::min(context, int64_t{1} << 60), block) * block;
}

int64_t windowed_positions(int64_t context, int64_t window, int64_t batch_rows) {
  const int64_t block = cache_block(context), each = windowed_entries(window, batch_rows, block);
  return std::min(cached_positions(context), (2 * each + 1) * block);
}

int64_t cached_positions(int64_t context) { return whole_blocks(context) + cache_block(context); }

KvCache::KvCache(const Config& config, const Placement& placement, const CacheSize& size)
    : size_(size),
      block_(size.block > 0 ? size.block : cache_block(size.positions)),
      type_(placement.kv_type),
      states_(config, placement, size.slots, size.side_slots),
      has_encoded_(config.has_decoder()),
      encoded_(static_cast<size_t>(size.slots + size.side_slots)) {
  check_type(config, type_);
  const int64_t each = table_entries();
  const int64_t all =
      size.shared > 0 ? std::max(each, entries_for(size.shared, block_)) : size.slots * each;
  const auto add_group = [&](int64_t window, int64_t blocks) {
    groups_.push_back(
        {window, config.chunked, CacheBlocks(blocks),
         std::vector<int32_t>(static_cast<size_t>((size.slots + size.side_slots) * each))});
  };
  // All side slots together have as much as a text.
  const int64_t window = std::max(config.window, config.least_kept);
  const int64_t windowed = (size.slots + (size.side_slots > 0)) *
                           std::min(each, windowed_entries(window, size.batch_rows, block_));
  std::vector<size_t> group_of_window(2, 0);
  const auto group_for = [&](bool is_windowed) {
    size_t& group = group_of_window[is_windowed];
    if (group == 0) {
      add_group(is_windowed ? window : 0, is_windowed ? std::min(all, windowed) : all);
      group = groups_.size();
    }
    return group - 1;
  };
  for (int64_t layer = 0; layer < config.layers; ++layer)
    group_of_.push_back(group_for(config.is_windowed(layer) && window < size.positions));
  compressed_of_.assign(group_of_.size(), -1);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const int64_t compression = config.at(layer).compression;
    if (compression == 0 || compression > size.positions) continue;
    if (config.at(layer).indexer > 0 && block_ < compression)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("model: blocks of {} positions in the KV cache; this model needs {} "
                              "or more",
                              block_, compression));
    compressed_of_[static_cast<size_t>(layer)] = static_cast<int64_t>(group_of_.size());
    group_of_.push_back(group_for(false));
  }
  if (config.own_adapters > 0) {
    switch_layer_ = static_cast<int64_t>(group_of_.size());
    group_of_.push_back(group_for(false));
  }
  const auto add_parts = [&](size_t layer, int64_t rows, const CachedPosition& held,
                             const Device& device) {
    const auto make = [&](int64_t heads, int64_t length, ElementType type) {
      if (length == 0) return Tensor();
      const Shape shape = {groups_[group_of_[layer]].blocks.count() + 1, rows, heads, length};
      // Kernels index elements with 32 bits.
      if (shape.elements() >= int64_t{1} << 32)
        throw Error(
            ErrorCode::kNotSupported,
            fmt::format(
                "model: the KV cache has {} elements per layer, the limit is 2^32; use a shorter "
                "context or fewer slots",
                shape.elements()));
      return empty(shape, type, device);
    };
    parts_.push_back({make(held.heads, held.keys, type_), make(held.heads, held.values, type_),
                      make(1, held.indexer, indexer_type(type_))});
  };
  for (int64_t layer = 0; layer < config.layers; ++layer)
    add_parts(static_cast<size_t>(layer), block_, config.cached(layer),
              placement.layers[static_cast<size_t>(layer)]);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    if (const int64_t own = compressed_of(layer); own >= 0)
      add_parts(static_cast<size_t>(own),
                std::max<int64_t>(1, block_ / config.at(layer).compression),
                config.compressed(layer), placement.layers[static_cast<size_t>(layer)]);
  if (switch_layer_ >= 0)
    add_parts(static_cast<size_t>(switch_layer_), block_, {.indexer = Config::kSwitchLength},
              placement.embedding);
}

std::vector<const Tensor*> KvCache::tensors(int64_t layer) const {
  const Parts& of = parts(layer);
  std::vector<const Tensor*> result;
  for (const Tensor* each : {&of.keys, &of.values, &of.indexer})
    if (*each) result.push_back(each);
  return result;
}

int64_t KvCache::tokens() const {
  int64_t most = 0;
  for (const Group& group : groups_) most = std::max(most, group.blocks.count() * block_);
  return most;
}

uint64_t KvCache::block_bytes(size_t layer) const {
  uint64_t sum = 0;
  for (const Tensor* each : tensors(static_cast<int64_t>(layer)))
    sum += block_layout(*each).file_bytes;
  return sum;
}

uint64_t KvCache::block_bytes() const {
  uint64_t sum = 0;
  for (size_t layer = 0; layer < layers(); ++layer) sum += block_bytes(layer);
  return sum;
}

void KvCache::read_block(size_t layer, int32_t block, std::span<std::byte> to) const {
  for (const Tensor* each : tensors(static_cast<int64_t>(layer))) {
    const BlockLayout of = block_layout(*each);
    transfer(*each->node()->storage[0], static_cast<uint64_t>(block) * of.device_bytes, of.view,
             *borrowed(to.first(of.file_bytes)), 0);
    to = to.subspan(of.file_bytes);
  }
}

void KvCache::write_block(size_t layer, int32_t block, std::span<const std::byte> from) {
  for (const Tensor* each : tensors(static_cast<int64_t>(layer))) {
    const BlockLayout of = block_layout(*each);
    const auto bytes = from.first(of.file_bytes);
    // The borrowed memory is only read.
    const auto source = borrowed({const_cast<std::byte*>(bytes.data()), bytes.size()});
    transfer(*source, 0, of.view, *each->node()->storage[0],
             static_cast<uint64_t>(block) * of.device_bytes);
    from = from.subspan(of.file_bytes);
  }
}

uint64_t KvCache::bytes() const {
  uint64_t sum = states_.bytes();
  for (size_t layer = 0; layer < layers(); ++layer)
    for (const Tensor* each : tensors(static_cast<int64_t>(layer)))
      sum += storage_bytes(each->shape(), each->type(), each->device());
  return sum;
}

std::span<int32_t> KvCache::entries(Group& group, int32_t slot) {
  const auto row = static_cast<size_t>(table_entries());
  return std::span(group.tables).subspan(static_cast<size_t>(slot) * row, row);
}

std::span<const int32_t> KvCache::table(size_t group, int32_t slot) const {
  const auto row = static_cast<size_t>(table_entries());
  return std::span(groups_[group].tables).subspan(static_cast<size_t>(slot) * row, row);
}

int64_t KvCache::row(size_t group, int32_t slot, int64_t position) const {
  return table(group, slot)[static_cast<size_t>(position / block_)] * block_ + position % block_;
}

int64_t KvCache::first_entry(const Group& group, int64_t position) const {
  if (group.window == 0) return 0;
  if (group.chunked) return position / group.window * group.window / block_;
  return std::max<int64_t>(0, position + 1 - group.window) / block_;
}

bool KvCache::reserve(int32_t slot, int64_t first, int64_t end) {
  const auto last = static_cast<size_t>(entries_for(end, block_));
  const auto written = static_cast<size_t>(first / block_);
  const auto is_missing = [&](const Group& group, std::span<const int32_t> table, size_t entry) {
    return table[entry] == CacheBlocks::kNone ||
           (entry >= written && group.blocks.uses(table[entry]) > 1);
  };
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    const std::span<int32_t> table = entries(group, slot);
    const auto seen = static_cast<size_t>(first_entry(group, first));
    for (size_t entry = 0; entry < seen; ++entry) {
      group.blocks.release(table[entry]);
      table[entry] = CacheBlocks::kNone;
    }
    const auto missing = [&] {
      int64_t count = 0;
      for (size_t entry = seen; entry < last; ++entry) count += is_missing(group, table, entry);
      return count;
    };
    while (group.blocks.free() < missing())
      if (!reclaim || !reclaim(g, table[written])) return false;
  }
  const auto reclaim_state = [&] { return reclaim && reclaim(groups_.size(), CacheBlocks::kNone); };
  if (!states_.reserve(slot, first, reclaim_state)) return false;
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    const std::span<int32_t> table = entries(group, slot);
    for (auto entry = static_cast<size_t>(first_entry(group, first)); entry < last; ++entry) {
      if (!is_missing(group, table, entry)) continue;
      const int32_t block = group.blocks.allocate();
      const bool has_earlier = entry == written && first % block_ != 0;
      if (table[entry] != CacheBlocks::kNone && has_earlier) copy_block(g, table[entry], block);
      group.blocks.release(table[entry]);
      table[entry] = block;
    }
  }
  return true;
}

void KvCache::adopt(int32_t slot, std::span<const std::vector<int32_t>> tables, int32_t state,
                    int64_t length) {
  truncate(slot, 0);
  if (length > 0) states_.adopt(slot, state, length);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const int32_t block : tables[g]) groups_[g].blocks.share(block);
    std::ranges::copy(tables[g], entries(groups_[g], slot).begin());
  }
}

void KvCache::truncate(int32_t slot, int64_t length) {
  states_.truncate(slot, length);
  if (length < encoded(slot)) set_encoded(slot, 0);
  for (Group& group : groups_)
    for (int32_t& block :
         entries(group, slot).subspan(static_cast<size_t>(entries_for(length, block_)))) {
      group.blocks.release(block);
      block = CacheBlocks::kNone;
    }
}

bool KvCache::holds(int32_t slot, int64_t position) const {
  if (!states_.holds(slot, position)) return false;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::span<const int32_t> table = this->table(g, slot);
    for (int64_t entry = first_entry(groups_[g], position); entry * block_ < position; ++entry)
      if (table[static_cast<size_t>(entry)] == CacheBlocks::kNone) return false;
  }
  return true;
}

void KvCache::copy_block(size_t group, int32_t from, int32_t to) {
  for (size_t layer = 0; layer < group_of_.size(); ++layer) {
    if (group_of_[layer] != group) continue;
    for (const Tensor* each : tensors(static_cast<int64_t>(layer))) {
      const Storage& storage = *each->node()->storage[0];
      const uint64_t bytes = storage_bytes(each->shape(), each->type(), each->device()) /
                             static_cast<uint64_t>(each->size(0));
      copy_range(storage, static_cast<uint64_t>(from) * bytes, static_cast<uint64_t>(to) * bytes,
                 bytes);
    }
  }
}

}  // namespace prism::llm
