// The passes of lowering, in the order they run; each takes a kernel and gives the rewritten one.
#pragma once

#include <optional>
#include <vector>

#include "lower/lower.h"
#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::lower_detail {

// The size of the pieces in which lanes are counted where a device has no subgroups of its own.
inline constexpr uint32_t kLogicalSubgroup = 32;

// True when the device's own subgroup operations serve this kernel: whole subgroups only.
bool has_subgroups(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
uint32_t subgroup_size_for(const ir::Kernel& kernel, const ir::Capabilities& capabilities);

// What a language offers, whatever the device: scans across lanes, of every operation; bytes of a
// word and high halves of products.
bool language_scans(const ir::Capabilities& capabilities);
bool language_has_words(const ir::Capabilities& capabilities);

ir::Kernel choose_raw(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
ir::Kernel fold_grid(const ir::Kernel& kernel);
// A copy that runs ahead stays only where the device has it and neither side is rewritten by a
// later pass.
ir::Kernel lower_async(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                       const std::vector<uint32_t>& pieces);
ir::Kernel lower_fragments(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
ir::Kernel lower_group_reduce(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
ir::Kernel lower_subgroups(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
ir::Kernel lower_dot(const ir::Kernel& kernel);
ir::Kernel lower_words(const ir::Kernel& kernel);
ir::Kernel lower_math(const ir::Kernel& kernel);
ir::Kernel lower_math_f64(const ir::Kernel& kernel);
ir::Kernel lower_half_math(const ir::Kernel& kernel);
ir::Kernel lower_float_atomics(const ir::Kernel& kernel);
// The element type that lower_storage leaves, where it keeps one element to each place; none where
// it packs.
std::optional<DType> stored_element(const ir::Memory& memory, const ir::Capabilities& capabilities);
ir::Kernel lower_storage(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
ir::Kernel split_buffers(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                         const std::vector<uint32_t>& pieces);
ir::Kernel lower_arithmetic(const ir::Kernel& kernel);
ir::Kernel clean_up(const ir::Kernel& kernel, const ir::Capabilities& capabilities);

}  // namespace prism::lower_detail
