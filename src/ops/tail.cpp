// Tails: composing chains, binding them to a launch, emitting them in kernels, and running them on
// the CPU.
#include "ops/tail.h"

#include <algorithm>

#include <fmt/format.h>

#include "tensor/chain/chain_kernel.h"
#include "tensor/chain/chain_op.h"
#include "tensor/chain/chain_pieces.h"

namespace prism {

using namespace dsl;

namespace {

// Reorders the inputs of a chain: input i of the result is order[i] of the old one.
Chain reordered(Chain chain, const std::vector<size_t>& order) {
  std::vector<DType> inputs;
  std::vector<uint16_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inputs.push_back(chain.inputs[order[i]]);
    place[order[i]] = static_cast<uint16_t>(i);
  }
  chain.inputs = std::move(inputs);
  for (Chain::Step& step : chain.steps)
    if (step.kind == Chain::Kind::input) step.index = place[step.index];
  return chain;
}

Chain with_first_stored(Chain chain, DType stored) {
  chain.inputs[0] = stored;
  for (Chain::Step& step : chain.steps)
    if (step.kind == Chain::Kind::input && step.index == 0) step.stored = stored;
  return chain;
}

bool is_narrow_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

// Whether a layout has these strides on every axis longer than 1.
bool steps_by(const prism::Layout& layout, int first, int last, int64_t innermost, bool dense) {
  int64_t step = innermost;
  for (int axis = last - 1; axis >= first; --axis) {
    if (layout.shape[axis] != 1 && layout.stride(axis) != step) return false;
    if (dense) step *= layout.shape[axis];
  }
  return true;
}

// The number of elements after which a layout repeats them in order: a multiple of four, or 0.
uint32_t period_of(const prism::Layout& wide) {
  int64_t period = 1;
  for (int axis = wide.shape.rank() - 1; axis >= 0; --axis) {
    if (period % 4 == 0 && period < (int64_t{1} << 31) && steps_by(wide, 0, axis + 1, 0, false))
      return static_cast<uint32_t>(period);
    if (wide.shape[axis] != 1 && wide.stride(axis) != period) return 0;
    period *= wide.shape[axis];
  }
  return 0;
}

std::optional<TailAccess> access_of(const prism::Layout& layout, const Shape& output,
                                    int64_t columns) {
  const prism::Layout wide = layout.broadcast_to(output);
  const int rank = output.rank();
  if (steps_by(wide, 0, rank, 1, true)) return TailAccess::place;
  if (steps_by(wide, 0, rank, 0, false)) return TailAccess::one;
  if (rank > 0 && output[-1] == columns) {
    if (steps_by(wide, 0, rank - 1, 0, false) && steps_by(wide, rank - 1, rank, 1, true))
      return TailAccess::column;
    if (steps_by(wide, rank - 1, rank, 0, false) && steps_by(wide, 0, rank - 1, 1, true))
      return TailAccess::row;
  }
  if (period_of(wide) > 0) return TailAccess::period;
  return std::nullopt;
}

}  // namespace

size_t Tail::params() const { return chain_params(chain_).size(); }

std::string Tail::text() const { return empty() ? "" : "then " + chain_.text(); }

std::optional<Tail> Tail::then(const Chain& next, size_t input) const {
  const auto narrow = [](DType type) { return is_narrow_float(type); };
  if (!narrow(next.output) || !std::ranges::all_of(next.inputs, narrow)) return std::nullopt;
  for (const Chain::Step& step : next.steps)
    if (step.type != DType::f32) return std::nullopt;
  Tail result;
  std::vector<size_t> order;
  if (empty()) {
    order.push_back(input);
    for (size_t i = 0; i < next.inputs.size(); ++i)
      if (i != input) order.push_back(i);
    result.chain_ = reordered(next, order);
  } else {
    // joined() puts the other inputs of `next` first, then those of this chain.
    const size_t fresh = next.inputs.size() - 1;
    for (size_t i = 0; i < chain_.inputs.size(); ++i) order.push_back(fresh + i);
    for (size_t i = 0; i < fresh; ++i) order.push_back(i);
    result.chain_ = reordered(joined(next, input, chain_), order);
  }
  result.chain_ = with_first_stored(simplified(result.chain_), DType::f32);
  return result;
}

std::shared_ptr<const Op> TailedOp::with_epilogue(const Chain& chain, size_t chain_input) const {
  auto tail = tail_.then(chain, chain_input);
  return tail ? with_tail(*std::move(tail)) : nullptr;
}

std::string TailSpec::key() const {
  std::string key = chain.key() + " ";
  for (const TailAccess each : access) key += static_cast<char>(each);
  for (const uint32_t each : periods) key += fmt::format(" {}", each);
  return key;
}

std::optional<TailBinding> bind_tail(const DeviceCall& call, const Tail& tail, size_t first_other,
                                     int64_t columns, size_t output, std::optional<size_t> made) {
  return bind_tail(call, tail, first_other, columns, call.output(output).layout.shape, made);
}

std::optional<TailBinding> bind_tail(const DeviceCall& call, const Tail& tail, size_t first_other,
                                     int64_t columns, const Shape& result,
                                     std::optional<size_t> made) {
  TailBinding binding;
  if (tail.empty()) return binding;
  auto spec = std::make_shared<TailSpec>();
  spec->chain = tail.chain();
  for (size_t i = 0; i < tail.others(); ++i) {
    if (made == i) {
      spec->access.push_back(TailAccess::made);
      continue;
    }
    const DeviceView& view = call.input(first_other + binding.buffers.size());
    const auto access = access_of(view.layout, result, columns);
    const auto bytes = static_cast<int64_t>(view.type.block_bytes());
    if (!access || view.layout.offset * bytes % static_cast<int64_t>(kRangeAlignment) != 0)
      return std::nullopt;
    spec->access.push_back(*access);
    if (access == TailAccess::period)
      spec->periods.push_back(period_of(view.layout.broadcast_to(result)));
    binding.buffers.push_back(view);
  }
  for (const Chain::Step& step : tail.chain().steps)
    if (is_chain_param(step)) binding.params.emplace_back(static_cast<float>(step.number));
  binding.spec = std::move(spec);
  return binding;
}

void launch_tail(DeviceCall& call, const Tail& tail, size_t first_other, const DeviceView& made) {
  std::vector<DeviceView> inputs = {made};
  inputs[0].layout = prism::Layout::dense(call.output().layout.shape);
  for (size_t i = 0; i < tail.others(); ++i) inputs.push_back(call.input(first_other + i));
  DeviceCall after(call.device(), inputs, {call.output()}, [&](uint64_t bytes) {
    return call.scratch(Shape{static_cast<int64_t>(bytes)}, DType::u8).slot;
  });
  ChainOp(with_first_stored(tail.chain(), made.type.plain()), call.output().layout.shape)
      .launch(after);
  for (PlannedLaunch& each : after.launches()) call.launches().push_back(std::move(each));
}

TailCode::TailCode(std::shared_ptr<const TailSpec> spec, std::string suffix)
    : spec_(std::move(spec)), suffix_(std::move(suffix)) {
  for (size_t i = 1; spec_ && i < spec_->chain.inputs.size(); ++i) {
    buffers_.emplace_back();
    if (spec_->access[i - 1] != TailAccess::made)
      buffers_.back() =
          in(fmt::format("tail{}{}", i, suffix_), kernel_type(spec_->chain.inputs[i]));
  }
}

void TailCode::declare_params() {
  if (!spec_) return;
  for (const ir::Param& each : chain_params(spec_->chain))
    constants_.push_back(param("tail_" + each.name + suffix_, each.type));
}

Value TailCode::in_period(size_t input, const Value& place) const {
  const auto before =
      std::ranges::count(spec_->access.begin(),
                         spec_->access.begin() + static_cast<ptrdiff_t>(input), TailAccess::period);
  return place % spec_->periods[static_cast<size_t>(before)];
}

Value TailCode::apply(Value result, Value row, Value column, Value place,
                      std::optional<Value> made) const {
  if (!spec_) return result;
  std::vector<Value> loaded = {result};
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const TailAccess access = spec_->access[i];
    const DType stored = spec_->chain.inputs[i + 1];
    if (access == TailAccess::made) {  // rounded as if it had been stored
      loaded.push_back(stored == f32 ? *made : cast(f32, cast(f16, *made)));
      continue;
    }
    const Value index = access == TailAccess::place    ? place
                        : access == TailAccess::period ? in_period(i, place)
                        : access == TailAccess::column ? column
                        : access == TailAccess::row    ? row
                                                       : constant(u32, 0);
    loaded.push_back(load_element(*buffers_[i], index, stored));
  }
  return emit_chain(spec_->chain, loaded, constants_);
}

std::vector<Value> TailCode::apply_four(const std::vector<Value>& results, Value row, Value column,
                                        Value place) const {
  if (!spec_) return results;
  const auto by_four = [&](size_t i) {
    return spec_->access[i] == TailAccess::place || spec_->access[i] == TailAccess::period ||
           spec_->access[i] == TailAccess::column;
  };
  std::vector<Value> loaded;  // four elements each, or one
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (spec_->access[i] == TailAccess::period)
      loaded.push_back(buffers_[i]->load(in_period(i, place), 4));
    else if (by_four(i))
      loaded.push_back(
          buffers_[i]->load(spec_->access[i] == TailAccess::place ? place : column, 4));
    else
      loaded.push_back(
          (*buffers_[i])[spec_->access[i] == TailAccess::row ? row : constant(u32, 0)]);
  }
  std::vector<Value> values;
  for (uint32_t lane = 0; lane < 4; ++lane) {
    std::vector<Value> inputs = {results[lane]};
    for (size_t i = 0; i < buffers_.size(); ++i)
      inputs.push_back(
          from_loaded(by_four(i) ? loaded[i][lane] : loaded[i], spec_->chain.inputs[i + 1]));
    values.push_back(emit_chain(spec_->chain, inputs, constants_));
  }
  return values;
}

void run_tail(const CpuCall& call, const Tail& tail, size_t first_other, float* made) {
  const HostView& output = call.outputs[0];
  std::vector<HostView> inputs = {
      {reinterpret_cast<std::byte*>(made), DType::f32, prism::Layout::dense(output.layout.shape)}};
  for (size_t i = 0; i < tail.others(); ++i) inputs.push_back(call.inputs[first_other + i]);
  ChainOp(tail.chain(), output.layout.shape).run_cpu({inputs, call.outputs, call.pool});
}

TailRows::TailRows(const CpuCall& call, const Tail& tail, size_t first_other, int64_t rows,
                   int64_t columns)
    : tail_(tail), pool_(call.pool), output_(call.outputs[0]) {
  const Shape shape = output_.layout.shape, flat = {rows, columns};
  for (size_t i = 0; i < tail.others(); ++i) {
    HostView view = call.inputs[first_other + i];
    auto layout = view.layout.broadcast_to(shape).reshaped(flat);
    if (!layout) {
      const auto bytes = static_cast<size_t>(shape.elements()) * view.type.block_bytes();
      own_.emplace_back(new std::byte[bytes], std::default_delete<std::byte[]>());
      const HostView dense{own_.back().get(), view.type, prism::Layout::dense(shape)};
      ChainOp(copy_chain(view.type.plain()), shape)
          .run_cpu({std::span(&view, 1), std::span(&dense, 1), pool_});
      view = dense;
      layout = prism::Layout::dense(flat);
    }
    view.layout = *layout;
    others_.push_back(view);
  }
  output_.layout = prism::Layout::dense(flat);
  output_.layout.offset = call.outputs[0].layout.offset;
}

void TailRows::run_in_place(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  ChainPieces pieces(tail_.chain(), columns);
  std::vector<ChainPieces::Input> inputs(1 + others_.size());
  const auto at = [](const HostView& view, int64_t i, int64_t j) {
    const prism::Layout& layout = view.layout;
    return view.data + (layout.offset + i * layout.stride(0) + j * layout.stride(1)) *
                           static_cast<int64_t>(view.type.block_bytes());
  };
  for (int64_t i = row; i < row + rows; ++i) {
    for (int64_t j = column; j < column + columns; j += kChainPiece) {
      std::byte* const to = at(output_, i, j);
      inputs[0] = {to, 1};
      for (size_t n = 0; n < others_.size(); ++n)
        inputs[n + 1] = {at(others_[n], i, j), others_[n].layout.stride(1)};
      pieces.run(inputs, std::min(kChainPiece, column + columns - j), to);
    }
  }
}

void TailRows::run(int64_t first, int64_t count, float* made) const {
  const auto rows_of = [&](HostView view) {
    view.layout.offset += first * view.layout.stride(0);
    view.layout.shape[0] = count;
    return view;
  };
  const HostView output = rows_of(output_);
  std::vector<HostView> inputs = {
      {reinterpret_cast<std::byte*>(made), DType::f32, prism::Layout::dense(output.layout.shape)}};
  for (const HostView& each : others_) inputs.push_back(rows_of(each));
  ChainOp(tail_.chain(), output.layout.shape).run_cpu({inputs, std::span(&output, 1), pool_});
}

}  // namespace prism
