// Runs the cases of the conformance suite and compares the results.
#include "conformance/conformance.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/types/block_factors.h"
#include "cpu/quantise/dequantise.h"
#include "cpu/quantise/quantise.h"
#include "prism/error.h"
#include "tensor/plan/plan.h"

namespace prism {

namespace {

constexpr size_t kMeanCounts = 16;  // the fewest elements for which the mean error is checked

// Returns an empty string if the values are close enough, else the error.
std::string compare(const Values& got, const Values& wanted, const Tolerance& tolerance,
                    double& nmse) {
  if (got.size() != wanted.size())
    return fmt::format("{} elements came out, {} wanted", got.size(), wanted.size());
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], w = wanted[i];
    if (std::isnan(w) != std::isnan(g) || (std::isinf(w) && g != w) || (std::isinf(g) && g != w))
      return fmt::format("element {} is {}, wanted {}", i, g, w);
    if (!std::isfinite(w)) continue;
    error += (g - w) * (g - w);
    power += w * w;
    if (std::fabs(g - w) > tolerance.absolute + tolerance.relative * std::fabs(w))
      return fmt::format("element {} is {:.9g}, wanted {:.9g}", i, g, w);
  }
  nmse = std::max(nmse, power > 0 ? error / power : error);
  // With few elements a small sum makes the relative error large; the bound per element suffices.
  if (got.size() >= kMeanCounts && nmse > tolerance.nmse)
    return fmt::format("normalised mean square error {:.3g} above {:.3g}", nmse, tolerance.nmse);
  return {};
}

// The quantised values. For types without a quantiser the blocks are made from the values' digits.
std::vector<std::byte> blocks_of(const CaseInput& input) {
  const BlockType type = input.type.block();
  std::vector<std::byte> blocks(input.type.row_bytes(input.values.size()));
  const std::vector<float> values(input.values.begin(), input.values.end());
  if (cpu::can_quantise(type)) {
    cpu::quantise(type, values.data(), blocks.data(), values.size());
    return blocks;
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = static_cast<std::byte>(static_cast<int64_t>(values[i % values.size()] * 1e6f) >> 3);
  for (size_t at = 0; at < blocks.size(); at += input.type.block_bytes())
    set_block_factors(type, blocks.data() + at, 2.0f);
  return blocks;
}

Tensor tensor_of(const CaseInput& input, const Device& device) {
  const Tensor base = input.type.is_block()
                          ? from_bytes(blocks_of(input), input.shape, input.type, device)
                          : from_doubles(input.values, input.shape, input.type, device);
  return input.view ? input.view(base) : base;
}

ReferenceInput reference_input(const CaseInput& input) {
  if (!input.type.is_block()) {
    const Tensor seen = tensor_of(input, Device::cpu());
    return {seen.shape(), seen.to_doubles()};
  }
  std::vector<float> decoded(input.values.size());
  cpu::dequantise(input.type.block(), blocks_of(input).data(), decoded.data(), decoded.size());
  return {input.shape, Values(decoded.begin(), decoded.end())};
}

}  // namespace

Tolerance Tolerance::elementwise(ElementType type) {
  if (type.is_block()) return {5e-4, 0.1, 0.1};
  switch (type.plain()) {
    case DType::f32:
      return {1e-10, 1e-5, 1e-6};
    case DType::f64:
      return {1e-20, 1e-9, 1e-12};
    case DType::f16:
      return {1e-6, 2e-3, 1e-4};
    case DType::bf16:
      return {1e-4, 1.6e-2, 1e-3};
    default:
      return exact();
  }
}

Tolerance Tolerance::reduction(ElementType type, double scale) {
  Tolerance result = elementwise(type);
  if (type == ElementType(DType::f32)) result = {1e-7, 1e-5, 1e-5};
  result.absolute *= std::max(1.0, scale);
  return result;
}

Values CaseRandom::uniform(int64_t count, double low, double high) {
  std::uniform_real_distribution<double> draw(low, high);
  Values values(static_cast<size_t>(count));
  for (double& value : values) value = draw(engine_);
  return values;
}

Values CaseRandom::normal(int64_t count, double scale) {
  std::normal_distribution<double> draw(0, scale);
  Values values(static_cast<size_t>(count));
  for (double& value : values) value = draw(engine_);
  return values;
}

Values CaseRandom::integers(int64_t count, int64_t low, int64_t high) {
  Values values(static_cast<size_t>(count));
  for (double& value : values) value = static_cast<double>(between(low, high));
  return values;
}

int64_t CaseRandom::between(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine_);
}

CaseInput CaseRandom::input(const Shape& shape, ElementType type, double low, double high) {
  const bool whole = type.is_block() || (!is_float(type.plain()));
  CaseInput result;
  result.type = type;
  result.shape = shape;
  const int64_t way = type.is_block() || shape.rank() == 0 ? 0 : between(0, 8);
  if (way == 6 && shape.rank() >= 2) {  // the last two axes transposed
    std::swap(result.shape[-1], result.shape[-2]);
    result.view = [](const Tensor& t) { return t.transpose(); };
  } else if (way == 7) {  // every second element of a longer last axis
    result.shape[-1] = shape[-1] * 2 + 1;
    result.view = [n = shape[-1]](const Tensor& t) { return t.slice(-1, 1, 2 * n + 1, 2); };
  } else if (way == 8) {  // offset by one row
    result.shape[0] = shape[0] + 1;
    result.view = [n = shape[0]](const Tensor& t) { return t.slice(0, 1, n + 1); };
  }
  const int64_t count = result.shape.elements();
  result.values = whole && !type.is_block()
                      ? integers(count, static_cast<int64_t>(low), static_cast<int64_t>(high))
                      : uniform(count, low, high);
  result.differentiable = !type.is_block() && is_float(type.plain());
  return result;
}

std::vector<OpCase> all_cases(uint64_t seed, const std::string& op) {
  std::vector<OpCase> cases;
  for (const OpFamily& family : op_families()) {
    // Each family has its own random numbers, so its cases do not depend on other families.
    CaseRandom random(seed ^ std::hash<std::string>{}(family.name));
    const size_t before = cases.size();
    family.add_cases(cases, random);
    for (size_t i = before; i < cases.size(); ++i) cases[i].family = family.name;
  }
  if (!op.empty()) std::erase_if(cases, [&](const OpCase& each) { return each.op != op; });
  return cases;
}

CaseResult run_case(const OpCase& test, const Device& device) {
  CaseResult result{test.op, test.what, device.id(), false, false, {}, false, 0};
  try {
    std::vector<ReferenceInput> reference_inputs;
    std::vector<Tensor> inputs;
    for (const CaseInput& each : test.inputs) {
      reference_inputs.push_back(reference_input(each));
      inputs.push_back(tensor_of(each, device));
    }
    const std::vector<Values> wanted = test.reference(reference_inputs);
    const std::vector<Tensor> outputs = test.compute(inputs);
    result.ran = true;
    Plan plan(outputs);
    for (const PlanStep& step : plan.steps()) {
      if (step.reason.empty()) continue;
      result.fell_back = true;
      result.reason = step.reason;
    }
    // Fill the outputs, so that unwritten memory cannot pass by chance.
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].is_evaluated()) continue;  // a view of an input
      const Storage& storage = *plan.output(i);
      write_storage(storage, 0, std::vector<std::byte>(storage.bytes, std::byte{0xCD}));
    }
    plan.run();
    if (outputs.size() != wanted.size()) {
      result.reason = fmt::format("{} outputs, {} wanted", outputs.size(), wanted.size());
      return result;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      // Read the plan's output directly; reading the tensor would compute it again.
      auto node = std::make_shared<Node>();
      node->outputs = outputs[i].node()->outputs;
      node->device = outputs[i].device();
      node->storage.resize(node->outputs.size());
      node->storage[outputs[i].output()] = plan.output(i);
      const Tensor computed(node, outputs[i].output(), outputs[i].layout());
      const std::string wrong =
          compare(computed.to_doubles(), wanted[i], test.tolerance, result.nmse);
      if (wrong.empty()) continue;
      result.reason = outputs.size() > 1 ? fmt::format("output {}: {}", i, wrong) : wrong;
      return result;
    }
    result.right = true;
  } catch (const std::exception& error) {
    result.reason = error.what();
  }
  return result;
}

}  // namespace prism
