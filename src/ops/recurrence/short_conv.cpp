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

// A lane walks the rows of one channel of one text, with the last taps in registers.
ir::Kernel conv_kernel(uint32_t taps, bool has_bias) {
  return kernel("short_conv", kLanes, [&] {
    const Array state = inout("state", f32);
    const In x = in("x", f32), weight = in("weight", f32);
    std::optional<In> bias;
    if (has_bias) bias = in("bias", f32);
    const ops::KernelTexts texts{in("texts", u32)};
    const Array y = out("y", f32);
    const Value rows = param("rows", u32), channels = param("channels", u32),
                text_count = param("texts", u32);
    const Array window = local(f32, taps, "window"), by = local(f32, taps, "by");
    const Value channel = global_id();
    if_(channel < channels, [&] {
      const Value first = texts.first(), count = texts.count();
      const Value at = texts.state() * (taps - 1) * channels + channel;
      if_(count > 0u, [&] {
        for (uint32_t tap = 0; tap < taps; ++tap) {
          by[tap] = weight[channel * taps + tap];
          if (tap + 1 < taps) window[tap + 1] = state.load(at + tap * channels);
        }
        for_(first, first + count, 1u, [&](Value row) {
          for (uint32_t tap = 0; tap + 1 < taps; ++tap) window[tap] = window.load(tap + 1);
          window[taps - 1] = x[row * channels + channel];
          Var sum(f32, bias ? (*bias)[channel] : constant(f32, 0.0), "sum");
          for (uint32_t tap = 0; tap < taps; ++tap) sum = fma(by.load(tap), window.load(tap), sum);
          y[row * channels + channel] = sum;
        });
        for (uint32_t tap = 0; tap + 1 < taps; ++tap)
          state[at + tap * channels] = window.load(tap + 1);
      });
      texts.for_other_rows(text_count, rows,
                           [&](Value row) { y[row * channels + channel] = constant(f32, 0.0); });
    });
  });
}

class ShortConvOp : public Op {
 public:
  std::string_view name() const override { return "short_conv"; }
  bool has_gradient() const override { return false; }
  uint32_t changed_inputs() const override { return 1; }

  // Inputs: state, x, weight, texts, bias.
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &state = inputs[0], &x = inputs[1], &weight = inputs[2];
    ops::check_texts("short_conv", state, inputs[3]);
    ops::check_all_f32("short_conv", inputs.first(3));
    ops::check_all_f32("short_conv", inputs.subspan(4));
    const bool fits = x.rank() == 2 && weight.rank() == 2 && state.rank() == 3 &&
                      weight.size(0) == x.size(1) && weight.size(1) >= 2 &&
                      state.size(1) == weight.size(1) - 1 && state.size(2) == x.size(1) &&
                      (inputs.size() < 5 || inputs[4].shape() == Shape{x.size(1)});
    if (!fits)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("short_conv: x {}, weight {}, state {}{}; must be [rows, channels], "
                              "[channels, taps], [states, taps - 1, channels] and [channels]",
                              x.shape().text(), weight.shape().text(), state.shape().text(),
                              inputs.size() < 5 ? "" : ", bias " + inputs[4].shape().text()));
    return {{state.shape(), DType::f32}, {x.shape(), DType::f32}};
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &x = call.inputs[1], &y = call.outputs[1], &state = call.outputs[0];
    const int64_t rows = x.layout.shape[0], channels = x.layout.shape[1],
                  taps = call.inputs[2].layout.shape[1];
    const std::vector<ops::TextRows> texts =
        ops::read_texts("short_conv", call.inputs[3], rows, state.layout.shape[0]);
    ops::clear_other_rows(y, texts);
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
            conv.x = x.first<float>() + text.first * channels + first;
            conv.y = y.first<float>() + text.first * channels + first;
            conv.weight = call.inputs[2].first<float>() + first * taps;
            if (call.inputs.size() > 4) conv.bias = call.inputs[4].first<float>() + first;
            conv.state = state.first<float>() + text.state * (taps - 1) * channels + first;
            cpu::short_conv(conv);
          }
        });
  }

  void launch(DeviceCall& call) const override {
    const Shape& shape = call.input(1).layout.shape;
    const auto taps = static_cast<uint32_t>(call.input(2).layout.shape[1]);
    const auto texts = static_cast<uint32_t>(call.input(3).layout.shape[0]);
    const bool has_bias = call.input_count() > 4;
    std::vector<DeviceView> buffers = {call.output(0), call.input(1), call.input(2)};
    if (has_bias) buffers.push_back(call.input(4));
    buffers.push_back(call.input(3));
    buffers.push_back(call.output(1));
    call.launch(fmt::format("short_conv {}{}", taps, has_bias ? " bias" : ""),
                [&] { return conv_kernel(taps, has_bias); },
                {groups_for(shape[1], kLanes), texts, 1}, buffers,
                {static_cast<uint32_t>(shape[0]), static_cast<uint32_t>(shape[1]), texts});
  }
};

}  // namespace

Recurrence short_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const Tensor& state, const Tensor& texts) {
  std::vector<Tensor> inputs = {state, x, weight, texts};
  if (bias) inputs.push_back(bias);
  const std::vector<Tensor> outputs =
      use_op_all(std::make_shared<ShortConvOp>(), std::move(inputs));
  return {outputs[1], outputs[0]};
}

}  // namespace prism
