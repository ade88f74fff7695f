// Addresses of the elements of rows, in kernels and on the CPU.
#include "ops/rows/row_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "tensor/chain/chain_kernel.h"
#include "tensor/chain/chain_op.h"

namespace prism {

using namespace dsl;

namespace {

constexpr size_t kMaxBuffers = 8, kMaxParams = 24;

int64_t product(const Shape& shape, int first, int last) {
  int64_t result = 1;
  for (int axis = first; axis < last; ++axis) result *= shape[axis];
  return result;
}

// One stride for the axes [first, last) of a layout.
std::optional<int64_t> common_stride(const prism::Layout& layout, int first, int last) {
  int64_t stride = 0, extent = 1;
  for (int axis = last - 1; axis >= first; --axis) {
    if (layout.shape[axis] == 1) continue;
    if (extent == 1)
      stride = layout.stride(axis);
    else if (layout.stride(axis) != stride * extent)
      return std::nullopt;
    extent *= layout.shape[axis];
  }
  return stride;
}

ParamValue word(int64_t value) { return ParamValue(static_cast<uint32_t>(value)); }

}  // namespace

RowSource::RowSource(DType stored, const Shape& shape, int first, int last)
    : shape_(shape),
      first_(first),
      last_(last),
      rows_{product(shape, 0, first), product(shape, first, last),
            product(shape, last, shape.rank())} {
  chain_.add_input(stored);
  chain_.output = stored;
}

std::optional<RowSource> RowSource::after(const Chain& chain, size_t other_buffers,
                                          size_t other_params) const {
  if (!plain_ || chain.inputs.empty() || register_type(chain.output) == DType::b1)
    return std::nullopt;
  RowSource result = *this;
  result.plain_ = false;
  result.chain_ = chain;
  if (!result.fits(other_buffers, other_params)) return std::nullopt;
  return result;
}

bool RowSource::fits(size_t other_buffers, size_t other_params) const {
  return inputs() + other_buffers <= kMaxBuffers &&
         4 * inputs() + chain_params(chain_).size() + other_params <= kMaxParams;
}

std::optional<RowSource::Lie> RowSource::lie_of(const prism::Layout& layout) const {
  const prism::Layout wide = layout.broadcast_to(shape_);
  const auto outer = common_stride(wide, 0, first_), along = common_stride(wide, first_, last_),
             inner = common_stride(wide, last_, shape_.rank());
  if (!outer || !along || !inner) return std::nullopt;
  return Lie{*outer, *along, *inner, wide.offset};
}

bool RowSource::takes_layout(const Tensor& tensor, const DeviceInfo& device) const {
  const auto lie = lie_of(tensor.layout());
  if (!lie) return false;
  // Each strided element would load a whole cache line.
  const bool neighbours = rows_.inner > 1 ? lie->inner == 1 : lie->along == 1;
  return device.is_cpu || neighbours || tensor.layout().is_dense() || !(tensor.shape() == shape_);
}

std::optional<std::string> RowSource::cannot_run(const DeviceInfo& device) const {
  return ChainOp(chain_, shape_).cannot_run(device, {});
}

std::string RowBinding::key() const {
  std::string key(by_four ? "4" : "1");
  for (const RowAccess each : access) key += static_cast<char>(each);
  key += ' ' + chain.key();
  for (const Chain::Step& step : chain.steps)  // constants that are part of the code
    if (step.kind == Chain::Kind::constant && !is_chain_param(step))
      key += fmt::format(" {}", step.number);
  return key;
}

RowBinding bind_plain(const DeviceView& view, const Rows& rows) {
  RowBinding binding;
  const DType stored = view.type.plain();
  binding.chain.add_input(stored);
  binding.chain.output = stored;
  binding.access = {RowAccess::full};
  binding.buffers = {view};
  binding.by_four =
      rows.inner == 1 && rows.length % 4 == 0 && dtype_bytes(kernel_type(stored)) <= 4;
  return binding;
}

RowBinding bind_rows(DeviceCall& call, const RowSource& source, size_t first_input) {
  const Rows& rows = source.rows();
  RowBinding binding;
  binding.chain = source.chain();
  binding.by_four = rows.inner == 1 && rows.length % 4 == 0;
  for (size_t i = 0; i < source.inputs(); ++i) {
    DeviceView view = call.input(first_input + i);
    const auto bytes = static_cast<int64_t>(view.type.block_bytes());
    const auto lie = source.lie_of(view.layout);
    if (!lie) {  // materialise the chain first
      std::vector<DeviceView> inputs;
      for (size_t n = 0; n < source.inputs(); ++n) inputs.push_back(call.input(first_input + n));
      const DeviceView made = call.scratch(source.shape(), source.stored());
      DeviceCall before(call.device(), inputs, {made}, [&](uint64_t size) {
        return call.scratch(Shape{static_cast<int64_t>(size)}, DType::u8).slot;
      });
      ChainOp(source.chain(), source.shape()).launch(before);
      for (PlannedLaunch& each : before.launches()) call.launches().push_back(std::move(each));
      return bind_plain(made, rows);
    }
    const bool bound = view.layout.offset * bytes % static_cast<int64_t>(kRangeAlignment) == 0;
    const auto same = [](int64_t stride, int64_t wanted, int64_t count) {
      return stride == wanted || count == 1;
    };
    const bool full = bound && same(lie->inner, 1, rows.inner) &&
                      same(lie->along, rows.inner, rows.length) &&
                      same(lie->outer, rows.inner * rows.length, rows.outer);
    if (full) {
      binding.access.push_back(RowAccess::full);
      binding.by_four = binding.by_four && dtype_bytes(kernel_type(view.type.plain())) <= 4;
    } else {
      const bool row = rows.inner == 1 && (lie->along == 0 || rows.length == 1);
      const bool apart = !row && rows.inner == 1 && lie->along == 1;
      const bool fours = apart && lie->outer % 4 == 0 && (bound || lie->offset % 4 == 0) &&
                         dtype_bytes(kernel_type(view.type.plain())) <= 4;
      binding.access.push_back(row     ? RowAccess::row
                               : apart ? RowAccess::apart
                                       : RowAccess::strided);
      binding.by_four = binding.by_four && (row || fours);
      binding.params.push_back(word(bound ? 0 : lie->offset));
      binding.params.push_back(word(lie->outer));
      if (!row && !apart) {
        binding.params.push_back(word(lie->along));
        binding.params.push_back(word(lie->inner));
      }
    }
    binding.buffers.push_back(view);
  }
  for (const Chain::Step& step : binding.chain.steps) {
    if (!is_chain_param(step)) continue;
    if (step.type == DType::f32)
      binding.params.emplace_back(static_cast<float>(step.number));
    else
      binding.params.emplace_back(static_cast<int32_t>(step.number));
  }
  return binding;
}

RowCode::RowCode(const RowBinding& binding) : chain_(binding.chain), access_(binding.access) {
  for (size_t i = 0; i < chain_.inputs.size(); ++i)
    buffers_.push_back(in(fmt::format("x{}", i), kernel_type(chain_.inputs[i])));
}

void RowCode::declare_params(Value length, Value inner) {
  length_ = length, inner_ = inner;
  strides_.resize(access_.size());
  const char* const names[] = {"offset", "outer", "along", "inner"};
  for (size_t i = 0; i < access_.size(); ++i) {
    const size_t wanted = access_[i] == RowAccess::full      ? 0
                          : access_[i] == RowAccess::strided ? 4
                                                             : 2;
    for (size_t n = 0; n < wanted; ++n)
      strides_[i][n] = param(fmt::format("{}{}", names[n], i), u32);
  }
  for (const ir::Param& each : chain_params(chain_))
    constants_.push_back(param(each.name, each.type));
}

Value RowCode::chained(std::vector<Value> loaded) const {
  return emit_chain(chain_, loaded, constants_);
}

Value RowCode::at(Value outer, Value along, Value inner) const {
  std::vector<Value> loaded;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const auto& stride = strides_[i];
    const Value index =
        access_[i] == RowAccess::full  ? (outer * *length_ + along) * *inner_ + inner
        : access_[i] == RowAccess::row ? *stride[0] + outer * *stride[1]
        : access_[i] == RowAccess::apart
            ? *stride[0] + outer * *stride[1] + along
            : *stride[0] + outer * *stride[1] + along * *stride[2] + inner * *stride[3];
    loaded.push_back(load_element(buffers_[i], index, chain_.inputs[i]));
  }
  return chained(std::move(loaded));
}

Value RowCode::at(Value row, Value along) const {
  std::vector<Value> loaded;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const auto& stride = strides_[i];
    const Value index = access_[i] == RowAccess::full  ? row * *length_ + along
                        : access_[i] == RowAccess::row ? *stride[0] + row * *stride[1]
                        : access_[i] == RowAccess::apart
                            ? *stride[0] + row * *stride[1] + along
                            : *stride[0] + row * *stride[1] + along * *stride[2];
    loaded.push_back(load_element(buffers_[i], index, chain_.inputs[i]));
  }
  return chained(std::move(loaded));
}

std::array<Value, 4> RowCode::four_at(Value row, Value along) const {
  std::vector<Value> fours;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (access_[i] == RowAccess::full)
      fours.push_back(buffers_[i].load(row * *length_ + along, 4));
    else if (access_[i] == RowAccess::apart)
      fours.push_back(buffers_[i].load(*strides_[i][0] + row * *strides_[i][1] + along, 4));
    else
      fours.push_back(buffers_[i][*strides_[i][0] + row * *strides_[i][1]]);
  }
  const auto one = [&](uint32_t lane) {
    std::vector<Value> loaded;
    for (size_t i = 0; i < buffers_.size(); ++i)
      loaded.push_back(
          from_loaded(access_[i] == RowAccess::row ? fours[i] : fours[i][lane], chain_.inputs[i]));
    return chained(std::move(loaded));
  };
  return {one(0), one(1), one(2), one(3)};
}

RowReader::RowReader(const RowSource& source, const CpuCall& call, size_t first_input)
    : source_(source), chain_(source.chain()), pool_(call.pool) {
  chain_.output = source.type();  // no intermediate rounding
  for (size_t i = 0; i < source.inputs(); ++i) {
    HostView view = call.inputs[first_input + i];
    auto lie = source.lie_of(view.layout);
    if (!lie) {
      const Shape& shape = source.shape();
      const uint32_t bytes = view.type.block_bytes();
      own_.emplace_back(new std::byte[static_cast<size_t>(shape.elements()) * bytes],
                        std::default_delete<std::byte[]>());
      Chain copy;
      copy.add_input(view.type.plain());
      copy.output = view.type.plain();
      const HostView to{own_.back().get(), view.type, prism::Layout::dense(shape)};
      ChainOp(copy, shape).run_cpu({std::span(&view, 1), std::span(&to, 1), pool_});
      view = to;
      lie = source.lie_of(view.layout);
    }
    lies_.push_back(*lie);
    even_.push_back(view);
  }
  operands_.resize(even_.size());
}

const void* RowReader::read_bytes(int64_t outer, int64_t along, int64_t inner, int64_t n,
                                  bool across) {
  const auto first_of = [&](size_t i) {
    const RowSource::Lie& lie = lies_[i];
    return lie.offset + outer * lie.outer + along * lie.along + inner * lie.inner;
  };
  const auto step_of = [&](size_t i) { return across ? lies_[i].inner : lies_[i].along; };
  const DType type = source_.type();
  if (buffer_.size() < static_cast<size_t>(n)) buffer_.resize(static_cast<size_t>(n));
  if (chain_.steps.size() == 1 && chain_.inputs.size() == 1) {
    const HostView& view = even_[0];
    const std::byte* first =
        view.data + first_of(0) * static_cast<int64_t>(view.type.block_bytes());
    if (view.type == ElementType(type) && step_of(0) == 1) return first;
    cpu::load(view.type.plain(), first, step_of(0), type, buffer_.data(), static_cast<size_t>(n));
    return buffer_.data();
  }
  if (!pieces_ || pieces_->most() < std::min(n, kChainPiece)) pieces_.emplace(chain_, n);
  auto* const to = reinterpret_cast<std::byte*>(buffer_.data());
  const auto bytes = static_cast<int64_t>(dtype_bytes(type));
  for (int64_t done = 0; done < n; done += kChainPiece) {
    for (size_t i = 0; i < even_.size(); ++i) {
      const int64_t place = first_of(i) + done * step_of(i);
      operands_[i] = {even_[i].data + place * static_cast<int64_t>(even_[i].type.block_bytes()),
                      step_of(i)};
    }
    pieces_->run(operands_, std::min(kChainPiece, n - done), to + done * bytes);
  }
  return buffer_.data();
}

uint64_t rows_a_chunk(int64_t length) {
  return static_cast<uint64_t>(std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length)));
}

}  // namespace prism
