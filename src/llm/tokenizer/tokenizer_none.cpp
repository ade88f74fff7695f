// The tokenizer of files without a vocabulary: tokens have numbers only.
#include "llm/tokenizer/text_encoder.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

class NoEncoder : public TextEncoder {
 public:
  void encode(std::string_view, bool, std::vector<int32_t>*) const override {
    throw Error(ErrorCode::kNotSupported,
                "tokenizer: the model has no vocabulary (tokenizer.ggml.model is no_vocab), so "
                "texts cannot become tokens; give token ids, as in prism score --ids 1,2,3");
  }
  std::string bytes_of(std::string_view token) const override { return std::string(token); }
};

}  // namespace

std::unique_ptr<TextEncoder> make_no_encoder() { return std::make_unique<NoEncoder>(); }

}  // namespace prism::llm
