// Tests gradients that are ops with kernels of their own: attention, norms and cross entropy on
// every device against a float64 reference, and attention's kernels with fragments on the checked
// interpreter.
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "conformance/conformance.h"
#include "ir/interpreter/interpreter.h"
#include "ops/attention/attention_gradient_kernels.h"
#include "ops/attention/attention_kernels.h"
#include "prism/compile.h"
#include "prism/grad.h"
#include "prism/nn/optimizer.h"
#include "prism/ops.h"
#include "support/devices/devices.h"
#include "support/seed.h"
#include "tensor/op.h"

namespace prism {
namespace {

using Bytes = std::vector<std::byte>;

struct Heads {
  int64_t batch, heads, kv_heads, dim, value_dim, queries, keys;
};

Tensor random_f64(const Shape& shape) {
  static std::mt19937 random(test_seed());
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& each : values) each = normal(random);
  return from_vector(values, shape, Device::cpu()).eval();
}

double error_of(const Tensor& found, const Tensor& wanted) {
  const std::vector<double> a = found.to_doubles(), b = wanted.to_doubles();
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / (size + 1e-30));
}

// q, k, v and the slopes of the result, of values that the type has.
std::vector<Tensor> inputs_of(const Heads& s, DType type) {
  std::vector<Tensor> all;
  for (const Shape& shape :
       {Shape{s.batch, s.heads, s.queries, s.dim}, Shape{s.batch, s.kv_heads, s.keys, s.dim},
        Shape{s.batch, s.kv_heads, s.keys, s.value_dim},
        Shape{s.batch, s.heads, s.queries, s.value_dim}})
    all.push_back(cast(cast(random_f64(shape), type), DType::f64).eval());
  return all;
}

// The result, then the gradients of q, k and v.
std::vector<Tensor> with_gradients(std::span<const Tensor> in, const AttentionSettings& settings) {
  std::vector<Tensor> sides;
  for (const Tensor& each : in.first(3)) {
    Tensor side = each.detach();
    side.set_requires_grad();
    sides.push_back(side);
  }
  const Tensor result = attention(sides[0], sides[1], sides[2], settings);
  std::vector<Tensor> all = {result};
  for (const Tensor& each : gradients(result, sides, in[3])) all.push_back(each);
  eval(all);
  return all;
}

const std::vector<std::pair<Heads, AttentionSettings>>& cases() {
  static const std::vector<std::pair<Heads, AttentionSettings>> all = {
      {{2, 4, 2, 16, 16, 70, 70}, {}},
      {{1, 3, 1, 40, 24, 37, 101}, {}},
      {{1, 1, 1, 17, 13, 5, 9}, {.causal = false}},
      {{1, 2, 2, 64, 64, 50, 90}, {.window = 20}},
      {{1, 2, 1, 8, 8, 60, 60}, {.causal = false, .window = 11}},
      {{1, 1, 1, 16, 16, 60, 75}, {.scale = 0.3, .window = 16, .chunked = true}},
  };
  return all;
}

TEST(AttentionGradient, AgreesWithF64OnEveryDevice) {
  for (const Device& device : test::every_device()) {
    // Compilers of software devices take seconds for each case.
    // So they get the first case, and another one in f32.
    const bool is_soft = device.info().software && !device.info().is_cpu;
    const size_t another = 1 + test_seed() % (cases().size() - 1);
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      for (size_t i = 0; i < cases().size(); ++i) {
        if (is_soft && i > 0 && (i != another || type != DType::f32)) continue;
        if (is_soft && type == DType::f16) continue;
        const auto& [sizes, settings] = cases()[i];
        SCOPED_TRACE(device.id() + " " + std::string(dtype_name(type)) + ", case " +
                     std::to_string(i));
        const std::vector<Tensor> inputs = inputs_of(sizes, type);
        const std::vector<Tensor> wanted = with_gradients(inputs, settings);
        std::vector<Tensor> moved;
        for (const Tensor& each : inputs) moved.push_back(cast(each, type).to(device).eval());
        const std::vector<Tensor> found = with_gradients(moved, settings);
        const double bound = type == DType::f32 ? 5e-6 : type == DType::f16 ? 2e-3 : 2e-2;
        for (size_t n = 0; n < found.size(); ++n) {
          EXPECT_EQ(found[n].type(), ElementType(type));
          EXPECT_LT(error_of(found[n], wanted[n]), bound) << (n == 0 ? "result" : "input ") << n;
        }
        const std::vector<Tensor> again = with_gradients(moved, settings);
        for (size_t n = 0; n < found.size(); ++n)
          EXPECT_EQ(found[n].to_doubles(), again[n].to_doubles()) << "another run, " << n;
      }
    }
  }
}

TEST(AttentionGradient, TakesMemoryLinearInTheLength) {
  for (const Device& device : test::every_device()) {
    const auto bytes_of = [&](int64_t length) {
      Tensor x = zeros({1, 2, length, 8}, DType::f32, device).eval();
      x.set_requires_grad();
      CompiledFunction slopes(TensorsFunction([&](std::span<const Tensor> in) {
        return gradients(sum(attention(x * in[0], x, x)), {x});
      }));
      uint64_t bytes = 0;
      const std::vector<Tensor> inputs = {full({}, 2.0, DType::f32, device).eval()};
      for (const PlanMemory& each : slopes.estimate_memory(inputs)) bytes += each.temporaries;
      return bytes;
    };
    EXPECT_LE(bytes_of(4096), 2 * bytes_of(2048) + 65536) << device.id();
  }
}

// The gradients of a weighted sum of f's result; those of floats, which come first.
std::vector<Tensor> slopes_of(const TensorFunction& f, std::span<const Tensor> in, size_t floats,
                              const Tensor& weights) {
  std::vector<Tensor> sides;
  for (const Tensor& each : in) {
    Tensor side = each.detach();
    if (sides.size() < floats) side.set_requires_grad();
    sides.push_back(side);
  }
  const Tensor result = f(sides);
  std::vector<Tensor> all =
      gradients(result, std::span(sides).first(floats), cast(weights, result.type()));
  eval(all);
  return all;
}

void compare(const TensorFunction& f, std::vector<Tensor> inputs, size_t floats, DType type,
             const std::string& what) {
  const Tensor weights = random_f64(f(inputs).shape());
  inputs[0] = cast(cast(inputs[0], type), DType::f64).eval();
  const std::vector<Tensor> wanted = slopes_of(f, inputs, floats, weights);
  for (const Device& device : test::every_device()) {
    std::vector<Tensor> moved;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor typed = i >= floats ? inputs[i] : cast(inputs[i], i > 0 ? DType::f32 : type);
      moved.push_back(typed.to(device).eval());
    }
    const std::vector<Tensor> found = slopes_of(f, moved, floats, weights.to(device));
    for (size_t i = 0; i < floats; ++i)
      EXPECT_LT(error_of(found[i], wanted[i]), type == DType::f32 ? 1e-5 : 1e-2)
          << what << ", input " << i << " on " << device.id();
  }
}

TEST(NormGradient, AgreesWithF64OnEveryDevice) {
  for (const Shape& shape : {Shape{300, 132}, Shape{2, 3, 1025}}) {
    const std::vector<Tensor> inputs = {random_f64(shape) + 3.0, random_f64({shape[-1]}),
                                        random_f64({shape[-1]})};
    compare([](std::span<const Tensor> in) { return layer_norm(in[0], in[1], in[2]); }, inputs, 3,
            DType::f32, "layer_norm " + shape.text());
  }
  compare([](std::span<const Tensor> in) { return rms_norm(in[0], in[1]); },
          {random_f64({70, 48}), random_f64({48})}, 2, DType::f32, "rms_norm");
  compare([](std::span<const Tensor> in) { return rms_norm(in[0]); }, {random_f64({3, 12})}, 1,
          DType::f32, "plain rms_norm");
}

TEST(CrossEntropyGradient, AgreesWithF64OnEveryDevice) {
  for (const Shape& shape : {Shape{9, 7}, Shape{21, 64}, Shape{3, 2050}})
    for (const DType type : {DType::f32, DType::bf16}) {
      std::vector<int32_t> targets;
      for (int64_t row = 0; row < shape[0]; ++row)
        targets.push_back(row == 1 ? -100 : static_cast<int32_t>(row * 3 % shape[1]));
      compare([](std::span<const Tensor> in) { return cross_entropy_rows(in[0], in[1], -100); },
              {random_f64(shape) * 3.0, from_vector(targets, {shape[0]}, Device::cpu()).eval()}, 1,
              type, "cross_entropy " + shape.text());
    }
}

TEST(SquareSum, OfManyTensorsOnEveryDevice) {
  std::vector<Tensor> wide;
  double wanted = 0;
  for (const int64_t length : {1, 3, 300, 7, 40000, 5, 64, 2, 70}) {
    wide.push_back(random_f64({length}));
    for (const double each : wide.back().to_doubles()) wanted += each * each;
  }
  for (const Device& device : test::every_device()) {
    std::vector<Tensor> moved;
    for (const Tensor& each : wide) moved.push_back(cast(each, DType::f32).to(device).eval());
    EXPECT_NEAR(nn::global_norm(moved).item(), std::sqrt(wanted), 1e-5 * std::sqrt(wanted))
        << device.id();
  }
}

// In bf16 on devices with a library of products, else in f32.
TEST(QuantisedGradient, AgreesWithDecodedWeights) {
  const Tensor weights = quantise(cast(random_f64({96, 256}), DType::f32), BlockType::q4_k).eval();
  const Tensor x = random_f64({37, 256}), g = random_f64({37, 96});
  const Tensor wanted = matmul(g, cast(dequantise(weights), DType::f64));
  for (const Device& device : test::every_device()) {
    Tensor rows = cast(x, DType::f32).to(device).eval().detach();
    rows.set_requires_grad();
    const Tensor result = linear(rows, weights.to(device));
    const Tensor found = gradients(result, {rows}, cast(g, DType::f32).to(device))[0];
    EXPECT_LT(error_of(found, wanted), 1e-2) << device.id();
  }
}

Bytes bytes_of(const Tensor& x) {
  Bytes bytes(static_cast<size_t>(x.elements()) * dtype_bytes(x.type().plain()));
  const std::vector<float> values = cast(x, DType::f32).to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t wide = std::bit_cast<uint32_t>(values[i]);
    if (x.type() == ElementType(DType::f32)) {
      std::memcpy(bytes.data() + 4 * i, &wide, 4);
      continue;
    }
    const uint16_t narrow =
        x.type() == ElementType(DType::bf16) ? bf16_from_f32(values[i]) : f16_from_f32(values[i]);
    std::memcpy(bytes.data() + 2 * i, &narrow, 2);
  }
  return bytes;
}

Bytes interpreted(const ir::Kernel& kernel, std::array<uint32_t, 3> groups,
                  std::vector<Bytes>& buffers, const std::vector<ParamValue>& params) {
  std::vector<uint32_t> words;
  for (const ParamValue& param : params) words.push_back(param.bits);
  std::vector<ir::HostBuffer> views;
  for (Bytes& bytes : buffers) views.push_back({bytes.data(), bytes.size()});
  ir::interpret(kernel, groups, views, words);
  return buffers.back();
}

Tensor tensor_of(const Bytes& bytes, DType type, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t narrow;
    std::memcpy(&narrow, bytes.data() + 2 * i, 2);
    values[i] = type == DType::bf16 ? f32_from_bf16(narrow) : f32_from_f16(narrow);
  }
  return from_vector(values, shape, Device::cpu());
}

// The forward kernel that keeps sums, then the three kernels of the gradient.
TEST(AttentionGradient, FragmentsOnTheInterpreter) {
  const std::vector<std::pair<Heads, AttentionSettings>> small = {
      {{2, 2, 1, 24, 16, 37, 50}, {}},
      {{1, 1, 1, 16, 16, 20, 45}, {.causal = false}},
      {{1, 2, 2, 16, 8, 33, 40}, {.window = 12}},
  };
  for (const DType type : {DType::f16, DType::bf16})
    for (const auto& [s, settings] : small) {
      SCOPED_TRACE(std::string(dtype_name(type)) + ", " + std::to_string(s.keys) + " keys");
      const std::vector<Tensor> inputs = inputs_of(s, type);
      const std::vector<Tensor> wanted = with_gradients(inputs, settings);
      const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
      std::vector<Bytes> sides;  // [batch, rows, heads, dim]
      for (const Tensor& each : inputs)
        sides.push_back(bytes_of(cast(each.permute({0, 2, 1, 3}).contiguous(), type)));
      const double scale = 1 / std::sqrt(static_cast<double>(s.dim));
      const int64_t rows = s.batch * s.queries;
      const auto empty = [](int64_t elements, size_t bytes) {
        return Bytes(static_cast<size_t>(elements) * bytes, std::byte{0x7f});
      };

      ops::AttentionOptions forward;
      forward.head_dim = word(s.dim);
      forward.value_dim = s.value_dim < s.dim ? word(s.value_dim) : 0;
      forward.group = word(s.heads / s.kv_heads);
      forward.cache = type;
      forward.q_type = forward.out_type = type;
      forward.causal = settings.causal;
      forward.window = settings.window > 0;
      forward.sums = true;
      ops::AttentionParams p;
      p.q_row = word(s.heads * s.dim);
      p.q_head = word(s.dim);
      p.out_row = word(s.heads * s.value_dim);
      p.out_head = word(s.value_dim);
      p.kv_slot = word(s.keys * s.kv_heads * s.dim);
      p.kv_position = word(s.kv_heads * s.dim);
      p.kv_head = word(s.dim);
      p.v_slot = word(s.keys * s.kv_heads * s.value_dim);
      p.v_position = word(s.kv_heads * s.value_dim);
      p.v_head = word(s.value_dim);
      p.scale = static_cast<float>(scale);
      p.window = word(settings.window);
      std::vector<uint32_t> spans;
      for (int64_t b = 0; b < s.batch; ++b)
        for (const int64_t each : {b * s.queries, s.queries, s.keys, b})
          spans.push_back(word(each));
      Bytes span_bytes(spans.size() * 4);
      std::memcpy(span_bytes.data(), spans.data(), span_bytes.size());
      std::vector<Bytes> buffers = {sides[0],
                                    sides[1],
                                    sides[2],
                                    span_bytes,
                                    empty(rows * s.heads * s.value_dim, 2),
                                    empty(rows * s.heads, 4)};
      const ops::PromptTile prompt{1, 1, 16, 2, true};
      const auto groups = [&](int64_t heads, int64_t count) -> std::array<uint32_t, 3> {
        return {word(heads), word((count + 15) / 16), word(s.batch)};
      };
      const Bytes sums = interpreted(ops::attention_prompt(forward, prompt),
                                     groups(s.heads, s.queries), buffers, p.values(forward));
      const Bytes result = buffers[4];
      const double bound = type == DType::f16 ? 2e-3 : 2e-2;
      const auto check = [&](const Bytes& bytes, int64_t count, int64_t heads, int64_t dim,
                             size_t n) {
        const Tensor found = tensor_of(bytes, type, {s.batch, count, heads, dim});
        EXPECT_LT(error_of(found.permute({0, 2, 1, 3}).contiguous(), wanted[n]), bound)
            << "output " << n;
      };
      check(result, s.queries, s.heads, s.value_dim, 0);

      ops::AttentionGradientOptions options;
      options.type = type;
      options.head_dim = word(s.dim);
      options.value_dim = word(s.value_dim);
      options.group = forward.group;
      options.causal = settings.causal;
      options.window = settings.window > 0;
      ops::AttentionGradientParams g;
      g.q_row = p.q_row;
      g.q_head = p.q_head;
      g.slopes_row = p.out_row;
      g.slopes_head = p.out_head;
      g.k_slot = p.kv_slot;
      g.k_position = p.kv_position;
      g.k_head = p.kv_head;
      g.v_slot = p.v_slot;
      g.v_position = p.v_position;
      g.v_head = p.v_head;
      g.queries = word(s.queries);
      g.keys = word(s.keys);
      g.scale = p.scale;
      g.window = p.window;
      buffers = {result, sides[3], empty(rows * s.heads, 4)};
      const Bytes products = interpreted(
          ops::attention_gradient_products(options),
          {word((rows * s.heads + ops::kProductsOfGroup - 1) / ops::kProductsOfGroup), 1, 1},
          buffers, {word(rows * s.heads), word(s.heads), g.slopes_row, g.slopes_head});
      const std::vector<Bytes> common = {sides[0], sides[1], sides[2], sides[3], sums, products};
      for (const bool in_registers : {true, false}) {
        const ops::GradientTile tile{1, 16, in_registers, 32};
        buffers = common;
        buffers.push_back(empty(rows * s.heads * s.dim, 2));
        interpreted(ops::attention_gradient_fragments(options, ops::GradientSide::queries, tile),
                    groups(s.heads, s.queries), buffers, g.values(options));
        check(buffers[6], s.queries, s.heads, s.dim, 1);
        buffers = common;
        buffers.push_back(empty(s.batch * s.keys * s.kv_heads * s.dim, 2));
        buffers.push_back(empty(s.batch * s.keys * s.kv_heads * s.value_dim, 2));
        interpreted(ops::attention_gradient_fragments(options, ops::GradientSide::keys, tile),
                    groups(s.kv_heads, s.keys), buffers, g.values(options));
        check(buffers[6], s.keys, s.kv_heads, s.dim, 2);
        check(buffers[7], s.keys, s.kv_heads, s.value_dim, 3);
      }
    }
}

// The same graph with all values on the CPU, as a plan continues when its device has failed.
Tensor on_cpu(const Tensor& x, std::map<const Node*, std::vector<Tensor>>& known) {
  const std::shared_ptr<Node>& node = x.node();
  std::vector<Tensor>& outputs = known[node.get()];
  if (outputs.empty() && node->is_evaluated()) {
    for (uint32_t i = 0; i < node->outputs.size(); ++i)
      outputs.push_back(Tensor(node, i).to(Device::cpu()).eval());
  } else if (outputs.empty()) {
    std::vector<Tensor> inputs;
    for (const Tensor& each : node->inputs) inputs.push_back(on_cpu(each, known));
    outputs = use_op_all(node->op, std::move(inputs), Device::cpu());
  }
  const Tensor& whole = outputs[x.output()];
  return {whole.node(), whole.output(), x.layout()};
}

TEST(TrainingOps, AgreeWithF64WhenTheyContinueOnTheCpu) {
  for (const Device& device : test::every_device()) {
    if (device.info().is_cpu) continue;
    size_t ran = 0;
    for (const OpCase& each : all_cases(test_seed())) {
      if (each.family != "training") continue;
      SCOPED_TRACE(device.id() + " " + each.op + " " + each.what);
      OpCase moved = each;
      moved.compute = [&](std::span<const Tensor> in) {
        std::vector<Tensor> there, results;
        for (const Tensor& x : in) there.push_back(x.to(device).eval());
        std::map<const Node*, std::vector<Tensor>> known;
        for (const Tensor& x : each.compute(there)) results.push_back(on_cpu(x, known));
        return results;
      };
      const CaseResult result = run_case(moved, Device::cpu());
      EXPECT_TRUE(result.right) << result.reason;
      ++ran;
    }
    EXPECT_GT(ran, 30u);
    break;  // the ops are the same on all devices
  }
}

}  // namespace
}  // namespace prism
