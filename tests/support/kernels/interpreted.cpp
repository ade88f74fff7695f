// Launches kernels on the interpreter as the runtime does on a device.
#include "support/kernels/interpreted.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/interpreter/interpreter.h"
#include "lower/lower.h"
#include "lower/passes.h"
#include "prism/dtype.h"
#include "runtime/device_state.h"

namespace prism::test {
namespace {

// Kernels may load whole words, so buffers are padded to whole words.
Contents padded(const Contents& buffers) {
  Contents result = buffers;
  for (auto& buffer : result) buffer.resize((buffer.size() + 3) / 4 * 4);
  return result;
}

Contents unpadded(Contents result, const Contents& like) {
  for (size_t i = 0; i < result.size(); ++i) result[i].resize(like[i].size());
  return result;
}

}  // namespace

Contents interpreted(const ir::Kernel& kernel, const Launch& launch, uint32_t subgroup_size) {
  Contents buffers = padded(launch.buffers);
  std::vector<ir::HostBuffer> bound;
  for (auto& buffer : buffers) bound.push_back({buffer.data(), buffer.size()});
  ir::InterpretOptions options;
  options.subgroup_size = subgroup_size;
  ir::interpret(kernel, launch.groups, bound, launch.params, options);
  return unpadded(std::move(buffers), launch.buffers);
}

Contents interpreted_lowered(const ir::Kernel& kernel, const Launch& launch,
                             const ir::Capabilities& capabilities) {
  Contents buffers = padded(launch.buffers);
  std::vector<uint64_t> sizes;
  for (const auto& buffer : buffers) sizes.push_back(buffer.size());
  const LaunchVariant variant = launch_variant(capabilities, launch.groups, sizes, kernel.name);
  const ir::Kernel lowered = lower(kernel, capabilities, variant);

  std::vector<ir::HostBuffer> bound;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const uint64_t piece = variant.pieces.empty() || variant.pieces[i] == 1
                               ? buffers[i].size()
                               : piece_bytes(capabilities);
    for (uint64_t at = 0; at < std::max<uint64_t>(buffers[i].size(), 1); at += piece)
      bound.push_back({buffers[i].data() + at, std::min<uint64_t>(piece, buffers[i].size() - at)});
  }
  std::vector<uint32_t> params = launch.params;
  std::array<uint32_t, 3> groups = launch.groups;
  if (variant.folded) {
    params.insert(params.end(), groups.begin(), groups.end());
    groups = folded_grid(capabilities, launch.groups, kernel.name);
  }
  ir::InterpretOptions options;
  options.subgroup_size = lower_detail::subgroup_size_for(kernel, capabilities);
  ir::interpret(lowered, groups, bound, params, options);
  return unpadded(std::move(buffers), launch.buffers);
}

std::string first_difference(const ir::Kernel& kernel, const Contents& right,
                             const Contents& found) {
  const std::vector<uint32_t> memories = kernel.buffers();
  for (size_t b = 0; b < right.size(); ++b) {
    if (right[b] == found[b]) continue;
    const ir::Memory& memory = kernel.memories[memories[b]];
    const size_t width = dtype_bytes(memory.element);
    const auto at = static_cast<size_t>(
        std::mismatch(right[b].begin(), right[b].end(), found[b].begin(), found[b].end()).first -
        right[b].begin());
    const size_t element = at / width;
    uint64_t wanted = 0, got = 0;
    std::memcpy(&wanted, right[b].data() + element * width, width);
    std::memcpy(&got, found[b].data() + element * width, width);
    return fmt::format("buffer {} ({}), element {}: {:#x}, expected {:#x}", memory.name,
                       dtype_name(memory.element), element, got, wanted);
  }
  return "";
}

}  // namespace prism::test
