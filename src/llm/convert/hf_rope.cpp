// Reads rope_theta, rope_scaling and their successor rope_parameters.
#include "llm/convert/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/printable.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

// The settings of the rotation; of models with two kinds of layers, those with full attention.
JsonView settings_of(const JsonView& config) {
  const JsonView parameters = config["rope_parameters"];
  if (!parameters) return config["rope_scaling"];
  const JsonView full = parameters["full_attention"];
  return full ? full : parameters;
}

std::string kind_of(const JsonView& settings) {
  const JsonView kind = settings["rope_type"];
  const std::string name = kind ? kind.string() : settings["type"].string_or("default");
  // Text has the same position in all sections.
  return name == "mrope" ? "default" : name;
}

// HunYuan's scaling is a larger base; its factor is 1.
bool enlarges_base(const JsonView& settings) {
  return kind_of(settings) == "dynamic" && settings["alpha"] &&
         settings["factor"].number_or(1) == 1;
}

// A larger base beyond the context alone, where a file's model ends.
bool grows_base(const JsonView& settings) {
  return kind_of(settings) == "dynamic" && !settings["alpha"];
}

double base_of(const JsonView& config, int64_t head_length) {
  const JsonView settings = settings_of(config), own = settings["rope_theta"];
  const JsonView outer = config[config["rope_theta"] ? "rope_theta" : "rotary_emb_base"];
  const double base = own ? own.number(1e-3, 1e12) : outer.number_or(10000, 1e-3, 1e12);
  if (!enlarges_base(settings) || head_length <= 2) return base;
  const auto length = static_cast<double>(head_length);
  return base * std::pow(settings["alpha"].number(1e-6, 1e6), length / (length - 2));
}

// Gemma 4: frequencies are those of the whole head, of which the first part is rotated.
bool is_proportional(const JsonView& settings) { return kind_of(settings) == "proportional"; }

}  // namespace

int64_t rotated_elements(const JsonView& config, int64_t head_length) {
  const bool is_apart = config["qk_rope_head_dim"].integer_or(0, 0, 1 << 14) > 0;
  if (is_proportional(settings_of(config)) || is_apart) return head_length;
  if (const JsonView count = config["rotary_dim"]) return count.integer(0, head_length) / 2 * 2;
  const JsonView own = settings_of(config)["partial_rotary_factor"];
  const JsonView outer = config[config["rotary_pct"] ? "rotary_pct" : "partial_rotary_factor"];
  const double part = own ? own.number(0, 1) : outer.number_or(1, 0, 1);
  return static_cast<int64_t>(static_cast<double>(head_length) * part) / 2 * 2;
}

namespace {

int64_t original_context(const JsonView& config) {
  const JsonView own = settings_of(config)["original_max_position_embeddings"];
  const JsonView outer = config["original_max_position_embeddings"];
  return own     ? own.integer(1, 1 << 30)
         : outer ? outer.integer(1, 1 << 30)
                 : config["max_position_embeddings"].integer(1, 1 << 30);
}

// As Llama 3.1 was trained: low frequencies are divided by the factor, high ones stay, and those
// between are interpolated.
std::vector<float> llama3_divisors(const JsonView& config, int64_t head_length) {
  const JsonView settings = settings_of(config);
  const double factor = settings["factor"].number(1, 1e6);
  const double low = settings["low_freq_factor"].number(1e-6, 1e6);
  const double high = settings["high_freq_factor"].number(1e-6, 1e6);
  const auto context = static_cast<double>(original_context(config));
  const int64_t count = rotated_elements(config, head_length);
  std::vector<float> divisors;
  for (int64_t i = 0; i < count; i += 2) {
    const double wave =
        2 * std::numbers::pi *
        std::pow(base_of(config, head_length), static_cast<double>(i) / static_cast<double>(count));
    const double smooth = (context / wave - low) / (high - low);
    divisors.push_back(static_cast<float>(wave < context / high ? 1
                                          : wave > context / low
                                              ? factor
                                              : 1 / ((1 - smooth) / factor + smooth)));
  }
  // GGUF has one list for all layers, as long as those with windows need.
  const double part =
      config["rope_parameters"]["sliding_attention"]["partial_rotary_factor"].number_or(0, 0, 1);
  const auto longest = static_cast<size_t>(static_cast<double>(head_length) * part) / 2;
  if (divisors.size() < longest) divisors.resize(longest, 1.0f);
  return divisors;
}

std::vector<float> numbers_of(const JsonView& list, size_t needed) {
  std::vector<float> values;
  for (const JsonView& each : list.items()) values.push_back(static_cast<float>(each.number()));
  if (values.size() != needed)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("config.json: {} has {} numbers, {} are needed", list.path(),
                            values.size(), needed));
  return values;
}

// The multipliers of DeepSeek; of other models those that follow from the factor.
bool is_known_yarn(const JsonView& settings, const YarnRules& rules) {
  const double grown = 0.1 * std::log(settings["factor"].number(1, 1e6)) + 1;
  if (std::abs(settings["attention_factor"].number_or(grown) - grown) > 1e-6) return false;
  const JsonView one = settings["mscale"], all = settings["mscale_all_dim"];
  const bool is_right =
      rules.has_multipliers ? one && all && one.number(0, 100) == all.number(0, 100) : !one && !all;
  return is_right && settings["truncate"].boolean_or(true) == rules.rounds_bounds;
}

}  // namespace

void write_rope(const JsonView& config, const std::string& prefix, int64_t head_length,
                const YarnRules& yarn, GgufWriter& to) {
  to.set(prefix + "rope.freq_base", static_cast<float>(base_of(config, head_length)));
  to.set(prefix + "rope.dimension_count",
         static_cast<uint32_t>(rotated_elements(config, head_length)));
  const JsonView settings = settings_of(config);
  const std::string kind = kind_of(settings);
  const std::string scaling = prefix + "rope.scaling.";
  if (kind == "default" || kind == "llama3" || kind == "proportional" || enlarges_base(settings) ||
      grows_base(settings))
    return;
  if (kind == "linear") {
    to.set(scaling + "type", "linear");
    to.set(scaling + "factor", static_cast<float>(settings["factor"].number(1e-6, 1e6)));
    return;
  }
  const auto original = static_cast<uint32_t>(original_context(config));
  to.set(scaling + "original_context_length", original);
  if (kind == "longrope" || kind == "su") {
    const double longer =
        config["max_position_embeddings"].number(1, 1 << 30) / static_cast<double>(original);
    const double magnitude =
        longer > 1 ? std::sqrt(1 + std::log(longer) / std::log(static_cast<double>(original))) : 1;
    to.set(scaling + "type", "longrope");
    // Phi-3.5-MoE states one for short texts and one for long ones.
    const double own = settings["short_mscale"].number_or(magnitude, 0, 1e3);
    if (settings["long_mscale"].number_or(own, 0, 1e3) != own)
      throw Error(ErrorCode::kNotSupported,
                  "config.json: short_mscale and long_mscale of the rotary scaling are unlike");
    to.set(scaling + "attn_factor",
           static_cast<float>(settings["attention_factor"].number_or(own)));
    return;
  }
  if (kind != "yarn" || !is_known_yarn(settings, yarn))
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("config.json: the rotary scaling is {}, which cannot be converted; "
                    "supported are default, linear, dynamic, llama3, longrope, and yarn with the "
                    "attention_factor and the mscale that follow from its factor",
                    printable(settings.json().dump())));
  if (yarn.has_multipliers)
    to.set(scaling + "yarn_log_multiplier",
           static_cast<float>(0.1 * settings["mscale_all_dim"].number(0, 100)));
  to.set(scaling + "type", "yarn");
  to.set(scaling + "factor", static_cast<float>(settings["factor"].number(1e-6, 1e6)));
  if (settings["beta_fast"])
    to.set(scaling + "yarn_beta_fast", static_cast<float>(settings["beta_fast"].number(1e-6, 1e6)));
  if (settings["beta_slow"])
    to.set(scaling + "yarn_beta_slow", static_cast<float>(settings["beta_slow"].number(1e-6, 1e6)));
}

std::vector<ComputedTensor> rope_tensors(const JsonView& config, int64_t head_length) {
  const JsonView settings = settings_of(config);
  const std::string kind = kind_of(settings);
  if (kind == "llama3") return {{"rope_freqs.weight", llama3_divisors(config, head_length)}};
  if (kind == "proportional") {
    const double part = settings["partial_rotary_factor"].number_or(1, 0, 1);
    const auto pairs = static_cast<size_t>(head_length / 2);
    const auto turned = static_cast<size_t>(static_cast<double>(head_length) * part / 2);
    std::vector<float> divisors(pairs, 1e30f);  // so that the others stay where they are
    std::fill_n(divisors.begin(), std::min(turned, pairs), 1.0f);
    return {{"rope_freqs.weight", divisors}};
  }
  if (kind != "longrope" && kind != "su") return {};
  const auto count = static_cast<size_t>(rotated_elements(config, head_length) / 2);
  return {{"rope_factors_long.weight", numbers_of(settings["long_factor"], count)},
          {"rope_factors_short.weight", numbers_of(settings["short_factor"], count)}};
}

}  // namespace prism::llm
