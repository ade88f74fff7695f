// Random attention problems and their float64 reference.
#include "support/ops/attention_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "sample_kernels/sample_case_tools.h"

namespace prism::test {
namespace {

using kernels::CaseRandom;

float half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31 ? std::numeric_limits<double>::quiet_NaN()
                      : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                     : std::ldexp(fraction, -24);
  return static_cast<float>(bits >> 15 ? -size : size);
}

uint16_t half_bits(float value) {
  const auto bytes = kernels::stored({value}, DType::f16);
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data(), 2);
  return bits;
}

// One cache: its contents as bytes and as numbers, [slot][head][position][d]; unused elements are
// poison.
struct Cache {
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

}  // namespace

std::vector<std::vector<std::byte>> AttentionCase::inputs(bool with_sinks) const {
  std::vector<std::vector<std::byte>> all = {q, k, v, spans};
  if (options.block) all.push_back(table);
  if (options.mask) all.push_back(mask);
  if (options.sinks && with_sinks) all.push_back(sinks);
  return all;
}

AttentionCase attention_case(const ops::AttentionOptions& options, uint32_t kv_heads,
                             uint32_t positions, bool by_head,
                             const std::vector<AttentionSequence>& sequences, uint64_t seed) {
  CaseRandom random(seed);
  AttentionCase one;
  one.options = options;
  one.kv_heads = kv_heads;
  one.sequences = sequences;
  const uint32_t dim = options.head_dim, value_dim = options.values(), heads = one.heads();
  const uint32_t slots = static_cast<uint32_t>(sequences.size()) + 1;
  ops::AttentionParams& p = one.params;
  p.q_head = dim;
  p.q_row = heads * dim + 16;
  p.out_head = value_dim;
  p.out_row = heads * value_dim + 8;
  p.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  p.window = 5;
  p.soft_cap = 1.5f;
  p.mask_row = positions + 3;
  // The last 2^n heads that fit have steps of a power of two, the others lie between.
  p.slope_heads = std::bit_floor(heads);
  p.slope_step = 4.0f / static_cast<float>(p.slope_heads);
  const bool q8 = options.cache.is_block();
  const uint32_t width = by_head ? dim : dim * kv_heads;
  const uint32_t quants = (width + 15) / 16 * 16;
  const uint32_t row = q8 ? (quants + width / 32 * 2 + 31) / 32 * 32 : width;
  const uint32_t block = options.block ? options.block : positions;
  const uint32_t blocks = (positions + block - 1) / block;  // per slot
  p.kv_position = row;
  p.kv_head = by_head ? row * block : dim;
  p.kv_slot = row * block * (by_head ? kv_heads : 1);
  p.table_row = blocks + 1;
  p.factor_offset = quants;
  p.factor_head = by_head ? p.kv_head : dim / 32 * 2;
  // Shorter values lie in rows of the length of keys.
  p.v_slot = p.kv_slot;
  p.v_position = p.kv_position;
  p.v_head = p.kv_head;
  p.v_factor_offset = p.factor_offset;

  // The sequences use the slots in reverse order; the first slot is unused.
  std::vector<uint32_t> spans;
  for (size_t s = 0; s < sequences.size(); ++s) {
    spans.insert(spans.end(), {one.rows, sequences[s].queries, sequences[s].keys,
                               slots - 1 - static_cast<uint32_t>(s)});
    one.rows += sequences[s].queries;
    one.most_queries = std::max(one.most_queries, sequences[s].queries);
  }
  one.spans = kernels::bytes_of(spans);
  const auto used = [&](uint32_t slot, uint32_t position) {
    return slot > 0 && position < sequences[slots - 1 - slot].keys;
  };
  const auto blocks_of = [&](uint32_t slot) {
    return slot > 0 ? (sequences[slots - 1 - slot].keys + block - 1) / block : 0;
  };
  const auto shares = [&](uint32_t slot, uint32_t position) {
    return options.block && position < block && slot > 1 && used(slot, block - 1) &&
           used(slot - 1, block - 1);
  };
  std::vector<uint32_t> numbers(size_t{slots} * blocks);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<uint32_t>(i);
    if (options.block) std::swap(numbers[i], numbers[random.next() % (i + 1)]);
  }
  std::vector<uint32_t> table(size_t{slots} * p.table_row, UINT32_MAX);  // unused: out of range
  for (uint32_t slot = 0; slot < slots; ++slot)
    for (uint32_t b = 0; b < blocks_of(slot); ++b)
      table[size_t{slot} * p.table_row + b] = shares(slot, b * block)
                                                  ? table[size_t{slot - 1} * p.table_row]
                                                  : numbers[size_t{slot} * blocks + b];
  one.table = kernels::bytes_of(table);
  const auto make_cache = [&] {
    Cache cache;
    cache.values.assign(size_t{slots} * kv_heads * positions * dim, 0);
    const size_t unit = q8 ? 1 : dtype_bytes(options.cache.plain());
    cache.bytes.assign(size_t{p.kv_slot} * numbers.size() * unit,
                       std::byte{0xFF});  // NaN in every type
    for (uint32_t slot = 0; slot < slots; ++slot)
      for (uint32_t head = 0; head < kv_heads; ++head)
        for (uint32_t position = 0; position < positions; ++position) {
          if (!used(slot, position)) continue;
          const size_t base =
              size_t{options.block ? table[size_t{slot} * p.table_row + position / block] : slot} *
                  p.kv_slot +
              position % block * p.kv_position;
          const auto values_of = [&](uint32_t of) {
            return &cache.values[((size_t{of} * kv_heads + head) * positions + position) * dim];
          };
          double* values = values_of(slot);
          if (shares(slot, position)) {
            std::copy_n(values_of(slot - 1), dim, values);
            continue;
          }
          for (uint32_t d = 0; d < dim; ++d) {
            const size_t at = base + head * p.kv_head + d;
            if (q8) {
              const size_t factor_at = base + p.factor_offset + head * p.factor_head + d / 32 * 2;
              if (d % 32 == 0) {
                const uint16_t factor = half_bits(random.uniform(0.002f, 0.02f));
                std::memcpy(&cache.bytes[factor_at], &factor, 2);
              }
              uint16_t factor = 0;
              std::memcpy(&factor, &cache.bytes[factor_at], 2);
              const int quant = static_cast<int>(random.next() % 255) - 127;
              cache.bytes[at] = static_cast<std::byte>(quant);
              values[d] = quant * half_value(factor);
            } else if (options.cache.plain() == DType::f16) {
              const uint16_t bits = half_bits(random.uniform(-2, 2));
              std::memcpy(&cache.bytes[at * 2], &bits, 2);
              values[d] = half_value(bits);
            } else if (options.cache.plain() == DType::bf16) {
              const uint32_t word = std::bit_cast<uint32_t>(random.uniform(-2, 2)) & 0xffff0000u;
              const auto bits = static_cast<uint16_t>(word >> 16);
              std::memcpy(&cache.bytes[at * 2], &bits, 2);
              values[d] = std::bit_cast<float>(word);
            } else {
              const float value = random.uniform(-2, 2);
              std::memcpy(&cache.bytes[at * 4], &value, 4);
              values[d] = value;
            }
          }
        }
    return cache;
  };
  const Cache k = make_cache(), v = make_cache();
  one.k = k.bytes;
  one.v = v.bytes;
  const auto q = random.floats(size_t{one.rows + 1} * p.q_row, -2, 2);
  one.q = kernels::stored(q, options.q_type);
  const auto q_values = kernels::rounded(q, options.q_type);
  auto mask = random.floats(size_t{one.rows + 1} * p.mask_row, -3, 3);
  for (size_t i = 0; i < mask.size(); i += 7) mask[i] = -std::numeric_limits<float>::infinity();
  one.mask = kernels::bytes_of(mask);
  const auto sinks = random.floats(heads, -1, 2);
  one.sinks = kernels::bytes_of(sinks);
  one.out = kernels::poison(size_t{one.rows + 1} * p.out_row, options.out_type);

  one.expected.assign(size_t{one.rows} * heads * value_dim, 0);
  uint32_t first_row = 0;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const AttentionSequence& sequence = sequences[s];
    const size_t slot = slots - 1 - s;
    for (uint32_t query = 0; query < sequence.queries; ++query)
      for (uint32_t head = 0; head < heads; ++head) {
        const size_t row_of_q = first_row + query;
        const int64_t position = int64_t{sequence.keys} - sequence.queries + query;
        const size_t cache_at = (slot * kv_heads + head / options.group) * positions;
        std::vector<double> scores;
        std::vector<uint32_t> seen;
        double top = -HUGE_VAL, all = 0;
        for (uint32_t j = 0; j < sequence.keys; ++j) {
          if (options.causal && j > position) continue;
          if (options.chunked && j / p.window != position / p.window) continue;
          if (options.window && !options.chunked && int64_t{j} + p.window <= position) continue;
          double score = 0;
          for (uint32_t d = 0; d < dim; ++d)
            score += q_values[row_of_q * p.q_row + head * p.q_head + d] *
                     k.values[(cache_at + j) * dim + d];
          score *= p.scale;
          if (options.soft_cap) score = p.soft_cap * std::tanh(score / p.soft_cap);
          if (options.mask) score += mask[row_of_q * p.mask_row + j];
          if (options.slopes) {
            const double power =
                head < p.slope_heads ? 2.0 * (head + 1) : 2.0 * (head - p.slope_heads) + 1;
            score -= std::exp2(-power * double{p.slope_step}) *
                     std::fabs(static_cast<double>(position - int64_t{j}));
          }
          if (std::isinf(score)) continue;
          scores.push_back(score);
          seen.push_back(j);
          top = std::max(top, score);
        }
        if (options.sinks && !seen.empty()) top = std::max(top, double{sinks[head]});
        for (double& score : scores) all += score = std::exp(score - top);
        if (options.sinks && !seen.empty()) all += std::exp(sinks[head] - top);
        double* result = &one.expected[(row_of_q * heads + head) * value_dim];
        for (size_t i = 0; i < seen.size(); ++i)
          for (uint32_t d = 0; d < value_dim; ++d)
            result[d] += scores[i] / all * v.values[(cache_at + seen[i]) * dim + d];
      }
    first_row += sequence.queries;
  }
  return one;
}

std::string compare(const AttentionCase& one, const std::vector<std::byte>& out, double bound) {
  const uint32_t dim = one.options.values(), heads = one.heads();
  const bool half = one.options.out_type == DType::f16;
  const auto value_at = [&](size_t index) -> double {
    if (half) {
      uint16_t bits = 0;
      std::memcpy(&bits, out.data() + index * 2, 2);
      return half_value(bits);
    }
    float value = 0;
    std::memcpy(&value, out.data() + index * 4, 4);
    return value;
  };
  double error = 0, size = 0;
  for (uint32_t row = 0; row < one.rows; ++row)
    for (uint32_t head = 0; head < heads; ++head)
      for (uint32_t d = 0; d < dim; ++d) {
        const double got = value_at(size_t{row} * one.params.out_row + head * dim + d);
        const double wanted = one.expected[(size_t{row} * heads + head) * dim + d];
        const double off = std::fabs(got - wanted);
        if (!(off <= bound))
          return fmt::format("row {} head {} element {}: {}, expected {}", row, head, d, got,
                             wanted);
        error += off * off;
        size += wanted * wanted;
      }
  if (error > size * bound * bound)
    return fmt::format("mean square error {:g} of {:g}", error, size);
  const size_t unit = half ? 2 : 4;
  for (uint32_t row = 0; row < one.rows; ++row) {  // the gaps between rows must stay untouched
    const size_t from = (size_t{row} * one.params.out_row + heads * dim) * unit;
    const size_t bytes = (one.params.out_row - heads * dim) * unit;
    if (std::memcmp(out.data() + from, one.out.data() + from, bytes) != 0)
      return fmt::format("behind the last head of row {} something was written", row);
  }
  const size_t behind = size_t{one.rows} * one.params.out_row * unit;
  if (std::memcmp(out.data() + behind, one.out.data() + behind, out.size() - behind) != 0)
    return "the row behind the last was written";
  return "";
}

}  // namespace prism::test
