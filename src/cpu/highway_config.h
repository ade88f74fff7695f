// What every file with vector code includes first: the instruction sets Highway compiles for.
#pragma once

// SSSE3 processors are older than 2008, and vectors of unknown length (SVE) do not fit kernels that
// count registers; both run the next narrower set. Every file must agree, hence one place.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
