// Matches tensors with the rules of an architecture.
#include "llm/convert/planned_tensors.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/printable.h"
#include "llm/convert/hf_rope.h"
#include "llm/convert/hf_rules.h"
#include "llm/convert/quantisation_settings.h"
#include "llm/convert/sentence_settings.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

// "model.layers.3.mlp.up_proj.weight" is "model.layers.{}.mlp.up_proj.weight" and 3.
struct ParsedName {
  std::string pattern;
  std::vector<int64_t> numbers;
};

// most: numbers that stand for themselves beyond the first few stay as they are.
ParsedName parse_name(const std::string& name, size_t most) {
  ParsedName parsed;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view step(name.data() + at, end - at);
    int64_t number = -1;
    const auto [stop, failed] = std::from_chars(step.data(), step.data() + step.size(), number);
    const bool is_number = parsed.numbers.size() < most && failed == std::errc() &&
                           stop == step.data() + step.size() && number >= 0 && number < 1 << 20 &&
                           step == std::to_string(number);
    if (is_number) parsed.numbers.push_back(number);
    if (!parsed.pattern.empty() || at > 0) parsed.pattern += '.';
    parsed.pattern += is_number ? std::string_view("{}") : step;
    at = end + 1;
  }
  return parsed;
}

bool is_mxfp4(TensorChange change) {
  return change == TensorChange::even_mxfp4 || change == TensorChange::odd_mxfp4 ||
         change == TensorChange::all_mxfp4 || change == TensorChange::row_mxfp4;
}

// Matrices behind the pooling of sentence-transformers, whatever the architecture.
constexpr TensorRule kDense[] = {{"dense_2.weight", "dense_2.weight"},
                                 {"dense_2.bias", "dense_2.bias"},
                                 {"dense_3.weight", "dense_3.weight"},
                                 {"dense_3.bias", "dense_3.bias"}};

class Planner {
 public:
  Planner(const HfArchitecture& architecture, const HfFolder& folder)
      : architecture_(architecture), folder_(folder), config_(folder.config()) {
    for (const auto& rules : architecture.tensors)
      for (const TensorRule& rule : rules) rules_[rule.from].push_back(&rule);
    for (const TensorRule& rule : kDense) rules_[rule.from].push_back(&rule);
    layers_ = config_["num_hidden_layers"].integer(1, 4096);
    layers_ = std::max(layers_, config_["num_decoder_layers"].integer_or(0, 0, 4096));
    proposing_ = config_["num_nextn_predict_layers"].integer_or(0, 0, 64);
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts",
                            "moe_num_experts", "moe_num_primary_experts"})
      experts_ = std::max(experts_, config_[key].integer_or(0, 0, 1024));
    states_ = config_["altup_num_inputs"].integer_or(1, 1, 64) - 1;  // beside the first
    if (architecture.has_heads) head_length_ = head_length(config_);
    is_scaled_ = has_scaled_weights(config_["quantization_config"]);
  }

  std::vector<PlannedTensor> plan(int64_t context) {
    // T5 scales what goes into an output that is the embedding; a file says that it does not by an
    // output of its own.
    const bool is_scaled = config_["scale_decoder_outputs"].boolean_or(true);
    const bool is_tied =
        is_scaled && config_["tie_word_embeddings"].boolean_or(architecture_.is_tied);
    for (const auto& [name, entry] : folder_.tensors()) {
      if (name.starts_with("mtp.") || name.starts_with("model.mtp.")) continue;  // for speculation
      if (is_scaled_ && is_scale_name(name)) continue;  // goes with its weight
      std::string own =
          name.starts_with(architecture_.prefix) ? name.substr(architecture_.prefix.size()) : name;
      if (!own.starts_with(architecture_.added_prefix) && !own.starts_with("dense_"))
        own.insert(0, architecture_.added_prefix);
      // Of the layer; the parts of T5's have numbers, too.
      ParsedName parsed = rules_.contains(own) ? ParsedName{own, {}} : parse_name(own, 1);
      if (!rules_.contains(parsed.pattern)) parsed = parse_name(own, 2);
      const auto found = rules_.find(parsed.pattern);
      const int64_t layer = parsed.numbers.empty() ? -1 : parsed.numbers[0];
      if (layer >= layers_ && layer < layers_ + proposing_) continue;  // for speculation
      if (found == rules_.end() || layer >= layers_)
        throw Error(
            ErrorCode::kNotSupported,
            fmt::format("{}: the tensor {} {} is used by no rule for {}, so the model would "
                        "be wrong without it; please report the model",
                        folder_.path(), printable(name), entry.shape.text(), architecture_.name));
      for (const TensorRule* rule : found->second)
        if (!rule->to.empty() && is_for(*rule, layer) &&
            (rule->to != "output.weight" || makes_output(*rule, is_tied)))
          add(name, entry, *rule, parsed.numbers, context);
    }
    const auto table = planned_.find({-1, "token_embd.weight"});
    if (!is_scaled && rules_.contains("lm_head.weight") && table != planned_.end()) {
      PlannedTensor output = table->second;
      output.name = "output.weight";
      planned_.emplace(std::pair(-1, "output.weight"), std::move(output));
    }
    add_answers();
    std::vector<PlannedTensor> all;
    for (auto& [key, tensor] : planned_) {
      check_complete(tensor);
      all.push_back(std::move(tensor));
    }
    std::vector<ComputedTensor> computed;
    if (architecture_.is_rotated) computed = rope_tensors(config_, rotary_length(config_));
    if (architecture_.computed)
      for (ComputedTensor& each : architecture_.computed(config_))
        computed.push_back(std::move(each));
    for (ComputedTensor& each : computed) {
      PlannedTensor tensor;
      tensor.name = std::move(each.name);
      tensor.shape = {static_cast<int64_t>(each.values.size())};
      tensor.computed = std::move(each.values);
      all.push_back(std::move(tensor));
    }
    return all;
  }

 private:
  bool is_for(const TensorRule& rule, int64_t layer) const {
    return rule.layers == RuleLayers::all || is_other(layer) == (rule.layers == RuleLayers::others);
  }

  bool is_other(int64_t layer) const {
    return architecture_.is_other && architecture_.is_other(config_, layer);
  }

  // An output that is the embedding has a rule of its own where the two have different factors.
  bool makes_output(const TensorRule& rule, bool is_tied) const {
    const auto& rules = rules_.at(rule.from);
    const bool is_embedding = std::ranges::any_of(
        rules, [](const TensorRule* each) { return each->to == "token_embd.weight"; });
    return is_embedding == is_tied;
  }

  // A decoder that ranks needs the rows of its answers in place of the output.
  void add_answers() {
    const std::optional<Answers> answers = sentence_settings(folder_).answers;
    if (!answers) return;
    const bool has_output = planned_.contains({-1, "output.weight"});
    const auto from = planned_.find({-1, has_output ? "output.weight" : "token_embd.weight"});
    if (from == planned_.end() || architecture_.gguf != "qwen3")
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("{}: scores made of the logits of two tokens are not known for {}; "
                              "they are for Qwen3ForCausalLM",
                              folder_.path(), architecture_.name));
    PlannedTensor rows = from->second;
    const int64_t most = rows.shape[0] - 1, width = rows.shape[1];
    if (answers->yes > most || answers->no > most)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: the score is made of the tokens {} and {}, but there are {}",
                              folder_.path(), answers->yes, answers->no, most + 1));
    rows.name = "cls.output.weight";
    rows.shape = {2, width};
    rows.strides = Strides{answers->yes * width, 0, (answers->no - answers->yes) * width, 1, 2};
    planned_.emplace(std::pair(-1, "cls.output.weight"), std::move(rows));
    if (has_output) planned_.erase({-1, "output.weight"});
  }

  void add(const std::string& name, const SafetensorsEntry& entry, const TensorRule& rule,
           const std::vector<int64_t>& numbers, int64_t context) {
    const bool is_packed = is_mxfp4(rule.change);
    const bool has_scales = is_scaled_ && !is_packed && is_scaled_weight(entry);
    if (entry.shape.rank() == 0 || entry.shape.elements() == 0 ||
        (is_packed ? entry.type != DType::u8 : !has_scales && !is_float(entry.type)))
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("{}: tensor {} is {} {}; weights must be f32, f16 or bf16 and not "
                              "empty",
                              folder_.path(), printable(name), ElementType(entry.type).name(),
                              entry.shape.text()));
    const bool has_layer = rule.to.find("{}") != rule.to.npos;
    const bool has_number = numbers.size() > (has_layer ? 1u : 0u);
    const bool is_joined = rule.change == TensorChange::joined,
               is_product = rule.change == TensorChange::product;
    const std::vector<const SafetensorsEntry*> shards = folder_.shards(name);
    const Shape whole = joined_shape(name, shards, entry.shape, rule.change);
    const bool is_stacked = has_number || (rule.of > 1 && !is_joined && !is_product);
    const int64_t layer = has_layer && !numbers.empty() ? numbers[0] : -1;
    const int64_t count = !has_number ? rule.of : has_layer ? experts_ / rule.of : states_;
    const ElementType type = is_packed                  ? ElementType(BlockType::mxfp4)
                             : has_scales || is_product ? ElementType(DType::f32)
                                                        : ElementType(entry.type);
    PlannedTensor& tensor = planned_[{layer, rule.to}];
    if (tensor.sources.empty()) {
      tensor.name = fmt::format(fmt::runtime(rule.to), layer);
      tensor.shape = whole;
      tensor.type = type;
      tensor.change = rule.change;
      tensor.head_length = head_length_;
      tensor.sources.resize(static_cast<size_t>(count));
      if (has_scales) tensor.source_scales.resize(tensor.sources.size());
      if (architecture_.factors) tensor.factors = architecture_.factors(config_, rule.to, layer);
      layer_ = layer;
      if (!lay_out(tensor, name, whole, context, rule.of > 1)) does_not_fit(name, entry);
      if (is_stacked) tensor.shape.insert(0, count);
      if (is_joined) tensor.shape[0] *= count;
      if (is_packed) tensor.block_scales.resize(tensor.sources.size());
    }
    const auto place = static_cast<size_t>(has_number ? numbers.back() : rule.place);
    const int64_t elements =
        rule.change == TensorChange::row_mxfp4 ? 2 * whole.elements() : whole.elements();
    const bool has_shape = is_product ? elements == tensor.shape.elements()
                                      : count == 1 || elements * count == tensor.shape.elements();
    if (place >= tensor.sources.size() || !has_shape || !(tensor.type == type) ||
        tensor.source_scales.empty() == has_scales)
      does_not_fit(name, entry);
    tensor.sources[place] = &entry;
    if (!shards.empty()) {
      tensor.shards.resize(tensor.sources.size());
      tensor.shards[place] = shards;
    }
    if (is_packed) tensor.block_scales[place] = block_scales(name, entry, rule.change);
    if (has_scales)
      tensor.source_scales[place] =
          scales_of(folder_, name, entry, tensor.ranks ? tensor.ranks->count : 1);
  }

  // The shape of a tensor of these shards, or of the one that is whole.
  Shape joined_shape(const std::string& name, const std::vector<const SafetensorsEntry*>& shards,
                     Shape shape, TensorChange change) const {
    if (shards.empty()) return shape;
    const bool is_rows = change == TensorChange::sharded_rows;
    for (const SafetensorsEntry* each : shards)
      if ((!is_rows && change != TensorChange::sharded_columns) || shape.rank() != 2 ||
          !(each->shape == shape) || each->type != shards[0]->type || each->f8 != shards[0]->f8 ||
          each->f8 != F8Format::none)
        throw Error(ErrorCode::kNotSupported,
                    fmt::format("{}: tensor {} has {} shards, which cannot be joined: one of them "
                                "is {} {}; matrices of experts of f32, f16 or bf16 can be",
                                folder_.path(), printable(name), shards.size(),
                                ElementType(each->type).name(), each->shape.text()));
    int64_t& length = shape[is_rows ? 0 : 1];
    length *= static_cast<int64_t>(shards.size());
    const char* const key =
        config_["moe_intermediate_size"] ? "moe_intermediate_size" : "intermediate_size";
    if (length != config_[key].integer(1, 1 << 20))
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: the {} shards of tensor {} have {} {}, but {} is {}; are files "
                              "missing?",
                              folder_.path(), shards.size(), printable(name), length,
                              is_rows ? "rows" : "columns", key, config_[key].integer(1, 1 << 20)));
    return shape;
  }

  [[noreturn]] void does_not_fit(const std::string& name, const SafetensorsEntry& entry) const {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: tensor {} of {} {} does not fit config.json: {} experts, heads "
                            "of {} elements",
                            folder_.path(), printable(name), ElementType(entry.type).name(),
                            entry.shape.text(), experts_, head_length_));
  }

  // Sets the shape that the change of a source of this shape gives; false if it does not fit.
  bool lay_out(PlannedTensor& tensor, const std::string& name, const Shape& from, int64_t context,
               bool is_part = false) {
    using enum TensorChange;
    const int64_t rank = from.rank(), columns = from[-1], rows = rank > 1 ? from[-2] : 1;
    const int64_t odd = tensor.change == odd_columns || tensor.change == odd_transposed;
    const auto with_last = [&](int64_t last_rows, int64_t last_columns) {
      tensor.shape = from;
      if (rank > 1) tensor.shape[-2] = last_rows;
      tensor.shape[-1] = last_columns;
    };
    switch (tensor.change) {
      case none:
      case add_one:
      case add_fifth:
      case add_small:
      case joined:
      case ternary:
      case sharded_rows:
      case sharded_columns:
        return true;
      case unit_rows:
        return rank == 2;
      case column:
        tensor.shape = {from.elements(), 1};
        return rank == 1;
      case by_turns:
      case by_turns_columns: {
        const int64_t heads = config_["num_attention_heads"].integer(1, 1 << 16),
                      turns = config_["n_shared_head"].integer(1, 1 << 16);
        tensor.tiles = Tiles{0, head_length_, turns, heads / turns};
        return rank == 2 && heads % turns == 0 &&
               (tensor.change == by_turns ? rows : columns) == heads * head_length_;
      }
      case negative_exp:
      case positive_exp:
        if (rank == 4) tensor.shape = {from.elements()};  // Kimi's, one for each head
        return true;
      case heads_negative_exp:
        tensor.change = negative_exp;
        tensor.shape = {config_["num_attention_heads"].integer(1, 1 << 16)};
        return from.elements() >= tensor.shape[0];
      case product:
        tensor.shape = {from.elements()};
        return true;
      case index_halves:
        tensor.head_length = config_["index_head_dim"].integer(1, 1 << 12);
        tensor.rotated = config_["qk_rope_head_dim"].integer(2, tensor.head_length);
        return tensor.rotated % 2 == 0 && from[0] % tensor.head_length == 0;
      case rotary_elements:
        tensor.rotated = head_length_;
        return rank == 2 && head_length_ % 2 == 0 && columns == head_length_;
      case rotary:
        tensor.rotated = rotated_elements(config_, head_length_);
        return head_length_ % 2 == 0 && from[0] % head_length_ == 0;
      case fused_rotary:
        tensor.plain_rows =
            config_[config_["num_key_value_heads"] ? "num_key_value_heads" : "num_attention_heads"]
                .integer(1, 1 << 16) *
            head_length_;
        return head_length_ % 2 == 0 && from[0] % head_length_ == 0 && from[0] > tensor.plain_rows;
      case paired:
        tensor.change = padded;
        tensor.shape[0] = std::max<int64_t>(from[0], 2);
        return rank == 2;
      case padded:
        tensor.shape[0] = std::max(from[0], config_["vocab_size"].integer(1, 1 << 24));
        return rank == 2;
      case split_heads:
        return from[0] % (3 * head_length_) == 0;
      case by_rank: {
        const int64_t key_heads = config_["num_key_value_heads"].integer(1, 1 << 16),
                      heads = config_["num_attention_heads"].integer(1, 1 << 16),
                      own = is_other(layer_) ? windowed_size(config_, "num_key_value_heads")
                                             : key_heads;
        const int64_t values = config_["v_head_dim"].integer_or(head_length_, 1, 1 << 14);
        tensor.ranks = Ranks{key_heads,
                             {heads / key_heads * head_length_, own / key_heads * head_length_,
                              own / key_heads * values}};
        return rank == 2 && heads % key_heads == 0 && own % key_heads == 0 &&
               from[0] == heads * head_length_ + own * (head_length_ + values);
      }
      case split_groups:
      case rotary_groups: {
        const int64_t heads = config_["num_attention_heads"].integer(1, 1 << 16);
        const int64_t groups = from[0] / head_length_ - heads;  // twice, for k and v
        if (from[0] % head_length_ != 0 || groups < 2 || groups % 2 != 0) return false;
        tensor.shared_by = heads / (groups / 2);
        tensor.plain_rows = groups / 2 * head_length_;
        return heads % (groups / 2) == 0;
      }
      case cut:
        tensor.skipped_rows = skipped_positions(architecture_, config_);
        tensor.shape[0] = std::min(tensor.shape[0] - tensor.skipped_rows, context);
        return tensor.shape[0] >= 1;
      case squeezed:
        if (rank != 3 || from[1] != 1) return false;
        tensor.shape = {from[0], from[2]};
        return true;
      case grouped: {
        const char* const key = config_["n_groups"] ? "n_groups" : "mamba_n_groups";
        const int64_t groups = config_[key].integer(1, 1 << 16);
        tensor.shape = {groups, from.elements() / groups};
        return from.elements() % groups == 0;
      }
      case transposed:
        with_last(columns, rows);
        tensor.strides = Strides{0, rows * columns, 1, columns, columns};
        return rank == 2 || rank == 3;
      case even_transposed:
      case odd_transposed:
        with_last(columns / 2, rows);
        tensor.strides = Strides{odd, rows * columns, 2, columns, columns / 2};
        return (rank == 2 || rank == 3) && columns % 2 == 0;
      case left_transposed:
      case right_transposed:
        with_last(columns / 2, rows);
        tensor.strides = Strides{tensor.change == right_transposed ? columns / 2 : 0,
                                 rows * columns, 1, columns, columns / 2};
        return (rank == 2 || rank == 3) && columns % 2 == 0;
      case fused_gate:
      case fused_up:
      case fused_down: {
        const bool is_down = tensor.change == fused_down, is_up = tensor.change == fused_up;
        const int64_t width = config_["hidden_size"].integer(1, 1 << 20);
        const bool is_plain = (is_down ? rows : columns) == width;
        tensor.change = is_down    ? (is_plain ? none : transposed)
                        : is_plain ? (is_up ? second_half : first_half)
                                   : (is_up ? right_transposed : left_transposed);
        return lay_out(tensor, name, from, context);
      }
      case even_columns:
      case odd_columns:
        with_last(rows, columns / 2);
        tensor.strides = Strides{odd, rows * columns, columns, 2, rows};
        return columns % 2 == 0;
      case first_half:
      case second_half:
        with_last(rows / 2, columns);
        tensor.strides = Strides{tensor.change == second_half ? rows / 2 * columns : 0,
                                 rows * columns, columns, 1, rows / 2};
        return rank > 1 && rows % 2 == 0;
      case tiled:
      case tiled_negative_exp:
      case tiled_columns:
        return tile(tensor, from);
      case latent_keys:
      case latent_values: {
        const auto size = [&](const char* key) {
          return is_other(layer_) ? windowed_size(config_, key) : config_[key].integer(1, 1 << 14);
        };
        const int64_t keys = size("qk_nope_head_dim"), values = size("v_head_dim"),
                      both = keys + values;
        if (rank != 2 || rows % both != 0) return false;
        const bool is_keys = tensor.change == latent_keys;
        tensor.shape =
            is_keys ? Shape{rows / both, columns, keys} : Shape{rows / both, values, columns};
        tensor.strides = is_keys ? Strides{0, both * columns, 1, columns, columns}
                                 : Strides{keys * columns, both * columns, columns, 1, values};
        return true;
      }
      case even_mxfp4:
      case odd_mxfp4:
      case all_mxfp4:
        if (rank != 4) return false;
        tensor.shape = {from[0], tensor.change == all_mxfp4 ? from[1] : from[1] / 2, from[2] * 32};
        return tensor.change == all_mxfp4 || from[1] % 2 == 0;
      case row_mxfp4:
        tensor.shape = {rows, columns * 2};
        return rank == 2;
      case flattened:
        tensor.shape = {from.elements()};
        return true;
      case spread:
        tensor.shape = {1, 1, from.elements() / (is_part ? 1 : from[0])};
        if (!is_part) tensor.shape.insert(0, from[0]);
        return true;
      case swapped_mixes: {
        const int64_t rank_each = rank == 2 ? columns / 5 : rows;
        tensor.shape = rank == 2 ? Shape{columns, rows} : Shape{from[0], columns, rows};
        tensor.strides = rank == 2 ? Strides{0, rank_each, 1, columns, rank_each}
                                   : Strides{0, rows * columns, 1, columns, columns};
        tensor.strides->order = {3, 1, 2, 0, 4};
        return rank == 2 ? columns % 5 == 0 : rank == 3 && from[0] == 5;
      }
      case by_expert:
      case by_expert_transposed: {
        if (rank != 2 || experts_ < 1 || rows % experts_ != 0) return false;
        const int64_t each = rows / experts_;
        tensor.shape = {experts_, each, columns};
        if (tensor.change == by_expert) return true;
        tensor.shape = {experts_, columns, each};
        tensor.strides = Strides{0, each * columns, 1, columns, columns};
        return true;
      }
    }
    return false;
  }

  // Rows, or columns, that belong to value heads, behind those of queries and keys.
  bool tile(PlannedTensor& tensor, const Shape& from) {
    const int64_t keys = config_["linear_num_key_heads"].integer(1, 1 << 16),
                  heads = config_["linear_num_value_heads"].integer(1, 1 << 16),
                  length = config_["linear_value_head_dim"].integer(1, 1 << 14);
    if (from.rank() == 3 && from[1] == 1) tensor.shape = {from[0], from[2]};  // a convolution
    const int64_t count = tensor.change == TensorChange::tiled_columns ? from[-1] : from[0];
    const int64_t unit = count == heads ? 1 : length;
    tensor.tiles = Tiles{count - heads * unit, unit, keys, heads / keys};
    return heads % keys == 0 && count >= heads * unit;
  }

  // The scales of blocks [experts, rows, blocks, 16 bytes] are [experts, rows, blocks]; those of
  // [rows, blocks * 16 bytes] are [rows, blocks].
  const SafetensorsEntry* block_scales(const std::string& name, const SafetensorsEntry& entry,
                                       TensorChange change) const {
    const bool is_row = change == TensorChange::row_mxfp4;
    const std::string_view blocks = is_row ? "_packed" : "_blocks";
    const auto found = folder_.tensors().find(name.substr(0, name.size() - blocks.size()) +
                                              (is_row ? "_scale" : "_scales"));
    const Shape& of = entry.shape;
    const Shape wanted = is_row ? Shape{of[0], of[-1] / 16} : Shape{of[0], of[1], of[2]};
    if (found == folder_.tensors().end() || of[-1] % 16 != 0 || (!is_row && of[3] != 16) ||
        (found->second.type != DType::u8 && found->second.f8 != F8Format::e8m0) ||
        !(found->second.shape == wanted))
      does_not_fit(name, entry);
    return &found->second;
  }

  void check_complete(const PlannedTensor& tensor) const {
    for (size_t i = 0; i < tensor.sources.size(); ++i)
      if (!tensor.sources[i])
        throw Error(ErrorCode::kCorruptFile, fmt::format("{}: expert {} has no tensor for {}",
                                                         folder_.path(), i, tensor.name));
  }

  const HfArchitecture& architecture_;
  const HfFolder& folder_;
  JsonView config_;
  std::map<std::string_view, std::vector<const TensorRule*>, std::less<>> rules_;
  std::map<std::pair<int64_t, std::string_view>, PlannedTensor> planned_;  // by layer
  int64_t layers_ = 0, proposing_ = 0, experts_ = 0, states_ = 0, head_length_ = 0;
  int64_t layer_ = -1;      // of the tensor that is laid out
  bool is_scaled_ = false;  // weights may have 8 bits and scales
};

}  // namespace

std::vector<PlannedTensor> plan_tensors(const HfArchitecture& architecture, const HfFolder& folder,
                                        int64_t context) {
  return Planner(architecture, folder).plan(context);
}

}  // namespace prism::llm
