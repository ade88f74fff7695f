// Interpreter: runs IR on the host. It defines the language and executes kernels on the CPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir {

struct HostBuffer {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
};

struct InterpretOptions {
  uint32_t subgroup_size = 32;  // 1 to 64, a power of two; ignored if the kernel requires a size
  // Checks bounds, reads of uninitialised memory, races on shared memory, alignment of vector
  // accesses, barrier uniformity, and reads of an async copy before its wait. Throws kInvalidKernel
  // naming location, lane and index.
  bool checked = true;
};

// Whether kernels that the CPU device compiles run in checked mode: what check_kernels() said last,
// else PRISM_CHECKED (0 or 1; throws kInvalidArgument for anything else).
bool kernels_are_checked();
void check_kernels(bool on);

// A kernel prepared to run many times, from any thread.
class Interpreter {
 public:
  Interpreter(const Kernel& kernel, const InterpretOptions& options);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;

  // Runs groups [first, last) of the grid, in linear order with axis 0 fastest.
  void run_groups(std::array<uint32_t, 3> groups, uint64_t first, uint64_t last,
                  std::span<const HostBuffer> buffers, std::span<const uint32_t> params) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Runs the whole grid, one group after another.
void interpret(const Kernel& kernel, std::array<uint32_t, 3> groups,
               std::span<const HostBuffer> buffers, std::span<const uint32_t> params,
               const InterpretOptions& options = {});

}  // namespace prism::ir
