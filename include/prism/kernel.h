// The kernel language: C++ handles whose operators write IR.
//
//   Kernel k = kernel("add", 256, [] {
//     auto a = in("a", f32), b = in("b", f32);
//     auto y = out("y", f32);
//     auto count = param("count", u32);
//     auto i = global_id();
//     if_(i < count, [&] { y[i] = a[i] + b[i]; });
//   });
//
// Host if and for specialise a kernel; if_ and for_ become part of it. Mixed types are an error at
// the expression; a literal takes the type of the other operand.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "prism/kernel_ir.h"

#pragma GCC visibility push(default)

namespace prism {

using Kernel = ir::Kernel;

namespace dsl {

using ir::AtomicOp;
using ir::ReduceOp;
using ir::Type;

inline constexpr DType b1 = DType::b1, i8 = DType::i8, u8 = DType::u8, i16 = DType::i16,
                       u16 = DType::u16, i32 = DType::i32, u32 = DType::u32, i64 = DType::i64,
                       u64 = DType::u64, f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32,
                       f64 = DType::f64;

// Default arguments of this type record the caller's source line.
struct Where : ir::Location {
  Where(const char* in_file = __builtin_FILE(), uint32_t at_line = __builtin_LINE())
      : ir::Location{in_file, at_line} {}
};

// A value of the kernel; immutable.
class Value {
 public:
  explicit Value(ir::Value id) : id_(id) {}
  ir::Value id() const { return id_; }
  Type type() const;
  DType element() const { return type().element; }
  Value operator[](uint32_t lane) const;  // one lane of a vector

 private:
  ir::Value id_;
};

class Var;
class Element;

// A value or a literal, with the line it was written on.
class Operand {
 public:
  Operand(Value value, const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE());
  Operand(const Var& variable, const char* file = __builtin_FILE(),
          uint32_t line = __builtin_LINE());
  Operand(Element&& element, const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE());
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Operand(T literal, const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE())
      : where_{file, line} {
    if constexpr (std::is_floating_point_v<T>)
      content_ = static_cast<double>(literal);
    else if constexpr (std::is_signed_v<T>)
      content_ = static_cast<int64_t>(literal);
    else
      content_ = static_cast<uint64_t>(literal);
  }

  bool is_literal() const { return !std::holds_alternative<Value>(content_); }
  Value value() const;        // an untyped literal becomes i32, u32 (unsigned) or f32
  Value as(Type type) const;  // a literal takes this type (splat for vectors); a value must have it
  Value as(DType type) const { return as(Type{type, 1}); }
  const ir::Location& where() const { return where_; }

 private:
  std::variant<Value, double, int64_t, uint64_t> content_{0.0};
  ir::Location where_;
};

Value constant(DType type, double value);
Value constant(DType type, int64_t value);
inline Value constant(DType type, int value) { return constant(type, static_cast<int64_t>(value)); }
inline Value constant(DType type, uint32_t value) {
  return constant(type, static_cast<int64_t>(value));
}
Value constant_bits(DType type, uint64_t bits);

// A variable: assignment changes it; an expression reads its value at that point.
class Var {
 public:
  Var(DType type, Operand initial, const std::string& name = "v");
  explicit Var(Operand initial, const std::string& name = "v");
  Var(Type type, Operand initial, const std::string& name = "v");
  Var(Var&&) = default;
  Var(const Var&) = delete;  // auto y = variable; would be an alias: write Value y = variable;
  Var& operator=(const Var& other);
  Var& operator=(Operand value);
  Var& operator+=(Operand value);
  Var& operator-=(Operand value);
  Var& operator*=(Operand value);
  operator Value() const;
  Type type() const { return type_; }
  uint32_t index() const { return index_; }

 private:
  uint32_t index_;
  Type type_;
};

// One element of a writable memory. Assigning stores; using it as a value loads at that point.
class Element {
 public:
  Element(uint32_t memory, Value index, ir::Location where)
      : memory_(memory), index_(index), where_(where) {}
  Element(const Element&) = delete;
  void operator=(Operand value) &&;
  void operator=(Element&& other) &&;
  void operator+=(Operand value) &&;
  operator Value() &&;

 private:
  uint32_t memory_;
  Value index_;
  ir::Location where_;
};

enum class Layout { row_major, column_major };

// A buffer, a shared array of the group, or a private array of a lane.
class Array {
 public:
  explicit Array(uint32_t memory) : memory_(memory) {}
  uint32_t memory() const { return memory_; }
  DType element() const;
  Element operator[](Operand index) const;
  // Loads `lanes` consecutive elements; index must be a multiple of lanes. If the predicate is
  // false, gives zeros and reads nothing.
  Value load(Operand index, uint32_t lanes = 1, Where where = {}) const;
  Value load_if(Operand predicate, Operand index, uint32_t lanes = 1, Where where = {}) const;
  void store(Operand index, Operand value, Where where = {}) const;
  void store_if(Operand predicate, Operand index, Operand value, Where where = {}) const;
  // Buffers only: 1, 2 or 4 words of 32 bits at a word index, regardless of the element type.
  // alignment is in words.
  Value load_words(Operand word_index, uint32_t lanes = 1, uint32_t alignment = 1,
                   Where where = {}) const;
  Value load_words_if(Operand predicate, Operand word_index, uint32_t lanes = 1,
                      uint32_t alignment = 1, Where where = {}) const;
  void store_words(Operand word_index, Operand value, uint32_t alignment = 1,
                   Where where = {}) const;
  // Return the old value. f32 supports add and exchange only.
  Value atomic(AtomicOp op, Operand index, Operand value, Where where = {}) const;
  Value atomic_add(Operand index, Operand value, Where where = {}) const;
  Value compare_exchange(Operand index, Operand expected, Operand desired, Where where = {}) const;

 protected:
  Value load_at(Operand index, uint32_t lanes, const Operand* predicate,
                const ir::Location& where) const;
  uint32_t memory_;
};

// A buffer the kernel only reads.
class In : public Array {
 public:
  explicit In(uint32_t memory) : Array(memory) {}
  Value operator[](Operand index) const;
};

// --- a kernel and its arguments
Kernel kernel(const std::string& name, uint32_t group_size, const std::function<void()>& body,
              Where where = {});
In in(const std::string& name, DType type, Where where = {});
In weights(const std::string& name, DType type, Where where = {});  // constant for the whole plan
Array out(const std::string& name, DType type, Where where = {});
Array inout(const std::string& name, DType type, Where where = {});
Value param(const std::string& name, DType type, Where where = {});
void require_subgroup_size(
    uint32_t size, Where where = {});  // the subgroup size the kernel requires: 8, 16, 32 or 64
Array shared(DType type, uint64_t length, const std::string& name = "tile", Where where = {});
Array local(DType type, uint64_t length, const std::string& name = "own", Where where = {});

// --- position in the grid
Value group_id(uint32_t axis = 0);
Value group_count(uint32_t axis = 0);
Value local_id();
Value group_size();
Value global_id();  // group_id(0) * group_size + local_id
Value subgroup_size();
Value subgroup_id();
Value subgroup_lane();

// --- control flow
void if_(Operand condition, const std::function<void()>& then, Where where = {});
void if_(Operand condition, const std::function<void()>& then,
         const std::function<void()>& otherwise, Where where = {});
void for_(Operand start, Operand end, Operand step, const std::function<void(Value)>& body,
          Where where = {});
void for_(Operand end, const std::function<void(Value)>& body, Where where = {});
void unrolled_for(uint32_t end, const std::function<void(Value)>& body, Where where = {});
void while_(const std::function<Value()>& condition, const std::function<void()>& body,
            Where where = {});
void break_(Where where = {});
void barrier(Where where = {});
void device_fence(Where where = {});
void wait_previous(Where where = {});
void launch_next(Where where = {});
void comment(const std::string& text, Where where = {});
// text: code for one dialect, with {0}, {1} for the arguments and {r} for the result; meaning: the
// kernel code for all others.
Value raw(const std::string& dialect, const std::string& text,
          std::initializer_list<Value> arguments, Type type, const std::function<Value()>& meaning,
          Where where = {});

// --- arithmetic
Value operator+(Operand a, Operand b);
Value operator-(Operand a, Operand b);
Value operator*(Operand a, Operand b);
Value operator/(Operand a,
                Operand b);  // floats and unsigned integers; signed: div_trunc or div_floor
Value operator%(Operand a, Operand b);  // unsigned integers; signed: rem_trunc or mod_floor
Value operator-(Operand a);
Value operator&(Operand a, Operand b);
Value operator|(Operand a, Operand b);
Value operator^(Operand a, Operand b);
Value operator~(Operand a);
Value operator<<(Operand a, Operand b);
Value operator>>(Operand a, Operand b);
Value operator==(Operand a, Operand b);
Value operator!=(Operand a, Operand b);
Value operator<(Operand a, Operand b);
Value operator<=(Operand a, Operand b);
Value operator>(Operand a, Operand b);
Value operator>=(Operand a, Operand b);
Value operator&&(Operand a, Operand b);  // both sides are evaluated
Value operator||(Operand a, Operand b);
Value operator!(Operand a);
Value div_trunc(Operand a, Operand b);
Value rem_trunc(Operand a, Operand b);
Value div_floor(Operand a, Operand b);
Value mod_floor(Operand a, Operand b);
Value mul_high(Operand a, Operand b);
Value fma(Operand a, Operand b, Operand c);
Value min(Operand a, Operand b);
Value max(Operand a, Operand b);
Value abs(Operand a);
Value floor(Operand a);
Value ceil(Operand a);
Value trunc(Operand a);
Value round_even(Operand a);
Value sqrt(Operand a);
Value rsqrt(Operand a);
Value exp(Operand a);
Value exp2(Operand a);
Value log(Operand a);
Value log2(Operand a);
Value sin(Operand a);
Value cos(Operand a);
Value tanh(Operand a);
Value square(Operand a);
Value is_nan(Operand a);  // f32, by bits
Value select(Operand condition, Operand if_true, Operand if_false);
Value cast(DType type, Operand a);
Value bitcast(Type type, Operand a);
inline Value bitcast(DType type, Operand a) { return bitcast(Type{type, 1}, a); }
Value extract_bits(Operand value, Operand offset, Operand count);
Value insert_bits(Operand base, Operand insert, Operand offset, Operand count);
Value popcount(Operand a);
Value count_leading_zeros(Operand a);
Value pack_f16(Operand a);
Value unpack_f16(Operand a);
Value pack_8(Operand a);
Value unpack_i8(Operand a);
Value unpack_u8(Operand a);
Value dot4_i8(Operand a, Operand b, Operand c);
Value dot4_u8(Operand a, Operand b, Operand c);
Value vec(Operand a, Operand b);
Value vec(Operand a, Operand b, Operand c, Operand d);
Value splat(Operand a, uint32_t lanes);

// --- across lanes; only in group-uniform control flow
Value subgroup_reduce(ReduceOp op, Operand a, Where where = {});
Value subgroup_sum(Operand a, Where where = {});
Value subgroup_max(Operand a, Where where = {});
Value subgroup_scan(ReduceOp op, Operand a, bool exclusive, Where where = {});
Value subgroup_shuffle(Operand a, Operand lane, Where where = {});
Value subgroup_shuffle_xor(Operand a, uint32_t mask, Where where = {});
Value group_reduce(ReduceOp op, Operand a, Where where = {});
Value group_sum(Operand a, Where where = {});
Value group_max(Operand a, Where where = {});

// --- asynchronous copies
void async_copy(const Array& to_shared, Operand to_index, const Array& from_buffer,
                Operand from_index, uint32_t elements, Where where = {});
void async_copy_if(Operand predicate, const Array& to_shared, Operand to_index,
                   const Array& from_buffer, Operand from_index, uint32_t elements,
                   Where where = {});
void async_commit(Where where = {});
void async_wait(uint32_t still_under_way = 0, Where where = {});

// --- matrix fragments: accumulator(m x n) += a(m x k) * b(k x n), held by a whole subgroup
class Fragment {
 public:
  explicit Fragment(uint32_t index) : index_(index) {}
  uint32_t index() const { return index_; }
  void fill(Operand value, Where where = {}) const;
  void load(const Array& memory, Operand index, Operand stride, Layout layout = Layout::row_major,
            Where where = {}) const;
  void store(const Array& memory, Operand index, Operand stride, Layout layout = Layout::row_major,
             Where where = {}) const;
  void multiply(const Fragment& a, const Fragment& b, Where where = {}) const;
  // this[r][c] = f(this[r][c], r, c)
  void map(const std::function<Value(Value, Value, Value)>& f, Where where = {}) const;
  // this[r][c] = f({sources[r][c]...}, r, c); all accumulators of one shape
  void map(const std::vector<Fragment>& sources,
           const std::function<Value(const std::vector<Value>&, Value, Value)>& f,
           Where where = {}) const;
  // this[r][c] = the reduction over row r of source
  void row_reduce(ReduceOp op, const Fragment& source, Where where = {}) const;
  // An a operand of f16 or bf16 from packed or computed elements: f(row, k), for even k, gives the
  // elements k (low half of a u32) and k + 1 (high half) of the row.
  void make(const std::function<Value(Value, Value)>& f, Where where = {}) const;
  // an operand from an accumulator
  void convert(const Fragment& accumulator, Where where = {}) const;

 private:
  uint32_t index_;
};

struct FragmentSize {
  uint16_t m = 16, n = 16, k = 16;
};
Fragment fragment_a(DType type, FragmentSize size = {}, Where where = {});
Fragment fragment_b(DType type, FragmentSize size = {}, Where where = {});
Fragment accumulator(DType type, FragmentSize size = {}, Where where = {});

}  // namespace dsl
}  // namespace prism

#pragma GCC visibility pop
