// state_scan and its relatives: a matrix of state for each head, changed by every row of a text.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "cpu/state_scan.h"
#include "ops/recurrence/prompt_scan_kernel.h"
#include "ops/recurrence/state_scan_kernel.h"
#include "ops/recurrence/text_rows.h"
#include "ops/shape/strided_copy.h"
#include "prism/error.h"
#include "prism/ops/recurrence.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using cpu::ScanDecay;
using cpu::ScanRule;

// Texts with so many rows on average are worth copying rows ahead.
constexpr int64_t kPromptRows = 4;

constexpr uint32_t kScanBuffers = 9;  // at most; devices may have 8

// A vector and its rates in one buffer: the rates of each row and head follow its vector.
DeviceView packed(DeviceCall& call, const DeviceView& from, const DeviceView& rates) {
  const Shape& shape = from.layout.shape;
  const DeviceView both = call.scratch({shape[0], shape[1], 2, shape[2]}, DType::f32);
  for (const DeviceView* each : {&from, &rates}) {
    DeviceView half = both;
    half.layout.shape = shape;
    half.layout.strides = {both.layout.stride(0), both.layout.stride(1), 1};
    half.layout.offset = each == &from ? 0 : shape[2];
    ops::strided_copy_on_device(call, *each, half);
  }
  return both;
}

class StateScanOp : public Op {
 public:
  StateScanOp(const char* name, const ops::ScanKernel& scan)
      : name_(name),
        scan_(scan),
        rule_(scan.rule),
        decay_(scan.decay),
        tiled_keys_(scan.tiled_keys) {}
  std::string_view name() const override { return name_; }
  bool has_gradient() const override { return false; }
  uint32_t changed_inputs() const override { return 1; }

  // Inputs: state, q, k, v, decay, texts, extra, rates.
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &state = inputs[0], &q = inputs[1], &k = inputs[2], &v = inputs[3],
                 &decay = inputs[4];
    ops::check_texts(name_, state, inputs[5]);
    ops::check_all_f32(name_, inputs.first(5));
    ops::check_all_f32(name_, inputs.subspan(6));
    bool fits = q.rank() == 3 && v.rank() == 3 && state.rank() == 4 && q.shape() == k.shape() &&
                q.size(0) == v.size(0) && q.size(1) > 0 && v.size(1) % q.size(1) == 0 &&
                state.size(1) == v.size(1) && state.size(2) == q.size(2) &&
                state.size(3) == v.size(2) && q.size(2) > 0;
    if (fits) {
      const int64_t rows = v.size(0), heads = v.size(1), keys = q.size(2), values = v.size(2);
      const Shape decays = decay_ == ScanDecay::head  ? Shape{rows, heads}
                           : decay_ == ScanDecay::key ? Shape{rows, heads, keys}
                                                      : Shape{rows, heads, values};
      fits = decay.shape() == decays;
      if (rule_ == ScanRule::delta || scan_.gains)
        fits = fits && inputs[6].shape() == Shape{rows, heads};
      if (rule_ == ScanRule::moving)
        fits = fits && inputs[6].shape() == Shape{rows, heads, keys} &&
               inputs[7].shape() == inputs[6].shape();
      if (decay_ == ScanDecay::element)
        fits = fits && inputs[6].shape() == Shape{heads, keys, values};
    }
    std::string others;
    for (const Tensor& each : inputs.subspan(6)) others += " and " + each.shape().text();
    if (!fits)
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: q {}, k {}, v {}, decay {}{}, state {}; q and k must be [rows, "
                      "key_heads, keys], v [rows, heads, values], the state [states, heads, keys, "
                      "values], the others as prism/ops/recurrence.h says",
                      name_, q.shape().text(), k.shape().text(), v.shape().text(),
                      decay.shape().text(), others, state.shape().text()));
    return {{state.shape(), DType::f32}, {v.shape(), DType::f32}};
  }

  // Rows of q, k and v may be parts of longer ones.
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override {
    if (input < 1 || input > 3) return Op::takes_layout(input, tensor, device);
    const Layout& layout = tensor.layout();
    return (tensor.size(2) <= 1 || layout.stride(2) == 1) &&
           (tensor.size(1) <= 1 || layout.stride(1) == tensor.size(2));
  }

  void run_cpu(const CpuCall& call) const override {
    const HostView &q = call.inputs[1], &k = call.inputs[2], &v = call.inputs[3],
                   &decay = call.inputs[4], &state = call.outputs[0], &y = call.outputs[1];
    const Shape& shape = v.layout.shape;
    const int64_t heads = shape[1], values = shape[2];
    const int64_t key_heads = q.layout.shape[1], keys = q.layout.shape[2];
    const std::vector<ops::TextRows> texts =
        ops::read_texts(name_, call.inputs[5], shape[0], state.layout.shape[0]);
    ops::clear_other_rows(y, texts);
    if (values == 0) return;
    // Columns of a task: a few vectors, so that few heads with many columns fill all threads.
    constexpr int64_t kPiece = 64;
    const int64_t pieces = (values + kPiece - 1) / kPiece;
    const auto tasks = static_cast<uint64_t>(std::ssize(texts) * heads * pieces);
    call.pool.parallel_for(tasks, 1, [&](uint64_t begin, uint64_t end) {
      for (auto task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
        const ops::TextRows& text = texts[static_cast<size_t>(task / pieces / heads)];
        const int64_t head = task / pieces % heads, column = task % pieces * kPiece;
        const int64_t key_head = tiled_keys_ ? head % key_heads : head / (heads / key_heads);
        const int64_t of_head = text.first * heads + head;
        cpu::StateScan scan;
        scan.rule = rule_;
        scan.decay_kind = decay_;
        scan.rows = static_cast<size_t>(text.count);
        scan.keys = static_cast<size_t>(keys);
        scan.columns = static_cast<size_t>(std::min(kPiece, values - column));
        const auto row_of = [&](const HostView& view, int64_t at) {
          return view.first<float>() + text.first * view.layout.stride(0) + at;
        };
        const auto stride_of = [](const HostView& view) {
          return static_cast<size_t>(view.layout.stride(0));
        };
        scan.q = row_of(q, key_head * keys);
        scan.k = row_of(k, key_head * keys);
        scan.q_stride = stride_of(q);
        scan.k_stride = stride_of(k);
        scan.v = row_of(v, head * values + column);
        scan.v_stride = stride_of(v);
        scan.y = row_of(y, head * values + column);
        scan.y_stride = stride_of(y);
        const int64_t each = decay_ == ScanDecay::head  ? 1
                             : decay_ == ScanDecay::key ? keys
                                                        : values;
        scan.decay = decay.first<float>() + of_head * each;
        scan.decay_stride = static_cast<size_t>(heads * each);
        if (decay_ == ScanDecay::element) {
          scan.decay += column;
          scan.extra = call.inputs[6].first<float>() + head * keys * values + column;
          scan.extra_stride = static_cast<size_t>(values);
        } else if (scan_.gains) {
          scan.gains = call.inputs[6].first<float>() + of_head;
          scan.gain_stride = static_cast<size_t>(heads);
        } else if (call.inputs.size() > 6) {
          const int64_t words = rule_ == ScanRule::moving ? keys : 1;
          scan.extra = call.inputs[6].first<float>() + of_head * words;
          scan.extra_stride = static_cast<size_t>(heads * words);
          if (rule_ == ScanRule::moving) {
            scan.rates = call.inputs[7].first<float>() + of_head * keys;
            scan.rates_stride = scan.extra_stride;
          }
        }
        scan.state = state.first<float>() + (text.state * heads + head) * keys * values + column;
        scan.state_stride = static_cast<size_t>(values);
        cpu::state_scan(scan);
      }
    });
  }

  void launch(DeviceCall& call) const override {
    const Shape& shape = call.input(3).layout.shape;
    const Shape& keys = call.input(1).layout.shape;
    const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
    ops::ScanKernel p = scan_;
    p.keys = word(keys[2]);
    const uint32_t texts = word(call.input(5).layout.shape[0]);
    std::vector<ParamValue> params = {word(shape[0]), word(shape[1]), word(keys[1]), word(shape[2]),
                                      texts};
    std::vector<DeviceView> buffers = {call.output(0)};
    bool aligned[3];
    for (size_t i = 0; i < 3; ++i) {
      DeviceView view = call.input(1 + i);
      aligned[i] = view.layout.stride(0) % 4 == 0 && view.layout.offset % 4 == 0;
      params.emplace_back(word(view.layout.stride(0)));
      params.emplace_back(word(view.layout.offset));
      view.layout.offset = 0;  // passed as a parameter
      buffers.push_back(view);
    }
    buffers.push_back(call.input(4));
    if (p.has_rates()) {
      p.packed_rates = call.info().capabilities.max_buffers < kScanBuffers;
      if (p.packed_rates)
        buffers.push_back(packed(call, call.input(6), call.input(7)));
      else
        buffers.insert(buffers.end(), {call.input(6), call.input(7)});
    } else if (p.has_extra()) {
      buffers.push_back(call.input(6));
    }
    buffers.push_back(call.input(5));
    buffers.push_back(call.output(1));
    const auto groups = [&](uint32_t columns) {
      return std::array<uint32_t, 3>{word(shape[1]) * groups_for(shape[2], columns), texts, 1};
    };
    if (shape[0] >= kPromptRows * texts)
      if (std::optional<ops::PromptScanKernel> prompt =
              ops::prompt_scan(p, word(shape[1]), word(shape[2]), texts, call.info().capabilities,
                               call.info().compute_units)) {
        prompt->key_quads = aligned[0] && aligned[1];
        prompt->value_quads = aligned[2] && shape[2] % 4 == 0;
        call.launch(
            prompt->key(), [&] { return ops::prompt_scan_kernel(*prompt); },
            groups(prompt->columns), buffers, params);
        return;
      }
    p.share_columns(shape[0] <= texts, call.info().capabilities.max_group_size);
    call.launch(
        p.key(), [&] { return ops::scan_kernel(p); }, groups(ops::ScanKernel::kColumns), buffers,
        params);
  }

  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView>) const override {
    const double matrix = static_cast<double>(inputs[1].layout.shape[2]) *
                          static_cast<double>(inputs[3].layout.shape[2]);
    const double rows = static_cast<double>(inputs[3].layout.shape[0] * inputs[3].layout.shape[1]);
    return rows * matrix * (rule_ == ScanRule::delta || rule_ == ScanRule::moving ? 6 : 4);
  }

 private:
  const char* name_;
  ops::ScanKernel scan_;  // without its keys
  ScanRule rule_;
  ScanDecay decay_;
  bool tiled_keys_;
};

Recurrence scan(const char* name, const ops::ScanKernel& kind, std::vector<Tensor> inputs) {
  for (const Tensor& each : inputs)
    if (!each)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: an operand is an empty Tensor; "
                                                           "give it a value",
                                                           name));
  const std::vector<Tensor> outputs =
      use_op_all(std::make_shared<StateScanOp>(name, kind), std::move(inputs));
  return {outputs[1], outputs[0]};
}

ScanDecay decay_of(const Tensor& decay) {
  return decay && decay.rank() == 3 ? ScanDecay::key : ScanDecay::head;
}

}  // namespace

Recurrence state_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                      const Tensor& state, const Tensor& texts, const ScanSettings& settings) {
  ops::ScanKernel kind{settings.reads_before ? ScanRule::sums_before : ScanRule::sums,
                       decay_of(decay), settings.tiled_keys};
  std::vector<Tensor> inputs = {state, q, k, v, decay, texts};
  kind.gains = static_cast<bool>(settings.gains);
  if (kind.gains) inputs.push_back(settings.gains);
  return scan("state_scan", kind, std::move(inputs));
}

Recurrence selective_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& steps,
                          const Tensor& rates, const Tensor& state, const Tensor& texts) {
  return scan("selective_scan", {ScanRule::sums, ScanDecay::element},
              {state, q, k, v, steps, texts, rates});
}

Recurrence delta_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                      const Tensor& beta, const Tensor& state, const Tensor& texts,
                      bool tiled_keys) {
  return scan("delta_scan", {ScanRule::delta, decay_of(decay), tiled_keys},
              {state, q, k, v, decay, texts, beta});
}

Recurrence moving_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                       const Tensor& from, const Tensor& rates, const Tensor& state,
                       const Tensor& texts) {
  return scan("moving_scan", {ScanRule::moving, decay_of(decay)},
              {state, q, k, v, decay, texts, from, rates});
}

}  // namespace prism
