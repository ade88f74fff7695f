// Philox on both sides, and the kernels that write its words and numbers.
#include "kernels/philox.h"

#include <fmt/format.h>

#include "dsl/dsl.h"
#include "kernels/case_tools.h"
#include "kernels/kernels.h"

namespace prism::kernels {

using namespace dsl;

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

namespace {

ir::Kernel make(const char* name, DType type,
                const std::function<void(const Array&, Value, Value)>& put) {
  return kernel(name, 256, [&] {
    auto y = out("y", type);
    auto count = param("count", u32), low = param("seed_low", u32), high = param("seed_high", u32);
    const Value i = global_id();
    if_(i < count, [&] { put(y, i, philox_words(i, low, high)); });
  });
}

}  // namespace

ir::Kernel philox() {
  return make("philox", u32, [](const Array& y, Value i, Value four) { y.store(i * 4u, four); });
}

ir::Kernel uniform_f32() {
  return make("uniform_f32", f32, [](const Array& y, Value i, Value four) {
    y.store(i * 4u, cast(f32, four >> 8u) * 0x1p-24f);  // 24 bits: exact in f32, never 1
  });
}

namespace {

std::vector<KernelCase> cases(bool uniform, uint64_t seed, bool quick) {
  std::vector<KernelCase> all;
  CaseRandom random(seed);
  for (uint32_t n : quick ? std::vector<uint32_t>{500} : std::vector<uint32_t>{1, 500, 30001}) {
    KernelCase c;
    c.name = fmt::format("n={}", n);
    c.groups = {groups_for(n, 256), 1, 1};
    const uint32_t low = n == 1 ? 0 : static_cast<uint32_t>(random.next()),
                   high = n == 1 ? 0 : static_cast<uint32_t>(random.next());
    c.params = {n, low, high};
    std::vector<double> y;
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t word : philox_block(i, low, high))
        y.push_back(uniform ? static_cast<double>(word >> 8) * 0x1p-24 : word);
    c.buffers = {poison(n * 4, uniform ? DType::f32 : DType::u32)};
    c.expected = {y};
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace

void add_philox(std::vector<LibraryKernel>& list) {
  list.push_back({"philox", "counter-based random words", philox,
                  [](uint64_t seed, bool quick) { return cases(false, seed, quick); }});
  list.push_back({"uniform_f32", "random numbers in [0, 1)", uniform_f32,
                  [](uint64_t seed, bool quick) { return cases(true, seed, quick); }});
}

}  // namespace prism::kernels
