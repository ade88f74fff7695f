// Cases of nearest_rows: metrics, types, ties, zero and NaN rows, bitmaps, more slots than rows.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "prism/ops/nearest.h"

namespace prism {

namespace {

struct Form {
  Metric metric;
  DType type;
  int64_t queries, rows, width, k;
  bool norms = false, scales = false, allowed = false, special = false, spans = false;

  bool has_factors() const { return norms || scales; }
};

double score_of(const Form& form, const double* query, const double* row, double factor) {
  double product = 0, query_squares = 0, squares = 0, difference = 0, bits = 0;
  for (int64_t i = 0; i < form.width; ++i) {
    const double x = query[i], y = row[i];
    product += x * y;
    query_squares += x * x;
    squares += y * y;
    const double apart = x - y * (form.scales ? factor : 1);
    difference += apart * apart;
    if (form.metric == Metric::hamming)
      bits += __builtin_popcount(static_cast<unsigned>(x) ^ static_cast<unsigned>(y));
  }
  if (form.metric == Metric::hamming) return bits;
  if (form.metric == Metric::l2) return difference;
  if (form.metric == Metric::dot) return form.scales ? product * factor : product;
  if (query_squares == 0) return std::nan("");
  const double length = form.norms ? factor : std::sqrt(squares);
  return length == 0 ? product * 0 : product / length / std::sqrt(query_squares);
}

std::vector<Values> reference_of(const Form& form, std::span<const ReferenceInput> in) {
  const double sign = is_distance(form.metric) ? 1 : -1;
  Values scores, indices;
  for (int64_t q = 0; q < form.queries; ++q) {
    std::vector<std::pair<double, int64_t>> best;  // sign * score, row
    int64_t first = 0, end = form.rows;
    if (form.spans) {
      const Values& spans = in.back().values;
      const auto block = static_cast<size_t>(q / kSpanQueries);
      first = static_cast<int64_t>(spans[2 * block]);
      end = std::min(end, static_cast<int64_t>(spans[2 * block + 1]));
    }
    for (int64_t r = first; r < end; ++r) {
      if (form.allowed) {
        const double word = in[form.has_factors() ? 3 : 2].values[static_cast<size_t>(r / 32)];
        if ((static_cast<uint32_t>(static_cast<int32_t>(word)) >> (r % 32) & 1) == 0) continue;
      }
      const double factor = form.has_factors() ? in[2].values[static_cast<size_t>(r)] : 1;
      const double score = score_of(form, in[0].values.data() + q * form.width,
                                    in[1].values.data() + r * form.width, factor);
      if (!std::isnan(score)) best.emplace_back(sign * score, r);
    }
    std::ranges::sort(best);
    for (int64_t i = 0; i < form.k; ++i) {
      const bool found = i < static_cast<int64_t>(best.size());
      scores.push_back(found ? sign * best[static_cast<size_t>(i)].first : sign * HUGE_VAL);
      indices.push_back(found ? static_cast<double>(best[static_cast<size_t>(i)].second) : -1);
    }
  }
  return {scores, indices};
}

// Scores of small integers are exact in f32, so that ties are ties on every device. For cosine all
// rows have the same length up to a power of two, for the same reason.
Values draw_rows(const Form& form, CaseRandom& random) {
  if (form.metric == Metric::hamming) return random.integers(form.rows * form.width, 0, 255);
  if (form.metric != Metric::cosine) return random.integers(form.rows * form.width, -3, 3);
  Values values;
  for (int64_t r = 0; r < form.rows; ++r) {
    const int64_t turn = random.between(0, form.width - 1);
    const double scale = random.between(0, 1) == 0 ? 1 : 4;
    for (int64_t i = 0; i < form.width; ++i) {
      const auto size = static_cast<double>((i + turn) % form.width % 5 + 1);
      values.push_back(scale * (random.between(0, 1) == 0 ? size : -size));
    }
  }
  return values;
}

void add_special(const Form& form, Values& queries, Values& rows, CaseRandom& random) {
  for (int64_t r = 0; r < form.rows; ++r) {
    const int64_t kind = random.between(0, 9);
    if (kind > 1) continue;
    for (int64_t i = 0; i < form.width; ++i)
      rows[static_cast<size_t>(r * form.width + i)] = kind == 0             ? 0
                                                      : i == form.width / 2 ? std::nan("")
                                                                            : 1;
  }
  if (form.queries > 1)  // a zero query
    std::fill_n(queries.begin() + form.width, form.width, 0.0);
}

OpCase nearest_case(const Form& form, CaseRandom& random) {
  OpCase test;
  test.op = "nearest_rows";
  test.what = fmt::format("{} {} {} queries [{}, {}] k {}{}{}{}{}{}", metric_name(form.metric),
                          dtype_name(form.type), form.queries, form.rows, form.width, form.k,
                          form.norms ? " norms" : "", form.scales ? " scales" : "",
                          form.allowed ? " allowed" : "", form.special ? " zero and NaN rows" : "",
                          form.spans ? " spans" : "");
  const bool bits = form.metric == Metric::hamming;
  Values queries = random.integers(form.queries * form.width, bits ? 0 : -4, bits ? 255 : 4);
  Values rows = draw_rows(form, random);
  if (form.special) add_special(form, queries, rows, random);
  test.inputs = {{{form.queries, form.width}, bits ? DType::u8 : DType::f32, queries},
                 {{form.rows, form.width}, form.type, rows}};
  if (form.norms) {
    Values norms;
    for (int64_t r = 0; r < form.rows; ++r) {
      double squares = 0;
      for (int64_t i = 0; i < form.width; ++i) {
        const double value = rows[static_cast<size_t>(r * form.width + i)];
        squares += value * value;
      }
      norms.push_back(static_cast<double>(static_cast<float>(std::sqrt(squares))));
    }
    test.inputs.push_back({{form.rows}, DType::f32, norms});
  }
  if (form.scales) {
    Values scales = random.integers(form.rows, 1, 3);
    for (double& scale : scales) scale *= 0.5;
    test.inputs.push_back({{form.rows}, DType::f32, scales});
  }
  if (form.allowed) {
    const int64_t words = (form.rows + 31) / 32;
    test.inputs.push_back({{words}, DType::i32, random.integers(words, INT32_MIN, INT32_MAX)});
  }
  if (form.spans) {
    // Also empty ones, and ends behind the last row.
    Values spans;
    for (int64_t q = 0; q < form.queries; q += kSpanQueries) {
      const int64_t begin = random.between(0, form.rows);
      spans.push_back(static_cast<double>(begin));
      spans.push_back(static_cast<double>(random.between(begin, form.rows + 5)));
    }
    const auto blocks = static_cast<int64_t>(spans.size() / 2);
    test.inputs.push_back({{blocks, 2}, DType::i32, spans});
  }
  test.compute = [form](std::span<const Tensor> in) -> std::vector<Tensor> {
    NearestInputs more;
    if (form.norms) more.norms = in[2];
    if (form.scales) more.scales = in[2];
    if (form.allowed) more.allowed = in[form.has_factors() ? 3 : 2];
    if (form.spans) {
      more.spans = in.back();
      more.longest_span = form.rows + 5;
    }
    const Nearest best = nearest_rows(form.metric, in[0], in[1], form.k, more);
    return {best.scores, best.indices};
  };
  test.reference = [form](std::span<const ReferenceInput> in) { return reference_of(form, in); };
  test.tolerance = {1e-10, 2e-6, 1e-6};
  return test;
}

}  // namespace

void add_nearest_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const auto add = [&](const Form& form) { cases.push_back(nearest_case(form, random)); };
  for (const Metric metric : {Metric::cosine, Metric::dot, Metric::l2, Metric::hamming}) {
    const DType type = metric == Metric::hamming ? DType::u8 : DType::f32;
    add({metric, type, 1, 1, 1, 1});
    add({metric, type, 1, 300, 32, 10});
    add({metric, type, 3, 67, 7, 5});                        // rows of odd lengths
    add({metric, type, 5, 2500, 16, 20});                    // more than one part
    add({metric, type, 2, 40, 48, 60, false, false, true});  // fewer rows than slots
    add({metric, type, 1, 0, 4, 3});
    add({metric, type, 2, 9, 4, 0});
    add({metric, type, 4, 5000, 16, 300});  // many ties
  }
  add({Metric::dot, DType::f32, 2, 4500, 16, 2048, false, false, true});
  // Each program takes a second to compile on some devices: not every type with every metric.
  add({Metric::dot, DType::f16, 1, 2500, 32, 10});
  add({Metric::cosine, DType::f16, 3, 200, 7, 12});
  add({Metric::l2, DType::bf16, 3, 500, 24, 12});
  add({Metric::dot, DType::bf16, 3, 500, 9, 12});
  add({Metric::l2, DType::i8, 1, 700, 48, 12});
  add({Metric::dot, DType::i8, 3, 500, 33, 12});
  add({Metric::cosine, DType::f32, 3, 200, 20, 30, false, false, true, true});
  add({Metric::l2, DType::f32, 3, 200, 20, 30, false, false, true, true});
  for (const DType type : {DType::f32, DType::f16, DType::i8})
    add({Metric::cosine, type, 4, 700, 64, 12, true, false, false, type != DType::i8});
  for (const Metric metric : {Metric::dot, Metric::l2})
    add({metric, DType::i8, 2, 500, 64, 12, false, true, true});
  Form spans{.metric = Metric::l2,
             .type = DType::f32,
             .queries = 37,
             .rows = 900,
             .width = 16,
             .k = 12,
             .spans = true};
  add(spans);
  spans.allowed = true;
  spans.queries = 9;
  spans.rows = 5000;  // ranges of several parts
  add(spans);
  add({.metric = Metric::dot,
       .type = DType::i8,
       .queries = 1,
       .rows = 300,
       .width = 20,
       .k = 5,
       .scales = true,
       .spans = true});
}

}  // namespace prism
