// Cases of bounded dimensions: counts at both ends and beyond, shared and per row, alone and fused
// into reductions.
#include <limits>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "prism/ops/bounded.h"
#include "prism/ops/reduce.h"

namespace prism {

namespace {

struct Form {
  Shape shape, count_shape;
  int axis;
};

// The input with `value` at positions beyond the counts.
Values masked(const Form& form, const ReferenceInput& x, const ReferenceInput& count,
              double value) {
  const Layout counts = Layout::dense(form.count_shape).broadcast_to([&] {
    Shape line = form.shape;
    line[form.axis] = 1;
    return line;
  }());
  Values result = x.values;
  const int64_t length = form.shape[form.axis],
                inner = span_of(form.shape, form.axis + 1, form.shape.rank());
  for (int64_t i = 0; i < form.shape.elements(); ++i) {
    int64_t rest = i, place = counts.offset;
    for (int axis = form.shape.rank() - 1; axis >= 0; --axis) {
      if (axis != form.axis) place += rest % form.shape[axis] * counts.stride(axis);
      rest /= form.shape[axis];
    }
    if (static_cast<double>(i / inner % length) >= count.values[static_cast<size_t>(place)])
      result[static_cast<size_t>(i)] = value;
  }
  return result;
}

}  // namespace

void add_bounded_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const std::vector<Form> forms = {
      {{7}, {}, 0},      {{5, 13}, {}, 1},        {{5, 13}, {5, 1}, 1},     {{13, 5}, {1}, 0},
      {{13, 5}, {5}, 0}, {{3, 11, 4}, {1, 4}, 1}, {{2, 3, 301}, {3, 1}, 2}, {{0, 4}, {1}, 0},
      {{4, 0}, {}, 1}};
  for (const DType type : {DType::f32, DType::f16, DType::f64, DType::i32}) {
    for (const Form& form : forms) {
      for (const bool reduced : {false, true}) {
        if (reduced && (type != DType::f32 || form.shape.elements() == 0)) continue;
        const DType counts = random.between(0, 1) ? DType::i32 : DType::i64;
        const int64_t length = form.shape[form.axis];
        // 0, 1, all but one, all, and out of range.
        const int64_t drawn[] = {-1, 0, 1, length - 1, length, length + 3};
        CaseInput count{form.count_shape, counts, {}, nullptr, false};
        for (int64_t i = 0; i < form.count_shape.elements(); ++i)
          count.values.push_back(static_cast<double>(drawn[random.between(0, 5)]));
        OpCase test;
        test.op = "mask_beyond";
        test.what = fmt::format("{} {} axis {}, counts {}{}{}", ElementType(type).name(),
                                form.shape.text(), form.axis, ElementType(counts).name(),
                                form.count_shape.text(), reduced ? ", summed" : "");
        test.inputs = {draw(random, form.shape, type), count};
        test.compute = [form, reduced](std::span<const Tensor> in) -> std::vector<Tensor> {
          const Tensor prefix = mask_beyond(in[0], form.axis, in[1], reduced ? 0 : -3);
          if (!reduced) return {prefix};
          return {sum(prefix, {form.axis})};
        };
        test.reference = [form, reduced](std::span<const ReferenceInput> in) {
          const Values all = masked(form, in[0], in[1], reduced ? 0 : -3);
          if (!reduced) return std::vector<Values>{all};
          const int64_t along = form.shape[form.axis],
                        inner = span_of(form.shape, form.axis + 1, form.shape.rank());
          Values sums(static_cast<size_t>(form.shape.elements() / along), 0.0);
          for (size_t i = 0; i < all.size(); ++i) {
            const auto n = static_cast<size_t>(inner), whole = n * static_cast<size_t>(along);
            sums[i / whole * n + i % n] += all[i];
          }
          return std::vector<Values>{sums};
        };
        test.tolerance = reduced ? Tolerance::reduction(type, 10) : Tolerance::exact();
        test.gradient =
            type == DType::f32 && form.shape.elements() > 0 && form.shape.elements() < 100;
        cases.push_back(std::move(test));
      }
    }
  }
}

}  // namespace prism
