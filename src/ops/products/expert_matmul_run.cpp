// Runs products of rows routed to experts: on the CPU, and the choice of kernels on a device.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/elementwise.h"
#include "cpu/products/matmul.h"
#include "cpu/products/quantised_product.h"
#include "ops/cpu_types.h"
#include "ops/index/index_reading.h"
#include "ops/products/expert_matmul_op.h"
#include "ops/products/matmul_op.h"
#include "ops/products/product_launch.h"
#include "prism/error.h"

namespace prism {

namespace {

using Sizes = ExpertMatmulOp::Sizes;

size_t size(int64_t value) { return static_cast<size_t>(value); }

// The slots of each expert, in order.
std::vector<std::vector<int64_t>> slots_by_expert(const ops::HostIndices& ids, int64_t experts) {
  std::vector<std::vector<int64_t>> slots(size(experts));
  for (int64_t slot = 0; slot < ids.count(); ++slot) slots[size(ids[slot])].push_back(slot);
  return slots;
}

// One expert's product: its rows of x close together, then the sums to their places in y.
class PlainExperts {
 public:
  // y: dense, from its first element on.
  PlainExperts(const CpuCall& call, const Sizes& sizes, std::byte* y, DType y_type)
      : x_(call.inputs[0]),
        weights_(call.inputs[1]),
        y_(y),
        y_type_(y_type),
        pool_(call.pool),
        s_(sizes),
        lie_(matrix_layout(weights_.layout).value()) {}

  void run(int64_t expert, const std::vector<int64_t>& slots) {
    with_float(y_type_, [&](auto sample) { multiply<decltype(sample)>(expert, slots); });
  }

 private:
  template <class T>
  void multiply(int64_t expert, const std::vector<int64_t>& slots) {
    const auto rows = static_cast<int64_t>(slots.size());
    const auto bytes = static_cast<int64_t>(x_.type.block_bytes());
    constexpr DType wide = dtype_of<T>();
    // f32 products convert operands as they pack them, f64 ones take f64.
    const bool widen = wide == DType::f64;
    gathered_.resize(size(rows * s_.k) * sizeof(T));
    for (int64_t i = 0; i < rows; ++i) {
      const std::byte* from =
          x_.data + (x_.layout.offset + slots[size(i)] / s_.x_share * s_.k) * bytes;
      if (widen)
        cpu::load(x_.type.plain(), from, 1, wide, reinterpret_cast<T*>(gathered_.data()) + i * s_.k,
                  size(s_.k));
      else
        std::memcpy(gathered_.data() + i * s_.k * bytes, from, size(s_.k * bytes));
    }
    const auto weight_bytes = static_cast<int64_t>(weights_.type.block_bytes());
    const std::byte* matrix =
        weights_.data + (weights_.layout.offset + expert * lie_.batch_step) * weight_bytes;
    sums_.resize(size(rows * s_.n) * sizeof(T));
    T* const sums = reinterpret_cast<T*>(sums_.data());
    // The matrices are [out, in]: the right side, seen from its other side.
    if constexpr (wide == DType::f64) {
      const int64_t lines = lie_.transposed ? s_.k : s_.n, along = lie_.transposed ? s_.n : s_.k;
      const int64_t reach = lines == 0 ? 0 : (lines - 1) * lie_.step + along;
      if (weights_.type != ElementType(DType::f64)) {
        widened_.resize(size(reach));
        cpu::load(weights_.type.plain(), matrix, 1, DType::f64, widened_.data(), size(reach));
        matrix = reinterpret_cast<const std::byte*>(widened_.data());
      }
      cpu::matmul_f64(pool_, size(rows), size(s_.n), size(s_.k),
                      reinterpret_cast<const double*>(gathered_.data()), size(s_.k), false,
                      reinterpret_cast<const double*>(matrix), size(lie_.step), !lie_.transposed,
                      sums, size(s_.n));
    } else {
      cpu::matmul(pool_, size(rows), size(s_.n), size(s_.k), x_.type.plain(), gathered_.data(),
                  size(s_.k), false, weights_.type.plain(), matrix, size(lie_.step),
                  !lie_.transposed, sums, size(s_.n));
    }
    const auto y_bytes = static_cast<int64_t>(ElementType(y_type_).block_bytes());
    for (int64_t i = 0; i < rows; ++i)
      cpu::store(wide, sums + i * s_.n, y_type_, y_ + slots[size(i)] * s_.n * y_bytes, size(s_.n));
  }

  const HostView &x_, &weights_;
  std::byte* const y_;
  const DType y_type_;
  ThreadPool& pool_;
  Sizes s_;
  MatrixLayout lie_;
  std::vector<std::byte> gathered_, sums_;
  std::vector<double> widened_;
};

std::byte* first_of(const HostView& view) {
  return view.data + view.layout.offset * static_cast<int64_t>(view.type.block_bytes());
}

void run_quantised(const CpuCall& call, const Sizes& s, bool rounded, float* y) {
  const HostView &x = call.inputs[0], &matrices = call.inputs[1];
  const auto x_rows = static_cast<uint64_t>(s.slots / s.x_share), k = static_cast<uint64_t>(s.k),
             n = static_cast<uint64_t>(s.n), experts = static_cast<uint64_t>(s.experts),
             uses = static_cast<uint64_t>(s.x_share);
  const int32_t* const ids = call.inputs[2].first<int32_t>();
  const cpu::QuantisedWeights one{
      matrices.type.block(),
      matrices.data + matrices.type.row_bytes(static_cast<uint64_t>(matrices.layout.offset)), n, k};
  if (rounded) {
    const auto view = cpu::ActivationsView::in(first_of(x), one.type, x_rows, k);
    return cpu::quantised_expert_product(call.pool, one, experts, view, uses, ids, y, n);
  }
  const bool ready = x.type == ElementType(DType::f32);
  std::vector<float> wide(ready ? 0 : x_rows * k);
  if (!ready) cpu::load(x.type.plain(), first_of(x), 1, DType::f32, wide.data(), wide.size());
  cpu::quantised_expert_product(call.pool, one.type, one.data, experts, n, k,
                                ready ? x.first<float>() : wide.data(), x_rows, k, uses, ids, y, n);
}

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

void launch_by_slot(DeviceCall& call, const Sizes& s, DType x_type, bool rounded,
                    const TailBinding& tail, const DeviceView& y) {
  const DeviceView &x = call.input(0), &weights = call.input(1);
  const auto product =
      ExpertMatmulOp::product_by_slot(call.info(), s, x_type, weights.type, y.type.plain());
  const auto launch = ops::expert_vector_launch(product, word(s.n), word(s.k), word(s.slots),
                                                word(s.experts), word(s.x_share));
  const DeviceView rows =
      product.rounded && !rounded ? rounded_rows(call, x, s.slots / s.x_share, s.k, s.k) : x;
  launch_product(call, product, launch, {weights, rows, call.input(2)}, tail, y);
}

// Slots sorted by expert into tiles of so many rows.
struct Routes {
  DeviceView order, tiles;
};

Routes sorted_slots(DeviceCall& call, const Sizes& s, uint32_t tile_m) {
  const int64_t tiles = ops::expert_tiles_at_most(word(s.slots), word(s.experts), tile_m);
  const Routes routes{call.scratch({s.slots}, DType::i32),
                      call.scratch({4 + 4 * tiles}, DType::i32)};
  call.launch("expert_tables", ops::expert_tables, {1, 1, 1},
              {call.input(2), routes.order, routes.tiles},
              {word(s.slots), tile_m, word(s.experts)});
  return routes;
}

void launch_f64(DeviceCall& call, const Sizes& s, const DeviceView& y) {
  const DeviceView &x = call.input(0), &weights = call.input(1);
  const Routes routes = sorted_slots(call, s, ops::kF64Tile);
  const ops::F64Product product{x.type.plain(), weights.type.plain(), false, true, true};
  const auto launch =
      ops::f64_expert_launch(word(s.slots), word(s.n), word(s.k), word(s.experts), word(s.x_share));
  call.launch(
      ops::product_key(product), [&] { return ops::f64_product(product); }, launch.groups,
      {x, weights, routes.order, routes.tiles, y}, param_values(launch.params));
}

void launch_by_tiles(DeviceCall& call, const Sizes& s, const TailBinding& tail,
                     const DeviceView& y) {
  const DeviceView &x = call.input(0), &weights = call.input(1);
  ops::FragmentProduct wanted;
  wanted.a = x.type.plain();
  wanted.b = weights.type;
  wanted.c = y.type.plain();
  wanted.experts = true;
  if (wanted.a == DType::bf16 && weights.type == ElementType(DType::bf16))
    wanted.operand = DType::bf16;
  // Tiles hold the rows of one expert: cut as for so many.
  ops::ProductShape shape = ops::dense_shape(
      wanted, word(std::max<int64_t>(1, s.slots / std::max<int64_t>(1, s.experts))), word(s.n),
      word(s.k));
  shape.batch = word(s.experts);
  const auto product =
      ops::fragment_product_for(wanted, shape, call.info().capabilities, call.info().compute_units);
  const Routes routes = sorted_slots(call, s, product.tile_m);
  const auto launch = ops::expert_product_launch(product, word(s.slots), word(s.n), word(s.k),
                                                 word(s.experts), word(s.x_share));
  launch_product(call, product, launch, {x, weights, routes.order, routes.tiles}, tail, y);
}

}  // namespace

bool ExpertMatmulOp::is_slot_type(ElementType type) {
  return type == ElementType(DType::f32) || type == ElementType(DType::f16);
}

bool ExpertMatmulOp::reads_by_slot(const Sizes& s, DType x, ElementType weight, bool rounded) {
  // Fragments would round f32 operands.
  const bool exact = x == DType::f32 && weight == ElementType(DType::f32);
  return rounded || exact ||
         (is_slot_type(x) && is_slot_type(product_type(x, weight)) && reads_by_slot(s));
}

ops::VectorProduct ExpertMatmulOp::product_by_slot(const DeviceInfo& device, const Sizes& s,
                                                   DType x, ElementType weight, DType y,
                                                   bool pair) {
  ops::VectorProduct wanted;
  wanted.weight = weight;
  wanted.x = x;
  wanted.y = y;
  wanted.pair = pair;
  wanted.experts = true;
  wanted.rounded = weight.is_block();
  if (!wanted.rounded) wanted.aligned = s.k % 8 == 0;
  return ops::vector_product_for(wanted, word(s.n), word(s.k), device.capabilities,
                                 device.compute_units);
}

void ExpertMatmulOp::run_cpu(const CpuCall& call) const {
  const Sizes s = sizes_of(call.inputs[0].layout, call.inputs[1].layout, call.inputs[2].layout);
  if (s.slots == 0 || s.n == 0) return;
  const ops::HostIndices ids("expert_matmul", call.inputs[2], s.experts);
  const auto slots = slots_by_expert(ids, s.experts);  // throws where there is no such expert
  const HostView& y = call.outputs[0];
  const DType type = y.type.plain();
  const bool block = call.inputs[1].type.is_block();
  // Sums that are more to come of are f32, in the output itself where it is.
  const bool beside = type != DType::f32 && (block || !tail_.empty());
  std::vector<float> sums(beside ? size(s.slots * s.n) : 0);
  std::byte* const made = beside ? reinterpret_cast<std::byte*>(sums.data()) : first_of(y);
  if (block) {
    run_quantised(call, s, rounded_.has_value(), reinterpret_cast<float*>(made));
  } else {
    PlainExperts product(call, s, made, beside ? DType::f32 : type);
    for (int64_t expert = 0; expert < s.experts; ++expert)
      if (!slots[size(expert)].empty()) product.run(expert, slots[size(expert)]);
  }
  if (!tail_.empty())
    run_tail(call, tail_, 3, reinterpret_cast<float*>(made));
  else if (beside)
    cpu::store(DType::f32, sums.data(), type, first_of(y), sums.size());
}

void ExpertMatmulOp::launch(DeviceCall& call) const {
  const DeviceView& x = call.input(0);
  const Sizes s = sizes_of(x.layout, call.input(1).layout, call.input(2).layout);
  if (s.slots == 0 || s.n == 0) return;
  if (s.experts == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "expert_matmul: rows are routed to experts, of which there are none");
  }
  const DType x_type = rounded_.value_or(x.type.plain());
  const ElementType weight = call.input(1).type;
  const ElementType own = tail_.empty() ? call.output().type : product_type(x_type, weight);
  const bool f64 = own == ElementType(DType::f64);
  const bool by_slot = reads_by_slot(s, x_type, weight, rounded_.has_value());
  const auto tail = bind_tail(call, tail_, 3, s.n);
  const bool bound = tail && s.k > 0 && !f64 && (!by_slot || is_slot_type(call.output().type));
  const DeviceView y = bound || tail_.empty() ? call.output() : call.scratch({s.slots, s.n}, own);
  const TailBinding with = bound ? *tail : TailBinding{};
  if (s.k == 0)
    launch_zeros(call, y);
  else if (f64)
    launch_f64(call, s, y);
  else if (by_slot)
    launch_by_slot(call, s, x_type, rounded_.has_value(), with, y);
  else
    launch_by_tiles(call, s, with, y);
  if (!bound && !tail_.empty()) launch_tail(call, tail_, 3, y);
}

}  // namespace prism
