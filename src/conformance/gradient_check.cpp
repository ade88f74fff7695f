// Gradients of conformance cases, by finite differences and by the graph.
#include "conformance/gradient_check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "prism/compile.h"
#include "prism/grad.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"

namespace prism {

namespace {

constexpr double kStep = 1e-5;  // balances truncation and rounding errors of about 1e-10 in f64
constexpr double kFineStep = 1e-7;
constexpr size_t kMostSteps = 48;  // perturbed elements of an input, spread evenly

bool is_variable(const CaseInput& input) { return input.differentiable && !input.type.is_block(); }

Tensor base_tensor(const CaseInput& input, const Device& device, bool in_f64) {
  const ElementType type = in_f64 && is_variable(input) ? ElementType(DType::f64) : input.type;
  return from_doubles(input.values, input.shape, type, device);
}

// Loss weights without a symmetry that an op could cancel.
Tensor weights_like(const Tensor& output) {
  Values weights;
  for (int64_t i = 0; i < output.elements(); ++i)
    weights.push_back(std::cos(1.7 * static_cast<double>(i) + 0.3));
  return from_doubles(weights, output.shape(), output.type(), output.device());
}

Tensor loss_of(const OpCase& test, std::span<const Tensor> bases) {
  std::vector<Tensor> seen;
  for (size_t i = 0; i < bases.size(); ++i)
    seen.push_back(test.inputs[i].view ? test.inputs[i].view(bases[i]) : bases[i]);
  Tensor loss;
  for (const Tensor& output : test.compute(seen)) {
    if (output.type().is_block() || !is_float(output.type().plain())) continue;
    const Tensor part = sum(output * weights_like(output));
    loss = loss ? loss + part : part;
  }
  return loss;
}

std::vector<Values> graph_gradients(const OpCase& test, const Device& device, bool in_f64) {
  std::vector<Tensor> bases, variables;
  for (const CaseInput& input : test.inputs) {
    bases.push_back(base_tensor(input, device, in_f64));
    if (!is_variable(input)) continue;
    bases.back().set_requires_grad();
    variables.push_back(bases.back());
  }
  const std::vector<Tensor> found = gradients(loss_of(test, bases), variables);
  eval(found);
  std::vector<Values> values;
  for (const Tensor& each : found) values.push_back(each.to_doubles());
  return values;
}

// absolute: what the rounding of terms of about 1 leaves where they cancel.
std::string compare_gradients(const Values& got, const Values& wanted, double relative,
                              double absolute, const char* who, size_t input) {
  double scale = 0;
  for (const double w : wanted) scale = std::max(scale, std::fabs(w));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i])) continue;  // not perturbed
    if (!(std::fabs(got[i] - wanted[i]) <= relative * (std::fabs(wanted[i]) + scale) + absolute))
      return fmt::format("{}: gradient of input {} at {} is {:.7g}, wanted {:.7g}", who, input, i,
                         got[i], wanted[i]);
  }
  return {};
}

// Central differences of the loss in f64; NaN for elements that were not perturbed.
std::vector<Values> differences(const OpCase& test, double step) {
  CompiledFunction loss = compile(
      [&](std::span<const Tensor> bases) { return std::vector<Tensor>{loss_of(test, bases)}; });
  std::vector<Tensor> bases;
  for (const CaseInput& input : test.inputs)
    bases.push_back(base_tensor(input, Device::cpu(), true));
  std::vector<Values> results;
  for (size_t n = 0; n < test.inputs.size(); ++n) {
    const CaseInput& input = test.inputs[n];
    if (!is_variable(input)) continue;
    Values slopes(input.values.size(), NAN);
    const size_t stride = std::max<size_t>(1, slopes.size() / kMostSteps);
    const Tensor kept = bases[n];
    for (size_t i = 0; i < slopes.size(); i += stride) {
      double ends[2];
      for (int side = 0; side < 2; ++side) {
        Values moved = input.values;
        moved[i] += side ? step : -step;
        bases[n] = from_doubles(moved, input.shape, DType::f64, Device::cpu());
        ends[side] = loss(bases)[0].item();
      }
      slopes[i] = (ends[1] - ends[0]) / (2 * step);
    }
    bases[n] = kept;
    results.push_back(std::move(slopes));
  }
  return results;
}

std::string compare_with_differences(const OpCase& test, const std::vector<Values>& exact,
                                     double step) {
  const std::vector<Values> slopes = differences(test, step);
  std::string wrong;
  for (size_t i = 0; i < exact.size() && wrong.empty(); ++i)
    wrong = compare_gradients(exact[i], slopes[i], 1e-5, 1e-7, "f64 against differences", i);
  return wrong;
}

}  // namespace

CaseResult run_gradient_case(const OpCase& test, const Device& device) {
  CaseResult result{test.op, test.what + ", gradient", device.id(), true, false, {}, false, 0};
  try {
    const std::vector<Values> exact = graph_gradients(test, Device::cpu(), true);
    const std::vector<Values> found = graph_gradients(test, device, false);
    result.reason = compare_with_differences(test, exact, kStep);
    // If two elements swap order within a step (max, sort), the loss has a kink and the difference
    // is not a slope. A smaller step avoids the kink; a wrong gradient fails with both steps.
    if (!result.reason.empty()) result.reason = compare_with_differences(test, exact, kFineStep);
    for (size_t i = 0; i < exact.size() && result.reason.empty(); ++i)
      result.reason = compare_gradients(found[i], exact[i], 2e-5, 2e-6, "against f64", i);
    result.right = result.reason.empty();
  } catch (const std::exception& error) {
    result.reason = error.what();
  }
  return result;
}

}  // namespace prism
