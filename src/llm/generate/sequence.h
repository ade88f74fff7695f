// One text in the making: its tokens, how the next is chosen, and what of it is shown.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "llm/generate/stop_filter.h"
#include "llm/model/decode.h"
#include "prism/llm/generation.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token
  GenerationOptions options = {};
  TextCallback on_text = {};
};

class Sequence {
 public:
  // vocabulary: for the grammar, if there is one.
  Sequence(int64_t id, GenerationRequest request, const Tokenizer& tokenizer,
           std::shared_ptr<const VocabularyTrie> vocabulary);

  int64_t id() const { return id_; }
  const GenerationOptions& options() const { return request_.options; }
  // The prompt and what was chosen since; the last may not be in the cache yet.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  size_t prompt_tokens() const { return request_.prompt.size(); }
  bool finished() const { return finished_; }
  const Generation& result() const { return result_; }

  // Whether a device can choose its tokens without the host.
  bool samples_on_device() const { return !grammar_ && sampler_.is_simple(); }
  Sampling device_sampling() const;
  int32_t sample(std::span<const float> logits);  // on the host
  int64_t tokens_left() const;                    // that it may still choose

  void begin(int64_t reused);  // has a place now; so many tokens are in the cache already
  // A device failed: so many tokens that were in the cache are computed again.
  void lose_cache(int64_t cached) { result_.statistics.recomputed_tokens += cached; }
  // Takes the next token: shows its text, and ends the sequence where that says so.
  void put(int32_t token);
  void finish(StopReason reason);
  // Forgets the middle of its tokens, so that there is room again.
  void shift(int64_t context);

 private:
  void show(std::string_view text);

  int64_t id_;
  GenerationRequest request_;
  const Tokenizer& tokenizer_;
  std::vector<int32_t> tokens_;
  Sampler sampler_;
  std::optional<GrammarMatcher> grammar_;
  TextStream stream_;
  StopFilter stops_;
  Generation result_;
  bool finished_ = false;
  using Clock = std::chrono::steady_clock;
  Clock::time_point asked_ = Clock::now(), begun_ = asked_, first_ = asked_;
};

}  // namespace prism::llm
