// DType, the element type of a tensor, and the conversions of arguments to types, devices and
// shapes.
#include <array>
#include <string_view>
#include <utility>

#include <nanobind/stl/string.h>

#include "bindings.h"

namespace prism::python {
namespace {

struct TypeName {
  DType type;
  const char* name;
};
constexpr std::array<TypeName, 10> kTypes = {{{DType::f32, "float32"},
                                              {DType::f16, "float16"},
                                              {DType::bf16, "bfloat16"},
                                              {DType::f64, "float64"},
                                              {DType::i8, "int8"},
                                              {DType::u8, "uint8"},
                                              {DType::i16, "int16"},
                                              {DType::i32, "int32"},
                                              {DType::i64, "int64"},
                                              {DType::b1, "bool"}}};

std::optional<ElementType> type_named(std::string_view name) {
  for (const TypeName& each : kTypes)
    if (name == each.name) return each.type;
  const std::optional<ElementType> found = ElementType::from_name(name);
  return found && is_tensor_type(*found) ? found : std::nullopt;
}

std::string type_names() {
  std::string names;
  for (const TypeName& each : kTypes) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

const char* kind_of(ElementType type) {
  if (type.is_block()) return "quantised";
  if (type.plain() == DType::b1) return "bool";
  if (is_float(type.plain())) return "float";
  return is_signed_int(type.plain()) ? "int" : "uint";
}

int64_t length_of(nb::handle item) {
  if (PyIndex_Check(item.ptr()) == 0) throw nb::type_error("shape: the lengths must be integers");
  const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
  if (!number) nb::raise_python_error();
  return nb::cast<int64_t>(number);
}

}  // namespace

const char* numpy_name(ElementType type) {
  for (const TypeName& each : kTypes)
    if (type == each.type) return each.name;
  return type.name();
}

ElementType element_type(nb::handle given) {
  if (nb::isinstance<ElementType>(given)) return nb::cast<ElementType>(given);
  if (given.is(nb::handle(reinterpret_cast<PyObject*>(&PyFloat_Type)))) return DType::f32;
  if (given.is(nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)))) return DType::i32;
  if (given.is(nb::handle(reinterpret_cast<PyObject*>(&PyBool_Type)))) return DType::b1;
  std::string name;
  if (nb::isinstance<nb::str>(given))
    name = nb::cast<std::string>(given);
  else if (nb::hasattr(given, "name") && nb::isinstance<nb::str>(given.attr("name")))
    name = nb::cast<std::string>(given.attr("name"));  // numpy.dtype
  else if (nb::hasattr(given, "__name__"))
    name = nb::cast<std::string>(given.attr("__name__"));  // numpy.float32
  else
    throw nb::type_error("dtype: give a prismrt.DType, its name or a dtype of NumPy");
  if (const auto found = type_named(name)) return *found;
  throw nb::value_error(("dtype: no tensor has elements of type '" + name + "'; the types are " +
                         type_names() + " and the quantised types such as q4_k")
                            .c_str());
}

std::optional<ElementType> optional_type(nb::handle given) {
  if (given.is_none()) return std::nullopt;
  return element_type(given);
}

Device device_argument(nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<Device>(given)) return nb::cast<Device>(given);
  if (nb::isinstance<nb::str>(given)) return Device::named(nb::cast<std::string>(given));
  throw nb::type_error("device: give a prismrt.Device or its name, such as 'cpu' or 'cuda:0'");
}

Shape shape_argument(nb::handle given) {
  if (PyIndex_Check(given.ptr()) != 0) return Shape{length_of(given)};
  std::vector<int64_t> lengths;
  if (!nb::isinstance<nb::sequence>(given) || nb::isinstance<nb::str>(given))
    throw nb::type_error("shape: give an integer or a sequence of integers");
  for (nb::handle item : given) lengths.push_back(length_of(item));
  for (const int64_t each : lengths)
    if (each < 0) throw nb::value_error("shape: a negative length");
  if (lengths.size() > kMaxRank) throw nb::value_error("shape: a tensor has at most 8 axes");
  return Shape(lengths);
}

std::vector<int64_t> lengths_argument(const nb::args& given) {
  std::vector<int64_t> lengths;
  const bool is_one_sequence = given.size() == 1 && PyIndex_Check(given[0].ptr()) == 0;
  const nb::object items = is_one_sequence ? nb::object(given[0]) : nb::object(given);
  if (!nb::isinstance<nb::sequence>(items))
    throw nb::type_error("shape: give integers or a sequence of integers");
  for (nb::handle item : items) lengths.push_back(length_of(item));
  if (lengths.size() > kMaxRank) throw nb::value_error("shape: a tensor has at most 8 axes");
  return lengths;
}

Axes axes_argument(nb::handle given) {
  if (given.is_none()) return {};
  Axes axes;
  if (PyIndex_Check(given.ptr()) != 0) {
    axes.push_back(static_cast<int>(length_of(given)));
    return axes;
  }
  if (!nb::isinstance<nb::sequence>(given) || nb::isinstance<nb::str>(given))
    throw nb::type_error("axis: give an integer, a tuple of integers or None");
  for (nb::handle item : given) axes.push_back(static_cast<int>(length_of(item)));
  if (axes.empty()) throw nb::value_error("axis: an empty tuple; leave it out to reduce all axes");
  return axes;
}

void bind_types(nb::module_& m) {
  nb::class_<ElementType>(m, "DType", "The type of a tensor's elements, such as prismrt.float32.")
      .def(nb::new_([](nb::handle dtype) { return element_type(dtype); }), nb::arg("dtype"))
      .def_prop_ro("name", [](ElementType type) { return std::string(numpy_name(type)); })
      .def_prop_ro(
          "kind", [](ElementType type) { return std::string(kind_of(type)); },
          "float, int, uint, bool or quantised")
      .def_prop_ro(
          "itemsize", [](ElementType type) { return type.is_block() ? 0 : type.block_bytes(); },
          "Bytes of an element; 0 for quantised types")
      .def("__repr__", [](ElementType type) { return std::string("prismrt.") + numpy_name(type); })
      .def("__str__", [](ElementType type) { return std::string(numpy_name(type)); })
      .def("__hash__", [](ElementType type) { return nb::hash(nb::str(type.name())); })
      .def(
          "__eq__",
          [](ElementType type, nb::handle other) {
            return nb::isinstance<ElementType>(other) && nb::cast<ElementType>(other) == type;
          },
          nb::arg("other").none());
  // Stubs of this module need Python's own bool; prismrt.bool is made from bool_.
  for (const TypeName& each : kTypes)
    m.attr(each.type == DType::b1 ? "bool_" : each.name) = ElementType(each.type);
}

}  // namespace prism::python
