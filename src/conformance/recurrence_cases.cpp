// Cases of recurrent ops: batches of texts of unlike lengths, heads that share keys, every rule.
#include <cmath>

#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/recurrence.h"

namespace prism {

namespace {

// Rows of the texts of a batch; `padding` rows belong to none.
struct Batch {
  std::vector<int64_t> counts;
  int64_t padding = 0;
  int64_t rows() const {
    int64_t sum = padding;
    for (const int64_t each : counts) sum += each;
    return sum;
  }
  int64_t states() const { return std::ssize(counts) + 2; }
  std::string text() const { return fmt::format("[{}]+{}", fmt::join(counts, " "), padding); }
  // State 0 belongs to none, and the last text has the first of the others.
  int64_t state_of(size_t text) const { return std::ssize(counts) - static_cast<int64_t>(text); }
  CaseInput input() const {
    Values words;
    int64_t first = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      for (const int64_t word : {first, counts[i], int64_t{0}, counts[i] ? state_of(i) : 0})
        words.push_back(static_cast<double>(word));
      first += counts[i];
    }
    return {{std::ssize(counts), 4}, DType::i32, words, nullptr, false};
  }
};

const std::vector<Batch>& batches() {
  static const std::vector<Batch> all = {
      {{1}}, {{7}, 2}, {{1, 3, 1}, 1}, {{17, 0, 1, 3}, 4}, {{37}}};
  return all;
}

CaseInput state_input(CaseRandom& random, const Shape& shape) {
  return {shape, DType::f32, random.uniform(shape.elements(), -1, 1), nullptr, false};
}

// y, and the state with its sign changed: the state itself is the memory of an input.
std::vector<Tensor> results_of(const Recurrence& found) { return {found.y, -found.state}; }

void add_short_conv(std::vector<OpCase>& cases, CaseRandom& random, const Batch& batch,
                    int64_t channels, int64_t taps, bool has_bias, bool silu, int64_t filters = 1) {
  OpCase test;
  test.op = "short_conv";
  test.what = fmt::format("{} rows, {} channels, {} taps{}{}{}", batch.text(), channels, taps,
                          has_bias ? ", bias" : "", silu ? ", silu" : "",
                          filters > 1 ? fmt::format(", {} filters", filters) : "");
  // Rows of x are parts of wider ones if there is a bias.
  const int64_t left = has_bias ? 3 : 0, width = channels + 2 * left;
  test.inputs = {random.input({batch.rows(), width}, DType::f32),
                 random.input(filters > 1 ? Shape{filters, channels, taps} : Shape{channels, taps},
                              DType::f32),
                 state_input(random, {batch.states(), taps - 1, channels}), batch.input()};
  if (has_bias) test.inputs.push_back(random.input({channels}, DType::f32));
  test.compute = [=](std::span<const Tensor> in) {
    return results_of(short_conv(in[0].slice(1, left, left + channels), in[1],
                                 in.size() > 4 ? in[4] : Tensor(), in[2], in[3], {.silu = silu}));
  };
  test.reference = [=](std::span<const ReferenceInput> in) {
    Values y(static_cast<size_t>(filters * batch.rows() * channels)), state = in[2].values;
    int64_t first = 0;
    for (size_t text = 0; text < batch.counts.size(); ++text) {
      const int64_t count = batch.counts[text], slot = batch.state_of(text);
      for (int64_t c = 0; c < channels && count > 0; ++c) {
        Values all;  // the state, then the rows
        const auto at = [&](int64_t i) {
          return static_cast<size_t>((slot * (taps - 1) + i) * channels + c);
        };
        for (int64_t i = 0; i + 1 < taps; ++i) all.push_back(state[at(i)]);
        for (int64_t i = 0; i < count; ++i)
          all.push_back(in[0].values[static_cast<size_t>((first + i) * width + left + c)]);
        for (int64_t n = 0; n < filters * count; ++n) {
          const int64_t filter = n / count, i = n % count;
          double sum = in.size() > 4 ? in[4].values[static_cast<size_t>(c)] : 0;
          for (int64_t t = 0; t < taps; ++t)
            sum += in[1].values[static_cast<size_t>((filter * channels + c) * taps + t)] *
                   all[static_cast<size_t>(i + t)];
          if (silu) sum /= 1 + std::exp(-sum);
          y[static_cast<size_t>((filter * batch.rows() + first + i) * channels + c)] = sum;
        }
        for (int64_t i = 0; i + 1 < taps; ++i) state[at(i)] = all[static_cast<size_t>(count + i)];
      }
      first += count;
    }
    for (double& each : state) each = -each;
    return std::vector<Values>{y, state};
  };
  test.tolerance = Tolerance::reduction(DType::f32, 4);
  cases.push_back(std::move(test));
}

enum class Rule { sums, gained, sums_before, selective, delta, moving };

struct Sizes {
  int64_t heads, key_heads, keys, values;
};

// The definitions of prism/ops/recurrence.h in f64.
std::vector<Values> scan_reference(std::span<const ReferenceInput> in, Rule rule, const Sizes& s,
                                   const Batch& batch, bool by_key, bool tiled) {
  const Values &q = in[0].values, &k = in[1].values, &v = in[2].values, &decay = in[3].values;
  const Values none, &extra = in.size() > 6 ? in[6].values : none;
  Values y(v.size()), states = in[4].values;
  int64_t first = 0;
  for (size_t text = 0; text < batch.counts.size(); ++text) {
    for (int64_t row = first; row < first + batch.counts[text]; ++row)
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t key_head = tiled ? h % s.key_heads : h / (s.heads / s.key_heads);
        const auto key = [&](int64_t i) {
          return static_cast<size_t>((row * s.key_heads + key_head) * s.keys + i);
        };
        const int64_t of_head = row * s.heads + h;
        for (int64_t c = 0; c < s.values; ++c) {
          const auto at = static_cast<size_t>(of_head * s.values + c);
          const auto state = [&](int64_t i) -> double& {
            return states[static_cast<size_t>(
                ((batch.state_of(text) * s.heads + h) * s.keys + i) * s.values + c)];
          };
          const auto decay_of = [&](int64_t i) {
            if (rule == Rule::selective)
              return std::exp(decay[at] *
                              extra[static_cast<size_t>((h * s.keys + i) * s.values + c)]);
            return decay[static_cast<size_t>(by_key ? of_head * s.keys + i : of_head)];
          };
          double moved = 0, given = v[at], sum = 0;
          if (rule == Rule::selective) given *= decay[at];
          if (rule == Rule::gained) given *= extra[static_cast<size_t>(of_head)];
          for (int64_t i = 0; i < s.keys; ++i) {
            if (rule == Rule::delta) moved += k[key(i)] * decay_of(i) * state(i);
            if (rule == Rule::moving)
              moved += extra[static_cast<size_t>(of_head * s.keys + i)] * state(i);
          }
          if (rule == Rule::delta) given = extra[static_cast<size_t>(of_head)] * (given - moved);
          for (int64_t i = 0; i < s.keys; ++i) {
            const double old = state(i);
            state(i) = decay_of(i) * old + k[key(i)] * given;
            if (rule == Rule::moving) {
              const auto place = static_cast<size_t>(of_head * s.keys + i);
              state(i) -= extra[place] * in[7].values[place] * moved;
            }
            sum += q[key(i)] * (rule == Rule::sums_before ? old : state(i));
          }
          y[at] = sum;
        }
      }
    first += batch.counts[text];
  }
  for (double& each : states) each = -each;
  return {y, states};
}

void add_scan(std::vector<OpCase>& cases, CaseRandom& random, Rule rule, const Sizes& s,
              const Batch& batch, bool by_key, bool tiled) {
  static constexpr const char* kNames[] = {"state_scan",     "state_scan", "state_scan",
                                           "selective_scan", "delta_scan", "moving_scan"};
  const int64_t rows = batch.rows();
  OpCase test;
  test.op = kNames[static_cast<int>(rule)];
  test.what =
      fmt::format("{} rows, {} heads of {}, [{} {}]{}{}{}", batch.text(), s.heads, s.key_heads,
                  s.keys, s.values, by_key ? ", decays by key" : "", tiled ? ", tiled" : "",
                  rule == Rule::sums_before ? ", before"
                  : rule == Rule::gained    ? ", gains"
                                            : "");
  const bool selective = rule == Rule::selective;
  // Sums over keys stay near 1, so that states neither vanish nor explode.
  const double size = 1 / std::sqrt(static_cast<double>(s.keys));
  Shape decays = {rows, s.heads};
  if (by_key) decays.append(s.keys);
  if (selective) decays.append(s.values);
  // Rows of q, k and v are parts of wider ones in some cases.
  const int64_t before = rule == Rule::delta ? 4 : rule == Rule::moving ? 3 : 0;
  const auto input = [&](const Shape& shape, double most) {
    if (before == 0) return random.input(shape, DType::f32, -most, most);
    const int64_t width = shape[1] * shape[2];
    const Shape wider = {rows, 2 * before + width};
    return CaseInput{
        wider, DType::f32, random.uniform(wider.elements(), -most, most),
        [=](const Tensor& t) { return t.slice(1, before, before + width).reshape(shape); }};
  };
  test.inputs = {input({rows, s.key_heads, s.keys}, 1),
                 input({rows, s.key_heads, s.keys}, size),
                 input({rows, s.heads, s.values}, 1),
                 random.input(decays, DType::f32, selective ? 0.0 : 0.5, 1),
                 state_input(random, {batch.states(), s.heads, s.keys, s.values}),
                 batch.input()};
  if (selective)
    test.inputs.push_back(random.input({s.heads, s.keys, s.values}, DType::f32, -2, 0));
  if (rule == Rule::delta || rule == Rule::gained)
    test.inputs.push_back(random.input({rows, s.heads}, DType::f32, 0, 1));
  if (rule == Rule::moving)
    for (const double most : {size, 1.0})
      test.inputs.push_back(random.input({rows, s.heads, s.keys}, DType::f32, -most, most));
  test.compute = [=](std::span<const Tensor> in) {
    if (selective)
      return results_of(selective_scan(in[0], in[1], in[2], in[3], in[6], in[4], in[5]));
    if (rule == Rule::delta)
      return results_of(delta_scan(in[0], in[1], in[2], in[3], in[6], in[4], in[5], tiled));
    if (rule == Rule::moving)
      return results_of(moving_scan(in[0], in[1], in[2], in[3], in[6], in[7], in[4], in[5]));
    return results_of(state_scan(in[0], in[1], in[2], in[3], in[4], in[5],
                                 {.reads_before = rule == Rule::sums_before,
                                  .tiled_keys = tiled,
                                  .gains = rule == Rule::gained ? in[6] : Tensor()}));
  };
  test.reference = [=](std::span<const ReferenceInput> in) {
    return scan_reference(in, rule, s, batch, by_key, tiled);
  };
  test.tolerance = Tolerance::reduction(DType::f32, 10);
  cases.push_back(std::move(test));
}

}  // namespace

void add_recurrence_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const Batch& batch : batches())
    for (const int64_t channels : {1, 67})
      for (const int64_t taps : {2, 4})
        add_short_conv(cases, random, batch, channels, taps, taps == 4, taps == 4);
  for (const Batch& batch : batches()) add_short_conv(cases, random, batch, 67, 2, false, false, 3);
  // Every combination is a program of its own, so few of them stand for the others: keys that one
  // lane holds, and keys that several share.
  struct Form {
    Sizes sizes;
    bool by_key;
  };
  for (const Form& form : {Form{{1, 1, 1, 1}, true}, Form{{2, 1, 7, 5}, false},
                           Form{{4, 2, 16, 33}, true}, Form{{4, 2, 64, 36}, false}})
    for (const Batch& batch : batches()) {
      const bool tiled = form.sizes.keys == 16;
      for (const Rule rule :
           {form.by_key ? Rule::sums : Rule::gained, Rule::sums_before, Rule::delta, Rule::moving})
        add_scan(cases, random, rule, form.sizes, batch, form.by_key,
                 tiled && rule != Rule::moving);
      add_scan(cases, random, Rule::selective, form.sizes, batch, false, false);
    }
}

}  // namespace prism
