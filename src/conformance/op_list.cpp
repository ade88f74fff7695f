// The families of ops, each with its cases.
#include "conformance/cases.h"
#include "conformance/conformance.h"

namespace prism {

const std::vector<OpFamily>& op_families() {
#define PRISM_FAMILY(name) {#name, add_##name##_cases},
  static const std::vector<OpFamily> families = {PRISM_OP_FAMILIES(PRISM_FAMILY)};
#undef PRISM_FAMILY
  return families;
}

}  // namespace prism
