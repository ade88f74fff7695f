// The state of one generation: its tokens, sampler, grammar and the text emitted so far.
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
  // Models with an encoder and a decoder: the prompt is the encoder's, and the decoder begins with
  // this token. -1: none.
  int32_t start = -1;
};

class Sequence {
 public:
  // vocabulary: used by the grammar, if there is one.
  Sequence(int64_t id, GenerationRequest request, const Tokenizer& tokenizer,
           std::shared_ptr<const VocabularyTrie> vocabulary);

  int64_t id() const { return id_; }
  const GenerationOptions& options() const { return request_.options; }
  // The prompt and the tokens generated since; the last one may not be in the KV cache yet.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  // Of tokens(), those that an encoder sees.
  int64_t encoded() const { return request_.start >= 0 ? std::ssize(request_.prompt) : 0; }
  size_t prompt_tokens() const { return request_.prompt.size(); }
  bool finished() const { return finished_; }
  const Generation& result() const { return result_; }

  // Whether the device can sample its tokens without the host.
  bool samples_on_device() const {
    return !grammar_ && options().scores < 0 && sampler_.is_simple();
  }
  Sampling device_sampling() const;
  // On the host; also scores the token if the options ask for it. Returns kNoToken for logits from
  // which no token can be chosen.
  int32_t sample(std::span<const float> logits);
  int64_t tokens_left() const;  // that may still be generated

  void add_restored(int64_t tokens) { result_.statistics.restored_tokens += tokens; }
  void begin(int64_t reused);  // when it gets a slot whose cache holds `reused` tokens
  // Reports how much of the prompt is in the cache; begin() and the first put() do so, too.
  void show_prompt(int64_t cached);
  // The tokens that were in the cache are computed again.
  void lose_cache(int64_t cached) { result_.statistics.recomputed_tokens += cached; }
  void count_proposals(int64_t proposed, int64_t accepted) {
    ++result_.statistics.proposals;
    result_.statistics.proposed_tokens += proposed;
    result_.statistics.accepted_tokens += accepted;
  }
  // Appends the next token, emits its text and ends the sequence if a stop condition is met.
  void put(int32_t token);
  void finish(StopReason reason);
  // Ends the sequence by an exception; the callback is not called again.
  void fail(std::exception_ptr failure);
  // Drops tokens from the middle to make room in the context.
  void shift(int64_t context);

 private:
  bool show(std::string_view text);  // false: the callback wants no more

  int64_t id_;
  GenerationRequest request_;
  const Tokenizer& tokenizer_;
  std::vector<int32_t> tokens_;
  Sampler sampler_;
  std::optional<GrammarMatcher> grammar_;
  TextStream stream_;
  StopFilter stops_;
  Generation result_;
  size_t shown_tokens_ = 0;  // tokens that the callback has seen
  bool finished_ = false;
  using Clock = std::chrono::steady_clock;
  Clock::time_point asked_ = Clock::now(), begun_ = asked_, first_ = asked_;
};

}  // namespace prism::llm
