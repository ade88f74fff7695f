// The makers of the conformance cases, one a family of ops.
#pragma once

#include <vector>

#include "conformance/conformance.h"

namespace prism {

void add_attention_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_matmul_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_expert_matmul_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_elementwise_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_view_gradient_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_index_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_create_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_join_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_rope_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_gate_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_reduce_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_quantise_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_conv_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_softmax_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_norm_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_scan_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_sort_cases(std::vector<OpCase>& cases, CaseRandom& random);
void add_bounded_cases(std::vector<OpCase>& cases, CaseRandom& random);

}  // namespace prism
