// Implements the sampler chain: penalties, filters, temperature and the final draw.
#include "prism/llm/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/suggest.h"
#include "dsl/philox.h"
#include "llm/generate/candidates.h"
#include "llm/model/finite.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool bit(std::span<const uint64_t> bits, size_t i) {
  return i / 64 < bits.size() && (bits[i / 64] >> (i % 64) & 1) != 0;
}

struct StageName {
  SamplerStage stage;
  const char* name;
};
constexpr StageName kStageNames[] = {{SamplerStage::top_n_sigma, "top_n_sigma"},
                                     {SamplerStage::top_k, "top_k"},
                                     {SamplerStage::typical, "typical"},
                                     {SamplerStage::top_p, "top_p"},
                                     {SamplerStage::min_p, "min_p"},
                                     {SamplerStage::xtc, "xtc"},
                                     {SamplerStage::temperature, "temperature"}};

}  // namespace

const char* sampler_stage_name(SamplerStage stage) {
  for (const StageName& each : kStageNames)
    if (each.stage == stage) return each.name;
  return "";
}

std::vector<SamplerStage> parse_sampler_stages(std::string_view text) {
  std::vector<SamplerStage> stages;
  std::vector<std::string> names;
  for (const StageName& each : kStageNames) names.emplace_back(each.name);
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(",;"), text.size());
    const std::string name(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("\"{}\" is not a sampler{}", name, valid_names(name, names)));
    stages.push_back(kStageNames[found - names.begin()].stage);
    constexpr size_t kMostStages = 32;  // each takes time for every token, and clients send lists
    if (stages.size() > kMostStages)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("a list of more than {} samplers; name each once", kMostStages));
  }
  return stages;
}

void check_sampler_options(const SamplerOptions& o) {
  const auto check = [](bool right, const char* name, double value, const char* needed) {
    if (!right || !std::isfinite(value))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("sampler: {} is {}; it must be {}", name, value, needed));
  };
  check(o.temperature >= 0, "temperature", o.temperature,
        "0 or more (0: always the most likely token)");
  check(o.dynamic_range >= 0, "the dynamic range", o.dynamic_range, "0 or more");
  check(o.dynamic_exponent >= 0, "the exponent of the entropy", o.dynamic_exponent, "0 or more");
  check(o.top_k >= 0, "top-k", o.top_k, "0 (off) or more");
  check(o.top_p > 0 && o.top_p <= 1, "top-p", o.top_p, "above 0 and at most 1 (off)");
  check(o.min_p >= 0 && o.min_p <= 1, "min-p", o.min_p, "from 0 (off) to 1");
  check(o.typical_p > 0 && o.typical_p <= 1, "typical-p", o.typical_p,
        "above 0 and at most 1 (off)");
  check(o.top_n_sigma >= 0, "top-n-sigma", o.top_n_sigma, "0 (off) or more");
  check(o.xtc_probability >= 0 && o.xtc_probability <= 1, "XTC's probability", o.xtc_probability,
        "from 0 (off) to 1");
  check(o.xtc_threshold >= 0, "XTC's threshold", o.xtc_threshold, "0 or more");
  check(o.penalties.repeat > 0, "the repeat penalty", o.penalties.repeat, "above 0 (1: off)");
  check(true, "the presence penalty", o.penalties.presence, "a number (0: off)");
  check(true, "the frequency penalty", o.penalties.frequency, "a number (0: off)");
  check(o.penalties.window >= -1, "the window of the penalties", o.penalties.window,
        "-1 (all tokens) or more");
  check(o.dry.multiplier >= 0, "DRY's multiplier", o.dry.multiplier, "0 (off) or more");
  check(o.dry.base > 0, "DRY's base", o.dry.base, "above 0");
  check(o.dry.allowed_length >= 0, "DRY's allowed length", o.dry.allowed_length, "0 or more");
  check(o.dry.window >= -1, "DRY's window", o.dry.window, "-1 (all tokens) or more");
  check(o.mirostat >= 0 && o.mirostat <= 2, "mirostat", o.mirostat, "0 (off), 1 or 2");
  check(o.mirostat_tau > 0, "mirostat's tau", o.mirostat_tau, "above 0");
  check(o.mirostat_eta >= 0, "mirostat's eta", o.mirostat_eta, "0 or more");
  for (const auto& [token, bias] : o.logit_bias) {
    check(token >= 0, "the token of a logit bias", token, "0 or more");
    check(true, "a logit bias", bias == kNever ? 0 : bias, "a number, or -inf (never)");
  }
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  check_sampler_options(options);
  if (is_cold(options.temperature)) options_.temperature = 0;
  keeps_history_ = options.penalties.active() || options.dry.active();
  surprise_ = 2.0 * options.mirostat_tau;
}

bool Sampler::is_plain_greedy() const {
  return options_.temperature == 0 && options_.dynamic_range == 0 && !keeps_history_ &&
         options_.logit_bias.empty() && options_.mirostat == 0 &&
         // Every stage but these two keeps the most likely token.
         options_.typical_p == 1 && options_.xtc_probability == 0;
}

bool Sampler::is_simple() const {
  if (is_plain_greedy()) return true;
  const std::vector<SamplerStage> usual = SamplerOptions{}.stages;
  return options_.stages == usual && options_.dynamic_range == 0 && !keeps_history_ &&
         options_.logit_bias.empty() && options_.mirostat == 0 && options_.typical_p == 1 &&
         options_.top_n_sigma == 0 && options_.xtc_probability == 0;
}

double Sampler::uniform() {
  const auto words = dsl::philox_block(step_, static_cast<uint32_t>(options_.seed),
                                       static_cast<uint32_t>(options_.seed >> 32));
  // 24 bits, as on devices that sample in f32. A token needs at most two numbers.
  return static_cast<double>(words[draws_++ % words.size()] >> 8) * 0x1p-24;
}

void Sampler::accept(int32_t token) {
  if (keeps_history_) history_.push_back(token);
}

void Sampler::reset() {
  history_.clear();
  set_step(0);
  surprise_ = 2.0 * options_.mirostat_tau;
}

void Sampler::run_stage(SamplerStage stage) {
  const SamplerOptions& o = options_;
  switch (stage) {
    case SamplerStage::top_n_sigma:
      return keep_top_n_sigma(candidates_, o.top_n_sigma);
    case SamplerStage::top_k:
      if (o.top_k > 0) keep_top_k(candidates_, static_cast<size_t>(o.top_k));
      return;
    case SamplerStage::typical:
      return keep_typical(candidates_, o.typical_p);
    case SamplerStage::top_p:
      return keep_top_p(candidates_, o.top_p);
    case SamplerStage::min_p:
      return keep_min_p(candidates_, o.min_p);
    case SamplerStage::xtc:
      if (o.xtc_probability > 0 && uniform() < o.xtc_probability)
        drop_top_choices(candidates_, o.xtc_threshold);
      return;
    case SamplerStage::temperature:
      if (o.dynamic_range > 0)
        apply_dynamic_temperature(candidates_, std::max(0.0f, o.temperature - o.dynamic_range),
                                  o.temperature + o.dynamic_range, o.dynamic_exponent);
      else
        apply_temperature(candidates_, o.temperature);
      return;
  }
}

void Sampler::narrow(std::span<const float> logits, std::span<const uint64_t> allowed) {
  if (!can_choose(logits))
    throw Error(
        ErrorCode::kInvalidArgument,
        "sampler: the logits contain NaN or +infinity, or only -infinity; is the model file "
        "corrupt?");
  // Edits need a copy; otherwise read the model's logits in place.
  if (keeps_history_ || !options_.logit_bias.empty() || !allowed.empty()) {
    logits_.assign(logits.begin(), logits.end());
    for (const auto& [token, bias] : options_.logit_bias)
      if (token >= 0 && static_cast<size_t>(token) < logits_.size())
        logits_[static_cast<size_t>(token)] += bias;
    apply_penalties(logits_, history_, options_.penalties);
    apply_dry(logits_, history_, options_.dry, breakers_);
    if (!allowed.empty())
      for (size_t i = 0; i < logits_.size(); ++i)
        if (!bit(allowed, i)) logits_[i] = kNever;
    logits = logits_;
  }
  std::vector<SamplerStage> stages = options_.stages;
  if (options_.mirostat != 0) stages = {SamplerStage::temperature};
  std::erase_if(stages, [&](SamplerStage each) {  // a disabled stage would hide a leading top-k
    return (each == SamplerStage::top_n_sigma && options_.top_n_sigma == 0) ||
           (each == SamplerStage::top_k && options_.top_k == 0);
  });
  size_t first = 0;
  if (is_plain_greedy()) {
    take_top_k(logits, 1, &candidates_);
    first = stages.size();
  } else if (!stages.empty() && stages.front() == SamplerStage::top_k) {
    take_top_k(logits, static_cast<size_t>(options_.top_k), &candidates_);
    first = 1;
  } else {
    take_all(logits, &candidates_);
  }
  if (candidates_.list.empty())
    throw Error(ErrorCode::kInvalidArgument,
                allowed.empty()
                    ? "sampler: the biases leave no token with a finite logit; change --logit-bias"
                    : "sampler: the grammar allows none of the model's tokens here");
  for (size_t i = first; i < stages.size(); ++i) run_stage(stages[i]);
}

int32_t Sampler::draw() {
  if (candidates_.list.size() == 1) return candidates_.list.front().id;
  // Draw in order of likelihood, so that a number selects the same token however much was sorted.
  if (candidates_.list.size() <= 4096) sort_front(candidates_, candidates_.list.size());
  const double target = weights_of(candidates_, &weights_) * uniform();
  double sum = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    sum += weights_[i];
    if (target < sum) return candidates_.list[i].id;
  }
  return candidates_.list.back().id;
}

// Mirostat (Basu et al., 2021): keeps the surprise of the text near tau bits per token.
int32_t Sampler::draw_mirostat(size_t vocabulary) {
  const double total = weights_of(candidates_, &weights_);
  if (options_.mirostat == 1) {
    // Estimates the exponent of Zipf's law from the 100 most likely tokens and derives k from it.
    sort_front(candidates_, 100);
    const size_t known = std::min<size_t>(100, candidates_.list.size());
    double products = 0, squares = 0;
    for (size_t i = 0; i + 1 < known; ++i) {
      const double rank = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      products += rank * (candidates_.list[i].logit - candidates_.list[i + 1].logit);
      squares += rank * rank;
    }
    const double exponent = squares > 0 ? products / squares : 1, over = exponent - 1;
    const double k = std::pow(
        over * std::exp2(surprise_) / (1 - std::pow(static_cast<double>(vocabulary), -over)),
        1 / exponent);
    // An exponent near 0 or 1 gives a non-finite k: then nothing is cut.
    if (std::isfinite(k)) keep_top_k(candidates_, static_cast<size_t>(std::clamp(k, 1.0, 1e9)));
  } else {
    // weights are e^(logit - largest): keep tokens with a surprise of at most mu bits.
    const double largest =
        std::min_element(candidates_.list.begin(), candidates_.list.end())->logit;
    const double least = largest + std::log(total) - surprise_ * std::log(2.0);
    keep_min_p(candidates_, std::exp(std::min(0.0, least - largest)));
  }
  const int32_t token = draw();
  const double kept = weights_of(candidates_, &weights_);
  for (size_t i = 0; i < weights_.size(); ++i)
    if (candidates_.list[i].id == token)
      surprise_ -= options_.mirostat_eta * (-std::log2(weights_[i] / kept) - options_.mirostat_tau);
  return token;
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const uint64_t> allowed) {
  narrow(logits, allowed);
  const int32_t token = options_.mirostat != 0 ? draw_mirostat(logits.size()) : draw();
  set_step(step_ + 1);
  return token;
}

std::vector<std::pair<int32_t, double>> Sampler::distribution(std::span<const float> logits,
                                                              std::span<const uint64_t> allowed) {
  narrow(logits, allowed);
  set_step(step_);
  return choices();
}

std::vector<std::pair<int32_t, double>> Sampler::choices() {
  sort_front(candidates_, candidates_.list.size());
  const double total = weights_of(candidates_, &weights_);
  std::vector<std::pair<int32_t, double>> result;
  for (size_t i = 0; i < weights_.size() && weights_[i] > 0; ++i)
    result.emplace_back(candidates_.list[i].id, weights_[i] / total);
  return result;
}

}  // namespace prism::llm
