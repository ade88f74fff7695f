// Decoding without host round trips: each step samples its token on the device and feeds it to the
// next step, which can be queued before the host has read the first.
//
//   DecodeLoop loop(model);
//   loop.start({{.slot = 0, .position = 5, .token = first}});  // the cache holds positions 0 to 4
//   loop.queue_step();
//   for (;;) {
//     loop.queue_step();                               // runs ahead by one
//     const int32_t token = loop.read(loop.queued() - 2)[0];
//     if (ends(token)) break;                          // the step ahead is never read
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "llm/model/model.h"

namespace prism::llm {

// How the next token is sampled. Filters apply in this order, at temperature 1: the top_k most
// likely tokens (0: all), the most likely tokens that together reach top_p, tokens with at least
// min_p of the highest probability. One of the rest is drawn at the given temperature; temperature
// 0 is greedy. The same seed gives the same token at the same position.
struct Sampling {
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;
};

// Samples one token per row of logits [rows, vocabulary] by the same rule as a decode loop; used
// for the first token after a prompt. positions: the positions of the tokens that produced the
// logits. kNoToken (finite.h) stands for logits from which no token can be chosen.
std::vector<int32_t> sample(const Tensor& logits, std::span<const Sampling> sampling,
                            std::span<const int32_t> positions);

class DecodeLoop {
 public:
  struct Sequence {
    int32_t slot = 0;
    int32_t position = 0;  // position of token; earlier positions are in the cache
    int32_t token = 0;     // the last known token; the first step gives its successor
    Sampling sampling = {};
    // The caller chooses its tokens: after each step it reads logits() and calls set_token(), and
    // no step can be queued ahead.
    bool on_host = false;
  };

  explicit DecodeLoop(Model& model);  // model must outlive the loop
  ~DecodeLoop();
  DecodeLoop(DecodeLoop&&) noexcept;

  // Restarts with these sequences, each in its own slot. Plans are reused across calls. Throws
  // kInvalidArgument for a slot, position or token out of range, kOutOfMemory if the KV cache has
  // no block for the first step.
  void start(std::span<const Sequence> sequences);
  void start(std::initializer_list<Sequence> sequences) {
    start(std::span<const Sequence>(sequences.begin(), sequences.size()));
  }
  struct Replacement {
    size_t row = 0;  // of the sequence, in the order of start()
    Sequence sequence;
  };
  // From the next step on, these rows hold other sequences; the other rows go on. Steps that are
  // already queued can still be read, and give the tokens of the earlier sequences. Returns false,
  // and keeps all rows, if the loop has to start anew instead: for a sequence on_host, for a
  // sampling that needs another plan, or if steps_left() is 0 before or after.
  bool replace(std::span<const Replacement> changes);
  // Queues one step of all sequences and returns its number, counted from 0. The step writes the
  // keys and values of the next position of each. Asynchronous on devices with asynchronous queues.
  // Throws kInvalidArgument if a sequence has reached the end of the context, kOutOfMemory if there
  // is no block for it; then steps_left() is 0.
  int64_t queue_step();
  int64_t queued() const;
  // The number of steps that can be queued now. Gives the sequences more blocks when they are about
  // to need them, so that 0 means the end of the context or of the KV cache.
  int64_t steps_left();
  // The tokens sampled by a step, one per sequence; kNoToken (finite.h) for logits from which no
  // token can be chosen, after which the tokens of that sequence have no meaning. Waits for that
  // step only, not for later ones. A step can be read until more than kHistory steps are queued
  // after it.
  std::vector<int32_t> read(int64_t step);
  static constexpr int64_t kHistory = 64;
  // The logits of sequence i after the last queued step, which it waits for. For sequences on_host.
  std::vector<float> logits(size_t i);
  // The token that the next step of sequence i continues; required after each step of a sequence
  // on_host.
  void set_token(size_t i, int32_t token);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm
