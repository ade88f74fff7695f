// The instruction sets that the processor has and the operating system enables.
#pragma once

namespace prism::cpu {

bool has_avx2();         // with FMA and F16C
bool has_avx_vnni();     // includes AVX2
bool has_avx512_vnni();  // includes AVX-512 F, BW, DQ, VL
bool has_neon_dot();
bool has_neon_i8mm();  // includes dot

}  // namespace prism::cpu
