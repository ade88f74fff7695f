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

// nano is for trying things out, tiny learns a book on a laptop, base is as large as GPT-2.
const GptPreset kPresets[] = {
    {"nano",
     {.vocabulary = 512, .context = 64, .layers = 2, .width = 64, .heads = 4},
     16,
     500,
     3e-3},
    {"tiny",
     {.vocabulary = 1024, .context = 128, .layers = 4, .width = 128, .heads = 4},
     16,
     2000,
     2e-3},
    {"small",
     {.vocabulary = 4096, .context = 256, .layers = 6, .width = 384, .heads = 6, .dropout = 0.1},
     32,
     5000,
     1e-3},
    {"medium",
     {.vocabulary = 8192, .context = 512, .layers = 12, .width = 512, .heads = 8, .dropout = 0.1},
     32,
     20000,
     6e-4},
    {"base",
     {.vocabulary = 16384, .context = 1024, .layers = 12, .width = 768, .heads = 12},
     32,
     100000,
     6e-4},
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
