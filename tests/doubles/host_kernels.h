// HostKernel: printed CUDA, HIP and Metal text compiled for the host, for the driver doubles.
#pragma once

#include <string>

namespace prism::test::doubles {

struct HostModule;
struct HostKernel;

HostModule* load_text(const std::string& text);
void unload(HostModule* module);
HostKernel* find_sample_kernel(HostModule* module, const std::string& entry);  // null when absent
// Compiles the text at the first launch: most kernels in most tests are never launched. Returns
// false if the host compiler rejects it. The two functions below require it.
bool prepare(HostKernel& kernel);
// One character per argument: 'p' a pointer, '4' a 32-bit word; for Metal 'b' the params block and
// '.' a value filled in by the hardware.
const std::string& arguments_of(const HostKernel& kernel);
// Returns null, or the error: threads that wait at a barrier while others have ended.
const char* run(const HostKernel& kernel, const unsigned (&grid)[3], unsigned block,
                void** arguments);

}  // namespace prism::test::doubles
