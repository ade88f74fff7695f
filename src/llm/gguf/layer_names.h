// The layers that tensors of model files belong to, by their names.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace prism::llm {

// 3 for "blk.3.attn_q.weight" and "enc.blk.3.attn_q.weight", encoder_layers + 3 for "dec.blk.3...",
// -1 for a tensor outside the layers.
inline int64_t layer_of_tensor(std::string_view name, int64_t encoder_layers = 0) {
  const bool is_decoder = name.starts_with("dec.");
  if (is_decoder || name.starts_with("enc.")) name.remove_prefix(4);
  int64_t layer = -1;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer >= 0 && is_decoder ? encoder_layers + layer : layer;
}

}  // namespace prism::llm
