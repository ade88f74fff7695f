// Writes the options of a generation as JSON.
#include "server/api/generation_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace prism::server {

double rounded(float value) { return std::round(double{value} * 1e6) / 1e6; }

Json generation_settings(const llm::GenerationOptions& o, const llm::Tokenizer& tokenizer) {
  const llm::SamplerOptions& s = o.sampler;
  Json biases = Json::array();
  const auto add_bias = [&](int32_t token, double bias) {
    biases.push_back({{"token", token}, {"bias", bias}});  // minus infinity is written as null
  };
  for (const auto& [token, bias] : s.logit_bias) add_bias(token, bias);
  if (o.ignore_end)
    for (const int32_t token : tokenizer.end_tokens())
      add_bias(token, -std::numeric_limits<double>::infinity());
  Json stages = Json::array();
  for (const llm::SamplerStage each : s.stages) stages.push_back(llm::sampler_stage_name(each));
  Json json = {{"n_predict", o.max_tokens},
               {"max_tokens", o.max_tokens},
               {"seed", s.seed},
               {"temperature", rounded(s.temperature)},
               {"dynatemp_range", rounded(s.dynamic_range)},
               {"dynatemp_exponent", rounded(s.dynamic_exponent)},
               {"top_k", s.top_k},
               {"top_p", rounded(s.top_p)},
               {"min_p", rounded(s.min_p)},
               {"typical_p", rounded(s.typical_p)},
               {"top_n_sigma", rounded(s.top_n_sigma)},
               {"xtc_probability", rounded(s.xtc_probability)},
               {"xtc_threshold", rounded(s.xtc_threshold)},
               {"repeat_last_n", s.penalties.window},
               {"repeat_penalty", rounded(s.penalties.repeat)},
               {"presence_penalty", rounded(s.penalties.presence)},
               {"frequency_penalty", rounded(s.penalties.frequency)},
               {"dry_multiplier", rounded(s.dry.multiplier)},
               {"dry_base", rounded(s.dry.base)},
               {"dry_allowed_length", s.dry.allowed_length},
               {"dry_penalty_last_n", s.dry.window},
               {"mirostat", s.mirostat},
               {"mirostat_tau", rounded(s.mirostat_tau)},
               {"mirostat_eta", rounded(s.mirostat_eta)},
               {"n_keep", o.keep},
               {"ignore_eos", o.ignore_end},
               {"n_probs", std::max<int64_t>(o.scores, 0)}};
  json["dry_sequence_breakers"] = s.dry_breakers;
  json["stop"] = o.stop;
  json["logit_bias"] = std::move(biases);
  json["samplers"] = std::move(stages);
  return json;
}

}  // namespace prism::server
