// The gradient of attention over whole sequences as one op, with memory linear in their length.
#include <algorithm>

#include <fmt/format.h>

#include "cpu/attention_gradient.h"
#include "cpu/elementwise.h"
#include "ops/attention/attention_gradient_kernels.h"
#include "ops/attention/attention_op.h"
#include "ops/products/product_kernels.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"
#include "tensor/expression_op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

size_t size(int64_t value) { return static_cast<size_t>(value); }
uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

// Inputs: q, k and v as AttentionOp has them, its result, the gradient of that, and its sums if it
// keeps them. Outputs: the gradients of q, k and v.
class AttentionGradientOp : public ExpressionOp {
 public:
  explicit AttentionGradientOp(const AttentionOp& forward) : forward_(forward) {}

  std::string_view name() const override { return "attention_gradient"; }
  std::string attributes() const override { return forward_.attributes(); }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    std::vector<Spec> outputs;
    for (const Tensor& each : inputs.first(3)) outputs.push_back({each.shape(), each.type()});
    return outputs;
  }
  // From the score matrix.
  std::vector<Tensor> expression(std::span<const Tensor> inputs) const override {
    const Tensor &k = inputs[1], &v = inputs[2];
    const int64_t batch = k.size(0), kv_heads = k.size(2);
    const int64_t queries = inputs[0].size(0) / batch, heads = inputs[0].size(1);
    const auto by_group = [&](const Tensor& x) {  // [batch, kv_heads, group, queries, dim]
      return x.reshape({batch, queries, kv_heads, heads / kv_heads, x.size(-1)})
          .permute({0, 2, 3, 1, 4});
    };
    const auto shared = [&](const Tensor& x) { return x.permute({0, 2, 1, 3}).unsqueeze(2); };
    const Tensor q = by_group(inputs[0]), g = by_group(inputs[4]);
    const Tensor scores = matmul(q, shared(k).transpose()) * forward_.scale;
    const Tensor weights = softmax(forward_.masked(scores), -1);
    const Tensor slopes = matmul(g, shared(v).transpose());
    const Tensor score_slopes =
        weights * (slopes - sum(slopes * weights, {-1}, true)) * forward_.scale;
    const auto of_shared = [](const Tensor& x) { return sum(x, {2}).permute({0, 2, 1, 3}); };
    return {matmul(score_slopes, shared(k)).permute({0, 3, 1, 2, 4}).reshape(inputs[0].shape()),
            of_shared(matmul(score_slopes.transpose(), q)),
            of_shared(matmul(weights.transpose(), g))};
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override {
    return forward_.keeps_sums ? std::nullopt : ExpressionOp::cannot_run(device, inputs);
  }
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    if (input == 3 || input == 5) return Op::takes_layout(input, tensor, device);
    if (!forward_.takes_layout(input == 4 ? 0 : input, tensor, device)) return false;
    // Kernels with fragments copy 16 bytes at a time.
    const auto bytes = static_cast<int64_t>(tensor.type().block_bytes());
    if (device.is_cpu || tensor.size(-1) * bytes % 16 != 0) return true;
    for (int axis = 0; axis + 1 < tensor.layout().shape.rank(); ++axis)
      if (tensor.layout().stride(axis) * bytes % 16 != 0) return false;
    return true;
  }
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;

  // Five products of the size of the scores, and the scores once more.
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView>) const override {
    return (forward_.causal ? 0.5 : 1.0) * 12.0 * static_cast<double>(inputs[0].elements()) *
           static_cast<double>(inputs[1].layout.shape[1]);
  }

 private:
  AttentionOp forward_;
};

// Rows of f32: the tensor's own, or converted.
struct WideRows {
  explicit WideRows(const HostView& x) : layout(x.layout) {
    if (x.type == ElementType(DType::f32)) {
      first = x.first<float>();
      return;
    }
    layout = Layout::dense(x.layout.shape);
    converted.resize(size(layout.shape.elements()));
    first = converted.data();
    const int64_t dim = layout.shape[-1], rows = dim > 0 ? layout.shape.elements() / dim : 0;
    for (int64_t i = 0; i < rows; ++i) {
      int64_t rest = i, at = x.layout.offset;
      for (int axis = layout.shape.rank() - 2; axis >= 0; --axis) {
        at += rest % layout.shape[axis] * x.layout.stride(axis);
        rest /= layout.shape[axis];
      }
      cpu::load(x.type.plain(), x.data + at * 2, 1, DType::f32, first + i * dim, size(dim));
    }
  }
  HostView view() const {
    return {reinterpret_cast<std::byte*>(first - layout.offset), DType::f32, layout};
  }
  Layout layout;
  std::vector<float> converted;
  float* first = nullptr;
};

void AttentionGradientOp::run_cpu(const CpuCall& call) const {
  const WideRows q(call.inputs[0]), k(call.inputs[1]), v(call.inputs[2]), out(call.inputs[3]),
      slopes(call.inputs[4]);
  std::vector<float> narrow[3];
  float* results[3];
  for (size_t i = 0; i < 3; ++i) {
    const HostView& to = call.outputs[i];
    if (to.type == ElementType(DType::f32)) {
      results[i] = to.first<float>();
      continue;
    }
    narrow[i].resize(size(to.layout.shape.elements()));
    results[i] = narrow[i].data();
  }
  cpu::AttentionGradient data;
  data.sequences = size(k.layout.shape[0]);
  data.queries = size(q.layout.shape[0]) / data.sequences;
  data.keys = size(k.layout.shape[1]);
  data.q = q.first;
  data.k = k.first;
  data.v = v.first;
  data.out = out.first;
  data.out_gradient = slopes.first;
  data.gradient_row = size(slopes.layout.stride(0));
  data.gradient_head = size(slopes.layout.stride(1));
  data.q_gradient = results[0];
  data.k_gradient = results[1];
  data.v_gradient = results[2];
  cpu::attention_gradient(call.pool, forward_.cpu_options(q.view(), k.view(), v.view()), data);
  for (size_t i = 0; i < 3; ++i)
    if (!narrow[i].empty())
      cpu::store(DType::f32, results[i], call.outputs[i].type.plain(),
                 call.outputs[i].first<uint16_t>(), narrow[i].size());
}

void AttentionGradientOp::launch(DeviceCall& call) const {
  const DeviceView &q = call.input(0), &k = call.input(1), &v = call.input(2);
  const DeviceView &out = call.input(3), &slopes = call.input(4), &sums = call.input(5);
  const int64_t rows = q.layout.shape[0], heads = q.layout.shape[1];
  const int64_t sequences = k.layout.shape[0], keys = k.layout.shape[1],
                kv_heads = k.layout.shape[2];
  ops::AttentionGradientOptions options;
  options.type = q.type.plain();
  options.head_dim = word(q.layout.shape[2]);
  options.value_dim = word(forward_.value_dim);
  options.group = word(heads / kv_heads);
  options.causal = forward_.causal;
  options.window = forward_.window > 0;
  options.chunked = forward_.chunked;
  ops::AttentionGradientParams params;
  params.q_row = word(q.layout.stride(0));
  params.q_head = word(q.layout.stride(1));
  params.slopes_row = word(slopes.layout.stride(0));
  params.slopes_head = word(slopes.layout.stride(1));
  params.k_slot = word(k.layout.stride(0));
  params.k_position = word(k.layout.stride(1));
  params.k_head = word(k.layout.stride(2));
  params.v_slot = word(v.layout.stride(0));
  params.v_position = word(v.layout.stride(1));
  params.v_head = word(v.layout.stride(2));
  params.queries = word(rows / sequences);
  params.keys = word(keys);
  params.scale = static_cast<float>(forward_.scale);
  params.window = word(forward_.window);
  const std::string key =
      fmt::format("{} {} {} {} {}{}", dtype_name(options.type), options.head_dim, options.value_dim,
                  options.group, options.causal ? 'c' : '-',
                  options.chunked  ? 'h'
                  : options.window ? 'w'
                                   : '-');

  const DeviceView products = call.scratch({rows, heads}, DType::f32);
  call.launch(
      fmt::format("attention_gradient_products {} {}", dtype_name(options.type), options.value_dim),
      [&] { return ops::attention_gradient_products(options); },
      {groups_for(rows * heads, ops::kProductsOfGroup), 1, 1}, {out, slopes, products},
      {word(rows * heads), word(heads), params.slopes_row, params.slopes_head});
  ops::GradientTile tile = ops::gradient_tile(options);
  tile.subgroup = ops::fragment_subgroup(call.info().capabilities);
  bool fragments = ops::suits_gradient_fragments(options, tile, call.info().capabilities);
  for (const ops::GradientSide own : {ops::GradientSide::queries, ops::GradientSide::keys}) {
    const bool by_keys = own == ops::GradientSide::keys;
    std::vector<DeviceView> buffers = {q, k, v, slopes, sums, products};
    buffers.push_back(call.output(by_keys ? 1 : 0));
    if (by_keys) buffers.push_back(call.output(2));
    const auto grid = [&](uint32_t own_rows) -> std::array<uint32_t, 3> {
      return {word(by_keys ? kv_heads : heads),
              groups_for(by_keys ? keys : rows / sequences, own_rows), word(sequences)};
    };
    const char* const side = by_keys ? "keys" : "queries";
    if (fragments) {
      try {
        call.launch(
            fmt::format("attention_gradient {} {} {} {} {}", side, key, tile.warps, tile.rows,
                        tile.subgroup),
            [&] { return ops::attention_gradient_fragments(options, own, tile); },
            grid(tile.own_rows()), buffers, params.values(options));
        continue;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kNotSupported) throw;
        fragments = false;
      }
    }
    call.launch(
        fmt::format("attention_gradient_plain {} {}", side, key),
        [&] { return ops::attention_gradient_plain(options, own); }, grid(ops::kPlainGradientRows),
        buffers, params.values(options));
  }
}

}  // namespace

std::vector<Tensor> AttentionOp::gradient(const GradientCall& call) const {
  std::vector<Tensor> inputs = {call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0],
                                call.output_gradients[0]};
  if (keeps_sums) inputs.push_back(call.outputs[1]);
  std::vector<Tensor> results =
      use_op_all(std::make_shared<AttentionGradientOp>(*this), std::move(inputs));
  results.resize(call.inputs.size());
  return results;
}

std::optional<std::string> AttentionOp::no_whole_gradient(const Device& device,
                                                          std::span<const Tensor> inputs) {
  const bool is_cpu = device.info().is_cpu;
  const int64_t most_dim =
      is_cpu ? static_cast<int64_t>(cpu::kMaxGradientDim) : int64_t{ops::kMaxGradientHeadDim};
  const ElementType type = inputs[0].type();
  const bool known =
      type == ElementType(DType::f32) ||
      (!is_cpu && (type == ElementType(DType::f16) || type == ElementType(DType::bf16)));
  if (!known) return fmt::format("{} has no kernel for it on {}", type.name(), device.id());
  for (const Tensor& x : inputs) {
    if (x.type() != type)
      return fmt::format("q is {} and another side {}", type.name(), x.type().name());
    if (x.size(-1) > most_dim)
      return fmt::format("heads have {} elements, its kernels on {} at most {}", x.size(-1),
                         device.id(), most_dim);
  }
  return std::nullopt;
}

}  // namespace prism
