// A tiny Granite Switch with random weights, as a GGUF file and as a float64 reference that follows
// the published definition.
#pragma once

#include "support/models/tiny_encoder.h"

namespace prism::test {

class TinyGraniteSwitch : public TinyEncoder {
 public:
  TinyGraniteSwitch();
  Rows logits(std::span<const int32_t> tokens) const;

  // Tokens that switch adapters on, the first of them adapter 1, and what is embedded for each.
  static constexpr int32_t kSwitches[] = {35, 36, 37}, kEmbedded[] = {4, 9, 35};

 private:
  // The adapter of each row.
  static std::vector<size_t> adapters(std::span<const int32_t> tokens);
  // The product with a matrix and with an adapter.
  Row product(const std::string& name, const Row& x, size_t adapter) const;
  Row adapted(const std::string& name, const Row& x, size_t adapter) const;
  Rows attention(int layer, const Rows& x, std::span<const size_t> adapters) const;
  void rotate_head(double* head, size_t position) const;
};

}  // namespace prism::test
