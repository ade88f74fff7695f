// Printed CUDA, HIP and Metal text made runnable on the host, for the doubles of their drivers.
#pragma once

#include <string>

namespace prism::test::doubles {

struct HostModule;
struct HostKernel;

HostModule* load_text(const std::string& text);
void unload(HostModule* module);
HostKernel* find_sample_kernel(HostModule* module, const std::string& entry);  // null when absent
// Compiles the text, at the first launch: most kernels of most tests are never launched. False when
// the host compiler refuses it. The two below need it.
bool prepare(HostKernel& kernel);
// One character an argument: 'p' a pointer, '4' a word of 32 bits; of Metal 'b' the block of params
// and '.' what the hardware fills in.
const std::string& arguments_of(const HostKernel& kernel);
// Null, or what went wrong: threads that wait at a barrier while others have ended.
const char* run(const HostKernel& kernel, const unsigned (&grid)[3], unsigned block,
                void** arguments);

}  // namespace prism::test::doubles
