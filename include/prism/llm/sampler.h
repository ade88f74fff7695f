// Sampler: chooses the next token from logits.
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

// A token that is still considered.
struct Candidate {
  int32_t id = 0;
  float logit = 0;
  // The order of all samplers: the likelier token first, and the lower id first among equals. So
  // the text does not depend on the sorting algorithm.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct Candidates {
  std::vector<Candidate> list;
  size_t sorted = 0;  // the first `sorted` entries are in final order and precede all others
};

// The stages that narrow the candidates, in sequence. Penalties and biases come before all stages.
enum class SamplerStage { top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature };

const char* sampler_stage_name(SamplerStage stage);
// "top_k,top_p,temperature". Throws kInvalidArgument with the valid names.
std::vector<SamplerStage> parse_sampler_stages(std::string_view text);

struct SamplerOptions {
  uint64_t seed = 0;         // the same seed and logits give the same tokens
  float temperature = 0.8f;  // 0: always the likeliest token
  float dynamic_range = 0;   // temperature +- this, depending on the entropy; 0: fixed
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
  int32_t mirostat = 0;       // 1 or 2: replaces every stage but the temperature
  float mirostat_tau = 5;     // target surprise, in bits
  float mirostat_eta = 0.1f;  // learning rate
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // token, value added to its logit
  std::vector<SamplerStage> stages = {
      SamplerStage::top_n_sigma, SamplerStage::top_k, SamplerStage::typical,    SamplerStage::top_p,
      SamplerStage::min_p,       SamplerStage::xtc,   SamplerStage::temperature};
};

// Throws kInvalidArgument with the option, its value and the valid range.
void check_sampler_options(const SamplerOptions& options);

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options = {});

  const SamplerOptions& options() const { return options_; }
  // Sets the tokens that end a DRY repetition.
  void set_dry_breakers(std::unordered_set<int32_t> tokens) { breakers_ = std::move(tokens); }
  // Returns whether this always takes the token with the largest unmodified logit.
  bool is_plain_greedy() const;
  // Returns whether this uses only temperature, top-k, top-p and min-p in the usual order, so that
  // a device can sample.
  bool is_simple() const;

  // allowed: one bit per token (a grammar's mask), or empty for all tokens. Throws kInvalidArgument
  // if no token is left.
  int32_t sample(std::span<const float> logits, std::span<const uint64_t> allowed = {});
  // Returns the tokens that sample() would choose from, with their probabilities, without drawing.
  std::vector<std::pair<int32_t, double>> distribution(std::span<const float> logits,
                                                       std::span<const uint64_t> allowed = {});
  // Returns the tokens that the last sample() chose from, with their probabilities: the likeliest
  // first, and none of probability 0.
  std::vector<std::pair<int32_t, double>> choices();
  void accept(int32_t token);  // a token of the prompt or of the answer, for the penalties
  void reset();                // clears the history and restarts the seed
  double uniform();            // the next random number in [0, 1)
  // Sets the step whose random numbers the next token uses; by default the one after the last.
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
  uint32_t step_ = 0, draws_ = 0;  // tokens sampled; numbers drawn for the current token
  double surprise_ = 0;            // mirostat's mu
  // Kept between calls to reuse their memory.
  std::vector<float> logits_;
  Candidates candidates_;
  std::vector<double> weights_;
};

}  // namespace prism::llm

#pragma GCC visibility pop
