// The tokens a sampler still considers, and the functions that narrow them down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prism/llm/sampler.h"

namespace prism::llm {

// Every token whose logit is a number above minus infinity.
void take_all(std::span<const float> logits, Candidates* to);
// The k likeliest of them, sorted: one pass over the logits, with no sort of the rest.
void take_top_k(std::span<const float> logits, size_t k, Candidates* to);

void sort_front(Candidates& candidates, size_t count);  // at least so many, where there are

// Each leaves at least one candidate where there was one.
void keep_top_k(Candidates& candidates, size_t k);
// The fewest of the likeliest whose probabilities add up to p.
void keep_top_p(Candidates& candidates, double p);
// Those with at least p times the probability of the likeliest.
void keep_min_p(Candidates& candidates, double p);
// Those whose surprise is nearest to the expected one, until their probabilities add up to p
// (Meister et al., 2022).
void keep_typical(Candidates& candidates, double p);
// Those within n standard deviations of the largest logit (Tang et al., 2024).
void keep_top_n_sigma(Candidates& candidates, double n);
// "Exclude top choices": of those with at least that probability only the least likely stays.
void drop_top_choices(Candidates& candidates, double threshold);

// Logits over t; t <= 0 keeps the likeliest only.
void apply_temperature(Candidates& candidates, double t);
// A temperature between low and high, by the share of the largest possible entropy to the power
// of the exponent.
void apply_dynamic_temperature(Candidates& candidates, double low, double high, double exponent);

// e^(logit - the largest), and their sum. The order of the candidates.
double weights_of(const Candidates& candidates, std::vector<double>* weights);

// log(sum(e^logit)): what a logit is less than its log-probability by.
double log_sum_exp(std::span<const float> logits);

}  // namespace prism::llm
