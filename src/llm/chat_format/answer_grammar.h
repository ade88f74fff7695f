// The grammar of a whole answer, whose content follows another grammar.
#pragma once

#include <span>

#include "llm/chat_format/chat_format.h"
#include "prism/llm/grammar.h"

namespace prism::llm {

struct AnswerGrammarOptions {
  bool begins_thinking = false;      // the prompt ended with <think>: content follows </think>
  std::span<const Tool> tools = {};  // may be called instead; empty: none
};

// Throws kInvalidArgument and kNotSupported for the schema of a tool that no grammar can express.
Grammar answer_grammar(const ChatFormat& format, const Grammar& content,
                       const AnswerGrammarOptions& options);

}  // namespace prism::llm
