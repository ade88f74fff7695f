// Compiles and runs WGSL text with wgpu-native or Dawn.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/front_ends/front_end.h"
#include "support/front_ends/webgpu_front_end.h"

namespace prism::test {

inline constexpr const char* kWgpu = "PRISM_TEST_WGPU_LIBRARY";
inline constexpr const char* kDawn = "PRISM_TEST_DAWN_LIBRARY";

// The device of one of the two libraries, opened on first use and kept. Throws std::runtime_error
// if it is not available.
WebGpu& webgpu_device(const std::string& library_variable);

// Creates the module and one pipeline per entry point (which checks limits and runs the driver's
// compiler).
CompileResult compile_wgsl(const std::string& library_variable, const std::string& text,
                           const std::vector<std::string>& entries);

struct WgslBuffer {
  std::vector<uint8_t> bytes;  // input, and output if writable
  bool writable = true;        // matches the text: var<storage, read_write> or var<storage, read>
};

// Runs one entry point. Binding i of group 0 is buffers[i]; params, if any, are a uniform buffer at
// the next binding. Writable buffers are read back. The result's log names what failed.
CompileResult run_wgsl(const std::string& library_variable, const std::string& text,
                       const std::string& entry, std::array<uint32_t, 3> group_counts,
                       std::vector<WgslBuffer>& buffers, const std::vector<uint32_t>& params = {});

}  // namespace prism::test
