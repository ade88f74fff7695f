// The errors for texts that do not fit the context, with their figures for callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

class PromptTooLong : public Error {
 public:
  PromptTooLong(int64_t tokens, int64_t context)
      : PromptTooLong(tokens, context,
                      fmt::format("generate: the prompt of {} tokens exceeds the available context "
                                  "size of {} tokens; shorten it, or load the model with a larger "
                                  "context",
                                  tokens, context)) {}
  PromptTooLong(int64_t tokens, int64_t context, const std::string& message)
      : Error(ErrorCode::kInvalidArgument, message), tokens_(tokens), context_(context) {}
  int64_t tokens() const { return tokens_; }
  int64_t context() const { return context_; }

 private:
  int64_t tokens_, context_;
};

// One of several texts to embed.
class EmbeddedTextTooLong : public PromptTooLong {
 public:
  EmbeddedTextTooLong(size_t index, int64_t tokens, int64_t context)
      : PromptTooLong(tokens, context,
                      fmt::format("embed: a text has {} tokens and the context {}; shorten it, or "
                                  "load the model with a larger context",
                                  tokens, context)),
        index_(index) {}
  size_t index() const { return index_; }

 private:
  size_t index_;
};

}  // namespace prism::llm
