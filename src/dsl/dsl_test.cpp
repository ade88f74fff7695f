// Tests that the kernel language builds the written code and rejects invalid code with location and
// rule.
#include "prism/kernel.h"

#include <gtest/gtest.h>

#include "ir/verify.h"
#include "prism/error.h"

namespace prism {
namespace {

using namespace dsl;

// Builds the body and returns the message of the error it throws.
std::string refusal(const std::function<void()>& body) {
  try {
    kernel("bad", 64, body);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidKernel);
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(rule, ...)                                      \
  do {                                                                 \
    const std::string said = refusal(__VA_ARGS__);                     \
    EXPECT_NE(said.find(rule), std::string::npos) << "said: " << said; \
    EXPECT_NE(said.find("dsl_test.cpp:"), std::string::npos) << said;  \
  } while (0)

TEST(Dsl, BuildsTheReadmeKernel) {
  const Kernel k = kernel("add", 256, [] {
    auto a = in("a", f32), b = in("b", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = a[i] + b[i]; });
  });
  EXPECT_EQ(k.buffers().size(), 3u);
  const std::string text = ir::to_text(k);
  EXPECT_NE(text.find("add"), std::string::npos);
  EXPECT_NE(text.find("store y"), std::string::npos);
}

TEST(Dsl, LocationsAreThoseOfTheCaller) {
  const Kernel k = kernel("where", 64, [] { barrier(); });
  const uint32_t line = __LINE__ - 1;
  bool found = false;
  ir::walk(k.body, [&](const ir::Inst& inst) {
    if (inst.op != ir::Op::barrier) return;
    found = true;
    EXPECT_EQ(inst.where.line, line);
    EXPECT_EQ(ir::location_text(inst.where), "dsl_test.cpp:" + std::to_string(line));
  });
  EXPECT_TRUE(found);
}

TEST(Dsl, OperatorsKnowTheirLine) {
  uint32_t line = 0;
  const std::string said = refusal([&] {
    auto a = param("a", u32);
    auto b = param("b", f32);
    line = __LINE__ + 1;
    (void)(a + b);
  });
  EXPECT_NE(said.find("dsl_test.cpp:" + std::to_string(line)), std::string::npos) << said;
}

TEST(Dsl, RefusesBarrierInVaryingFlow) {
  EXPECT_REFUSED("barrier is in varying control flow",
                 [] { if_(local_id() < 3u, [] { barrier(); }); });
  EXPECT_REFUSED("barrier is in varying control flow",
                 [] { for_(local_id(), [](Value) { barrier(); }); });
  EXPECT_REFUSED("group_reduce is in varying control flow",
                 [] { if_(local_id() < 3u, [] { group_sum(constant(f32, 1.0)); }); });
}

TEST(Dsl, AVaryingBreakPartsTheLoop) {
  EXPECT_REFUSED("varying control flow", [] {
    for_(10u, [](Value i) {
      if_(i == local_id(), [] { break_(); });
      barrier();
    });
  });
}

TEST(Dsl, AVariableFedByALaterIterationIsVarying) {
  EXPECT_REFUSED("varying control flow", [] {
    Var limit(u32, 4u);
    for_(10u, [&](Value) {
      if_(limit > 3u, [] { barrier(); });
      limit = local_id();
    });
  });
}

TEST(Dsl, UniformFlowAllowsBarriers) {
  EXPECT_NO_THROW(kernel("ok", 64, [] {
    auto lengths = in("lengths", u32);
    auto count = param("count", u32);
    for_(lengths[group_id()], [&](Value i) { if_(i < count, [] { barrier(); }); });
  }));
}

TEST(Dsl, RefusesMixedTypes) {
  EXPECT_REFUSED("types differ: f32 where u32 is needed",
                 [] { (void)(param("a", u32) + param("b", f32)); });
  EXPECT_REFUSED("is a float where u32", [] { (void)(param("a", u32) + 0.5); });
  EXPECT_REFUSED("say which", [] { (void)(param("a", i32) / 3); });
  EXPECT_REFUSED("does not fit", [] { (void)(param("a", i32) + 0x1ffffffff); });
}

TEST(Dsl, RefusesAKnownIndexOutOfRange) {
  EXPECT_REFUSED("index 64 is out of range: tile has 64 elements", [] {
    auto tile = shared(f32, 64);
    tile[64u] = 1.0f;
  });
}

TEST(Dsl, RefusesWrongAccess) {
  EXPECT_REFUSED("read-only", [] { Array(in("x", f32).memory()).store(0u, 1.0f); });
  EXPECT_REFUSED("write-only", [] { out("x", f32).load(0u); });
  EXPECT_REFUSED("must be inout", [] { out("x", u32).atomic_add(0u, 1u); });
  EXPECT_REFUSED("i32 and u32 support all",
                 [] { inout("x", f32).atomic(AtomicOp::max, 0u, 1.0f); });
}

TEST(Dsl, RefusesValuesThatLeaveTheirBlock) {
  EXPECT_REFUSED("made inside another block", [] {
    auto y = out("y", u32);
    std::vector<Value> leaked;
    if_(local_id() < 3u, [&] { leaked.push_back(local_id() + 1u); });
    y[0u] = leaked[0];
  });
  EXPECT_REFUSED("outside of a loop", [] { break_(); });
}

TEST(Dsl, WaitsOnceBeforeTouchingPlanData) {
  const Kernel k = kernel("w", 64, [] { out("y", f32)[local_id()] = 1.0f; });
  ASSERT_GT(k.body.body.size(), 2u);
  EXPECT_EQ(k.body.body[0].op, ir::Op::launch_next);
  EXPECT_EQ(k.body.body[1].op, ir::Op::wait_previous);
  EXPECT_REFUSED("is before wait_previous", [] {
    auto x = in("x", f32);
    Value v = x[0u];
    wait_previous();
    out("y", f32)[0u] = v;
  });
  EXPECT_NO_THROW(kernel("w2", 64, [] {
    auto x = weights("x", f32);
    Value v = x[0u];
    wait_previous();
    out("y", f32)[0u] = v;
  }));
  EXPECT_REFUSED("every path must wait",
                 [] { if_(param("a", u32) == 1u, [] { wait_previous(); }); });
  EXPECT_NO_THROW(kernel("w3", 64, [] {
    auto x = weights("x", f32);
    auto y = out("y", f32);
    const auto branch = [&](uint32_t at) {
      const Value v = x[at];
      wait_previous();
      y[at] = v;
    };
    if_(
        param("a", u32) == 1u, [&] { branch(0); }, [&] { branch(1); });
  }));
  EXPECT_REFUSED("occurs twice", [] {
    if_(
        param("a", u32) == 1u, [] { wait_previous(); }, [] { wait_previous(); });
    wait_previous();
  });
  EXPECT_REFUSED("is before wait_previous", [] {
    auto y = out("y", f32);
    if_(
        param("a", u32) == 1u, [] { wait_previous(); },
        [&] {
          y[0u] = 1.0f;
          wait_previous();
        });
  });
  EXPECT_REFUSED("every path must wait",
                 [] { for_(param("a", u32), [](Value) { wait_previous(); }); });
}

TEST(Dsl, NeedsAKernelAround) { EXPECT_THROW(local_id(), Error); }

}  // namespace
}  // namespace prism
