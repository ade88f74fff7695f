// Which of a model's own adapters each row uses: attention of one head to the tokens so far, among
// which those that switch count far more than all others.
#include "llm/architectures/blocks.h"
#include "prism/ops/attention.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"

namespace prism::llm {

void Blocks::choose_adapters(const Tensor& adapters) {
  const Device& device = adapters.device();
  const int64_t rows = adapters.size(0), layer = cache_->switch_layer();
  const size_t group = cache_->group_of(layer);
  const Tensor& batch = words(device);
  // A key is its adapter and its score, and the value is the key.
  const Tensor score =
      where(adapters > 0.0, zeros({rows}, DType::f32, device) + config_.switch_gain,
            -config_.switch_gain);
  const Tensor one = ones({rows}, DType::f32, device);
  const auto padded = [&](const Tensor& first, const Tensor& second) {
    return pad(stack({first, second}, -1), {{0, 0}, {0, Config::kSwitchLength - 2}}).unsqueeze(1);
  };
  const Tensor key = padded(adapters, score);
  const Tensor cache =
      rope_to_cache(key, key, {}, layout_->places(batch, group), {}, {}, cache_->indexer(layer), {})
          .k_cache;
  AttentionSettings settings;
  settings.scale = 1;
  settings.table = layout_->table(batch, group);
  const BatchShape& shape = layout_->shape();
  const Tensor seen = cached_attention(padded(one * 0.0, one), cache, cache, layout_->spans(batch),
                                       shape.each_one_row ? 1 : shape.rows, settings)
                          .slice(-1, 0, 1)
                          .reshape({rows, 1});
  // Rows of padding may hold anything, also NaN.
  own_adapters_ =
      cast(where(seen > 0.0, round(minimum(seen, static_cast<double>(config_.own_adapters))), 0.0),
           DType::i32);
}

}  // namespace prism::llm
