// Gradients and compiled functions. Python's functions stay with Python: what is bound here calls
// them only during a call.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/compile.h"
#include "prism/grad.h"

namespace prism::python {
namespace {

// The arguments of a call with its tensors replaced.
nb::tuple with_tensors(const nb::tuple& arguments, std::span<const Tensor> tensors) {
  nb::list result;
  size_t next = 0;
  for (nb::handle each : arguments)
    if (nb::isinstance<Tensor>(each))
      result.append(tensors[next++]);
    else
      result.append(each);
  return nb::tuple(result);
}

std::vector<Tensor> tensors_of(const nb::tuple& arguments) {
  std::vector<Tensor> tensors;
  for (nb::handle each : arguments)
    if (nb::isinstance<Tensor>(each)) tensors.push_back(nb::cast<Tensor>(each));
  return tensors;
}

nb::object call(nb::handle function, const nb::tuple& arguments) {
  return function(*nb::borrow<nb::args>(arguments));
}

nb::tuple value_and_gradients(nb::handle function, const nb::tuple& arguments) {
  const std::vector<Tensor> inputs = tensors_of(arguments);
  if (inputs.empty())
    throw nb::type_error("value_and_grad: the function is called without a tensor");
  const TensorFunction f = [&](std::span<const Tensor> given) {
    const nb::object value = call(function, with_tensors(arguments, given));
    if (!nb::isinstance<Tensor>(value))
      throw nb::type_error("value_and_grad: the function must return a tensor with one element");
    return nb::cast<Tensor>(value);
  };
  const ValueAndGrad result = value_and_grad(f)(inputs);
  nb::list gradients;
  for (const Tensor& each : result.gradients) gradients.append(each);
  return nb::make_tuple(result.value, nb::tuple(gradients));
}

// The plans of one function. The function is given to each call, so that no reference from here
// keeps it alive.
class CompiledPlans {
  // Calls work(inputs) while trace() can call the function.
  template <class Work>
  auto enter(nb::handle function, const nb::tuple& arguments, Work work) {
    for (nb::handle each : arguments)
      if (!nb::isinstance<Tensor>(each))
        throw nb::type_error(
            "compile: the arguments must be tensors; other values become constants "
            "of the plan if the function captures them");
    const std::vector<Tensor> inputs = tensors_of(arguments);
    function_ = function;
    struct Leave {
      nb::handle& function;
      ~Leave() { function = {}; }
    } leave{function_};
    return work(std::span<const Tensor>(inputs));
  }

 public:
  CompiledPlans() : compiled_([this](std::span<const Tensor> inputs) { return trace(inputs); }) {}
  CompiledPlans(const CompiledPlans&) = delete;

  nb::object operator()(nb::handle function, const nb::tuple& arguments) {
    std::vector<Tensor> outputs = enter(
        function, arguments, [&](std::span<const Tensor> inputs) { return compiled_(inputs); });
    deliver_warnings();
    if (is_single_) return nb::cast(outputs.at(0));
    nb::list results;
    for (const Tensor& each : outputs) results.append(each);
    return nb::tuple(results);
  }

  std::string explain(nb::handle function, const nb::tuple& arguments) {
    return enter(function, arguments,
                 [&](std::span<const Tensor> inputs) { return compiled_.explain(inputs); });
  }

  size_t plans() const { return compiled_.plans(); }

 private:
  std::vector<Tensor> trace(std::span<const Tensor> inputs) {
    nb::list arguments;
    for (const Tensor& each : inputs) arguments.append(each);
    const nb::object result = call(function_, nb::tuple(arguments));
    is_single_ = nb::isinstance<Tensor>(result);
    if (is_single_) return {nb::cast<Tensor>(result)};
    std::vector<Tensor> outputs;
    if (!nb::isinstance<nb::sequence>(result) || !nb::try_cast(result, outputs))
      throw nb::type_error("compile: the function must return a tensor or a sequence of tensors");
    return outputs;
  }

  CompiledFunction compiled_;
  nb::handle function_;
  bool is_single_ = true;
};

class NoGradScope {
 public:
  NoGradScope() = default;
  NoGradScope(const NoGradScope&) = delete;
  void enter() { scopes_.push_back(std::make_unique<NoGrad>()); }
  void leave() { scopes_.pop_back(); }

 private:
  std::vector<std::unique_ptr<NoGrad>> scopes_;
};

}  // namespace

void bind_gradients(nb::module_& m) {
  m.def(
      "gradients",
      [](const Tensor& output, const std::vector<Tensor>& inputs, nb::handle seed) {
        return gradients(output, inputs, seed.is_none() ? Tensor() : nb::cast<Tensor>(seed));
      },
      nb::arg("output"), nb::arg("inputs"), nb::arg("seed") = nb::none(),
      nb::sig("def gradients(output: Tensor, inputs: Sequence[Tensor], seed: Tensor | None = None) "
              "-> list[Tensor]"),
      "The gradients of output with respect to each input.");
  m.def("_recompute", [](nb::handle function, const nb::tuple& arguments) {
    const TensorFunction f = [&](std::span<const Tensor>) {
      const nb::object value = call(function, arguments);
      if (!nb::isinstance<Tensor>(value))
        throw nb::type_error("recompute: the function must return a tensor");
      return nb::cast<Tensor>(value);
    };
    return recompute(f, {});
  });
  m.def("_value_and_grad", &value_and_gradients, nb::arg("function"), nb::arg("arguments"));
  m.def(
      "eval",
      [](const nb::args& tensors) {
        const std::vector<Tensor> all = tensors_of(tensors);
        eval(all);
        deliver_warnings();
      },
      nb::sig("def eval(*tensors: Tensor) -> None"), "Computes several tensors in one plan.");
  m.def("is_grad_enabled", [] { return !NoGrad::active(); });
  nb::class_<CompiledPlans>(m, "_CompiledPlans")
      .def(nb::init<>())
      .def("__call__", &CompiledPlans::operator(), nb::arg("function"), nb::arg("arguments"))
      .def("explain", &CompiledPlans::explain, nb::arg("function"), nb::arg("arguments"))
      .def_prop_ro("plans", &CompiledPlans::plans);
  nb::class_<NoGradScope>(m, "_NoGradScope")
      .def(nb::init<>())
      .def("enter", &NoGradScope::enter)
      .def("leave", &NoGradScope::leave);
}

}  // namespace prism::python
