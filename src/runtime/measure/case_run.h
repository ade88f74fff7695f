// Runs one case of a library kernel on a device or in the interpreter, and times it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "prism/device.h"
#include "sample_kernels/sample_library.h"

namespace prism {

using Contents = std::vector<std::vector<std::byte>>;  // bytes of each buffer after a launch

std::vector<ParamValue> case_params(const ir::Kernel& kernel, const KernelCase& one);
std::vector<Buffer> upload_case(const Device& device, const KernelCase& one);

// Launches the case once and reads every buffer back.
Contents run_case(const Device& device, const ir::Kernel& kernel, const KernelCase& one);
Contents interpret_case(const ir::Kernel& kernel, const KernelCase& one, uint32_t subgroup_size);

// Returns the device seconds of one call of work, which launches or replays on the queue. Takes the
// best of three runs after a warm-up call; each run repeats the call for min_seconds.
double seconds_each(Queue& queue, const std::function<void()>& work, double min_seconds = 0.02);

}  // namespace prism
