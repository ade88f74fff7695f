// The order of the passes, and the limits that no pass can work around.
#include "lower/lower.h"

#include <fmt/format.h>

#include "lower/passes.h"
#include "prism/error.h"

namespace prism {
namespace {

using namespace lower_detail;

[[noreturn]] void cannot(const ir::Kernel& kernel, const ir::Capabilities& caps,
                         const std::string& what) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("kernel {}: {} ({} device)", kernel.name, what, caps.dialect));
}

void check_types(const ir::Kernel& kernel, const ir::Capabilities& caps) {
  const auto check = [&](DType type) {
    if ((type == DType::i64 || type == DType::u64) && !caps.math_i64)
      cannot(kernel, caps, "it computes with 64-bit integers, which the device does not support");
    if (type == DType::f64 && !caps.math_f64)
      cannot(kernel, caps, "it computes with f64, which the device does not support");
  };
  for (const ir::Type& type : kernel.values) check(type.element);
  for (const ir::Memory& memory : kernel.memories) check(memory.element);
}

void check_fences(const ir::Kernel& kernel, const ir::Capabilities& caps) {
  ir::walk(kernel.body, [&](const ir::Inst& inst) {
    if (inst.op == ir::Op::device_fence && !caps.device_fence)
      cannot(kernel, caps, "it uses device_fence across groups, which the device does not support");
  });
}

void check_limits(const ir::Kernel& kernel, const ir::Capabilities& caps) {
  if (kernel.group_size > caps.max_group_size)
    cannot(kernel, caps,
           fmt::format("groups of {} lanes; the device allows {}", kernel.group_size,
                       caps.max_group_size));
  if (kernel.shared_bytes() > caps.shared_bytes)
    cannot(kernel, caps,
           fmt::format("{} bytes of shared memory; the device has {}", kernel.shared_bytes(),
                       caps.shared_bytes));
  uint32_t buffers = 0;
  for (const ir::Memory& memory : kernel.memories) buffers += memory.space == ir::Space::buffer;
  if (buffers > caps.max_buffers)
    cannot(kernel, caps,
           fmt::format("{} bindings (split buffers included); the device allows {}", buffers,
                       caps.max_buffers));
}

}  // namespace

uint64_t piece_bytes(const ir::Capabilities& caps) { return caps.max_binding_bytes / 256 * 256; }

ir::Kernel lower(const ir::Kernel& kernel, const ir::Capabilities& caps,
                 const LaunchVariant& variant) {
  check_types(kernel, caps);
  check_fences(kernel, caps);
  const bool interpreted = caps.dialect == "interpreter";
  ir::Kernel k = choose_raw(kernel, caps);
  if (variant.folded) k = fold_grid(k);
  k = lower_fragments(k, caps);
  k = lower_async(k, caps, variant.pieces);
  if (!interpreted) k = lower_group_reduce(k, caps);
  k = lower_subgroups(k, caps);
  if (!caps.dot4) k = lower_dot(k);
  if (!language_has_words(caps)) k = lower_words(k);
  if (!caps.math_f16) k = lower_half_math(k);
  if (!caps.precise_math) k = lower_math(k);
  if (!caps.precise_math && caps.math_f64) k = lower_math_f64(k);
  if (!caps.float_atomics) k = lower_float_atomics(k);
  k = lower_storage(k, caps);
  for (uint32_t pieces : variant.pieces)
    if (pieces > 1) {
      k = split_buffers(k, caps, variant.pieces);
      break;
    }
  if (!interpreted) k = lower_arithmetic(k);
  k = clean_up(k, caps);
  for (ir::Memory& memory : k.memories)
    if (memory.space == ir::Space::buffer && memory.access == ir::Access::read &&
        variant.writable >> memory.binding & 1)
      memory.access = ir::Access::read_write;
  check_limits(k, caps);
  return k;
}

}  // namespace prism
