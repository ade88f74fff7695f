// Tests the proven alignment of indices.
#include "print/alignment.h"

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "print/printer.h"
#include "prism/kernel.h"

namespace prism {
namespace {

using namespace dsl;

// The proven alignment of each store index, in order.
std::vector<uint32_t> store_multiples(const std::function<void(const Array&, Value)>& body) {
  const Kernel built = kernel("k", 32, [&] {
    auto y = out("y", u32);
    auto n = param("n", u32);
    body(y, n);
  });
  const Kernel lowered = lower(built, typical_capabilities("cuda"));
  const std::vector<uint32_t> known = known_multiples(lowered);
  std::vector<uint32_t> result;
  ir::walk(lowered.body, [&](const ir::Inst& inst) {
    if (inst.op == ir::Op::store) result.push_back(known[inst.args[0]]);
  });
  return result;
}

TEST(Alignment, FollowsArithmetic) {
  EXPECT_EQ(store_multiples([](const Array& y, Value n) {
              y[n] = 0u;
              y[n * 24u] = 0u;
              y[n * 24u + 4u] = 0u;
              y[(n << 5u) - 16u] = 0u;
              y[n & 0xfffffff0u] = 0u;
              y[n * 32u / 4u] = 0u;
            }),
            (std::vector<uint32_t>{1, 8, 4, 16, 16, 8}));
}

TEST(Alignment, FollowsLoopsAndVariables) {
  EXPECT_EQ(store_multiples([](const Array& y, Value n) {
              Var at(u32, 0u, "at");
              for_(16u, n, 8u, [&](Value i) {
                y[i] = 0u;
                y[at] = 0u;
                at = select(at == 32u, constant(u32, 0), at + 4u);
              });
            }),
            (std::vector<uint32_t>{8, 4}));
}

TEST(Alignment, ForgetsWhatAnyAssignmentBreaks) {
  EXPECT_EQ(store_multiples([](const Array& y, Value n) {
              Var at(u32, 64u, "at");
              y[at] = 0u;
              if_(n < 3u, [&] { at = n; });
            }),
            (std::vector<uint32_t>{1}));
}

}  // namespace
}  // namespace prism
