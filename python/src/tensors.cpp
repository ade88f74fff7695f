// Tensor: its attributes, operators and methods, and how it is made from Python's numbers.
#include <chrono>
#include <cmath>
#include <deque>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops.h"

namespace prism::python {
namespace {

constexpr double kExactInteger = 9007199254740992.0;  // 2^53: larger ones are no exact doubles

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

bool is_float_type(const Tensor& tensor) {
  return !tensor.dtype().is_block() && is_float(tensor.dtype().plain());
}

// --- operators: f(tensor, operand)
using Binary = Tensor (*)(const Tensor&, const TensorOrNumber&);

Tensor add(const Tensor& a, const TensorOrNumber& b) { return a + b; }
Tensor subtract(const Tensor& a, const TensorOrNumber& b) { return a - b; }
Tensor multiply(const Tensor& a, const TensorOrNumber& b) { return a * b; }
Tensor divide(const Tensor& a, const TensorOrNumber& b) { return a / b; }
Tensor less(const Tensor& a, const TensorOrNumber& b) { return a < b; }
Tensor less_equal(const Tensor& a, const TensorOrNumber& b) { return a <= b; }
Tensor greater(const Tensor& a, const TensorOrNumber& b) { return a > b; }
Tensor greater_equal(const Tensor& a, const TensorOrNumber& b) { return a >= b; }
Tensor logical(const Tensor& a, const TensorOrNumber& b, bool is_and) {
  if (!(a.dtype() == DType::b1))
    throw Error(ErrorCode::kNotSupported, "& and |: tensors of type " +
                                              std::string(numpy_name(a.dtype())) +
                                              "; they work on bool only");
  const Tensor other = b.tensor() ? *b.tensor() : full({}, b.number(), DType::b1, a.device());
  return is_and ? logical_and(a, other) : logical_or(a, other);
}
Tensor bit_and(const Tensor& a, const TensorOrNumber& b) { return logical(a, b, true); }
Tensor bit_or(const Tensor& a, const TensorOrNumber& b) { return logical(a, b, false); }

constexpr const char* kOperand = "def {}(self, other: TensorLike) -> Tensor";

template <Binary function>
nb::object forward(const Tensor& self, nb::handle other) {
  if (nb::isinstance<Tensor>(other)) return nb::cast(function(self, *nb::inst_ptr<Tensor>(other)));
  Tensor left = self;
  const auto right = operand(left, other);
  if (!right) return not_implemented();
  return nb::cast(function(left, *right));
}

// other OP self, where other is no Tensor.
template <Binary function>
nb::object backward_(const Tensor& self, nb::handle other) {
  Tensor right = self;
  const auto left = operand(right, other);
  if (!left) return not_implemented();
  const Tensor first =
      left->tensor() ? *left->tensor() : full({}, left->number(), right.dtype(), right.device());
  return nb::cast(function(first, right));
}

template <Tensor& (Tensor::*function)(const TensorOrNumber&)>
nb::object in_place(nb::handle_t<Tensor> self, nb::handle other) {
  Tensor& tensor = *nb::inst_ptr<Tensor>(self);
  Tensor left = tensor;
  const auto right = operand(left, other);
  if (!right) return not_implemented();
  if (!(left.dtype() == tensor.dtype())) tensor = left;
  (tensor.*function)(*right);
  return nb::borrow(self);
}

void bind_operators(nb::class_<Tensor>& type) {
  static std::deque<std::string> signatures;  // they stay in use
  const auto define = [&](const char* name, auto function) {
    std::string& text = signatures.emplace_back(kOperand);
    text.replace(text.find("{}"), 2, name);
    type.def(name, function, nb::is_operator(), nb::arg("other").none(), nb::sig(text.c_str()));
  };
  define("__add__", &forward<add>);
  define("__radd__", &backward_<add>);
  define("__sub__", &forward<subtract>);
  define("__rsub__", &backward_<subtract>);
  define("__mul__", &forward<multiply>);
  define("__rmul__", &backward_<multiply>);
  define("__truediv__", &forward<divide>);
  define("__rtruediv__", &backward_<divide>);
  define("__floordiv__", &forward<floor_divide>);
  define("__rfloordiv__", &backward_<floor_divide>);
  define("__mod__", &forward<remainder>);
  define("__rmod__", &backward_<remainder>);
  define("__and__", &forward<bit_and>);
  define("__rand__", &backward_<bit_and>);
  define("__or__", &forward<bit_or>);
  define("__ror__", &backward_<bit_or>);
  define("__xor__", &forward<not_equal>);
  define("__rxor__", &backward_<not_equal>);
  define("__eq__", &forward<equal>);
  define("__ne__", &forward<not_equal>);
  define("__lt__", &forward<less>);
  define("__le__", &forward<less_equal>);
  define("__gt__", &forward<greater>);
  define("__ge__", &forward<greater_equal>);
  define("__rpow__", &backward_<prism::pow>);
  define("__iadd__", &in_place < &Tensor::operator+=>);
  define("__isub__", &in_place < &Tensor::operator-=>);
  define("__imul__", &in_place < &Tensor::operator*=>);
  define("__itruediv__", &in_place < &Tensor::operator/=>);
  type.def(
      "__pow__",
      [](const Tensor& self, nb::handle other, nb::handle) {
        return forward<prism::pow>(self, other);
      },
      nb::is_operator(), nb::arg("other"), nb::arg("modulo") = nb::none(),
      nb::sig("def __pow__(self, other: TensorLike, modulo: None = None) -> Tensor"));
  type.def(
      "__matmul__", [](const Tensor& a, const Tensor& b) { return matmul(a, b); },
      nb::is_operator());
  type.def("__neg__", [](const Tensor& a) { return -a; });
  type.def("__pos__", [](const Tensor& a) { return a; });
  type.def("__abs__", [](const Tensor& a) { return abs(a); });
  type.def("__invert__", [](const Tensor& a) {
    if (!(a.dtype() == DType::b1))
      throw Error(ErrorCode::kNotSupported, "~: it works on tensors of type bool only");
    return logical_not(a);
  });
}

// --- numbers of Python
struct Numbers {
  std::vector<double> values;
  std::vector<int64_t> integers;  // the same, as long as all are integers
  bool has_float = false, has_integer = false, has_bool = false, has_large = false;

  void add(nb::handle item) {
    PyObject* const object = item.ptr();
    if (PyBool_Check(object)) {
      has_bool = true;
      put(object == Py_True ? 1 : 0);
    } else if (PyLong_Check(object)) {
      has_integer = true;
      const int64_t value = nb::cast<int64_t>(item);
      has_large = has_large || value != static_cast<int32_t>(value);
      put(value);
    } else if (PyFloat_Check(object)) {
      has_float = true;
      values.push_back(PyFloat_AsDouble(object));
    } else if (nb::isinstance<Tensor>(item) || PyIndex_Check(object) ||
               nb::hasattr(item, "__float__")) {
      add_converted(item);
    } else {
      throw nb::type_error("tensor: the data must be numbers, nested sequences of them or arrays");
    }
  }

  ElementType type() const {
    if (has_float || values.empty()) return DType::f32;
    if (has_integer) return has_large ? DType::i64 : DType::i32;
    return DType::b1;
  }

 private:
  void put(int64_t value) {
    values.push_back(static_cast<double>(value));
    integers.push_back(value);
  }
  void add_converted(nb::handle item) {
    if (nb::isinstance<Tensor>(item)) return add(tensor_item(*nb::inst_ptr<Tensor>(item)));
    if (nb::hasattr(item, "item")) return add(item.attr("item")());  // a scalar of NumPy
    add(nb::steal(PyNumber_Float(item.ptr())));
  }
};

bool is_sequence(nb::handle item) {
  return nb::isinstance<nb::list>(item) || nb::isinstance<nb::tuple>(item) ||
         (nb::isinstance<nb::sequence>(item) && !nb::isinstance<nb::str>(item) &&
          !nb::isinstance<nb::bytes>(item) && !nb::isinstance<Tensor>(item) && !is_array(item));
}

void collect(nb::handle data, size_t axis, std::vector<int64_t>& shape, Numbers& numbers) {
  if (!is_sequence(data)) {
    if (axis != shape.size())
      throw nb::value_error("tensor: the nested sequences have different depths");
    return numbers.add(data);
  }
  const auto length = static_cast<int64_t>(nb::len(data));
  if (axis == shape.size()) {
    if (!numbers.values.empty() || axis >= kMaxRank)
      throw nb::value_error("tensor: the nested sequences have different depths, or more than 8");
    shape.push_back(length);
  } else if (shape[axis] != length) {
    throw nb::value_error(("tensor: a sequence of " + std::to_string(length) +
                           " items beside one of " + std::to_string(shape[axis]))
                              .c_str());
  }
  for (nb::handle item : data) collect(item, axis + 1, shape, numbers);
}

bool holds_arrays(nb::handle data) {
  if (!nb::isinstance<nb::list>(data) && !nb::isinstance<nb::tuple>(data)) return false;
  if (nb::len(data) == 0) return false;
  const nb::object first = data[0];
  return (nb::isinstance<Tensor>(first) && nb::cast<Tensor>(first).ndim() > 0) || is_array(first) ||
         holds_arrays(first);
}

Tensor stacked(nb::handle data, const Device& device) {
  std::vector<Tensor> rows;
  for (nb::handle each : data) rows.push_back(make_tensor(each, std::nullopt, device, false));
  return stack(rows, 0);
}

Tensor from_numbers(nb::handle data, std::optional<ElementType> type, const Device& device) {
  std::vector<int64_t> shape;
  Numbers numbers;
  collect(data, 0, shape, numbers);
  const ElementType wanted = type.value_or(numbers.type());
  if (wanted == DType::i64 && !numbers.has_float)
    return from_vector(numbers.integers, Shape(shape), device);
  if (!wanted.is_block() && is_int(wanted.plain()) && !numbers.has_float) {
    // Out of range is an error here, where a conversion would wrap.
    const double bits = 8.0 * wanted.block_bytes();
    const bool is_signed = is_signed_int(wanted.plain());
    const double low = is_signed ? -std::exp2(bits - 1) : 0;
    const double high = std::exp2(is_signed ? bits - 1 : bits) - 1;
    for (const double each : numbers.values)
      if (each < low || each > high) {
        PyErr_Format(PyExc_OverflowError, "tensor: %lld is out of range for %s",
                     static_cast<long long>(each), numpy_name(wanted));
        nb::raise_python_error();
      }
  }
  return from_doubles(numbers.values, Shape(shape), wanted, device);
}

// --- values as Python's
bool truth(const Tensor& tensor) {
  if (tensor.size() == 1) return tensor.item() != 0;
  throw nb::value_error("bool: only one element is true or false; use any() or all()");
}

template <class T>
nb::object nested(const std::vector<T>& values, const Shape& shape, int axis, size_t& next) {
  if (axis == shape.rank()) return nb::cast(values[next++]);
  nb::list list;
  for (int64_t i = 0; i < shape[axis]; ++i) list.append(nested(values, shape, axis + 1, next));
  return list;
}

nb::object to_list(const Tensor& tensor) {
  size_t next = 0;
  if (is_float_type(tensor)) return nested(tensor.to_doubles(), tensor.shape(), 0, next);
  if (tensor.dtype() == DType::b1) {
    const std::vector<uint8_t> bytes = tensor.to_vector<uint8_t>();
    return nested(std::vector<bool>(bytes.begin(), bytes.end()), tensor.shape(), 0, next);
  }
  return nested(tensor.astype(DType::i64).to_vector<int64_t>(), tensor.shape(), 0, next);
}

nb::tuple shape_tuple(const Tensor& tensor) {
  nb::list lengths;
  for (const int64_t each : tensor.shape()) lengths.append(each);
  return nb::tuple(lengths);
}

Tensor transposed(const Tensor& tensor) {
  std::vector<int> axes;
  for (int axis = tensor.ndim(); axis-- > 0;) axes.push_back(axis);
  return tensor.permute(axes);
}

void bind_attributes(nb::class_<Tensor>& type) {
  type.def_prop_ro("shape", &shape_tuple, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("ndim", &Tensor::ndim, "The number of axes.")
      .def_prop_ro(
          "size", [](const Tensor& t) { return t.size(); }, "The number of elements.")
      .def_prop_ro("dtype", &Tensor::dtype)
      .def_prop_ro("device", [](const Tensor& t) { return Device(t.device()); })
      .def_prop_ro("itemsize", [](const Tensor& t) { return t.dtype().block_bytes(); })
      .def_prop_ro("nbytes",
                   [](const Tensor& t) { return storage_bytes(t.shape(), t.dtype(), t.device()); })
      .def_prop_ro("is_evaluated", &Tensor::is_evaluated, "Whether the values are computed.")
      .def_prop_ro("T", &transposed, "A view with the axes in reverse order.")
      .def_prop_ro(
          "mT", [](const Tensor& t) { return t.transpose(); },
          "A view with the last two axes exchanged.")
      .def_prop_rw(
          "requires_grad", &Tensor::requires_grad,
          [](Tensor& t, bool wanted) { t.set_requires_grad(wanted); },
          "Whether backward() accumulates a gradient here.")
      .def_prop_ro(
          "grad", [](const Tensor& t) { return t.grad() ? nb::cast(t.grad()) : nb::none(); },
          nb::sig("def grad(self) -> Tensor | None"), "The gradient that backward() accumulated.")
      .def(
          "requires_grad_",
          [](nb::handle_t<Tensor> self, bool wanted) {
            nb::inst_ptr<Tensor>(self)->set_requires_grad(wanted);
            return nb::borrow(self);
          },
          nb::arg("requires_grad") = true,
          nb::sig("def requires_grad_(self, requires_grad: bool = True) -> Tensor"))
      .def("zero_grad", &Tensor::zero_grad, "Forgets the gradient.")
      .def("detach", &Tensor::detach, "The same values without history.")
      .def(
          "backward",
          [](const Tensor& t) {
            t.backward();
            deliver_warnings();
          },
          "Adds the gradients of this value to grad of every leaf that requires them.");
}

// Only computed floats can be changed in place, by optimisers and running statistics.
Tensor copy_of(const Tensor& tensor) {
  return is_float_type(tensor) && tensor.is_evaluated() ? (tensor * 1.0).eval() : tensor;
}

void bind_values(nb::class_<Tensor>& type) {
  type.def(
          "eval",
          [](nb::handle_t<Tensor> self) {
            nb::inst_ptr<Tensor>(self)->eval();
            deliver_warnings();
            return nb::borrow(self);
          },
          nb::sig("def eval(self) -> Tensor"), "Computes the values now.")
      .def("item", &tensor_item, nb::sig("def item(self) -> float | int | bool"),
           "The value of a tensor with one element.")
      .def("tolist", &to_list, nb::sig("def tolist(self) -> object"), "The values as nested lists.")
      .def(
          "to",
          [](const Tensor& t, nb::args places) {
            Tensor result = t;
            for (nb::handle each : places) {
              const bool is_type = nb::isinstance<ElementType>(each);
              result =
                  is_type ? result.astype(element_type(each)) : result.to(device_argument(each));
            }
            return result;
          },
          nb::sig("def to(self, *args: Device | str | DType) -> Tensor"),
          "A copy on another device or with another type; itself if nothing changes.")
      .def("cpu", [](const Tensor& t) { return t.to(Device::cpu()); })
      .def(
          "astype", [](const Tensor& t, nb::handle dtype) { return t.astype(element_type(dtype)); },
          nb::arg("dtype"), nb::sig("def astype(self, dtype: DTypeLike) -> Tensor"))
      .def("contiguous", &Tensor::contiguous, "The same values, row by row without gaps.")
      .def("clone", &copy_of,
           "The same values in memory of their own: optimisers change parameters in place.")
      .def("numel", &Tensor::numel)
      .def("dim", &Tensor::ndim)
      .def("__len__",
           [](const Tensor& t) {
             if (t.ndim() == 0) throw nb::type_error("len() of a tensor without axes");
             return t.size(0);
           })
      .def("__bool__", &truth)
      .def("__float__", [](const Tensor& t) { return t.item(); })
      .def(
          "__int__", [](const Tensor& t) { return nb::steal(PyNumber_Long(tensor_item(t).ptr())); },
          nb::sig("def __int__(self) -> int"))
      .def(
          "__complex__",
          [](const Tensor& t) { return nb::steal(PyComplex_FromDoubles(t.item(), 0)); },
          nb::sig("def __complex__(self) -> complex"))
      .def(
          "__index__",
          [](const Tensor& t) {
            if (is_float_type(t) || t.dtype() == DType::b1 || t.ndim() != 0)
              throw nb::type_error("an index must be an integer tensor without axes");
            return tensor_item(t);
          },
          nb::sig("def __index__(self) -> int"))
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; })
      .def("__repr__", &tensor_repr);
  type.attr("__array_ufunc__") = nb::none();  // NumPy leaves operators to Tensor
  type.attr("__array_priority__") = 1000;
}

}  // namespace

std::optional<TensorOrNumber> operand(Tensor& tensor, nb::handle other) {
  PyObject* const object = other.ptr();
  if (nb::isinstance<Tensor>(other)) return TensorOrNumber(*nb::inst_ptr<Tensor>(other));
  const bool is_bool = tensor.dtype() == DType::b1;
  if (PyFloat_Check(object)) {
    if (!is_float_type(tensor) && !tensor.dtype().is_block()) tensor = tensor.astype(DType::f32);
    return TensorOrNumber(PyFloat_AsDouble(object));
  }
  if (PyLong_Check(object)) {
    if (is_bool && !PyBool_Check(object)) tensor = tensor.astype(DType::i32);
    const auto value = nb::cast<int64_t>(other);
    if (std::abs(static_cast<double>(value)) > kExactInteger)
      return TensorOrNumber(from_vector({value}, {}, tensor.device()));
    return TensorOrNumber(static_cast<double>(value));
  }
  if (is_array(other)) return TensorOrNumber(import_array(other).to(tensor.device()));
  return std::nullopt;
}

Tensor make_tensor(nb::handle data, std::optional<ElementType> type, const Device& device,
                   bool copy) {
  Tensor result;
  if (nb::isinstance<Tensor>(data)) {
    result = *nb::inst_ptr<Tensor>(data);
    if (device) result = result.to(device);
  } else if (is_array(data)) {
    result = import_array(data);
    if (copy) {
      // A value of its own: the array may change later.
      result = from_bytes(result.to_bytes(), result.shape(), result.dtype(), device);
    } else {
      result = result.to(device ? device : default_device());
    }
  } else if (holds_arrays(data)) {
    result = stacked(data, device);
  } else {
    return from_numbers(data, type, device);
  }
  return type ? result.astype(*type) : result;
}

nb::object tensor_item(const Tensor& tensor) {
  const double value = tensor.item();
  deliver_warnings();
  if (tensor.dtype() == DType::b1) return nb::cast(value != 0);
  if (is_float_type(tensor)) return nb::cast(value);
  if (std::abs(value) < kExactInteger) return nb::cast(static_cast<int64_t>(value));
  return nb::cast(tensor.astype(DType::i64).to_vector<int64_t>()[0]);
}

// The text of the library, in the form of a call: tensor([...], dtype=float32, device='cpu:0').
std::string tensor_repr(const Tensor& tensor) {
  const std::string text = tensor.dtype().is_block() ? "" : tensor.text();
  deliver_warnings();
  std::string values = text.substr(0, text.rfind('\n'));
  if (tensor.ndim() == 0) values = text.substr(0, text.find_first_of(" \n"));
  if (tensor.dtype() == DType::b1)
    for (const auto& [from, to] : {std::pair{"true", "True"}, std::pair{"false", "False"}})
      for (size_t at = 0; (at = values.find(from, at)) != std::string::npos;)
        values.replace(at, std::string_view(from).size(), to);
  std::string shifted;
  for (const char each : values) {
    shifted += each;
    if (each == '\n') shifted += "       ";
  }
  if (tensor.dtype().is_block() || tensor.size() == 0) shifted = "shape=" + tensor.shape().text();
  return "tensor(" + shifted + ", dtype=" + numpy_name(tensor.dtype()) + ", device='" +
         tensor.device().id() + (tensor.requires_grad() ? "', requires_grad=True)" : "')");
}

void bind_tensors(nb::module_& m) {
  nb::class_<Tensor> type(m, "Tensor",
                          "Values with a shape, an element type and a device, computed when they "
                          "are needed.");
  bind_attributes(type);
  bind_values(type);
  bind_operators(type);
  bind_indexing(type, m);
  bind_exchange(type, m);
  m.def(
      "_add_seconds",
      [](const Tensor& a, const Tensor& b, int64_t count) {
        const auto start = std::chrono::steady_clock::now();
        for (int64_t i = 0; i < count; ++i) const Tensor sum = a + b;
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
        return time.count() / static_cast<double>(count);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("count"),
      "Seconds of a + b without Python, for bench/python.");
  m.def(
      "tensor",
      [](nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad) {
        Tensor made = make_tensor(data, optional_type(dtype), device_argument(device), true);
        if (requires_grad) made.set_requires_grad();
        return made;
      },
      nb::arg("data"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false,
      nb::sig("def tensor(data: object, dtype: DTypeLike | None = None, device: DeviceLike | None "
              "= None, requires_grad: bool = False) -> Tensor"),
      "A tensor of numbers, nested sequences or an array, which is copied. Without a type: "
      "float32, int32 (int64 for larger ones) or bool.");
  m.def(
      "asarray",
      [](nb::handle data, nb::handle dtype, nb::handle device, nb::handle copy) {
        return make_tensor(data, optional_type(dtype), device_argument(device),
                           !copy.is_none() && nb::cast<bool>(copy));
      },
      nb::arg("data"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("copy") = nb::none(),
      nb::sig("def asarray(data: object, dtype: DTypeLike | None = None, device: DeviceLike | "
              "None = None, copy: bool | None = None) -> Tensor"),
      "Like tensor(), but an array on the same device is used in place.");
}

}  // namespace prism::python
