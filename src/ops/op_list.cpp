// The families of ops, each with its cases: one line a family.
#include "ops/cases.h"
#include "ops/conformance.h"

namespace prism {

const std::vector<OpFamily>& op_families() {
  static const std::vector<OpFamily> families = {
      {"elementwise", add_elementwise_cases},
      {"place", add_place_cases},
  };
  return families;
}

}  // namespace prism
