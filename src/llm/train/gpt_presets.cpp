// Named shapes of GPTs.
#include "llm/train/gpt_presets.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

struct Sizes {
  int64_t vocabulary, context, layers, width, heads;
};

GptPreset preset(std::string_view name, Sizes sizes, double dropout, int64_t batch, int64_t steps,
                 double rate) {
  GptPreset result{name, {}, batch, steps, rate};
  result.shape.vocabulary = sizes.vocabulary;
  result.shape.context = sizes.context;
  result.shape.layers = sizes.layers;
  result.shape.width = sizes.width;
  result.shape.heads = sizes.heads;
  result.shape.dropout = dropout;
  return result;
}

// nano is for trying things out, tiny learns a book on a laptop, base is as large as GPT-2.
const GptPreset kPresets[] = {
    preset("nano", {512, 64, 2, 64, 4}, 0, 16, 500, 3e-3),
    preset("tiny", {1024, 128, 4, 128, 4}, 0, 8, 2000, 2e-3),
    preset("small", {4096, 256, 6, 384, 6}, 0.1, 32, 5000, 1e-3),
    preset("medium", {8192, 512, 12, 512, 8}, 0.1, 32, 20000, 6e-4),
    preset("base", {16384, 1024, 12, 768, 12}, 0, 32, 100000, 6e-4),
};

}  // namespace

std::span<const GptPreset> gpt_presets() { return kPresets; }

const GptPreset& gpt_preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &GptPreset::name);
  if (found != std::end(kPresets)) return *found;
  std::vector<std::string> names;
  for (const GptPreset& each : kPresets) names.emplace_back(each.name);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("\"{}\" is not a shape{}", name, valid_names(std::string(name), names)));
}

}  // namespace prism::llm
