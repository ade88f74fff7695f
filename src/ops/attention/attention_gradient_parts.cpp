// Arguments and visible ranges of the kernels of attention's gradient, and the kernel of products.
#include "ops/attention/attention_gradient_parts.h"

#include <fmt/format.h>

namespace prism::ops {

using namespace dsl;

std::vector<ParamValue> AttentionGradientParams::values(
    const AttentionGradientOptions& options) const {
  std::vector<ParamValue> all = {q_row,      q_head, slopes_row, slopes_head, k_slot,
                                 k_position, k_head, v_slot,     v_position,  v_head,
                                 queries,    keys,   scale};
  if (options.window) all.emplace_back(window);
  return all;
}

std::string gradient_name(const AttentionGradientOptions& options, GradientSide own) {
  std::string name =
      fmt::format("{}_d{}_v{}_g{}_{}", own == GradientSide::keys ? "keys" : "queries",
                  options.head_dim, options.value_dim, options.group, dtype_name(options.type));
  if (options.causal) name += "_causal";
  if (options.window) name += options.chunked ? "_chunks" : "_window";
  return name;
}

GradientArguments::GradientArguments(const AttentionGradientOptions& the_options, GradientSide side)
    : options(the_options),
      own(side),
      q(in("q", options.type)),
      k(in("k", options.type)),
      v(in("v", options.type)),
      slopes(in("slopes", options.type)),
      sums(in("sums", f32)),
      products(in("products", f32)),
      first(out(side == GradientSide::keys ? "k_slopes" : "q_slopes", options.type)),
      second(side == GradientSide::keys ? std::optional(out("v_slopes", options.type))
                                        : std::nullopt),
      q_row(param("q_row", u32)),
      q_head(param("q_head", u32)),
      slopes_row(param("slopes_row", u32)),
      slopes_head(param("slopes_head", u32)),
      k_slot(param("k_slot", u32)),
      k_position(param("k_position", u32)),
      k_head(param("k_head", u32)),
      v_slot(param("v_slot", u32)),
      v_position(param("v_position", u32)),
      v_head(param("v_head", u32)),
      queries(param("queries", u32)),
      keys(param("keys", u32)),
      scale(param("scale", f32)),
      window(options.window ? std::optional(param("window", u32)) : std::nullopt) {}

GradientPair GradientArguments::queries_of(Value sequence, Value head) const {
  const Value row = sequence * queries;
  return {{q, row * q_row + head * q_head, q_row, queries, options.head_dim},
          {slopes, row * slopes_row + head * slopes_head, slopes_row, queries, options.value_dim}};
}

GradientPair GradientArguments::keys_of(Value sequence, Value kv_head) const {
  return {{k, sequence * k_slot + kv_head * k_head, k_position, keys, options.head_dim},
          {v, sequence * v_slot + kv_head * v_head, v_position, keys, options.value_dim}};
}

GradientRange GradientArguments::seen_by(Value first_own, uint32_t count) const {
  const Value before = keys - queries;     // keys that precede the first query
  const auto back = [&](Value position) {  // the first position within a window of this one
    const Value behind = position + 1u;
    return select(behind > *window, behind - *window, 0u);
  };
  const auto chunk = [&](Value position) { return position / *window * *window; };
  if (own == GradientSide::queries) {
    const Value from = before + first_own, last = min(from + count, keys) - 1u;
    const Value begin = !options.window   ? constant(u32, 0)
                        : options.chunked ? chunk(from)
                                          : back(from);
    const Value end = options.causal    ? last + 1u
                      : !options.window ? keys
                      : options.chunked ? chunk(last) + *window
                                        : last + *window;
    return {begin, min(end, keys)};
  }
  const Value last = min(first_own + count, keys) - 1u;
  const Value begin = options.causal    ? first_own
                      : !options.window ? constant(u32, 0)
                      : options.chunked ? chunk(first_own)
                                        : back(first_own);
  const Value end = !options.window   ? keys
                    : options.chunked ? chunk(last) + *window
                                      : last + *window;
  const auto query = [&](Value position) {
    return select(position > before, position - before, 0u);
  };
  return {query(begin), query(min(end, keys))};
}

Value GradientArguments::sees(Value query, Value key) const {
  if (!options.causal && !options.window) return constant(b1, 1);
  const Value position = keys - queries + query;
  if (options.chunked) {
    const Value first_key = position / *window * *window;
    const Value before = options.causal ? key <= position : key < first_key + *window;
    return before && key >= first_key;
  }
  const Value before = options.causal ? key <= position : key < position + *window;
  return options.window ? before && key + *window > position : before;
}

Value GradientArguments::hides(Value first_own, uint32_t own_rows, Value first_other,
                               uint32_t other_rows) const {
  if (options.window) return constant(b1, 1);
  const bool by_keys = own == GradientSide::keys;
  // Keys that do not exist matter only to queries: a key's own row is not stored.
  const Value beyond = by_keys ? constant(b1, 0) : first_other + other_rows > keys;
  if (!options.causal) return beyond;
  const Value last_key = by_keys ? first_own + own_rows : first_other + other_rows;
  return beyond || last_key > keys - queries + (by_keys ? first_other : first_own) + 1u;
}

ir::Kernel attention_gradient_products(const AttentionGradientOptions& options) {
  constexpr uint32_t kLanes = 16;  // of a pair
  const std::string name =
      fmt::format("attention_gradient_products_{}_{}", dtype_name(options.type), options.value_dim);
  return kernel(name, kLanes * kProductsOfGroup, [&] {
    const In result = in("result", options.type), slopes = in("slopes", options.type);
    const Array products = out("products", f32);
    const Value count = param("count", u32), heads = param("heads", u32),
                slopes_row = param("slopes_row", u32), slopes_head = param("slopes_head", u32);
    auto parts = shared(f32, kLanes * kProductsOfGroup, "parts");
    const Value pair = group_id() * kProductsOfGroup + local_id() / kLanes;
    const Value lane = local_id() % kLanes, exists = pair < count;
    const Value from = pair * options.value_dim,
                slope = pair / heads * slopes_row + pair % heads * slopes_head;
    Var sum(f32, 0.0f, "sum");
    const auto widened = [](Value x) { return x.element() == f32 ? x : cast(f32, x); };
    for (uint32_t first = 0; first < options.value_dim; first += kLanes) {
      const Value d = lane + first;
      const Value wanted =
          first + kLanes <= options.value_dim ? exists : exists && d < options.value_dim;
      sum = fma(widened(result.load_if(wanted, from + d)),
                widened(slopes.load_if(wanted, slope + d)), sum);
    }
    parts[local_id()] = sum;
    barrier();
    if_(exists && lane == 0u, [&] {
      Value all = parts[local_id()];
      for (uint32_t i = 1; i < kLanes; ++i) all = all + parts.load(local_id() + i);
      products[pair] = all;
    });
  });
}

}  // namespace prism::ops
