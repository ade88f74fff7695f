// The candidate tokens of a sampler and the filters that narrow them down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prism/llm/sampler.h"

namespace prism::llm {

// Takes every token whose logit is neither NaN nor minus infinity.
void take_all(std::span<const float> logits, Candidates* to);
// Takes the k most likely tokens, sorted, in one pass over the logits.
void take_top_k(std::span<const float> logits, size_t k, Candidates* to);

void sort_front(Candidates& candidates, size_t count);  // sorts at least the first count

// Each filter leaves at least one candidate if there was one.
void keep_top_k(Candidates& candidates, size_t k);
// Keeps the smallest set of most likely candidates whose probabilities add up to p.
void keep_top_p(Candidates& candidates, double p);
// Keeps candidates with at least p times the highest probability.
void keep_min_p(Candidates& candidates, double p);
// Locally typical sampling: keeps the candidates whose surprise is closest to the entropy, until
// their probabilities add up to p (Meister et al., 2022).
void keep_typical(Candidates& candidates, double p);
// Keeps candidates within n standard deviations of the largest logit (Tang et al., 2024).
void keep_top_n_sigma(Candidates& candidates, double n);
// "Exclude top choices": of the candidates with at least this probability, keeps only the least
// likely.
void drop_top_choices(Candidates& candidates, double threshold);

// Returns whether a temperature is so low that it means "always the most likely token". Below this
// bound the rounding errors of f32 logits decide, and logits divided by it soon overflow.
constexpr bool is_cold(double temperature) { return temperature < 1e-6; }

// Divides logits by t; a cold t keeps only the most likely candidate.
void apply_temperature(Candidates& candidates, double t);
// Uses a temperature between low and high: the entropy's share of its maximum, raised to the
// exponent, interpolates.
void apply_dynamic_temperature(Candidates& candidates, double low, double high, double exponent);

// Computes e^(logit - largest) in the order of the candidates and returns the sum.
double weights_of(const Candidates& candidates, std::vector<double>* weights);

// log(sum(e^logit)); a log-probability is its logit minus this.
double log_sum_exp(std::span<const float> logits);

}  // namespace prism::llm
