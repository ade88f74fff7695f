// Printed text of the C family compiled by the host compiler against tests/shim, and run: what was
// printed is what was meant, with no device and no vendor's compiler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism::test {

// Many kernels in one library; undefined behaviour in the printed text stops the process with its
// line.
class ShimLibrary {
 public:
  ShimLibrary(ShimLibrary&&) noexcept;
  ~ShimLibrary();

  // Runs every group of a launch of kernel `index`. Buffers in binding order, pieces of split ones
  // apart; they are read and written. Throws std::runtime_error when a barrier was divergent or an
  // access not aligned.
  void run(size_t index, std::array<uint32_t, 3> groups,
           std::vector<std::vector<std::byte>>& buffers, std::span<const uint32_t> params) const;

  const std::string& text() const;  // what was compiled, without the shim

 private:
  friend ShimLibrary compile_with_shim(const ir::Capabilities&, const std::vector<ir::Kernel>&,
                                       const std::vector<std::string>&);
  struct Impl;
  explicit ShimLibrary(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Prints the kernels (lowered with these capabilities; dialect cuda, hip, opencl, metal or sycl;
// names all different) as one text and compiles it. Throws std::runtime_error with the compiler's
// words when it does not compile. options: of the compiler, as a backend gives them
// ("-DPRISM_...").
ShimLibrary compile_with_shim(const ir::Capabilities& capabilities,
                              const std::vector<ir::Kernel>& lowered,
                              const std::vector<std::string>& options = {});

}  // namespace prism::test
