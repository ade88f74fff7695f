// Tapes: graphs of scalars laid out level by level, so that a level runs at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "prism/device.h"

namespace prism::nn {

enum class ScalarCode : int32_t { leaf, add, sub, mul, div, pow, exp, log, tanh, relu };

struct ScalarNode {
  ScalarCode code = ScalarCode::leaf;
  std::shared_ptr<ScalarNode> a, b;
  float exponent = 0;  // of pow
  float data = 0, grad = 0;
  bool has_data = false;
  Device device;
  int32_t place = -1;  // on the tape that is being made

  ~ScalarNode();
};

// One scalar of a tape: four words, so that a kernel reads it at once.
struct TapeEntry {
  int32_t code = 0, a = 0, b = 0;
  float exponent = 0;
  bool operator==(const TapeEntry&) const = default;
};

struct Tape {
  std::vector<TapeEntry> entries;  // leaves first, then level by level
  std::vector<int32_t> levels;     // the first entry of each level after the leaves; the end
  // Backwards: entry i is operand `use % 2` of entry `use / 2`, for uses [starts[i], starts[i +
  // 1]).
  std::vector<int32_t> starts, uses;
  int32_t root = -1;  // where gradients start; -1: no gradients
  int32_t leaves() const { return levels.empty() ? 0 : levels.front(); }
  bool operator==(const Tape&) const = default;
};

// The tape of what the roots need, and its nodes in the order of its entries. Nodes with data are
// leaves unless gradients pass through them.
struct Taped {
  Tape tape;
  std::vector<ScalarNode*> nodes;
};
Taped make_tape(std::span<ScalarNode* const> roots, bool gradients);

// Runs the tape on a device: one plan, kept for the next tape of the same structure. Results: the
// data of all entries, then their gradients if the tape has a root.
std::vector<float> run_tape(const Tape& tape, std::span<const float> leaves, const Device& device);

}  // namespace prism::nn
