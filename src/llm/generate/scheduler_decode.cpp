// The scheduler's steps in which every sequence gets its next token by the decode loop.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "llm/generate/model_failure.h"
#include "llm/generate/scheduler.h"

namespace prism::llm {

namespace {

// The last token of a sequence is not in the cache yet.
DecodeLoop::Sequence looped(const Sequence& sequence, int32_t slot) {
  const std::vector<int32_t>& tokens = sequence.tokens();
  return {slot, static_cast<int32_t>(tokens.size() - 1), tokens.back(), sequence.device_sampling(),
          !sequence.samples_on_device()};
}

}  // namespace

TextsPerStep::Turn Scheduler::next_turn(int64_t texts) const {
  const int64_t rows = model_.batch_rows();
  const int64_t most = most_decoding_ > 0 ? std::min(most_decoding_, rows) : rows;
  if (most_decoding_ > 0 || texts > most) return {std::min(texts, most), TextsPerStep::kTurnSteps};
  // Speculation measures steps of all sequences, and fills them with proposals.
  const bool speculates = speculation_ && std::ranges::any_of(active_, [](const Active& active) {
                            return active.sequence->options().speculate;
                          });
  std::vector<int64_t> smaller;
  for (int64_t size = model_.rows_before_jump(texts); size > 0 && !speculates;
       size = model_.rows_before_jump(size))
    smaller.push_back(size);
  return texts_per_step_.choose(texts, model_.padded_rows(texts), smaller);
}

void Scheduler::learn_step(Decoding& decoding) {
  const auto before = std::exchange(decoding.read, std::chrono::steady_clock::now());
  // The first step after a start may compile, and has no step queued before it.
  if (decoding.done > 1) {
    const std::chrono::duration<double> took = decoding.read - before;
    decoding.fastest = std::min(decoding.fastest, took.count());
  }
  if (decoding.done % TextsPerStep::kTrialSteps != 0) return;
  texts_per_step_.learn(model_.padded_rows(std::ssize(decoding.turns.front().rows)),
                        std::exchange(decoding.fastest, Decoding::kUnmeasured));
}

void Scheduler::begin_turn(Decoding::Turn turn, int64_t steps) {
  Decoding& now = *decoding_;
  const int64_t end = std::ranges::min(turn.rows, {}, &Decoding::Row::end).end;
  now.limit = turn.first + std::min(steps, end - turn.first);
  now.turns.push_back(std::move(turn));
  // Those that wait now are the first of the next turn.
  std::stable_partition(active_.begin(), active_.end(), [&](const Active& active) {
    return !std::ranges::count(now.turns.back().rows, active.sequence->id(), &Decoding::Row::id);
  });
}

void Scheduler::start_decoding() {
  make_room();
  const TextsPerStep::Turn turn = next_turn(std::ssize(active_));
  if (!loop_) loop_ = std::make_unique<DecodeLoop>(model_);
  // A device runs the next step while the host handles this token. On the CPU both use the same
  // threads, and a token that the host chooses is not known before.
  int64_t ahead = model_.placement().output.backend() == "cpu" ? 1 : 2;
  Decoding::Turn first;
  std::vector<DecodeLoop::Sequence> sequences;
  for (const Active& active : std::span(active_).first(static_cast<size_t>(turn.texts))) {
    sequences.push_back(looped(*active.sequence, active.slot));
    first.rows.push_back({active.sequence->id(), active.sequence->tokens_left()});
    if (sequences.back().on_host) ahead = 1;
  }
  on_devices([&] { loop_->start(sequences); });
  Decoding begun;
  begun.ahead = ahead;
  decoding_ = std::move(begun);  // clang 14 cannot make it in the optional
  begin_turn(std::move(first), turn.steps);
}

bool Scheduler::change_turn() {
  const int64_t next = loop_->queued();
  Decoding::Turn turn = decoding_->turns.back();
  turn.first = next;
  // The rows whose sequence will have ended, though its last tokens may not be read yet.
  const auto has_ended = [&](int64_t id) {
    const auto row = std::ranges::find(turn.rows, id, &Decoding::Row::id);
    return row != turn.rows.end() && row->end <= next;
  };
  std::vector<const Active*> going_on;  // those that have waited longest come first
  for (const Active& active : active_) {
    if (has_ended(active.sequence->id())) continue;
    if (missing(active) != 1) return false;  // it was shifted
    going_on.push_back(&active);
  }
  const TextsPerStep::Turn chosen = next_turn(std::ssize(going_on));
  if (chosen.texts != std::ssize(turn.rows)) return false;
  going_on.resize(turn.rows.size());

  // Each that waited takes the row of one that is not among them any more. It left the loop at
  // least a step ago, so its last token is known.
  const auto id_of = [](const Active* active) { return active->sequence->id(); };
  std::vector<DecodeLoop::Replacement> changes;
  size_t row = 0;
  for (const Active* const active : going_on) {
    if (std::ranges::count(decoding_->turns.back().rows, id_of(active), &Decoding::Row::id))
      continue;
    while (std::ranges::count(going_on, turn.rows[row].id, id_of)) ++row;
    changes.push_back({row, looped(*active->sequence, active->slot)});
    const int64_t left = active->sequence->tokens_left();  // INT64_MAX: no limit
    turn.rows[row++] = {id_of(active), next + std::min(left, INT64_MAX - next)};
  }
  if (!changes.empty() && !on_devices([&] { return loop_->replace(changes); })) return false;
  begin_turn(std::move(turn), chosen.steps);
  return true;
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
    for (const Decoding::Row& row : now.turns.back().rows)
      now.is_over = now.is_over || !continues(find(row.id));
    now.is_over =
        now.is_over || (!waiting_.empty() && active_.size() < is_free_.size() && !lacks_blocks_);
  };
  check();
  while (!now.is_over && loop_->queued() < now.done + now.ahead) {
    now.is_over = (loop_->queued() == now.limit && !change_turn()) ||
                  on_devices([&] { return loop_->steps_left(); }) == 0;
    if (!now.is_over) on_devices([&] { loop_->queue_step(); });
  }
  if (now.done < loop_->queued()) {
    while (now.turns.size() > 1 && now.turns[1].first <= now.done) now.turns.pop_front();
    const std::vector<Decoding::Row>& rows = now.turns.front().rows;
    const std::vector<int32_t> tokens = on_devices([&] { return loop_->read(now.done++); });
    for (size_t i = 0; i < rows.size(); ++i) {
      Active* const active = find(rows[i].id);
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
    if (speculation_ && now.done > 1) speculation_->learn_step(std::ssize(rows), took.count());
  }
  check();
  if (now.is_over && now.done == loop_->queued()) decoding_.reset();
}

}  // namespace prism::llm
