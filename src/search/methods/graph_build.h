// GraphBuilder: links rows to their neighbours, with all threads.
#pragma once

#include <memory>
#include <vector>

#include "base/system/thread_pool.h"
#include "search/methods/graph.h"

namespace prism::search {

struct GraphSettings {
  uint32_t links = 32;    // of a row when it is linked; rows of layer 0 have at most twice as many
  uint64_t effort = 100;  // nodes that are kept by the walk that finds a row's neighbours
};

class GraphBuilder {
 public:
  // Encodes the rows and links all but `held_back` of them, which no walk finds until finish().
  GraphBuilder(ThreadPool& pool, const GraphSettings& settings, const CodeSpace& space,
               uint64_t rows, uint64_t held_back, const CodeSpace::RowReader& row);

  const std::vector<uint32_t>& held_back() const { return held_back_; }
  void finish();

  const GraphData& data() const { return data_; }
  // The links of layer 0, the rows of the layers above and their links from below to the top.
  Section codes, links, upper_rows, upper_links;

 private:
  struct Room;
  void choose_rows(uint64_t held_back);
  void link_layer(size_t layer);
  void link(size_t layer, uint32_t node, Room& room);
  void link_back(size_t layer, uint32_t node, uint32_t to, uint32_t distance, Room& room);
  void write(size_t layer, uint32_t node, std::span<const uint32_t> nodes);

  ThreadPool& pool_;
  GraphSettings settings_;
  GraphData data_;
  std::vector<uint32_t*> writable_;  // the links of each layer
  std::vector<uint32_t> held_back_;  // rows, sorted
  std::vector<std::atomic<uint8_t>> locks_;
};

}  // namespace prism::search
