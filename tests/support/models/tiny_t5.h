// A tiny T5 with random weights, as a GGUF file and as a float64 reference that follows the
// published definition.
#pragma once

#include "support/models/tiny_encoder.h"

namespace prism::test {

struct T5Kind {
  bool decodes = true;   // else the encoder alone
  bool gated = true;     // else a ReLU, as in the first version
  bool tied = false;     // the output is the embedding
  bool biased = false;   // every layer has biases of its own, as in UMT5
  bool letters = false;  // with a tokenizer
  int decoder_layers = 3;
  int buckets = 8;
};

class TinyT5 : public TinyEncoder {
 public:
  explicit TinyT5(const T5Kind& kind);

  // The results of the encoder for a text, and of the decoder for each of its tokens after that.
  Rows encoded(std::span<const int32_t> source) const;
  Rows logits(std::span<const int32_t> source, std::span<const int32_t> tokens) const;
  // What the decoder writes after its start token, up to a count or the end of the text.
  std::vector<int32_t> answer(std::span<const int32_t> source, size_t most) const;

  static constexpr int32_t kStart = 0, kEnd = 1;

 private:
  void layer(const std::string& prefix, bool crosses, bool biased);
  void use_letters();
  Rows embedded(std::span<const int32_t> tokens) const;
  // Attention of the rows to others (or to themselves), whose matrices have this prefix.
  Rows attended(const std::string& prefix, const Rows& x, const Rows& others,
                const std::string& biases, bool both_ways) const;
  void add_feed_forward(const std::string& prefix, Rows& x) const;
  // The name of the biases of a layer, which may be those of the first.
  std::string biases_of(const char* part, int layer) const;

  T5Kind kind_;
};

}  // namespace prism::test
