// Rows routed to experts: by the CPU, and which kernels a number of rows gets.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "cpu/elementwise.h"
#include "cpu/matmul.h"
#include "cpu/quantised_product.h"
#include "ops/expert_matmul_op.h"
#include "ops/index_reading.h"
#include "ops/matmul_op.h"
#include "ops/product_launch.h"

namespace prism {

namespace {

struct Sizes {
  int64_t slots, n, k, experts;
  int64_t x_share;  // slots that share a row of x
};

Sizes sizes_of(const Layout& x, const Layout& weights, const Layout& experts) {
  return {experts.shape.elements(), weights.shape[1], weights.shape[2], weights.shape[0],
          x.shape.rank() == 2 ? std::max<int64_t>(1, experts.shape[1]) : 1};
}

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
  PlainExperts(const CpuCall& call, const Sizes& sizes)
      : x_(call.inputs[0]),
        weights_(call.inputs[1]),
        y_(call.outputs[0]),
        pool_(call.pool),
        s_(sizes),
        lie_(matrix_layout(weights_.layout).value()) {}

  void run(int64_t expert, const std::vector<int64_t>& slots) {
    const DType wide = y_.type == ElementType(DType::f64) ? DType::f64 : DType::f32;
    if (wide == DType::f64)
      multiply<double>(expert, slots);
    else
      multiply<float>(expert, slots);
  }

 private:
  template <class T>
  void multiply(int64_t expert, const std::vector<int64_t>& slots) {
    const auto rows = static_cast<int64_t>(slots.size());
    const auto bytes = static_cast<int64_t>(x_.type.block_bytes());
    constexpr DType wide = sizeof(T) == 8 ? DType::f64 : DType::f32;
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
    const auto y_bytes = static_cast<int64_t>(y_.type.block_bytes());
    for (int64_t i = 0; i < rows; ++i)
      cpu::store(wide, sums + i * s_.n, y_.type.plain(),
                 y_.data + (y_.layout.offset + slots[size(i)] * s_.n) * y_bytes, size(s_.n));
  }

  const HostView &x_, &weights_, &y_;
  ThreadPool& pool_;
  Sizes s_;
  MatrixLayout lie_;
  std::vector<std::byte> gathered_, sums_;
  std::vector<double> widened_;
};

void run_quantised(const CpuCall& call, const Sizes& s) {
  const HostView &x = call.inputs[0], &weights = call.inputs[1], &y = call.outputs[0];
  const int64_t x_rows = s.slots / s.x_share;
  const bool ready = x.type == ElementType(DType::f32), direct = y.type == ElementType(DType::f32);
  std::vector<float> wide(ready ? 0 : size(x_rows * s.k)), sums(direct ? 0 : size(s.slots * s.n));
  const auto first = [](const HostView& view) {
    return view.data + view.layout.offset * static_cast<int64_t>(view.type.block_bytes());
  };
  if (!ready) cpu::load(x.type.plain(), first(x), 1, DType::f32, wide.data(), wide.size());
  const std::byte* matrices =
      weights.data + weights.type.row_bytes(static_cast<uint64_t>(weights.layout.offset));
  cpu::quantised_expert_product(
      call.pool, weights.type.block(), matrices, static_cast<uint64_t>(s.experts),
      static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.k),
      ready ? x.first<float>() : wide.data(), static_cast<uint64_t>(x_rows),
      static_cast<uint64_t>(s.k), static_cast<uint64_t>(s.x_share), call.inputs[2].first<int32_t>(),
      direct ? y.first<float>() : sums.data(), static_cast<uint64_t>(s.n));
  if (!direct) cpu::store(DType::f32, sums.data(), y.type.plain(), first(y), sums.size());
}

// Whether each slot reads its expert's weights for itself. Slots that share an expert are few while
// there are no more of them than half the experts, and then tiles of rows would be nearly empty.
bool reads_by_slot(const Sizes& s) {
  return s.slots <= std::max<int64_t>(kFewRows, std::min<int64_t>(64, s.experts / 2));
}

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

void launch_by_slot(DeviceCall& call, const Sizes& s) {
  const DeviceView &x = call.input(0), &weights = call.input(1), &y = call.output();
  ops::VectorProduct wanted;
  wanted.weight = weights.type;
  wanted.x = x.type.plain();
  wanted.y = y.type.plain();
  wanted.experts = true;
  wanted.rounded = weights.type.is_block();
  if (!wanted.rounded) wanted.aligned = s.k % 8 == 0;
  const auto product = ops::vector_product_for(wanted, word(s.n), word(s.k),
                                               call.info().capabilities, call.info().compute_units);
  const auto launch = ops::expert_vector_launch(product, word(s.n), word(s.k), word(s.slots),
                                                word(s.experts), word(s.x_share));
  const DeviceView rows = wanted.rounded ? rounded_rows(call, x, s.slots / s.x_share, s.k, s.k) : x;
  launch_product(call, product, launch, std::vector{weights, rows, call.input(2), y});
}

void launch_by_tiles(DeviceCall& call, const Sizes& s) {
  const DeviceView &x = call.input(0), &weights = call.input(1), &ids = call.input(2);
  ops::FragmentProduct wanted;
  wanted.a = x.type.plain();
  wanted.b = weights.type;
  wanted.c = call.output().type.plain();
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
  const uint32_t tiles = ops::expert_tiles_at_most(word(s.slots), word(s.experts), product.tile_m);
  const DeviceView order = call.scratch({s.slots}, DType::i32),
                   table = call.scratch({4 + 4 * int64_t{tiles}}, DType::i32);
  call.launch("expert_tables", ops::expert_tables, {1, 1, 1}, {ids, order, table},
              {word(s.slots), product.tile_m, word(s.experts)});
  const auto launch = ops::expert_product_launch(product, word(s.slots), word(s.n), word(s.k),
                                                 word(s.experts), word(s.x_share));
  launch_product(call, product, launch, std::vector{x, weights, order, table, call.output()});
}

}  // namespace

void ExpertMatmulOp::run_cpu(const CpuCall& call) const {
  const Sizes s = sizes_of(call.inputs[0].layout, call.inputs[1].layout, call.inputs[2].layout);
  if (s.slots == 0 || s.n == 0) return;
  const ops::HostIndices ids("expert_matmul", call.inputs[2], s.experts);
  const auto slots = slots_by_expert(ids, s.experts);  // throws where there is no such expert
  if (call.inputs[1].type.is_block()) return run_quantised(call, s);
  PlainExperts product(call, s);
  for (int64_t expert = 0; expert < s.experts; ++expert)
    if (!slots[size(expert)].empty()) product.run(expert, slots[size(expert)]);
}

void ExpertMatmulOp::launch(DeviceCall& call) const {
  const DeviceView& x = call.input(0);
  const Sizes s = sizes_of(x.layout, call.input(1).layout, call.input(2).layout);
  if (s.slots == 0 || s.n == 0) return;
  if (s.experts == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "expert_matmul: rows are routed to experts, of which there are none");
  }
  if (s.k == 0) return launch_zeros(call, call.output());
  const auto is = [](const DeviceView& view, DType type) { return view.type == ElementType(type); };
  const bool plain = (is(x, DType::f32) || is(x, DType::f16)) &&
                     (is(call.output(), DType::f32) || is(call.output(), DType::f16));
  // Fragments would round f32 operands.
  const bool exact = is(x, DType::f32) && is(call.input(1), DType::f32);
  if (exact || (plain && reads_by_slot(s))) return launch_by_slot(call, s);
  launch_by_tiles(call, s);
}

}  // namespace prism
