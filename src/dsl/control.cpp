// Kernels, grid positions, control flow, asynchronous copies and matrix fragments.
#include <fmt/format.h>

#include "dsl/builder.h"
#include "dsl/open_block.h"
#include "ir/verify.h"
#include "prism/kernel.h"

namespace prism::dsl {
namespace {

using ir::Op;

Builder& builder() { return Builder::current(); }

Value leaf(Op op, uint32_t object = ir::kNone) {
  ir::Inst inst;
  inst.op = op;
  inst.type = Type{u32, 1};
  inst.object = object;
  return Value(builder().append(std::move(inst)));
}

void statement(Op op, const ir::Location& where, uint64_t bits = 0) {
  ir::Inst inst;
  inst.op = op;
  inst.bits = bits;
  inst.where = where;
  builder().append(std::move(inst));
}

ir::Block collect(const std::function<void()>& body) {
  builder().begin_block();
  try {
    body();
  } catch (...) {
    builder().end_block();
    throw;
  }
  return builder().end_block();
}

void yield(Value value) { builder().append(Op::yield, ir::kVoid, {value.id()}, {}); }

uint32_t checked_axis(uint32_t axis) {
  if (axis > 2)
    builder().fail(builder().last_location, fmt::format("a grid has axes 0 to 2, not {}", axis));
  return axis;
}

}  // namespace

std::unique_ptr<Builder> begin_kernel(const std::string& name, uint32_t group_size,
                                      const Where& where) {
  ir::Kernel empty;
  empty.name = name;
  empty.group_size = group_size;
  empty.where = where;
  auto b = std::make_unique<Builder>(std::move(empty));
  b->last_location = where;
  if (group_size == 0 || group_size > 1024)
    b->fail(where, fmt::format("a group has 1 to 1024 lanes, not {}", group_size));
  return b;
}

Kernel end_kernel(Builder& b) {
  Kernel built = b.finish();
  ir::verify(built);
  return built;
}

Kernel kernel(const std::string& name, uint32_t group_size, const std::function<void()>& body,
              Where where) {
  const std::unique_ptr<Builder> b = begin_kernel(name, group_size, where);
  body();
  return end_kernel(*b);
}

void require_subgroup_size(uint32_t size, Where where) {
  ir::Kernel& k = builder().kernel();
  if (size < 4 || size > 64 || (size & (size - 1)) != 0 || k.group_size % size != 0)
    builder().fail(where, fmt::format("subgroup size {} in groups of {}: it must be a power of two "
                                      "from 4 to 64 that divides the group",
                                      size, k.group_size));
  k.required_subgroup_size = size;
}

Value group_id(uint32_t axis) { return leaf(Op::group_id, checked_axis(axis)); }
Value group_count(uint32_t axis) { return leaf(Op::group_count, checked_axis(axis)); }
Value local_id() { return leaf(Op::local_id); }
Value group_size() { return constant(u32, builder().kernel().group_size); }
Value global_id() { return group_id(0) * group_size() + local_id(); }
Value subgroup_size() { return leaf(Op::subgroup_size); }
Value subgroup_id() { return leaf(Op::subgroup_id); }
Value subgroup_lane() { return leaf(Op::subgroup_lane); }

void if_(Operand condition, const std::function<void()>& then, Where where) {
  if_(
      condition, then, [] {}, where);
}

void if_(Operand condition, const std::function<void()>& then,
         const std::function<void()>& otherwise, Where where) {
  OpenBlock block = begin_if(condition, where);
  then();
  end_block(std::move(block));
  block = begin_else(where);
  otherwise();
  end_block(std::move(block));
}

OpenBlock begin_if(Operand condition, const Where& where) {
  OpenBlock block;
  block.inst.op = Op::if_;
  block.inst.args = {condition.as(b1).id()};
  block.inst.where = where;
  builder().begin_block();
  return block;
}

OpenBlock begin_else(const Where& where) {
  OpenBlock block;
  const ir::Inst* last = builder().last();
  if (!last || last->op != Op::if_ || !last->blocks[1].body.empty())
    builder().fail(where, "an else must follow the block of an if");
  block.inst = builder().take_last();
  block.inst.blocks.pop_back();
  builder().begin_block();
  return block;
}

void end_block(OpenBlock block) {
  block.inst.blocks.push_back(builder().end_block());
  if (block.index != ir::kNone) block.inst.blocks.back().params = {block.index};
  if (block.inst.op == Op::if_ && block.inst.blocks.size() == 1) block.inst.blocks.emplace_back();
  builder().append(std::move(block.inst));
}

OpenBlock begin_for(Operand start, Operand end, Operand step, bool unroll, const Where& where) {
  Builder& b = builder();
  Type type{u32, 1};
  for (const Operand* bound : {&start, &end, &step})
    if (!bound->is_literal()) type = bound->value().type();
  if (type != Type{u32, 1} && type != Type{i32, 1})
    b.fail(where, fmt::format("for_ counts in u32 or i32, not {}", ir::type_name(type)));
  OpenBlock block;
  ir::Inst& inst = block.inst;
  inst.op = Op::for_;
  inst.args = {start.as(type).id(), end.as(type).id(), step.as(type).id()};
  inst.bits = unroll;
  inst.where = where;
  if (auto known = b.known_constant(inst.args[2]);
      known && (*known == 0 || (type.element == i32 && static_cast<int32_t>(*known) < 0)))
    b.fail(where, "the step of for_ must be above zero");
  block.index = b.new_value(type);
  b.begin_block();
  return block;
}

namespace {

void loop(const Operand& start, const Operand& end, const Operand& step,
          const std::function<void(Value)>& body, bool unroll, const Where& where) {
  OpenBlock block = begin_for(start, end, step, unroll, where);
  body(Value(block.index));
  end_block(std::move(block));
}

}  // namespace

void for_(Operand start, Operand end, Operand step, const std::function<void(Value)>& body,
          Where where) {
  loop(start, end, step, body, false, where);
}

void for_(Operand end, const std::function<void(Value)>& body, Where where) {
  Operand start(0), step(1);
  loop(start, end, step, body, false, where);
}

void unrolled_for(uint32_t end, const std::function<void(Value)>& body, Where where) {
  Operand start(0), last(end), step(1);
  loop(start, last, step, body, true, where);
}

OpenBlock begin_while(const std::function<Value()>& condition, const Where& where) {
  OpenBlock block;
  block.inst.op = Op::while_;
  block.inst.where = where;
  block.inst.blocks.push_back(
      collect([&] { yield(Operand(condition(), where.file, where.line).as(b1)); }));
  builder().begin_block();
  return block;
}

void while_(const std::function<Value()>& condition, const std::function<void()>& body,
            Where where) {
  OpenBlock block = begin_while(condition, where);
  body();
  end_block(std::move(block));
}

void break_(Where where) { statement(Op::break_, where); }
void barrier(Where where) { statement(Op::barrier, where); }
void device_fence(Where where) { statement(Op::device_fence, where); }
void wait_previous(Where where) { statement(Op::wait_previous, where); }
void launch_next(Where where) { statement(Op::launch_next, where); }
void async_commit(Where where) { statement(Op::async_commit, where); }
void async_wait(uint32_t still_under_way, Where where) {
  statement(Op::async_wait, where, still_under_way);
}

void comment(const std::string& text, Where where) {
  ir::Inst inst;
  inst.op = Op::comment;
  inst.text = text;
  inst.where = where;
  builder().append(std::move(inst));
}

Value raw(const std::string& dialect, const std::string& text,
          std::initializer_list<Value> arguments, Type type, const std::function<Value()>& meaning,
          Where where) {
  return raw_with(dialect, text, std::span(arguments.begin(), arguments.size()), type, meaning,
                  where);
}

Value raw_with(const std::string& dialect, const std::string& text,
               std::span<const Value> arguments, Type type, const std::function<Value()>& meaning,
               const Where& where) {
  Var result(type, Operand(0), "raw");
  ir::Inst inst;
  inst.op = Op::raw;
  inst.text = text;
  inst.text2 = dialect;
  inst.object = result.index();
  inst.where = where;
  for (const Value& argument : arguments) inst.args.push_back(argument.id());
  inst.blocks.push_back(collect([&] { result = meaning(); }));
  builder().append(std::move(inst));
  return result;
}

namespace {

void copy_ahead(const Operand* predicate, const Array& to, Operand to_index, const Array& from,
                Operand from_index, uint32_t elements, const Where& where) {
  Builder& b = builder();
  const ir::Memory& target = b.kernel().memories[to.memory()];
  const ir::Memory& source = b.kernel().memories[from.memory()];
  if (target.space != ir::Space::shared || source.space != ir::Space::buffer)
    b.fail(where, "async_copy copies from a buffer to a shared array");
  if (target.element != source.element)
    b.fail(where, fmt::format("async_copy from {} to {}: the element types must be the same",
                              dtype_name(source.element), dtype_name(target.element)));
  const size_t bytes = elements * dtype_bytes(source.element);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    b.fail(where, fmt::format("async_copy moves 4, 8 or 16 bytes, not {}", bytes));
  ir::Inst inst;
  inst.op = Op::async_copy;
  inst.args = {to_index.as(u32).id(), from_index.as(u32).id()};
  if (predicate) inst.args.push_back(predicate->as(b1).id());
  inst.object = to.memory();
  inst.object2 = from.memory();
  inst.bits = elements;
  inst.where = where;
  b.append(std::move(inst));
}

}  // namespace

void async_copy(const Array& to_shared, Operand to_index, const Array& from_buffer,
                Operand from_index, uint32_t elements, Where where) {
  copy_ahead(nullptr, to_shared, to_index, from_buffer, from_index, elements, where);
}

void async_copy_if(Operand predicate, const Array& to_shared, Operand to_index,
                   const Array& from_buffer, Operand from_index, uint32_t elements, Where where) {
  copy_ahead(&predicate, to_shared, to_index, from_buffer, from_index, elements, where);
}

namespace {

const ir::Fragment& fragment_of(uint32_t index) { return builder().kernel().fragments[index]; }

Fragment add_fragment(ir::FragmentRole role, DType type, FragmentSize size, const char* name,
                      const Where& where) {
  Builder& b = builder();
  const bool accumulates = role == ir::FragmentRole::accumulator;
  if (accumulates ? (type != f32 && type != i32) : (type != f16 && type != bf16 && type != i8))
    b.fail(where,
           fmt::format(
               "a fragment {} cannot be {}: operands are f16, bf16 or i8, accumulators f32 or i32",
               name, dtype_name(type)));
  auto& fragments = b.kernel().fragments;
  fragments.push_back(
      {fmt::format("{}{}", name, fragments.size()), role, type, size.m, size.n, size.k});
  return Fragment(static_cast<uint32_t>(fragments.size() - 1));
}

ir::Inst fragment_inst(Op op, uint32_t object, const ir::Location& where) {
  ir::Inst inst;
  inst.op = op;
  inst.object = object;
  inst.where = where;
  return inst;
}

void require_accumulator(uint32_t index, const char* what, const ir::Location& where) {
  if (fragment_of(index).role != ir::FragmentRole::accumulator)
    builder().fail(where, fmt::format("{} needs accumulators", what));
}

void move(Op op, uint32_t fragment, const Array& memory, Operand& index, Operand& stride,
          Layout layout, const ir::Location& where) {
  const ir::Memory& m = builder().kernel().memories[memory.memory()];
  if (m.space == ir::Space::local)
    builder().fail(where, "a fragment is loaded from and stored to buffers and shared arrays");
  const bool loads = op == Op::fragment_load;
  const DType held = fragment_of(fragment).element;
  if (m.element != held && !(!loads && (held == f32 || held == i32) && widened(m.element) == held))
    builder().fail(where, fmt::format("{} has elements of {}, the fragment of {}", m.name,
                                      dtype_name(m.element), dtype_name(held)));
  if (m.space == ir::Space::buffer && m.access == (loads ? ir::Access::write : ir::Access::read))
    builder().fail(where,
                   fmt::format("buffer {} cannot be {}", m.name, loads ? "read" : "written"));
  ir::Inst inst = fragment_inst(op, fragment, where);
  inst.args = {index.as(u32).id(), stride.as(u32).id()};
  inst.object2 = memory.memory();
  inst.bits = layout == Layout::column_major;
  builder().append(std::move(inst));
}

}  // namespace

Fragment fragment_a(DType type, FragmentSize size, Where where) {
  return add_fragment(ir::FragmentRole::a, type, size, "a", where);
}
Fragment fragment_b(DType type, FragmentSize size, Where where) {
  return add_fragment(ir::FragmentRole::b, type, size, "b", where);
}
Fragment accumulator(DType type, FragmentSize size, Where where) {
  return add_fragment(ir::FragmentRole::accumulator, type, size, "acc", where);
}

void Fragment::fill(Operand value, Where where) const {
  ir::Inst inst = fragment_inst(Op::fragment_fill, index_, where);
  inst.args = {value.as(widened(fragment_of(index_).element)).id()};
  builder().append(std::move(inst));
}

void Fragment::load(const Array& memory, Operand index, Operand stride, Layout layout,
                    Where where) const {
  move(Op::fragment_load, index_, memory, index, stride, layout, where);
}

void Fragment::store(const Array& memory, Operand index, Operand stride, Layout layout,
                     Where where) const {
  require_accumulator(index_, "store", where);
  move(Op::fragment_store, index_, memory, index, stride, layout, where);
}

void Fragment::multiply(const Fragment& a, const Fragment& b, Where where) const {
  const ir::Fragment &fc = fragment_of(index_), &fa = fragment_of(a.index()),
                     &fb = fragment_of(b.index());
  const bool roles = fc.role == ir::FragmentRole::accumulator && fa.role == ir::FragmentRole::a &&
                     fb.role == ir::FragmentRole::b;
  const bool shapes =
      fa.m == fc.m && fb.n == fc.n && fa.k == fb.k && fa.m == fb.m && fa.n == fb.n && fc.k == fa.k;
  const bool types = fa.element == fb.element && (fc.element == (fa.element == i8 ? i32 : f32));
  if (!roles || !shapes || !types)
    builder().fail(where,
                   "multiply takes an a and a b fragment of this accumulator's shape: f16 or bf16 "
                   "for f32, i8 for i32");
  ir::Inst inst = fragment_inst(Op::fragment_multiply, index_, where);
  inst.objects = {a.index(), b.index()};
  builder().append(std::move(inst));
}

void Fragment::map(const std::function<Value(Value, Value, Value)>& f, Where where) const {
  map(
      {*this},
      [&](const std::vector<Value>& elements, Value row, Value column) {
        return f(elements[0], row, column);
      },
      where);
}

void Fragment::map(const std::vector<Fragment>& sources,
                   const std::function<Value(const std::vector<Value>&, Value, Value)>& f,
                   Where where) const {
  Builder& b = builder();
  ir::Inst inst = fragment_inst(Op::fragment_map, index_, where);
  require_accumulator(index_, "map", where);
  std::vector<ir::Value> params;
  std::vector<Value> elements;
  for (const Fragment& source : sources) {
    require_accumulator(source.index(), "map", where);
    const ir::Fragment &to = fragment_of(index_), &from = fragment_of(source.index());
    if (from.m != to.m || from.n != to.n) b.fail(where, "map: the fragments have different shapes");
    inst.objects.push_back(source.index());
    params.push_back(b.new_value(Type{from.element, 1}));
    elements.emplace_back(params.back());
  }
  params.push_back(b.new_value(Type{u32, 1}));
  params.push_back(b.new_value(Type{u32, 1}));
  const Value row(params[params.size() - 2]), column(params.back());
  ir::Block block = collect([&] {
    const Operand element(f(elements, row, column), where.file, where.line);
    yield(element.as(fragment_of(index_).element));
  });
  block.params = std::move(params);
  inst.blocks.push_back(std::move(block));
  b.append(std::move(inst));
}

void Fragment::make(const std::function<Value(Value, Value)>& f, Where where) const {
  Builder& b = builder();
  const ir::Fragment& to = fragment_of(index_);
  if (to.role != ir::FragmentRole::a || (to.element != f16 && to.element != bf16))
    b.fail(where, "make fills an a operand of f16 or bf16");
  ir::Inst inst = fragment_inst(Op::fragment_make, index_, where);
  const std::vector<ir::Value> params = {b.new_value(Type{u32, 1}), b.new_value(Type{u32, 1})};
  ir::Block block = collect([&] {
    const Operand pair(f(Value(params[0]), Value(params[1])), where.file, where.line);
    yield(pair.as(u32));
  });
  block.params = params;
  inst.blocks.push_back(std::move(block));
  b.append(std::move(inst));
}

void Fragment::row_reduce(ReduceOp op, const Fragment& source, Where where) const {
  require_accumulator(index_, "row_reduce", where);
  require_accumulator(source.index(), "row_reduce", where);
  const ir::Fragment &to = fragment_of(index_), &from = fragment_of(source.index());
  if (from.m != to.m || from.n != to.n || from.element != to.element)
    builder().fail(where, "row_reduce: the fragments have different shapes or types");
  if (op != ReduceOp::add && op != ReduceOp::min && op != ReduceOp::max)
    builder().fail(where, "row_reduce supports add, min and max");
  ir::Inst inst = fragment_inst(Op::fragment_row_reduce, index_, where);
  inst.objects = {source.index()};
  inst.bits = static_cast<uint64_t>(op);
  builder().append(std::move(inst));
}

void Fragment::convert(const Fragment& accumulator, Where where) const {
  require_accumulator(accumulator.index(), "convert", where);
  const ir::Fragment &to = fragment_of(index_), &from = fragment_of(accumulator.index());
  if (to.role == ir::FragmentRole::accumulator || to.rows() != from.rows() ||
      to.columns() != from.columns() || from.element != f32 ||
      (to.element != f16 && to.element != bf16))
    builder().fail(where,
                   "convert makes an f16 or bf16 operand from an f32 accumulator of the same rows "
                   "and columns");
  ir::Inst inst = fragment_inst(Op::fragment_convert, index_, where);
  inst.objects = {accumulator.index()};
  builder().append(std::move(inst));
}

}  // namespace prism::dsl
