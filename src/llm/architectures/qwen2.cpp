// qwen2, and the text part of qwen2vl: biases on q, k and v.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config&) const override {}
};

}  // namespace

std::unique_ptr<Architecture> make_qwen2() { return std::make_unique<Qwen2>(); }

}  // namespace prism::llm
