// Detects instruction sets from the processor (x86) or the operating system (ARM).
#include "cpu/processor_features.h"

#include <cstddef>
#include <cstdint>

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace prism::cpu {
namespace {

struct Features {
  bool avx2 = false, avx_vnni = false, avx512_vnni = false, neon_dot = false, neon_i8mm = false;
};

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)

bool bit(uint32_t word, int index) { return (word >> index & 1) != 0; }

// The register state that the operating system saves. Instructions whose state is not saved must
// not be used.
uint64_t saved_state() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

Features find_features() {
  Features found;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !bit(c, 27)) return found;
  const bool fma = bit(c, 12), f16c = bit(c, 29);
  const uint64_t saved = saved_state();
  const bool vectors_256 = (saved & 0x6) == 0x6, vectors_512 = (saved & 0xE6) == 0xE6;
  if (!vectors_256 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const uint32_t further = a;
  found.avx2 = bit(b, 5) && fma && f16c;
  found.avx512_vnni = found.avx2 && vectors_512 && bit(b, 16) && bit(b, 17) && bit(b, 30) &&
                      bit(b, 31) && bit(c, 11);
  if (further >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
    found.avx_vnni = found.avx2 && bit(a, 4);
  return found;
}

#elif defined(__aarch64__) && defined(__linux__)

Features find_features() {
  Features found;
  found.neon_dot = (getauxval(AT_HWCAP) >> 20 & 1) != 0;                      // ASIMDDP
  found.neon_i8mm = found.neon_dot && (getauxval(AT_HWCAP2) >> 13 & 1) != 0;  // I8MM
  return found;
}

#elif defined(__aarch64__) && defined(__APPLE__)

bool has(const char* name) {
  int value = 0;
  size_t bytes = sizeof(value);
  return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value != 0;
}

Features find_features() {
  Features found;
  found.neon_dot = has("hw.optional.arm.FEAT_DotProd");
  found.neon_i8mm = found.neon_dot && has("hw.optional.arm.FEAT_I8MM");
  return found;
}

#else

Features find_features() { return {}; }

#endif

const Features& features() {
  static const Features found = find_features();
  return found;
}

}  // namespace

bool has_avx2() { return features().avx2; }
bool has_avx_vnni() { return features().avx_vnni; }
bool has_avx512_vnni() { return features().avx512_vnni; }
bool has_neon_dot() { return features().neon_dot; }
bool has_neon_i8mm() { return features().neon_i8mm; }

}  // namespace prism::cpu
