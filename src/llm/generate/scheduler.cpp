// Implements continuous batching: slot assignment, prefill and decode steps, recovery from
// failures.
#include "llm/generate/scheduler.h"

#include <algorithm>

#include <fmt/format.h>

#include "llm/grammar/vocabulary_trie.h"
#include "prism/error.h"
#include "runtime/fallback.h"

namespace prism::llm {
namespace {

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::shared_ptr<const VocabularyTrie> vocabulary_of(const Tokenizer& tokenizer) {
  std::vector<std::string> texts(tokenizer.size());
  for (size_t i = 0; i < texts.size(); ++i) texts[i] = tokenizer.piece(static_cast<int32_t>(i));
  return std::make_shared<const VocabularyTrie>(std::move(texts));
}

// A failure of the model's devices, as opposed to one thrown by a caller's callback.
struct ModelFailure {
  DeviceFailure failure;
};

template <class Work>
auto on_devices(Work&& work) {
  const FallbackHeld held;
  try {
    return work();
  } catch (const DeviceFailure& failure) {
    throw ModelFailure{failure};
  }
}

}  // namespace

Scheduler::Scheduler(Model& model, const Tokenizer& tokenizer, RecoverCallback recover)
    : model_(model),
      tokenizer_(tokenizer),
      recover_(std::move(recover)),
      slots_(static_cast<size_t>(model.slots())) {}
Scheduler::~Scheduler() = default;

int64_t Scheduler::add(GenerationRequest request) {
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (length > model_.context())
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("generate: the prompt has {} tokens and the context only {}; shorten it, or "
                    "load the model with a larger context",
                    length, model_.context()));
  if (request.options.grammar && !vocabulary_) vocabulary_ = vocabulary_of(tokenizer_);
  const int64_t id = next_id_++;
  waiting_.push_back(std::make_unique<Sequence>(id, std::move(request), tokenizer_, vocabulary_));
  if (unfinished() == 1) cancelled_ = false;
  return id;
}

Generation Scheduler::take(int64_t id) {
  const auto found = results_.find(id);
  if (found == results_.end())
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("generate: text {} has not finished, or its result was already taken", id));
  Generation result = std::move(found->second);
  results_.erase(found);
  return result;
}

void Scheduler::forget_cache() {
  for (Slot& slot : slots_) slot.tokens.clear();
}

void Scheduler::leave_devices() {
  loop_.reset();
  for (const Active& active : active_)
    active.sequence->lose_cache(static_cast<int64_t>(slot_of(active).tokens.size()));
  forget_cache();
}

size_t Scheduler::missing(const Active& active) {
  return active.sequence->tokens().size() - slot_of(active).tokens.size();
}

void Scheduler::place_waiting() {
  while (!waiting_.empty()) {
    const std::vector<int32_t>& tokens = waiting_.front()->tokens();
    Slot* best = nullptr;
    size_t reused = 0;
    for (Slot& slot : slots_) {
      if (!slot.is_free) continue;
      const size_t same = common_prefix(slot.tokens, tokens);
      // On a tie, reuse the slot that loses the fewest cached tokens.
      if (!best || same > reused || (same == reused && slot.tokens.size() < best->tokens.size()))
        best = &slot, reused = same;
    }
    if (!best) return;
    // The last token is always computed: its logits are needed.
    reused = std::min(reused, tokens.size() - 1);
    best->tokens.resize(reused);
    best->is_free = false;
    waiting_.front()->begin(static_cast<int64_t>(reused));
    active_.push_back({std::move(waiting_.front()), static_cast<int32_t>(best - slots_.data())});
    waiting_.pop_front();
  }
}

void Scheduler::release(Active& active) {
  slot_of(active).is_free = true;
  results_.emplace(active.sequence->id(), active.sequence->result());
}

void Scheduler::release_finished() {
  std::erase_if(active_, [&](Active& active) {
    if (!active.sequence->finished()) return false;
    release(active);
    return true;
  });
}

void Scheduler::settle(Active& active) {
  Sequence& sequence = *active.sequence;
  const auto size = static_cast<int64_t>(sequence.tokens().size());
  if (sequence.finished() || size <= model_.context()) return;
  if (!sequence.options().shift_context) return sequence.finish(StopReason::context);
  sequence.shift(model_.context());
  Slot& slot = slot_of(active);
  slot.tokens.resize(
      std::min(common_prefix(slot.tokens, sequence.tokens()), sequence.tokens().size() - 1));
}

bool Scheduler::step() {
  if (cancelled_.exchange(false)) {
    for (Active& active : active_) active.sequence->finish(StopReason::cancelled);
    release_finished();
    for (auto& waiting : waiting_) {
      waiting->finish(StopReason::cancelled);
      results_.emplace(waiting->id(), waiting->result());
    }
    waiting_.clear();
    return false;
  }
  place_waiting();
  release_finished();
  if (active_.empty()) return !waiting_.empty();
  try {
    const bool all_decode = std::ranges::all_of(active_, [&](const Active& active) {
      return missing(active) == 1 && active.sequence->samples_on_device();
    });
    try {
      if (all_decode)
        decode();
      else
        forward();
    } catch (const ModelFailure& failed) {
      // Sequences own their tokens and samplers, so the failed step is repeated once their tokens
      // are recomputed on the new devices.
      leave_devices();
      if (!recover_ || !recover_(failed.failure)) throw failed.failure;
    }
  } catch (...) {
    // The state of the devices is unknown: end the active sequences and discard their cached
    // tokens.
    for (Active& active : active_) {
      slot_of(active).tokens.clear();
      slot_of(active).is_free = true;
    }
    active_.clear();
    throw;
  }
  release_finished();
  return unfinished() > 0;
}

void Scheduler::forward() {
  // One token of each decoding sequence, then as much of the prompts as the batch has room for.
  std::vector<SequencePart> parts;
  std::vector<Active*> in_batch;
  int64_t room = model_.batch_rows();
  for (const bool prompts : {false, true}) {
    for (Active& active : active_) {
      if ((missing(active) > 1) != prompts || room == 0) continue;
      const Slot& slot = slot_of(active);
      const size_t count = std::min(missing(active), static_cast<size_t>(room));
      parts.push_back({active.slot, static_cast<int32_t>(slot.tokens.size()),
                       std::span(active.sequence->tokens()).subspan(slot.tokens.size(), count),
                       count == missing(active) ? Wanted::last : Wanted::none});
      in_batch.push_back(&active);
      room -= static_cast<int64_t>(count);
    }
  }
  const Tensor logits = on_devices([&] { return model_.forward(parts); });

  std::vector<Active*> wanted;
  std::vector<Sampling> samplings;
  std::vector<int32_t> positions;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<int32_t>& cached = slot_of(*in_batch[i]).tokens;
    cached.insert(cached.end(), parts[i].tokens.begin(), parts[i].tokens.end());
    if (parts[i].wanted == Wanted::none) continue;
    wanted.push_back(in_batch[i]);
    samplings.push_back(in_batch[i]->sequence->device_sampling());
    positions.push_back(static_cast<int32_t>(cached.size() - 1));
  }
  if (wanted.empty()) return;
  // Sample on the device if possible, by the same rule as the decode loop, so that a text does not
  // depend on the rest of its batch.
  std::vector<int32_t> chosen;
  std::vector<float> rows;
  const bool on_device = std::ranges::all_of(
      wanted, [](const Active* active) { return active->sequence->samples_on_device(); });
  if (on_device)
    chosen = on_devices([&] { return llm::sample(logits, samplings, positions); });
  else
    rows = on_devices([&] { return logits.to_vector<float>(); });
  for (size_t i = 0; i < wanted.size(); ++i) {
    Sequence& sequence = *wanted[i]->sequence;
    int32_t token = 0;
    if (on_device) {
      token = chosen[i];
    } else if (sequence.samples_on_device()) {
      const auto row = static_cast<int64_t>(i);
      token = on_devices([&] {
        return llm::sample(logits.slice(0, row, row + 1), std::span(samplings).subspan(i, 1),
                           std::span(positions).subspan(i, 1))[0];
      });
    } else {
      const size_t width = rows.size() / wanted.size();
      token = sequence.sample(std::span(rows).subspan(i * width, width));
    }
    sequence.put(token);
    settle(*wanted[i]);
  }
}

void Scheduler::decode() {
  if (!loop_) loop_ = std::make_unique<DecodeLoop>(model_);
  std::vector<DecodeLoop::Sequence> sequences;
  int64_t steps = INT64_MAX;
  for (const Active& active : active_) {
    const std::vector<int32_t>& tokens = active.sequence->tokens();
    sequences.push_back({active.slot, static_cast<int32_t>(tokens.size() - 1), tokens.back(),
                         active.sequence->device_sampling()});
    steps = std::min(steps, active.sequence->tokens_left());
  }
  on_devices([&] { loop_->start(sequences); });
  steps = std::min(steps, loop_->steps_left());
  // A device runs the next step while the host handles this token. On the CPU both use the same
  // threads, so running ahead would only delay.
  const int64_t ahead = model_.placement().output.backend() == "cpu" ? 1 : 2;
  bool changed = false;
  for (int64_t done = 0; done < steps; ++done) {
    if (cancelled_.load(std::memory_order_relaxed)) return;
    // After a change, stop queueing; steps already queued are still valid for the other sequences.
    while (!changed && loop_->queued() < std::min(steps, done + ahead))
      on_devices([&] { loop_->queue_step(); });
    if (done == loop_->queued()) return;
    const std::vector<int32_t> tokens = on_devices([&] { return loop_->read(done); });
    for (size_t i = 0; i < active_.size(); ++i) {
      Active& active = active_[i];
      // Ignore queued steps of a sequence that ended or was shifted.
      if (active.sequence->finished() || missing(active) != 1) continue;
      slot_of(active).tokens.push_back(active.sequence->tokens().back());
      active.sequence->put(tokens[i]);
      settle(active);
      changed = changed || active.sequence->finished() || missing(active) != 1;
    }
    changed = changed || (!waiting_.empty() && active_.size() < slots_.size());
  }
}

}  // namespace prism::llm
