// Implements continuous batching: slot assignment, prefill and decode steps, recovery from
// failures.
#include "llm/generate/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "llm/generate/model_failure.h"
#include "llm/generate/prompt_too_long.h"
#include "llm/generate/row_chooser.h"
#include "llm/grammar/vocabulary_trie.h"
#include "llm/model/finite.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

std::shared_ptr<const VocabularyTrie> vocabulary_of(const Tokenizer& tokenizer, bool special) {
  std::vector<std::string> texts(tokenizer.size());
  for (size_t i = 0; i < texts.size(); ++i)
    texts[i] = tokenizer.piece(static_cast<int32_t>(i), special);
  return std::make_shared<const VocabularyTrie>(std::move(texts));
}

}  // namespace

Scheduler::Scheduler(Model& model, const Tokenizer& tokenizer, RecoverCallback recover)
    : model_(model),
      tokenizer_(tokenizer),
      recover_(std::move(recover)),
      is_free_(static_cast<size_t>(model.slots()), true) {}
Scheduler::~Scheduler() {
  if (prefixes_) model_.cache().reclaim = {};
}

int64_t Scheduler::add(GenerationRequest request) {
  if (!model_.makes_logits())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("generate: {} makes embeddings and no text; use it for embeddings",
                            model_.config().architecture));
  const auto length = static_cast<int64_t>(request.prompt.size());
  int64_t most = model_.context();
  if (model_.config().has_decoder()) {
    request.start = model_.config().start_token;
    most = std::min(most - 1, model_.batch_rows());  // an encoder sees all tokens in one batch
  }
  if (length > most) throw PromptTooLong(length, most);
  for (const int32_t token : request.prompt)
    if (token < 0 || token >= model_.config().vocabulary)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("generate: the prompt has token {}, the vocabulary only {}", token,
                              model_.config().vocabulary));
  const bool special = request.options.show_special;
  std::shared_ptr<const VocabularyTrie>& vocabulary = vocabularies_[special ? 1 : 0];
  if (request.options.grammar && !vocabulary) vocabulary = vocabulary_of(tokenizer_, special);
  const int64_t id = next_id_++;
  waiting_.push_back(std::make_unique<Sequence>(id, std::move(request), tokenizer_, vocabulary));
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

void Scheduler::set_step_limit(double seconds) {
  // On a CPU 64 rows may take longer than the limit, and a batch more costs little.
  constexpr int64_t kFirst = 64;
  const bool is_cpu = model_.placement().output.info().is_cpu;
  chunk_.set_limit(seconds, is_cpu ? ChunkSize::kLeast : kFirst);
}

void Scheduler::cancel(int64_t id) {
  const std::scoped_lock lock(cancelled_mutex_);
  cancelled_ids_.push_back(id);
  has_cancelled_ids_ = true;
}

void Scheduler::end_cancelled() {
  const bool all = cancelled_.exchange(false);
  std::vector<int64_t> ids;
  if (has_cancelled_ids_.exchange(false)) {
    const std::scoped_lock lock(cancelled_mutex_);
    ids.swap(cancelled_ids_);
  }
  if (!all && ids.empty()) return;
  const auto ends = [&](const std::unique_ptr<Sequence>& sequence) {
    if (!all && !std::ranges::count(ids, sequence->id())) return false;
    sequence->finish(StopReason::cancelled);
    return true;
  };
  for (const Active& active : active_) ends(active.sequence);
  std::erase_if(waiting_, [&](const std::unique_ptr<Sequence>& waiting) {
    if (!ends(waiting)) return false;
    keep_result(*waiting);
    return true;
  });
}

void Scheduler::keep_result(const Sequence& sequence) {
  if (speculation_) speculation_->forget(sequence.id());
  results_.emplace(sequence.id(), sequence.result());
}

void Scheduler::forget_cache() {
  decoding_.reset();
  for (Active& active : active_) active.sequence->lose_cache(std::exchange(active.cached, 0));
  if (!prefixes_) return;
  prefixes_->clear();
  for (int32_t slot = 0; slot < model_.slots(); ++slot) model_.cache().truncate(slot, 0);
}

void Scheduler::leave_devices() {
  forget_cache();
  if (prefixes_) model_.cache().reclaim = {};
  prefixes_.reset();
  loop_.reset();
}

size_t Scheduler::missing(const Active& active) {
  return active.sequence->tokens().size() - static_cast<size_t>(active.cached);
}

PrefixTree& Scheduler::prefixes() {
  if (prefixes_) return *prefixes_;
  KvCache& cache = model_.cache();
  std::vector<PrefixTree::Group> groups;
  for (size_t group = 0; group < cache.groups(); ++group)
    groups.push_back({&cache.blocks(group), cache.window(group)});
  for (int32_t slot = 0; slot < cache.slots(); ++slot) cache.truncate(slot, 0);
  StateCache& states = cache.states();
  prefixes_.emplace(cache.block(), std::move(groups),
                    states.is_used() ? &states.blocks() : nullptr);
  cache.reclaim = [this, count = cache.groups()](size_t group, int32_t shared) {
    return group < count ? prefixes_->evict(group, shared) : prefixes_->evict_state();
  };
  return *prefixes_;
}

int64_t Scheduler::last_boundary(const Active& active) const {
  const int64_t block = model_.cache().block();
  return (std::ssize(active.sequence->tokens()) - 1) / block * block;
}

void Scheduler::remember(const Active& active, bool all) {
  if (!shares_prefixes()) return;
  const KvCache& cache = model_.cache();
  const int64_t count = all ? active.cached : active.cached / cache.block() * cache.block();
  std::vector<std::span<const int32_t>> tables;
  for (size_t group = 0; group < cache.groups(); ++group)
    tables.push_back(cache.table(group, active.slot));
  // The state is that after the last token in the cache. While the prompt is computed, only that
  // which a text with the same prompt can begin with is worth a copy.
  const StateCache& states = cache.states();
  const bool is_after = states.is_used() && count > 0 && states.length(active.slot) == count;
  const bool keeps = is_after && (all || count == last_boundary(active));
  prefixes().add(std::span(active.sequence->tokens()).first(static_cast<size_t>(count)), tables,
                 keeps ? states.block_of(active.slot) : CacheBlocks::kNone);
}

void Scheduler::give_back(const Active& active) {
  if (active.cached > 0) {
    remember(active, true);
    if (prompt_cache_)
      prompt_cache_->keep(
          std::span(active.sequence->tokens()).first(static_cast<size_t>(active.cached)),
          prefixes(), model_.cache());
  }
  if (prefixes_) model_.cache().truncate(active.slot, 0);
  is_free_[static_cast<size_t>(active.slot)] = true;
  lacks_blocks_ = false;
}

bool Scheduler::has_room(int32_t slot, int64_t tokens) {
  const KvCache& cache = model_.cache();
  for (size_t group = 0; group < cache.groups(); ++group) {
    if (cache.window(group) > 0) continue;  // there is a window for every slot
    const auto needs = [&](int32_t of, int64_t length) {
      const int64_t end = std::min(length + cache.block(), cache.positions());
      const std::span<const int32_t> table = cache.table(group, of);
      const auto first = static_cast<size_t>((end + cache.block() - 1) / cache.block());
      return std::ranges::count(table.first(first), CacheBlocks::kNone);
    };
    int64_t needed = needs(slot, tokens);
    for (const Active& active : active_)
      needed += needs(active.slot, std::ssize(active.sequence->tokens()));
    if (needed > cache.blocks(group).free() + prefixes().evictable(group)) return false;
  }
  return true;
}

void Scheduler::make_room() {
  KvCache& cache = model_.cache();
  for (size_t i = 0; i < active_.size(); ++i) {
    const Active& active = active_[i];
    if (missing(active) != 1) continue;
    if (on_devices([&] { return cache.reserve(active.slot, active.cached, active.cached + 1); }))
      continue;
    preempt();
    i = SIZE_MAX;  // from the first again: reserving twice changes nothing
  }
}

void Scheduler::preempt() {
  if (active_.size() == 1)
    throw Error(ErrorCode::kOutOfMemory,
                "generate: the KV cache has no block for the only text; load the model with a "
                "larger cache");
  give_way();
}

bool Scheduler::give_way() {
  if (active_.empty()) return false;
  const auto youngest = std::ranges::max_element(
      active_, {}, [](const Active& active) { return active.sequence->id(); });
  youngest->sequence->lose_cache(youngest->cached);
  give_back(*youngest);
  waiting_.push_front(std::move(youngest->sequence));
  active_.erase(youngest);
  lacks_blocks_ = true;
  return true;
}

Scheduler::Active* Scheduler::find(int64_t id) {
  for (Active& active : active_)
    if (active.sequence->id() == id) return &active;
  return nullptr;
}

void Scheduler::place_waiting() {
  if (active_.empty()) lacks_blocks_ = false;
  while (!waiting_.empty()) {
    const auto free = std::ranges::find(is_free_, true);
    if (free == is_free_.end() || lacks_blocks_) return;
    const auto slot = static_cast<int32_t>(free - is_free_.begin());
    Sequence& next = *waiting_.front();
    const std::span<const int32_t> tokens = next.tokens();
    const std::optional<int64_t> known = adopt_prefix(slot, next);
    if (!known) return model_.cache().truncate(slot, 0);
    // A text that is alone gets the blocks that only prefixes use.
    lacks_blocks_ = !active_.empty() && !has_room(slot, std::ssize(tokens));
    if (lacks_blocks_) return model_.cache().truncate(slot, 0);
    *free = false;
    next.begin(*known);
    active_.push_back({std::move(waiting_.front()), slot, *known});
    waiting_.pop_front();
  }
}

std::optional<int64_t> Scheduler::adopt_prefix(int32_t slot, Sequence& sequence) {
  // Other texts wait while this much is read: some 50 ms.
  constexpr uint64_t kBytesAtOnce = uint64_t{64} << 20;
  if (!shares_prefixes()) return 0;
  // The last token is always computed: its logits are needed.
  const auto tokens = std::span(sequence.tokens()).first(sequence.tokens().size() - 1);
  const auto adopt_known = [&] {
    const PrefixTree::Match known = prefixes().find(tokens);
    model_.cache().adopt(slot, known.tables, known.state, known.length);
    return known.length;
  };
  const int64_t known = adopt_known();
  if (!prompt_cache_) return known;
  const PromptCache::Restored read = prompt_cache_->restore(
      tokens, known, prefixes(), model_.cache(), active_.empty() ? UINT64_MAX : kBytesAtOnce);
  if (read.tokens == 0) return known;
  sequence.add_restored(read.tokens);
  // Other texts may evict what was read before the rest is there, so this does not go on for ever.
  const bool is_in_vain = sequence.result().statistics.restored_tokens > 2 * std::ssize(tokens);
  if (read.is_cut && !is_in_vain) return std::nullopt;
  return adopt_known();
}

void Scheduler::release_finished() {
  std::erase_if(active_, [&](Active& active) {
    if (!active.sequence->finished()) return false;
    give_back(active);
    keep_result(*active.sequence);
    return true;
  });
}

void Scheduler::fail(const std::exception_ptr& failure) {
  // The state of the devices is unknown: discard the cached tokens.
  for (Active& active : active_) {
    active.cached = 0;
    active.sequence->fail(failure);
  }
  decoding_.reset();
}

void Scheduler::settle(Active& active) {
  Sequence& sequence = *active.sequence;
  const auto size = static_cast<int64_t>(sequence.tokens().size());
  if (sequence.finished() || size <= model_.context()) return;
  if (!sequence.options().shift_context || sequence.encoded() > 0)
    return sequence.finish(StopReason::context);
  const std::vector<int32_t> before(sequence.tokens().begin(),
                                    sequence.tokens().begin() + active.cached);
  sequence.shift(model_.context());
  active.cached =
      std::min(common_prefix(before, sequence.tokens()), std::ssize(sequence.tokens()) - 1);
  // Windowed layers may have forgotten what the next token sees.
  if (!model_.cache().holds(active.slot, active.cached)) active.cached = 0;
  model_.cache().truncate(active.slot, active.cached);
}

void Scheduler::put_token(Active& active, const std::function<int32_t()>& choose) {
  try {
    const int32_t token = choose();
    if (token == kNoToken) {
      active.cached = 0;
      model_.cache().truncate(active.slot, 0);
      throw on_devices(
          [&] { return not_finite_error(model_, active.slot, active.sequence->tokens()); });
    }
    active.sequence->put(token);
    settle(active);
  } catch (const ModelFailure&) {
    throw;
  } catch (...) {
    active.sequence->fail(std::current_exception());
  }
}

bool Scheduler::step() {
  end_cancelled();
  release_finished();
  if (unfinished() == 0) {
    decoding_.reset();
    return false;
  }
  prefixes();  // it begins with an empty cache, so before any sequence gets blocks
  // Steps of the decode loop that are already queued are read first.
  if (!decoding_) place_waiting();
  release_finished();
  if (active_.empty()) {
    decoding_.reset();
    return !waiting_.empty();
  }
  try {
    const bool all_decode =
        std::ranges::all_of(active_, [&](const Active& active) { return missing(active) == 1; });
    if (!decoding_ && !all_decode)
      forward();
    else if (!all_decode || !speculate())
      decode();
  } catch (const ModelFailure& failed) {
    // Sequences own their tokens and samplers, so the failed step is repeated once their tokens are
    // recomputed on the new devices.
    leave_devices();
    try {
      if (!recover_ || !recover_(failed.failure)) throw failed.failure;
    } catch (...) {
      fail(std::current_exception());
      for (auto& waiting : waiting_) {
        waiting->fail(std::current_exception());
        keep_result(*waiting);
      }
      waiting_.clear();
    }
  } catch (...) {
    fail(std::current_exception());
  }
  release_finished();
  return unfinished() > 0;
}

void Scheduler::forward() {
  const auto begun = std::chrono::steady_clock::now();
  // One token of each decoding sequence, but at least half of the batch or this many rows are left
  // for parts of the prompts. Those that have waited longest come first, and all prompts share the
  // rows, but no part is shorter than this for the sake of others. At most eight share a large
  // batch: of many short prompts, the first are then whole after one step, and not all of them
  // after the last.
  constexpr size_t kShortestPart = 64, kMostParts = 8;
  std::vector<SequencePart> parts;
  std::vector<Active*> in_batch;
  size_t rows = 0;
  const auto put = [&](Active& active, size_t count) {
    parts.push_back(
        {active.slot, static_cast<int32_t>(active.cached),
         std::span(active.sequence->tokens()).subspan(static_cast<size_t>(active.cached), count),
         count == missing(active) ? Wanted::last : Wanted::none});
    in_batch.push_back(&active);
    active.last_step = steps_;
    rows += count;
  };
  ++steps_;
  make_room();
  const auto most = static_cast<size_t>(model_.batch_rows());
  std::vector<Active*> decoding, prompts;
  for (Active& active : active_) (missing(active) > 1 ? prompts : decoding).push_back(&active);
  for (std::vector<Active*>* each : {&decoding, &prompts})
    std::ranges::stable_sort(*each, {}, [](const Active* active) { return active->last_step; });
  decoding.resize(std::min(decoding.size(), most - std::min((most + 1) / 2, kShortestPart)));
  for (Active* active : decoding) put(*active, 1);
  auto left =
      static_cast<size_t>(chunk_.rows(static_cast<int64_t>(most), static_cast<int64_t>(rows)));
  const size_t shortest = std::max(kShortestPart, left / kMostParts);
  for (size_t i = 0; i < prompts.size() && left > 0; ++i) {
    const size_t share = std::max(left / (prompts.size() - i), std::min(left, shortest));
    size_t count = std::min(missing(*prompts[i]), share);
    const int64_t first = prompts[i]->cached;
    if (const int64_t encoded = prompts[i]->sequence->encoded(); first < encoded) {
      count = static_cast<size_t>(encoded);
      if (rows + count > most) continue;  // waits for a batch that has room for all of it
    }
    // Recurrent layers stop where their state is kept for other texts.
    const int64_t boundary = last_boundary(*prompts[i]);
    if (model_.cache().states().is_used() && first < boundary)
      count = std::min(count, static_cast<size_t>(boundary - first));
    if (!on_devices([&] {
          return model_.cache().reserve(prompts[i]->slot, first,
                                        first + static_cast<int64_t>(count));
        }))
      continue;  // waits for blocks
    put(*prompts[i], count);
    left -= std::min(left, count);
  }
  if (parts.empty()) return preempt();
  const size_t plans = model_.plans();
  const Tensor logits = on_devices([&] { return model_.forward(parts); });

  std::vector<Active*> wanted;
  for (size_t i = 0; i < parts.size(); ++i) {
    in_batch[i]->cached += std::ssize(parts[i].tokens);
    if (parts[i].tokens.size() > 1) remember(*in_batch[i], false);
    if (parts[i].wanted != Wanted::none)
      wanted.push_back(in_batch[i]);
    else
      in_batch[i]->sequence->show_prompt(in_batch[i]->cached);
  }
  sample(logits, wanted);
  // The time of a new plan says nothing about the next batches.
  if (!chunk_.is_limited() || model_.plans() != plans) return;
  if (wanted.empty()) on_devices([&] { model_.wait(); });
  chunk_.learn(static_cast<int64_t>(rows), seconds_since(begun));
}

void Scheduler::sample(const Tensor& logits, std::span<Active* const> wanted) {
  if (wanted.empty()) return;
  std::vector<RowChooser::Row> rows;
  for (const Active* active : wanted)
    rows.push_back({active->sequence.get(), static_cast<int32_t>(active->cached - 1)});
  RowChooser chooser(logits, std::move(rows));
  for (size_t i = 0; i < wanted.size(); ++i)
    put_token(*wanted[i], [&] { return chooser.token(i); });
}

}  // namespace prism::llm
