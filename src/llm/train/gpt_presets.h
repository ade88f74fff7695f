// Named shapes of GPTs, with settings that train them well.
#pragma once

#include <span>
#include <string_view>

#include "llm/train/gpt.h"

namespace prism::llm {

struct GptPreset {
  std::string_view name;
  GptShape shape;
  int64_t batch, steps;
  double rate;
};

std::span<const GptPreset> gpt_presets();
// Throws kInvalidArgument with the nearest name and the list.
const GptPreset& gpt_preset(std::string_view name);

}  // namespace prism::llm
