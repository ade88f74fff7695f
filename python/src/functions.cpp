// The functions of NumPy and PyTorch over tensors: elementwise, reductions, shapes, sorting. Most
// are methods of Tensor, too.
#include <limits>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/ops.h"

namespace prism::python {
namespace {

nb::object type_of_tensor(nb::module_& m) { return m.attr("Tensor"); }

// A function of a module that is also a method.
class Both {
 public:
  explicit Both(nb::module_& m)
      : module_(m), type_(nb::borrow<nb::class_<Tensor>>(m.attr("Tensor"))) {}
  template <class Function, class... Extra>
  const Both& def(const char* name, Function function, const Extra&... extra) const {
    module_.def(name, function, nb::arg("x"), extra...);
    type_.def(name, function, extra...);
    return *this;
  }

 private:
  mutable nb::module_ module_;
  mutable nb::class_<Tensor> type_;
};

// Both operands may be numbers or arrays, but one of them has to be a tensor.
template <Tensor (*function)(const Tensor&, const TensorOrNumber&)>
Tensor apply(nb::handle a, nb::handle b) {
  if (nb::isinstance<Tensor>(a)) {
    Tensor left = *nb::inst_ptr<Tensor>(a);
    if (const auto right = operand(left, b)) return function(left, *right);
  } else if (nb::isinstance<Tensor>(b)) {
    Tensor right = *nb::inst_ptr<Tensor>(b);
    if (const auto left = operand(right, a))
      return function(left->tensor() ? *left->tensor()
                                     : full({}, left->number(), right.dtype(), right.device()),
                      right);
  } else {
    return function(make_tensor(a, std::nullopt, {}, false),
                    TensorOrNumber(make_tensor(b, std::nullopt, {}, false)));
  }
  throw nb::type_error("the operands must be tensors, numbers or arrays");
}

Tensor add(const Tensor& a, const TensorOrNumber& b) { return a + b; }
Tensor subtract(const Tensor& a, const TensorOrNumber& b) { return a - b; }
Tensor multiply(const Tensor& a, const TensorOrNumber& b) { return a * b; }
Tensor divide(const Tensor& a, const TensorOrNumber& b) { return a / b; }
Tensor less(const Tensor& a, const TensorOrNumber& b) { return a < b; }
Tensor less_equal(const Tensor& a, const TensorOrNumber& b) { return a <= b; }
Tensor greater(const Tensor& a, const TensorOrNumber& b) { return a > b; }
Tensor greater_equal(const Tensor& a, const TensorOrNumber& b) { return a >= b; }
const Tensor& as_tensor(const TensorOrNumber& value, Tensor& place, const Tensor& like) {
  if (value.tensor()) return *value.tensor();
  return place = full({}, value.number(), like.dtype(), like.device());
}
Tensor both_true(const Tensor& a, const TensorOrNumber& b) {
  Tensor place;
  return logical_and(a, as_tensor(b, place, a));
}
Tensor any_true(const Tensor& a, const TensorOrNumber& b) {
  Tensor place;
  return logical_or(a, as_tensor(b, place, a));
}
void bind_elementwise(nb::module_& m) {
  const Both both(m);
  using Unary = Tensor (*)(const Tensor&);
  const std::tuple<const char*, Unary, const char*> unary[] = {
      {"abs", &abs, "The absolute value."},
      {"sign", &sign, "-1, 0 or 1."},
      {"exp", &exp, "e to the power of x."},
      {"log", &log, "The natural logarithm."},
      {"log1p", &log1p, "log(1 + x), accurate near 0."},
      {"sqrt", &sqrt, "The square root."},
      {"rsqrt", &rsqrt, "1 / sqrt(x)."},
      {"sin", &sin, "The sine."},
      {"cos", &cos, "The cosine."},
      {"tanh", &tanh, "The hyperbolic tangent."},
      {"erf", &erf, "The error function."},
      {"sigmoid", &sigmoid, "1 / (1 + exp(-x))."},
      {"relu", &relu, "max(x, 0)."},
      {"gelu", &gelu, "The exact GELU activation."},
      {"gelu_tanh", &gelu_tanh, "GELU by the tanh approximation."},
      {"silu", &silu, "x * sigmoid(x)."},
      {"square", &square, "x * x."},
      {"reciprocal", &reciprocal, "1 / x."},
      {"floor", &floor, "The largest integer not above x."},
      {"ceil", &ceil, "The smallest integer not below x."},
      {"round", &round, "The nearest integer; halves to even."},
      {"logical_not", &logical_not, "Whether x is false."},
      {"negative", [](const Tensor& x) { return -x; }, "-x."},
  };
  for (const auto& [name, function, doc] : unary) both.def(name, function, doc);
  const auto binary = [&](const char* name, auto function, const char* doc) {
    m.def(name, function, nb::arg("a"), nb::arg("b"), doc);
  };
  binary("add", &apply<add>, "a + b.");
  binary("subtract", &apply<subtract>, "a - b.");
  binary("multiply", &apply<multiply>, "a * b.");
  binary("divide", &apply<divide>, "a / b as floats.");
  binary("floor_divide", &apply<floor_divide>, "floor(a / b).");
  binary("remainder", &apply<remainder>, "a - floor(a / b) * b.");
  binary("pow", &apply<prism::pow>, "a to the power of b.");
  binary("minimum", &apply<minimum>, "The smaller of both; propagates NaN.");
  binary("maximum", &apply<maximum>, "The larger of both; propagates NaN.");
  binary("equal", &apply<prism::equal>, "a == b.");
  binary("not_equal", &apply<prism::not_equal>, "a != b.");
  binary("less", &apply<less>, "a < b.");
  binary("less_equal", &apply<less_equal>, "a <= b.");
  binary("greater", &apply<greater>, "a > b.");
  binary("greater_equal", &apply<greater_equal>, "a >= b.");
  binary("logical_and", &apply<both_true>, "Whether both are true.");
  binary("logical_or", &apply<any_true>, "Whether one is true.");
  nb::borrow<nb::class_<Tensor>>(m.attr("Tensor"))
      .def(
          "pow",
          [](const Tensor& x, nb::handle exponent) {
            Tensor base = x;
            const auto power = operand(base, exponent);
            if (!power) throw nb::type_error("pow: the exponent must be a tensor or a number");
            return pow(base, *power);
          },
          nb::arg("exponent"));
  const auto limit = [](const Tensor& x, nb::handle low, nb::handle high) {
    Tensor result = x;
    if (!low.is_none()) result = maximum(result, *operand(result, low));
    if (!high.is_none()) result = minimum(result, *operand(result, high));
    return result;
  };
  for (const char* name : {"clip", "clamp"})
    both.def(name, limit, nb::arg("min") = nb::none(), nb::arg("max") = nb::none(),
             "x within [min, max].");
  m.def(
      "where",
      [](const Tensor& condition, nb::handle a, nb::handle b) {
        Tensor like = nb::isinstance<Tensor>(a) ? nb::cast<Tensor>(a)
                      : nb::isinstance<Tensor>(b)
                          ? nb::cast<Tensor>(b)
                          : make_tensor(a, std::nullopt, condition.device(), false);
        const auto first = operand(like, a), second = operand(like, b);
        if (!first || !second) throw nb::type_error("where: the values must be tensors or numbers");
        if (!first->tensor() && !second->tensor()) return where(condition, like, *second);
        return where(condition, *first, *second);
      },
      nb::arg("condition"), nb::arg("a"), nb::arg("b"), "a where the condition is true, else b.");
}

// A reduction in the words of NumPy (axis, keepdims) and of PyTorch (dim, keepdim).
template <class Function>
void reduction(const Both& both, const char* name, Function function, const char* doc) {
  const auto call = [function](const Tensor& x, nb::handle axis, bool keep) {
    return function(x, axes_argument(axis), keep);
  };
  both.def(name, call, nb::arg("axis") = nb::none(), nb::arg("keepdims") = false, doc);
  both.def(name, call, nb::arg("dim"), nb::arg("keepdim") = false);
}

void bind_reductions(nb::module_& m) {
  const Both both(m);
  using Reduce = Tensor (*)(const Tensor&, const Axes&, bool);
  const std::tuple<const char*, Reduce, const char*> all_of[] = {
      {"sum", &sum, "The sum over axes; over all without one."},
      {"mean", &mean, "The mean over axes."},
      {"max", &max, "The largest element over axes; propagates NaN."},
      {"min", &min, "The smallest element over axes; propagates NaN."},
      {"all", &all, "Whether all elements over axes are true."},
      {"any", &any, "Whether an element over axes is true."},
  };
  for (const auto& [name, function, doc] : all_of) reduction(both, name, function, doc);
  const auto variance_of = [](const Tensor& x, nb::handle axis, double correction, bool keep) {
    return variance(x, axes_argument(axis), correction, keep);
  };
  const auto deviation_of = [](const Tensor& x, nb::handle axis, double correction, bool keep) {
    return sqrt(variance(x, axes_argument(axis), correction, keep));
  };
  both.def("var", variance_of, nb::arg("axis") = nb::none(), nb::arg("correction") = 0.0,
           nb::arg("keepdims") = false, "The variance, divided by n - correction.");
  both.def("std", deviation_of, nb::arg("axis") = nb::none(), nb::arg("correction") = 0.0,
           nb::arg("keepdims") = false, "The standard deviation, divided by n - correction.");
  const auto place = [&](const char* name, auto function, const char* doc) {
    const auto call = [function](const Tensor& x, nb::handle axis, bool keep) {
      if (axis.is_none()) {
        const Tensor found = function(x.flatten(), 0, false);
        return keep ? found.reshape(Shape(std::vector<int64_t>(static_cast<size_t>(x.ndim()), 1)))
                    : found;
      }
      return function(x, nb::cast<int>(axis), keep);
    };
    both.def(name, call, nb::arg("axis") = nb::none(), nb::arg("keepdims") = false, doc);
    both.def(name, call, nb::arg("dim"), nb::arg("keepdim") = false);
  };
  place(
      "argmax", [](const Tensor& x, int axis, bool keep) { return argmax(x, axis, keep); },
      "The first index of the largest element, as int32.");
  place(
      "argmin", [](const Tensor& x, int axis, bool keep) { return argmin(x, axis, keep); },
      "The first index of the smallest element, as int32.");
  both.def(
      "cumsum", [](const Tensor& x, int axis) { return cumsum(x, axis); }, nb::arg("axis") = -1,
      "Sums of the elements up to each.");
  both.def(
      "softmax", [](const Tensor& x, int axis) { return softmax(x, axis); }, nb::arg("axis") = -1,
      "exp(x) / sum(exp(x)) along an axis.");
  both.def(
      "softmax", [](const Tensor& x, int axis) { return softmax(x, axis); }, nb::arg("dim"));
  both.def(
      "log_softmax", [](const Tensor& x, int axis) { return log_softmax(x, axis); },
      nb::arg("axis") = -1);
  both.def(
      "log_softmax", [](const Tensor& x, int axis) { return log_softmax(x, axis); },
      nb::arg("dim"));
}

Tensor permuted(const Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<int> order(axes.begin(), axes.end());
  if (order.empty())
    for (int axis = x.ndim(); axis-- > 0;) order.push_back(axis);
  return x.permute(order);
}

void bind_shapes(nb::module_& m) {
  const Both both(m);
  nb::class_<Tensor> type = nb::borrow<nb::class_<Tensor>>(type_of_tensor(m));
  for (const char* name : {"reshape", "view"})
    type.def(
        name,
        [](const Tensor& x, const nb::args& shape) { return x.reshape(lengths_argument(shape)); },
        nb::sig(name[0] == 'r' ? "def reshape(self, *shape: int | Sequence[int]) -> Tensor"
                               : "def view(self, *shape: int | Sequence[int]) -> Tensor"),
        "The same elements in another shape; one length may be -1.");
  m.def(
      "reshape",
      [](const Tensor& x, nb::handle shape) {
        return x.reshape(lengths_argument(nb::borrow<nb::args>(nb::make_tuple(nb::borrow(shape)))));
      },
      nb::arg("x"), nb::arg("shape"));
  type.def(
      "permute",
      [](const Tensor& x, const nb::args& axes) { return permuted(x, lengths_argument(axes)); },
      nb::sig("def permute(self, *axes: int | Sequence[int]) -> Tensor"),
      "A view with the axes in this order.");
  type.def(
      "transpose",
      [](const Tensor& x, const nb::args& axes) {
        const std::vector<int64_t> order = lengths_argument(axes);
        if (order.size() == 2 && x.ndim() != 2)
          return x.transpose(static_cast<int>(order[0]), static_cast<int>(order[1]));
        return permuted(x, order);
      },
      nb::sig("def transpose(self, *axes: int | Sequence[int]) -> Tensor"),
      "A view with the axes in this order; reversed without axes. Two axes of a larger tensor are "
      "exchanged.");
  m.def(
      "permute_dims",
      [](const Tensor& x, nb::handle axes) {
        const Axes order = axes_argument(axes);
        return x.permute(order);
      },
      nb::arg("x"), nb::arg("axes"));
  both.def(
      "squeeze",
      [](const Tensor& x, nb::handle axis) {
        Tensor result = x;
        if (axis.is_none()) {
          for (int i = x.ndim(); i-- > 0;)
            if (x.size(i) == 1) result = result.squeeze(i);
          return result;
        }
        Axes axes = axes_argument(axis);
        for (int& each : axes) each = checked_axis("squeeze", each, x.ndim());
        std::sort(axes.rbegin(), axes.rend());
        for (const int each : axes) result = result.squeeze(each);
        return result;
      },
      nb::arg("axis") = nb::none(), "Removes axes of length 1.");
  both.def("unsqueeze", &Tensor::unsqueeze, nb::arg("dim"), "Adds an axis of length 1.");
  m.def(
      "expand_dims", [](const Tensor& x, int axis) { return x.unsqueeze(axis); }, nb::arg("x"),
      nb::arg("axis") = 0);
  type.def("flatten", &Tensor::flatten, "All elements in one axis.");
  type.def(
      "expand",
      [](const Tensor& x, const nb::args& shape) {
        return x.expand(Shape(lengths_argument(shape)));
      },
      nb::sig("def expand(self, *shape: int | Sequence[int]) -> Tensor"),
      "Broadcasts to the shape, as a view.");
  m.def(
      "broadcast_to",
      [](const Tensor& x, nb::handle shape) { return x.expand(shape_argument(shape)); },
      nb::arg("x"), nb::arg("shape"));
  for (const char* name : {"concat", "concatenate", "cat"}) {
    const auto join = [](const std::vector<Tensor>& tensors, nb::handle axis) {
      if (!axis.is_none()) return concat(tensors, nb::cast<int>(axis));
      std::vector<Tensor> flat;
      for (const Tensor& each : tensors) flat.push_back(each.flatten());
      return concat(flat, 0);
    };
    m.def(name, join, nb::arg("tensors"), nb::arg("axis").none() = 0,
          "Joins along an existing axis.");
    m.def(name, join, nb::arg("tensors"), nb::arg("dim").none());
  }
  m.def(
      "stack", [](const std::vector<Tensor>& tensors, int axis) { return stack(tensors, axis); },
      nb::arg("tensors"), nb::arg("axis") = 0, "Joins along a new axis.");
  m.def(
      "stack", [](const std::vector<Tensor>& tensors, int axis) { return stack(tensors, axis); },
      nb::arg("tensors"), nb::arg("dim"));
  both.def(
      "split",
      [](const Tensor& x, nb::handle parts, int axis) {
        if (nb::isinstance<nb::int_>(parts)) return split(x, nb::cast<int64_t>(parts), axis);
        return split(x, nb::cast<std::vector<int64_t>>(parts), axis);
      },
      nb::arg("parts"), nb::arg("axis") = 0,
      "Views of equal parts, or of parts with these lengths.");
  m.def(
      "pad",
      [](const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& widths, double value) {
        std::vector<Edges> edges;
        for (const auto& [before, after] : widths) edges.push_back({before, after});
        return pad(x, edges, value);
      },
      nb::arg("x"), nb::arg("widths"), nb::arg("value") = 0.0,
      "Adds a border: (before, after) for each of the last axes.");
  both.def(
      "repeat",
      [](const Tensor& x, int64_t times, nb::handle axis) {
        return axis.is_none() ? repeat(x, times) : repeat(x, times, nb::cast<int>(axis));
      },
      nb::arg("repeats"), nb::arg("axis") = nb::none(), "Repeats each element, as in NumPy.");
  m.def(
      "tile",
      [](const Tensor& x, nb::handle times) {
        const Shape counts = shape_argument(times);
        return tile(x, std::span<const int64_t>(counts.begin(), counts.end()));
      },
      nb::arg("x"), nb::arg("repetitions"), "Repeats the whole tensor along each axis.");
  both.def(
      "flip",
      [](const Tensor& x, nb::handle axis) {
        Axes axes = axes_argument(axis);
        if (axis.is_none())
          for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
        Tensor result = x;
        for (const int each : axes) result = flip(result, each);
        return result;
      },
      nb::arg("axis") = nb::none(), "A view with the elements in reverse order.");
  both.def(
      "roll", [](const Tensor& x, int64_t shift, int axis) { return roll(x, shift, axis); },
      nb::arg("shift"), nb::arg("axis") = -1,
      "Shifts elements along an axis; the last ones come first.");
}

void bind_sorting(nb::module_& m) {
  const Both both(m);
  both.def(
      "sort",
      [](const Tensor& x, int axis, bool descending) { return sort(x, axis, descending).values; },
      nb::arg("axis") = -1, nb::arg("descending") = false, "The elements in order; stable.");
  both.def(
      "argsort",
      [](const Tensor& x, int axis, bool descending) { return argsort(x, axis, descending); },
      nb::arg("axis") = -1, nb::arg("descending") = false, "The indices that sort x, as int32.");
  const auto best = [](const Tensor& x, int64_t k, int axis, bool largest) {
    Ordered found = top_k(x, k, axis, largest);
    return nb::make_tuple(found.values, found.indices);
  };
  for (const char* name : {"topk", "top_k"})
    both.def(name, best, nb::arg("k"), nb::arg("axis") = -1, nb::arg("largest") = true,
             "The k largest elements and their indices.");
  m.def(
      "take_along_axis",
      [](const Tensor& x, const Tensor& indices, int axis) { return take_along(x, indices, axis); },
      nb::arg("x"), nb::arg("indices"), nb::arg("axis") = -1);
}

}  // namespace

Tensor remainder(const Tensor& a, const TensorOrNumber& b) {
  Tensor place;
  const Tensor& by = as_tensor(b, place, a);
  const Tensor rest = a - floor_divide(a, b) * by;
  if (!is_float(rest.dtype().plain())) return rest;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor is_itself =
      logical_and(equal(abs(by), infinity), logical_and(abs(a) < infinity, a == a));
  const Tensor same_side = logical_or(equal(a, 0.0), equal(a < 0.0, by < 0.0));
  const Tensor finite = where(is_itself, where(same_side, a, by), rest);
  const Tensor size = abs(finite);
  return where(equal(finite, 0.0), where(by < 0.0, -size, size), finite);
}

void bind_functions(nb::module_& m) {
  bind_elementwise(m);
  bind_reductions(m);
  bind_shapes(m);
  bind_sorting(m);
  const Both both(m);
  both.def(
      "matmul", [](const Tensor& x, const Tensor& other) { return matmul(x, other); },
      nb::arg("other"), "The matrix product; leading axes are batches.");
}

}  // namespace prism::python
