// Decoding without the host in the way: each step chooses its token on the device and feeds it to
// the next, which may be queued before anyone has read the first.
//
//   DecodeLoop loop(model);
//   loop.start({{.slot = 0, .position = 5, .token = first}});  // positions 0 to 4 are in the cache
//   loop.queue_step();
//   for (;;) {
//     loop.queue_step();                               // runs ahead by one
//     const int32_t token = loop.read(loop.queued() - 2)[0];
//     if (ends(token)) break;                          // the step ahead is simply not read
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "llm/model/model.h"

namespace prism::llm {

// Which token follows. The cuts are made in this order, at temperature 1: the top_k likeliest (0:
// all), the likeliest that make up top_p, those with at least min_p of the likeliest one's
// probability. Then one of them by chance, at the temperature; temperature 0: the likeliest. The
// same seed gives the same token at the same position.
struct Sampling {
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;
};

// Tokens for rows of logits [rows, vocabulary], by the same choice as a loop makes: for the first
// token after a prompt. positions: of the tokens whose logits these are.
std::vector<int32_t> sample(const Tensor& logits, std::span<const Sampling> sampling,
                            std::span<const int32_t> positions);

class DecodeLoop {
 public:
  struct Sequence {
    int32_t slot = 0;
    int32_t position = 0;  // of token; what is before is in the cache
    int32_t token = 0;     // the last one known: the first step gives the one after it
    Sampling sampling = {};
  };

  explicit DecodeLoop(Model& model);  // which must live longer
  ~DecodeLoop();
  DecodeLoop(DecodeLoop&&) noexcept;

  // Begins anew with these sequences, no two in one slot. Plans are kept from one start to the
  // next. Throws kInvalidArgument for what is not there.
  void start(std::span<const Sequence> sequences);
  void start(std::initializer_list<Sequence> sequences) {
    start(std::span<const Sequence>(sequences.begin(), sequences.size()));
  }
  // Queues one step of all sequences and gives its number, from 0; the step writes keys and values
  // of position + number. Does not wait where devices do not. Throws kInvalidArgument where a
  // sequence is at the end of the context.
  int64_t queue_step();
  int64_t queued() const;
  // Steps that all sequences can still take.
  int64_t steps_left() const;
  // The tokens that a step chose, one a sequence. Waits for that step and for none after it. Steps
  // can be read while no more than kHistory are queued after them.
  std::vector<int32_t> read(int64_t step);
  static constexpr int64_t kHistory = 64;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm
