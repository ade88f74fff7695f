// Tests lowered byte packing and high halves of products against the original kernels.
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "prism/kernel.h"
#include "support/kernels/lowering.h"

namespace prism {
namespace {

using namespace dsl;
using namespace test;
using ir::Op;

constexpr uint32_t kCount = 4096;

ir::Kernel words_kernel() {
  return kernel("words", 64, [] {
    const auto a = in("a", u32);
    const auto y = out("y", u32);
    const Value i = global_id(), word = a[i], next = a[(i * 7u + 3u) % kCount];
    Var sum(u32, mul_high(word, next));
    sum = sum * 31u + bitcast(u32, mul_high(bitcast(i32, word), bitcast(i32, next)));
    const Value both = mul_high(vec(word, next), vec(next, next));
    const Value signs =
        mul_high(bitcast(Type{i32, 2}, vec(word, next)), bitcast(Type{i32, 2}, vec(next, word)));
    sum = sum * 31u + both[0] + both[1] * 7u + bitcast(u32, signs[0] ^ signs[1]);
    const Value bytes = unpack_u8(word), signed_bytes = unpack_i8(next);
    for (uint32_t k = 0; k < 4; ++k)
      sum = sum * 31u + bytes[k] + bitcast(u32, signed_bytes[k]) * 3u;
    sum = sum * 31u + pack_8(bytes * 5u) + pack_8(signed_bytes);
    y[i] = sum;
  });
}

TEST(LowerWords, BytesAndHighHalvesOutOfShiftsAndSums) {
  const ir::Kernel written = words_kernel();
  for (const char* dialect : {"wgsl", "spirv"}) {
    ir::Capabilities caps = full_capabilities();
    caps.dialect = dialect;
    const ir::Kernel lowered = lower(written, caps);
    for (Op op : {Op::mul_high, Op::pack_8, Op::unpack_i8, Op::unpack_u8})
      EXPECT_EQ(count_ops(lowered, op) > 0, std::string(dialect) != "wgsl")
          << ir::op_name(op) << " for " << dialect;
    for (uint64_t seed : {1u, 2u, 3u})
      expect_same_when_lowered(written,
                               {{kCount / 64, 1, 1},
                                {},
                                {bytes_of(awkward_words(kCount, seed)),
                                 std::vector<std::byte>(kCount * 4, std::byte{0xa5})}},
                               caps);
  }
}

}  // namespace
}  // namespace prism
