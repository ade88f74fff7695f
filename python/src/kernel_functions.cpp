// The functions of the kernel language as methods of the kernel that is being written.
#include <nanobind/stl/string.h>

#include "kernel_handles.h"

namespace prism::python {
namespace {

void bind_arguments(nb::class_<KernelHandle>& type) {
  const auto buffer = [&](const char* name, auto function, const char* doc) {
    type.def(
        name,
        [function](const KernelHandle& k, const std::string& argument,
                   nb::handle dtype) -> dsl::Array {
          k.check_open();
          return function(argument, kernel_type(dtype), here());
        },
        nb::arg("name"), nb::arg("dtype"), doc);
  };
  buffer(
      "in_", [](const std::string& n, DType t, Where w) { return dsl::in(n, t, w); },
      "A buffer that the kernel reads.");
  buffer(
      "weights", [](const std::string& n, DType t, Where w) { return dsl::weights(n, t, w); },
      "A buffer that never changes.");
  buffer(
      "out", [](const std::string& n, DType t, Where w) { return dsl::out(n, t, w); },
      "A buffer that the kernel writes.");
  buffer(
      "inout", [](const std::string& n, DType t, Where w) { return dsl::inout(n, t, w); },
      "A buffer that it reads and writes.");
  const auto array = [&](const char* name, auto function, const char* otherwise, const char* doc) {
    type.def(
        name,
        [function](const KernelHandle& k, nb::handle dtype, uint64_t length,
                   const std::string& label) {
          k.check_open();
          return function(kernel_type(dtype), length, label, here());
        },
        nb::arg("dtype"), nb::arg("length"), nb::arg("name") = otherwise, doc);
  };
  array(
      "shared",
      [](DType t, uint64_t n, const std::string& l, Where w) { return dsl::shared(t, n, l, w); },
      "tile", "An array of the group.");
  array(
      "local",
      [](DType t, uint64_t n, const std::string& l, Where w) { return dsl::local(t, n, l, w); },
      "own", "An array of the lane.");
  type.def(
      "param",
      [](const KernelHandle& k, const std::string& name, nb::handle dtype) {
        k.check_open();
        return dsl::param(name, kernel_type(dtype), here());
      },
      nb::arg("name"), nb::arg("dtype"), "A parameter of 32 bits: u32, i32 or f32.");
  type.def(
      "var",
      [](const KernelHandle& k, nb::handle dtype, nb::handle initial, const std::string& name) {
        k.check_open();
        return VarHandle{
            std::make_shared<dsl::Var>(kernel_vector_type(dtype), operand_of(initial), name)};
      },
      nb::arg("dtype"), nb::arg("initial"), nb::arg("name") = "v",
      "A variable; a vector with \"f32x4\" and the like.");
  type.def(
      "constant",
      [](const KernelHandle& k, nb::handle dtype, nb::handle value) {
        k.check_open();
        return operand_of(value).as(kernel_vector_type(dtype));
      },
      nb::arg("dtype"), nb::arg("value"), "A number of this type.");
  type.def(
      "constant_bits",
      [](const KernelHandle& k, nb::handle dtype, uint64_t bits) {
        k.check_open();
        return dsl::constant_bits(kernel_type(dtype), bits);
      },
      nb::arg("dtype"), nb::arg("bits"), "The number with these bits.");
  type.def(
      "require_subgroup_size",
      [](const KernelHandle& k, uint32_t size) {
        k.check_open();
        dsl::require_subgroup_size(size, here());
      },
      nb::arg("size"), "The subgroup size that the kernel needs: 8, 16, 32 or 64.");
}

void bind_control(nb::class_<KernelHandle>& type) {
  type.def(
      "if_",
      [](const KernelHandle& k, nb::handle condition) {
        k.check_open();
        const Operand held = operand_of(condition);
        const Where where = here();
        return BlockHandle([held, where] { return dsl::begin_if(held, where); });
      },
      nb::arg("condition"), "with k.if_(condition): ...");
  type.def(
      "else_",
      [](const KernelHandle& k) {
        k.check_open();
        const Where where = here();
        return BlockHandle([where] { return dsl::begin_else(where); });
      },
      "with k.else_(): ... directly after the block of an if_.");
  type.def(
      "for_",
      [](const KernelHandle& k, nb::handle start, nb::handle end, nb::handle step, bool unroll) {
        k.check_open();
        const bool has_end = !end.is_none();
        const Operand first = has_end ? operand_of(start) : Operand(0),
                      last = operand_of(has_end ? end : start), by = operand_of(step);
        const Where where = here();
        return BlockHandle([=] { return dsl::begin_for(first, last, by, unroll, where); });
      },
      nb::arg("start"), nb::arg("end") = nb::none(), nb::arg("step") = 1, nb::arg("unroll") = false,
      "with k.for_(start, end, step) as i: ...; for_(end) counts from 0.");
  type.def(
      "unrolled_for",
      [](const KernelHandle& k, uint32_t end) {
        k.check_open();
        const Where where = here();
        return BlockHandle(
            [=] { return dsl::begin_for(Operand(0), Operand(end), Operand(1), true, where); });
      },
      nb::arg("end"), "with k.unrolled_for(end) as i: ...");
  type.def(
      "while_",
      [](const KernelHandle& k, const nb::callable& condition) {
        k.check_open();
        const Where where = here();
        return BlockHandle([=] {
          return dsl::begin_while([&] { return operand_of(condition()).value(); }, where);
        });
      },
      nb::arg("condition"),
      nb::sig("def while_(self, condition: Callable[[], object]) -> KernelBlock"),
      "with k.while_(lambda: v < 10): ... The condition is written once and computed before each "
      "turn.");
  using Statement = void (*)(Where);
  const std::tuple<const char*, Statement, const char*> statements[] = {
      {"break_", &dsl::break_, "Leaves the innermost loop."},
      {"barrier", &dsl::barrier, "Waits for all lanes of the group."},
      {"device_fence", &dsl::device_fence, "Earlier stores become visible to other groups."},
      {"wait_previous", &dsl::wait_previous, "Waits for what the previous launch wrote."},
      {"launch_next", &dsl::launch_next, "The next launch may start."},
      {"async_commit", &dsl::async_commit, "Ends a group of asynchronous copies."}};
  for (const auto& [name, function, doc] : statements)
    type.def(
        name,
        [function = function](const KernelHandle& k) {
          k.check_open();
          function(here());
        },
        doc);
  type.def(
      "comment",
      [](const KernelHandle& k, const std::string& text) {
        k.check_open();
        dsl::comment(text, here());
      },
      nb::arg("text"), "A comment in the printed text.");
}

void bind_positions(nb::class_<KernelHandle>& type) {
  const auto axis = [&](const char* name, Value (*function)(uint32_t), const char* doc) {
    type.def(
        name,
        [function](const KernelHandle& k, uint32_t which) {
          k.check_open();
          return function(which);
        },
        nb::arg("axis") = 0, doc);
  };
  axis("group_id", &dsl::group_id, "The group's place in the grid.");
  axis("group_count", &dsl::group_count, "The number of groups.");
  using Place = Value (*)();
  const std::tuple<const char*, Place, const char*> places[] = {
      {"local_id", &dsl::local_id, "The lane's place in its group."},
      {"global_id", &dsl::global_id, "group_id() * lanes() + local_id()."},
      {"lanes", &dsl::group_size, "The number of lanes of a group, as a value."},
      {"subgroup_size", &dsl::subgroup_size, "The number of lanes of a subgroup."},
      {"subgroup_id", &dsl::subgroup_id, "The subgroup's place in its group."},
      {"subgroup_lane", &dsl::subgroup_lane, "The lane's place in its subgroup."}};
  for (const auto& [name, function, doc] : places)
    type.def(
        name,
        [function = function](const KernelHandle& k) {
          k.check_open();
          return function();
        },
        doc);
}

void bind_math(nb::class_<KernelHandle>& type) {
  using One = Value (*)(Operand);
  const std::tuple<const char*, One, const char*> one[] = {
      {"abs", &dsl::abs, "The absolute value."},
      {"floor", &dsl::floor, "The largest integer not above x."},
      {"ceil", &dsl::ceil, "The smallest integer not below x."},
      {"trunc", &dsl::trunc, "x without its fraction."},
      {"round", &dsl::round_even, "The nearest integer; halves to even."},
      {"round_even", &dsl::round_even, "The nearest integer; halves to even."},
      {"sqrt", &dsl::sqrt, "The square root."},
      {"rsqrt", &dsl::rsqrt, "1 / sqrt(x)."},
      {"exp", &dsl::exp, "e to the power of x."},
      {"exp2", &dsl::exp2, "2 to the power of x."},
      {"log", &dsl::log, "The natural logarithm."},
      {"log2", &dsl::log2, "The logarithm to base 2."},
      {"sin", &dsl::sin, "The sine."},
      {"cos", &dsl::cos, "The cosine."},
      {"tanh", &dsl::tanh, "The hyperbolic tangent."},
      {"square", &dsl::square, "x * x."},
      {"is_nan", &dsl::is_nan, "Whether an f32 is NaN, by its bits."},
      {"popcount", &dsl::popcount, "The number of set bits."},
      {"count_leading_zeros", &dsl::count_leading_zeros,
       "The number of zero bits before the first set one."},
      {"pack_f16", &dsl::pack_f16, "Two f32 as the halves of a u32."},
      {"unpack_f16", &dsl::unpack_f16, "The halves of a u32 as two f32."},
      {"pack_8", &dsl::pack_8, "Four integers as the bytes of a u32."},
      {"unpack_i8", &dsl::unpack_i8, "The bytes of a u32 as four i32."},
      {"unpack_u8", &dsl::unpack_u8, "The bytes of a u32 as four u32."}};
  for (const auto& [name, function, doc] : one)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle a) {
          k.check_open();
          return function(operand_of(a));
        },
        nb::arg("x"), doc);
  const std::tuple<const char*, BinaryValue, const char*> two[] = {
      {"min", &dsl::min, "The smaller of both."},
      {"max", &dsl::max, "The larger of both."},
      {"div_trunc", &dsl::div_trunc, "The quotient of integers, rounded to zero."},
      {"rem_trunc", &dsl::rem_trunc, "The remainder of div_trunc, with the sign of a."},
      {"div_floor", &dsl::div_floor, "The quotient of integers, rounded down."},
      {"mod_floor", &dsl::mod_floor, "The remainder of div_floor, with the sign of b."},
      {"mul_high", &dsl::mul_high, "The high half of a product of 32-bit integers."},
      {"div", [](Operand a, Operand b) { return a / b; },
       "The quotient of floats or unsigned integers."},
      {"rem", [](Operand a, Operand b) { return a % b; }, "The remainder of unsigned integers."}};
  for (const auto& [name, function, doc] : two)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle a, nb::handle b) {
          k.check_open();
          return function(operand_of(a), operand_of(b));
        },
        nb::arg("a"), nb::arg("b"), doc);
  using Three = Value (*)(Operand, Operand, Operand);
  const std::tuple<const char*, Three, const char*> three[] = {
      {"fma", &dsl::fma, "a * b + c, rounded once."},
      {"select", &dsl::select, "b where a is true, else c."},
      {"extract_bits", &dsl::extract_bits, "c bits of a, from bit b on."},
      {"dot4_i8", &dsl::dot4_i8, "c plus the products of four signed bytes of a and b."},
      {"dot4_u8", &dsl::dot4_u8, "c plus the products of four unsigned bytes of a and b."}};
  for (const auto& [name, function, doc] : three)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle a, nb::handle b, nb::handle c) {
          k.check_open();
          return function(operand_of(a), operand_of(b), operand_of(c));
        },
        nb::arg("a"), nb::arg("b"), nb::arg("c"), doc);
  type.def(
      "insert_bits",
      [](const KernelHandle& k, nb::handle base, nb::handle insert, nb::handle offset,
         nb::handle count) {
        k.check_open();
        return dsl::insert_bits(operand_of(base), operand_of(insert), operand_of(offset),
                                operand_of(count));
      },
      nb::arg("base"), nb::arg("insert"), nb::arg("offset"), nb::arg("count"),
      "base with its bits from offset on replaced by the low bits of insert.");
  type.def(
      "cast",
      [](const KernelHandle& k, nb::handle dtype, nb::handle a) {
        k.check_open();
        return dsl::cast(kernel_type(dtype), operand_of(a));
      },
      nb::arg("dtype"), nb::arg("x"), "The number as another type; floats saturate to integers.");
  type.def(
      "bitcast",
      [](const KernelHandle& k, nb::handle dtype, nb::handle a) {
        k.check_open();
        return dsl::bitcast(kernel_vector_type(dtype), operand_of(a));
      },
      nb::arg("dtype"), nb::arg("x"), "The same bits as another type, for example \"u32x2\".");
  type.def(
      "splat",
      [](const KernelHandle& k, nb::handle a, uint32_t lanes) {
        k.check_open();
        return dsl::splat(operand_of(a), lanes);
      },
      nb::arg("x"), nb::arg("lanes"), "A vector of equal lanes.");
  type.def(
      "vec",
      [](const KernelHandle& k, nb::args lanes) {
        k.check_open();
        if (lanes.size() == 2) return dsl::vec(operand_of(lanes[0]), operand_of(lanes[1]));
        if (lanes.size() != 4) throw nb::value_error("vec: a vector has 2 or 4 lanes");
        return dsl::vec(operand_of(lanes[0]), operand_of(lanes[1]), operand_of(lanes[2]),
                        operand_of(lanes[3]));
      },
      "A vector of two or four values.");
}

void bind_lanes(nb::class_<KernelHandle>& type) {
  using Reduce = Value (*)(Operand, Where);
  const std::pair<const char*, Reduce> all[] = {{"group_sum", &dsl::group_sum},
                                                {"group_max", &dsl::group_max},
                                                {"subgroup_sum", &dsl::subgroup_sum},
                                                {"subgroup_max", &dsl::subgroup_max}};
  for (const auto& [name, function] : all)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle a) {
          k.check_open();
          return function(operand_of(a), here());
        },
        nb::arg("x"), "The same in every lane.");
  using ReduceBy = Value (*)(ir::ReduceOp, Operand, Where);
  const std::pair<const char*, ReduceBy> by[] = {{"group_reduce", &dsl::group_reduce},
                                                 {"subgroup_reduce", &dsl::subgroup_reduce}};
  for (const auto& [name, function] : by)
    type.def(
        name,
        [function = function](const KernelHandle& k, const std::string& op, nb::handle a) {
          k.check_open();
          return function(reduce_op(op), operand_of(a), here());
        },
        nb::arg("op"), nb::arg("x"),
        "add, min, max, bit_and, bit_or or bit_xor of all lanes; the same in every lane.");
  type.def(
      "subgroup_scan",
      [](const KernelHandle& k, const std::string& op, nb::handle a, bool exclusive) {
        k.check_open();
        return dsl::subgroup_scan(reduce_op(op), operand_of(a), exclusive, here());
      },
      nb::arg("op"), nb::arg("x"), nb::arg("exclusive") = false,
      "The reduction over the lanes up to this one, or before it.");
  type.def(
      "subgroup_shuffle",
      [](const KernelHandle& k, nb::handle a, nb::handle lane) {
        k.check_open();
        return dsl::subgroup_shuffle(operand_of(a), operand_of(lane), here());
      },
      nb::arg("x"), nb::arg("lane"), "The value of another lane of the subgroup.");
  type.def(
      "subgroup_shuffle_xor",
      [](const KernelHandle& k, nb::handle a, uint32_t mask) {
        k.check_open();
        return dsl::subgroup_shuffle_xor(operand_of(a), mask, here());
      },
      nb::arg("x"), nb::arg("mask"), "The value of the lane whose number differs by the mask.");
}

}  // namespace

void bind_kernel_functions(nb::class_<KernelHandle>& type) {
  bind_arguments(type);
  bind_control(type);
  bind_positions(type);
  bind_math(type);
  bind_lanes(type);
  bind_fragment_functions(type);
}

}  // namespace prism::python
