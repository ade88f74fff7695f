// Preparation of kernels for one device: selects the variant a launch needs, and lowers and
// compiles each variant once.
#include <algorithm>

#include <fmt/format.h>

#include "lower/lower.h"
#include "prism/error.h"
#include "runtime/compile_watch.h"
#include "runtime/device_state.h"
#include "runtime/kernel_key.h"

namespace prism {

const ir::Kernel& Program::kernel() const {
  if (!compiled_) {
    throw Error(ErrorCode::kInvalidArgument,
                "kernel: this Program handle is empty; get one from Device::compile()");
  }
  return compiled_->kernel;
}

Program Device::compile(const ir::Kernel& kernel) const {
  if (!state_)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("compile {}: this Device handle is empty", kernel.name));
  const std::scoped_lock lock(state_->mutex);
  std::shared_ptr<CompiledKernel>& known = state_->compiled[kernel_key(kernel)];
  if (!known) {
    auto fresh = std::make_shared<CompiledKernel>();
    fresh->locked = state_->locked;
    fresh->kernel = kernel;
    // Compile the plain variant now, so that an unsupported kernel fails here and not at its first
    // launch.
    state_->variant(*fresh, {});
    known = std::move(fresh);
  }
  Program program;
  program.device_ = state_;
  program.compiled_ = known;
  return program;
}

std::vector<Program> Device::compile_together(std::span<const ir::Kernel> kernels) const {
  if (!state_)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("compile {} kernels: this Device handle is empty", kernels.size()));
  const std::scoped_lock lock(state_->mutex);
  std::vector<ir::Kernel> lowered;
  std::vector<const ir::Kernel*> missing;
  for (const ir::Kernel& kernel : kernels) {
    if (state_->compiled.contains(kernel_key(kernel))) continue;
    missing.push_back(&kernel);
    lowered.push_back(lower(kernel, state_->info.capabilities));
  }
  std::vector<std::unique_ptr<ProgramDriver>> drivers;
  if (!lowered.empty()) {
    const CompileReport report(state_->info.id);
    drivers = state_->driver->compile_together(lowered);
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    auto fresh = std::make_shared<CompiledKernel>();
    fresh->locked = state_->locked;
    fresh->kernel = *missing[i];
    fresh->variants.push_back({{}, std::move(lowered[i]), std::move(drivers[i])});
    state_->compiled[kernel_key(*missing[i])] = std::move(fresh);
  }
  std::vector<Program> programs;
  for (const ir::Kernel& kernel : kernels) programs.push_back(compile(kernel));
  return programs;
}

const CompiledVariant& DeviceState::variant(CompiledKernel& of, const LaunchVariant& wanted) {
  for (const CompiledVariant& known : of.variants) {
    if (known.variant == wanted) return known;
  }
  CompiledVariant fresh;
  fresh.variant = wanted;
  fresh.lowered = lower(of.kernel, info.capabilities, wanted);
  const CompileReport report(info.id);
  fresh.program = driver->compile(fresh.lowered);
  return of.variants.emplace_back(std::move(fresh));
}

LaunchVariant launch_variant(const ir::Capabilities& capabilities,
                             const std::array<uint32_t, 3>& groups,
                             const std::vector<uint64_t>& buffer_bytes, const std::string& kernel) {
  LaunchVariant variant;
  for (size_t axis = 0; axis < 3; ++axis)
    variant.folded |= groups[axis] > capabilities.max_groups[axis];

  const bool split = std::ranges::any_of(
      buffer_bytes, [&](uint64_t b) { return b > capabilities.max_binding_bytes; });
  if (!split) return variant;
  const uint64_t piece = piece_bytes(capabilities);
  uint64_t bindings = 0;
  for (const uint64_t bytes : buffer_bytes) {
    const uint64_t pieces =
        bytes > capabilities.max_binding_bytes ? (bytes + piece - 1) / piece : 1;
    bindings += pieces;
    variant.pieces.push_back(static_cast<uint32_t>(std::min<uint64_t>(pieces, UINT32_MAX)));
  }
  if (bindings > capabilities.max_buffers) {
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format(
            "launch of {}: its buffers need {} bindings of at most {} bytes, the device has {}; "
            "use smaller buffers or launch over parts of them",
            kernel, bindings, capabilities.max_binding_bytes, capabilities.max_buffers));
  }
  return variant;
}

std::array<uint32_t, 3> folded_grid(const ir::Capabilities& capabilities,
                                    const std::array<uint32_t, 3>& groups,
                                    const std::string& kernel) {
  // Each factor is below 2^32, so the product of two fits into 64 bits; the third is checked by
  // division.
  const uint64_t plane = static_cast<uint64_t>(groups[0]) * groups[1];
  const uint64_t limit = std::min<uint64_t>(
      UINT32_MAX, static_cast<uint64_t>(capabilities.max_groups[0]) * capabilities.max_groups[1]);
  if (plane > limit / groups[2]) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "launch of {}: a grid of {} x {} x {} groups, the device takes at most {} in all; "
            "let each group do more, or launch over parts",
            kernel, groups[0], groups[1], groups[2], limit));
  }
  const uint64_t total = plane * groups[2];
  const uint64_t width = std::min<uint64_t>(total, capabilities.max_groups[0]);
  return {static_cast<uint32_t>(width), static_cast<uint32_t>((total + width - 1) / width), 1};
}

}  // namespace prism
