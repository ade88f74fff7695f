// Tests all forms of control flow, uniform and varying, against the same loops in C++.
#include "support/kernels/interpreter_testing.h"

namespace prism::interpreter_testing {
namespace {

using namespace dsl;
using U = std::vector<uint32_t>;
constexpr uint32_t kLanes = 40;  // not a multiple of the padding

// Compares a function of the lane in the kernel with the same function in C++.
void expect_lanes(const std::function<dsl::Value(dsl::Value)>& kernel_of,
                  const std::function<uint32_t(uint32_t)>& wanted) {
  const Kernel kernel = dsl::kernel("flow", kLanes, [&] {
    const Array y = out("y", u32);
    const Value i = local_id();
    const Value result = kernel_of(i);
    y[group_id() * group_size() + i] = result;
  });
  U expected;
  for (uint32_t group = 0; group < 2; ++group)
    for (uint32_t i = 0; i < kLanes; ++i) expected.push_back(wanted(i));
  EXPECT_EQ(run(kernel, 2, U(2 * kLanes)), expected);
}

TEST(InterpreterFlow, IfAndElse) {
  expect_lanes(
      [](Value i) {
        Var x(u32, 1u);
        if_(
            i % 3u == 0u, [&] { x = i * 2u; },
            [&] {
              if_(
                  i > 20u, [&] { x += i; }, [&] { x = x + 100u; });
            });
        if_(i > 1000u, [&] { x = 7u; });
        return Value(x);
      },
      [](uint32_t i) { return i % 3 == 0 ? i * 2
                              : i > 20   ? 1 + i
                                         : 101; });
}

TEST(InterpreterFlow, UniformIf) {
  expect_lanes(
      [](Value i) {
        Var x(u32, i);
        if_(
            group_count() == 2u, [&] { x += 1u; }, [&] { x += 2u; });
        if_(
            group_count() == 3u, [&] { x += 10u; }, [&] { x += 20u; });
        return Value(x);
      },
      [](uint32_t i) { return i + 21; });
}

TEST(InterpreterFlow, ForWithEveryKindOfBound) {
  expect_lanes(
      [](Value i) {
        Var x(u32, 0u);
        for_(5u, [&](Value k) { x += k; });                    // uniform
        for_(i, 50u, 7u, [&](Value k) { x += k; });            // the start varies
        for_(2u, i, 3u, [&](Value k) { x += k * 3u; });        // the end varies
        for_(0u, 30u, i + 1u, [&](Value k) { x += k * 5u; });  // the step varies
        for_(9u, 3u, 1u, [&](Value) { x = 0u; });              // never
        unrolled_for(3, [&](Value k) { x += k; });
        return Value(x);
      },
      [](uint32_t i) {
        uint32_t x = 10;
        for (uint32_t k = i; k < 50; k += 7) x += k;
        for (uint32_t k = 2; k < i; k += 3) x += k * 3;
        for (uint32_t k = 0; k < 30; k += i + 1) x += k * 5;
        return x + 3;
      });
}

TEST(InterpreterFlow, ForCountsInSignedAndStopsBeforeWrapping) {
  expect_lanes(
      [](Value i) {
        Var x(u32, 0u);
        for_(constant(i32, -5), constant(i32, 3), constant(i32, 2),
             [&](Value k) { x += bitcast(u32, k + 10); });
        for_(constant(i32, -3), cast(i32, i) - 10, constant(i32, 4),
             [&](Value k) { x += bitcast(u32, k + 3); });
        for_(constant(u32, 0xfffffff0u), constant(u32, 0xffffffffu), constant(u32, 8u),
             [&](Value) { x += 1000u; });
        for_(constant(u32, 0xfffffff0u) + i * 0u, constant(u32, 0xffffffffu), constant(u32, 8u),
             [&](Value) { x += 1000u; });
        return Value(x);
      },
      [](uint32_t i) {
        uint32_t x = 5 + 7 + 9 + 11;
        for (int32_t k = -3; k < static_cast<int32_t>(i) - 10; k += 4)
          x += static_cast<uint32_t>(k + 3);
        return x + 4000;
      });
}

TEST(InterpreterFlow, While) {
  expect_lanes(
      [](Value i) {
        Var x(u32, i), steps(u32, 0u), n(u32, 0u);
        while_([&] { return x > 1u; },
               [&] {
                 x = select(x % 2u == 0u, x / 2u, x * 3u + 1u);
                 steps += 1u;
               });
        while_([&] { return n < 6u; }, [&] { n += 2u; });  // uniform
        return steps * 100u + n;
      },
      [](uint32_t i) {
        uint32_t x = i, steps = 0;
        for (; x > 1; ++steps) x = x % 2 ? x * 3 + 1 : x / 2;
        return steps * 100 + 6;
      });
}

TEST(InterpreterFlow, BreakOfSomeLanes) {
  expect_lanes(
      [](Value i) {
        Var x(u32, 0u);
        for_(20u, [&](Value k) {
          if_(k > 3u, [&] {
            if_(k * 2u > i, [&] {
              x += 1000u;
              break_();
            });
            x += 10u;  // only lanes still in the loop
          });
          x += 1u;
        });
        return Value(x);
      },
      [](uint32_t i) {
        uint32_t x = 0;
        for (uint32_t k = 0; k < 20; ++k) {
          if (k > 3) {
            if (k * 2 > i) {
              x += 1000;
              break;
            }
            x += 10;
          }
          x += 1;
        }
        return x;
      });
}

TEST(InterpreterFlow, BreakOfAllLanesAndOfAnInnerLoop) {
  expect_lanes(
      [](Value i) {
        Var x(u32, 0u);
        for_(10u, [&](Value k) {
          if_(k == 6u, [&] { break_(); });  // uniform
          while_([&] { return constant(b1, 1); },
                 [&] {
                   x += 1u;
                   if_(
                       x % 4u == i % 4u, [&] { break_(); }, [&] { x += 2u; });
                   if_(x > 60u, [&] { break_(); });
                 });
          for_(i, i + 5u, 1u, [&](Value j) {
            if_(j == i + 2u, [&] { break_(); });
            x += 100u;
          });
        });
        return Value(x);
      },
      [](uint32_t i) {
        uint32_t x = 0;
        for (uint32_t k = 0; k < 6; ++k) {
          while (true) {
            x += 1;
            if (x % 4 == i % 4) break;
            x += 2;
            if (x > 60) break;
          }
          x += 200;
        }
        return x;
      });
}

TEST(InterpreterFlow, LoopsInsideBranchesOfSomeLanes) {
  expect_lanes(
      [](Value i) {
        Var x(u32, 0u);
        if_(i % 2u == 0u, [&] {
          for_(4u, [&](Value k) {
            Var inside(u32, k);  // uniform among the active lanes
            if_(k == 2u, [&] { inside = 50u; });
            x += inside + i;
          });
          for_(3u, [&](Value k) {
            if_(k == 1u, [&] { break_(); });
            x += 7u;
          });
        });
        return Value(x);
      },
      [](uint32_t i) { return i % 2 == 0 ? 0 + 1 + 50 + 3 + 4 * i + 7 : 0; });
}

TEST(InterpreterFlow, VariablesKeepWhatWasRead) {
  expect_lanes(
      [](Value i) {
        Var a(u32, i), b(u32, i * 2u);
        for_(3u, [&](Value) {
          const Value old = a;
          a = b + 1u;
          b = old;  // a swap: old was read before a changed
        });
        Var v(Type{u32, 2}, vec(Value(a), Value(b)));
        v = vec(Value(v)[1], Value(v)[0]);
        const Value before = a;
        for_(2u, [&](Value k) {
          a += before + k;  // read outside the loop, assigned inside
        });
        return Value(v)[0] * 10000u + Value(v)[1] * 100u + Value(a);
      },
      [](uint32_t i) {
        uint32_t a = i, b = i * 2;
        for (int k = 0; k < 3; ++k) {
          const uint32_t old = a;
          a = b + 1;
          b = old;
        }
        return b * 10000 + a * 100 + a + 2 * a + 1;
      });
}

TEST(InterpreterFlow, RawTextMeansItsBlock) {
  expect_lanes(
      [](Value i) {
        return raw("cuda", "{r} = {0} + 1;", {i}, Type{u32, 1}, [&] { return i + 1u; });
      },
      [](uint32_t i) { return i + 1; });
}

TEST(InterpreterFlow, PlacesOfTheGrid) {
  const Kernel kernel = dsl::kernel("grid", 4, [] {
    const Array y = out("y", u32);
    const Value scale = param("scale", u32);
    const Value group = (group_id(2) * group_count(1) + group_id(1)) * group_count(0) + group_id(0);
    y[group * 4u + local_id()] = group * scale + local_id();
  });
  U y(2 * 3 * 5 * 4);
  const std::vector<ir::HostBuffer> buffers = {host(y)};
  const U params = {100};
  ir::interpret(kernel, {2, 3, 5}, buffers, params);
  for (uint32_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i / 4 * 100 + i % 4);
}

TEST(InterpreterFlow, WrongArgumentsAreRefused) {
  const Kernel kernel = dsl::kernel("one", 4, [] { out("y", u32)[local_id()] = param("p", u32); });
  U y(4);
  const std::vector<ir::HostBuffer> buffers = {host(y)};
  try {
    ir::interpret(kernel, {1, 1, 1}, buffers, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_SAYS(std::string(error.what()), "kernel one: got 0 parameters, needs 1");
  }
  EXPECT_THROW(ir::interpret(kernel, {1, 1, 1}, {}, U{1}), Error);
  EXPECT_THROW(ir::interpret(kernel, {1, 1, 1}, buffers, U{1}, options(48)), Error);
}

}  // namespace
}  // namespace prism::interpreter_testing
