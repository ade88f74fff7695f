// apertus: norms of q and k, the xIELU activation with numbers for each layer.
#include <cmath>

#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

// A number for all layers, or a list with one for each.
std::vector<float> layer_numbers(const GgufFile& file, const char* key, int64_t layers) {
  const GgufValue* found = file.find(key);
  if (!found || !found->is_array())
    return std::vector(static_cast<size_t>(layers), static_cast<float>(file.number(key)));
  std::vector<float> values = file.floats(key);
  if (values.size() < static_cast<size_t>(layers))
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("model: {} has {} numbers for {} layers", key, values.size(), layers));
  return values;
}

class Apertus : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.activation = Activation::xielu;
    const auto numbers = [&](const char* key) { return layer_numbers(file, key, config.layers); };
    const std::vector<float> below = numbers("xielu.alpha_n"), above = numbers("xielu.alpha_p"),
                             slope = numbers("xielu.beta"), epsilon = numbers("xielu.eps");
    // The curves are stored before a softplus, which keeps them above 0.
    const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
    for (size_t i = 0; i < static_cast<size_t>(config.layers); ++i)
      config.xielu.push_back({static_cast<double>(slope[i]) + softplus(below[i]),
                              softplus(above[i]), slope[i], epsilon[i]});
  }
  RequiredTensors required_tensors() const override {
    return {.head_norms = true, .gate = false, .no_head_norm_bias = true};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_apertus() { return std::make_unique<Apertus>(); }

}  // namespace prism::llm
