// The instruction sets that Highway compiles for; every file with vector code includes this first.
#pragma once

// SSSE3-only processors predate 2008, and scalable vectors (SVE) do not fit kernels that count
// registers; both use the next narrower set. All files must agree, hence one header.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
