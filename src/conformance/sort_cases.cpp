// Cases of sort and top_k: types, lengths of more than two pieces, ties, NaN, every axis.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "prism/ops/sort.h"

namespace prism {

namespace {

struct Form {
  Shape shape;
  int axis;
  int64_t kept;  // -1: all
};

bool before(double a, double b, bool descending) {
  if (std::isnan(a) || std::isnan(b))
    return descending ? std::isnan(a) && !std::isnan(b) : std::isnan(b) && !std::isnan(a);
  return descending ? a > b : a < b;
}

std::vector<Values> reference_of(const ReferenceInput& x, const Form& form, bool descending) {
  int64_t inner = 1;
  for (int axis = form.axis + 1; axis < x.shape.rank(); ++axis) inner *= x.shape[axis];
  const int64_t length = x.shape[form.axis], kept = form.kept < 0 ? length : form.kept;
  const int64_t outer = length * inner > 0 ? x.shape.elements() / (length * inner) : 0;
  Values values(static_cast<size_t>(outer * kept * inner)), indices = values;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t k) {
        return x.values[static_cast<size_t>((o * length + k) * inner + i)];
      };
      std::vector<int64_t> order(static_cast<size_t>(length));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(
          order, [&](int64_t a, int64_t b) { return before(at(a), at(b), descending); });
      for (int64_t k = 0; k < kept; ++k) {
        const auto place = static_cast<size_t>((o * kept + k) * inner + i);
        values[place] = at(order[static_cast<size_t>(k)]);
        indices[place] = static_cast<double>(order[static_cast<size_t>(k)]);
      }
    }
  }
  return {values, indices};
}

OpCase sort_case(DType type, const Form& form, bool descending, CaseRandom& random) {
  OpCase test;
  test.op = form.kept < 0 ? "sort" : "top_k";
  test.what = fmt::format("{} {} axis {}{}{}", ElementType(type).name(), form.shape.text(),
                          form.axis, form.kept < 0 ? "" : fmt::format(" k {}", form.kept),
                          descending ? " descending" : "");
  const bool truth = type == DType::b1;
  test.inputs = {
      is_float(type)
          ? random.input(form.shape, type)
          : random.input(form.shape, type, type == DType::u8 || truth ? 0 : -20, truth ? 1 : 20)};
  test.compute = [form, descending](std::span<const Tensor> in) -> std::vector<Tensor> {
    const Ordered result = form.kept < 0 ? sort(in[0], form.axis, descending)
                                         : top_k(in[0], form.kept, form.axis, descending);
    return {result.values, result.indices};
  };
  test.reference = [form, descending](std::span<const ReferenceInput> in) {
    return reference_of(in[0], form, descending);
  };
  test.tolerance = Tolerance::exact();
  return test;
}

}  // namespace

void add_sort_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const std::vector<Form> forms = {
      {{1}, 0, -1},      {{7}, 0, -1},     {{3, 5}, 1, -1}, {{5, 3}, 0, -1},    {{2, 3, 4}, 1, -1},
      {{3, 300}, 1, -1}, {{0, 4}, 1, -1},  {{3, 0}, 1, -1}, {{2, 2048}, 1, -1}, {{7}, 0, 3},
      {{4, 67}, 1, 1},   {{4, 67}, 1, 67}, {{67, 3}, 0, 5}, {{3, 5}, 1, 0},     {{2, 2049}, 1, 10},
  };
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64,
                           DType::u8, DType::i8, DType::b1}) {
    for (const Form& form : forms)
      cases.push_back(sort_case(type, form, random.between(0, 1) == 1, random));
  }
  for (const bool descending : {false, true}) {
    // Rows longer than a piece: merged, or selected in passes.
    for (const Form& form :
         {Form{{2, 3000}, 1, -1}, Form{{1, 9001}, 1, -1}, Form{{3, 2049}, 1, -1},
          Form{{2, 4097}, 1, 1}, Form{{2, 4097}, 1, 127}, Form{{1, 9001}, 1, 256},
          Form{{2, 9001}, 1, 64}, Form{{1, 40000}, 1, 50}, Form{{2, 5000}, 1, 513},
          Form{{1, 12000}, 1, 300}})
      cases.push_back(sort_case(DType::f32, form, descending, random));
    // 64-bit keys have smaller pieces; the values differ in either word.
    for (const DType type : {DType::f64, DType::i64}) {
      for (const Form& form :
           {Form{{2, 1025}, 1, -1}, Form{{1, 5003}, 1, -1}, Form{{2, 4097}, 1, 84},
            Form{{2, 4097}, 1, 193}, Form{{1, 3000}, 1, 256}, Form{{1, 3000}, 1, 257},
            Form{{1, 9001}, 1, 50}}) {
        OpCase test = sort_case(type, form, descending, random);
        test.what += " of close numbers";
        for (double& value : test.inputs[0].values) {
          const auto low = static_cast<double>(random.between(-40, 40));
          const auto high = static_cast<double>(random.between(-3, 3));
          value = high * 4294967296.0 + low;
          if (type == DType::f64) value *= 0x1p-52;
        }
        cases.push_back(std::move(test));
      }
    }
    // Many ties, rows of mostly NaN, and sorted rows.
    for (const Form& form :
         {Form{{2, 5003}, 1, 100}, Form{{2, 5003}, 1, 250}, Form{{1, 5003}, 1, -1}}) {
      for (const int kind : {0, 1, 2}) {
        OpCase test = sort_case(DType::f32, form, descending, random);
        test.inputs[0].view = nullptr;
        test.inputs[0].shape = form.shape;
        Values& values = test.inputs[0].values;
        values.resize(static_cast<size_t>(form.shape.elements()));
        if (kind == 0)
          for (double& value : values) value = static_cast<double>(random.between(0, 1));
        if (kind == 1)
          for (double& value : values)
            value = random.between(0, 99) == 0 ? -HUGE_VAL : std::nan("");
        if (kind == 2) std::ranges::sort(values);
        test.what += kind == 0 ? " of zeros and ones" : kind == 1 ? " mostly NaN" : " in order";
        cases.push_back(std::move(test));
      }
    }
    for (const DType type : {DType::f32, DType::f64}) {
      OpCase special = sort_case(type, {{3, 40}, 1, -1}, descending, random);
      special.what += " with NaN, infinities and ties";
      for (double& value : special.inputs[0].values) {
        const double choices[] = {std::nan(""), HUGE_VAL, -HUGE_VAL, 0.0, -0.0, 1, -1, value};
        value = choices[random.between(0, 7)];
      }
      cases.push_back(std::move(special));
    }
    for (const Form& form : {Form{{3, 7}, 1, -1}, Form{{9, 2}, 0, 4}}) {
      OpCase test = sort_case(DType::f32, form, descending, random);
      test.what += ", gradient";
      test.gradient = true;
      test.compute = [form, descending](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {form.kept < 0 ? sort(in[0], form.axis, descending).values
                              : top_k(in[0], form.kept, form.axis, descending).values};
      };
      test.reference = [form, descending](std::span<const ReferenceInput> in) {
        return std::vector<Values>{reference_of(in[0], form, descending)[0]};
      };
      cases.push_back(std::move(test));
    }
  }
}

}  // namespace prism
