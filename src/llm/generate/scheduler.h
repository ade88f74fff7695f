// Several texts at once through one model: they share its batches, and those that end make room for
// those that wait.
//
//   Scheduler scheduler(model, tokenizer);
//   const int64_t id = scheduler.add({.prompt = tokenizer.encode("Once upon a time")});
//   scheduler.run();
//   std::string text = scheduler.take(id).text;
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "llm/generate/sequence.h"
#include "llm/model/decode.h"
#include "llm/model/model.h"
#include "prism/llm/tokenizer.h"

namespace prism {
class DeviceFailure;
}

namespace prism::llm {

// Told that a device of the model failed. True: the model is on others now, its cache empty, and
// texts go on. False: the failure ends them.
using RecoverCallback = std::function<bool(const DeviceFailure&)>;

// One thread uses it, but for cancel().
class Scheduler {
 public:
  // Both must live longer.
  Scheduler(Model& model, const Tokenizer& tokenizer, RecoverCallback recover = {});
  ~Scheduler();

  // Throws kInvalidArgument for a prompt that the context cannot hold.
  int64_t add(GenerationRequest request);
  // One step of every text that has a place: a batch of prompts, or tokens until something changes.
  // False when nothing is left to do. What a callback throws ends the texts that have a place.
  bool step();
  void run() {
    while (step()) {
    }
  }
  // The result of a text that has ended; it is forgotten here. Throws kInvalidArgument otherwise.
  Generation take(int64_t id);
  bool is_finished(int64_t id) const { return results_.contains(id); }
  size_t unfinished() const { return waiting_.size() + active_.size(); }

  // Ends every text that is under way or waiting, at the next token. For other threads and signal
  // handlers.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // What the cache holds is no longer what this put there.
  void forget_cache();
  // Before the model is placed anew: nothing here refers to its devices any more; texts keep what
  // they have.
  void leave_devices();

 private:
  struct Slot {
    std::vector<int32_t> tokens;  // whose keys and values are in the cache, from position 0
    bool is_free = true;
  };
  struct Active {
    std::unique_ptr<Sequence> sequence;
    int32_t slot = 0;
  };

  Slot& slot_of(const Active& active) { return slots_[static_cast<size_t>(active.slot)]; }
  size_t missing(const Active& active);  // tokens that are not in the cache yet
  void place_waiting();
  void forward();
  void decode();
  // After a token was taken: makes room where the context is full.
  void settle(Active& active);
  void release_finished();
  void release(Active& active);
  Model& model_;
  const Tokenizer& tokenizer_;
  RecoverCallback recover_;
  std::shared_ptr<const VocabularyTrie> vocabulary_;
  std::vector<Slot> slots_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<Active> active_;
  std::map<int64_t, Generation> results_;
  std::unique_ptr<DecodeLoop> loop_;
  int64_t next_id_ = 0;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace prism::llm
