// Walks through the layers of a graph.
#include "search/methods/graph.h"

#include <algorithm>

#include "cpu/nearest/code_distance.h"

namespace prism::search {

namespace {

// Nodes of a layer above that are starts in the next: more than one, so that a walk does not end in
// the wrong cluster.
constexpr size_t kStarts = 8;

// Links change while other threads walk. Each is read whole, old or new.
uint32_t link_at(const uint32_t& link) {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(link)).load(std::memory_order_relaxed);
}

class Walk {
 public:
  Walk(const GraphData& graph, WalkTarget target, WalkRoom& room)
      : graph_(graph), target_(target), room_(room) {}

  // Searches one layer from the given nodes.
  void run(size_t layer, uint64_t effort) {
    const GraphLayer& links = graph_.layers[layer];
    room_.pool.start(effort);
    room_.visited.start();
    for (const uint32_t node : room_.nodes) room_.visited.add(node);
    add(layer);
    while (const std::optional<uint32_t> node = room_.pool.next()) {
      room_.nodes.clear();
      for (const uint32_t& link : links.of(*node)) {
        const uint32_t next = link_at(link);
        if (next >= links.nodes) break;  // the end, or a damaged file
        if (room_.visited.add(next)) room_.nodes.push_back(next);
      }
      add(layer);
      const uint32_t* const following = links.of(room_.pool.peek()).data();
      __builtin_prefetch(following);
      __builtin_prefetch(following + 16);
    }
  }

  // The best nodes of a layer become the starts of the one below.
  void descend(size_t layer) {
    room_.nodes.clear();
    for (size_t i = 0; i < room_.pool.size(); ++i)
      room_.nodes.push_back(layer == 1 ? graph_.upper_rows[room_.pool.node(i)]
                                       : room_.pool.node(i));
  }

 private:
  // Adds room_.nodes to the pool.
  void add(size_t layer) {
    const size_t count = room_.nodes.size();
    const uint32_t* rows = room_.nodes.data();
    if (layer > 0) {
      room_.rows.resize(count);
      for (size_t i = 0; i < count; ++i) room_.rows[i] = graph_.upper_rows[room_.nodes[i]];
      rows = room_.rows.data();
    }
    room_.distances.resize(count);
    if (target_.is_row)
      cpu::code_distances(target_.code, graph_.codes, graph_.space.bytes(), rows, count,
                          room_.distances.data());
    else
      graph_.space.compare(target_.code, graph_.codes, rows, count, room_.distances.data());
    for (size_t i = 0; i < count; ++i)
      if (room_.distances[i] < room_.pool.limit())
        room_.pool.add(room_.distances[i], room_.nodes[i]);
  }

  const GraphData& graph_;
  const WalkTarget target_;
  WalkRoom& room_;
};

}  // namespace

std::vector<uint32_t> layer_sizes(uint64_t rows) {
  std::vector<uint32_t> sizes;
  for (uint64_t size = rows; sizes.empty() || size >= kLayerRatio; size /= kLayerRatio)
    sizes.push_back(static_cast<uint32_t>(size));
  return sizes;
}

void walk(const GraphData& graph, WalkTarget target, size_t last_layer, uint64_t effort,
          WalkRoom& room) {
  Walk walk(graph, target, room);
  room.nodes.assign(1, 0);  // node 0 of the top layer is the start
  size_t layer = graph.layers.size() - 1;
  for (; layer > last_layer; --layer) {
    walk.run(layer, kStarts);
    walk.descend(layer);
  }
  walk.run(layer, std::max<uint64_t>(effort, 1));
}

}  // namespace prism::search
