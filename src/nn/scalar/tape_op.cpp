// The op that runs a tape: each level is one launch, and the backward pass goes the other way.
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/types/scalar_op.h"
#include "nn/scalar/tape.h"
#include "prism/compile.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism::nn {

namespace {

using namespace dsl;
using dsl::Value;  // a value of a kernel, not a scalar of a graph

float forward(const TapeEntry& entry, float a, float b) {
  switch (static_cast<ScalarCode>(entry.code)) {
    case ScalarCode::leaf:
      break;
    case ScalarCode::add:
      return a + b;
    case ScalarCode::sub:
      return a - b;
    case ScalarCode::mul:
      return a * b;
    case ScalarCode::div:
      return a / b;
    case ScalarCode::pow:
      return std::pow(a, entry.exponent);
    case ScalarCode::exp:
      return std::exp(a);
    case ScalarCode::log:
      return std::log(a);
    case ScalarCode::tanh:
      return std::tanh(a);
    case ScalarCode::relu:
      return a > 0 ? a : 0;
  }
  return 0;
}

// The derivative of an entry with the value y by one of its operands.
float slope(const TapeEntry& entry, bool by_second, float a, float b, float y) {
  switch (static_cast<ScalarCode>(entry.code)) {
    case ScalarCode::leaf:
      break;
    case ScalarCode::add:
      return 1;
    case ScalarCode::sub:
      return by_second ? -1.0f : 1.0f;
    case ScalarCode::mul:
      return by_second ? a : b;
    case ScalarCode::div:
      return by_second ? -y / b : 1 / b;
    case ScalarCode::pow:
      return entry.exponent * std::pow(a, entry.exponent - 1);
    case ScalarCode::exp:
      return y;
    case ScalarCode::log:
      return 1 / a;
    case ScalarCode::tanh:
      return 1 - y * y;
    case ScalarCode::relu:
      return a > 0 ? 1.0f : 0.0f;
  }
  return 0;
}

// The same as kernel code: the results of all functions, chosen by the entry's code.
Value power(Value a, Value exponent) {
  return emit_scalar_op(ScalarOp::pow, a, exponent, exponent);
}

struct Branch {
  ScalarCode code;
  std::function<Value()> value;
};

Value by_code(Value code, const std::vector<Branch>& branches) {
  Var result(f32, 0.0f, "result");
  for (const Branch& each : branches)
    if_(code == static_cast<int32_t>(each.code), [&] { result = each.value(); });
  return result;
}

struct LoadedEntry {
  Value code, a, b, exponent;
  LoadedEntry(const Array& entries, Value i)
      : code(entries.load(i * 4u)),
        a(cast(u32, entries.load(i * 4u + 1u))),
        b(cast(u32, entries.load(i * 4u + 2u))),
        exponent(bitcast(f32, entries.load(i * 4u + 3u))) {}
};

ir::Kernel leaves_kernel() {
  return kernel("scalar_leaves", 256, [] {
    auto x = in("x", f32);
    auto data = out("data", f32);
    const Value count = param("count", u32), i = global_id();
    if_(i < count, [&] { data[i] = x[i]; });
  });
}

ir::Kernel forward_kernel() {
  return kernel("scalar_forward", 256, [] {
    auto entries = in("entries", i32);
    auto data = inout("data", f32);
    const Value first = param("first", u32), count = param("count", u32);
    if_(global_id() < count, [&] {
      const Value i = first + global_id();
      const LoadedEntry entry(entries, i);
      const Value a = data.load(entry.a), b = data.load(entry.b);
      data[i] = by_code(entry.code, {{ScalarCode::add, [&] { return a + b; }},
                                     {ScalarCode::sub, [&] { return a - b; }},
                                     {ScalarCode::mul, [&] { return a * b; }},
                                     {ScalarCode::div, [&] { return a / b; }},
                                     {ScalarCode::pow, [&] { return power(a, entry.exponent); }},
                                     {ScalarCode::exp, [&] { return exp(a); }},
                                     {ScalarCode::log, [&] { return log(a); }},
                                     {ScalarCode::tanh, [&] { return tanh(a); }},
                                     {ScalarCode::relu, [&] { return max(a, 0.0f); }}});
    });
  });
}

ir::Kernel backward_kernel() {
  return kernel("scalar_backward", 256, [] {
    auto entries = in("entries", i32);
    auto starts = in("starts", i32);
    auto uses = in("uses", i32);
    auto data = in("data", f32);
    auto grad = inout("grad", f32);
    const Value first = param("first", u32), count = param("count", u32), root = param("root", u32);
    if_(global_id() < count, [&] {
      const Value i = first + global_id();
      Var sum(f32, 0.0f, "sum");
      sum = select(i == root, 1.0f, 0.0f);
      for_(cast(u32, starts[i]), cast(u32, starts[i + 1u]), 1u, [&](Value u) {
        const Value use = cast(u32, uses[u]), user = use >> 1u;
        const Value second = (use & 1u) == 1u;
        const LoadedEntry entry(entries, user);
        const Value a = data[entry.a], b = data[entry.b], y = data[user];
        const Value part = by_code(
            entry.code,
            {{ScalarCode::add, [&] { return constant(f32, 1.0); }},
             {ScalarCode::sub, [&] { return select(second, -1.0f, 1.0f); }},
             {ScalarCode::mul, [&] { return select(second, a, b); }},
             {ScalarCode::div, [&] { return select(second, -y / b, 1.0f / b); }},
             {ScalarCode::pow, [&] { return entry.exponent * power(a, entry.exponent - 1.0f); }},
             {ScalarCode::exp, [&] { return y; }},
             {ScalarCode::log, [&] { return 1.0f / a; }},
             {ScalarCode::tanh, [&] { return 1.0f - y * y; }},
             {ScalarCode::relu, [&] { return select(a > 0.0f, 1.0f, 0.0f); }}});
        sum += grad.load(user) * part;
      });
      grad[i] = sum;
    });
  });
}

// Inputs: the leaves, and the tape's entries, starts and uses. Outputs: data and gradients.
class TapeOp : public Op {
 public:
  explicit TapeOp(Tape tape) : tape_(std::move(tape)) {}
  std::string_view name() const override { return "scalar_tape"; }
  std::string attributes() const override {
    return fmt::format("{} scalars, {} levels", tape_.entries.size(), tape_.levels.size());
  }
  bool has_gradient() const override { return false; }

  std::vector<Spec> infer(std::span<const Tensor>) const override {
    const auto count = static_cast<int64_t>(tape_.entries.size());
    std::vector<Spec> specs = {{Shape{count}, DType::f32}};
    if (tape_.root >= 0) specs.push_back(specs[0]);
    return specs;
  }

  void run_cpu(const CpuCall& call) const override {
    const float* const leaves = call.inputs[0].first<float>();
    float* const data = call.outputs[0].first<float>();
    const auto first = static_cast<size_t>(tape_.leaves());
    std::memcpy(data, leaves, first * sizeof(float));
    for (size_t i = first; i < tape_.entries.size(); ++i) {
      const TapeEntry& entry = tape_.entries[i];
      data[i] = forward(entry, data[entry.a], data[entry.b]);
    }
    if (tape_.root < 0) return;
    float* const grad = call.outputs[1].first<float>();
    for (size_t i = tape_.entries.size(); i-- > 0;) {
      float sum = static_cast<int32_t>(i) == tape_.root ? 1.0f : 0.0f;
      for (int32_t u = tape_.starts[i]; u < tape_.starts[i + 1]; ++u) {
        const int32_t use = tape_.uses[static_cast<size_t>(u)], user = use / 2;
        const TapeEntry& entry = tape_.entries[static_cast<size_t>(user)];
        sum += grad[user] * slope(entry, use % 2 == 1, data[entry.a], data[entry.b], data[user]);
      }
      grad[i] = sum;
    }
  }

  void launch(DeviceCall& call) const override {
    const DeviceView &data = call.output(0), &entries = call.input(1);
    const auto word = [](int32_t value) { return static_cast<uint32_t>(value); };
    call.launch("scalar_leaves", leaves_kernel, {groups_for(tape_.leaves(), 256), 1, 1},
                {call.input(0), data}, {word(tape_.leaves())});
    const auto size_of = [&](size_t level) {
      return tape_.levels[level + 1] - tape_.levels[level];
    };
    for (size_t level = 0; level + 1 < tape_.levels.size(); ++level)
      call.launch("scalar_forward", forward_kernel, {groups_for(size_of(level), 256), 1, 1},
                  {entries, data}, {word(tape_.levels[level]), word(size_of(level))});
    if (tape_.root < 0) return;
    const auto back = [&](int32_t first, int32_t count) {
      call.launch("scalar_backward", backward_kernel, {groups_for(count, 256), 1, 1},
                  {entries, call.input(2), call.input(3), data, call.output(1)},
                  {word(first), word(count), word(tape_.root)});
    };
    for (size_t level = tape_.levels.size() - 1; level-- > 0;)
      back(tape_.levels[level], size_of(level));
    back(0, tape_.leaves());
  }

 private:
  Tape tape_;
};

struct KeptTape {
  Tape tape;
  Device device;
  CompiledFunction run;
};

Tensor integers(std::vector<int32_t> values, const Device& device) {
  if (values.empty()) values.push_back(0);  // a buffer has at least one element
  return from_vector(values, {static_cast<int64_t>(values.size())}, device);
}

CompiledFunction compiled(const Tape& tape, const Device& device) {
  std::vector<int32_t> words(tape.entries.size() * 4);
  std::memcpy(words.data(), tape.entries.data(), words.size() * sizeof(int32_t));
  const std::vector<Tensor> parts = {integers(words, device), integers(tape.starts, device),
                                     integers(tape.uses, device)};
  return compile([op = std::make_shared<TapeOp>(tape), parts](std::span<const Tensor> leaves) {
    return use_op_all(op, {leaves[0], parts[0], parts[1], parts[2]});
  });
}

}  // namespace

std::vector<float> run_tape(const Tape& tape, std::span<const float> leaves, const Device& device) {
  static std::mutex mutex;
  static auto& kept = *new std::optional<KeptTape>;
  const std::scoped_lock lock(mutex);
  if (!kept || kept->device != device || !(kept->tape == tape))
    kept.emplace(KeptTape{tape, device, compiled(tape, device)});
  const Tensor x = from_span(leaves, {static_cast<int64_t>(leaves.size())}, device);
  std::vector<float> result;
  for (const Tensor& each : kept->run({x})) {
    const std::vector<float> values = each.to_vector<float>();
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

}  // namespace prism::nn
