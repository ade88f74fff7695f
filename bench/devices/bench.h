// One result of the device bench: the figure, its peer, and the required share of the peer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prism/device.h"

namespace prism::bench {

struct Line {
  std::string device;
  std::string what;
  std::string unit;
  double figure = 0;
  std::string peer;  // "the queue's own copy", "cuBLAS", "limit"; empty: none
  double peer_figure = 0;
  bool less_is_better = false;
  std::optional<double> floor;  // required share of the peer; for limits the limit itself
  std::string note;

  double share() const { return peer_figure > 0 ? figure / peer_figure : 0; }
  std::optional<bool> met() const;
};

Line bench_copy(const Device& device);
std::vector<Line> bench_products(const Device& device);
Line bench_replay(const Device& device);
Line bench_load(const Device& device);

// Random values in [-1, 1), as in real data: zeros or repeated rows let a card clock higher.
std::vector<float> random_values(uint64_t count);

}  // namespace prism::bench
