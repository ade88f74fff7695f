// Reads hyperparameters from GGUF metadata and checks each against plausible limits.
#include "llm/model/config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kCorruptFile, message);
}

constexpr int64_t kMostContext = int64_t{1} << 30;
constexpr int64_t kMostFeedForward = int64_t{1} << 24;

// Checks a count: at least 1, and small enough that products of a few fit in 64 bits.
int64_t checked(const std::string& key, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    fail(fmt::format("model: {} is {}; it must be from 1 to {}", key, value, most));
  return value;
}

// A number for all layers, or a list with one for each.
std::vector<int64_t> layer_integers(const GgufFile& file, const std::string& key, int64_t layers,
                                    int64_t least, int64_t most) {
  const GgufValue* value = file.find(key);
  std::vector<int64_t> values;
  if (value && value->is_array()) {
    values = file.integers(key);
    if (values.size() < static_cast<size_t>(layers))
      fail(fmt::format("model: {} has {} numbers for {} layers", key, values.size(), layers));
    values.resize(static_cast<size_t>(layers));
  } else {
    values.assign(static_cast<size_t>(layers), file.integer(key));
  }
  for (const int64_t each : values)
    if (each < least || each > most)
      fail(fmt::format("model: {} is {}; it must be from {} to {}", key, each, least, most));
  return values;
}

// Only the best groups of experts are chosen from.
void read_expert_groups(const GgufFile& file, Config& config) {
  config.expert_groups = std::max<int64_t>(
      1, config_integer(file, "expert_group_count", 1, 0, std::max<int64_t>(config.experts, 1)));
  config.expert_groups_used = config_integer(file, "expert_group_used_count", config.expert_groups,
                                             0, config.expert_groups);
  if (config.expert_groups > 1 &&
      (config.experts % config.expert_groups != 0 || config.expert_groups_used == 0))
    fail(
        fmt::format("model: {} experts in {} groups, of which {} are used; the groups must have "
                    "the same size, and at least one must be used",
                    config.experts, config.expert_groups, config.expert_groups_used));
}

// Files may count experts as other architectures do, and have none.
bool has_experts(const GgufFile& file) {
  return std::ranges::any_of(file.tensors(), [](const GgufTensor& each) {
    return each.name.find("_exps.") != std::string::npos ||
           each.name.find(".ffn_gate_inp.") != std::string::npos;
  });
}

RopeScaling read_scaling(const GgufFile& file, const std::string& prefix, int64_t context) {
  const NumberRange from_zero{.zero = true};
  RopeScaling scaling;
  const std::string type_key = prefix + "rope.scaling.type";
  const std::string type(file.string_or(type_key, "none"));
  // Older files have a linear factor and no type.
  const double old_factor = config_number(file, "rope.scale_linear", 0, from_zero);
  scaling.factor = config_number(file, "rope.scaling.factor", old_factor, from_zero);
  if (scaling.factor == 0) scaling.factor = 1;
  const int64_t original =
      config_integer(file, "rope.scaling.original_context_length", 0, 0, kMostContext);
  scaling.original_context = static_cast<uint32_t>(original > 0 ? original : context);
  if (type == "linear" || (type == "none" && scaling.factor != 1 && !file.has(type_key)))
    scaling.kind = RopeScaling::Kind::linear;
  else if (type == "yarn")
    scaling.kind = RopeScaling::Kind::yarn;
  else if ((type == "longrope" || type == "su") && scaling.factor != 1)
    scaling.kind = RopeScaling::Kind::linear;  // beside the divisors
  else if (type != "none" && type != "longrope" && type != "su")
    throw Error(ErrorCode::kNotSupported,
                fmt::format("model: {} is \"{}\"; supported are none, linear, yarn and longrope",
                            type_key, type));
  if (scaling.kind == RopeScaling::Kind::yarn) {
    scaling.beta_fast = config_number(file, "rope.scaling.yarn_beta_fast", 32);
    scaling.beta_slow = config_number(file, "rope.scaling.yarn_beta_slow", 1);
    // The factor of files multiplies the one that follows from the scaling.
    const double grown = scaling.factor > 1 ? 0.1 * std::log(scaling.factor) + 1 : 1;
    scaling.attention_factor =
        config_number(file, "rope.scaling.attn_factor", 0, from_zero) * grown;
  }
  return scaling;
}

}  // namespace

std::string config_key(const GgufFile& file, const char* name) {
  return fmt::format("{}.{}", file.string("general.architecture"), name);
}

void require_experts(const GgufFile& file, const Config& config) {
  if (config.experts == 0)
    fail(fmt::format("model: {} is missing or 0; {} models have experts",
                     config_key(file, "expert_count"), config.architecture));
}

double config_number(const GgufFile& file, const char* name, double otherwise,
                     const NumberRange& range) {
  const std::string key = config_key(file, name);
  if (!file.has(key)) return otherwise;
  const double value = file.number(key);
  if (!(value > 0 && value <= range.most) && !(range.zero && value == 0))
    fail(fmt::format("model: {} is {}; it must be {} 0 and at most {}", key, value,
                     range.zero ? "at least" : "above", range.most));
  return value;
}

double config_factor(const GgufFile& file, const char* name, double otherwise) {
  const double factor = config_number(file, name, otherwise, {.zero = true});
  return factor == 0 ? 1 : factor;
}

int64_t config_integer(const GgufFile& file, const char* name, int64_t otherwise, int64_t least,
                       int64_t most) {
  const std::string key = config_key(file, name);
  if (!file.has(key)) return otherwise;
  const int64_t value = file.integer(key);
  if (value < least || value > most)
    fail(fmt::format("model: {} is {}; it must be from {} to {}", key, value, least, most));
  return value;
}

std::vector<int64_t> config_layers(const GgufFile& file, const char* name, int64_t layers,
                                   int64_t least, int64_t most) {
  return layer_integers(file, config_key(file, name), layers, least, most);
}

std::vector<double> config_numbers(const GgufFile& file, const char* name, int64_t layers) {
  const std::string key = config_key(file, name);
  const GgufValue* value = file.find(key);
  std::vector<double> values(static_cast<size_t>(layers), 0);
  if (value && value->is_array()) {
    const std::vector<float> list = file.floats(key);
    values.assign(list.begin(), list.end());
    if (values.size() < static_cast<size_t>(layers))
      fail(fmt::format("model: {} has {} numbers for {} layers", key, values.size(), layers));
  } else if (value) {
    std::ranges::fill(values, file.number(key));
  }
  for (const double each : values)
    if (!(each >= 0 && each <= 1e9))
      fail(fmt::format("model: {} is {}; it must be from 0 to 1e9", key, each));
  return values;
}

void set_encoder(const GgufFile& file, Config& config) {
  config.causal = file.boolean_or(config_key(file, "attention.causal"), false);
  if (config.pooling == Pooling::none) config.pooling = Pooling::mean;
  if (!config.causal && config.window > 0) config.window = config.window / 2 + 1;
}

void set_windows(const GgufFile& file, Config& config, int64_t otherwise, int64_t period,
                 bool first_is_full) {
  config.window = config_integer(file, "attention.sliding_window", otherwise,
                                 otherwise == 0 ? 0 : 1, kMostContext);
  const std::string key = config_key(file, "attention.sliding_window_pattern");
  const GgufValue* pattern = file.find(key);
  if (pattern && pattern->is_array()) {
    const std::vector<int64_t> windowed = layer_integers(file, key, config.layers, 0, 1);
    for (size_t i = 0; i < windowed.size(); ++i) config.each_layer[i].windowed = windowed[i] != 0;
    return;
  }
  if (pattern && period == 1) {
    const bool all = config_integer(file, "attention.sliding_window_pattern", 0, 0, 4096) != 0;
    for (LayerConfig& each : config.each_layer) each.windowed = all;
    return;
  }
  period = config_integer(file, "attention.sliding_window_pattern", period, 0, 4096);
  const int64_t full = first_is_full ? 0 : period - 1;
  for (int64_t i = 0; i < config.layers; ++i)
    config.each_layer[static_cast<size_t>(i)].windowed = period == 0 || i % period != full;
}

void set_windowed_rotation(const GgufFile& file, Config& config, bool is_scaled) {
  const double base = config_number(file, "rope.freq_base_swa", config.rope_base, {.most = 1e12});
  const bool is_same = is_scaled || config.rope_scaling.kind == RopeScaling::Kind::none;
  if (base == config.rope_base && is_same) return;
  config.local_rope_base = base;
  if (is_scaled) config.local_rope_scaling = config.rope_scaling;
}

void leave_unrotated(Config& config, int64_t period) {
  for (int64_t i = period - 1; i < config.layers; i += period)
    config.each_layer[static_cast<size_t>(i)].rotated = false;
}

void set_leading_dense(const GgufFile& file, Config& config) {
  const int64_t count = config_integer(file, "leading_dense_block_count", 0, 0, 4096);
  for (int64_t i = 0; i < std::min(count, config.layers); ++i)
    config.each_layer[static_cast<size_t>(i)].experts = false;
}

void leave_out_proposing_layers(const GgufFile& file, Config& config) {
  config.layers -= config_integer(file, "nextn_predict_layers", 0, 0, config.layers - 1);
  config.each_layer.resize(static_cast<size_t>(config.layers));
}

void set_expert_scores(const GgufFile& file, Config& config, ExpertScores otherwise) {
  constexpr ExpertScores kScores[] = {ExpertScores::softmax, ExpertScores::sigmoid,
                                      ExpertScores::softmax_of_chosen, ExpertScores::sqrt_softplus};
  const int64_t function = config_integer(file, "expert_gating_func", 0, 0, 4);
  config.expert_scores = function > 0 ? kScores[function - 1] : otherwise;
}

void set_expert_weights(const GgufFile& file, Config& config, ExpertScores otherwise) {
  set_expert_scores(file, config, otherwise);
  config.expert_weights_sum_to_one =
      file.boolean_or(config_key(file, "expert_weights_norm"), false);
  config.expert_weights_scale = config_factor(file, "expert_weights_scale", 1);
}

void set_expert_width(const GgufFile& file, Config& config, bool is_of_all) {
  if (config.experts == 0) return;
  const int64_t wide = config_integer(file, "expert_feed_forward_length", 0, 0, kMostFeedForward);
  if (wide > 0)
    config.expert_feed_forward = wide;
  else if (is_of_all)
    config.expert_feed_forward = config.feed_forward / config.experts_used;
}

void set_shared_width(const GgufFile& file, Config& config, int64_t otherwise) {
  const int64_t wide =
      config_integer(file, "expert_shared_feed_forward_length", 0, 0, kMostFeedForward);
  config.shared_feed_forward = wide > 0 ? wide : otherwise;
}

void set_shared_count(const GgufFile& file, Config& config) {
  config.shared_feed_forward =
      config_integer(file, "expert_shared_count", 0, 0, 1024) * config.expert_feed_forward;
}

void set_norm_epsilon(const GgufFile& file, Config& config) {
  const char* const name = config.norms == NormKind::layer ? "attention.layer_norm_epsilon"
                                                           : "attention.layer_norm_rms_epsilon";
  // Norms add epsilon to a mean square before they divide by its root: 0 would allow 0 / 0.
  config.norm_epsilon = config_number(file, name, config.norm_epsilon, {.most = 1});
}

void have_no_experts(Config& config) {
  config.experts = config.experts_used = 0;
  for (LayerConfig& each : config.each_layer) each.experts = false;
}

CachedPosition Config::cached(int64_t layer) const {
  const LayerConfig& of = at(layer);
  if (of.cache_of >= 0 || of.kv_heads == 0) return {};
  if (of.latent > 0) return {1, of.latent + rope_dims, 0, of.indexer};
  const int64_t beside = of.beside_key >= 0 ? of.beside_key : of.value_dim;
  return {of.kv_heads, std::max(of.head_dim, of.value_dim), beside,
          of.compression > 0 ? 0 : of.indexer};
}

CachedPosition Config::compressed(int64_t layer) const {
  const LayerConfig& of = at(layer);
  return of.compression > 0 ? CachedPosition{1, of.head_dim, 0, of.indexer} : CachedPosition{};
}

void set_latent(const GgufFile& file, Config& config) {
  constexpr int64_t kMost = 1 << 16;
  config.q_rank = config_integer(file, "attention.q_lora_rank", 0, 0, kMost);
  const std::string key = config_key(file, "attention.kv_lora_rank");
  const int64_t latent = checked(key, file.integer(key), kMost);
  for (LayerConfig& each : config.each_layer) {
    each.latent = latent;
    if (each.head_dim < config.rope_dims)
      fail(fmt::format("model: keys have {} elements, fewer than the {} that are rotated",
                       each.head_dim, config.rope_dims));
  }
}

void set_latent_heads(const GgufFile& file, Config& config) {
  constexpr int64_t kMost = 1 << 16;
  for (LayerConfig& each : config.each_layer) {
    each.head_dim = config_integer(file, "attention.key_length_mla", each.head_dim, 1, kMost);
    each.value_dim = config_integer(file, "attention.value_length_mla", each.value_dim, 1, kMost);
  }
  config.head_dim = config.at(0).head_dim;
}

void set_indexer(const GgufFile& file, Config& config) {
  const auto count = [&](const char* name, int64_t most) {
    const std::string key = config_key(file, name);
    return checked(key, file.integer(key), most);
  };
  config.indexer_heads = count("attention.indexer.head_count", 1 << 12);
  config.indexer_keys = count("attention.indexer.top_k", kMostContext);
  const int64_t length = count("attention.indexer.key_length", 1 << 12);
  if (length < config.rope_dims)
    fail(fmt::format("model: {} is {}, less than the {} elements that are rotated",
                     config_key(file, "attention.indexer.key_length"), length, config.rope_dims));
  for (LayerConfig& each : config.each_layer) {
    each.indexer = length;
    each.chosen = true;
  }
}

void set_windowed_heads(const GgufFile& file, Config& config) {
  const int64_t most = 1 << 14;
  for (LayerConfig& each : config.each_layer) {
    if (!each.windowed) continue;
    each.head_dim = config_integer(file, "attention.key_length_swa", each.head_dim, 1, most);
    each.value_dim = config_integer(file, "attention.value_length_swa", each.value_dim, 1, most);
    config.local_rope_dims =
        config_integer(file, "rope.dimension_count_swa", config.rope_dims, 0, each.head_dim);
    if (config.local_rope_dims % 2 != 0)
      fail(fmt::format("model: {} is {}; it must be even",
                       config_key(file, "rope.dimension_count_swa"), config.local_rope_dims));
  }
}

void set_shared_caches(const GgufFile& file, Config& config, int64_t own) {
  for (int64_t i = own; i < config.layers; ++i) {
    int64_t source = own - 1;
    while (source >= 0 && config.is_windowed(source) != config.is_windowed(i)) --source;
    if (source < 0)
      fail(
          fmt::format("model: layer {} shares the cache of an earlier layer, but none of the first "
                      "{} is of its kind; check {}",
                      i, own, config_key(file, "attention.sliding_window_pattern")));
    config.each_layer[static_cast<size_t>(i)].cache_of = source;
  }
}

std::string Config::layer_name(int64_t layer) const {
  if (encoder_layers == 0) return fmt::format("blk.{}", layer % blocks());
  return is_encoder(layer) ? fmt::format("enc.blk.{}", layer)
                           : fmt::format("dec.blk.{}", layer - encoder_layers);
}

bool Config::has_states() const {
  return std::ranges::any_of(each_layer, [](const auto& each) { return !each.states.empty(); });
}

int64_t layer_loops(const GgufFile& file) {
  if (file.string("general.architecture") != "nanbeige") return 1;
  return config_integer(file, "num_loops", 1, 1, 64);
}

int64_t decoder_layers(const GgufFile& file) {
  // Files of other architectures may have the key, too.
  if (file.string("general.architecture") != "t5") return 0;
  const int64_t blocks = file.integer(config_key(file, "block_count"));
  return config_integer(file, "decoder_block_count", blocks, 1, 4096);
}

std::string embedding_name(const GgufFile& file) {
  const std::string own = "token_embd.weight", other = "output.weight";
  const bool may_share = file.string("general.architecture") == "codeshell";
  return may_share && !file.find_tensor(own) && file.find_tensor(other) ? other : own;
}

Config read_config(const GgufFile& file) {
  Config config;
  config.architecture = std::string(file.string("general.architecture"));
  config.name = std::string(file.string_or("general.name", ""));
  const std::string prefix = config.architecture + ".";
  const auto count = [&](const char* name, int64_t most) {
    const std::string key = prefix + name;
    return checked(key, file.integer(key), most);
  };
  config.layers = count("block_count", 4096);
  config.width = count("embedding_length", 1 << 20);
  config.context = count("context_length", kMostContext);
  config.each_layer.resize(static_cast<size_t>(config.layers));
  const std::string heads_key = prefix + "attention.head_count",
                    kv_key = prefix + "attention.head_count_kv";
  const std::vector<int64_t> heads = layer_integers(file, heads_key, config.layers, 0, 1 << 16);
  const std::vector<int64_t> kv_heads =
      file.has(kv_key) ? layer_integers(file, kv_key, config.layers, 0, 1 << 16) : heads;
  for (size_t i = 0; i < heads.size(); ++i) {
    if (kv_heads[i] > 0 && heads[i] % kv_heads[i] != 0)
      fail(fmt::format("model: {} is {}, which does not divide {} heads", kv_key, kv_heads[i],
                       heads[i]));
    config.each_layer[i].heads = heads[i];
    config.each_layer[i].kv_heads = kv_heads[i];
  }
  // Models without attention say 0 heads, and those without feed-forward blocks a width of 0.
  const bool may_be_none =
      file.has(prefix + "ssm.conv_kernel") || file.has(prefix + "wkv.head_size");
  const auto most_of = [&](const std::string& key, const std::vector<int64_t>& values,
                           int64_t most) {
    return checked(key, std::max<int64_t>(may_be_none, std::ranges::max(values)), most);
  };
  config.heads = most_of(heads_key, heads, 1 << 16);
  config.kv_heads = most_of(kv_key, kv_heads, 1 << 16);
  const std::string dim_key = prefix + "attention.key_length";
  // Without the key it is the first layer that tells the length of heads.
  const int64_t divisor = heads[0] > 0 ? heads[0] : config.heads;
  if (!file.has(dim_key) && config.width % divisor != 0)
    fail(fmt::format("model: {} is {}, not a multiple of {} heads, and {} is missing",
                     prefix + "embedding_length", config.width, divisor, dim_key));
  config.head_dim = checked(dim_key, file.integer_or(dim_key, config.width / divisor), 1 << 14);
  const std::string value_key = prefix + "attention.value_length";
  const int64_t value_dim =
      checked(value_key, file.integer_or(value_key, config.width / divisor), 1 << 14);
  for (LayerConfig& each : config.each_layer) {
    each.head_dim = config.head_dim;
    each.value_dim = value_dim;
  }

  config.rope_dims = file.integer_or(prefix + "rope.dimension_count", config.head_dim);
  if (config.rope_dims < 0 || config.rope_dims > config.head_dim || config.rope_dims % 2 != 0)
    fail(fmt::format("model: {}rope.dimension_count is {}; it must be even and at most {}", prefix,
                     config.rope_dims, config.head_dim));
  config.rope_base = config_number(file, "rope.freq_base", 10000, {.most = 1e12});
  config.rope_scaling = read_scaling(file, prefix, config.context);
  config.local_rope_magnitude = config_number(file, "rope.scaling.attn_factor", 0, {.zero = true});
  if (config.rope_scaling.kind != RopeScaling::Kind::yarn)
    config.rope_magnitude = config.local_rope_magnitude;

  config.causal = file.boolean_or(prefix + "attention.causal", true);

  // In the order of the numbers in files; 4 scores pairs of texts and needs more than a vector.
  constexpr Pooling kPoolings[] = {Pooling::none, Pooling::mean, Pooling::first, Pooling::last,
                                   Pooling::none};
  config.pooling = kPoolings[config_integer(file, "pooling_type", 0, 0, 4)];

  config.experts = config_integer(file, "expert_count", 0, 0, 1024);
  if (!has_experts(file)) config.experts = 0;
  if (config.experts > 0) config.experts_used = count("expert_used_count", config.experts);
  const std::string wide_key = prefix + "feed_forward_length";
  if (file.has(wide_key) || config.experts == 0) {
    const std::vector<int64_t> wide =
        layer_integers(file, wide_key, config.layers, 0, kMostFeedForward);
    for (size_t i = 0; i < wide.size(); ++i) config.each_layer[i].feed_forward = wide[i];
    config.feed_forward = std::ranges::max(wide);
    if (config.experts == 0) most_of(wide_key, wide, kMostFeedForward);
  }
  config.expert_feed_forward = config.feed_forward;
  if (config.experts > 0) read_expert_groups(file, config);
  for (LayerConfig& each : config.each_layer) each.experts = config.experts > 0;

  if (const int64_t more = decoder_layers(file); more > 0) {
    config.encoder_layers = config.layers;
    config.layers += more;
    config.each_layer.resize(static_cast<size_t>(config.layers), config.each_layer.back());
    config.start_token =
        static_cast<int32_t>(config_integer(file, "decoder_start_token_id", 0, 0, (1 << 24) - 1));
  }

  config.loops = layer_loops(file);
  const std::vector<LayerConfig> once = config.each_layer;
  for (int64_t i = 1; i < config.loops; ++i)
    config.each_layer.insert(config.each_layer.end(), once.begin(), once.end());
  config.layers *= config.loops;

  const std::string table_name = embedding_name(file);
  const GgufTensor* table = file.find_tensor(table_name);
  if (!table) throw Error(ErrorCode::kNotFound, "model: the file has no tensor token_embd.weight");
  if (table->shape.rank() != 2 || table->shape[1] != config.width)
    fail(fmt::format("model: {} is {}; it must be [vocabulary, {}]", table_name,
                     table->shape.text(), config.width));
  config.vocabulary = checked("the first dimension of " + table_name, table->shape[0], 1 << 24);
  if (config.start_token >= config.vocabulary)
    fail(fmt::format("model: {} is {}, and the vocabulary has {}",
                     config_key(file, "decoder_start_token_id"), config.start_token,
                     config.vocabulary));
  return config;
}

}  // namespace prism::llm
