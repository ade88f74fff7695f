// Implements the choice of proposals by measured acceptance and step times.
#include "llm/generate/speculation.h"

#include <algorithm>

namespace prism::llm {

void Acceptance::learn(int64_t proposed, int64_t accepted) {
  constexpr double kMemory = 0.8;  // about the last five checks
  accepted_ = accepted_ * kMemory + static_cast<double>(accepted);
  tried_ = tried_ * kMemory + static_cast<double>(accepted) + (accepted < proposed ? 1 : 0);
  skipped_ = 0;
  if (accepted == proposed) pause_ = kFirstPause;
}

void Acceptance::skip() {
  if (++skipped_ < pause_) return;
  accepted_ = kFirstAccepted;
  tried_ = kFirstTried;
  skipped_ = 0;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

std::vector<int64_t> choose_counts(std::span<const Offer> offers, const StepTimes& times,
                                   double proposal_seconds, int64_t most_rows) {
  std::vector<int64_t> counts(offers.size(), 0), best = counts;
  // The probability that the next proposed token of each offer is accepted with all before it.
  std::vector<double> next;
  for (const Offer& each : offers) next.push_back(each.available > 0 ? each.rate : 0);
  const auto texts = static_cast<int64_t>(offers.size());
  // Times are noisy: a gain has to be visible.
  constexpr double kLeastGain = 1.02;
  auto tokens = static_cast<double>(texts);
  double best_rate = kLeastGain * tokens / times.seconds(texts);
  int64_t longest = 0;
  for (int64_t rows = texts + 1; rows <= most_rows; ++rows) {
    const auto likeliest = static_cast<size_t>(std::ranges::max_element(next) - next.begin());
    if (likeliest == next.size() || next[likeliest] <= 0) break;
    tokens += next[likeliest];
    const int64_t count = ++counts[likeliest];
    const Offer& offer = offers[likeliest];
    next[likeliest] = count < offer.available ? next[likeliest] * offer.rate : 0;
    longest = std::max(longest, count);
    const double rate =
        tokens / (times.seconds(rows) + proposal_seconds * static_cast<double>(longest));
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = counts;
  }
  return best;
}

Speculation::Choice Speculation::choose(std::span<const ProposalRequest> texts, int64_t most_rows) {
  Choice choice;
  const bool is_measured = policy_ == SpeculationPolicy::measured;
  // A step without proposals is measured first, and again from time to time.
  if (is_measured && !times_.knows(std::ssize(texts))) return choice;
  if (proposer_->is_free()) choice.proposals = proposer_->propose(texts);
  std::vector<Offer> offers;
  for (size_t i = 0; i < texts.size(); ++i) {
    Text& text = texts_[texts[i].text];
    Offer offer{texts[i].count, 0};
    if (proposer_->is_free()) {
      text.grade = choice.proposals[i].grade;
      offer.available = std::ssize(choice.proposals[i].tokens);
    }
    offer.rate = text.acceptance[text.grade].rate();
    offers.push_back(offer);
  }
  if (!is_measured) {
    int64_t left = most_rows - std::ssize(texts);
    for (const Offer& each : offers) {
      choice.counts.push_back(std::clamp<int64_t>(each.available, 0, std::max<int64_t>(left, 0)));
      left -= choice.counts.back();
    }
    return choice;
  }
  choice.counts = choose_counts(offers, times_, proposer_->seconds_per_token(), most_rows);
  return choice;
}

bool Speculation::pays(std::span<const ProposalRequest> texts, int64_t most_rows) {
  const Choice choice = choose(texts, most_rows);
  return std::ranges::any_of(choice.counts, [](int64_t count) { return count > 0; });
}

Speculation::Proposals Speculation::propose(std::span<const ProposalRequest> texts,
                                            int64_t most_rows) {
  Choice choice = choose(texts, most_rows);
  if (choice.counts.empty()) return {};
  Proposals result;
  if (!proposer_->is_free()) {
    std::vector<ProposalRequest> requests(texts.begin(), texts.end());
    for (size_t i = 0; i < requests.size(); ++i) requests[i].count = choice.counts[i];
    if (std::ranges::max(choice.counts) > 0) choice.proposals = proposer_->propose(requests);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    Text& text = texts_[texts[i].text];
    if (choice.counts[i] == 0) {
      const bool has_proposal =
          proposer_->is_free() ? !choice.proposals[i].tokens.empty() : texts[i].count > 0;
      if (has_proposal) text.acceptance[text.grade].skip();
      continue;
    }
    std::vector<int32_t>& tokens = choice.proposals[i].tokens;
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(choice.counts[i])));
    if (!tokens.empty()) result.emplace(texts[i].text, std::move(tokens));
  }
  return result;
}

void Speculation::learn(int64_t text, int64_t proposed, int64_t accepted) {
  Text& known = texts_[text];
  known.acceptance[known.grade].learn(proposed, accepted);
}

void Speculation::forget(int64_t text) {
  texts_.erase(text);
  proposer_->forget(text);
}

}  // namespace prism::llm
