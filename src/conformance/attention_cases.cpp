// Cases of attention: single and many queries, grouped heads, every option, caches of each type.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "conformance/cases.h"
#include "prism/ops/attention.h"

namespace prism {

namespace {

struct Sizes {
  int64_t batch, heads, kv_heads, queries, keys, dim;
  int64_t value_dim = 0;  // 0: dim
  int64_t values() const { return value_dim > 0 ? value_dim : dim; }
};

struct Options {
  bool causal = true, mask = false, sinks = false;
  int64_t window = 0;
  double soft_cap = 0;
  bool chunked = false, mask_of_heads = false;
  double max_bias = 0;
};

// The slope of a head as the paper on linear biases gives it: powers of one root for a power of two
// of heads, every other power of the finer root for the rest.
double slope_of(int64_t head, int64_t heads, double max_bias) {
  int64_t whole = 1;
  while (whole * 2 <= heads) whole *= 2;
  const double root = std::pow(2.0, -max_bias / static_cast<double>(whole));
  if (head < whole) return std::pow(root, static_cast<double>(head + 1));
  return std::pow(std::sqrt(root), static_cast<double>(2 * (head - whole) + 1));
}

Values attention_reference(std::span<const ReferenceInput> in, const Sizes& s, const Options& o) {
  Values out(static_cast<size_t>(s.batch * s.heads * s.queries * s.values()));
  const Values* mask = o.mask ? &in[3].values : nullptr;
  const Values* sinks = o.sinks ? &in[o.mask ? 4 : 3].values : nullptr;
  const double scale = 1 / std::sqrt(static_cast<double>(s.dim));
  for (int64_t bh = 0; bh < s.batch * s.heads; ++bh) {
    const int64_t b = bh / s.heads, h = bh % s.heads, kv = h / (s.heads / s.kv_heads);
    const double* k = in[1].values.data() + (b * s.kv_heads + kv) * s.keys * s.dim;
    const double* v = in[2].values.data() + (b * s.kv_heads + kv) * s.keys * s.values();
    for (int64_t i = 0; i < s.queries; ++i) {
      const double* q = in[0].values.data() + (bh * s.queries + i) * s.dim;
      const int64_t place = s.keys - s.queries + i;
      Values scores;
      double most =
          sinks ? (*sinks)[static_cast<size_t>(h)] : -std::numeric_limits<double>::infinity();
      for (int64_t j = 0; j < s.keys; ++j) {
        double score = 0;
        for (int64_t d = 0; d < s.dim; ++d) score += q[d] * k[j * s.dim + d];
        score *= scale;
        if (o.soft_cap > 0) score = o.soft_cap * std::tanh(score / o.soft_cap);
        const int64_t mask_row = o.mask_of_heads ? i * s.heads + h : i;
        if (mask) score += (*mask)[static_cast<size_t>(mask_row * s.keys + j)];
        if (o.max_bias > 0)
          score -= slope_of(h, s.heads, o.max_bias) * std::fabs(static_cast<double>(place - j));
        const bool within = o.window == 0 ? true
                            : o.chunked   ? j / o.window == place / o.window
                                          : j + o.window > place && j < place + o.window;
        const bool seen = (!o.causal || j <= place) && within;
        scores.push_back(seen ? score : -std::numeric_limits<double>::infinity());
        most = std::max(most, scores.back());
      }
      double sum = sinks ? std::exp((*sinks)[static_cast<size_t>(h)] - most) : 0;
      for (double& score : scores) sum += score = std::exp(score - most);
      for (int64_t d = 0; d < s.values(); ++d) {
        double value = 0;
        for (int64_t j = 0; j < s.keys; ++j)
          value += scores[static_cast<size_t>(j)] * v[j * s.values() + d];
        out[static_cast<size_t>((bh * s.queries + i) * s.values() + d)] = value / sum;
      }
    }
  }
  return out;
}

void add(std::vector<OpCase>& cases, CaseRandom& random, DType type, DType kv_type, const Sizes& s,
         const Options& o) {
  OpCase test;
  test.op = "attention";
  test.what = fmt::format(
      "{} and {} batch {}, {}/{} heads of {}, {} queries, {} keys{}{}{}{}{}{}{}", dtype_name(type),
      dtype_name(kv_type), s.batch, s.heads, s.kv_heads, s.dim, s.queries, s.keys,
      s.value_dim > 0 ? fmt::format(", values of {}", s.value_dim) : "", o.causal ? ", causal" : "",
      o.mask ? o.mask_of_heads ? ", mask by head" : ", mask" : "", o.sinks ? ", sinks" : "",
      o.window ? fmt::format(", {} {}", o.chunked ? "chunks of" : "window", o.window) : "",
      o.soft_cap > 0 ? ", soft cap" : "", o.max_bias > 0 ? ", linear biases" : "");
  const auto tensor = [&](const Shape& shape, DType of) {
    return CaseInput{shape, of, random.uniform(shape.elements(), -1.5, 1.5)};
  };
  test.inputs = {tensor({s.batch, s.heads, s.queries, s.dim}, type),
                 tensor({s.batch, s.kv_heads, s.keys, s.dim}, kv_type),
                 tensor({s.batch, s.kv_heads, s.keys, s.values()}, kv_type)};
  if (o.mask)
    test.inputs.push_back(
        tensor(o.mask_of_heads ? Shape({s.queries, s.heads, s.keys}) : Shape({s.queries, s.keys}),
               DType::f32));
  if (o.sinks) test.inputs.push_back(tensor({s.heads}, DType::f32));
  test.compute = [o](std::span<const Tensor> in) {
    AttentionSettings settings;
    settings.causal = o.causal;
    settings.window = o.window;
    settings.soft_cap = o.soft_cap;
    settings.chunked = o.chunked;
    settings.max_bias = o.max_bias;
    if (o.mask) settings.mask = in[3];
    if (o.sinks) settings.sinks = in[o.mask ? 4 : 3];
    return std::vector<Tensor>{attention(in[0], in[1], in[2], settings)};
  };
  test.reference = [s, o](std::span<const ReferenceInput> in) {
    return std::vector<Values>{attention_reference(in, s, o)};
  };
  // Matrix fragments round queries and weights to f16, whatever the type of the tensors.
  test.tolerance = type == DType::bf16 ? Tolerance{2e-5, 1e-2, 1e-2} : Tolerance{2e-6, 5e-3, 5e-3};
  test.gradient =
      type == DType::f32 && kv_type == type && s.batch * s.heads * s.queries * s.keys <= 64;
  cases.push_back(std::move(test));
}

// A paged cache: the keys of each sequence in blocks, in an order that a table gives. The last two
// sequences share their first block.
void add_paged(std::vector<OpCase>& cases, CaseRandom& random, DType kv_type, const Sizes& s,
               int64_t block, const Options& o, bool latent = false) {
  const int64_t row = (s.keys + block - 1) / block, blocks = s.batch * row + 1;
  Values table, spans;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t i = 0; i < row; ++i)
      table.push_back(static_cast<double>(blocks - 1 - (i * s.batch + b)));
    for (const int64_t word : {b * s.queries, s.queries, s.keys, b})
      spans.push_back(static_cast<double>(word));
  }
  if (s.batch > 1)
    table[static_cast<size_t>((s.batch - 1) * row)] =
        table[static_cast<size_t>((s.batch - 2) * row)];
  OpCase test;
  test.op = "attention";
  test.what = fmt::format(
      "{} paged by {}, {} texts, {}/{} heads of {}, {} queries, {} keys{}{}{}{}",
      dtype_name(kv_type), block, s.batch, s.heads, s.kv_heads, s.dim, s.queries, s.keys,
      s.value_dim > 0 ? fmt::format(", values of {}", s.value_dim) : "",
      o.window ? fmt::format(", {} {}", o.chunked ? "chunks of" : "window", o.window) : "",
      o.sinks ? ", sinks" : "", latent ? ", part of the keys" : "");
  const auto tensor = [&](const Shape& shape, DType of) {
    return CaseInput{shape, of, random.uniform(shape.elements(), -1.5, 1.5)};
  };
  test.inputs = {tensor({s.batch * s.queries, s.heads, s.dim}, DType::f32),
                 tensor({blocks, block, s.kv_heads, s.dim}, kv_type),
                 tensor({blocks, block, s.kv_heads, s.values()}, kv_type),
                 CaseInput{{s.batch, row}, DType::i32, table},
                 CaseInput{{s.batch, 4}, DType::i32, spans}};
  if (o.sinks) test.inputs.push_back(tensor({s.heads}, DType::f32));
  test.compute = [s, o, latent](std::span<const Tensor> in) {
    AttentionSettings settings;
    settings.window = o.window;
    settings.chunked = o.chunked;
    settings.max_bias = o.max_bias;
    settings.table = in[3];
    if (latent) settings.value_dim = s.value_dim;
    if (o.sinks) settings.sinks = in[5];
    return std::vector<Tensor>{
        cached_attention(in[0], in[1], latent ? in[1] : in[2], in[4], s.queries, settings)};
  };
  test.reference = [s, o, latent, block, table, row](std::span<const ReferenceInput> in) {
    // The same problem with [batch, heads, positions, dim].
    std::vector<ReferenceInput> by_head = {in[0], in[1], in[2]};
    by_head[0].values.clear();
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t i = 0; i < s.queries; ++i)
          for (int64_t d = 0; d < s.dim; ++d)
            by_head[0].values.push_back(
                in[0].values[static_cast<size_t>(((b * s.queries + i) * s.heads + h) * s.dim + d)]);
    for (size_t which = 1; which < 3; ++which) {
      by_head[which].values.clear();
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.kv_heads; ++h)
          for (int64_t j = 0; j < s.keys; ++j)
            for (int64_t d = 0; d < (which == 1 ? s.dim : s.values()); ++d) {
              const auto number =
                  static_cast<int64_t>(table[static_cast<size_t>(b * row + j / block)]);
              const size_t from = latent ? 1 : which;
              by_head[which].values.push_back(
                  in[from]
                      .values[static_cast<size_t>(((number * block + j % block) * s.kv_heads + h) *
                                                      (from == 1 ? s.dim : s.values()) +
                                                  d)]);
            }
    }
    if (o.sinks) by_head.push_back(in[5]);
    const Values found = attention_reference(by_head, s, o);
    Values out(found.size());
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t i = 0; i < s.queries; ++i)
          for (int64_t d = 0; d < s.values(); ++d)
            out[static_cast<size_t>(((b * s.queries + i) * s.heads + h) * s.values() + d)] =
                found[static_cast<size_t>(((b * s.heads + h) * s.queries + i) * s.values() + d)];
    return std::vector<Values>{out};
  };
  test.tolerance = Tolerance{2e-6, 5e-3, 5e-3};
  cases.push_back(std::move(test));
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  const Options plain, open{.causal = false}, windowed{.window = 5}, capped{.soft_cap = 3.0};
  Options all;
  all.mask = all.sinks = true;
  all.window = 7;
  all.soft_cap = 4;
  const Sizes sizes[] = {{1, 1, 1, 1, 1, 16}, {1, 4, 2, 1, 37, 32},  {2, 4, 1, 1, 130, 64},
                         {1, 2, 2, 2, 5, 16}, {2, 4, 2, 19, 19, 32}, {1, 3, 3, 33, 70, 64},
                         {1, 2, 1, 3, 4, 8}};
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const Sizes& each : sizes)
      for (const Options& options : {plain, open, windowed, capped, all})
        add(cases, random, type, type, each, options);
    // Head sizes that end inside a word, a 16-byte chunk or a fragment.
    for (const Sizes& each :
         {Sizes{1, 2, 2, 1, 5, 1}, Sizes{1, 2, 1, 3, 7, 3}, Sizes{2, 4, 2, 1, 21, 20},
          Sizes{1, 2, 1, 18, 18, 40}, Sizes{1, 2, 2, 4, 9, 100}})
      add(cases, random, type, type, each, each.queries == 4 ? all : plain);
  }
  // bf16 caches.
  add(cases, random, DType::f32, DType::bf16, {1, 4, 2, 1, 37, 32}, all);
  add(cases, random, DType::f16, DType::bf16, {2, 4, 2, 19, 19, 32}, plain);
  for (const Sizes& each : {Sizes{1, 3, 3, 33, 70, 64}, Sizes{1, 2, 1, 3, 7, 3},
                            Sizes{2, 4, 2, 1, 21, 20}, Sizes{1, 2, 2, 4, 9, 100}})
    add(cases, random, DType::f32, DType::bf16, each, plain);
  // Values shorter than keys, biases, chunks, and masks by head.
  Options biased{.max_bias = 8}, both{.soft_cap = 2, .max_bias = 4},
      chunks{.window = 8, .chunked = true}, by_head{.mask = true, .mask_of_heads = true};
  biased.sinks = true;
  by_head.max_bias = 8;
  for (const DType type : {DType::f32, DType::f16})
    for (const Sizes& each : {Sizes{1, 3, 3, 1, 37, 24, 16}, Sizes{1, 6, 2, 4, 21, 20, 12},
                              Sizes{2, 4, 2, 19, 33, 32, 16}, Sizes{1, 5, 5, 33, 70, 64}})
      for (const Options& options : {plain, biased, both, chunks, by_head})
        add(cases, random, type, type, each, options);
  for (const DType type : {DType::f32, DType::f16})
    for (const int64_t queries : {1, 2, 17}) {
      add_paged(cases, random, type, {2, 4, 1, queries, 40, 48, 32}, 16, plain, true);
      add_paged(cases, random, type, {1, 3, 1, queries, 20, 576, 512}, 8, plain, true);
      add_paged(cases, random, type, {2, 4, 2, queries, 65, 48, 32}, 16, chunks);
    }
  // Windows of encoders reach as far forward as backward.
  Options around{.causal = false, .window = 6}, around_chunks{.causal = false, .window = 6};
  around.max_bias = 8;
  around_chunks.chunked = true;
  for (const DType type : {DType::f32, DType::f16})
    for (const Sizes& each : {Sizes{1, 2, 1, 1, 9, 16}, Sizes{1, 4, 2, 3, 21, 32},
                              Sizes{2, 4, 2, 19, 19, 32}, Sizes{1, 3, 3, 70, 70, 64}})
      for (const Options& options : {around, around_chunks})
        add(cases, random, type, type, each, options);
  // Paged caches: lengths at the borders of blocks, blocks of one position, and longer than a text.
  const Options windowed_sinks{.sinks = true, .window = 9};
  for (const int64_t block : {1, 16, 64})
    for (const Options& options : {plain, windowed_sinks}) {
      add_paged(cases, random, DType::f16, {3, 4, 2, 1, 128, 64}, block, options);
      add_paged(cases, random, DType::f32, {2, 4, 2, 1, 65, 32}, block, options);
      add_paged(cases, random, DType::f16, {2, 4, 1, 19, 33, 32}, block, options);
    }
}

}  // namespace prism
