// Reads hyperparameters and checks those that architectures compute.
#include "llm/architectures/model_config.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

namespace {

void check(const char* what, double value) {
  if (!(std::abs(value) <= std::numeric_limits<float>::max()))
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("model: the metadata gives {} for {}; is one of the hyperparameters "
                            "that it follows from wrong?",
                            value, what));
}

}  // namespace

Config model_config(const GgufFile& file, const Architecture& architecture) {
  Config config = read_config(file);
  architecture.configure(file, config);
  set_norm_epsilon(file, config);
  if (config.experts > 0 && config.expert_feed_forward < 1)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("model: neither {} nor {} gives the width of experts",
                            config_key(file, "expert_feed_forward_length"),
                            config_key(file, "feed_forward_length")));
  check("the scale of attention", config.attention_scale);
  check("the scale of embeddings", config.embedding_scale);
  check("the scale of residuals", config.residual_scale);
  check("the scale of logits", config.logit_scale);
  check("the base of rotations", config.rope_base);
  check("the base of rotations in windowed layers", config.local_rope_base);
  check("the size of rotations", config.rope_magnitude);
  check("the size of rotations in windowed layers", config.local_rope_magnitude);
  for (const Xielu& each : config.xielu)
    for (const double value : {each.below, each.above, each.slope, each.epsilon})
      check("a number of xIELU", value);
  return config;
}

}  // namespace prism::llm
