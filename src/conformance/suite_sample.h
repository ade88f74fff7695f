// The choice and order of the cases of a run.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace prism {

// A case, or the gradients of one.
struct SampleItem {
  const OpCase* test = nullptr;
  bool gradient = false;
  std::string types;  // of the inputs: "f16 i32"
  std::string form;   // op, types, ranks and views: the same kernels for most ops
  std::string fine;   // op, types, shapes and strides: the same kernels for certain
};

// Every case once: first one of each op, in f32 if possible; then gradients, f32 and other types in
// turn. The seed decides the order.
std::vector<SampleItem> sample_order(const std::vector<OpCase>& cases, uint64_t seed);

// Keeps the programs of a run below a limit: all cases run while there is room, then those whose
// kernels probably exist, in the end those whose kernels certainly exist.
class ProgramBudget {
 public:
  explicit ProgramBudget(size_t programs) : programs_(programs) {}  // 0: no limit
  // Whether to run the case after `compiled` programs.
  bool takes(const SampleItem& item, size_t compiled);

 private:
  size_t programs_;
  std::set<std::string> forms_, fine_, ops_;
};

}  // namespace prism
