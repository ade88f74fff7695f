// Kernels that exceed the limits of weak devices: more than 65,535 groups, a buffer larger than a
// binding.
#include <fmt/format.h>

#include "prism/kernel.h"
#include "sample_kernels/sample_case_tools.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::kernels {

using namespace dsl;

ir::Kernel many_groups() {
  return kernel("many_groups", 32, [] {
    auto y = out("y", u32);
    const Value x = group_id(0), row = group_id(1), plane = group_id(2);
    const Value linear = (plane * group_count(1) + row) * group_count(0) + x;
    const Value total = group_sum(local_id() + x);
    if_(local_id() == 0u, [&] { y[linear] = total * 31u + row * 7u + plane; });
  });
}

ir::Kernel stride_through() {
  return kernel("stride_through", 64, [] {
    auto big = inout("big", u32);
    auto y = out("y", u32);
    auto count = param("count", u32), stride = param("stride", u32);
    const Value i = global_id();
    if_(i < count, [&] {
      y[i] = big[i * stride];
      big[i * stride + 1u] = i ^ 0x5a5a5a5au;
    });
  });
}

namespace {

std::vector<KernelCase> group_cases(uint64_t, bool quick) {
  std::vector<KernelCase> cases;
  std::vector<std::array<uint32_t, 3>> grids = {{70000, 1, 1}};
  if (!quick) grids.insert(grids.end(), {{3, 66000, 1}, {5, 3, 7}});
  for (auto [x, y, z] : grids) {
    KernelCase c;
    c.name = fmt::format("{}x{}x{} groups", x, y, z);
    c.groups = {x, y, z};
    std::vector<double> expected;
    for (uint32_t p = 0; p < z; ++p)
      for (uint32_t r = 0; r < y; ++r)
        for (uint32_t i = 0; i < x; ++i) expected.push_back((32 * i + 496) * 31u + r * 7u + p);
    c.buffers = {poison(expected.size(), DType::u32)};
    c.expected = {expected};
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> stride_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  // 300 MB spans three bindings of 128 MiB, the smallest limit a device may have.
  const uint64_t elements = quick ? 70000 : 75'000'000;
  const uint32_t count = 7001, stride = static_cast<uint32_t>(elements / count);
  KernelCase c;
  c.name = quick ? "small" : "large memory: 300 MB";
  c.groups = {groups_for(count, 64), 1, 1};
  c.params = {count, stride};
  std::vector<uint32_t> big(elements, 0);
  CaseRandom random(seed);
  std::vector<double> y;
  for (uint32_t i = 0; i < count; ++i)
    y.push_back(big[uint64_t(i) * stride] = static_cast<uint32_t>(random.next()));
  c.buffers = {bytes_of(big), poison(count, DType::u32)};
  c.expected = {{}, y};
  c.verify = [=](std::span<const std::vector<std::byte>> contents) -> std::string {
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t got[3];
      std::memcpy(got, contents[0].data() + uint64_t(i) * stride * 4, 12);
      if (got[0] != static_cast<uint32_t>(y[i]) || got[1] != (i ^ 0x5a5a5a5au) ||
          (stride > 2 && got[2] != 0))
        return fmt::format("big[{}] holds {} {} {}", uint64_t(i) * stride, got[0], got[1], got[2]);
    }
    return "";
  };
  cases.push_back(std::move(c));
  return cases;
}

}  // namespace

void add_limits(std::vector<SampleKernel>& list) {
  list.push_back(
      {"many_groups", "more than 65,535 groups along an axis", many_groups, group_cases});
  list.push_back(
      {"stride_through", "a buffer larger than a binding", stride_through, stride_cases});
}

}  // namespace prism::kernels
