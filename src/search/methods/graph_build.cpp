// Builds the layers of a graph from the top down.
#include "search/methods/graph_build.h"

#include <algorithm>
#include <random>
#include <thread>

#include "cpu/nearest/code_distance.h"

namespace prism::search {

namespace {

// Rows that a thread takes at once.
constexpr uint64_t kChunk = 64;
// Nodes share locks. Two threads rarely want the same one of so many.
constexpr size_t kLocks = 1 << 16;

struct Near {
  uint32_t distance, node;
  bool operator<(const Near& other) const {
    return distance != other.distance ? distance < other.distance : node < other.node;
  }
};

class Guard {
 public:
  explicit Guard(std::atomic<uint8_t>& lock) : lock_(lock) {
    while (lock_.exchange(1, std::memory_order_acquire) != 0) std::this_thread::yield();
  }
  ~Guard() { lock_.store(0, std::memory_order_release); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::atomic<uint8_t>& lock_;
};

}  // namespace

struct GraphBuilder::Room {
  WalkRoom walk;
  std::vector<Near> near;
  std::vector<uint32_t> chosen, rows, distances;

  // Chooses at most `most` of the nearest nodes, in order. A node is left out if a chosen one is
  // nearer to it than the target: the walk reaches it through that one.
  void choose(const GraphData& graph, size_t layer, size_t most) {
    std::sort(near.begin(), near.end());
    chosen.clear();
    rows.clear();
    for (const Near& each : near) {
      if (chosen.size() == most) break;
      const uint32_t row = graph.row_of(layer, each.node);
      if (cpu::any_nearer(graph.code(row), graph.codes, graph.space.bytes(), rows.data(),
                          rows.size(), each.distance))
        continue;
      chosen.push_back(each.node);
      rows.push_back(row);
    }
  }
};

GraphBuilder::GraphBuilder(ThreadPool& pool, const GraphSettings& settings, const CodeSpace& space,
                           uint64_t rows, uint64_t held_back, const CodeSpace::RowReader& row)
    : pool_(pool), settings_(settings), data_(space), locks_(kLocks) {
  codes.resize(rows * space.bytes());
  pool_.parallel_for(rows, kChunk, [&](uint64_t first, uint64_t last) {
    for (uint64_t r = first; r < last; ++r)
      space.encode_row(row(r), codes.change<int8_t>() + r * space.bytes());
  });
  data_.codes = codes.as<int8_t>();
  const std::vector<uint32_t> sizes = layer_sizes(rows);
  const uint32_t slots = settings_.links * 2;
  links.resize(rows * slots * sizeof(uint32_t), std::byte{0xff});
  data_.layers.push_back({sizes[0], slots, links.as<uint32_t>()});
  writable_.push_back(links.change<uint32_t>());
  uint64_t above = 0;
  for (size_t l = 1; l < sizes.size(); ++l) above += sizes[l];
  upper_links.resize(above * settings_.links * sizeof(uint32_t), std::byte{0xff});
  uint32_t* at = upper_links.change<uint32_t>();
  for (size_t l = 1; l < sizes.size(); ++l) {
    data_.layers.push_back({sizes[l], settings_.links, at});
    writable_.push_back(at);
    at += size_t{sizes[l]} * settings_.links;
  }
  choose_rows(held_back);
  for (size_t l = sizes.size(); l-- > 0;) link_layer(l);
}

// One row of every sixteen at random is in the layers above, in random order.
void GraphBuilder::choose_rows(uint64_t held_back) {
  std::mt19937 random(1);
  const uint32_t count = data_.layers.size() > 1 ? data_.layers[1].nodes : 0;
  std::vector<uint32_t> chosen(count);
  for (uint32_t i = 0; i < count; ++i)
    chosen[i] = i * kLayerRatio + static_cast<uint32_t>(random() % kLayerRatio);
  held_back = std::min<uint64_t>(held_back, count / 2);
  for (uint64_t i = 0; i < held_back; ++i) {
    const uint32_t row = chosen[i * count / held_back];
    held_back_.push_back(row / kLayerRatio * kLayerRatio + (row + 1) % kLayerRatio);
  }
  std::ranges::shuffle(chosen, random);
  upper_rows = Section::of(chosen);
  data_.upper_rows = upper_rows.as<uint32_t>();
}

void GraphBuilder::link_layer(size_t layer) {
  const uint32_t nodes = data_.layers[layer].nodes;
  const bool has_above = layer + 1 < data_.layers.size();
  // Nodes that are in the layer above are linked first: walks start at them.
  const uint32_t starts = has_above ? data_.layers[layer + 1].nodes : 0;
  const auto link_range = [&](uint64_t count, const auto& node_of) {
    pool_.parallel_for(count, kChunk, [&](uint64_t first, uint64_t last) {
      thread_local Room room;
      for (uint64_t i = first; i < last; ++i)
        if (const uint32_t node = node_of(i); node != kNoNode) link(layer, node, room);
    });
  };
  if (layer > 0) return link_range(nodes, [](uint64_t i) { return static_cast<uint32_t>(i); });
  link_range(starts, [&](uint64_t i) { return data_.upper_rows[i]; });
  std::vector<bool> skipped(nodes);
  for (uint32_t i = 0; i < starts; ++i) skipped[data_.upper_rows[i]] = true;
  for (const uint32_t row : held_back_) skipped[row] = true;
  link_range(nodes, [&](uint64_t i) { return skipped[i] ? kNoNode : static_cast<uint32_t>(i); });
}

void GraphBuilder::finish() {
  pool_.parallel_for(held_back_.size(), 1, [&](uint64_t first, uint64_t last) {
    thread_local Room room;
    for (uint64_t i = first; i < last; ++i) link(0, held_back_[i], room);
  });
}

void GraphBuilder::link(size_t layer, uint32_t node, Room& room) {
  const GraphLayer& here = data_.layers[layer];
  walk(data_, {data_.code(data_.row_of(layer, node)), true}, layer, settings_.effort, room.walk);
  room.near.clear();
  for (size_t i = 0; i < room.walk.pool.size(); ++i)
    if (room.walk.pool.node(i) != node)
      room.near.push_back({room.walk.pool.distance(i), room.walk.pool.node(i)});
  room.choose(data_, layer, settings_.links);
  const std::vector<uint32_t> chosen = room.chosen;
  std::vector<uint32_t> distances;
  for (const uint32_t each : chosen)
    distances.push_back(std::ranges::find(room.near, each, &Near::node)->distance);
  {
    // Others may have linked to this node already, if a walk started at it.
    const Guard guard(locks_[node % kLocks]);
    for (const uint32_t other : here.of(node)) {
      if (other == kNoNode || room.chosen.size() == here.slots) break;
      if (std::ranges::find(room.chosen, other) == room.chosen.end()) room.chosen.push_back(other);
    }
    write(layer, node, room.chosen);
  }
  for (size_t i = 0; i < chosen.size(); ++i) link_back(layer, chosen[i], node, distances[i], room);
}

void GraphBuilder::link_back(size_t layer, uint32_t node, uint32_t to, uint32_t distance,
                             Room& room) {
  const GraphLayer& here = data_.layers[layer];
  const Guard guard(locks_[node % kLocks]);
  const std::span<const uint32_t> now = here.of(node);
  const size_t count = static_cast<size_t>(std::ranges::find(now, kNoNode) - now.begin());
  if (std::find(now.begin(), now.begin() + static_cast<ptrdiff_t>(count), to) !=
      now.begin() + static_cast<ptrdiff_t>(count))
    return;
  if (count < here.slots) {
    std::atomic_ref(writable_[layer][size_t{node} * here.slots + count])
        .store(to, std::memory_order_relaxed);
    return;
  }
  room.near.assign(1, {distance, to});
  room.rows.clear();
  for (const uint32_t each : now) room.rows.push_back(data_.row_of(layer, each));
  room.distances.resize(count);
  cpu::code_distances(data_.code(data_.row_of(layer, node)), data_.codes, data_.space.bytes(),
                      room.rows.data(), count, room.distances.data());
  for (size_t i = 0; i < count; ++i) room.near.push_back({room.distances[i], now[i]});
  room.choose(data_, layer, here.slots);
  write(layer, node, room.chosen);
}

void GraphBuilder::write(size_t layer, uint32_t node, std::span<const uint32_t> nodes) {
  const uint32_t slots = data_.layers[layer].slots;
  uint32_t* const to = writable_[layer] + size_t{node} * slots;
  for (uint32_t i = 0; i < slots; ++i)
    std::atomic_ref(to[i]).store(i < nodes.size() ? nodes[i] : kNoNode, std::memory_order_relaxed);
}

}  // namespace prism::search
