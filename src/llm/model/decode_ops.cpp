// Implements token sampling and sequence advance, on the CPU and as kernels.
#include "llm/model/decode_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dsl/philox.h"
#include "llm/model/finite.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism::llm {

namespace {

using namespace dsl;

constexpr uint32_t kLanes = 256;
constexpr auto kNoTokenWord = static_cast<uint32_t>(kNoToken);

// One group per row. Lanes own adjacent candidates, so a scan over lanes is a cumulative sum.
ir::Kernel choose_kernel() {
  return kernel("choose_tokens", kLanes, [] {
    const In values = in("values", f32), indices = in("indices", u32),
             sampling = in("sampling", u32), positions = in("positions", u32);
    const Array tokens = out("tokens", u32);
    const Value n = param("candidates", u32);
    const Array sums = shared(f32, kLanes, "sums");
    const Value row = group_id(), first = row * n;
    const Value word = row * static_cast<uint32_t>(kSamplingWords);
    const Value temperature = bitcast(f32, sampling[word]), top_k = sampling[word + 1u],
                top_p = bitcast(f32, sampling[word + 2u]),
                min_p = bitcast(f32, sampling[word + 3u]);
    const Value most = select(top_k == 0u, n, min(top_k, n));
    const Value each = (n + (kLanes - 1)) / kLanes;
    const Value begin = min(local_id() * each, most), end = min(begin + each, most);
    const Value largest = values[first];

    // Returns the exclusive prefix sum over lanes and the total.
    const auto running = [&](Value own) {
      Var sum(f32, own, "sum");
      for (uint32_t step = 1; step < kLanes; step *= 2) {
        sums[local_id()] = sum;
        barrier();
        if_(local_id() >= step, [&] { sum += sums.load(local_id() - step); });
        barrier();
      }
      sums[local_id()] = sum;
      barrier();
      const Value before = sums.load_if(local_id() > 0u, max(local_id(), 1u) - 1u);
      const Value all = sums.load(kLanes - 1);
      barrier();
      return std::pair(before, all);
    };
    const auto plain = [&](Value i) { return exp(values[first + i] - largest); };

    Var own(f32, 0.0f, "own");
    for_(begin, end, 1u, [&](Value i) { own += plain(i); });
    const auto both = running(own);
    const Value before = both.first, all = both.second;
    Var reached(f32, before, "reached"), count(u32, constant(u32, 0), "count");
    for_(begin, end, 1u, [&](Value i) {
      const Value weight = plain(i);
      if_(Value(reached) < top_p * all && weight >= min_p, [&] { count += 1u; });
      reached += weight;
    });
    const Value kept = max(group_sum(count), 1u);

    const Value cold = temperature <= 0.0f;
    const Value inverse = 1.0f / select(cold, constant(f32, 1.0), temperature);
    const auto heated = [&](Value i) { return exp((values[first + i] - largest) * inverse); };
    const Value last = min(end, kept);
    own = constant(f32, 0.0);
    for_(begin, last, 1u, [&](Value i) { own += heated(i); });
    const auto [heat_before, heat] = running(own);
    const Value random =
        dsl::philox_words(positions[row], sampling[word + 4u], sampling[word + 5u])[0];
    const Value drawn = cast(f32, random >> 8u) * 0x1p-24f * heat;
    reached = heat_before;
    count = constant(u32, 0);
    for_(begin, last, 1u, [&](Value i) {
      reached += heated(i);
      if_(Value(reached) <= drawn, [&] { count += 1u; });
    });
    const Value chosen = select(cold, constant(u32, 0), min(group_sum(count), kept - 1u));
    constexpr uint32_t kInfinity = 0x7f800000;  // the exponent of infinities and NaN
    const Value finite = (bitcast(u32, largest) & kInfinity) != kInfinity;
    if_(local_id() == 0u,
        [&] { tokens[row] = select(finite, indices[first + chosen], kNoTokenWord); });
  });
}

// The host version of choose_kernel, for one row.
int64_t chosen_of(const float* values, int64_t n, const int32_t* sampling, int32_t position) {
  const auto temperature = std::bit_cast<float>(sampling[0]);
  if (!(temperature > 0)) return 0;
  const double top_p = static_cast<double>(std::bit_cast<float>(sampling[2]));
  const double min_p = static_cast<double>(std::bit_cast<float>(sampling[3]));
  const int64_t most = sampling[1] <= 0 ? n : std::min<int64_t>(n, sampling[1]);
  const auto below = [&](int64_t i) { return static_cast<double>(values[i] - values[0]); };
  double all = 0;
  for (int64_t i = 0; i < most; ++i) all += std::exp(below(i));
  int64_t kept = 0;
  double reached = 0;
  for (int64_t i = 0; i < most && reached < top_p * all; ++i) {
    const double weight = std::exp(below(i));
    if (weight < min_p) break;
    reached += weight;
    ++kept;
  }
  kept = std::max<int64_t>(kept, 1);
  double heat = 0;
  for (int64_t i = 0; i < kept; ++i) heat += std::exp(below(i) / static_cast<double>(temperature));
  const uint32_t random =
      dsl::philox_block(static_cast<uint32_t>(position), static_cast<uint32_t>(sampling[4]),
                        static_cast<uint32_t>(sampling[5]))[0];
  const double drawn = static_cast<double>(random >> 8) * 0x1p-24 * heat;
  reached = 0;
  for (int64_t i = 0; i < kept; ++i) {
    reached += std::exp(below(i) / static_cast<double>(temperature));
    if (reached > drawn) return i;
  }
  return kept - 1;
}

class ChooseOp : public Op {
 public:
  std::string_view name() const override { return "choose_tokens"; }
  bool has_gradient() const override { return false; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    const Tensor &values = inputs[0], &indices = inputs[1];
    const bool fits = values.rank() == 2 && values.shape() == indices.shape() &&
                      values.size(1) > 0 && values.type() == ElementType(DType::f32) &&
                      inputs[2].shape() == Shape{values.size(0), kSamplingWords} &&
                      inputs[3].shape() == Shape{values.size(0)};
    if (!fits)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("choose_tokens: values {}, indices {}, sampling {}, positions {}; "
                              "must be [rows, n], [rows, n], [rows, {}] and [rows]",
                              values.shape().text(), indices.shape().text(),
                              inputs[2].shape().text(), inputs[3].shape().text(), kSamplingWords));
    return {{{values.size(0)}, DType::i32}};
  }

  void run_cpu(const CpuCall& call) const override {
    const int64_t n = call.inputs[0].layout.shape[1];
    auto* const tokens = call.outputs[0].first<int32_t>();
    call.pool.parallel_for(
        static_cast<uint64_t>(call.inputs[0].layout.shape[0]), 1,
        [&](uint64_t begin, uint64_t end) {
          for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
            const float* const values = call.inputs[0].first<float>() + row * n;
            if (!std::isfinite(values[0])) {
              tokens[row] = kNoToken;
              continue;
            }
            const int64_t chosen =
                chosen_of(values, n, call.inputs[2].first<int32_t>() + row * kSamplingWords,
                          call.inputs[3].first<int32_t>()[row]);
            tokens[row] = call.inputs[1].first<int32_t>()[row * n + chosen];
          }
        });
  }

  void launch(DeviceCall& call) const override {
    const Shape& shape = call.input(0).layout.shape;
    call.launch("choose_tokens", choose_kernel, {static_cast<uint32_t>(shape[0]), 1, 1},
                {call.input(0), call.input(1), call.input(2), call.input(3), call.output()},
                {static_cast<uint32_t>(shape[1])});
  }
};

ir::Kernel advance_kernel(size_t groups, uint32_t block) {
  return kernel("advance", kLanes, [&] {
    const In tokens = in("tokens", u32);
    const Array words = inout("words", u32);
    const Value rows = param("rows", u32), tokens_at = param("tokens_at", u32),
                positions_at = param("positions_at", u32), spans_at = param("spans_at", u32),
                step_at = param("step_at", u32), history_at = param("history_at", u32),
                history_steps = param("history_steps", u32),
                table_entries = param("table_entries", u32);
    std::vector<Value> places_at, tables_at;
    for (size_t group = 0; group < groups; ++group) {
      places_at.push_back(param(fmt::format("places_at_{}", group), u32));
      tables_at.push_back(param(fmt::format("table_at_{}", group), u32));
    }
    const Value step = words.load(step_at);
    const Value history = history_at + step % history_steps * rows;
    for_(local_id(), rows, kLanes, [&](Value row) {
      const Value token = tokens[row], span = spans_at + row * 4u;
      words[history + row] = token;
      if_(words.load(span + 1u) > 0u, [&] {
        words[tokens_at + row] = select(token == kNoTokenWord, 0u, token);
        const Value position = words.load(positions_at + row) + 1u;
        words[positions_at + row] = position;
        words[span + 2u] += 1u;
        // There is no next position behind the last entry; no step follows.
        const Value entry = row * table_entries + min(position / block, table_entries - 1u);
        for (size_t group = 0; group < groups; ++group) {
          const Value place = places_at[group] + row * 2u;
          words[place] = position;
          words[place + 1u] = words.load(tables_at[group] + entry) * block + position % block;
        }
      });
    });
    barrier();
    if_(local_id() == 0u, [&] { words[step_at] = step + 1u; });
  });
}

class AdvanceOp : public Op {
 public:
  explicit AdvanceOp(const AdvancePlaces& places) : at_(places) {}
  std::string_view name() const override { return "advance"; }
  bool has_gradient() const override { return false; }
  uint32_t changed_inputs() const override { return 1; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override {
    if (!inputs[0].is_evaluated() || !(inputs[1].shape() == Shape{at_.rows}))
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("advance: tokens have shape {}, {} rows expected; words must be evaluated",
                      inputs[1].shape().text(), at_.rows));
    return {{inputs[0].shape(), inputs[0].type()}};
  }

  void run_cpu(const CpuCall& call) const override {
    const auto* const tokens = call.inputs[1].first<int32_t>();
    auto* const words = call.outputs[0].first<int32_t>();
    int32_t* const history = words + at_.history + words[at_.step] % at_.history_steps * at_.rows;
    for (int64_t row = 0; row < at_.rows; ++row) {
      history[row] = tokens[row];
      int32_t* const span = words + at_.spans + 4 * row;
      if (span[1] <= 0) continue;
      words[at_.tokens + row] = std::max(tokens[row], 0);
      const int32_t position = ++words[at_.positions + row];
      ++span[2];
      const int64_t entry =
          row * at_.table_entries + std::min(position / at_.block, at_.table_entries - 1);
      for (size_t group = 0; group < at_.places.size(); ++group) {
        int32_t* const place = words + at_.places[group] + 2 * row;
        place[0] = position;
        place[1] = static_cast<int32_t>(words[at_.tables[group] + entry] * at_.block +
                                        position % at_.block);
      }
    }
    ++words[at_.step];
  }

  void launch(DeviceCall& call) const override {
    std::vector<ParamValue> params;
    for (const int64_t each : {at_.rows, at_.tokens, at_.positions, at_.spans, at_.step,
                               at_.history, at_.history_steps, at_.table_entries})
      params.emplace_back(static_cast<uint32_t>(each));
    for (size_t group = 0; group < at_.places.size(); ++group)
      for (const int64_t each : {at_.places[group], at_.tables[group]})
        params.emplace_back(static_cast<uint32_t>(each));
    call.launch(
        fmt::format("advance {} {}", at_.places.size(), at_.block),
        [&] { return advance_kernel(at_.places.size(), static_cast<uint32_t>(at_.block)); },
        {1, 1, 1}, {call.input(1), call.output()}, std::move(params));
  }

 private:
  AdvancePlaces at_;
};

}  // namespace

Tensor choose_tokens(const Tensor& values, const Tensor& indices, const Tensor& sampling,
                     const Tensor& positions) {
  return use_op(std::make_shared<ChooseOp>(), {values, indices, sampling, positions});
}

Tensor advance(const Tensor& words, const Tensor& tokens, const AdvancePlaces& places) {
  return use_op(std::make_shared<AdvanceOp>(places), {words, tokens});
}

}  // namespace prism::llm
