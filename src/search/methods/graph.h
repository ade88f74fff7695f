// Graph: rows linked to near rows, in layers of decreasing size (HNSW: Malkov and Yashunin, 2018).
//
// Layer 0 has all rows, each layer above it a sixteenth of the one below. A search walks through
// the small layers to a good start and then through layer 0, where it keeps the best `effort` rows
// it has seen. The walk compares codes of i8 (code_space.h), a quarter of the memory of f32.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "search/methods/code_space.h"
#include "search/methods/node_pool.h"
#include "search/section.h"

namespace prism::search {

inline constexpr uint32_t kNoNode = ~uint32_t{0};
inline constexpr uint32_t kLayerRatio = 16;

// One layer: the links of its nodes, kNoNode behind the last of each.
struct GraphLayer {
  uint32_t nodes = 0, slots = 0;
  const uint32_t* links = nullptr;

  std::span<const uint32_t> of(uint32_t node) const {
    return {links + size_t{node} * slots, slots};
  }
};

// The data of a graph: parts of a file or the builder's own memory. Nodes of layer 0 are rows. The
// nodes of the layers above are numbered alike: node i of each is row upper_rows[i].
struct GraphData {
  explicit GraphData(CodeSpace given) : space(std::move(given)) {}

  CodeSpace space;
  const int8_t* codes = nullptr;
  const uint32_t* upper_rows = nullptr;
  std::vector<GraphLayer> layers = {};

  uint32_t rows() const { return layers[0].nodes; }
  uint32_t row_of(size_t layer, uint32_t node) const {
    return layer == 0 ? node : upper_rows[node];
  }
  const int8_t* code(uint32_t row) const { return codes + size_t{row} * space.bytes(); }
};

// The number of nodes of each layer for so many rows.
std::vector<uint32_t> layer_sizes(uint64_t rows);

// Memory of one walk, kept for the next.
struct WalkRoom {
  NodePool pool;
  VisitedNodes visited;
  std::vector<uint32_t> nodes, rows, distances;
};

// Something that is compared with rows: a query, or a row that is about to be linked.
struct WalkTarget {
  const int8_t* code;
  bool is_row;
};

// Walks from the top layer down to `last_layer`; the pool then has its best `effort` nodes.
void walk(const GraphData& graph, WalkTarget target, size_t last_layer, uint64_t effort,
          WalkRoom& room);

}  // namespace prism::search
