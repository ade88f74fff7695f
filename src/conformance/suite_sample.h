// Which cases of the conformance suite a run takes, in which order.
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

// Every case once: one of each op first, in f32 where it has that; then gradients, f32 and the
// other types by turns. What the seed decides: the order of the cases.
std::vector<SampleItem> sample_order(const std::vector<OpCase>& cases, uint64_t seed);

// Keeps the programs of a run below a limit: cases run while there is room, then those whose
// kernels are probably there, and in the end those for which that is certain.
class ProgramBudget {
 public:
  explicit ProgramBudget(size_t programs) : programs_(programs) {}  // 0: no limit
  // Whether to run it, with so many programs compiled by now.
  bool takes(const SampleItem& item, size_t compiled);

 private:
  size_t programs_;
  std::set<std::string> forms_, fine_, ops_;
};

}  // namespace prism
