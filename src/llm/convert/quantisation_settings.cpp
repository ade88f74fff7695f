// Which quantised folders can be converted, by their settings.
#include "llm/convert/quantisation_settings.h"

#include <string>

namespace prism::llm {

bool has_scaled_weights(const JsonView& settings) {
  const std::string method = settings["quant_method"].string_or("");
  if (method == "fp8" || method == "fbgemm_fp8") return true;
  if (method != "compressed-tensors" || !settings["config_groups"]) return false;
  for (const auto& [name, group] : settings["config_groups"].members()) {
    const JsonView weights = group["weights"];
    if (weights["num_bits"].integer_or(0) != 8 || !weights["symmetric"].boolean_or(true))
      return false;
  }
  return true;
}

bool has_mxfp4_weights(const JsonView& settings) {
  const std::string method = settings["quant_method"].string_or("");
  return method == "mxfp4" || (method == "compressed-tensors" &&
                               settings["format"].string_or("") == "mxfp4-pack-quantized");
}

}  // namespace prism::llm
