// Construction, fusion and names of chains.
#include "tensor/chain/chain.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace prism {

DType register_type(DType stored) {
  switch (stored) {
    case DType::b1:
    case DType::i64:
    case DType::f64:
      return stored;
    case DType::f16:
    case DType::bf16:
    case DType::f32:
      return DType::f32;
    default:
      return DType::i32;
  }
}

size_t Chain::constants() const {
  return static_cast<size_t>(std::ranges::count(steps, Kind::constant, &Step::kind));
}

std::string Chain::key() const {
  std::string key;
  for (const Step& s : steps) {
    switch (s.kind) {
      case Kind::input:
        key += fmt::format("x{}:{} ", s.index, dtype_name(s.stored));
        break;
      case Kind::constant:
        key += fmt::format("k:{} ", dtype_name(s.type));
        break;
      case Kind::cast:
        key += fmt::format("{}({}) ", dtype_name(s.stored), s.a);
        break;
      case Kind::apply:
        key += fmt::format("{}:{}({},{},{}) ", scalar_op_name(s.op), dtype_name(s.type), s.a, s.b,
                           s.c);
        break;
    }
  }
  return key + fmt::format("> {}:{}", result, dtype_name(output));
}

std::string Chain::text() const {
  std::vector<std::string> texts;
  for (const Step& s : steps) {
    switch (s.kind) {
      case Kind::input:
        texts.push_back(fmt::format("x{}", s.index));
        break;
      case Kind::constant:
        texts.push_back(fmt::format("{:g}", s.number));
        break;
      case Kind::cast:
        texts.push_back(fmt::format("{}({})", dtype_name(s.stored), texts[s.a]));
        break;
      case Kind::apply: {
        std::string call = fmt::format("{}({}", scalar_op_name(s.op), texts[s.a]);
        if (scalar_op_operands(s.op) > 1) call += ", " + texts[s.b];
        if (scalar_op_operands(s.op) > 2) call += ", " + texts[s.c];
        texts.push_back(call + ")");
      }
    }
  }
  return texts.empty() ? "" : texts[result];
}

uint16_t Chain::add_input(DType stored) {
  Step step;
  step.kind = Kind::input;
  step.stored = stored;
  step.type = register_type(stored);
  step.index = static_cast<uint16_t>(inputs.size());
  inputs.push_back(stored);
  steps.push_back(step);
  return result = static_cast<uint16_t>(steps.size() - 1);
}

uint16_t Chain::add_constant(double number, DType type) {
  Step step;
  step.kind = Kind::constant;
  step.type = type;
  step.number = number;
  steps.push_back(step);
  return result = static_cast<uint16_t>(steps.size() - 1);
}

uint16_t Chain::add_cast(uint16_t a, DType stored) {
  Step step;
  step.kind = Kind::cast;
  step.stored = stored;
  step.type = register_type(stored);
  step.a = a;
  steps.push_back(step);
  return result = static_cast<uint16_t>(steps.size() - 1);
}

uint16_t Chain::add_apply(ScalarOp op, uint16_t a, uint16_t b, uint16_t c) {
  Step step;
  step.kind = Kind::apply;
  step.op = op;
  step.a = a;
  step.b = b;
  step.c = c;
  step.type = is_comparison(op) || is_logical(op) ? DType::b1
              : op == ScalarOp::select            ? steps[b].type
                                                  : steps[a].type;
  steps.push_back(step);
  return result = static_cast<uint16_t>(steps.size() - 1);
}

Chain joined(const Chain& consumer, size_t input, const Chain& producer) {
  Chain chain;
  chain.output = consumer.output;
  // The producer's inputs follow the consumer's other inputs; its steps come first.
  const size_t others = consumer.inputs.size() - 1;
  for (size_t i = 0; i < consumer.inputs.size(); ++i)
    if (i != input) chain.inputs.push_back(consumer.inputs[i]);
  chain.inputs.insert(chain.inputs.end(), producer.inputs.begin(), producer.inputs.end());
  for (Chain::Step step : producer.steps) {
    if (step.kind == Chain::Kind::input) step.index = static_cast<uint16_t>(step.index + others);
    chain.steps.push_back(step);
  }
  std::vector<uint16_t> moved;
  for (Chain::Step step : consumer.steps) {
    if (step.kind == Chain::Kind::input && step.index == input) {
      moved.push_back(producer.result);
      continue;
    }
    if (step.kind == Chain::Kind::input && step.index > input) --step.index;
    if (step.kind == Chain::Kind::apply || step.kind == Chain::Kind::cast) {
      step.a = moved[step.a];
      if (step.kind == Chain::Kind::apply && scalar_op_operands(step.op) > 1)
        step.b = moved[step.b];
      if (step.kind == Chain::Kind::apply && scalar_op_operands(step.op) > 2)
        step.c = moved[step.c];
    }
    moved.push_back(static_cast<uint16_t>(chain.steps.size()));
    chain.steps.push_back(step);
  }
  chain.result = moved[consumer.result];
  return chain;
}

Chain simplified(const Chain& chain) {
  Chain result;
  result.inputs = chain.inputs;
  result.output = chain.output;
  // Fold steps whose operands are all constants.
  std::vector<Chain::Step> steps = chain.steps;
  for (Chain::Step& s : steps) {
    if (s.kind != Chain::Kind::apply) continue;
    const int operands = scalar_op_operands(s.op);
    const auto number = [&](uint16_t v) { return steps[v].kind == Chain::Kind::constant; };
    if (!number(s.a) || (operands > 1 && !number(s.b)) || (operands > 2 && !number(s.c))) continue;
    const DType type = steps[operands > 2 ? s.b : s.a].type;
    if (type == DType::i64) continue;  // constants are doubles, which cannot hold every i64
    s.number = evaluate(s.op, type, steps[s.a].number, operands > 1 ? steps[s.b].number : 0,
                        operands > 2 ? steps[s.c].number : 0);
    s.kind = Chain::Kind::constant;
    s.a = s.b = s.c = 0;
  }
  std::vector<bool> used(steps.size(), false);
  used[chain.result] = true;
  for (size_t i = steps.size(); i-- > 0;) {
    const Chain::Step& s = steps[i];
    if (!used[i] || s.kind == Chain::Kind::input || s.kind == Chain::Kind::constant) continue;
    used[s.a] = true;
    if (s.kind == Chain::Kind::apply && scalar_op_operands(s.op) > 1) used[s.b] = true;
    if (s.kind == Chain::Kind::apply && scalar_op_operands(s.op) > 2) used[s.c] = true;
  }
  std::vector<uint16_t> moved(steps.size(), 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!used[i]) continue;
    Chain::Step s = steps[i];
    s.a = moved[s.a];
    s.b = moved[s.b];
    s.c = moved[s.c];
    moved[i] = static_cast<uint16_t>(result.steps.size());
    result.steps.push_back(s);
  }
  result.result = moved[chain.result];
  return result;
}

double evaluate(ScalarOp op, DType type, double a, double b, double c) {
  const bool integer = type == DType::i32 || type == DType::i64;
  const auto kept = [&](double value) {
    if (type == DType::f32) return static_cast<double>(static_cast<float>(value));
    if (type == DType::i32)
      return static_cast<double>(
          static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(value))));
    return value;
  };
  switch (op) {
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  case ScalarOp::name: {                                                                       \
    const double x = a;                                                                        \
    return kept(reference);                                                                    \
  }
#include "base/types/float_functions.inc"
    case ScalarOp::neg:
      return kept(-a);
    case ScalarOp::abs:
      return kept(std::fabs(a));
    case ScalarOp::sign:
      return std::isnan(a) ? a : (a > 0) - (a < 0);
    case ScalarOp::relu:
      return std::isnan(a) ? a : std::max(a, 0.0);
    case ScalarOp::square:
      return kept(a * a);
    case ScalarOp::logical_not:
      return a == 0;
    case ScalarOp::add:
      return kept(a + b);
    case ScalarOp::sub:
      return kept(a - b);
    case ScalarOp::mul:
      return kept(a * b);
    case ScalarOp::div:
      return integer ? (b == 0 ? 0 : kept(std::trunc(a / b))) : kept(a / b);
    case ScalarOp::pow:
      return kept(std::pow(a, b));
    case ScalarOp::min:
      return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    case ScalarOp::max:
      return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    case ScalarOp::gt:
      return a > b;
    case ScalarOp::ge:
      return a >= b;
    case ScalarOp::logical_and:
      return a != 0 && b != 0;
    case ScalarOp::logical_or:
      return a != 0 || b != 0;
    case ScalarOp::select:
      return a != 0 ? b : c;
  }
  return 0;
}

}  // namespace prism
