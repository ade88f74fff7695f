// qwen3: norms of each head's q and k, loaded because the file has them.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen3 : public PreNormArchitecture {
 public:
  void configure(const GgufFile&, Config&) const override {}
};

}  // namespace

std::unique_ptr<Architecture> make_qwen3() { return std::make_unique<Qwen3>(); }

}  // namespace prism::llm
