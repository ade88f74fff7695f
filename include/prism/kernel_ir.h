// The kernel IR: a kernel is data made of typed instructions in structured blocks.
//
// An instruction has at most one result, an immutable value. Mutable state lives in variables,
// memories (buffers, shared and private arrays) and fragments, which instructions refer to by
// index.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "prism/dtype.h"

#pragma GCC visibility push(default)

namespace prism::ir {

// A scalar or a vector of 2 or 4 lanes. lanes == 0: no value.
struct Type {
  DType element = DType::u32;
  uint8_t lanes = 1;
  friend bool operator==(const Type&, const Type&) = default;
};
inline constexpr Type kVoid{DType::u32, 0};
std::string type_name(Type type);  // "f32", "u32x4", "void"

// The C++ source location an instruction was written at.
struct Location {
  const char* file = "";
  uint32_t line = 0;
};

using Value = uint32_t;
inline constexpr uint32_t kNone = 0xffffffffu;

enum class Op : uint8_t {
  // --- leaves
  constant,       // bits: the value, as the bit pattern of the type; scalars only
  param,          // object: parameter index
  group_id,       // object: axis 0..2; u32
  group_count,    // object: axis 0..2; u32
  local_id,       // u32, 0 .. group_size-1 (groups are one-dimensional)
  subgroup_size,  // u32 (folded to a constant by lowering)
  subgroup_id,    // u32, which subgroup of the group
  subgroup_lane,  // u32, which lane of the subgroup
  // --- arithmetic, elementwise on vectors
  add,
  sub,
  mul,  // integers wrap; floats are rounded once each, never contracted
  div,  // floats only
  div_trunc,
  rem_trunc,  // integers; x/0 = 0, x rem 0 = x; MIN/-1 = MIN
  div_floor,
  mod_floor,  // integers, rounding towards minus infinity; same rule for 0
  div_plain,  // lowered form: integers; the divisor is neither 0 nor an overflowing -1
  mul_high,   // u32, i32: upper half of the double-width product
  fma,        // a*b+c, floats, rounded once
  neg,
  abs,  // integers wrap
  min,
  max,  // min(a,b) = b<a ? b : a;  max(a,b) = a<b ? b : a
  floor,
  ceil,
  trunc,
  round_even,  // floats
  sqrt,
  rsqrt,
  exp,
  exp2,
  log,
  log2,
  sin,
  cos,
  tanh,  // f32, f64
  // --- bits
  bit_and,
  bit_or,
  bit_xor,
  bit_not,  // integers, and b1
  shl,
  shr,  // count masked to the width, same type as the operand; shr of signed is arithmetic
  shl_plain,
  shr_plain,     // lowered form: the count is in range
  extract_bits,  // (value, offset, count) u32/i32; sign-extends i32; offset+count <= 32; count 0
                 // gives 0
  insert_bits,   // (base, insert, offset, count) u32
  popcount,
  count_leading_zeros,  // u32; clz(0) = 32
  // --- comparison and choice
  eq,
  ne,
  lt,
  le,
  gt,
  ge,      // b1 (same lanes); ordered: any comparison with NaN is false, except ne
  select,  // (b1 condition, if_true, if_false); scalar condition or one of the same lanes
  // --- conversion
  cast,  // value conversion; float to integer truncates, saturates, NaN gives 0; to b1: x != 0
  cast_plain,  // lowered form: float to integer, value in range
  bitcast,     // same total bits (f32<->u32<->i32, f64<->u64, u32x2<->u64 ...)
  pack_f16,    // f32x2 -> u32, lane 0 in the low half, round to nearest even
  unpack_f16,  // u32 -> f32x2
  pack_8,      // u32x4 or i32x4 -> u32, low 8 bits of each
  unpack_i8,   // u32 -> i32x4
  unpack_u8,   // u32 -> u32x4
  dot4_i8,     // (u32 a, u32 b, i32 c): c + sum of four signed 8-bit products, wrapping
  dot4_u8,     // (u32 a, u32 b, u32 c): the same, unsigned
  // --- vectors
  make_vector,  // 2 or 4 scalars
  extract,      // object: which lane
  // --- variables (object: variable index)
  declare,  // (initial value); every variable is declared once before any use
  read,
  assign,  // (value)
  // --- memory (object: memory index). Indices are u32, in elements of the memory.
  load,        // (index[, b1 predicate]); result widened(element) x lanes, 0 where the predicate is
               // false;
               // lanes > 1: consecutive elements, index a multiple of lanes
  store,       // (index, value[, predicate]); narrows; value is widened(element) x lanes
  load_words,  // buffers: (word index[, predicate]); u32 x lanes for any element type; alignment in
               // words in bits
  store_words,  // buffers: (word index, value[, predicate]); alignment in words in bits
  atomic,  // (index, value[, expected]); attribute AtomicOp in bits; i32, u32, f32(add, exchange);
           // returns the old value
  async_copy,  // (shared index, buffer index[, predicate]); object: shared, object2: buffer, same
               // element type;
  // bits: elements, 4, 8 or 16 bytes in all, both sides aligned to that. False predicate writes
  // zeros.
  async_commit,  // closes a batch of copies
  async_wait,    // bits: how many of the newest batches may still be in flight
  barrier,       // group: orders shared and buffer memory
  device_fence,  // orders buffer memory among the groups of a launch, paired with an atomic:
                 // writes before one lane's fence are visible after another lane's fence if the
                 // latter's preceding atomic saw an atomic that followed the former's fence
  // --- across lanes; only in group-uniform control flow
  subgroup_reduce,       // bits: ReduceOp; result in every lane
  subgroup_scan,         // bits: ReduceOp, object 0 inclusive, 1 exclusive (identity first)
  subgroup_shuffle,      // (value, u32 lane)
  subgroup_shuffle_xor,  // (value); bits: mask, a constant power of two below the subgroup size
  group_reduce,          // bits: ReduceOp; result in every lane, group-uniform
  // --- fragments (object: fragment index); whole subgroup, only in group-uniform control flow
  fragment_fill,      // (value)
  fragment_load,      // (index, stride); object2: memory; bits: 1 if column-major
  fragment_store,     // (index, stride); object2: memory; bits: 1 if column-major
  fragment_multiply,  // object (accumulator) += objects[0] (a) * objects[1] (b)
  fragment_map,  // object = f(objects' elements ..., row, column); block with that many params ends
                 // in yield
  fragment_row_reduce,  // object[r][c] = reduce over the row r of objects[0]; bits: ReduceOp;
                        // accumulators
  fragment_make,  // object (an a operand of 16-bit floats) = f(row, k) for even k: a u32 with the
                  // elements k (low half) and k + 1; block with those two params ends in yield
  fragment_convert,  // object (an a or b operand) = objects[0] (an accumulator of the same rows and
                     // columns)
  // --- control
  if_,     // (b1); blocks: then, else
  for_,    // (start, end, step) u32 or i32, step > 0, index must not wrap; block with the index as
           // its param;
           // bits: unroll hint (0 none, 1 full)
  while_,  // blocks: condition (ends in yield of b1), body
  break_,  // leaves the innermost for_ or while_
  yield,   // (value) last instruction of a condition or map block
  // --- overlapping launches
  wait_previous,  // code after this needs the results of the previous launch
  launch_next,    // the next launch may start
  // --- other
  comment,  // text
  raw,      // text for one dialect: text2 names it, {0} {1} are args, {r} the variable `object` it
            // assigns;
            // block 0 is the meaning in every other dialect
};
inline constexpr int kOpCount = static_cast<int>(Op::raw) + 1;
const char* op_name(Op op);

enum class ReduceOp : uint8_t { add, min, max, bit_and, bit_or, bit_xor };
enum class AtomicOp : uint8_t {
  add,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  exchange,
  compare_exchange
};
const char* reduce_op_name(ReduceOp op);
const char* atomic_op_name(AtomicOp op);

struct Inst;
struct Block {
  std::vector<Value> params;
  std::vector<Inst> body;
};

struct Inst {
  Op op = Op::comment;
  Type type = kVoid;
  Value result = kNone;
  std::vector<Value> args;
  uint32_t object = kNone;
  uint32_t object2 = kNone;
  std::vector<uint32_t> objects;
  uint64_t bits = 0;
  std::vector<Block> blocks;
  std::string text;
  std::string text2;
  Location where;
};

enum class Access : uint8_t { read, write, read_write };

struct Param {  // 32 bits each
  std::string name;
  DType type = DType::u32;  // u32, i32 or f32
};

enum class Space : uint8_t { buffer, shared, local };

// A caller's buffer, a shared array of the group or a private array of a lane. Elements may have
// storage-only types.
struct Memory {
  std::string name;
  Space space = Space::buffer;
  DType element = DType::f32;
  uint64_t length = 0;           // elements; shared and local only
  Access access = Access::read;  // buffers only
  bool constant = false;         // buffers only: never written within the plan (weights)
  uint32_t binding = kNone;      // buffers: position in the launch's buffer list
  // Lowering splits a buffer beyond the device's binding limit into pieces: memories of the same
  // binding.
  uint32_t piece = 0;
  bool atomic = false;  // accessed atomically (set by the builder and by lowering)
};

struct Variable {
  std::string name;
  Type type;
};

enum class FragmentRole : uint8_t { a, b, accumulator };

// One operand of accumulator(m x n) += a(m x k) * b(k x n), distributed over the lanes of a
// subgroup.
struct Fragment {
  std::string name;
  FragmentRole role = FragmentRole::accumulator;
  DType element = DType::f32;
  uint16_t m = 16, n = 16, k = 16;
  uint32_t rows() const { return role == FragmentRole::b ? k : m; }
  uint32_t columns() const { return role == FragmentRole::a ? k : n; }
};

// Every device supports 8 bindings; a kernel with more does not run on some devices
// (Capabilities::max_buffers).
inline constexpr uint32_t kMaxBuffers = 16;
inline constexpr uint32_t kMaxParams = 24;

struct Kernel {
  std::string name;
  uint32_t group_size = 256;
  std::vector<Param> params;
  std::vector<Memory> memories;
  std::vector<Variable> variables;
  std::vector<Fragment> fragments;
  std::vector<Type> values;  // type of each Value
  Block body;
  Location where;

  // The subgroup size the kernel is written for (0: any); lowering emulates it where the device
  // lacks it.
  uint32_t required_subgroup_size = 0;
  // Set by lowering: the subgroup size the kernel was specialised for (0: it uses none).
  uint32_t subgroup_size = 0;
  // Set by lowering: the last three params are the true group counts, and the grid is folded.
  bool folded = false;

  std::vector<uint32_t> buffers()
      const;  // memory index of each binding's first piece, in binding order
  uint64_t shared_bytes() const;
};

// Calls visit(inst) for each instruction, outer before inner. Visitor: void(const Inst&).
template <class Visitor>
void walk(const Block& block, Visitor&& visit) {
  for (const Inst& inst : block.body) {
    visit(inst);
    for (const Block& inner : inst.blocks) walk(inner, visit);
  }
}

// The kernel as readable text, also hashed for cache keys (source locations are omitted).
std::string to_text(const Kernel& kernel);

// "file.cpp:12", without the folder.
std::string location_text(const Location& where);

}  // namespace prism::ir

#pragma GCC visibility pop
