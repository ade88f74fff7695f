// Runs several sequences through one model with continuous batching: they share batches and cached
// prefixes, and finished sequences free their slots for waiting ones.
//
//   Scheduler scheduler(model, tokenizer);
//   const int64_t id = scheduler.add({.prompt = tokenizer.encode("Once upon a time")});
//   scheduler.run();
//   std::string text = scheduler.take(id).text;
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "llm/generate/chunk_size.h"
#include "llm/generate/prefix_tree.h"
#include "llm/generate/prompt_cache.h"
#include "llm/generate/sequence.h"
#include "llm/generate/speculation.h"
#include "llm/generate/texts_per_step.h"
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

  // Throws kInvalidArgument for a prompt that is empty, longer than the context, or has a token
  // outside the vocabulary.
  int64_t add(GenerationRequest request);
  // One step: the next token of every sequence (or of those whose turn it is, see
  // texts_per_step.h), or a batch of next tokens and parts of prompts.
  // Returns false when nothing is left to do. An exception from a callback, a sampler or a grammar
  // ends its sequence; a failure of the model ends all sequences that it concerns. Neither is
  // thrown: Generation::failure holds it.
  bool step();
  void run() {
    while (step()) {
    }
  }
  // Returns the result of a finished sequence and forgets it. Throws kInvalidArgument otherwise.
  Generation take(int64_t id);
  bool is_finished(int64_t id) const { return results_.contains(id); }
  size_t unfinished() const { return waiting_.size() + active_.size(); }
  size_t active() const { return active_.size(); }

  // Ends every active and waiting sequence at the next token. Safe to call from other threads and
  // signal handlers.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // Ends one sequence at the next step, or does nothing if it has finished. Safe to call from other
  // threads.
  void cancel(int64_t id);
  // Limits the time of a step with prompts, so that they do not hold back the other sequences; 0:
  // no limit.
  void set_step_limit(double seconds);
  // Decodes at most so many texts in a step; the others take turns. 0: the number is chosen by
  // measured times. It is never more than the rows of a batch.
  void set_most_decoding(int64_t texts) { most_decoding_ = texts; }
  // Keeps prefixes on disk too, and looks for those of new sequences there.
  void set_prompt_cache(std::unique_ptr<PromptCache> cache) { prompt_cache_ = std::move(cache); }
  // Returns the youngest active sequence to the queue, so that other work gets its blocks. Returns
  // false if there is none. Its tokens are computed again, unless the blocks remain cached.
  bool give_way();
  // Lets texts whose options allow it check proposed tokens; null: none does.
  void set_proposer(std::unique_ptr<Proposer> proposer,
                    SpeculationPolicy policy = SpeculationPolicy::measured);
  // Runs texts of random tokens with these options, first one in each slot, then fewer and fewer,
  // so that the plans are there and timed before the first text needs them. Ends after the step for
  // which goes_on() is false, or when a device fails; the model does not move for that. Nothing
  // else is left of these texts. Call this while there are no others.
  void warm_up(GenerationOptions options, const std::function<bool()>& goes_on);
  // Call this when the KV cache was changed by others: active sequences are computed again.
  void forget_cache();
  // Call this before the model moves: drops all references to its devices; sequences keep their
  // tokens.
  void leave_devices();

 private:
  class Aside;
  struct Active {
    std::unique_ptr<Sequence> sequence;
    int32_t slot = 0;
    int64_t cached = 0;      // tokens whose keys and values are in the cache, from position 0
    uint64_t last_step = 0;  // the batch with prompts that last had a row of it
  };
  // The sequences of the decode loop, while it runs.
  struct Decoding {
    struct Row {
      int64_t id = 0;
      int64_t end = 0;  // the number of the step before which it has all of its tokens
    };
    struct Turn {
      int64_t first = 0;  // step
      std::vector<Row> rows;
    };
    // The front has the next step to be read, the back the next one to be queued.
    std::deque<Turn> turns;
    int64_t done = 0;      // steps whose tokens were read
    int64_t limit = 0;     // the step before which the turn ends
    int64_t ahead = 1;     // steps queued before the first is read
    bool is_over = false;  // only the steps already queued are read
    // When the last step was read, and the shortest time between two reads of late.
    std::chrono::steady_clock::time_point read = {};
    double fastest = kUnmeasured;
    static constexpr double kUnmeasured = std::numeric_limits<double>::infinity();
  };

  static size_t missing(const Active& active);  // number of tokens not yet in the cache
  PrefixTree& prefixes();
  // Whether texts that begin alike have alike keys and values: not where an encoder sees them
  // whole.
  bool shares_prefixes() const { return !model_.config().has_decoder(); }
  // The last position of a sequence's tokens at which a block begins and another text with the same
  // tokens can continue.
  int64_t last_boundary(const Active& active) const;
  // Keeps the whole blocks of a sequence for others that begin alike; all: its last tokens too.
  void remember(const Active& active, bool all);
  void give_back(const Active& active);  // its blocks and its slot
  // Whether the cache has the blocks that a sequence and the active ones will need for their tokens
  // so far and a block more.
  bool has_room(int32_t slot, int64_t tokens);
  // Gives every decoding sequence a place for its next token; the youngest make room for the
  // others.
  void make_room();
  void preempt();  // give_way() to the other sequences; throws kOutOfMemory if there are none
  Active* find(int64_t id);
  void end_cancelled();
  void place_waiting();
  // Gives the slot the blocks of the longest known prefix of a sequence. Returns its length, or
  // nothing while there is more to read from the disk.
  std::optional<int64_t> adopt_prefix(int32_t slot, Sequence& sequence);
  void forward();
  // Gives each sequence its next token by its row of logits.
  void sample(const Tensor& logits, std::span<Active* const> wanted);
  void decode();
  void start_decoding();
  // Lets the sequences that wait for their turn replace others in the running loop. Returns false
  // if the loop has to end and start anew for the next turn.
  bool change_turn();
  TextsPerStep::Turn next_turn(int64_t texts) const;
  void begin_turn(Decoding::Turn turn, int64_t steps);
  void learn_step(Decoding& decoding);  // after each read
  // Checks proposed tokens of the sequences in one batch. Returns false, and does nothing, if there
  // are none that are worth it.
  bool speculate();
  std::vector<ProposalRequest> proposal_requests() const;
  // Checks the proposals of each sequence, by id, and keeps those that it would have chosen.
  void check_proposals(const Speculation::Proposals& proposals);
  // Gives a sequence its next token, which choose() returns. What that, a callback or a sampler
  // throws ends the sequence.
  void put_token(Active& active, const std::function<int32_t()>& choose);
  // Makes room if the context is full.
  void settle(Active& active);
  void release_finished();
  void keep_result(const Sequence& sequence);
  void fail(const std::exception_ptr& failure);  // every active sequence
  Model& model_;
  const Tokenizer& tokenizer_;
  RecoverCallback recover_;
  // For grammars: without control tokens, and with them for texts that show them.
  std::array<std::shared_ptr<const VocabularyTrie>, 2> vocabularies_;
  std::optional<PrefixTree> prefixes_;  // over the cache of the model where it is now
  std::unique_ptr<PromptCache> prompt_cache_;
  std::vector<bool> is_free_;  // by slot
  bool lacks_blocks_ = false;  // the first waiting sequence waits for another to end
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<Active> active_;
  std::map<int64_t, Generation> results_;
  std::unique_ptr<DecodeLoop> loop_;
  std::optional<Decoding> decoding_;
  std::optional<Speculation> speculation_;
  TextsPerStep texts_per_step_;
  int64_t most_decoding_ = 0;
  ChunkSize chunk_;
  uint64_t steps_ = 0;  // batches with prompts so far
  int64_t next_id_ = 0;
  std::atomic<bool> cancelled_ = false;
  std::mutex cancelled_mutex_;
  std::vector<int64_t> cancelled_ids_;
  std::atomic<bool> has_cancelled_ids_ = false;
};

}  // namespace prism::llm
