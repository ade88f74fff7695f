// Cases of cumulative sums: types, axes, both directions, rows longer than a group's piece.
#include <fmt/format.h>

#include "conformance/cases.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/scan.h"

namespace prism {

void add_scan_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  struct Form {
    Shape shape;
    int axis;
  };
  const std::vector<Form> forms = {{{1}, 0},       {{7}, 0},       {{3, 5}, 1},    {{5, 3}, 0},
                                   {{2, 3, 4}, 1}, {{4, 300}, 1},  {{0, 3}, 1},    {{3, 0}, 1},
                                   {{2, 1025}, 1}, {{67, 13}, 0},  {{1, 3000}, 1}, {{3, 2052}, 1},
                                   {{2, 9000}, 1}, {{1, 34567}, 1}};
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64,
                           DType::u8, DType::b1}) {
    for (const Form& form : forms) {
      const bool reverse = random.between(0, 1) == 1;
      OpCase test;
      test.op = "cumsum";
      test.what = fmt::format("{} {} axis {}{}", ElementType(type).name(), form.shape.text(),
                              form.axis, reverse ? " reversed" : "");
      const bool truth = type == DType::b1;
      test.inputs = {is_float(type)
                         ? random.input(form.shape, type, -1, 1)
                         : random.input(form.shape, type, type == DType::u8 || truth ? 0 : -50,
                                        truth ? 1 : 50)};
      test.compute = [form, reverse](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {cumsum(in[0], form.axis, reverse)};
      };
      test.reference = [form, reverse](std::span<const ReferenceInput> in) {
        Values result = in[0].values;
        int64_t inner = 1;
        for (int axis = form.axis + 1; axis < form.shape.rank(); ++axis) inner *= form.shape[axis];
        const int64_t length = form.shape[form.axis];
        for (size_t i = 0; i < result.size(); ++i) {
          const size_t at = reverse ? result.size() - 1 - i : i;
          const int64_t along = static_cast<int64_t>(at) / inner % length;
          if (along != (reverse ? length - 1 : 0))
            result[at] +=
                result[reverse ? at + static_cast<size_t>(inner) : at - static_cast<size_t>(inner)];
        }
        return std::vector<Values>{result};
      };
      test.tolerance = is_float(type) ? Tolerance::reduction(type, 20) : Tolerance::exact();
      test.gradient = type == DType::f32 && form.shape.elements() > 0 && form.shape.elements() < 40;
      cases.push_back(std::move(test));
    }
  }
}

}  // namespace prism
