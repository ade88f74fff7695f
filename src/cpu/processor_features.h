// Which instruction sets the processor has and the system lets programs use.
#pragma once

namespace prism::cpu {

bool has_avx2();         // with FMA and F16C
bool has_avx_vnni();     // and AVX2
bool has_avx512_vnni();  // and AVX-512 F, BW, DQ, VL
bool has_neon_dot();
bool has_neon_i8mm();  // and dot

}  // namespace prism::cpu
