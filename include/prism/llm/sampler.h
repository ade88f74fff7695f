// Sampler: from the logits of a place to the token that stands there.
//
//   Sampler sampler({.seed = 7, .temperature = 0.7f});
//   const int32_t token = sampler.sample(logits);
//   sampler.accept(token);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "prism/llm/penalties.h"

#pragma GCC visibility push(default)

namespace prism::llm {

// The tokens that are still considered.
struct Candidate {
  int32_t id = 0;
  float logit = 0;
  // The one order of all samplers: the likelier first, of equals the lower id, so that a text does
  // not depend on how a list was sorted.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct Candidates {
  std::vector<Candidate> list;
  size_t sorted = 0;  // so many at the front stand in their final order, before all the others
};

// What narrows the candidates, one after the other; penalties and biases stand before them all.
enum class SamplerStage { top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature };

const char* sampler_stage_name(SamplerStage stage);
// "top_k,top_p,temperature". Throws kInvalidArgument with the names there are.
std::vector<SamplerStage> parse_sampler_stages(std::string_view text);

struct SamplerOptions {
  uint64_t seed = 0;         // the same seed and logits give the same tokens
  float temperature = 0.8f;  // 0: the likeliest token, always
  float dynamic_range = 0;   // temperature +- this, by the entropy; 0: fixed
  float dynamic_exponent = 1;
  int32_t top_k = 40;         // 0: off
  float top_p = 0.95f;        // 1: off
  float min_p = 0.05f;        // 0: off
  float typical_p = 1;        // 1: off
  float top_n_sigma = 0;      // 0: off
  float xtc_probability = 0;  // how often the top choices are excluded; 0: off
  float xtc_threshold = 0.1f;
  PenaltyOptions penalties = {};
  DryOptions dry = {};
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  int32_t mirostat = 0;       // 1 or 2: takes the place of every stage but the temperature
  float mirostat_tau = 5;     // the surprise aimed at, in bits
  float mirostat_eta = 0.1f;  // how fast it is approached
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // token, added to its logit
  std::vector<SamplerStage> stages = {
      SamplerStage::top_n_sigma, SamplerStage::top_k, SamplerStage::typical,    SamplerStage::top_p,
      SamplerStage::min_p,       SamplerStage::xtc,   SamplerStage::temperature};
};

// Throws kInvalidArgument naming the option, its value and what it may be.
void check_sampler_options(const SamplerOptions& options);

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options = {});

  const SamplerOptions& options() const { return options_; }
  // Tokens no DRY repetition reaches across.
  void set_dry_breakers(std::unordered_set<int32_t> tokens) { breakers_ = std::move(tokens); }
  // Whether this always takes the token with the largest logit as the model gives it.
  bool is_plain_greedy() const;
  // Whether temperature, top-k, top-p and min-p in that usual order are all there is to it, so that
  // a device can do it.
  bool is_simple() const;

  // allowed: a bit a token (a grammar's mask), or empty for all. Throws kInvalidArgument when no
  // token is left.
  int32_t sample(std::span<const float> logits, std::span<const uint64_t> allowed = {});
  // What sample() would choose among, with its probabilities, without drawing.
  std::vector<std::pair<int32_t, double>> distribution(std::span<const float> logits,
                                                       std::span<const uint64_t> allowed = {});
  void accept(int32_t token);  // a token of the prompt or of the answer, for the penalties
  void reset();                // as new: the history is forgotten, the seed starts over
  double uniform();            // the next random number in [0, 1)
  // The random numbers of the next token are those of this place; else of one after the last.
  void set_step(uint32_t step) { step_ = step, draws_ = 0; }

 private:
  void narrow(std::span<const float> logits, std::span<const uint64_t> allowed);
  void run_stage(SamplerStage stage);
  int32_t draw();
  int32_t draw_mirostat(size_t vocabulary);

  SamplerOptions options_;
  std::unordered_set<int32_t> breakers_;
  std::vector<int32_t> history_;
  bool keeps_history_ = false;
  uint32_t step_ = 0, draws_ = 0;  // tokens sampled; numbers drawn for the one at hand
  double surprise_ = 0;            // mirostat's mu
  // Kept between calls for their memory.
  std::vector<float> logits_;
  Candidates candidates_;
  std::vector<double> weights_;
};

}  // namespace prism::llm

#pragma GCC visibility pop
