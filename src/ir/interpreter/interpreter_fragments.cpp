// Matrix fragment steps: each subgroup's matrix is a row-major array of 32-bit words in the frame.
//
// f16 and bf16 elements are kept as the f32 of the same value, 8-bit integers as i32.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ir/interpreter/interpreter_cells.h"
#include "ir/interpreter/interpreter_ops.h"

#define PRISM_OPS "ir/interpreter/interpreter_fragments.inc"
#include "ir/interpreter/interpreter_isa.h"

namespace prism::ir::vm {
namespace {

uint32_t subgroup_count(const Frame& f) { return f.lanes / f.subgroup; }

const Fragment& fragment_of(const Frame& f, uint32_t index) {
  return f.program->kernel.fragments[index];
}

uint32_t* matrix(Frame& f, uint32_t fragment, uint32_t subgroup) {
  const Fragment& shape = fragment_of(f, fragment);
  return f.fragments[fragment].data() + size_t{subgroup} * shape.rows() * shape.columns();
}

// Rounds a word to a value the operand type can represent.
uint32_t rounded(DType element, uint32_t word) {
  const float value = std::bit_cast<float>(word);
  switch (element) {
    case DType::f16:
      return std::bit_cast<uint32_t>(round_half(value));
    case DType::bf16:
      return std::bit_cast<uint32_t>(brain_value(brain_bits(value)));
    case DType::i8:
      return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(word)));
    case DType::u8:
      return word & 0xffu;
    default:
      return word;
  }
}

// The value of the 16-bit float in the low half of a word.
uint32_t widened(DType element, uint32_t bits) {
  bits &= 0xffffu;
  return std::bit_cast<uint32_t>(element == DType::f16 ? half_value(bits) : brain_value(bits));
}

const Step* fill_step(const Step* s, Frame& f) {
  const Fragment& shape = fragment_of(f, s->object);
  const uint32_t* value = f.at<uint32_t>(s->args[0]);
  for (uint32_t g = 0; g < subgroup_count(f); ++g)
    std::fill_n(matrix(f, s->object, g), shape.rows() * shape.columns(),
                rounded(shape.element, value[g * f.subgroup]));
  return s + 1;
}

// args: index, stride; both from the subgroup's first lane. bits: 1 if column-major.
const Step* move_step(const Step* s, Frame& f) {
  const bool loads = s->inst->op == Op::fragment_load;
  const Fragment& shape = fragment_of(f, s->object);
  const Memory& memory = f.program->kernel.memories[s->object2];
  const MemoryView& view = f.memories[s->object2];
  const uint32_t rows = shape.rows(), columns = shape.columns();
  for (uint32_t g = 0; g < subgroup_count(f); ++g) {
    const uint32_t lane = g * f.subgroup;
    const uint64_t index = f.at<uint32_t>(s->args[0])[lane],
                   stride = f.at<uint32_t>(s->args[1])[lane];
    const uint64_t row_step = s->bits ? 1 : stride, column_step = s->bits ? stride : 1;
    const uint64_t last = index + (rows - 1) * row_step + (columns - 1) * column_step;
    if (last >= view.length)
      fail(f, *s,
           fmt::format("{} of subgroup {} (lane {}) reaches index {} of {}, which has {} elements",
                       op_name(s->inst->op), g, lane, last, memory.name, view.length));
    uint32_t* words = matrix(f, s->object, g);
    if (loads)
      PRISM_DISPATCH(load_matrix(words, view.data, memory.element, index, rows, columns, row_step,
                                 column_step));
    else
      PRISM_DISPATCH(store_matrix(words, view.data, memory.element, index, rows, columns, row_step,
                                  column_step));
  }
  return s + 1;
}

const Step* multiply_step(const Step* s, Frame& f) {
  const Fragment& c = fragment_of(f, s->object);
  const uint32_t a = s->inst->objects[0], b = s->inst->objects[1];
  for (uint32_t g = 0; g < subgroup_count(f); ++g) {
    if (c.element == DType::i32)
      PRISM_DISPATCH(multiply<uint32_t>(matrix(f, s->object, g), matrix(f, a, g), matrix(f, b, g),
                                        c.m, c.n, c.k));
    else
      PRISM_DISPATCH(multiply<float>(reinterpret_cast<float*>(matrix(f, s->object, g)),
                                     reinterpret_cast<const float*>(matrix(f, a, g)),
                                     reinterpret_cast<const float*>(matrix(f, b, g)), c.m, c.n,
                                     c.k));
  }
  return s + 1;
}

template <class T>
void reduce_rows(ReduceOp op, T* to, const T* from, uint32_t rows, uint32_t columns) {
  for (uint32_t r = 0; r < rows; ++r) {
    T result = from[r * columns];
    for (uint32_t c = 1; c < columns; ++c) {
      const T x = from[r * columns + c];
      if (op == ReduceOp::min)
        result = x < result ? x : result;
      else if (op == ReduceOp::max)
        result = result < x ? x : result;
      else
        result += x;
    }
    std::fill_n(to + r * columns, columns, result);
  }
}

const Step* row_reduce_step(const Step* s, Frame& f) {
  const Fragment& shape = fragment_of(f, s->object);
  const ReduceOp op = static_cast<ReduceOp>(s->bits);
  for (uint32_t g = 0; g < subgroup_count(f); ++g) {
    uint32_t* to = matrix(f, s->object, g);
    const uint32_t* from = matrix(f, s->inst->objects[0], g);
    if (shape.element == DType::f32)
      reduce_rows(op, reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from),
                  shape.rows(), shape.columns());
    else if (op == ReduceOp::add)  // unsigned, so that overflow wraps
      reduce_rows(op, to, from, shape.rows(), shape.columns());
    else
      reduce_rows(op, reinterpret_cast<int32_t*>(to), reinterpret_cast<const int32_t*>(from),
                  shape.rows(), shape.columns());
  }
  return s + 1;
}

const Step* convert_step(const Step* s, Frame& f) {
  const Fragment& shape = fragment_of(f, s->object);
  const size_t count = size_t{shape.rows()} * shape.columns() * subgroup_count(f);
  const std::vector<uint32_t>& from = f.fragments[s->inst->objects[0]];
  for (size_t i = 0; i < count; ++i) f.fragments[s->object][i] = rounded(shape.element, from[i]);
  return s + 1;
}

// The elements that one lane makes at once: fragment_make gives pairs along a row.
uint32_t elements_of_lane(const Step& s) { return s.inst->op == Op::fragment_make ? 2 : 1; }

// A map runs its block in rounds; each lane takes one element (of a made operand: one pair) per
// round. args: round (uniform), mask, row, column, sources...; sets the mask to the lanes that have
// an element, jumps to `jump` when no element is left.
const Step* map_begin_step(const Step* s, Frame& f) {
  const Fragment& shape = fragment_of(f, s->object);
  const uint32_t each = elements_of_lane(*s);
  const uint32_t columns = shape.columns() / each, size = shape.rows() * columns;
  const uint32_t round = *f.at<uint32_t>(s->args[0]);
  if (round * f.subgroup >= size) return f.steps + s->jump;
  uint32_t* mask = f.at<uint32_t>(s->args[1]);
  uint32_t* row = f.at<uint32_t>(s->args[2]);
  uint32_t* column = f.at<uint32_t>(s->args[3]);
  uint32_t count = 0, end = 0;
  std::fill_n(mask, f.padded, 0u);
  for (uint32_t i = 0; i < f.lanes; ++i) {
    const uint32_t element = round * f.subgroup + i % f.subgroup;
    if (element >= size) continue;
    mask[i] = 1;
    ++count;
    end = i + 1;
    row[i] = element / columns;
    column[i] = element % columns * each;
    for (uint32_t k = 4; k < s->arg_count; ++k)
      f.at<uint32_t>(s->args[k])[i] = matrix(f, s->inst->objects[k - 4], i / f.subgroup)[element];
  }
  mask[f.padded] = count;
  mask[f.padded + 1] = end;
  return s + 1;
}

// args: round, value. Stores the results and jumps back to `jump`. The target may be one of the
// sources: each element is read and written in the same round.
const Step* map_end_step(const Step* s, Frame& f) {
  const Fragment& shape = fragment_of(f, s->object);
  const uint32_t each = elements_of_lane(*s), size = shape.rows() * shape.columns() / each;
  uint32_t& round = *f.at<uint32_t>(s->args[0]);
  const uint32_t* value = f.at<uint32_t>(s->args[1]);
  for (uint32_t i = 0; i < f.lanes; ++i) {
    const uint32_t element = round * f.subgroup + i % f.subgroup;
    if (element >= size) continue;
    uint32_t* to = matrix(f, s->object, i / f.subgroup) + size_t{element} * each;
    if (each == 1)
      *to = value[i];
    else
      for (uint32_t half = 0; half < 2; ++half)
        to[half] = widened(shape.element, value[i] >> (16 * half));
  }
  ++round;
  return f.steps + s->jump;
}

}  // namespace

Run find_fragment(Op op) {
  switch (op) {
    case Op::fragment_fill:
      return fill_step;
    case Op::fragment_load:
    case Op::fragment_store:
      return move_step;
    case Op::fragment_multiply:
      return multiply_step;
    case Op::fragment_row_reduce:
      return row_reduce_step;
    case Op::fragment_convert:
      return convert_step;
    default:
      return nullptr;
  }
}
Run find_map_begin() { return map_begin_step; }
Run find_map_end() { return map_end_step; }

}  // namespace prism::ir::vm
