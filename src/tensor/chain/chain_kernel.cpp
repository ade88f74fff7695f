// The kernel of a chain: a lane loads its elements, applies the steps and stores the result.
#include "tensor/chain/chain_kernel.h"

#include <array>

#include <fmt/format.h>

namespace prism {

using namespace dsl;

std::string ChainAccess::key() const {
  const std::string over = taken_over < 0 ? "" : fmt::format(" over {}", taken_over);
  std::string fours = by_four ? "v" : "";
  for (const bool each : repeated) fours += each ? '1' : '4';
  return fmt::format("{}{}{}", rank, fours, over);
}

size_t ChainAccess::params(size_t inputs) const {
  if (rank == 0) return 1;
  const auto axes = static_cast<size_t>(rank);
  return axes + inputs * (axes + 1);  // the count and all lengths but one; strides and offsets
}

bool is_chain_param(const Chain::Step& step) {
  return step.kind == Chain::Kind::constant && (step.type == DType::f32 || step.type == DType::i32);
}

std::vector<ir::Param> chain_params(const Chain& chain) {
  std::vector<ir::Param> params;
  for (const Chain::Step& step : chain.steps)
    if (is_chain_param(step)) params.push_back({fmt::format("k{}", params.size()), step.type});
  return params;
}

std::string chain_kernel_key(const Chain& chain, const ChainAccess& access) {
  std::string key = "chain " + access.key() + " " + chain.key();
  for (const Chain::Step& step : chain.steps)  // constants that are part of the code
    if (step.kind == Chain::Kind::constant && !is_chain_param(step))
      key += fmt::format(" {}", step.number);
  return key;
}

Value emit_chain(const Chain& chain, std::span<const Value> inputs,
                 std::span<const Value> constants) {
  std::vector<Value> values;
  size_t next_constant = 0;
  for (const Chain::Step& step : chain.steps) {
    switch (step.kind) {
      case Chain::Kind::input:
        values.push_back(inputs[step.index]);
        break;
      case Chain::Kind::constant:
        if (is_chain_param(step))
          values.push_back(constants[next_constant++]);
        else if (step.type == DType::f64)
          values.push_back(constant(step.type, step.number));
        else
          values.push_back(constant(step.type, static_cast<int64_t>(step.number)));
        break;
      case Chain::Kind::cast:
        values.push_back(emit_cast(values[step.a], step.stored));
        break;
      case Chain::Kind::apply:
        values.push_back(emit_scalar_op(step.op, values[step.a], values[step.b], values[step.c]));
        break;
    }
  }
  return emit_cast(values[chain.result], register_type(chain.output));
}

ir::Kernel chain_kernel(const Chain& chain, const ChainAccess& access) {
  return kernel("elementwise", 256, [&] {
    std::vector<Array> x;
    for (int i = 0; i < static_cast<int>(chain.inputs.size()); ++i)
      if (i != access.taken_over)
        x.push_back(in(fmt::format("x{}", i), kernel_type(chain.inputs[static_cast<size_t>(i)])));
    const DType type = kernel_type(chain.output);
    const Array y = access.taken_over < 0 ? out("y", type) : inout("y", type);
    if (access.taken_over >= 0) x.insert(x.begin() + access.taken_over, y);
    const Value count = param("count", u32);
    std::vector<Value> lengths;
    for (int axis = 1; axis < access.rank; ++axis)
      lengths.push_back(param(fmt::format("length{}", axis), u32));
    std::vector<std::vector<Value>> strides(x.size());
    std::vector<Value> offsets;
    for (size_t i = 0; access.rank > 0 && i < x.size(); ++i) {
      for (int axis = 0; axis < access.rank; ++axis)
        strides[i].push_back(param(fmt::format("stride{}_{}", i, axis), u32));
      offsets.push_back(param(fmt::format("offset{}", i), u32));
    }
    std::vector<Value> constants;
    for (const ir::Param& each : chain_params(chain))
      constants.push_back(param(each.name, each.type));

    const auto indices = [&](Value i) {
      std::vector<Value> coordinates;  // innermost first
      Value rest = i;
      for (int axis = access.rank - 1; axis >= 1; --axis) {
        const Value length = lengths[static_cast<size_t>(axis - 1)], quotient = rest / length;
        coordinates.push_back(rest - quotient * length);
        rest = quotient;
      }
      coordinates.push_back(rest);
      std::vector<Value> all;
      for (size_t n = 0; n < x.size(); ++n) {
        Value index = access.rank > 0 ? offsets[n] : i;
        for (int axis = 0; axis < access.rank; ++axis)
          index = index + coordinates[static_cast<size_t>(access.rank - 1 - axis)] *
                              strides[n][static_cast<size_t>(axis)];
        all.push_back(index);
      }
      return all;
    };
    const auto one = [&](Value i) {
      const std::vector<Value> at = indices(i);
      std::vector<Value> loaded;
      for (size_t n = 0; n < x.size(); ++n)
        loaded.push_back(from_loaded(x[n].load(at[n]), chain.inputs[n]));
      y[i] = to_stored(emit_chain(chain, loaded, constants), chain.output);
    };
    const auto is_repeated = [&](size_t n) { return access.rank > 0 && access.repeated[n]; };
    // at: of the elements, in fours where they are not repeated.
    const auto four = [&](Value i, const std::vector<Value>& at) {
      std::vector<Value> fours;
      for (size_t n = 0; n < x.size(); ++n)
        fours.push_back(is_repeated(n) ? x[n].load(at[n]) : x[n].load(at[n] * 4u, 4));
      std::vector<Value> results;
      for (uint32_t lane = 0; lane < 4; ++lane) {
        std::vector<Value> loaded;
        for (size_t n = 0; n < x.size(); ++n)
          loaded.push_back(
              from_loaded(is_repeated(n) ? fours[n] : fours[n][lane], chain.inputs[n]));
        results.push_back(to_stored(emit_chain(chain, loaded, constants), chain.output));
      }
      y.store(i * 4u, vec(results[0], results[1], results[2], results[3]));
    };

    const Value i = global_id();
    if (!access.by_four) {
      if_(i < count, [&] { one(i); });
      return;
    }
    if (access.rank > 0) {
      if_(i < count, [&] { four(i, indices(i)); });
      return;
    }
    const Value first = i * 4u;
    if_(
        first + 3u < count, [&] { four(i, std::vector<Value>(x.size(), i)); },
        [&] { for_(first, count, 1u, [&](Value each) { one(each); }); });
  });
}

}  // namespace prism
