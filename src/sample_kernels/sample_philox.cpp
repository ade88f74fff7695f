// Kernels that write Philox words and uniform numbers.
#include <fmt/format.h>

#include "dsl/philox.h"
#include "prism/kernel.h"
#include "sample_kernels/sample_case_tools.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::kernels {

using namespace dsl;

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

void add_philox(std::vector<SampleKernel>& list) {
  list.push_back({"philox", "counter-based random words", philox,
                  [](uint64_t seed, bool quick) { return cases(false, seed, quick); }});
  list.push_back({"uniform_f32", "random numbers in [0, 1)", uniform_f32,
                  [](uint64_t seed, bool quick) { return cases(true, seed, quick); }});
}

}  // namespace prism::kernels
