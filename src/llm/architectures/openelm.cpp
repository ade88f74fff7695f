// openelm: heads and feed-forward widths that grow from layer to layer.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class OpenElm : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config&) const override {}
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_openelm() { return std::make_unique<OpenElm>(); }

}  // namespace prism::llm
