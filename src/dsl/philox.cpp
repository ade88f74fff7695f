// Philox in kernels and on the host.
#include "dsl/philox.h"

#include "prism/kernel.h"

namespace prism::dsl {

Value philox_words(Value counter, Value key_low, Value key_high) {
  Value c0 = counter, c1 = constant(u32, 0), c2 = constant(u32, 0), c3 = constant(u32, 0);
  for (uint32_t round = 0; round < uint32_t{kPhiloxRounds}; ++round) {
    const Value k0 = key_low + kPhiloxWeyl0 * round, k1 = key_high + kPhiloxWeyl1 * round;
    const Value next0 = mul_high(c2, kPhiloxMultiply1) ^ c1 ^ k0, next1 = c2 * kPhiloxMultiply1;
    const Value next2 = mul_high(c0, kPhiloxMultiply0) ^ c3 ^ k1, next3 = c0 * kPhiloxMultiply0;
    c0 = next0, c1 = next1, c2 = next2, c3 = next3;
  }
  return vec(c0, c1, c2, c3);
}

std::array<uint32_t, 4> philox_block(uint32_t counter, uint32_t k0, uint32_t k1) {
  std::array<uint32_t, 4> c = {counter, 0, 0, 0};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t(kPhiloxMultiply0) * c[0], p1 = uint64_t(kPhiloxMultiply1) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kPhiloxWeyl0, k1 += kPhiloxWeyl1;
  }
  return c;
}

}  // namespace prism::dsl
