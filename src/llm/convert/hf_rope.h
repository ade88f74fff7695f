// The rotation of queries and keys by position: from config.json to the keys and tensors of GGUF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "llm/gguf/gguf_writer.h"

namespace prism::llm {

// What an architecture does with YaRN.
struct YarnRules {
  bool rounds_bounds = true;     // of the interpolated frequencies
  bool has_multipliers = false;  // mscale and mscale_all_dim
};

// Writes the base, the number of rotated elements and the scaling. Throws kNotSupported naming a
// kind of scaling that GGUF files cannot express.
void write_rope(const JsonView& config, const std::string& prefix, int64_t head_length,
                const YarnRules& yarn, GgufWriter& to);

// How many elements of a head of this length are rotated.
int64_t rotated_elements(const JsonView& config, int64_t head_length);

// A tensor that is computed from config.json: the divisors of frequencies.
struct ComputedTensor {
  std::string name;
  std::vector<float> values;
};
std::vector<ComputedTensor> rope_tensors(const JsonView& config, int64_t head_length);

}  // namespace prism::llm
