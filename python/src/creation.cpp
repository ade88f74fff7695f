// Functions that make tensors: filled, ranges, random, and files.
#include <cmath>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/io.h"
#include "prism/ops.h"

namespace prism::python {
namespace {

DType plain_type(nb::handle given, DType otherwise) {
  if (given.is_none()) return otherwise;
  const ElementType type = element_type(given);
  if (type.is_block())
    throw nb::value_error("dtype: a quantised type; make floats and quantise() them");
  return type.plain();
}

// The type of a Python number.
ElementType number_type(nb::handle value) {
  if (PyBool_Check(value.ptr())) return DType::b1;
  return PyLong_Check(value.ptr()) ? DType::i32 : DType::f32;
}

double number(nb::handle value) {
  const double result = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred()) nb::raise_python_error();
  return result;
}

Tensor arange_of(nb::handle start, nb::handle stop, nb::handle step, nb::handle dtype,
                 nb::handle device) {
  const bool has_stop = !stop.is_none();
  const nb::object zero = nb::int_(0);
  const nb::handle first = has_stop ? start : nb::handle(zero), last = has_stop ? stop : start;
  const bool has_float =
      PyFloat_Check(first.ptr()) || PyFloat_Check(last.ptr()) || PyFloat_Check(step.ptr());
  return arange(number(first), number(last), number(step),
                plain_type(dtype, has_float ? DType::f32 : DType::i32), device_argument(device));
}

#define PRISM_CREATION_ARGS nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none()
// Also for parameters.
#define PRISM_PARAMETER_ARGS PRISM_CREATION_ARGS, nb::kw_only(), nb::arg("requires_grad") = false

Tensor with_gradient(Tensor tensor, bool wanted) {
  if (wanted) tensor.set_requires_grad();
  return tensor;
}

void bind_filled(nb::module_& m) {
  const auto filled = [&](const char* name, double value, const char* doc) {
    m.def(
        name,
        [value](nb::handle shape, nb::handle dtype, nb::handle device, bool requires_grad) {
          return with_gradient(
              full(shape_argument(shape), value, optional_type(dtype).value_or(DType::f32),
                   device_argument(device)),
              requires_grad);
        },
        nb::arg("shape"), PRISM_PARAMETER_ARGS, doc);
    const std::string like = std::string(name) + "_like";
    m.def(
        like.c_str(),
        [value](const Tensor& x, nb::handle dtype, nb::handle device) {
          const Device place = device_argument(device);
          return full(x.shape(), value, optional_type(dtype).value_or(x.dtype()),
                      place ? place : x.device());
        },
        nb::arg("x"), PRISM_CREATION_ARGS, "The same with the shape, type and device of x.");
  };
  filled("zeros", 0, "A tensor of zeros.");
  filled("ones", 1, "A tensor of ones.");
  m.def(
      "full",
      [](nb::handle shape, nb::handle value, nb::handle dtype, nb::handle device,
         bool requires_grad) {
        return with_gradient(
            full(shape_argument(shape), number(value),
                 optional_type(dtype).value_or(number_type(value)), device_argument(device)),
            requires_grad);
      },
      nb::arg("shape"), nb::arg("fill_value"), PRISM_PARAMETER_ARGS, "A tensor of one value.");
  m.def(
      "full_like",
      [](const Tensor& x, nb::handle value, nb::handle dtype, nb::handle device) {
        const Device place = device_argument(device);
        return full(x.shape(), number(value), optional_type(dtype).value_or(x.dtype()),
                    place ? place : x.device());
      },
      nb::arg("x"), nb::arg("fill_value"), PRISM_CREATION_ARGS);
  m.def(
      "empty",
      [](nb::handle shape, nb::handle dtype, nb::handle device) {
        return empty(shape_argument(shape), optional_type(dtype).value_or(DType::f32),
                     device_argument(device));
      },
      nb::arg("shape"), PRISM_CREATION_ARGS, "A tensor with unspecified values.");
  m.def(
      "empty_like",
      [](const Tensor& x, nb::handle dtype, nb::handle device) {
        const Device place = device_argument(device);
        return empty(x.shape(), optional_type(dtype).value_or(x.dtype()),
                     place ? place : x.device());
      },
      nb::arg("x"), PRISM_CREATION_ARGS);
}

void bind_ranges(nb::module_& m) {
  m.def("arange", &arange_of, nb::arg("start"), nb::arg("stop") = nb::none(), nb::arg("step") = 1,
        PRISM_CREATION_ARGS,
        "start, start + step, ... before stop. arange(n) counts from 0. int32, or float32 for "
        "floats.");
  m.def(
      "linspace",
      [](double start, double stop, int64_t num, nb::handle dtype, nb::handle device) {
        return linspace(start, stop, num, plain_type(dtype, DType::f32), device_argument(device));
      },
      nb::arg("start"), nb::arg("stop"), nb::arg("num") = 50, PRISM_CREATION_ARGS,
      "num numbers from start to stop, both included.");
  m.def(
      "eye",
      [](int64_t rows, nb::handle columns, nb::handle dtype, nb::handle device) {
        return eye(rows, columns.is_none() ? rows : nb::cast<int64_t>(columns),
                   plain_type(dtype, DType::f32), device_argument(device));
      },
      nb::arg("n"), nb::arg("m") = nb::none(), PRISM_CREATION_ARGS, "The identity matrix.");
}

void bind_random(nb::module_& m) {
  const auto drawn = [&](const char* name, auto function, const char* doc) {
    m.def(
        name,
        [function](const nb::args& shape, nb::handle dtype, nb::handle device, bool requires_grad) {
          return with_gradient(function(Shape(lengths_argument(shape)),
                                        plain_type(dtype, DType::f32), device_argument(device)),
                               requires_grad);
        },
        nb::arg("shape"), PRISM_CREATION_ARGS, nb::arg("requires_grad") = false, doc);
  };
  drawn(
      "rand", [](const Shape& s, DType t, const Device& d) { return rand(s, t, d); },
      "Random numbers in [0, 1), the same on every device.");
  drawn(
      "randn", [](const Shape& s, DType t, const Device& d) { return randn(s, t, d); },
      "Random numbers of the normal distribution, the same on every device.");
  m.def(
      "uniform",
      [](nb::handle shape, uint64_t key, double low, double high, nb::handle dtype,
         nb::handle device) {
        return uniform(shape_argument(shape), key, low, high, plain_type(dtype, DType::f32),
                       device_argument(device));
      },
      nb::arg("shape"), nb::arg("key"), nb::arg("low") = 0.0, nb::arg("high") = 1.0,
      PRISM_CREATION_ARGS, "Random numbers in [low, high): a key always gives the same numbers.");
  m.def(
      "normal",
      [](nb::handle shape, uint64_t key, double mean, double deviation, nb::handle dtype,
         nb::handle device) {
        return normal(shape_argument(shape), key, mean, deviation, plain_type(dtype, DType::f32),
                      device_argument(device));
      },
      nb::arg("shape"), nb::arg("key"), nb::arg("mean") = 0.0, nb::arg("deviation") = 1.0,
      PRISM_CREATION_ARGS,
      "Normally distributed random numbers: a key always gives the same numbers.");
  m.def("seed", &seed, nb::arg("seed"), "Sets the seed of rand() and randn(); the first one is 0.");
  m.attr("manual_seed") = m.attr("seed");
}

void bind_files(nb::module_& m) {
  const auto text = [](nb::handle path) {
    return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
  };
  m.def(
      "save",
      [text](nb::handle path, nb::handle content) {
        if (nb::isinstance<Tensor>(content)) return save(text(path), nb::cast<Tensor>(content));
        save_safetensors(text(path), nb::cast<std::map<std::string, Tensor>>(content));
      },
      nb::arg("path"), nb::arg("content"),
      nb::sig(
          "def save(path: str | os.PathLike[str], content: Tensor | dict[str, Tensor]) -> None"),
      "Saves a tensor as .npy or .safetensors, or a dictionary of tensors as .safetensors.");
  m.def(
      "load",
      [text](nb::handle path, nb::handle device) {
        return load(text(path), device_argument(device));
      },
      nb::arg("path"), nb::arg("device") = nb::none(),
      nb::sig("def load(path: str | os.PathLike[str], device: DeviceLike | None = None) -> Tensor"),
      "The tensor of a .npy or .safetensors file.");
  m.def(
      "load_safetensors",
      [text](nb::handle path, nb::handle device) {
        return load_safetensors(text(path), device_argument(device));
      },
      nb::arg("path"), nb::arg("device") = nb::none(),
      nb::sig(
          "def load_safetensors(path: str | os.PathLike[str], device: DeviceLike | None = None) "
          "-> dict[str, Tensor]"),
      "All tensors of a .safetensors file by name.");
}

}  // namespace

void bind_creation(nb::module_& m) {
  bind_filled(m);
  bind_ranges(m);
  bind_random(m);
  bind_files(m);
}

}  // namespace prism::python
