// Implements the filters; each touches no more of a large vocabulary than its rule needs.
#include "llm/generate/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace prism::llm {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

float largest_logit(const Candidates& candidates) {
  if (candidates.sorted > 0) return candidates.list.front().logit;
  float largest = kNever;
  for (const Candidate& each : candidates.list) largest = std::max(largest, each.logit);
  return largest;
}

// Keeps candidates with at least this logit; preserves their order.
void keep_from(Candidates& candidates, float least) {
  const auto too_small = [&](const Candidate& each) { return each.logit < least; };
  if (candidates.sorted == candidates.list.size()) {
    const auto end = std::ranges::partition_point(
        candidates.list, [&](const Candidate& each) { return !too_small(each); });
    candidates.list.erase(end, candidates.list.end());
  } else {
    std::erase_if(candidates.list, too_small);
  }
  candidates.sorted = std::min(candidates.sorted, candidates.list.size());
}

}  // namespace

void take_all(std::span<const float> logits, Candidates* to) {
  to->list.clear();
  to->sorted = 0;
  to->list.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > kNever) to->list.push_back({static_cast<int32_t>(i), logits[i]});
}

void take_top_k(std::span<const float> logits, size_t k, Candidates* to) {
  if (k >= logits.size()) {
    take_all(logits, to);
    sort_front(*to, k);
    return;
  }
  // Collects logits above the k-th best so far. At 4 k entries it keeps the best k and raises the
  // threshold, so on unordered logits nearly every element costs one comparison.
  std::vector<Candidate>& list = to->list;
  list.clear();
  const size_t room = 4 * k;
  list.reserve(room);
  float bar = kNever;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > bar)) continue;
    list.push_back({static_cast<int32_t>(i), logits[i]});
    if (list.size() < room) continue;
    std::nth_element(list.begin(), list.begin() + static_cast<ptrdiff_t>(k - 1), list.end());
    list.resize(k);
    bar = list[k - 1].logit;  // a later equal logit has a higher id, so it is excluded
  }
  to->sorted = 0;
  keep_top_k(*to, k);
}

void sort_front(Candidates& candidates, size_t count) {
  std::vector<Candidate>& list = candidates.list;
  count = std::min(count, list.size());
  if (count <= candidates.sorted) return;
  const auto from = list.begin() + static_cast<ptrdiff_t>(candidates.sorted);
  const auto to = list.begin() + static_cast<ptrdiff_t>(count);
  if (to != list.end()) std::nth_element(from, to, list.end());
  std::sort(from, to);
  candidates.sorted = count;
}

void keep_top_k(Candidates& candidates, size_t k) {
  k = std::max<size_t>(k, 1);
  sort_front(candidates, k);
  if (candidates.list.size() > k) candidates.list.resize(k);
}

double weights_of(const Candidates& candidates, std::vector<double>* weights) {
  const double largest = largest_logit(candidates);
  double sum = 0;
  weights->clear();
  weights->reserve(candidates.list.size());
  for (const Candidate& each : candidates.list) {
    weights->push_back(std::exp(each.logit - largest));
    sum += weights->back();
  }
  return sum;
}

void keep_top_p(Candidates& candidates, double p) {
  if (p >= 1 || candidates.list.size() < 2) return;
  const double largest = largest_logit(candidates);
  double total = 0, sum = 0;
  for (const Candidate& each : candidates.list) total += std::exp(each.logit - largest);
  for (size_t i = 0; i < candidates.list.size(); ++i) {
    // Sort only as much of the front as the sum needs, in growing steps.
    if (i == candidates.sorted) sort_front(candidates, std::max<size_t>(64, i * 4));
    sum += std::exp(candidates.list[i].logit - largest);
    if (sum >= p * total) {
      candidates.list.resize(i + 1);
      candidates.sorted = i + 1;
      return;
    }
  }
}

void keep_min_p(Candidates& candidates, double p) {
  if (p <= 0 || candidates.list.empty()) return;
  const float largest = largest_logit(candidates);
  // min: a p above 1 still keeps the most likely candidate.
  keep_from(candidates, std::min(largest, static_cast<float>(largest + std::log(p))));
}

void keep_typical(Candidates& candidates, double p) {
  if (p >= 1 || candidates.list.size() < 2) return;
  std::vector<double> weights;
  const double total = weights_of(candidates, &weights);
  const double largest = largest_logit(candidates), log_total = std::log(total);
  double entropy = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    entropy -= weights[i] / total * (candidates.list[i].logit - largest - log_total);
  struct Entry {
    double distance;
    Candidate candidate;
    bool operator<(const Entry& other) const {
      return distance < other.distance ||
             (distance == other.distance && candidate < other.candidate);
    }
  };
  std::vector<Entry> entries;
  entries.reserve(weights.size());
  for (const Candidate& each : candidates.list)
    entries.push_back({std::abs(log_total + largest - each.logit - entropy), each});
  size_t sorted = 0, kept = 0;
  for (double sum = 0; kept < entries.size() && sum < p * total; ++kept) {
    if (kept == sorted) {
      sorted = std::min(entries.size(), std::max<size_t>(64, kept * 4));
      std::partial_sort(entries.begin() + static_cast<ptrdiff_t>(kept),
                        entries.begin() + static_cast<ptrdiff_t>(sorted), entries.end());
    }
    sum += std::exp(entries[kept].candidate.logit - largest);
  }
  kept = std::max<size_t>(kept, 1);
  candidates.list.resize(kept);
  for (size_t i = 0; i < kept; ++i) candidates.list[i] = entries[i].candidate;
  candidates.sorted = 0;
}

void keep_top_n_sigma(Candidates& candidates, double n) {
  if (n <= 0 || candidates.list.size() < 2) return;
  const double count = static_cast<double>(candidates.list.size());
  double mean = 0, square = 0;
  for (const Candidate& each : candidates.list) mean += each.logit;
  mean /= count;
  for (const Candidate& each : candidates.list) square += (each.logit - mean) * (each.logit - mean);
  keep_from(candidates,
            static_cast<float>(largest_logit(candidates) - n * std::sqrt(square / count)));
}

void drop_top_choices(Candidates& candidates, double threshold) {
  if (threshold > 0.5 || candidates.list.size() < 2) return;  // two cannot both exceed one half
  const double largest = largest_logit(candidates);
  double total = 0;
  for (const Candidate& each : candidates.list) total += std::exp(each.logit - largest);
  size_t above = 0;
  for (; above < candidates.list.size(); ++above) {
    if (above == candidates.sorted) sort_front(candidates, std::max<size_t>(16, above * 4));
    if (std::exp(candidates.list[above].logit - largest) < threshold * total) break;
  }
  if (above < 2) return;
  candidates.list.erase(candidates.list.begin(),
                        candidates.list.begin() + static_cast<ptrdiff_t>(above - 1));
  candidates.sorted -= above - 1;
}

void apply_temperature(Candidates& candidates, double t) {
  if (is_cold(t)) return keep_top_k(candidates, 1);
  if (t == 1) return;
  for (Candidate& each : candidates.list) each.logit = static_cast<float>(each.logit / t);
}

void apply_dynamic_temperature(Candidates& candidates, double low, double high, double exponent) {
  if (candidates.list.size() < 2) return;
  std::vector<double> weights;
  const double total = weights_of(candidates, &weights);
  double entropy = 0;
  for (const double weight : weights)
    if (weight > 0) entropy -= weight / total * std::log(weight / total);
  const double share =
      std::clamp(entropy / std::log(static_cast<double>(weights.size())), 0.0, 1.0);
  apply_temperature(candidates, low + (high - low) * std::pow(share, exponent));
}

double log_sum_exp(std::span<const float> logits) {
  float largest = kNever;
  for (const float each : logits) largest = std::max(largest, each);
  double sum = 0;
  for (const float each : logits) sum += std::exp(static_cast<double>(each) - largest);
  return largest + std::log(sum);
}

}  // namespace prism::llm
