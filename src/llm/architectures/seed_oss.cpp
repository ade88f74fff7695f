// seed_oss: qwen2 whose second norm has another name.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class SeedOss : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config&) const override {}
  NormNames norm_names() const override { return {.feed_forward = "post_attention_norm"}; }
};

}  // namespace

std::unique_ptr<Architecture> make_seed_oss() { return std::make_unique<SeedOss>(); }

}  // namespace prism::llm
