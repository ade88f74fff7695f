// The scheduler's steps that check proposed tokens.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "llm/generate/model_failure.h"
#include "llm/generate/row_chooser.h"
#include "llm/generate/scheduler.h"
#include "llm/model/finite.h"
#include "prism/warning.h"

namespace prism::llm {

void Scheduler::set_proposer(std::unique_ptr<Proposer> proposer, SpeculationPolicy policy) {
  speculation_.reset();
  if (!proposer) return;
  if (model_.cache().states().is_used())
    return warn(
        fmt::format("speculation is off: the recurrent layers of {} cannot take back "
                    "rejected tokens",
                    model_.config().architecture));
  speculation_.emplace(std::move(proposer), policy);
}

std::vector<ProposalRequest> Scheduler::proposal_requests() const {
  std::vector<ProposalRequest> requests;
  for (const Active& active : active_) {
    const Sequence& sequence = *active.sequence;
    const std::vector<int32_t>& tokens = sequence.tokens();
    ProposalRequest request{sequence.id(), tokens, 0, sequence.device_sampling()};
    if (sequence.options().speculate)
      request.count = std::max<int64_t>(
          std::min({Speculation::kMostProposed, model_.context() - std::ssize(tokens),
                    sequence.tokens_left() - 1}),
          0);
    requests.push_back(request);
  }
  return requests;
}

bool Scheduler::speculate() {
  if (!speculation_) return false;
  const std::vector<ProposalRequest> requests = proposal_requests();
  if (std::ranges::none_of(requests, [](const auto& each) { return each.count > 0; })) return false;
  const int64_t most_rows = model_.rows_alike(std::ssize(active_));
  // Steps that run ahead are read before anything else runs.
  if (decoding_ && decoding_->done < loop_->queued()) {
    if (speculation_->pays(requests, most_rows)) decoding_->is_over = true;
    return false;
  }
  Speculation::Proposals proposals;
  try {
    proposals = speculation_->propose(requests, most_rows);
  } catch (const std::exception& error) {
    warn(fmt::format("speculation ends, texts go on without it: {}", error.what()));
    speculation_.reset();
  }
  if (proposals.empty()) return false;
  decoding_.reset();
  check_proposals(proposals);
  return true;
}

void Scheduler::check_proposals(const Speculation::Proposals& proposals) {
  const auto begun = std::chrono::steady_clock::now();
  const size_t plans = model_.plans();
  make_room();
  std::vector<std::vector<int32_t>> tokens;  // of each sequence: the last one, then the proposals
  for (const Active& active : active_) {
    std::vector<int32_t>& own = tokens.emplace_back(1, active.sequence->tokens().back());
    const auto found = proposals.find(active.sequence->id());
    if (found == proposals.end()) continue;
    own.insert(own.end(), found->second.begin(), found->second.end());
    const bool has_blocks = on_devices([&] {
      return model_.cache().reserve(active.slot, active.cached, active.cached + std::ssize(own));
    });
    if (!has_blocks) own.resize(1);
  }
  std::vector<SequencePart> parts;
  std::vector<RowChooser::Row> rows;
  for (size_t i = 0; i < active_.size(); ++i) {
    const auto first = static_cast<int32_t>(active_[i].cached);
    parts.push_back({active_[i].slot, first, tokens[i], Wanted::all});
    for (size_t j = 0; j < tokens[i].size(); ++j)
      rows.push_back({active_[i].sequence.get(), first + static_cast<int32_t>(j)});
  }
  const auto count = std::ssize(rows);
  const Tensor logits = on_devices([&] { return model_.forward(parts); });
  RowChooser chooser(logits, std::move(rows));

  size_t first = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    Active& active = active_[i];
    const Sequence& sequence = *active.sequence;
    const size_t proposed = tokens[i].size() - 1;
    size_t accepted = 0;
    for (bool continues = true; continues;) {
      int32_t chosen = kNoToken;
      ++active.cached;
      put_token(active, [&] { return chosen = chooser.token(first + accepted); });
      continues = accepted < proposed && chosen == tokens[i][accepted + 1];
      accepted += continues;
      continues = continues && !sequence.finished() && missing(active) == 1;
    }
    first += tokens[i].size();
    if (proposed == 0) continue;
    // What the rejected tokens left in the cache is written over; their blocks are free for others.
    model_.cache().truncate(active.slot, active.cached);
    active.sequence->count_proposals(static_cast<int64_t>(proposed),
                                     static_cast<int64_t>(accepted));
    speculation_->learn(sequence.id(), static_cast<int64_t>(proposed),
                        static_cast<int64_t>(accepted));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  if (model_.plans() == plans) speculation_->learn_step(count, took.count());
}

}  // namespace prism::llm
