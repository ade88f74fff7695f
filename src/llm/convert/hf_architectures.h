// The table that turns the names of Hugging Face models into those of GGUF files: tensors,
// hyperparameters, and what a model's layers must look like.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "llm/convert/hf_rope.h"
#include "llm/gguf/gguf_writer.h"

namespace prism::llm {

// What happens to the rows of a tensor on their way.
enum class TensorChange : uint8_t {
  none,
  rotary,         // GGUF's Llama rotates adjacent elements of a head, transformers its halves
  index_halves,   // the reverse, for an indexer, whose halves GGUF rotates
  fused_rotary,   // the same for q and k; the rows of v behind them stay
  paired,         // a single row gets a row of zeros behind it
  padded,         // tokens without a row get zeros
  add_one,        // Gemma's norms multiply by 1 + weight
  cut,            // rows beyond the context, and those before the first position, are left out
  transposed,     // GPT-2's matrices have a row for each input
  split_heads,    // q, k and v of each head follow each other; GGUF has all of q, of k, of v
  split_groups,   // the same, with several heads of q for each of k and v
  rotary_groups,  // the same, with the change of rotary for q and k
  negative_exp,   // Mamba's rates are stored as the logarithms of their negatives
  positive_exp,   // others as their logarithms
  squeezed,       // convolutions have a second axis of length 1
  grouped,        // a norm of Mamba 2 has a row for each group
  first_half,     // the rows of a gate, which those of another matrix follow
  second_half,
  even_columns,  // of a matrix in which those of two alternate
  odd_columns,
  even_transposed,  // the same, with a row for each input
  odd_transposed,
  left_transposed,  // the left half of the columns, with a row for each input
  right_transposed,
  fused_gate,  // of [experts, 2 * inner, width], or of its transpose
  fused_up,
  fused_down,
  even_mxfp4,  // the rows of two matrices alternate, in blocks of MXFP4 with scales beside them
  odd_mxfp4,
  all_mxfp4,
  tiled,  // value heads that share a key head are apart, as GGUF's Qwen3.5 has them
  tiled_negative_exp,
  tiled_columns,
  latent_keys,    // the part of each head that makes keys, transposed
  latent_values,  // the part of each head that makes values
  flattened,      // to a single axis
  spread,         // rows that GGUF has as [rows, 1, 1, columns]
  by_expert,      // the rows of all experts in one matrix
  by_expert_transposed,
  swapped_mixes,  // transposed; RWKV's receptance has the decay's place among five, and vice versa
  joined,         // the rows of the tensors of several names, in the order of their places
  by_turns,       // heads of q that take turns in sharing those of k and v; GGUF has them in groups
  by_turns_columns,
  column,     // an element for each head, as a row of its own
  unit_rows,  // rows are divided by their lengths
  ternary,    // elements become -1, 0 or 1, times the mean of the absolute values
  add_fifth,  // PLaMo's norms behind a block multiply by this much more than their weights
  add_small,
  rotary_elements,  // the change of rotary, of a norm with a row for each head
  // Of Kimi K3: negative_exp of the first elements, one for each head; the product of two tensors'
  // elements; a matrix of one expert in blocks of MXFP4.
  heads_negative_exp,
  product,
  row_mxfp4,
  // Matrices of which each shard of the folder has some rows, or some columns.
  sharded_rows,
  sharded_columns,
  // The rows of q, k and v of each rank of tensor parallelism; GGUF has all of q, of k, of v.
  by_rank,
};

// The layers that a rule is for.
enum class RuleLayers : uint8_t { all, usual, others };

// "{}" stands for the number of the layer; a second one in `from` for an expert, whose tensors are
// stacked, and so are those with a number that `to` lacks. An empty `to` leaves the tensor out on
// purpose. Several rules may have the same `from`. A `from` with a number is for that layer alone.
struct TensorRule {
  std::string_view from, to;
  TensorChange change = TensorChange::none;
  // Tensors of several names are stacked in this order. Of those with a number, each belongs to
  // `of` experts.
  int64_t place = 0, of = 1;
  RuleLayers layers = RuleLayers::all;
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

class HfFolder;

// The factor of some rows of a tensor, in order.
struct RowFactor {
  int64_t rows = 0;
  double factor = 1;
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
  bool has_heads = true;              // of attention
  YarnRules yarn = {};
  bool has_mxfp4 = false;       // quantised experts are known
  bool has_ternary = false;     // weights that are quantised when a model is loaded are known
  int64_t default_context = 0;  // if config.json does not say
  // Sets what is in small tensors of the folder.
  void (*from_tensors)(const HfFolder& folder, GgufWriter& to) = nullptr;
  // The factors of a tensor's rows, by its rule and layer; empty: none.
  std::vector<RowFactor> (*factors)(const JsonView& config, std::string_view to,
                                    int64_t layer) = nullptr;
  std::string_view added_prefix = "";  // of tensors' names, where files leave it out
  // The positions for which Prism's layers are right; 0: all. null: all.
  int64_t (*right_up_to)(const JsonView& config) = nullptr;
  // Tells rows of the same name apart; null: the row is for all such models.
  bool (*fits)(const JsonView& config) = nullptr;
  // Tells the layers of RuleLayers::others: recurrent ones, or those with windows.
  bool (*is_other)(const JsonView& config, int64_t layer) = nullptr;
  bool ranks = false;  // a decoder that reads a query and a document, and scores them
  // Tensors that follow from config.json.
  std::vector<ComputedTensor> (*computed)(const JsonView& config) = nullptr;
  // Without an output matrix: embeddings are the mean, if sentence-transformers does not say.
  bool is_bare = false;
};

// Another name in config.json of an architecture with the same layers, tensors and settings.
struct HfAlias {
  std::string_view name, known_as;
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
