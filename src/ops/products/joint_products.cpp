// Decides which products share a launch, and emits the launches.
#include "ops/products/joint_products.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/products/product_launch.h"
#include "ops/products/round_rows_op.h"
#include "prism/error.h"

namespace prism {

namespace {

constexpr size_t kMostBuffers = 8;  // that every device has

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

DeviceView view_of(const Tensor& tensor) { return {0, tensor.type(), tensor.layout()}; }

bool is_same(const Tensor& a, const Tensor& b) {
  return a.node() == b.node() && a.output() == b.output() && a.layout() == b.layout();
}

bool is_plain(ElementType type) {
  return type == ElementType(DType::f32) || type == ElementType(DType::f16);
}

// The kernels of all, with groups of one size; nothing where that size is not shared out evenly
// between the subgroups by which a product alone would share its rows.
std::optional<std::vector<ops::VectorProduct>> cuts_of(const DeviceInfo& device,
                                                       const std::vector<Sides>& all) {
  std::vector<ops::VectorProduct> products;
  uint32_t subgroups = 1;
  for (const Sides& each : all) {
    products.push_back(few_rows_product(device, each));
    subgroups = std::max(subgroups, products.back().subgroups);
  }
  for (ops::VectorProduct& each : products) {
    if (subgroups % each.split != 0) return std::nullopt;
    each.subgroups = subgroups;
  }
  return products;
}

}  // namespace

std::optional<Sides> few_rows_sides(const Device& device, const MatmulOp& op,
                                    std::span<const Tensor> inputs, ElementType result,
                                    std::optional<DType> rounded) {
  if (inputs[1].rank() != 2 || inputs[0].rank() != 2 ||
      !joins_products(device.info(), inputs[0].size(0)) || inputs[0].elements() == 0 ||
      inputs[1].elements() == 0 || op.cannot_run(device.info(), inputs))
    return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!op.takes_layout(i, inputs[i], device.info())) return std::nullopt;
  DeviceView c;
  c.type = result;
  const Sides sides = sides_of(view_of(inputs[0]), view_of(inputs[1]), c, rounded);
  const ElementType own = product_type(sides.x, sides.b.type);
  // Rows that nobody shares are rounded by each launch for itself.
  if (sides.b.type.is_block() && !rounded) return std::nullopt;
  if (!is_plain(result) || product_way(device.info(), sides, own) != ProductWay::few_rows)
    return std::nullopt;
  return sides;
}

bool joins_products(const DeviceInfo& device, int64_t rows) {
  if (device.is_cpu) return false;
  return !device.software || (device.capabilities.dialect == "spirv" && rows <= 2);
}

std::optional<Joint> MatmulOp::with_maker(const Device& device, std::span<const Tensor> inputs,
                                          size_t made, const OpUse& maker) const {
  const auto* other = dynamic_cast<const MatmulOp*>(&maker.op);
  if (!other || made < 2 || !other->tail_.empty() || other->rounded_ != rounded_ ||
      !is_same(inputs[0], maker.inputs[0]))
    return std::nullopt;
  const Tensor &w = inputs[1], &w_other = maker.inputs[1];
  // What the tail sees of the other product has the place of the result.
  const Tensor& seen = inputs[made];
  if (!(w.type() == w_other.type()) || !(w.layout() == w_other.layout()) ||
      seen.elements() != inputs[0].size(0) * w.size(1) ||
      tail_.chain().inputs[made - 1] != seen.type().plain() ||
      std::ranges::count_if(inputs, [&](const Tensor& t) { return is_same(t, seen); }) != 1)
    return std::nullopt;
  std::vector<Tensor> before(inputs.begin(), inputs.end());
  before.erase(before.begin() + static_cast<ptrdiff_t>(made));
  if (!few_rows_sides(device, *this, before, tail_.chain().output, rounded_) ||
      !few_rows_sides(device, *other, maker.inputs, seen.type(), rounded_) ||
      before.size() + 2 > kMostBuffers)
    return std::nullopt;
  before.insert(before.begin() + 2, w_other);
  return Joint{std::make_shared<PairedProductOp>(tail_, made - 2, rounded_), std::move(before)};
}

std::optional<Joint> MatmulOp::beside(const Device& device, std::span<const OpUse> uses) const {
  if (uses.size() > ops::kSideBySide) return std::nullopt;
  Joint joint;
  std::vector<Tensor> matrices, others;
  std::vector<Tail> tails;
  std::vector<Sides> sides;
  std::vector<uint32_t> x_of;
  for (const OpUse& use : uses) {
    const auto* op = dynamic_cast<const MatmulOp*>(&use.op);
    const Tensor& x = use.inputs[0];
    if (!op || op->rounded_ != rounded_ || !(x.type() == uses[0].inputs[0].type()) ||
        x.rank() != 2 || x.size(0) != uses[0].inputs[0].size(0))
      return std::nullopt;
    const auto same =
        std::ranges::find_if(joint.inputs, [&](const Tensor& each) { return is_same(each, x); });
    x_of.push_back(static_cast<uint32_t>(same - joint.inputs.begin()));
    if (same == joint.inputs.end()) joint.inputs.push_back(x);
    const ElementType own = product_type(rounded_ ? ElementType(*rounded_) : use.inputs[0].type(),
                                         use.inputs[1].type());
    const auto each = few_rows_sides(device, *op, use.inputs,
                                     op->tail_.empty() ? own : op->tail_.chain().output, rounded_);
    if (!each) return std::nullopt;
    sides.push_back(*each);
    tails.push_back(op->tail_);
    matrices.push_back(use.inputs[1]);
    others.insert(others.end(), use.inputs.begin() + 2, use.inputs.end());
  }
  joint.inputs.insert(joint.inputs.end(), matrices.begin(), matrices.end());
  joint.inputs.insert(joint.inputs.end(), others.begin(), others.end());
  const auto op = std::make_shared<SideBySideOp>(std::move(tails), std::move(x_of), rounded_);
  if (!op->leaves(device.info(), joint.inputs, uses.size(), 0) || !cuts_of(device.info(), sides))
    return std::nullopt;
  joint.op = op;
  return joint;
}

size_t SideBySideOp::x_count() const { return std::ranges::max(x_of_) + size_t{1}; }

bool SideBySideOp::leaves(const DeviceInfo& device, std::span<const Tensor> inputs, size_t buffers,
                          size_t params) const {
  ops::ProductRows x;
  std::vector<std::pair<const Node*, uint32_t>> made;  // views of one tensor share a buffer
  for (size_t i = 0; i < x_count(); ++i) {
    const std::pair maker(static_cast<const Node*>(inputs[i].node().get()), inputs[i].output());
    if (!std::ranges::count(made, maker)) made.push_back(maker);
    x.own_k = x.own_k || !(inputs[i].layout().shape == inputs[0].layout().shape) ||
              inputs[i].layout().stride(0) != inputs[0].layout().stride(0);
  }
  x.own_starts = made.size() < x_count();
  params += x.params(tails_.size());
  for (size_t i = 0; i < tails_.size(); ++i)
    params += (matrix(inputs, i).type().is_block() ? 4 : 0) + tails_[i].params();
  buffers += inputs.size() - x_count() + made.size();
  return params <= ir::kMaxParams &&
         buffers <= std::min(ir::kMaxBuffers, device.capabilities.max_buffers) &&
         !(rounded_ && x.own_starts);
}

std::vector<Spec> SideBySideOp::infer(std::span<const Tensor> inputs) const {
  std::vector<Spec> specs;
  for (size_t i = 0; i < tails_.size(); ++i) {
    const Tensor& w = matrix(inputs, i);
    const ElementType x = rounded_ ? ElementType(*rounded_) : inputs[0].type();
    specs.push_back(
        {{inputs[0].size(0), w.size(1)},
         tails_[i].empty() ? product_type(x, w.type()) : ElementType(tails_[i].chain().output)});
  }
  return specs;
}

SideBySideOp::Parts SideBySideOp::parts(const DeviceCall& call) const {
  Parts parts;
  std::vector<Sides> all;
  const size_t matrices = x_count();
  size_t next = matrices + tails_.size();
  for (size_t i = 0; i < tails_.size(); ++i) {
    all.push_back(
        sides_of(call.input(x_of_[i]), call.input(matrices + i), call.output(i), rounded_));
    auto tail = bind_tail(call, tails_[i], next, all[i].n, i);
    if (!tail)
      throw Error(
          ErrorCode::kNotSupported,
          fmt::format("{}: the kernels cannot read the layout of an input of chain {}", name(), i));
    parts.tails.push_back(*std::move(tail));
    next += tails_[i].others();
    parts.buffers.push_back(call.input(matrices + i));
    parts.extents.push_back({word(all[i].n), word(all[i].k), word(all[i].in_a.step)});
    parts.x.own_k = parts.x.own_k || all[i].k != all[0].k || all[i].in_a.step != all[0].in_a.step;
  }
  if (has_one_x())
    parts.buffers.push_back(call.input(0));
  else
    bind_rows(call, parts);
  parts.products = cuts_of(call.info(), all).value();
  for (ops::VectorProduct& each : parts.products) each.scale_epsilon = scale_epsilon_;
  parts.rows = word(all[0].m);
  return parts;
}

// Views of one tensor share a buffer: rows start at an element of it.
void SideBySideOp::bind_rows(const DeviceCall& call, Parts& parts) const {
  std::vector<DeviceView> bound;
  for (const uint32_t x : x_of_) {
    const auto same = std::ranges::find(bound, call.input(x).slot, &DeviceView::slot);
    parts.x.buffers.push_back(static_cast<uint32_t>(same - bound.begin()));
    if (same == bound.end()) bound.push_back(call.input(x));
  }
  parts.x.own_starts = bound.size() < x_count();
  if (parts.x.own_starts) {
    for (size_t i = 0; i < x_of_.size(); ++i)
      parts.extents[i].x_start = word(call.input(x_of_[i]).layout.offset);
    for (DeviceView& each : bound) each.layout.offset = 0;
  }
  parts.buffers.insert(parts.buffers.end(), bound.begin(), bound.end());
}

void SideBySideOp::launch(DeviceCall& call) const {
  Parts all = parts(call);
  std::vector<DeviceView> results;
  for (size_t i = 0; i < tails_.size(); ++i) results.push_back(call.output(i));
  launch_products(call, all.products, all.x, all.launch(), all.buffers, all.tails, results);
}

double SideBySideOp::operations(std::span<const DeviceView> inputs,
                                std::span<const DeviceView> outputs) const {
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i)
    sum += 2.0 * static_cast<double>(outputs[i].elements()) *
           static_cast<double>(inputs[x_count() + i].layout.shape[-2]);
  return sum;
}

std::string SideBySideOp::attributes() const {
  std::string text;
  for (size_t i = 0; i < tails_.size(); ++i)
    if (!tails_[i].empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", i, tails_[i].text());
  return text + (scale_epsilon_ ? ", normed" : "");
}

std::shared_ptr<const SideBySideOp> SideBySideOp::scaling(double epsilon) const {
  if (!rounded_ || !has_one_x()) return nullptr;
  return std::make_shared<SideBySideOp>(tails_, x_of_, rounded_, static_cast<float>(epsilon));
}

std::vector<Spec> PairedProductOp::infer(std::span<const Tensor> inputs) const {
  const int64_t rows = inputs[0].size(0), n = inputs[1].size(1);
  if (!rounds_) return {{{rows, n}, tail_.chain().output}};
  const uint64_t bytes = ops::rounded_bytes(1, static_cast<uint64_t>(n));
  return {{{rows, static_cast<int64_t>(bytes / 4)}, DType::i32}};
}

std::shared_ptr<const Op> PairedProductOp::with_prepared(const Device& device,
                                                         std::span<const Tensor> inputs,
                                                         const Op& prepare, const Shape& seen,
                                                         bool kept) const {
  if (kept || rounds_ || !dynamic_cast<const RoundRowsOp*>(&prepare) ||
      seen[-1] != inputs[1].size(1) || tail_.chain().output != DType::f32)
    return nullptr;
  auto op = std::make_shared<PairedProductOp>(tail_, made_, rounded_, true);
  DeviceView c;
  c.type = DType::f32;
  const Sides sides = sides_of(view_of(inputs[0]), view_of(inputs[1]), c, rounded_);
  return op->product_of(device.info(), sides) ? op : nullptr;
}

std::shared_ptr<const Op> PairedProductOp::of_unscaled(double epsilon) const {
  if (!rounded_) return nullptr;
  return std::make_shared<PairedProductOp>(tail_, made_, rounded_, rounds_,
                                           static_cast<float>(epsilon));
}

std::optional<ops::VectorProduct> PairedProductOp::product_of(const DeviceInfo& device,
                                                              const Sides& s) const {
  // Rows are shared between subgroups as by one product alone: sums are added up in that order.
  const ops::VectorProduct alone = few_rows_product(device, s);
  ops::VectorProduct product = alone;
  product.pair = true;
  product = ops::vector_product_for(product, word(s.n), word(s.k), device.capabilities,
                                    device.compute_units);
  product.split = alone.split;
  product.subgroups = std::max(product.subgroups, product.split);
  product.scale_epsilon = scale_epsilon_;
  if (!rounds_) return product;
  // Its groups of 32 weight rows cost products of several rows more than the launch that they save
  // where launches overlap (H200 by CUDA, a 7B model: 8 rows 1,582 tokens/s for 1,770).
  if (device.capabilities.dependent_launch && product.x_rows > 1) return std::nullopt;
  return ops::rounding_product(product, word(s.n), device.capabilities, device.compute_units);
}

void PairedProductOp::launch(DeviceCall& call) const {
  Sides s = sides_of(call.input(0), call.input(1), call.output(), rounded_);
  if (rounds_) s.c.type = DType::f32;
  const auto tail = bind_tail(call, tail_, 3, s.n, Shape{s.m, s.n}, made_);
  const auto product = product_of(call.info(), s);
  if (!tail || !product)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("{}: the kernels cannot read the layout of an input of its chain", name()));
  launch_product(call, *product,
                 ops::vector_product_launch(*product, word(s.n), word(s.k), word(s.m),
                                            word(s.in_a.step), word(s.n)),
                 {call.input(1), call.input(2), call.input(0)}, *tail, call.output());
}

double PairedProductOp::operations(std::span<const DeviceView> inputs,
                                   std::span<const DeviceView> outputs) const {
  return 4.0 * static_cast<double>(outputs[0].layout.shape[0]) *
         static_cast<double>(inputs[1].elements());
}

}  // namespace prism
