// The table that turns the names of Hugging Face models into those of GGUF files: tensors,
// hyperparameters, and what a model's layers must look like.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "llm/gguf/gguf_writer.h"

namespace prism::llm {

// What happens to the rows of a tensor on their way.
enum class TensorChange : uint8_t {
  none,
  rotary,       // GGUF's Llama rotates adjacent elements of a head, transformers its halves
  add_one,      // Gemma's norms multiply by 1 + weight
  cut,          // rows beyond the context, and those before the first position, are left out
  transposed,   // GPT-2's matrices have a row for each input
  split_heads,  // q, k and v of each head follow each other; GGUF has all of q, of k, of v
};

// "{}" stands for the number of the layer; a second one in `from` for an expert, whose tensors are
// stacked. An empty `to` leaves the tensor out on purpose.
struct TensorRule {
  std::string_view from, to;
  TensorChange change = TensorChange::none;
};

enum class ConfigKind : uint8_t { integer, number };

// A value of config.json and its key in the file, without the architecture's prefix.
struct ConfigRule {
  std::string_view from, to;
  ConfigKind kind = ConfigKind::integer;
  bool is_required = true;
};

// A value of config.json that decides what the layers compute: if it is there, it must be one of
// these, written as JSON.
struct Expectation {
  std::string_view key;
  std::vector<std::string_view> values;
};

struct HfArchitecture {
  std::string_view name;  // in config.json's "architectures"
  std::string_view gguf;  // general.architecture
  std::vector<std::span<const TensorRule>> tensors;
  std::vector<std::span<const ConfigRule>> config;
  std::vector<Expectation> expected;
  bool has_windows = false;  // Prism's layers know sliding windows
  // Sets and checks what rows of the table cannot say.
  void (*more)(const JsonView& config, std::string_view prefix, GgufWriter& to) = nullptr;
  bool is_rotated = true;
  bool is_tied = false;               // the output is the embedding, if config.json does not say
  std::string_view prefix = "";       // of tensors' names; files may leave it out
  bool counts_after_padding = false;  // the first position is the one after the padding token's id
};

// Throws kNotSupported naming the architecture found and the known ones.
const HfArchitecture& hf_architecture(const JsonView& config);
std::vector<std::string_view> hf_architecture_names();

// The rows of the position table before the first position, and the positions behind them.
int64_t skipped_positions(const HfArchitecture& architecture, const JsonView& config);
int64_t context_length(const HfArchitecture& architecture, const JsonView& config);

// Throws kNotSupported or kCorruptFile naming the key and the value.
void write_hyperparameters(const HfArchitecture& architecture, const JsonView& config,
                           GgufWriter& to);

}  // namespace prism::llm
