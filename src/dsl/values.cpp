// Values, literals, variables and memories: the handles of the kernel language.
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "dsl/builder.h"
#include "prism/kernel.h"

namespace prism::dsl {
namespace {

Builder& builder() { return Builder::current(); }

uint64_t bits_of(DType type, double value) {
  switch (type) {
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::f64:
      return std::bit_cast<uint64_t>(value);
    case DType::f16:
      return f16_from_f32(static_cast<float>(value));
    default:
      return 0;
  }
}

uint64_t bits_of(DType type, int64_t value) {
  if (is_float(type)) return bits_of(type, static_cast<double>(value));
  if (type == DType::b1) return value != 0;
  if (type == DType::i64 || type == DType::u64) return static_cast<uint64_t>(value);
  return static_cast<uint32_t>(value);
}

bool is_value_type(DType type) { return widened(type) == type || type == DType::f16; }

Value typed_constant(DType type, uint64_t bits, const ir::Location& where) {
  ir::Inst inst;
  inst.op = ir::Op::constant;
  inst.type = Type{type, 1};
  inst.bits = bits;
  inst.where = where;
  return Value(builder().append(std::move(inst)));
}

Value splatted(Value scalar, uint32_t lanes) {
  if (lanes == 1) return scalar;
  return Value(builder().append(ir::Op::make_vector,
                                Type{scalar.element(), static_cast<uint8_t>(lanes)},
                                std::vector<ir::Value>(lanes, scalar.id()), {}));
}

Value checked_index(const Operand& index) { return index.as(u32); }

const ir::Memory& memory_of(uint32_t memory) { return builder().kernel().memories[memory]; }

void check_lanes(uint32_t lanes, const ir::Location& where) {
  if (lanes != 1 && lanes != 2 && lanes != 4)
    builder().fail(where, fmt::format("a vector has 2 or 4 lanes, not {}", lanes));
}

// A literal index beyond a shared or private array is an error at build time.
void check_known_range(const ir::Memory& memory, Value index, uint32_t lanes,
                       const ir::Location& where) {
  if (memory.space == ir::Space::buffer) return;
  if (auto known = builder().known_constant(index.id()); known && *known + lanes > memory.length)
    builder().fail(where, fmt::format("index {} is out of range: {} has {} elements", *known,
                                      memory.name, memory.length));
}

uint32_t add_memory(ir::Memory memory, const ir::Location& where) {
  Builder& b = builder();
  auto& memories = b.kernel().memories;
  if (memory.space == ir::Space::buffer) {
    memory.binding = static_cast<uint32_t>(b.kernel().buffers().size());
    if (memory.binding >= ir::kMaxBuffers)
      b.fail(where, fmt::format("buffer {} exceeds the limit of {} buffers per kernel", memory.name,
                                ir::kMaxBuffers));
    if (memory.element == DType::b1) b.fail(where, "a buffer cannot hold b1; store u8 or u32");
  } else if (memory.length == 0) {
    b.fail(where, fmt::format("array {} has no elements", memory.name));
  }
  memories.push_back(std::move(memory));
  return static_cast<uint32_t>(memories.size() - 1);
}

void store_at(uint32_t memory_index, Operand index, Operand value, const Operand* predicate,
              const ir::Location& where) {
  Builder& b = builder();
  const ir::Memory& memory = memory_of(memory_index);
  if (memory.space == ir::Space::buffer && memory.access == ir::Access::read)
    b.fail(where, fmt::format("buffer {} is read-only; declare it with out or inout", memory.name));
  const DType element = widened(memory.element);
  const Value stored = value.is_literal() ? value.as(element) : value.value();
  if (stored.element() != element)
    b.fail(where, fmt::format("{} holds {}, the value stored is {}; cast it", memory.name,
                              dtype_name(memory.element), ir::type_name(stored.type())));
  const Value at = checked_index(index);
  check_known_range(memory, at, stored.type().lanes, where);
  std::vector<ir::Value> args = {at.id(), stored.id()};
  if (predicate) args.push_back(predicate->as(b1).id());
  ir::Inst inst;
  inst.op = ir::Op::store;
  inst.args = std::move(args);
  inst.object = memory_index;
  inst.where = where;
  b.append(std::move(inst));
}

}  // namespace

Type Value::type() const { return builder().type_of(id_); }

Value Value::operator[](uint32_t lane) const {
  const Type t = type();
  if (lane >= t.lanes)
    builder().fail(builder().last_location,
                   fmt::format("lane {} is out of range for {}", lane, ir::type_name(t)));
  if (t.lanes == 1) return *this;
  ir::Inst inst;
  inst.op = ir::Op::extract;
  inst.type = Type{t.element, 1};
  inst.args = {id_};
  inst.object = lane;
  return Value(builder().append(std::move(inst)));
}

Operand::Operand(Value value, const char* file, uint32_t line)
    : content_(value), where_{file, line} {}
Operand::Operand(const Var& variable, const char* file, uint32_t line)
    : content_(static_cast<Value>(variable)), where_{file, line} {}
Operand::Operand(Element&& element, const char* file, uint32_t line)
    : content_(static_cast<Value>(std::move(element))), where_{file, line} {}

Value Operand::value() const {
  if (const Value* v = std::get_if<Value>(&content_)) return *v;
  if (std::holds_alternative<double>(content_)) return as(f32);
  return as(std::holds_alternative<uint64_t>(content_) ? u32 : i32);
}

Value Operand::as(Type type) const {
  if (const Value* v = std::get_if<Value>(&content_)) {
    if (v->type() == type) return *v;
    if (v->type() == Type{type.element, 1}) return splatted(*v, type.lanes);
    builder().fail(where_, fmt::format("types differ: {} where {} is needed; cast one side",
                                       ir::type_name(v->type()), ir::type_name(type)));
  }
  if (const double* d = std::get_if<double>(&content_)) {
    if (!is_float(type.element))
      builder().fail(where_, fmt::format("the literal {} is a float where {} is needed", *d,
                                         ir::type_name(type)));
    return splatted(typed_constant(type.element, bits_of(type.element, *d), where_), type.lanes);
  }
  const int64_t number = std::holds_alternative<int64_t>(content_)
                             ? std::get<int64_t>(content_)
                             : static_cast<int64_t>(std::get<uint64_t>(content_));
  const bool fits = is_float(type.element) || type.element == DType::b1 ||
                    type.element == DType::i64 || type.element == DType::u64 ||
                    (type.element == DType::u32 ? number >= INT32_MIN && number <= UINT32_MAX
                                                : number >= INT32_MIN && number <= INT32_MAX);
  if (!fits)
    builder().fail(where_,
                   fmt::format("the literal {} does not fit {}", number, ir::type_name(type)));
  return splatted(typed_constant(type.element, bits_of(type.element, number), where_), type.lanes);
}

Value constant(DType type, double value) {
  return typed_constant(
      type, is_float(type) ? bits_of(type, value) : bits_of(type, static_cast<int64_t>(value)), {});
}
Value constant(DType type, int64_t value) { return typed_constant(type, bits_of(type, value), {}); }
Value constant_bits(DType type, uint64_t bits) { return typed_constant(type, bits, {}); }

Var::Var(Type type, Operand initial, const std::string& name) : type_(type) {
  Builder& b = builder();
  if (!is_value_type(type.element))
    b.fail(initial.where(),
           fmt::format("{} is a storage type; a variable needs {}", dtype_name(type.element),
                       dtype_name(widened(type.element))));
  const Value first = initial.as(type);
  index_ = static_cast<uint32_t>(b.kernel().variables.size());
  b.kernel().variables.push_back({name, type});
  ir::Inst inst;
  inst.op = ir::Op::declare;
  inst.args = {first.id()};
  inst.object = index_;
  inst.where = initial.where();
  b.append(std::move(inst));
}
Var::Var(DType type, Operand initial, const std::string& name)
    : Var(Type{type, 1}, initial, name) {}
Var::Var(Operand initial, const std::string& name) : Var(initial.value().type(), initial, name) {}

Var::operator Value() const {
  ir::Inst inst;
  inst.op = ir::Op::read;
  inst.type = type_;
  inst.object = index_;
  return Value(builder().append(std::move(inst)));
}

Var& Var::operator=(Operand value) {
  ir::Inst inst;
  inst.op = ir::Op::assign;
  inst.args = {value.as(type_).id()};
  inst.object = index_;
  inst.where = value.where();
  builder().append(std::move(inst));
  return *this;
}
Var& Var::operator=(const Var& other) { return *this = Operand(static_cast<Value>(other)); }
Var& Var::operator+=(Operand value) { return *this = static_cast<Value>(*this) + value; }
Var& Var::operator-=(Operand value) { return *this = static_cast<Value>(*this) - value; }
Var& Var::operator*=(Operand value) { return *this = static_cast<Value>(*this) * value; }

void Element::operator=(Operand value) && { store_at(memory_, index_, value, nullptr, where_); }
void Element::operator=(Element&& other) && {
  std::move(*this) = Operand(static_cast<Value>(std::move(other)));
}
void Element::operator+=(Operand value) && {
  const Value old = Array(memory_).load(index_);
  store_at(memory_, index_, old + value, nullptr, where_);
}
Element::operator Value() && { return Array(memory_).load(index_); }

DType Array::element() const { return memory_of(memory_).element; }

Element Array::operator[](Operand index) const {
  return Element(memory_, checked_index(index), index.where());
}
Value In::operator[](Operand index) const { return load_at(index, 1, nullptr, index.where()); }

Value Array::load_at(Operand index, uint32_t lanes, const Operand* predicate,
                     const ir::Location& where) const {
  Builder& b = builder();
  check_lanes(lanes, where);
  const ir::Memory& memory = memory_of(memory_);
  if (memory.space == ir::Space::buffer && memory.access == ir::Access::write)
    b.fail(where,
           fmt::format("buffer {} is write-only; declare it with inout to read it", memory.name));
  const Value at = checked_index(index);
  check_known_range(memory, at, lanes, where);
  std::vector<ir::Value> args = {at.id()};
  if (predicate) args.push_back(predicate->as(b1).id());
  ir::Inst inst;
  inst.op = ir::Op::load;
  inst.type = Type{widened(memory.element), static_cast<uint8_t>(lanes)};
  inst.args = std::move(args);
  inst.object = memory_;
  inst.where = where;
  return Value(b.append(std::move(inst)));
}

Value Array::load(Operand index, uint32_t lanes, Where where) const {
  return load_at(index, lanes, nullptr, where);
}
Value Array::load_if(Operand predicate, Operand index, uint32_t lanes, Where where) const {
  return load_at(index, lanes, &predicate, where);
}
void Array::store(Operand index, Operand value, Where where) const {
  store_at(memory_, index, value, nullptr, where);
}
void Array::store_if(Operand predicate, Operand index, Operand value, Where where) const {
  store_at(memory_, index, value, &predicate, where);
}

namespace {

ir::Inst words_inst(ir::Op op, uint32_t memory, uint32_t lanes, uint32_t alignment,
                    const ir::Location& where) {
  check_lanes(lanes, where);
  if (memory_of(memory).space != ir::Space::buffer)
    builder().fail(where, "words are loaded from and stored to buffers only");
  if (alignment != 1 && alignment != 2 && alignment != 4)
    builder().fail(where, fmt::format("alignment is 1, 2 or 4 words, not {}", alignment));
  ir::Inst inst;
  inst.op = op;
  inst.object = memory;
  inst.bits = alignment;
  inst.where = where;
  return inst;
}

}  // namespace

Value Array::load_words(Operand word_index, uint32_t lanes, uint32_t alignment, Where where) const {
  ir::Inst inst = words_inst(ir::Op::load_words, memory_, lanes, alignment, where);
  inst.type = Type{u32, static_cast<uint8_t>(lanes)};
  inst.args = {checked_index(word_index).id()};
  return Value(builder().append(std::move(inst)));
}

Value Array::load_words_if(Operand predicate, Operand word_index, uint32_t lanes,
                           uint32_t alignment, Where where) const {
  ir::Inst inst = words_inst(ir::Op::load_words, memory_, lanes, alignment, where);
  inst.type = Type{u32, static_cast<uint8_t>(lanes)};
  inst.args = {checked_index(word_index).id(), predicate.as(b1).id()};
  return Value(builder().append(std::move(inst)));
}

void Array::store_words(Operand word_index, Operand value, uint32_t alignment, Where where) const {
  const Value stored = value.is_literal() ? value.as(u32) : value.value();
  if (stored.element() != u32) builder().fail(where, "store_words takes u32 words");
  ir::Inst inst = words_inst(ir::Op::store_words, memory_, stored.type().lanes, alignment, where);
  if (memory_of(memory_).access == ir::Access::read)
    builder().fail(where, "the buffer is read-only");
  inst.args = {checked_index(word_index).id(), stored.id()};
  builder().append(std::move(inst));
}

Value Array::atomic(AtomicOp op, Operand index, Operand value, Where where) const {
  Builder& b = builder();
  ir::Memory& memory = b.kernel().memories[memory_];
  const DType type = memory.element;
  const bool known = type == i32 || type == u32 ||
                     (type == f32 && (op == AtomicOp::add || op == AtomicOp::exchange));
  if (!known)
    b.fail(where,
           fmt::format(
               "atomic {} on {}: i32 and u32 support all operations, f32 only add and exchange",
               ir::atomic_op_name(op), dtype_name(type)));
  if (memory.space == ir::Space::local)
    b.fail(where, "atomics need a buffer or a shared array, not a private one");
  if (memory.space == ir::Space::buffer && memory.access != ir::Access::read_write)
    b.fail(where, fmt::format("buffer {} must be inout for atomics", memory.name));
  memory.atomic = true;
  ir::Inst inst;
  inst.op = ir::Op::atomic;
  inst.type = Type{type, 1};
  inst.args = {checked_index(index).id(), value.as(type).id()};
  inst.object = memory_;
  inst.bits = static_cast<uint64_t>(op);
  inst.where = where;
  return Value(b.append(std::move(inst)));
}

Value Array::atomic_add(Operand index, Operand value, Where where) const {
  return atomic(AtomicOp::add, index, value, where);
}

Value Array::compare_exchange(Operand index, Operand expected, Operand desired, Where where) const {
  const DType type = element();
  const Value wanted = expected.as(type);
  const Value old = atomic(AtomicOp::compare_exchange, index, desired, where);
  builder().amend_last([&](ir::Inst& inst) { inst.args.push_back(wanted.id()); });
  return old;
}

namespace {

uint32_t add_buffer(const std::string& name, DType type, ir::Access access, bool constant,
                    const Where& where) {
  ir::Memory memory;
  memory.name = name;
  memory.element = type;
  memory.access = access;
  memory.constant = constant;
  return add_memory(std::move(memory), where);
}

uint32_t add_array(const std::string& name, DType type, uint64_t length, ir::Space space,
                   const Where& where) {
  ir::Memory memory;
  memory.name = name;
  memory.element = type;
  memory.space = space;
  memory.length = length;
  memory.access = ir::Access::read_write;
  return add_memory(std::move(memory), where);
}

}  // namespace

In in(const std::string& name, DType type, Where where) {
  return In(add_buffer(name, type, ir::Access::read, false, where));
}
In weights(const std::string& name, DType type, Where where) {
  return In(add_buffer(name, type, ir::Access::read, true, where));
}
Array out(const std::string& name, DType type, Where where) {
  return Array(add_buffer(name, type, ir::Access::write, false, where));
}
Array inout(const std::string& name, DType type, Where where) {
  return Array(add_buffer(name, type, ir::Access::read_write, false, where));
}
Array shared(DType type, uint64_t length, const std::string& name, Where where) {
  return Array(add_array(name, type, length, ir::Space::shared, where));
}
Array local(DType type, uint64_t length, const std::string& name, Where where) {
  return Array(add_array(name, type, length, ir::Space::local, where));
}

Value param(const std::string& name, DType type, Where where) {
  Builder& b = builder();
  if (type != u32 && type != i32 && type != f32)
    b.fail(where, fmt::format("parameter {} is {}; a parameter is u32, i32 or f32", name,
                              dtype_name(type)));
  if (b.kernel().params.size() >= ir::kMaxParams)
    b.fail(where, fmt::format("parameter {} exceeds the limit of {} parameters per kernel", name,
                              ir::kMaxParams));
  b.kernel().params.push_back({name, type});
  ir::Inst inst;
  inst.op = ir::Op::param;
  inst.type = Type{type, 1};
  inst.object = static_cast<uint32_t>(b.kernel().params.size() - 1);
  inst.where = where;
  return Value(b.append(std::move(inst)));
}

}  // namespace prism::dsl
