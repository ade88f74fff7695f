// short_conv: a causal convolution over the rows of each text, with the rows before in a state.
#include <algorithm>

#include <fmt/format.h>

#include "cpu/state_scan.h"
#include "ops/recurrence/text_rows.h"
#include "prism/error.h"
#include "prism/ops/recurrence.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

constexpr uint32_t kLanes = 64;
constexpr uint32_t kRows = 8;  // that a lane loads before it uses the first

constexpr int64_t kMostFilters = 16;  // a lane holds the taps of all

int64_t filters_of(const Shape& weight) { return weight.rank() == 3 ? weight[0] : 1; }

// At least as many as there are rows before the first, so that only the first piece of a text needs
// the state.
uint32_t rows_of_a_lane(uint32_t taps) { return std::max(kRows, taps - 1); }

// A lane computes some rows of one channel of one text. Those of the first group along axis 2 are
// the only ones that read and change the state.
ir::Kernel conv_kernel(uint32_t filters, uint32_t taps, bool has_bias, bool silu) {
  return kernel("short_conv", kLanes, [&] {
    const Array state = inout("state", f32);
    const In x = in("x", f32), weight = in("weight", f32);
    std::optional<In> bias;
    if (has_bias) bias = in("bias", f32);
    const ops::KernelTexts texts{in("texts", u32)};
    const Array y = out("y", f32);
    const Value rows = param("rows", u32), channels = param("channels", u32),
                text_count = param("texts", u32), x_stride = param("x_stride", u32),
                x_start = param("x_start", u32);
    const uint32_t each = rows_of_a_lane(taps), before = taps - 1;
    const Value channel = global_id();
    if_(channel < channels, [&] {
      const Value first = texts.first(), count = texts.count();
      const Value at = texts.state() * before * channels + channel;
      const auto x_at = [&](const Value& row) {
        return x_start + (first + row) * x_stride + channel;
      };
      std::vector<std::vector<Value>> by(filters);
      for (uint32_t filter = 0; filter < filters; ++filter)
        for (uint32_t tap = 0; tap < taps; ++tap)
          by[filter].push_back(weight[(channels * filter + channel) * taps + tap]);
      const auto y_at = [&](uint32_t filter, const Value& row) {
        return (rows * filter + row) * channels + channel;
      };
      const Value start = bias ? (*bias)[channel] : constant(f32, 0.0);
      for_(group_id(2) * each, count, group_count(2) * each, [&](Value base) {
        std::vector<Value> window;  // the rows before, then those of the lane
        const Value is_first = base == 0u;
        for (uint32_t i = 0; i < before; ++i)
          window.push_back(select(is_first, state.load_if(is_first, at + i * channels),
                                  x.load_if(!is_first, x_at(base + i - before))));
        for (uint32_t i = 0; i < each; ++i)
          window.push_back(x.load_if(base + i < count, x_at(base + i)));
        for (uint32_t filter = 0; filter < filters; ++filter)
          for (uint32_t i = 0; i < each; ++i) {
            Value sum = start;
            for (uint32_t tap = 0; tap < taps; ++tap)
              sum = fma(by[filter][tap], window[i + tap], sum);
            if (silu) sum = sum / (1.0f + exp(-sum));
            y.store_if(base + i < count, y_at(filter, first + base + i), sum);
          }
      });
      if_(group_id(2) == 0u, [&] {
        if_(count > 0u, [&] {
          for (uint32_t i = 0; i < before; ++i) {
            const Value row = count + i, is_old = row < before;
            state[at + i * channels] = select(is_old, state.load_if(is_old, at + row * channels),
                                              x.load_if(!is_old, x_at(row - before)));
          }
        });
        texts.for_other_rows(text_count, rows, [&](Value row) {
          for (uint32_t filter = 0; filter < filters; ++filter)
            y[y_at(filter, row)] = constant(f32, 0.0);
        });
      });
    });
  });
}

class ShortConvOp : public Op {
 public:
  explicit ShortConvOp(const ConvSettings& settings) : silu_(settings.silu) {}
  std::string_view name() const override { return "short_conv"; }
  bool has_gradient() const override { return false; }
  uint32_t changed_inputs() const override { return 1; }

  // Inputs: state, x, weight, texts, bias.
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &state = inputs[0], &x = inputs[1], &weight = inputs[2];
    ops::check_texts("short_conv", state, inputs[3]);
    ops::check_all_f32("short_conv", inputs.first(3));
    ops::check_all_f32("short_conv", inputs.subspan(4));
    const bool has_filters = weight.rank() == 3;
    const bool fits =
        x.rank() == 2 && (has_filters || weight.rank() == 2) && state.rank() == 3 &&
        weight.shape()[-2] == x.size(1) && weight.shape()[-1] >= 2 &&
        state.size(1) == weight.shape()[-1] - 1 && state.size(2) == x.size(1) &&
        (inputs.size() < 5 || (!has_filters && inputs[4].shape() == Shape{x.size(1)})) &&
        (!has_filters || (weight.size(0) > 0 && weight.size(0) <= kMostFilters));
    if (!fits)
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("short_conv: x {}, weight {}, state {}{}; must be [rows, channels], "
                      "[channels, taps], [states, taps - 1, channels] and [channels], or "
                      "1 to {} filters [filters, channels, taps] without a bias",
                      x.shape().text(), weight.shape().text(), state.shape().text(),
                      inputs.size() < 5 ? "" : ", bias " + inputs[4].shape().text(), kMostFilters));
    Shape y = x.shape();
    if (has_filters) y = {weight.size(0), x.size(0), x.size(1)};
    return {{state.shape(), DType::f32}, {y, DType::f32}};
  }

  // Rows of x may be parts of longer ones.
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    if (input != 1) return Op::takes_layout(input, tensor, device);
    return tensor.size(1) <= 1 || tensor.layout().stride(1) == 1;
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &x = call.inputs[1], &y = call.outputs[1], &state = call.outputs[0];
    const Shape& weight = call.inputs[2].layout.shape;
    const int64_t rows = x.layout.shape[0], channels = x.layout.shape[1], taps = weight[-1];
    const int64_t filters = filters_of(weight);
    const std::vector<ops::TextRows> texts =
        ops::read_texts("short_conv", call.inputs[3], rows, state.layout.shape[0]);
    for (int64_t filter = 0; filter < filters; ++filter) {
      HostView of_filter = y;
      of_filter.layout = prism::Layout::dense({rows, channels});
      of_filter.layout.offset = y.layout.offset + filter * rows * channels;
      ops::clear_other_rows(of_filter, texts);
    }
    constexpr int64_t kPiece = 128;  // channels of a task: some cache lines of each row
    const int64_t pieces = (channels + kPiece - 1) / kPiece;
    call.pool.parallel_for(
        texts.size() * static_cast<uint64_t>(pieces), 1, [&](uint64_t begin, uint64_t end) {
          for (auto task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
            const ops::TextRows& text = texts[static_cast<size_t>(task / pieces)];
            const int64_t first = task % pieces * kPiece;
            cpu::ShortConv conv;
            conv.rows = static_cast<size_t>(text.count);
            conv.channels = static_cast<size_t>(std::min(kPiece, channels - first));
            conv.taps = static_cast<size_t>(taps);
            conv.stride = static_cast<size_t>(channels);
            conv.x_stride = static_cast<size_t>(x.layout.stride(0));
            conv.x = x.first<float>() + text.first * x.layout.stride(0) + first;
            conv.silu = silu_;
            if (call.inputs.size() > 4) conv.bias = call.inputs[4].first<float>() + first;
            conv.state = state.first<float>() + text.state * (taps - 1) * channels + first;
            for (int64_t filter = 0; filter < filters; ++filter) {
              conv.y = y.first<float>() + (filter * rows + text.first) * channels + first;
              conv.weight = call.inputs[2].first<float>() + (filter * channels + first) * taps;
              conv.changes_state = filter + 1 == filters;
              cpu::short_conv(conv);
            }
          }
        });
  }

  void launch(DeviceCall& call) const override {
    const Shape& shape = call.input(1).layout.shape;
    const Shape& weight = call.input(2).layout.shape;
    const auto taps = static_cast<uint32_t>(weight[-1]),
               filters = static_cast<uint32_t>(filters_of(weight));
    const auto texts = static_cast<uint32_t>(call.input(3).layout.shape[0]);
    const bool has_bias = call.input_count() > 4;
    // Texts of average length have a group for each piece; longer ones walk several.
    const uint32_t pieces = groups_for(shape[0], rows_of_a_lane(taps) * std::max(1u, texts));
    DeviceView x = call.input(1);
    const auto x_start = static_cast<uint32_t>(x.layout.offset),
               x_stride = static_cast<uint32_t>(x.layout.stride(0));
    x.layout.offset = 0;  // passed as a parameter
    std::vector<DeviceView> buffers = {call.output(0), x, call.input(2)};
    if (has_bias) buffers.push_back(call.input(4));
    buffers.push_back(call.input(3));
    buffers.push_back(call.output(1));
    call.launch(fmt::format("short_conv {} {}{}{}", filters, taps, has_bias ? " bias" : "",
                            silu_ ? " silu" : ""),
                [&] { return conv_kernel(filters, taps, has_bias, silu_); },
                {groups_for(shape[1], kLanes), texts, pieces}, buffers,
                {static_cast<uint32_t>(shape[0]), static_cast<uint32_t>(shape[1]), texts, x_stride,
                 x_start});
  }

 private:
  bool silu_;
};

}  // namespace

Recurrence short_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const Tensor& state, const Tensor& texts, const ConvSettings& settings) {
  std::vector<Tensor> inputs = {state, x, weight, texts};
  if (bias) inputs.push_back(bias);
  const std::vector<Tensor> outputs =
      use_op_all(std::make_shared<ShortConvOp>(settings), std::move(inputs));
  return {outputs[1], outputs[0]};
}

}  // namespace prism
