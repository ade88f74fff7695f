// A tiny DeepSeek V4 with random weights, as a GGUF file and as a float64 reference that follows
// the published definition.
#pragma once

#include "support/models/tiny_encoder.h"

namespace prism::test {

struct DeepSeek4Kind {
  std::vector<int> ratios = {0, 4, 128, 4};  // positions of a compressed key, by layer
  int hash_layers = 2;                       // the first layers, whose experts follow from tokens
  int streams = 4;
  int window = 7;
  int chosen = 3;      // compressed keys that an indexer chooses
  double scaling = 4;  // of the rotation in layers with compressed keys
  int proposing = 0;   // layers behind the last that are not part of the text's model
};

class TinyDeepSeek4 : public TinyEncoder {
 public:
  explicit TinyDeepSeek4(const DeepSeek4Kind& kind);
  Rows logits(std::span<const int32_t> tokens) const;
  // How much larger than others the scores of chosen keys were, at least, for the last text: less
  // than the error of f32 and another key may be chosen.
  double least_gap() const { return least_gap_; }

 private:
  void layer(int index);
  void compressor(const std::string& name, int ratio, int length);

  // What a block sees of the streams of a row, and the streams after it.
  struct Mixed {
    Row input, after;
    Row shares;  // [streams, streams]
  };
  Mixed mixed(const std::string& name, const Row& x) const;
  Row joined(const Mixed& mix, const Row& x, const Row& result) const;
  Rows attention(int layer, const Rows& x) const;
  // The compressed keys of a text.
  Rows compressed(const std::string& name, int ratio, int length, const Rows& x) const;
  // Whether a compressed key is among those that an indexer chooses: [rows][keys].
  std::vector<std::vector<bool>> chosen(int layer, const Rows& x, const Rows& low) const;
  Row mixture(int layer, const Row& x, int32_t token) const;
  Row gated(const Row& gate, const Row& up, double limit) const;
  // Rotates the end of a head; back: by the negative angles.
  void rotate_end(double* head, int length, int position, bool compresses, bool back) const;

  DeepSeek4Kind kind_;
  mutable double least_gap_ = 0;
  std::list<std::vector<int32_t>> tables_;  // of the layers whose experts follow from tokens
};

}  // namespace prism::test
