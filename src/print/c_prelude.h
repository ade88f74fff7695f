// Prelude items shared by several dialects, parameterised by each dialect's syntax.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "print/prelude.h"

namespace prism {

struct CTable;

// The qualifiers of prelude functions: "static __device__ __forceinline__ ".
struct CFunctions {
  std::string qualifier;
  const CTable* table = nullptr;
};

// Vectors as structs prism_TYPExN for C++ dialects, aligned like the hardware's; `alignment` is the
// specifier with {} for the bytes: "alignas({})".
std::vector<PreludeItem> vector_structs(const CTable& table, const std::string& alignment);

// extract_bits, insert_bits and bf16 conversions; the two names are functions of the dialect.
std::vector<PreludeItem> bit_functions(const CFunctions& functions, const std::string& f32_to_bits,
                                       const std::string& bits_to_f32);

// prism_pack_f16, built on the dialect's prism_f16_from_f32.
PreludeItem pack_f16_function(const CFunctions& functions);

// prism_atomic_OP(p, x) for C++ dialects: `operation` maps the op's name to an expression of p and
// x. prism_atomic_compare_exchange(p, x, expected) has the body `compare_exchange`.
std::vector<PreludeItem> atomic_templates(
    const CFunctions& functions, const std::function<std::string(const std::string&)>& operation,
    const std::string& compare_exchange);

// prism_combine_OP(a, b) for C++ dialects, used by reductions.
std::vector<PreludeItem> combine_templates(const CFunctions& functions);

// Reductions as templates over the subgroup size, built on the dialect's prism_shuffle_xor<size>.
std::vector<PreludeItem> subgroup_templates(const CFunctions& functions);

// prism_negate and prism_complement: one compiler loses a negation or complement that is live
// across a barrier; its backends define PRISM_HIDE_NEGATIONS. The workaround uses that the group
// count is never zero, which the compiler cannot know.
std::vector<PreludeItem> hidden_negations(const CTable& table);

void append(std::vector<PreludeItem>& items, std::vector<PreludeItem> more);

}  // namespace prism
