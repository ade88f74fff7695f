// qwen3moe: qwen3 with experts instead of feed-forward layers.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen3Moe : public PreNormArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    if (config.experts == 0) (void)file.integer(config_key(file, "expert_count"));  // throws
  }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen3moe() { return std::make_unique<Qwen3Moe>(); }

}  // namespace prism::llm
