// The input and output of a generation: options, results, statistics.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/llm/grammar.h"
#include "prism/llm/sampler.h"
#include "prism/llm/scoring.h"

#pragma GCC visibility push(default)

namespace prism::llm {

enum class StopReason : uint8_t {
  end_token,   // the model ended its text, or a grammar allows nothing more
  stop_text,   // the text reached a stop string
  max_tokens,  // the requested number of tokens
  context,     // no room for another token
  cancelled,   // by the callback or cancel()
  failed,      // by an exception: Generation::failure
};
const char* stop_reason_name(StopReason reason);  // "end_token" ...

// How much of a prompt has been read.
struct PromptProgress {
  int64_t tokens = 0;  // of the prompt
  int64_t reused = 0;  // of these, found in the cache
  int64_t read = 0;    // of these, read so far, with the reused ones
  double seconds = 0;  // since the text got a slot
};

struct GenerationOptions {
  SamplerOptions sampler = {};
  int64_t max_tokens = -1;             // -1: until the model ends its text or the context is full
  std::vector<std::string> stop = {};  // the text ends before the first of these
  std::optional<Grammar> grammar = {};
  bool ignore_end = false;    // continue after the model's end of text
  bool show_special = false;  // show control tokens as text, also to the grammar
  // Score each generated token (see scoring.h) with this many alternatives; -1: no scores.
  int64_t scores = -1;
  // Scores are the log-probabilities with which the samplers chose, not those of the model: the
  // alternatives are tokens that could have been chosen.
  bool scores_choices = false;
  // When the context is full, drop half of the tokens after the first `keep` and continue instead
  // of stopping.
  bool shift_context = false;
  int64_t keep = 0;
  bool speculate = true;  // if the model was loaded with LoadOptions::speculate
  // Called when the text gets a slot, and after each part of its prompt.
  std::function<void(const PromptProgress& progress)> on_prompt = {};
};

struct GenerationStatistics {
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;     // prompt tokens found in the cache
  int64_t restored_tokens = 0;   // of these, read from the prompt cache on disk
  int64_t generated_tokens = 0;  // an end token counts
  int64_t shifts = 0;            // times that a full context was shifted
  // Computed again: a device failed, or other texts needed the cache. The seconds include that.
  int64_t recomputed_tokens = 0;
  int64_t proposals = 0;           // steps that checked tokens of speculation
  int64_t proposed_tokens = 0;     // by speculation, and checked
  int64_t accepted_tokens = 0;     // those of them that are in the text
  double prompt_seconds = 0;       // from getting a slot to the first token
  double generation_seconds = 0;   // from the first token to the last
  double first_token_seconds = 0;  // from the request to the first token

  double prompt_rate() const;      // prompt tokens per second, without the reused ones
  double generation_rate() const;  // tokens per second, without the first token
};

struct Generation {
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<TokenScore> scores;  // one per token if options.scores is not -1
  StopReason reason = StopReason::end_token;
  std::string stop;            // the stop string that ended the text
  std::exception_ptr failure;  // what ended the text, if reason is failed
  GenerationStatistics statistics;
};

// A new piece of text in whole characters, and the tokens generated since the last piece.
struct TextPiece {
  std::string_view text;
  std::span<const int32_t> tokens;
  std::span<const TokenScore> scores;  // one per token, or none
  // Of the text so far; null: the model has none.
  const GenerationStatistics* statistics = nullptr;
  operator std::string_view() const { return text; }
};

// Receives each piece; returning false ends the generation. A function of a std::string_view will
// do.
using TextCallback = std::function<bool(const TextPiece& piece)>;

}  // namespace prism::llm

#pragma GCC visibility pop
