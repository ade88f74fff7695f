// The values, variables and arrays of a kernel: their operators write IR.
#include <algorithm>
#include <deque>

#include <nanobind/stl/string.h>

#include "kernel_handles.h"

namespace prism::python {

// The names of files live as long as the process: IR refers to them.
Where here() {
  static std::deque<std::string> names;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (!frame) return Where("python", 1);
  const nb::object holder = nb::steal(reinterpret_cast<PyObject*>(frame));
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const std::string name = nb::cast<std::string>(code.attr("co_filename"));
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) found = names.insert(names.end(), name);
  return Where(found->c_str(), static_cast<uint32_t>(PyFrame_GetLineNumber(frame)));
}

DType kernel_type(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) {
    const std::string name = nb::cast<std::string>(given);
    if (const auto type = dtype_from_name(name)) return *type;
    if (name == "uint32") return DType::u32;
    if (name == "uint16") return DType::u16;
    if (name == "uint64") return DType::u64;
  }
  const ElementType type = element_type(given);
  if (type.is_block()) throw nb::value_error("kernel: buffers have plain element types");
  return type.plain();
}

ir::Type kernel_vector_type(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) {
    const std::string name = nb::cast<std::string>(given);
    for (const uint8_t lanes : {uint8_t{2}, uint8_t{4}})
      if (name.size() > 2 && name.ends_with("x" + std::to_string(lanes)))
        return {kernel_type(nb::str(name.substr(0, name.size() - 2).c_str())), lanes};
  }
  return {kernel_type(given), 1};
}

namespace {

constexpr const char* kOps[] = {"add", "min", "max", "bit_and", "bit_or", "bit_xor", "exchange"};

template <class Op>
Op op_named(const std::string& name, Op last) {
  std::string known;
  for (uint8_t i = 0; i <= static_cast<uint8_t>(last); ++i) {
    if (name == kOps[i]) return static_cast<Op>(i);
    known += (i ? ", " : "") + std::string(kOps[i]);
  }
  throw nb::value_error(("kernel: no operation '" + name + "'; use " + known).c_str());
}

}  // namespace

ir::ReduceOp reduce_op(const std::string& name) { return op_named(name, ir::ReduceOp::bit_xor); }
ir::AtomicOp atomic_op(const std::string& name) { return op_named(name, ir::AtomicOp::exchange); }

Operand operand_of(nb::handle given) {
  const Where where = here();
  if (nb::isinstance<Value>(given)) return Operand(nb::cast<Value>(given), where.file, where.line);
  if (nb::isinstance<VarHandle>(given))
    return Operand(*nb::cast<VarHandle>(given).variable, where.file, where.line);
  if (PyBool_Check(given.ptr()))
    return Operand(dsl::constant(DType::b1, int64_t{given.ptr() == Py_True}), where.file,
                   where.line);
  if (PyFloat_Check(given.ptr()))
    return Operand(PyFloat_AsDouble(given.ptr()), where.file, where.line);
  if (PyIndex_Check(given.ptr())) {
    const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
    return Operand(nb::cast<int64_t>(number), where.file, where.line);
  }
  throw nb::type_error("kernel: an operand is a value, a variable or a number");
}

namespace {

template <class T>
void bind_operators(nb::class_<T>& type) {
  const auto both = [&](const char* name, const char* reflected, BinaryValue function) {
    type.def(
        name,
        [function](nb::handle a, nb::handle b) { return function(operand_of(a), operand_of(b)); },
        nb::is_operator(), nb::arg("other"));
    if (reflected)
      type.def(
          reflected,
          [function](nb::handle a, nb::handle b) { return function(operand_of(b), operand_of(a)); },
          nb::is_operator(), nb::arg("other"));
  };
  both("__add__", "__radd__", [](Operand a, Operand b) { return a + b; });
  both("__sub__", "__rsub__", [](Operand a, Operand b) { return a - b; });
  both("__mul__", "__rmul__", [](Operand a, Operand b) { return a * b; });
  both("__truediv__", "__rtruediv__", [](Operand a, Operand b) { return a / b; });
  both("__floordiv__", "__rfloordiv__", &dsl::div_floor);
  both("__mod__", "__rmod__", &dsl::mod_floor);
  both("__and__", "__rand__", [](Operand a, Operand b) { return a & b; });
  both("__or__", "__ror__", [](Operand a, Operand b) { return a | b; });
  both("__xor__", "__rxor__", [](Operand a, Operand b) { return a ^ b; });
  both("__lshift__", "__rlshift__", [](Operand a, Operand b) { return a << b; });
  both("__rshift__", "__rrshift__", [](Operand a, Operand b) { return a >> b; });
  both("__eq__", nullptr, [](Operand a, Operand b) { return a == b; });
  both("__ne__", nullptr, [](Operand a, Operand b) { return a != b; });
  both("__lt__", nullptr, [](Operand a, Operand b) { return a < b; });
  both("__le__", nullptr, [](Operand a, Operand b) { return a <= b; });
  both("__gt__", nullptr, [](Operand a, Operand b) { return a > b; });
  both("__ge__", nullptr, [](Operand a, Operand b) { return a >= b; });
  type.def("__neg__", [](nb::handle a) { return -operand_of(a); });
  type.def("__invert__", [](nb::handle a) {
    const Operand given = operand_of(a);
    return given.value().element() == DType::b1 ? !given : ~given;
  });
  type.def("__hash__", [](nb::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; });
  type.def("__bool__", [](const T&) -> bool {
    throw nb::type_error(
        "a value of a kernel has no truth while the kernel is written; use `with k.if_(...)`, & "
        "and |");
  });
}

void bind_values(nb::module_& m) {
  nb::class_<Value> value(m, "KernelValue", "A value of a kernel; immutable.");
  bind_operators(value);
  value.def_prop_ro("type", [](const Value& v) { return ir::type_name(v.type()); });
  value.def(
      "__getitem__", [](const Value& v, uint32_t lane) { return v[lane]; }, nb::arg("lane"),
      "One lane of a vector.");
  nb::class_<VarHandle> var(m, "Var", "A variable of a kernel.");
  bind_operators(var);
  var.def(
      "set", [](VarHandle& v, nb::handle given) { *v.variable = operand_of(given); },
      nb::arg("value"), "Assigns a value.");
  var.def_prop_ro(
      "value", [](const VarHandle& v) { return static_cast<Value>(*v.variable); },
      "Its value at this point.");
  const auto change = [&](const char* name, BinaryValue function) {
    var.def(
        name,
        [function](nb::handle_t<VarHandle> self, nb::handle other) {
          *nb::inst_ptr<VarHandle>(self)->variable =
              Operand(function(operand_of(self), operand_of(other)));
          return nb::borrow(self);
        },
        nb::arg("other"), nb::is_operator());
  };
  change("__iadd__", [](Operand a, Operand b) { return a + b; });
  change("__isub__", [](Operand a, Operand b) { return a - b; });
  change("__imul__", [](Operand a, Operand b) { return a * b; });
  var.def_prop_ro("type", [](const VarHandle& v) { return ir::type_name(v.variable->type()); });
}

void bind_arrays(nb::module_& m) {
  nb::class_<dsl::Array>(m, "KernelArray",
                         "A buffer, a shared array of the group or a private array of a lane.")
      .def(
          "__getitem__",
          [](const dsl::Array& a, nb::handle index) {
            return a.load(operand_of(index), 1, here());
          },
          nb::arg("index"))
      .def(
          "__setitem__",
          [](const dsl::Array& a, nb::handle index, nb::handle value) {
            a.store(operand_of(index), operand_of(value), here());
          },
          nb::arg("index"), nb::arg("value"))
      .def(
          "load",
          [](const dsl::Array& a, nb::handle index, uint32_t lanes) {
            return a.load(operand_of(index), lanes, here());
          },
          nb::arg("index"), nb::arg("lanes") = 1, "Loads consecutive elements as a vector.")
      .def(
          "load_if",
          [](const dsl::Array& a, nb::handle predicate, nb::handle index, uint32_t lanes) {
            return a.load_if(operand_of(predicate), operand_of(index), lanes, here());
          },
          nb::arg("predicate"), nb::arg("index"), nb::arg("lanes") = 1,
          "Zeros where the predicate is false.")
      .def(
          "store_if",
          [](const dsl::Array& a, nb::handle predicate, nb::handle index, nb::handle value) {
            a.store_if(operand_of(predicate), operand_of(index), operand_of(value), here());
          },
          nb::arg("predicate"), nb::arg("index"), nb::arg("value"),
          "Stores where the predicate is true.")
      .def(
          "load_words",
          [](const dsl::Array& a, nb::handle index, uint32_t lanes, uint32_t alignment) {
            return a.load_words(operand_of(index), lanes, alignment, here());
          },
          nb::arg("index"), nb::arg("lanes") = 1, nb::arg("alignment") = 1,
          "Loads 1, 2 or 4 words of 32 bits at a word index of a buffer.")
      .def(
          "load_words_if",
          [](const dsl::Array& a, nb::handle predicate, nb::handle index, uint32_t lanes,
             uint32_t alignment) {
            return a.load_words_if(operand_of(predicate), operand_of(index), lanes, alignment,
                                   here());
          },
          nb::arg("predicate"), nb::arg("index"), nb::arg("lanes") = 1, nb::arg("alignment") = 1,
          "Zeros where the predicate is false.")
      .def(
          "store_words",
          [](const dsl::Array& a, nb::handle index, nb::handle value, uint32_t alignment) {
            a.store_words(operand_of(index), operand_of(value), alignment, here());
          },
          nb::arg("index"), nb::arg("value"), nb::arg("alignment") = 1,
          "Stores 1, 2 or 4 words of 32 bits at a word index of a buffer.")
      .def(
          "atomic_add",
          [](const dsl::Array& a, nb::handle index, nb::handle value) {
            return a.atomic_add(operand_of(index), operand_of(value), here());
          },
          nb::arg("index"), nb::arg("value"), "Adds; returns the old value.")
      .def(
          "atomic",
          [](const dsl::Array& a, const std::string& op, nb::handle index, nb::handle value) {
            return a.atomic(atomic_op(op), operand_of(index), operand_of(value), here());
          },
          nb::arg("op"), nb::arg("index"), nb::arg("value"),
          "add, min, max, bit_and, bit_or, bit_xor or exchange; returns the old value.")
      .def(
          "compare_exchange",
          [](const dsl::Array& a, nb::handle index, nb::handle expected, nb::handle desired) {
            return a.compare_exchange(operand_of(index), operand_of(expected), operand_of(desired),
                                      here());
          },
          nb::arg("index"), nb::arg("expected"), nb::arg("desired"),
          "Stores desired where the element is expected; returns the old value.")
      .def(
          "store",
          [](const dsl::Array& a, nb::handle index, nb::handle value) {
            a.store(operand_of(index), operand_of(value), here());
          },
          nb::arg("index"), nb::arg("value"), "Stores an element or a vector of elements.")
      .def_prop_ro(
          "element", [](const dsl::Array& a) { return dtype_name(a.element()); },
          "The type of the elements.");
}

}  // namespace

void bind_kernel_values(nb::module_& m) {
  bind_values(m);
  bind_arrays(m);
}

}  // namespace prism::python
