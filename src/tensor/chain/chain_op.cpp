// The op of chains: shape rule, launch, and the limits of a fused kernel.
#include "tensor/chain/chain_op.h"

#include <algorithm>
#include <bit>

#include "prism/error.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/plan/device_call.h"
#include "tensor/transpose.h"

namespace prism {

namespace {

constexpr size_t kMaxBuffers = 8, kMaxParams = 24;

// Adds axes of length 1 in front.
Layout padded(const Layout& layout, int rank) {
  Layout result;
  result.offset = layout.offset;
  const int more = rank - layout.shape.rank();
  for (int axis = 0; axis < rank; ++axis) {
    result.shape.append(axis < more ? 1 : layout.shape[axis - more]);
    result.strides[static_cast<size_t>(axis)] = axis < more ? 0 : layout.stride(axis - more);
  }
  return result;
}

// Fewer elements are not worth a program of their own.
constexpr int64_t kStridedFours = 1 << 14;

// Whether each input has the elements of four neighbours once for all, or adjacent and aligned;
// empty if one has neither. All layouts have the output's shape.
std::vector<bool> repeated_inputs(std::span<const Layout> inputs, const Shape& shape) {
  std::vector<bool> repeated;
  const int last = shape.rank() - 1;
  if (shape[last] % 4 != 0 || shape.elements() < kStridedFours) return {};
  for (const Layout& each : inputs) {
    if (each.stride(last) != 0 && each.stride(last) != 1) return {};
    repeated.push_back(each.stride(last) == 0);
    bool aligned = each.offset % 4 == 0;
    for (int axis = 0; axis < last; ++axis) aligned = aligned && each.stride(axis) % 4 == 0;
    if (!repeated.back() && !aligned) return {};
  }
  return repeated;
}

// How a kernel addresses inputs that are broadcast to the output's shape, and their layouts for it.
// Few variants exist, so that few programs are compiled: linear, or strided over 2, 4 or 8 axes.
ChainAccess access_of(const Chain& chain, std::span<const Layout> inputs, const Shape& output,
                      std::vector<Layout>& walk) {
  walk.clear();
  for (const Layout& each : inputs) walk.push_back(each.broadcast_to(output));
  walk.push_back(Layout::dense(output));
  collapse(walk);
  const Layout dense = walk.back();
  const bool straight = std::ranges::all_of(walk, [&](const Layout& each) {
    return each.offset == 0 &&
           std::equal(each.strides.begin(), each.strides.begin() + dense.shape.rank(),
                      dense.strides.begin());
  });
  ChainAccess access;
  // Vectors of four elements; 64-bit types are wide enough already.
  const auto narrow = [](DType type) { return dtype_bytes(kernel_type(type)) <= 4; };
  access.by_four = narrow(chain.output) && std::ranges::all_of(chain.inputs, narrow);
  if (straight) return access;
  access.rank = dense.shape.rank() <= 2 ? 2 : dense.shape.rank() <= 4 ? 4 : kMaxRank;
  for (Layout& each : walk) each = padded(each, access.rank);
  const auto sources = std::span(walk).first(inputs.size());
  if (access.by_four) access.repeated = repeated_inputs(sources, walk.back().shape);
  access.by_four = !access.repeated.empty();
  return access;
}

}  // namespace

void launch_chain(DeviceCall& call, const Chain& chain, std::span<const DeviceView> inputs,
                  const DeviceView& output) {
  if (is_copy(chain) && inputs[0].slot != output.slot) {
    const Layout from = inputs[0].layout.broadcast_to(output.layout.shape);
    if (const auto turned = as_transposed(from))
      return launch_transpose(call, *turned, inputs[0], output);
  }
  std::vector<Layout> layouts, walk;
  std::vector<DeviceView> buffers;
  int taken_over = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    layouts.push_back(inputs[i].layout);
    if (inputs[i].slot == output.slot) {  // bound once, as the output
      taken_over = static_cast<int>(i);
      continue;
    }
    buffers.push_back(inputs[i]);
    buffers.back().layout.offset = 0;  // offsets are parameters here
  }
  buffers.push_back(output);
  const int64_t count = output.elements();
  ChainAccess access = access_of(chain, layouts, output.layout.shape, walk);
  access.taken_over = taken_over;

  const auto word = [](int64_t value) { return ParamValue(static_cast<uint32_t>(value)); };
  // Strided fours are counted as such; along the last axis, one follows the other.
  const bool strided_fours = access.by_four && access.rank > 0;
  const int64_t at_once = strided_fours ? 4 : 1;
  const int last = access.rank - 1;
  std::vector<ParamValue> params = {word(count / at_once)};
  for (int axis = 1; axis <= last; ++axis)
    params.push_back(word(walk.back().shape[axis] / (axis == last ? at_once : 1)));
  for (size_t i = 0; access.rank > 0 && i < layouts.size(); ++i) {
    const int64_t unit = strided_fours && access.repeated[i] ? 1 : at_once;
    // Negative strides wrap in 32 bits, as the kernel's sums do.
    for (int axis = 0; axis <= last; ++axis)
      params.push_back(word(walk[i].stride(axis) / (axis == last ? 1 : unit)));
    params.push_back(word(walk[i].offset / unit));
  }
  for (const Chain::Step& step : chain.steps) {
    if (!is_chain_param(step)) continue;
    if (step.type == DType::f32)
      params.emplace_back(static_cast<float>(step.number));
    else
      params.emplace_back(static_cast<int32_t>(step.number));
  }
  call.launch(
      chain_kernel_key(chain, access), [&] { return chain_kernel(chain, access); },
      {groups_for(count, access.by_four ? 1024 : 256), 1, 1}, buffers, std::move(params));
}

bool is_copy(const Chain& chain) {
  return chain.inputs.size() == 1 && chain.inputs[0] == chain.output &&
         chain.steps[chain.result].kind == Chain::Kind::input;
}

Chain copy_chain(DType type) {
  Chain chain;
  chain.add_input(type);
  chain.output = type;
  return chain;
}

Chain cast_chain(DType from, DType to) {
  Chain chain;
  chain.add_cast(chain.add_input(from), to);
  chain.output = to;
  return chain;
}

bool chain_fits(const Chain& chain, std::span<const Layout> inputs, const Shape& output) {
  if (inputs.size() + 1 > kMaxBuffers) return false;
  std::vector<Layout> walk;
  const ChainAccess access = access_of(chain, inputs, output, walk);
  return access.params(inputs.size()) + chain_params(chain).size() <= kMaxParams;
}

std::string_view ChainOp::name() const {
  if (in_place_) return "assign";
  const Chain::Step& last = chain_.steps[chain_.result];
  switch (last.kind) {
    case Chain::Kind::input:
      return "copy";
    case Chain::Kind::constant:
      return "full";
    case Chain::Kind::cast:
      return "cast";
    case Chain::Kind::apply:
      return scalar_op_name(last.op);
  }
  return "elementwise";
}

std::string ChainOp::attributes() const { return chain_.text(); }

std::vector<Spec> ChainOp::infer(std::span<const Tensor> inputs) const {
  Shape shape = shape_;
  for (const Tensor& each : inputs)
    shape = broadcast(std::string(name()).c_str(), shape, each.shape());
  return {{shape, chain_.output}};
}

std::vector<Tensor> ChainOp::gradient(const GradientCall& call) const {
  if (!in_place_ && chain_.steps[chain_.result].kind == Chain::Kind::input)
    return {call.output_gradients[0]};
  return Op::gradient(call);
}

std::optional<std::string> ChainOp::cannot_run(const DeviceInfo& device,
                                               std::span<const Tensor>) const {
  for (const Chain::Step& step : chain_.steps) {
    const std::string reason = lacks_type(device.capabilities, step.type);
    if (!reason.empty()) return reason;
  }
  return std::nullopt;
}

bool ChainOp::takes_layout(size_t, const Tensor&, const DeviceInfo&) const { return true; }

int ChainOp::overwrites(std::span<const Tensor> inputs) const {
  if (in_place_) return -1;  // its place is given
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& each = inputs[i];
    if (each.layout().offset == 0 && each.layout().is_dense() &&
        each.elements() == infer(inputs)[0].shape.elements() &&
        kernel_type(chain_.inputs[i]) == kernel_type(chain_.output))
      return static_cast<int>(i);
  }
  return -1;
}

void ChainOp::launch(DeviceCall& call) const {
  std::vector<DeviceView> inputs;
  std::vector<Layout> layouts;
  for (size_t i = 0; i < call.input_count(); ++i) {
    inputs.push_back(call.input(i));
    layouts.push_back(call.input(i).layout);
  }
  const DeviceView& output = call.output();
  // Too many strides for one launch: first copy inputs to the output's layout, one by one.
  for (size_t i = 0; !chain_fits(chain_, layouts, output.layout.shape); ++i) {
    const DeviceView even = call.scratch(output.layout.shape, inputs[i].type);
    launch_chain(call, copy_chain(inputs[i].type.plain()), std::span(&inputs[i], 1), even);
    inputs[i] = even;
    layouts[i] = even.layout;
  }
  launch_chain(call, chain_, inputs, output);
}

Tensor copied(const Tensor& x) {
  return use_op(std::make_shared<ChainOp>(copy_chain(x.type().plain())), {x});
}

}  // namespace prism
