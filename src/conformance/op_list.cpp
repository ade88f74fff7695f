// The families of ops, each with its cases: one line a family.
#include "conformance/cases.h"
#include "conformance/conformance.h"

namespace prism {

const std::vector<OpFamily>& op_families() {
  static const std::vector<OpFamily> families = {
      {"elementwise", add_elementwise_cases},
      {"matmul", add_matmul_cases},
      {"expert_matmul", add_expert_matmul_cases},
      {"attention", add_attention_cases},
      {"view_gradient", add_view_gradient_cases},
      {"index", add_index_cases},
      {"create", add_create_cases},
      {"join", add_join_cases},
      {"rope", add_rope_cases},
      {"gates", add_gate_cases},
      {"reduce", add_reduce_cases},
      {"quantise", add_quantise_cases},
      {"conv", add_conv_cases},
      {"softmax", add_softmax_cases},
      {"norm", add_norm_cases},
      {"scan", add_scan_cases},
      {"sort", add_sort_cases},
      {"bounded", add_bounded_cases},
  };
  return families;
}

}  // namespace prism
