// Cases of the ops that choose keys for sparse attention: an indexer's scores, and masks that keep
// the largest of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "ops/attention/indexer.h"

namespace prism {

namespace {

// Two texts: the last `queries` of `keys` positions each. One more row belongs to no text.
struct ScoreForm {
  int64_t heads, dim, block, entries, queries, keys;
  DType type;
  bool weighted;
};

CaseInput words(const Shape& shape, Values values) {
  CaseInput result;
  result.shape = shape;
  result.type = DType::i32;
  result.values = std::move(values);
  result.differentiable = false;
  return result;
}

Values scores_of(const ScoreForm& form, std::span<const ReferenceInput> in) {
  const Values &q = in[0].values, &keys = in[1].values, &spans = in[2].values,
               &table = in[3].values;
  const int64_t positions = form.entries * form.block, of_row = form.weighted ? 1 : form.heads;
  Values result(static_cast<size_t>(in[0].shape[0] * of_row * positions), -HUGE_VAL);
  for (size_t text = 0; text < 2; ++text)
    for (int64_t query = 0; query < form.queries; ++query)
      for (int64_t key = 0; key <= form.keys - form.queries + query; ++key) {
        const int64_t row = static_cast<int64_t>(spans[4 * text]) + query;
        const auto block = static_cast<int64_t>(table[text * static_cast<size_t>(form.entries) +
                                                      static_cast<size_t>(key / form.block)]);
        double sum = 0;
        for (int64_t head = 0; head < form.heads; ++head) {
          const auto of_head = static_cast<size_t>(row * form.heads + head);
          double product = 0;
          for (size_t d = 0; d < static_cast<size_t>(form.dim); ++d)
            product +=
                q[of_head * static_cast<size_t>(form.dim) + d] *
                keys[static_cast<size_t>((block * form.block + key % form.block) * form.dim) + d];
          if (form.weighted)
            sum += in[4].values[of_head] * std::max(product, 0.0);
          else
            result[of_head * static_cast<size_t>(positions) + static_cast<size_t>(key)] = product;
        }
        if (form.weighted) result[static_cast<size_t>(row * positions + key)] = sum;
      }
  return result;
}

OpCase scores_case(const ScoreForm& form, CaseRandom& random) {
  OpCase test;
  test.op = "indexer_scores";
  test.what = fmt::format("{} heads of {}, {} keys in {} blocks of {}{}", form.heads, form.dim,
                          ElementType(form.type).name(), form.entries, form.block,
                          form.weighted ? ", weighted" : "");
  const int64_t rows = 2 * form.queries + 1, blocks = 2 * form.entries + 1;
  Values spans, table;
  for (int64_t text = 0; text < 2; ++text) {
    for (const int64_t word : {text * form.queries, form.queries, form.keys, text})
      spans.push_back(static_cast<double>(word));
    for (int64_t entry = 0; entry < form.entries; ++entry)  // block 0 stays unused
      table.push_back(static_cast<double>(blocks - 1 - 2 * entry - text));
  }
  const auto dense = [&](const Shape& shape, DType type) {
    CaseInput result;
    result.shape = shape;
    result.type = type;
    result.values = random.normal(shape.elements());
    return result;
  };
  test.inputs = {dense({rows, form.heads, form.dim}, DType::f32),
                 dense({blocks, form.block, 1, form.dim}, form.type), words({2, 4}, spans),
                 words({2, form.entries}, table)};
  if (form.weighted) test.inputs.push_back(dense({rows, form.heads}, DType::f32));
  test.compute = [](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {indexer_scores(in[0], in.size() > 4 ? in[4] : Tensor(), in[1], in[2], in[3])};
  };
  test.reference = [form](std::span<const ReferenceInput> in) {
    return std::vector<Values>{scores_of(form, in)};
  };
  test.tolerance = Tolerance::reduction(
      DType::f32, static_cast<double>(form.dim * (form.weighted ? form.heads : 1)));
  return test;
}

OpCase mask_case(int64_t rows, int64_t width, int64_t count, bool distinct, CaseRandom& random) {
  OpCase test;
  test.op = "mask_of_largest";
  test.what = fmt::format("{} of [{}, {}]{}", count, rows, width, distinct ? "" : ", many equal");
  CaseInput scores;
  scores.shape = {rows, width};
  scores.values = distinct ? random.uniform(rows * width) : random.integers(rows * width, -1, 1);
  test.inputs = {scores};
  test.compute = [count](std::span<const Tensor> in) -> std::vector<Tensor> {
    return {mask_of_largest(in[0], count)};
  };
  test.reference = [rows, width, count](std::span<const ReferenceInput> in) {
    Values result(in[0].values.size(), -HUGE_VAL);
    std::vector<size_t> order(static_cast<size_t>(width));
    for (int64_t row = 0; row < rows; ++row) {
      std::iota(order.begin(), order.end(), static_cast<size_t>(row * width));
      std::partial_sort(order.begin(), order.begin() + count, order.end(),
                        [&](size_t a, size_t b) { return in[0].values[a] > in[0].values[b]; });
      for (int64_t i = 0; i < count; ++i) result[order[static_cast<size_t>(i)]] = 0;
    }
    return std::vector<Values>{result};
  };
  test.tolerance = Tolerance::exact();
  return test;
}

}  // namespace

void add_indexer_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const ScoreForm& form : {ScoreForm{3, 33, 4, 5, 3, 17, DType::f32, true},
                                ScoreForm{1, 64, 16, 3, 1, 48, DType::f16, true},
                                ScoreForm{2, 8, 128, 1, 5, 9, DType::bf16, false},
                                ScoreForm{1, 1, 1, 1, 1, 1, DType::f32, false}})
    cases.push_back(scores_case(form, random));
  for (const auto& [rows, width, count] :
       {std::array<int64_t, 3>{1, 1, 1}, {5, 7, 3}, {3, 130, 64}, {2, 67, 67}})
    for (const bool distinct : {true, false})
      cases.push_back(mask_case(rows, width, count, distinct, random));
}

}  // namespace prism
