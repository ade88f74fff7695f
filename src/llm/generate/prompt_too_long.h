// The error for a prompt that does not fit the context, with its figures for callers.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

class PromptTooLong : public Error {
 public:
  PromptTooLong(int64_t tokens, int64_t context)
      : Error(ErrorCode::kInvalidArgument,
              fmt::format("generate: the prompt of {} tokens exceeds the available context size of "
                          "{} tokens; shorten it, or load the model with a larger context",
                          tokens, context)),
        tokens_(tokens),
        context_(context) {}
  int64_t tokens() const { return tokens_; }
  int64_t context() const { return context_; }

 private:
  int64_t tokens_, context_;
};

}  // namespace prism::llm
