// Compiles printed C-family text with the host compiler against tests/shim and runs it: tests
// printers without a device or vendor compiler.
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

// Many kernels in one library; undefined behaviour in the printed text aborts with its line.
class ShimLibrary {
 public:
  ShimLibrary(ShimLibrary&&) noexcept;
  ~ShimLibrary();

  // Runs every group of a launch of kernel `index`. Buffers are in binding order, with the pieces
  // of split buffers as separate entries; they are read and written. Throws std::runtime_error for
  // a divergent barrier or an unaligned access.
  void run(size_t index, std::array<uint32_t, 3> groups,
           std::vector<std::vector<std::byte>>& buffers, std::span<const uint32_t> params) const;

  const std::string& text() const;  // the compiled text, without the shim

 private:
  friend ShimLibrary compile_with_shim(const ir::Capabilities&, const std::vector<ir::Kernel>&,
                                       const std::vector<std::string>&);
  struct Impl;
  explicit ShimLibrary(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Prints the kernels (lowered with these capabilities; dialect cuda, hip, opencl, metal or sycl;
// distinct names) as one source and compiles it. Throws std::runtime_error with the compiler's
// output if it does not compile. options: compiler options, as a backend passes them
// ("-DPRISM_...").
ShimLibrary compile_with_shim(const ir::Capabilities& capabilities,
                              const std::vector<ir::Kernel>& lowered,
                              const std::vector<std::string>& options = {});

}  // namespace prism::test
