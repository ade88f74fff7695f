// Tests each error that checked mode reports, and its message.
#include "support/kernels/interpreter_testing.h"

namespace prism::interpreter_testing {
namespace {

using namespace dsl;
using U = std::vector<uint32_t>;

// Runs 32 lanes of a body that may use an output y of 64 words.
std::string said(const std::function<void(const Array&, Value)>& body) {
  const Kernel kernel = dsl::kernel("wrong", 32, [&] {
    const Array y = inout("y", u32);
    body(y, local_id());
  });
  return failure(kernel, U(64));
}

// The same without the verifier, which would reject these kernels earlier.
std::string said_unverified(const std::function<void(const Array&, Value)>& body,
                            const std::function<void(ir::Kernel&)>& change) {
  ir::Kernel kernel = dsl::kernel("wrong", 32, [&] {
    const Array y = inout("y", u32);
    body(y, local_id());
  });
  change(kernel);
  return failure(kernel, U(64));
}

// Makes the condition of the first if_ depend on the lane; the builder saw a uniform one.
void part_the_lanes(ir::Kernel& kernel) {
  ir::Value varying = ir::kNone;
  for (ir::Inst& inst : kernel.body.body) {
    if (inst.op == ir::Op::lt) varying = inst.result;
    if (inst.op == ir::Op::if_) inst.args[0] = varying;
  }
}

TEST(InterpreterChecks, Bounds) {
  const std::string text = said([](const Array& y, Value i) { y[i * 3u] = i; });
  EXPECT_SAYS(text, "kernel wrong (interpreter_checks_test.cpp:");
  EXPECT_SAYS(text, "group (0, 0, 0): store in lane 22: index 66, but y has 64 elements");
  EXPECT_SAYS(said([](const Array& y, Value i) { y.store(i * 4u, splat(i, 4)); }),
              "store in lane 16: index 64 to 67, but y has 64 elements");
  EXPECT_SAYS(said([](const Array& y, Value i) { y.store_words(i + 40u, i); }),
              "store_words in lane 24: index 64, but y has 64 words");
  EXPECT_SAYS(said([](const Array& y, Value i) { y.atomic_add(i - 1u, 1u); }),
              "atomic in lane 0: index 4294967295, but y has 64 elements");
  EXPECT_SAYS(said([](const Array&, Value i) { if_(i > 3u, [&] { shared(u32, 6)[i] = i; }); }),
              "store in lane 6: index 6, but tile has 6 elements");
  EXPECT_SAYS(said([](const Array&, Value i) { local(u32, 6)[i] = i; }),
              "store in lane 6: index 6, but own has 6 elements");
  EXPECT_EQ(said([](const Array& y, Value i) { if_(i < 20u, [&] { y[i * 3u] = i; }); }), "");
}

TEST(InterpreterChecks, BoundsHoldInUncheckedModeToo) {
  const Kernel kernel = dsl::kernel("beyond", 32, [] {
    const In x = in("x", f32);
    const Array y = out("y", f32);
    const Value shift = param("shift", u32), at = param("at", u32);
    y[local_id()] = x[local_id() + shift] + x[group_id() + at];
  });
  std::vector<float> x(40), y(32);
  const std::vector<ir::HostBuffer> buffers = {host(x), host(y)};
  const auto message = [&](uint32_t shift, uint32_t at) -> std::string {
    try {
      ir::interpret(kernel, {1, 1, 1}, buffers, U{shift, at}, options(32, false));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(8, 39), "");
  EXPECT_SAYS(message(9, 39), "load in lane 31: index 40, but x has 40 elements");
  EXPECT_SAYS(message(0, 40), "load in lane 0: index 40, but x has 40 elements");
  EXPECT_SAYS(message(0xfffffff0u, 0), "load in lane 0: index 4294967280");
}

TEST(InterpreterChecks, Alignment) {
  EXPECT_SAYS(said([](const Array& y, Value i) { y.store(i % 4u + 4u, vec(i, i)); }),
              "store of 2 elements of y in lane 1 at index 5: the index must be a multiple of 2");
  EXPECT_SAYS(
      said([](const Array& y, Value i) { y.store_words(i % 4u + 4u, vec(i, i), 4); }),
      "store_words of 2 words of y in lane 1 at index 5: the index must be a multiple of 4");
  EXPECT_EQ(said([](const Array& y, Value i) { y.store_words(i % 4u + 5u, vec(i, i), 1); }), "");
}

TEST(InterpreterChecks, UninitialisedReads) {
  EXPECT_SAYS(said([](const Array& y, Value i) {
                const Array tile = shared(u32, 32);
                if_(i != 7u, [&] { tile[i] = i; });
                barrier();
                y[i] = tile.load(31u - i);
              }),
              "lane 24 reads tile[7], which nothing in the group has written");
  EXPECT_SAYS(said([](const Array& y, Value i) {
                const Array own = local(u32, 3);
                own[i % 2u] = i;
                y[i] = own.load(1u);
              }),
              "lane 0 reads own[1], which it has not written");
  EXPECT_SAYS(said([](const Array& y, Value i) { y[i] = shared(u32, 1).load(0u); }),
              "lane 0 reads tile[0], which nothing");
}

TEST(InterpreterChecks, SharedMemoryIsForgottenBetweenGroups) {
  const Kernel kernel = dsl::kernel("forgets", 8, [] {
    const Array y = out("y", u32);
    const Array tile = shared(u32, 8);
    if_(group_id() == 0u, [&] { tile[local_id()] = 1u; });
    barrier();
    y[local_id()] = tile.load(local_id());
  });
  U y(8);
  const std::vector<ir::HostBuffer> buffers = {host(y)};
  EXPECT_NO_THROW(ir::interpret(kernel, {1, 1, 1}, buffers, {}));
  try {
    ir::interpret(kernel, {2, 1, 1}, buffers, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_SAYS(std::string(error.what()), "group (1, 0, 0): lane 0 reads tile[0]");
  }
}

TEST(InterpreterChecks, Races) {
  EXPECT_SAYS(said([](const Array& y, Value i) {
                const Array tile = shared(u32, 32);
                tile[i] = i;
                y[i] = tile.load(i ^ 1u);
              }),
              "race on tile[1]: lane 0 reads it and lane 1 wrote it with no barrier between them");
  EXPECT_SAYS(said([](const Array&, Value i) { shared(u32, 32)[i / 2u] = i; }),
              "race on tile[0]: lane 1 writes it and lane 0 wrote it");
  EXPECT_SAYS(said([](const Array&, Value) { shared(u32, 32)[3u] = 1u; }),
              "race on tile[3]: lane 1 writes it and lane 0 wrote it");
  EXPECT_SAYS(said([](const Array& y, Value i) {
                const Array tile = shared(u32, 32);
                tile[i] = i;
                barrier();
                y[i] = tile.load(0u);
                tile[i] = i + 1u;
              }),
              "race on tile[0]: lane 0 writes it and other lanes read it");
  EXPECT_SAYS(said([](const Array& y, Value i) {
                const Array tile = shared(u32, 2);
                if_(i < 2u, [&] { tile[i] = 0u; });
                barrier();
                tile.atomic_add(0u, 1u);
                y[i] = tile.load(0u);
              }),
              "race on tile[0]: lane 0 reads it and other lanes changed it");
  EXPECT_EQ(said([](const Array& y, Value i) {
              const Array tile = shared(u32, 33);
              tile[i] = i;
              tile[i] = tile.load(i) + 1u;
              if_(i == 0u, [&] { tile[32u] = 0u; });
              barrier();
              tile.atomic_add(32u, 1u);
              const Value other = tile.load(31u - i);
              barrier();
              tile[i] = other;
              y[i] = tile.load(32u);
            }),
            "");
}

TEST(InterpreterChecks, WholeGroup) {
  const auto body = [](void (*act)(Value)) {
    return [act](const Array& y, Value i) {
      y[i] = cast(u32, i < 5u);
      if_(constant(b1, 1), [&] { act(i); });
    };
  };
  EXPECT_SAYS(said_unverified(body([](Value) { barrier(); }), part_the_lanes),
              "barrier is reached by 5 of 32 lanes (lane 5 is not here)");
  EXPECT_SAYS(said_unverified(body([](Value i) { subgroup_sum(i); }), part_the_lanes),
              "subgroup_reduce is reached by 5 of 32 lanes");
  EXPECT_SAYS(said_unverified(body([](Value i) { group_sum(i); }), part_the_lanes),
              "group_reduce is reached by 5 of 32 lanes");
  EXPECT_SAYS(said_unverified(body([](Value) { async_commit(); }), part_the_lanes),
              "async_commit is reached by 5 of 32 lanes");
  EXPECT_SAYS(said_unverified(body([](Value) { accumulator(f32).fill(0.0f); }), part_the_lanes),
              "fragment_fill is reached by 5 of 32 lanes");
}

std::string said_of_copies(
    const std::function<void(const Array&, const Array&, const In&, Value)>& body) {
  const Kernel kernel = dsl::kernel("ahead", 32, [&] {
    const In x = in("x", u32);
    const Array y = out("y", u32);
    body(y, shared(u32, 64), x, local_id());
  });
  U x(64);
  return failure(kernel, U(64), {host(x)});
}

TEST(InterpreterChecks, AsyncCopies) {
  EXPECT_SAYS(said_of_copies([](const Array& y, const Array& tile, const In& x, Value i) {
                async_copy(tile, i, x, i, 1);
                async_commit();
                y[i] = tile.load(i);
              }),
              "lane 0 touches tile[0] while an async copy into it is under way; async_wait for its "
              "batch first");
  EXPECT_SAYS(said_of_copies([](const Array& y, const Array& tile, const In& x, Value i) {
                async_copy(tile, i, x, i, 1);
                async_wait();
                y[i] = tile.load(i);
              }),
              "under way; commit it with async_commit");
  EXPECT_SAYS(said_of_copies([](const Array& y, const Array& tile, const In& x, Value i) {
                async_copy(tile, i, x, i, 1);
                async_commit();
                async_copy(tile, i + 32u, x, i, 1);
                async_commit();
                async_wait(1);
                y[i] = tile.load(i);
                y[i] = tile.load(i + 32u);
              }),
              "lane 0 touches tile[32] while");
  EXPECT_SAYS(said_of_copies([](const Array& y, const Array& tile, const In& x, Value i) {
                async_copy(tile, i, x, i, 1);
                async_commit();
                async_wait();
                y[i] = tile.load(i ^ 1u);
              }),
              "race on tile[1]: lane 0 reads it and lane 1 wrote it");
  EXPECT_SAYS(
      said_of_copies([](const Array&, const Array& tile, const In& x, Value i) {
        async_copy(tile, i * 2u, x, i + 1u, 2);
      }),
      "async_copy of 2 elements of x in lane 0 at index 1: the index must be a multiple of 2");
  EXPECT_SAYS(said_of_copies([](const Array&, const Array& tile, const In& x, Value i) {
                async_copy(tile, i, x, i + 60u, 1);
              }),
              "async_copy in lane 4: index 64, but x has 64 elements");
}

TEST(InterpreterChecks, Fragments) {
  EXPECT_SAYS(said([](const Array&, Value) {
                const Fragment sum = accumulator(f32), a = fragment_a(f16), b = fragment_b(f16);
                sum.multiply(a, b);
              }),
              "fragment_multiply uses fragment a1, which has not been filled");
  const auto stores = [](const std::function<Value(Value)>& index) {
    const Kernel kernel = dsl::kernel("stores", 32, [&] {
      const Array y = out("y", f32);
      const Fragment sum = accumulator(f32);
      sum.fill(0.0f);
      sum.store(y, index(local_id()), 16u);
    });
    return failure(kernel, std::vector<float>(256));
  };
  EXPECT_EQ(stores([](Value) { return constant(u32, 0u); }), "");
  EXPECT_SAYS(stores([](Value) { return constant(u32, 1u); }),
              "fragment_store in lane 0: index 256, but y has 256 elements");
  EXPECT_SAYS(stores([](Value i) { return i; }),
              "lanes 0 and 1 of one subgroup give different addresses (index 0 and 1");
}

TEST(InterpreterChecks, OperandsInRange) {
  EXPECT_SAYS(said([](const Array& y, Value i) { y[i] = extract_bits(i, i, 20u); }),
              "extract_bits in lane 13 offset 13 and count 20 go beyond 32 bits");
  EXPECT_SAYS(said([](const Array& y, Value i) { y[i] = insert_bits(i, i, 30u, i); }),
              "insert_bits in lane 3 offset 30 and count 3 go beyond");
  EXPECT_SAYS(said([](const Array& y, Value i) { y[i] = subgroup_shuffle(i, i + 1u); }),
              "subgroup_shuffle in lane 31 takes from lane 32 of a subgroup of 32");
  EXPECT_SAYS(said([](const Array& y, Value i) { for_(0u, 9u, i, [&](Value k) { y[i] = k; }); }),
              "for in lane 0 counts in steps of 0; a step must be above zero");
  const auto lowered = [](ir::Op from, ir::Op to, const std::function<Value(Value)>& f) {
    return said_unverified([&](const Array& y, Value i) { y[i] = cast(u32, f(i)); },
                           [&](ir::Kernel& kernel) {
                             for (ir::Inst& inst : kernel.body.body)
                               if (inst.op == from) inst.op = to;
                           });
  };
  EXPECT_SAYS(lowered(ir::Op::div_trunc, ir::Op::div_plain, [](Value i) { return 7u / (5u - i); }),
              "div_plain in lane 5 divides 7 by 0");
  EXPECT_SAYS(lowered(ir::Op::div_trunc, ir::Op::div_plain,
                      [](Value i) {
                        return div_trunc(cast(i32, i) - 3 + INT32_MIN + 3, constant(i32, -1));
                      }),
              "div_plain in lane 0 divides -2147483648 by -1");
  EXPECT_SAYS(lowered(ir::Op::shl, ir::Op::shl_plain, [](Value i) { return i << (i + 2u); }),
              "shl_plain in lane 30 shifts 32 bits by 32");
  EXPECT_SAYS(
      lowered(ir::Op::cast, ir::Op::cast_plain, [](Value i) { return 2.0f - cast(f32, i); }),
      "cast_plain in lane 3 converts -1 to u32");
}

TEST(InterpreterChecks, ReadingWhatIsOnlyWritten) {
  ir::Kernel kernel = dsl::kernel("reads", 4, [] { inout("y", u32)[local_id()] += 1u; });
  kernel.memories[0].access = ir::Access::write;
  EXPECT_SAYS(failure(kernel, U(4)),
              "buffer y is declared for writing only and cannot be read; declare it with inout");
}

}  // namespace
}  // namespace prism::interpreter_testing
