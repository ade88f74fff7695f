// plamo: attention and feed-forward side by side after one norm.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Plamo : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override { config.parallel = true; }
  NormNames norm_names() const override { return {.feed_forward = ""}; }
};

}  // namespace

std::unique_ptr<Architecture> make_plamo() { return std::make_unique<Plamo>(); }

}  // namespace prism::llm
