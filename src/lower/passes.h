// The lowering passes in the order they run; each takes a kernel and returns the rewritten one.
#pragma once

#include <optional>
#include <vector>

#include "lower/lower.h"
#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::lower_detail {

// The emulated subgroup size on devices without subgroups.
inline constexpr uint32_t kLogicalSubgroup = 32;

// Whether the device's subgroup operations can run this kernel: it must consist of whole subgroups.
bool has_subgroups(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
uint32_t subgroup_size_for(const ir::Kernel& kernel, const ir::Capabilities& capabilities);

// Language features, independent of the device: subgroup scans of every operation; byte packing and
// high halves of products.
bool language_scans(const ir::Capabilities& capabilities);
bool language_has_words(const ir::Capabilities& capabilities);

ir::Kernel choose_raw(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
ir::Kernel fold_grid(const ir::Kernel& kernel);
// Keeps an async copy only if the device supports it and no later pass rewrites either side.
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
// The element type after lower_storage if it stores elements individually; none if it packs them.
std::optional<DType> stored_element(const ir::Memory& memory, const ir::Capabilities& capabilities);
ir::Kernel lower_storage(const ir::Kernel& kernel, const ir::Capabilities& capabilities);
ir::Kernel split_buffers(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                         const std::vector<uint32_t>& pieces);
ir::Kernel lower_arithmetic(const ir::Kernel& kernel);
ir::Kernel clean_up(const ir::Kernel& kernel, const ir::Capabilities& capabilities);

}  // namespace prism::lower_detail
