// Code shared by the models with DeepSeek's latent attention and experts.
#pragma once

#include "llm/architectures/architecture.h"

namespace prism::llm {

class DeepSeek2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override;

 protected:
  // How the rotation is scaled for long contexts, which scales attention too.
  static void set_yarn(const GgufFile& file, Config& config);
};

}  // namespace prism::llm
