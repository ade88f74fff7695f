// phi3: fused q, k and v, fused gate and up, separate rotary frequencies for long contexts. phimoe:
// with experts. Windows that files state are checked and not used, as llama.cpp does it.
#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

class Phi3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    (void)config_integer(file, "attention.sliding_window", 0, 0, 1 << 30);
    // As converted from a folder; llama.cpp has no key for the norms and the router of phimoe.
    config.mixer_range = 2 * config_number(file, "router_jitter_noise", 0, {.zero = true});
    if (config.mixer_range == 0) return;
    config.norms = NormKind::layer;
    if (config.experts_used != 2)
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("model: {} is {}; the router of phimoe.router_jitter_noise chooses 2",
                              config_key(file, "expert_used_count"), config.experts_used));
  }
};

}  // namespace

std::unique_ptr<Architecture> make_phi3() { return std::make_unique<Phi3>(); }

}  // namespace prism::llm
