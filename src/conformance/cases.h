// The families of ops in the conformance suite: one line for each.
#pragma once

#include <vector>

#include "conformance/conformance.h"

// A family `name` has a function add_name_cases() in name_cases.cpp.
// clang-format off
#define PRISM_OP_FAMILIES(family) \
  family(elementwise) \
  family(matmul) \
  family(expert_matmul) \
  family(attention) \
  family(indexer) \
  family(view_gradient) \
  family(index) \
  family(create) \
  family(join) \
  family(rope) \
  family(gates) \
  family(reduce) \
  family(quantise) \
  family(conv) \
  family(softmax) \
  family(norm) \
  family(scan) \
  family(sort) \
  family(nearest) \
  family(bounded) \
  family(recurrence) \
  family(training)
// clang-format on

namespace prism {

#define PRISM_DECLARE(name) void add_##name##_cases(std::vector<OpCase>& cases, CaseRandom& random);
PRISM_OP_FAMILIES(PRISM_DECLARE)
#undef PRISM_DECLARE

}  // namespace prism
