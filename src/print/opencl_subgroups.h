// Subgroup functions of OpenCL C: those of its extensions, or PTX.
#pragma once

#include <vector>

#include "print/prelude.h"

namespace prism {

// Requires the items of vectors and bit casts before it. qualifier: of each function.
std::vector<PreludeItem> opencl_subgroup_prelude(const char* qualifier);

}  // namespace prism
