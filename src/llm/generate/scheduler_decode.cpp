// The scheduler's steps in which every sequence gets its next token by the decode loop.
#include <algorithm>
#include <chrono>
#include <utility>

#include "llm/generate/model_failure.h"
#include "llm/generate/scheduler.h"

namespace prism::llm {

TextsPerStep::Turn Scheduler::next_turn() const {
  const auto texts = std::ssize(active_);
  if (most_decoding_ > 0)
    return {std::min<int64_t>(texts, most_decoding_), TextsPerStep::kTurnSteps};
  // Speculation measures steps of all sequences, and fills them with proposals.
  const bool speculates = speculation_ && std::ranges::any_of(active_, [](const Active& active) {
                            return active.sequence->options().speculate;
                          });
  std::vector<int64_t> smaller;
  for (int64_t rows = model_.rows_before_jump(texts); rows > 0 && !speculates;
       rows = model_.rows_before_jump(rows))
    smaller.push_back(rows);
  return texts_per_step_.choose(texts, model_.padded_rows(texts), smaller);
}

void Scheduler::learn_step(Decoding& decoding) {
  const auto before = std::exchange(decoding.read, std::chrono::steady_clock::now());
  // The first step after a start may compile, and has no step queued before it.
  if (decoding.done > 1) {
    const std::chrono::duration<double> took = decoding.read - before;
    decoding.fastest = std::min(decoding.fastest, took.count());
  }
  if (decoding.done % TextsPerStep::kTurnSteps != 0) return;
  texts_per_step_.learn(model_.padded_rows(std::ssize(decoding.ids)),
                        std::exchange(decoding.fastest, Decoding::kUnmeasured));
}

void Scheduler::start_decoding() {
  make_room();
  const TextsPerStep::Turn turn = next_turn();
  if (!loop_) loop_ = std::make_unique<DecodeLoop>(model_);
  // A device runs the next step while the host handles this token. On the CPU both use the same
  // threads, and a token that the host chooses is not known before.
  Decoding decoding{.ids = {}, .limit = turn.steps, .ahead = 2};
  if (model_.placement().output.backend() == "cpu") decoding.ahead = 1;
  std::vector<DecodeLoop::Sequence> sequences;
  for (const Active& active : std::span(active_).first(static_cast<size_t>(turn.texts))) {
    const Sequence& sequence = *active.sequence;
    const std::vector<int32_t>& tokens = sequence.tokens();
    const bool on_host = !sequence.samples_on_device();
    sequences.push_back({active.slot, static_cast<int32_t>(tokens.size() - 1), tokens.back(),
                         sequence.device_sampling(), on_host});
    decoding.ids.push_back(sequence.id());
    decoding.limit = std::min(decoding.limit, sequence.tokens_left());
    if (on_host) decoding.ahead = 1;
  }
  on_devices([&] { loop_->start(sequences); });
  decoding_ = std::move(decoding);
  // Those that wait now are the first of the next turn.
  std::rotate(active_.begin(), active_.begin() + turn.texts, active_.end());
}

void Scheduler::decode() {
  if (!decoding_) start_decoding();
  const auto begun = std::chrono::steady_clock::now();
  Decoding& now = *decoding_;
  const auto continues = [&](const Active* active) {
    return active && !active->sequence->finished() && missing(*active) == 1;
  };
  // Once a sequence ends or another can begin, no more steps are queued. Those already queued are
  // still valid for the other sequences.
  const auto check = [&] {
    for (const int64_t id : now.ids) now.is_over = now.is_over || !continues(find(id));
    now.is_over = now.is_over || now.done == now.limit ||
                  (!waiting_.empty() && active_.size() < is_free_.size() && !lacks_blocks_);
  };
  check();
  while (!now.is_over && loop_->queued() < std::min(now.limit, now.done + now.ahead)) {
    now.is_over = on_devices([&] { return loop_->steps_left(); }) == 0;
    if (!now.is_over) on_devices([&] { loop_->queue_step(); });
  }
  if (now.done < loop_->queued()) {
    const std::vector<int32_t> tokens = on_devices([&] { return loop_->read(now.done++); });
    for (size_t i = 0; i < now.ids.size(); ++i) {
      Active* const active = find(now.ids[i]);
      if (!continues(active)) continue;  // it has ended or was shifted
      Sequence& sequence = *active->sequence;
      ++active->cached;
      put_token(*active, [&] {
        if (sequence.samples_on_device()) return tokens[i];
        return sequence.sample(on_devices([&] { return loop_->logits(i); }));
      });
      if (!sequence.samples_on_device() && continues(active))
        on_devices([&] { loop_->set_token(i, sequence.tokens().back()); });
    }
    learn_step(now);
    const std::chrono::duration<double> took = now.read - begun;
    if (speculation_ && now.done > 1) speculation_->learn_step(std::ssize(now.ids), took.count());
  }
  check();
  if (now.is_over && now.done == loop_->queued()) decoding_.reset();
}

}  // namespace prism::llm
