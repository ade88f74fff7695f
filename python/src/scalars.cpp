// Scalars with gradients and networks of them: Value, Neuron, Layer and MLP.
#include <deque>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "nn/scalar/tape.h"
#include "prism/nn/scalar.h"

namespace prism::python {
namespace {

using nn::Value;

// None: the default device.
Device place_of(nb::handle device) {
  const Device given = device_argument(device);
  return given ? given.current() : default_device();
}

bool is_number(nb::handle given) {
  return PyFloat_Check(given.ptr()) != 0 || PyLong_Check(given.ptr()) != 0;
}

// A scalar, or a number as a scalar on the device; nothing for other objects.
std::optional<Value> scalar(nb::handle given, const Device& device) {
  if (nb::isinstance<Value>(given)) return *nb::inst_ptr<Value>(given);
  if (is_number(given)) return Value(nb::cast<double>(given), device);
  return std::nullopt;
}

using Operator = Value (*)(const Value&, const Value&);
enum class Side { left, right };

template <Operator function, Side side>
nb::object operate(const Value& self, nb::handle given) {
  const std::optional<Value> other = scalar(given, self.device());
  if (!other) return nb::borrow(Py_NotImplemented);
  return nb::cast(side == Side::left ? function(self, *other) : function(*other, self));
}

template <int code>  // of Python's comparisons: Py_LT ...
nb::object compare(const Value& self, nb::handle given) {
  const std::optional<Value> other = scalar(given, self.device());
  if (!other) return nb::borrow(Py_NotImplemented);
  const double a = self.data(), b = other->data();
  const bool result = code == Py_LT   ? a < b
                      : code == Py_LE ? a <= b
                      : code == Py_GT ? a > b
                      : code == Py_GE ? a >= b
                      : code == Py_EQ ? a == b
                                      : a != b;
  return nb::cast(result);
}

void bind_operators(nb::class_<Value>& type) {
  static std::deque<std::string> signatures;  // they stay in use
  const auto define = [&](const char* name, auto function, const char* other, const char* result) {
    const std::string& text = signatures.emplace_back(std::string("def ") + name +
                                                      "(self, other: " + other + ") -> " + result);
    type.def(name, function, nb::is_operator(), nb::arg("other").none(), nb::sig(text.c_str()));
  };
  const auto arithmetic = [&](const char* name, auto function) {
    define(name, function, "Value | float", "Value");
  };
  arithmetic("__add__", &operate<nn::operator+, Side::left>);
  arithmetic("__radd__", &operate<nn::operator+, Side::right>);
  arithmetic("__sub__", &operate<nn::operator-, Side::left>);
  arithmetic("__rsub__", &operate<nn::operator-, Side::right>);
  arithmetic("__mul__", &operate<nn::operator*, Side::left>);
  arithmetic("__rmul__", &operate<nn::operator*, Side::right>);
  arithmetic("__truediv__", &operate<nn::operator/, Side::left>);
  arithmetic("__rtruediv__", &operate<nn::operator/, Side::right>);
  define("__lt__", &compare<Py_LT>, "Value | float", "bool");
  define("__le__", &compare<Py_LE>, "Value | float", "bool");
  define("__gt__", &compare<Py_GT>, "Value | float", "bool");
  define("__ge__", &compare<Py_GE>, "Value | float", "bool");
  define("__eq__", &compare<Py_EQ>, "object", "bool");
  define("__ne__", &compare<Py_NE>, "object", "bool");
  type.def(
      "__pow__",
      [](const Value& self, nb::handle exponent, nb::handle) -> nb::object {
        if (!is_number(exponent)) return nb::borrow(Py_NotImplemented);
        return nb::cast(nn::pow(self, nb::cast<double>(exponent)));
      },
      nb::is_operator(), nb::arg("exponent"), nb::arg("modulo") = nb::none(),
      nb::sig("def __pow__(self, exponent: float, modulo: None = None) -> Value"));
  type.def("__neg__", [](const Value& self) { return -self; });
  // Copies of a handle show the same scalar.
  type.def("__hash__", [](const Value& self) {
    return static_cast<Py_hash_t>(reinterpret_cast<intptr_t>(self.node().get()) >> 4);
  });
  type.def("__float__", &Value::data);
}

std::vector<Value> scalars(nb::handle given, const Device& device) {
  if (!nb::isinstance<nb::sequence>(given))
    throw nb::type_error("the inputs must be a sequence of Value and numbers");
  std::vector<Value> result;
  for (nb::handle each : given) {
    std::optional<Value> one = scalar(each, device);
    if (!one) throw nb::type_error("the inputs must be a sequence of Value and numbers");
    result.push_back(std::move(*one));
  }
  return result;
}

// A network and the device of its parameters, where numbers among the inputs go.
template <class Network>
struct Placed {
  Network network;
  Device device;
};

// micrograd gives a single output by itself.
nb::object outputs(std::vector<Value> values) {
  return values.size() == 1 ? nb::cast(values[0]) : nb::cast(values);
}
nb::object outputs(const Value& value) { return nb::cast(value); }

template <class Network>
nb::class_<Placed<Network>> bind_network(nb::module_& m, const char* name, const char* doc,
                                         const char* result) {
  static const std::string signature =
      std::string("def __call__(self, x: Sequence[Value | float]) -> ") + result;
  nb::class_<Placed<Network>> type(m, name, doc);
  type.def(
          "__call__",
          [](const Placed<Network>& self, nb::handle x) {
            return outputs(self.network(scalars(x, self.device)));
          },
          nb::arg("x"), nb::sig(signature.c_str()))
      .def(
          "parameters", [](const Placed<Network>& self) { return self.network.parameters(); },
          "Weights and biases in order.")
      .def(
          "zero_grad",
          [](const Placed<Network>& self) {
            for (Value& each : self.network.parameters()) each.zero_grad();
          },
          "Sets the gradients of all parameters to 0.")
      .def_prop_ro("device", [](const Placed<Network>& self) { return Device(self.device); });
  return type;
}

void bind_networks(nb::module_& m) {
  bind_network<nn::Neuron>(m, "Neuron", "A weighted sum with bias, then relu unless linear.",
                           "Value")
      .def(
          "__init__",
          [](Placed<nn::Neuron>* self, int64_t inputs, bool linear, nb::handle device) {
            const Device place = place_of(device);
            new (self) Placed<nn::Neuron>{nn::Neuron(inputs, linear, place), place};
          },
          nb::arg("inputs"), nb::arg("linear") = false, nb::arg("device") = nb::none(),
          nb::sig("def __init__(self, inputs: int, linear: bool = False, device: DeviceLike | None "
                  "= None) -> None"));
  bind_network<nn::ScalarLayer>(
      m, "Layer", "Neurons with the same inputs; a single output comes without a list.",
      "typing.Any")
      .def(
          "__init__",
          [](Placed<nn::ScalarLayer>* self, int64_t inputs, int64_t outputs, bool linear,
             nb::handle device) {
            const Device place = place_of(device);
            new (self)
                Placed<nn::ScalarLayer>{nn::ScalarLayer(inputs, outputs, linear, place), place};
          },
          nb::arg("inputs"), nb::arg("outputs"), nb::arg("linear") = false,
          nb::arg("device") = nb::none(),
          nb::sig("def __init__(self, inputs: int, outputs: int, linear: bool = False, device: "
                  "DeviceLike | None = None) -> None"));
  bind_network<nn::MLP>(
      m, "MLP", "Layers of these sizes, the last one linear; a single output comes without a list.",
      "typing.Any")
      .def(
          "__init__",
          [](Placed<nn::MLP>* self, int64_t inputs, const std::vector<int64_t>& sizes,
             nb::handle device) {
            const Device place = place_of(device);
            new (self) Placed<nn::MLP>{nn::MLP(inputs, sizes, place), place};
          },
          nb::arg("inputs"), nb::arg("sizes"), nb::arg("device") = nb::none(),
          nb::sig("def __init__(self, inputs: int, sizes: Sequence[int], device: DeviceLike | None "
                  "= None) -> None"));
}

}  // namespace

void bind_scalars(nb::module_& m) {
  nb::class_<Value> type(
      m, "Value",
      "A number that remembers how it was made, in float32. Operations are recorded; data and "
      "backward() run what was recorded as one plan.");
  type.def(
          "__init__",
          [](Value* self, double data, nb::handle device) {
            new (self) Value(data, device_argument(device));
          },
          nb::arg("data") = 0.0, nb::arg("device") = nb::none(),
          nb::sig(
              "def __init__(self, data: float = 0.0, device: DeviceLike | None = None) -> None"))
      .def_prop_rw("data", &Value::data, &Value::set_data,
                   "The number; it can be set unless it is the result of an operation.")
      .def_prop_rw(
          "grad", &Value::grad,
          [](Value& self, double slope) { self.node()->grad = static_cast<float>(slope); },
          "The slope that backward() accumulated.")
      .def("zero_grad", &Value::zero_grad, "Sets grad to 0.")
      .def(
          "backward",
          [](const Value& self) {
            self.backward();
            deliver_warnings();
          },
          "Adds the slopes of this value to grad of everything it depends on.")
      .def_prop_ro("device", [](const Value& self) { return Device(self.device()); })
      .def(
          "to", [](const Value& self, nb::handle device) { return self.to(place_of(device)); },
          nb::arg("device"), nb::sig("def to(self, device: DeviceLike) -> Value"),
          "A value with the same number on another device, without history.")
      .def("exp", [](const Value& self) { return nn::exp(self); })
      .def("log", [](const Value& self) { return nn::log(self); })
      .def("tanh", [](const Value& self) { return nn::tanh(self); })
      .def("relu", [](const Value& self) { return nn::relu(self); })
      .def_static(
          "compute", [](const std::vector<Value>& values) { nn::compute(values); },
          nb::arg("values"), "Computes several values in one plan.")
      .def("__repr__", [](const Value& self) {
        return nb::str("Value(data={:g}, grad={:g})").attr("format")(self.data(), self.grad());
      });
  bind_operators(type);
  bind_networks(m);
}

}  // namespace prism::python
