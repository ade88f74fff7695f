// The input and output of a generation: options, results, statistics.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/llm/grammar.h"
#include "prism/llm/sampler.h"

#pragma GCC visibility push(default)

namespace prism::llm {

enum class StopReason : uint8_t {
  end_token,   // the model ended its text, or a grammar allows nothing more
  stop_text,   // the text reached a stop string
  max_tokens,  // the requested number of tokens
  context,     // no room for another token
  cancelled,   // by the callback or cancel()
};
const char* stop_reason_name(StopReason reason);  // "end_token" ...

struct GenerationOptions {
  SamplerOptions sampler = {};
  int64_t max_tokens = -1;             // -1: until the model ends its text or the context is full
  std::vector<std::string> stop = {};  // the text ends before the first of these
  std::optional<Grammar> grammar = {};
  bool ignore_end = false;    // continue after the model's end of text
  bool show_special = false;  // show control tokens as text
  // When the context is full, drop half of the tokens after the first `keep` and continue instead
  // of stopping.
  bool shift_context = false;
  int64_t keep = 0;
};

struct GenerationStatistics {
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;       // prompt tokens found in the cache
  int64_t generated_tokens = 0;    // an end token counts
  int64_t recomputed_tokens = 0;   // after a device failed; the seconds include that and reloading
  double prompt_seconds = 0;       // from getting a slot to the first token
  double generation_seconds = 0;   // from the first token to the last
  double first_token_seconds = 0;  // from the request to the first token

  double prompt_rate() const;      // prompt tokens per second, without the reused ones
  double generation_rate() const;  // tokens per second, without the first token
};

struct Generation {
  std::string text;
  std::vector<int32_t> tokens;
  StopReason reason = StopReason::end_token;
  std::string stop;  // the stop string that ended the text
  GenerationStatistics statistics;
};

// Receives each new piece of text, in whole characters; returning false ends the generation.
using TextCallback = std::function<bool(std::string_view text)>;

}  // namespace prism::llm

#pragma GCC visibility pop
