// Runs several sequences through one model with continuous batching: they share batches, and
// finished sequences free their slots for waiting ones.
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

// Called when a device of the model has failed. True: the model was moved, its KV cache is empty,
// and sequences continue. False: the failure ends them.
using RecoverCallback = std::function<bool(const DeviceFailure&)>;

// Not thread-safe, except for cancel().
class Scheduler {
 public:
  // Both must outlive the scheduler.
  Scheduler(Model& model, const Tokenizer& tokenizer, RecoverCallback recover = {});
  ~Scheduler();

  // Throws kInvalidArgument for a prompt longer than the context.
  int64_t add(GenerationRequest request);
  // One step of every active sequence: a prefill batch, or decode steps until something changes.
  // Returns false when nothing is left to do. An exception from a callback ends the active
  // sequences.
  bool step();
  void run() {
    while (step()) {
    }
  }
  // Returns the result of a finished sequence and forgets it. Throws kInvalidArgument otherwise.
  Generation take(int64_t id);
  bool is_finished(int64_t id) const { return results_.contains(id); }
  size_t unfinished() const { return waiting_.size() + active_.size(); }

  // Ends every active and waiting sequence at the next token. Safe to call from other threads and
  // signal handlers.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // Call this when the KV cache was changed by others.
  void forget_cache();
  // Call this before the model moves: drops all references to its devices; sequences keep their
  // tokens.
  void leave_devices();

 private:
  struct Slot {
    std::vector<int32_t> tokens;  // tokens whose keys and values are in the cache, from position 0
    bool is_free = true;
  };
  struct Active {
    std::unique_ptr<Sequence> sequence;
    int32_t slot = 0;
  };

  Slot& slot_of(const Active& active) { return slots_[static_cast<size_t>(active.slot)]; }
  size_t missing(const Active& active);  // number of tokens not yet in the cache
  void place_waiting();
  void forward();
  void decode();
  // Called after each token: makes room if the context is full.
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
