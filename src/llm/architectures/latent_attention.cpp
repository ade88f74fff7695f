// Latent attention (MLA): keys and values of all heads are products of a few latent elements, which
// alone are cached; the products are moved to the queries and to the results.
#include "llm/architectures/blocks.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"

namespace prism::llm {

Tensor Blocks::by_heads(const Tensor& x, const Tensor& matrices) {
  const int64_t rows = x.size(0), heads = x.size(1);
  const Tensor own = arange(0, static_cast<double>(heads), 1, DType::i32, x.device());
  return expert_matmul(x, matrices, own.unsqueeze(0).expand({rows, heads}).contiguous());
}

Tensor Blocks::latent_attention(const LayerWeights& w, const Tensor& x) {
  const LayerConfig& sizes = config_.at(layer_);
  const int64_t rows = x.size(0), plain = sizes.head_dim - config_.rope_dims;
  const Tensor low = w.latent.q_a ? norm(project(x, w.latent.q_a), w.latent.q_norm) : x;
  const Tensor q =
      project(low, w.latent.q_a ? w.latent.q_b : w.q).reshape({rows, sizes.heads, sizes.head_dim});
  const Tensor compressed = project(x, w.latent.kv_a);
  const Tensor latent = norm(compressed.slice(-1, 0, sizes.latent), w.latent.kv_norm);
  Tensor k_rotated =
      compressed.slice(-1, sizes.latent, compressed.size(-1)).reshape({rows, 1, config_.rope_dims});
  Tensor q_rotated = q.slice(-1, plain, sizes.head_dim);
  if (w.k_norm) k_rotated = norm(k_rotated, w.k_norm);
  if (const Rotation by = rotation(x.device()); by.frequencies) {
    q_rotated = rope(q_rotated, positions(x.device()), by.frequencies, by.options);
    k_rotated = rope(k_rotated, positions(x.device()), by.frequencies, by.options);
  }
  const auto both = [](const Tensor& a, const Tensor& b) {
    const Tensor parts[] = {a, b};
    return concat(parts, -1);
  };
  Heads of;
  const Tensor q_latent = plain > 0
                              ? by_heads(q.slice(-1, 0, plain), w.latent.k_b)
                              : zeros({rows, sizes.heads, sizes.latent}, DType::f32, x.device());
  of.q = both(q_latent, q_rotated);
  of.k = both(latent.reshape({rows, 1, sizes.latent}), k_rotated);
  if (config_.temperature_scale > 0) of.q = of.q * temperature(x.device());
  const CachedRows cached = to_cache(of, {});
  Tensor mask;
  if (sizes.chosen) mask = w.indexer ? chosen_keys(w, x, low) : chosen_.to(x.device());
  return attention_output(w, x, by_heads(attend(w, cached, mask), w.latent.v_b));
}

}  // namespace prism::llm
