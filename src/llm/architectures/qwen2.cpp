// qwen2: biases on q, k and v, loaded because the file has them.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen2 : public PreNormArchitecture {
 public:
  void configure(const GgufFile&, Config&) const override {}
};

}  // namespace

std::unique_ptr<Architecture> make_qwen2() { return std::make_unique<Qwen2>(); }

}  // namespace prism::llm
