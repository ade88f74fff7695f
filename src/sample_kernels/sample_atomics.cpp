// Histograms: integer atomics in shared memory and buffers, and float atomics.
#include <fmt/format.h>

#include "prism/kernel.h"
#include "sample_kernels/sample_case_tools.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::kernels {

using namespace dsl;

ir::Kernel histogram() {
  return kernel("histogram", 256, [] {
    auto x = in("x", u8);
    auto counts = inout("counts", u32);
    auto count = param("count", u32);
    auto own = shared(u32, 256, "own");
    own[local_id()] = 0u;
    barrier();
    for_(global_id(), count, group_count() * group_size(),
         [&](Value i) { own.atomic_add(x[i], 1u); });
    barrier();
    counts.atomic_add(local_id(), own[local_id()]);
  });
}

ir::Kernel weighted_histogram() {
  return kernel("weighted_histogram", 256, [] {
    auto x = in("x", u8);
    auto weight = in("weight", f32);
    auto sums = inout("sums", f32);
    auto count = param("count", u32);
    auto own = shared(f32, 256, "own");
    own[local_id()] = 0.0f;
    barrier();
    for_(global_id(), count, group_count() * group_size(),
         [&](Value i) { own.atomic_add(x[i], weight[i]); });
    barrier();
    sums.atomic_add(local_id(), own[local_id()]);
  });
}

namespace {

std::vector<KernelCase> cases(bool weighted, uint64_t seed, bool quick) {
  std::vector<KernelCase> all;
  CaseRandom random(seed);
  for (uint32_t n : quick ? std::vector<uint32_t>{1000} : std::vector<uint32_t>{1, 1000, 50021}) {
    KernelCase c;
    c.name = fmt::format("n={}", n);
    c.groups = {3, 1, 1};
    c.params = {n};
    auto x = random.octets(n);
    for (uint32_t i = 0; i < n; i += 3) x[i] = 17;  // a crowded bin
    const auto weights = random.floats(n, 0, 1);
    std::vector<double> sums(256, 0.0);
    std::vector<uint32_t> start(256, 5);
    std::vector<float> float_start(256, 0.5f);
    for (uint32_t i = 0; i < n; ++i) sums[x[i]] += weighted ? static_cast<double>(weights[i]) : 1.0;
    for (double& s : sums) s += weighted ? 0.5 : 5;
    c.buffers = {bytes_of(x)};
    c.expected = {{}};
    if (weighted) c.buffers.push_back(bytes_of(weights)), c.expected.emplace_back();
    c.buffers.push_back(weighted ? bytes_of(float_start) : bytes_of(start));
    c.expected.push_back(sums);
    c.tolerance = weighted ? 1e-10 : 0;
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace

void add_atomics(std::vector<SampleKernel>& list) {
  list.push_back({"histogram", "integer atomics in shared memory and a buffer", histogram,
                  [](uint64_t seed, bool quick) { return cases(false, seed, quick); }});
  list.push_back({"weighted_histogram", "float atomics in shared memory and a buffer",
                  weighted_histogram,
                  [](uint64_t seed, bool quick) { return cases(true, seed, quick); }});
}

}  // namespace prism::kernels
