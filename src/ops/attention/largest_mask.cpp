// mask_of_largest: which keys an indexer's scores choose.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "ops/attention/indexer.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

using namespace dsl;

constexpr uint32_t kLanes = 64;

// Equal numbers at the border are chosen as std::partial_sort of GCC's library does it: a heap
// whose first element is the least of the largest so far. llama.cpp chooses so too, and models with
// few heads in their indexer have many scores of 0.
class Heap {
 public:
  Heap(const Array& members, const Value& start, const In& scores, const Value& row, uint32_t count)
      : members_(members), start_(start), scores_(scores), row_(row), count_(count) {}

  void select(Value width) const {
    for_(count_, [&](Value i) { members_[start_ + i] = i; });
    if (count_ > 1)
      for_((count_ - 2) / 2 + 1, [&](Value i) {
        const Value parent = (count_ - 2) / 2 - i;
        sink(parent, members_.load(start_ + parent));
      });
    for_(constant(u32, count_), width, 1u, [&](Value i) {
      if_(is_before(i, members_.load(start_)), [&] { sink(constant(u32, 0), i); });
    });
  }

 private:
  Value is_before(Value a, Value b) const { return scores_[row_ + a] > scores_[row_ + b]; }

  // Lets a place sink to a leaf, then lets the member rise from there.
  void sink(Value top, Value member) const {
    Var hole(u32, top, "hole"), child(u32, top, "child");
    while_([&] { return child < (count_ - 1) / 2; },
           [&] {
             child = (child + 1u) * 2u;
             const Value left = members_.load(start_ + child - 1u);
             if_(is_before(members_.load(start_ + child), left), [&] { child -= 1u; });
             members_[start_ + hole] = members_.load(start_ + child);
             hole = child;
           });
    if (count_ % 2 == 0)
      if_(child == (count_ - 2) / 2, [&] {
        child = (child + 1u) * 2u;
        members_[start_ + hole] = members_.load(start_ + child - 1u);
        hole = child - 1u;
      });
    Var rises(b1, constant(b1, 1), "rises");
    while_([&] { return Value(rises) && hole > top; },
           [&] {
             const Value parent = (hole - 1u) / 2u, other = members_.load(start_ + parent);
             const Value above = is_before(other, member);
             if_(above, [&] {
               members_[start_ + hole] = other;
               hole = parent;
             });
             rises = above;
           });
    members_[start_ + hole] = member;
  }

  const Array& members_;
  Value start_;
  const In& scores_;
  Value row_;
  uint32_t count_;
};

// One group for each row: bit by bit it finds the least of the largest; the heap decides only where
// more numbers equal that than there is room for.
ir::Kernel mask_kernel(uint32_t count) {
  return kernel("mask_of_largest", kLanes, [&] {
    const In scores = in("scores", f32);
    const Array members = inout("members", u32), mask = out("mask", f32);
    const Value width = param("width", u32);
    const Value row = group_id(0) * width, lane = local_id();
    // Numbers as integers of the same order.
    const auto key = [&](Value i) {
      const Value x = scores[row + i], bits = bitcast(u32, select(x == 0.0f, 0.0f, x));
      return select((bits >> 31u) == 0u, bits | 0x80000000u, ~bits);
    };
    const auto counted = [&](const std::function<Value(Value)>& is_wanted) {
      Var sum(u32, 0u, "sum");
      for_(lane, width, kLanes, [&](Value i) { sum += select(is_wanted(key(i)), 1u, 0u); });
      return group_sum(sum);
    };
    Var border(u32, 0u, "border");
    for_(32u, [&](Value i) {
      const Value tried = border | (constant(u32, 0x80000000u) >> i);
      const Value enough = counted([&](Value k) { return k >= tried; }) >= count;
      border = select(enough, tried, border);
    });
    const Value hidden = constant(f32, -std::numeric_limits<float>::infinity());
    const Value fits = counted([&](Value k) { return k >= border; }) == count;
    if_(
        fits,
        [&] {
          for_(lane, width, kLanes,
               [&](Value i) { mask[row + i] = select(key(i) >= border, 0.0f, hidden); });
        },
        [&] {
          if_(lane == 0u, [&] {
            const Value start = group_id(0) * count;
            Heap(members, start, scores, row, count).select(width);
            for_(width, [&](Value i) { mask[row + i] = hidden; });
            for_(count, [&](Value i) { mask[row + members.load(start + i)] = 0.0f; });
          });
        });
  });
}

class MaskOfLargestOp : public Op {
 public:
  explicit MaskOfLargestOp(int64_t count) : count_(count) {}
  std::string_view name() const override { return "mask_of_largest"; }
  bool has_gradient() const override { return false; }
  std::string attributes() const override { return fmt::format("{} of a row", count_); }

  std::vector<Spec> infer(std::span<const Tensor> in) const override {
    if (!(in[0].type() == ElementType(DType::f32)) || in[0].rank() < 1 || count_ < 1 ||
        count_ > in[0].size(-1))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("mask_of_largest: {} numbers of {} {}; it must be f32 with at least "
                              "that many in a row",
                              count_, in[0].type().name(), in[0].shape().text()));
    return {{in[0].shape(), DType::f32}};
  }

  void run_cpu(const CpuCall& call) const override {
    const Shape& shape = call.inputs[0].layout.shape;
    const auto width = static_cast<size_t>(shape[-1]);
    const auto rows = static_cast<size_t>(shape.elements()) / width;
    const float* const from = call.inputs[0].first<float>();
    float* const to = call.outputs[0].first<float>();
    call.pool.parallel_for(rows, 1, [&](uint64_t first, uint64_t last) {
      std::vector<uint32_t> order(width);
      for (uint64_t row = first; row < last; ++row) {
        const float* const scores = from + row * width;
        std::iota(order.begin(), order.end(), 0u);
        std::partial_sort(order.begin(), order.begin() + count_, order.end(),
                          [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
        std::fill_n(to + row * width, width, -std::numeric_limits<float>::infinity());
        for (int64_t i = 0; i < count_; ++i) to[row * width + order[static_cast<size_t>(i)]] = 0;
      }
    });
  }

  void launch(DeviceCall& call) const override {
    const Shape& shape = call.input(0).layout.shape;
    const int64_t rows = shape.elements() / shape[-1];
    const DeviceView members = call.scratch({rows * count_}, DType::u32);
    const auto count = static_cast<uint32_t>(count_);
    call.launch(fmt::format("mask_of_largest {}", count), [&] { return mask_kernel(count); },
                {static_cast<uint32_t>(rows), 1, 1}, {call.input(0), members, call.output()},
                {static_cast<uint32_t>(shape[-1])});
  }

 private:
  int64_t count_;
};

}  // namespace

Tensor mask_of_largest(const Tensor& scores, int64_t count) {
  if (!scores)
    throw Error(ErrorCode::kInvalidArgument, "mask_of_largest: the scores are an empty Tensor");
  return use_op(std::make_shared<MaskOfLargestOp>(count), {scores});
}

}  // namespace prism
