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
        return VarHandle{std::make_shared<dsl::Var>(kernel_type(dtype), operand_of(initial), name)};
      },
      nb::arg("dtype"), nb::arg("initial"), nb::arg("name") = "v", "A variable.");
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
  using Statement = void (*)(Where);
  const std::pair<const char*, Statement> statements[] = {{"break_", &dsl::break_},
                                                          {"barrier", &dsl::barrier},
                                                          {"device_fence", &dsl::device_fence},
                                                          {"wait_previous", &dsl::wait_previous},
                                                          {"launch_next", &dsl::launch_next}};
  for (const auto& [name, function] : statements)
    type.def(name, [function = function](const KernelHandle& k) {
      k.check_open();
      function(here());
    });
  type.def(
      "comment",
      [](const KernelHandle& k, const std::string& text) {
        k.check_open();
        dsl::comment(text, here());
      },
      nb::arg("text"));
}

void bind_positions(nb::class_<KernelHandle>& type) {
  const auto axis = [&](const char* name, Value (*function)(uint32_t)) {
    type.def(
        name,
        [function](const KernelHandle& k, uint32_t which) {
          k.check_open();
          return function(which);
        },
        nb::arg("axis") = 0);
  };
  axis("group_id", &dsl::group_id);
  axis("group_count", &dsl::group_count);
  using Place = Value (*)();
  const std::pair<const char*, Place> places[] = {
      {"local_id", &dsl::local_id},       {"global_id", &dsl::global_id},
      {"lanes", &dsl::group_size},        {"subgroup_size", &dsl::subgroup_size},
      {"subgroup_id", &dsl::subgroup_id}, {"subgroup_lane", &dsl::subgroup_lane}};
  for (const auto& [name, function] : places)
    type.def(name, [function = function](const KernelHandle& k) {
      k.check_open();
      return function();
    });
}

void bind_math(nb::class_<KernelHandle>& type) {
  using One = Value (*)(Operand);
  const std::pair<const char*, One> one[] = {{"abs", &dsl::abs},
                                             {"floor", &dsl::floor},
                                             {"ceil", &dsl::ceil},
                                             {"trunc", &dsl::trunc},
                                             {"round", &dsl::round_even},
                                             {"sqrt", &dsl::sqrt},
                                             {"rsqrt", &dsl::rsqrt},
                                             {"exp", &dsl::exp},
                                             {"exp2", &dsl::exp2},
                                             {"log", &dsl::log},
                                             {"log2", &dsl::log2},
                                             {"sin", &dsl::sin},
                                             {"cos", &dsl::cos},
                                             {"tanh", &dsl::tanh},
                                             {"square", &dsl::square},
                                             {"is_nan", &dsl::is_nan},
                                             {"popcount", &dsl::popcount},
                                             {"count_leading_zeros", &dsl::count_leading_zeros},
                                             {"pack_f16", &dsl::pack_f16},
                                             {"unpack_f16", &dsl::unpack_f16},
                                             {"pack_8", &dsl::pack_8},
                                             {"unpack_i8", &dsl::unpack_i8},
                                             {"unpack_u8", &dsl::unpack_u8}};
  for (const auto& [name, function] : one)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle a) {
          k.check_open();
          return function(operand_of(a));
        },
        nb::arg("x"));
  const std::pair<const char*, BinaryValue> two[] = {
      {"min", &dsl::min},
      {"max", &dsl::max},
      {"div_trunc", &dsl::div_trunc},
      {"rem_trunc", &dsl::rem_trunc},
      {"div_floor", &dsl::div_floor},
      {"mod_floor", &dsl::mod_floor},
      {"mul_high", &dsl::mul_high},
      {"div", [](Operand a, Operand b) { return a / b; }},
      {"rem", [](Operand a, Operand b) { return a % b; }}};
  for (const auto& [name, function] : two)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle a, nb::handle b) {
          k.check_open();
          return function(operand_of(a), operand_of(b));
        },
        nb::arg("a"), nb::arg("b"));
  using Three = Value (*)(Operand, Operand, Operand);
  const std::pair<const char*, Three> three[] = {{"fma", &dsl::fma},
                                                 {"select", &dsl::select},
                                                 {"extract_bits", &dsl::extract_bits},
                                                 {"dot4_i8", &dsl::dot4_i8},
                                                 {"dot4_u8", &dsl::dot4_u8}};
  for (const auto& [name, function] : three)
    type.def(
        name,
        [function = function](const KernelHandle& k, nb::handle a, nb::handle b, nb::handle c) {
          k.check_open();
          return function(operand_of(a), operand_of(b), operand_of(c));
        },
        nb::arg("a"), nb::arg("b"), nb::arg("c"));
  const auto converted = [&](const char* name, auto function) {
    type.def(
        name,
        [function](const KernelHandle& k, nb::handle dtype, nb::handle a) {
          k.check_open();
          return function(kernel_type(dtype), operand_of(a));
        },
        nb::arg("dtype"), nb::arg("x"));
  };
  converted("cast", [](DType t, Operand a) { return dsl::cast(t, a); });
  converted("bitcast", [](DType t, Operand a) { return dsl::bitcast(t, a); });
  type.def("vec", [](const KernelHandle& k, nb::args lanes) {
    k.check_open();
    if (lanes.size() == 2) return dsl::vec(operand_of(lanes[0]), operand_of(lanes[1]));
    if (lanes.size() != 4) throw nb::value_error("vec: a vector has 2 or 4 lanes");
    return dsl::vec(operand_of(lanes[0]), operand_of(lanes[1]), operand_of(lanes[2]),
                    operand_of(lanes[3]));
  });
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
  type.def(
      "subgroup_shuffle",
      [](const KernelHandle& k, nb::handle a, nb::handle lane) {
        k.check_open();
        return dsl::subgroup_shuffle(operand_of(a), operand_of(lane), here());
      },
      nb::arg("x"), nb::arg("lane"));
  type.def(
      "subgroup_shuffle_xor",
      [](const KernelHandle& k, nb::handle a, uint32_t mask) {
        k.check_open();
        return dsl::subgroup_shuffle_xor(operand_of(a), mask, here());
      },
      nb::arg("x"), nb::arg("mask"));
}

}  // namespace

void bind_kernel_functions(nb::class_<KernelHandle>& type) {
  bind_arguments(type);
  bind_control(type);
  bind_positions(type);
  bind_math(type);
  bind_lanes(type);
}

}  // namespace prism::python
