// The base of row ops: inputs, fusion and launch.
#include "ops/rows/row_op.h"

#include <fmt/format.h>

namespace prism {

std::string RowOp::attributes() const {
  std::string text = source_.chain().steps.size() > 1 ? "of " + source_.chain().text() : "";
  if (!tail_.empty()) text += (text.empty() ? "" : " ") + tail_.text();
  return text;
}

std::optional<std::string> RowOp::cannot_run(const DeviceInfo& device,
                                             std::span<const Tensor>) const {
  return source_.cannot_run(device);
}

bool RowOp::takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const {
  if (input >= first_other()) return true;
  if (input >= source_.inputs()) return Op::takes_layout(input, tensor, device);
  return source_.takes_layout(tensor, device);
}

std::shared_ptr<const Op> RowOp::with_prologue(size_t input, const Chain& chain) const {
  if (input != 0) return nullptr;
  auto source = source_.after(chain, other_buffers(tail_), other_params(tail_));
  if (!source || register_type(chain.output) != source_.type()) return nullptr;
  return with(*std::move(source), tail_);
}

std::shared_ptr<const Op> RowOp::with_tail(Tail tail) const {
  if (!gives_rows() || source_.type() != DType::f32 ||
      !source_.fits(other_buffers(tail), other_params(tail)))
    return nullptr;
  return with(source_, std::move(tail));
}

void RowOp::launch(DeviceCall& call) const {
  if (call.output().elements() == 0) return;
  const Rows& rows = source_.rows();
  const RowBinding binding = bind_rows(call, source_);
  const RowWalk walk = walk_for(rows, binding, call.info());
  const auto tail = bind_tail(call, tail_, first_other(), rows.length);
  const DeviceView y = tail ? call.output() : call.scratch(source_.shape(), source_.stored());
  launch_rows(call, binding, walk, y.type.plain(), tail.value_or(TailBinding{}), std::span(&y, 1));
  if (!tail) launch_tail(call, tail_, first_other(), y);
}

void RowOp::launch_rows(DeviceCall& call, const RowBinding& binding, const RowWalk& walk,
                        DType stored, const TailBinding& tail,
                        std::span<const DeviceView> results) const {
  const Rows& rows = source_.rows();
  std::vector<DeviceView> buffers = binding.buffers;
  for (size_t i = 0; i < own_inputs_; ++i) buffers.push_back(call.input(source_.inputs() + i));
  std::vector<ParamValue> params = {static_cast<uint32_t>(rows.outer),
                                    static_cast<uint32_t>(rows.length)};
  const auto add = [&params](const std::vector<ParamValue>& more) {
    params.insert(params.end(), more.begin(), more.end());
  };
  add(binding.params);
  add(number());
  std::string key = fmt::format("{} {} {} {} {}", name(), walk.key(), dtype_name(stored),
                                kernel_key(), binding.key());
  if (tail.spec) {
    buffers.insert(buffers.end(), tail.buffers.begin(), tail.buffers.end());
    add(tail.params);
    key += " then " + tail.spec->key();
  }
  buffers.insert(buffers.end(), results.begin(), results.end());
  call.launch(
      key, [&] { return make_kernel(binding, walk, stored, tail.spec); }, walk.groups(rows.outer),
      buffers, std::move(params));
}

}  // namespace prism
